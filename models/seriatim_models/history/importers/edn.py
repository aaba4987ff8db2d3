"""Reading EDN (https://github.com/edn-format/edn), as far as operation histories need it.

Maps, vectors, lists, sets, strings, characters, numbers, keywords, symbols, nil, booleans; a tagged element is its
value (``#jepsen.history.Op{...}`` is the map). A keyword becomes its name without the colon. Nothing is evaluated.
"""

from __future__ import annotations

import re

from seriatim_models.history.depth import DEPTH_MAX

_TOKEN = re.compile(
    r"""[\s,]*(?:;[^\n]*[\s,]*)*(?P<token>
      \#\{ | \#_ | [()\[\]{}]
    | "(?:[^"\\]|\\.)*"
    | \#[A-Za-z][^\s,()\[\]{}"]*
    | \\[^\s,()\[\]{}"]+
    | [^\s,()\[\]{}"]+
    )""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"{": "}", "[": "]", "(": ")", "#{": "}"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_SKIP = object()


class BadEdn(ValueError):
    """The text is no EDN; the message says why and at which character."""


def loads(text: str) -> object:
    """The one element in a text. Raises `BadEdn`."""
    value, at = _element(text, 0, 0)
    while value is _SKIP:
        value, at = _element(text, at, 0)
    if _TOKEN.match(text, at):
        raise BadEdn(f"character {at}: something follows the element")
    return value


def _element(text: str, at: int, depth: int) -> tuple[object, int]:
    if depth > DEPTH_MAX:
        raise BadEdn(f"character {at}: nested deeper than {DEPTH_MAX}")
    match = _TOKEN.match(text, at)
    if match is None:
        raise BadEdn(f"character {at}: the element ends too early")
    token, at = match["token"], match.end()
    if token in _CLOSING:
        return _collection(text, at, token, depth)
    if token in ")]}":
        raise BadEdn(f"character {at - 1}: {token} closes nothing")
    if token == "#_":
        _, at = _element(text, at, depth + 1)
        return _SKIP, at
    if token.startswith("#"):
        return _element(text, at, depth + 1)  # a tag: its element is the value
    return _atom(token, at), at


def _collection(text: str, at: int, opening: str, depth: int) -> tuple[object, int]:
    closing = _CLOSING[opening]
    items: list[object] = []
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadEdn(f"character {at}: {opening} is not closed")
        if match["token"] == closing:
            at = match.end()
            break
        item, at = _element(text, at, depth + 1)
        if item is not _SKIP:
            items.append(item)
    if opening != "{":
        return items, at
    if len(items) % 2:
        raise BadEdn(f"character {at}: a map with a key without value")
    made: dict[object, object] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        made[key if isinstance(key, str | int | float | bool) else repr(key)] = value
    return made, at


def _atom(token: str, at: int) -> object:
    if token.startswith('"'):
        if len(token) < 2 or not token.endswith('"'):
            raise BadEdn(f"character {at}: a string is not closed")
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1], flags=re.DOTALL)
    if token.startswith(":"):
        return token[1:]
    if token.startswith("\\"):
        return token[1:]
    named = {"nil": None, "true": True, "false": False}
    if token in named:
        return named[token]
    if re.fullmatch(r"[+-]?\d+N?", token):
        return int(token.rstrip("N"))
    if re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?M?", token):
        return float(token.rstrip("M"))
    return token
