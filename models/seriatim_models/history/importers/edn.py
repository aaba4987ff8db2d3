"""Reading EDN (https://github.com/edn-format/edn), as far as operation histories need it.

Maps, vectors, lists, sets, strings, characters, numbers, keywords, symbols, nil, booleans; a tagged element is its
value (``#jepsen.history.Op{...}`` is the map). A keyword becomes its name without the colon. Nothing is evaluated.
"""

from __future__ import annotations

import math
import re

from seriatim_models.history.depth import DEPTH_MAX

_TOKEN = re.compile(
    r"""[\s,]*+(?:;[^\n]*+[\s,]*+)*+(?P<token>
      \#\{ | \#_ | [()\[\]{}]
    | "[^"\\]*+(?:\\.[^"\\]*+)*+"
    | \\(?:[^\s,;()\[\]{}"]+ | \S)
    | [^\s,;()\[\]{}"]+
    )""",
    re.VERBOSE | re.DOTALL,
)
"""Nothing is tried in another way: what begins with a semicolon is a comment, and a long text is read once."""
_CLOSING = {"{": "}", "[": "]", "(": ")", "#{": "}"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_UNICODE = r"u[0-9A-Fa-f]{4}"
_SYMBOLIC = {"##Inf": math.inf, "##-Inf": -math.inf, "##NaN": math.nan}
_DIGITS_MAX = 4300
"""Digits of a whole number that Python makes one of: its time grows with their square."""
_SKIP = object()


class BadEdn(ValueError):
    """The text is no EDN; the message says why and at which character."""


def loads(text: str) -> object:
    """The one element in a text. Raises `BadEdn`."""
    value, at = _value(text, 0, 0)
    if _TOKEN.match(text, at):
        raise BadEdn(f"character {at}: something follows the element")
    return value


def _value(text: str, at: int, depth: int) -> tuple[object, int]:
    """The next element that is not left out, and where it ends."""
    value, at = _element(text, at, depth)
    while value is _SKIP:
        value, at = _element(text, at, depth)
    return value, at


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
        _, at = _value(text, at, depth + 1)
        return _SKIP, at
    if token in _SYMBOLIC:
        return _SYMBOLIC[token], at
    if token.startswith("#"):
        return _value(text, at, depth + 1)  # a tag: its element is the value
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
        return _whole(re.sub(rf"\\({_UNICODE}|.)", _escaped, token[1:-1], flags=re.DOTALL), at)
    if token.startswith(":"):
        return token[1:]
    if token.startswith("\\"):
        coded = re.fullmatch(rf"\\{_UNICODE}", token)
        return _whole(chr(int(token[2:], 16)), at) if coded else token[1:]
    named = {"nil": None, "true": True, "false": False}
    if token in named:
        return named[token]
    if re.fullmatch(r"[+-]?\d+N?", token):
        if len(token) > _DIGITS_MAX:
            raise BadEdn(f"character {at}: a number of more than {_DIGITS_MAX} digits")
        return int(token.rstrip("N"))
    if re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?M?", token):
        return float(token.rstrip("M"))
    return token


def _escaped(match: re.Match[str]) -> str:
    """What an escape in a string stands for; one beyond 16 bits is written as two halves."""
    name = match[1]
    return chr(int(name[1:], 16)) if len(name) == 5 else _ESCAPES.get(name, name)


def _whole(text: str, at: int) -> str:
    """A text with its halves of characters put together. Raises `BadEdn` for a half alone, which no file can hold."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise BadEdn(f"character {at}: half a character") from None
