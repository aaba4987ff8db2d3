"""Source text on a page, with the classes that `code.css` colours."""

from __future__ import annotations

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from seriatim_models.report.visible import visible


def highlighted(source: str, language: str) -> Markup:
    """The source with its words marked up; plain if Pygments knows no such language."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return Markup.escape(visible(source))
    return Markup(highlight(visible(source), lexer, HtmlFormatter(nowrap=True)))
