"""Tables that a program writes into a page, between two comments, and checks there."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path


def replaced(text: str, begin: str, end: str, tables: str) -> str:
    """Return the page's text with `tables` between the line that begins with `begin` and `end`.

    Raises ValueError if the page does not have one of each, in this order.
    """
    if text.count(begin) != 1 or end not in text.partition(begin)[2]:
        raise ValueError(f"the page has no single {begin!r} with {end!r} after it")
    head, _, rest = text.partition(begin)
    comment, _, rest = rest.partition("\n")
    _, _, tail = rest.partition(end)
    return f"{head}{begin}{comment}\n\n{tables}\n\n{end}{tail}"


def main(
    command: str, description: str, renewed: Callable[[str], str], arguments: Sequence[str]
) -> int:
    """Rewrite the tables of a page; return 0, or with `--check` 1 if they are not up to date.

    `command` is how the program is called, for its usage; `renewed` makes the page's text anew.
    Arguments and pages that cannot be used end in a sentence and exit code 2.
    """
    parser = argparse.ArgumentParser(prog=command, description=description)
    parser.add_argument("page", type=Path, metavar="FILE", help="the page that has the tables")
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit with 1 if the tables are not up to date",
    )
    asked = parser.parse_args(arguments)
    try:
        text = asked.page.read_text(encoding="utf-8")
        new = renewed(text)
        if asked.check:
            return int(new != text)
        asked.page.write_text(new, encoding="utf-8")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return 0
