"""The templates of the pages: where they are found, and the filters that they use."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seriatim_models.report.visible import shortened, titled, visible


@cache
def environment() -> Environment:
    """The environment of all templates: everything is escaped, and an undefined name is an error."""
    made = Environment(
        loader=PackageLoader("seriatim_models.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["thousands"] = lambda n: "not counted" if n is None else f"{n:,}"
    made.filters["script_data"] = script_data
    made.filters["titled"] = titled
    made.filters["short"] = shortened
    return made


def render(template: str, **values: object) -> str:
    """The template of that name with these values."""
    return environment().get_template(template).render(**values)


# Any: what a template puts out, and the parts of a struct, may be anything
def _shown(value: Any) -> Any:
    """What an expression of a template puts out; markup is made by this package alone."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _page_texts(value: Any) -> Any:
    """The value with its texts visible, and long words in them shortened."""
    if isinstance(value, str):
        return visible(shortened(value))
    if isinstance(value, dict):
        return {key: _page_texts(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_page_texts(inner) for inner in value]
    return value


def script_data(value: msgspec.Struct) -> Markup:
    """JSON that can stand in a script element: no text in it can end the element or begin a comment.

    Texts are as a page shows them.
    """
    text = msgspec.json.encode(_page_texts(msgspec.to_builtins(value))).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
