"""Names of strangers on their way to a reader: what cannot be seen, or would be obeyed, becomes a symbol.

One function for every border: the terminal (`cli/console.py`), JUnit XML (`junit.py`), pages and pictures
(`templating.py`), which escape markup besides. What programs read (JSON, Parquet) keeps every character.
"""

from __future__ import annotations

from markupsafe import Markup, escape

LONG = 120
"""Characters of a word that a page shows whole; of a longer one it shows the two ends."""
_ENDS = (80, 20)

_HIDDEN = (
    *range(0x7F, 0xA0),  # delete, and the control characters of ISO 6429
    0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070),
    0xFEFF, *range(0xFFF9, 0xFFFC), 0xFFFE, 0xFFFF,
    *range(0xD800, 0xE000),  # halves of a character, which no encoding of text holds
    *range(0xE0000, 0xE0080),  # tags
)  # fmt: skip
"""What changes direction, joins, separates or is no character; the bidirectional marks of Unicode are among them."""

_SYMBOLS: dict[int, str] = (
    {c: chr(0x2400 + c) for c in range(0x20) if c not in (0x09, 0x0A)}  # ESC is shown as one sign
    | {c: f"<U+{c:04X}>" for c in _HIDDEN}
    | {0x7F: "\u2421"}
)


def visible(text: str) -> str:
    """The text with control characters and marks of direction as symbols; tabs and line ends stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_SYMBOLS)


def one_line(text: str) -> str:
    """`visible`, and line ends and tabs as symbols too: for a name, which must not look like a line of ours."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def in_a_line(text: str) -> str:
    """What a stranger wrote, for the terminal: `one_line`, with long words `shortened`."""
    return one_line(shortened(text))


def shortened(text: str, most: int = LONG) -> str:
    """The text with each word of more than `most` characters cut to its two ends."""
    if len(text) <= most:
        return text
    return " ".join(_short(word, most) for word in text.split(" "))


def titled(text: str) -> Markup | str:
    """For a page: the text, or, if that had to be shortened, its short form with all of it as the tooltip."""
    short = shortened(text)
    if short == text:
        return text
    return Markup('<span title="{}">{}</span>').format(visible(text), escape(visible(short)))


def _short(word: str, most: int) -> str:
    first, last = _ENDS
    return word if len(word) <= most else f"{word[:first]}...{word[-last:]}"
