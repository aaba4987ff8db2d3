"""The templates of the pages: where they are found, and the filters that they use."""

from __future__ import annotations

from functools import cache

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def environment() -> Environment:
    """The environment of all templates: everything is escaped, and an undefined name is an error."""
    made = Environment(
        loader=PackageLoader("seriatim_models.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["thousands"] = lambda n: "not counted" if n is None else f"{n:,}"
    made.filters["script_data"] = script_data
    return made


def render(template: str, **values: object) -> str:
    """The template of that name with these values."""
    return environment().get_template(template).render(**values)


def script_data(value: msgspec.Struct) -> Markup:
    """JSON that can stand in a script element: no text in it can end the element or begin a comment."""
    text = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
