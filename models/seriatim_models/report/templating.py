"""The templates of the pages: where they are found, and the filters that they use."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

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
    made.filters["prose"] = prose
    made.filters["capitalized"] = lambda text: text[:1].upper() + text[1:]
    made.filters["titled"] = titled
    made.filters["short"] = shortened
    return made


_TRACKED = re.compile(r"\b(QPID-\d+)\b|(?<=java-client )([^()]*[(])(issues? )(\d+(?:, \d+)*)")
"""What names a bug in the public tracker of its system."""


def prose(text: str) -> Markup:
    """Text of this package for a page: what stands in backticks as code, a bug that a tracker names as a link to it."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(visible(text))))
    return Markup(_TRACKED.sub(_linked, code))


def _linked(found: re.Match[str]) -> str:
    jira, before, word, numbers = found.groups()
    if jira:
        return f'<a href="https://issues.apache.org/jira/browse/{jira}">{jira}</a>'
    issues = "https://github.com/rabbitmq/rabbitmq-java-client/issues"
    links = [f'<a href="{issues}/{number}">{number}</a>' for number in numbers.split(", ")]
    return f"{before}{word}{', '.join(links)}"


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
