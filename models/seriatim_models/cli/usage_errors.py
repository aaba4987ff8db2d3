"""Errors of usage, each in one sentence that names the nearest right thing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from difflib import get_close_matches

import rich_click as click

from seriatim_models.files import text_of

FEW = 5  # names that fit into one sentence


IN_WORDS = (
    (re.compile(r"is not a valid (integer|int)( range)?"), "is not a whole number"),
    (re.compile(r"is not a valid float( range)?"), "is not a number"),
    (re.compile(r"is not in the range x>=(\S+?)\.?$"), r"is less than \1"),
)
"""What click says of a value -> the same in plain words."""


def in_words(message: str) -> str:
    """Return a message of click's without its names of types."""
    for pattern, words in IN_WORDS:
        message = pattern.sub(words, message)
    return message


class UsageError(click.ClickException):
    """Bad usage or unreadable input."""

    exit_code = 2


def sentence_of(error: Exception) -> str:
    """What an error says; one of the system's names its file first, and not its number."""
    if not isinstance(error, OSError):
        return str(error)
    named = f"{text_of(os.fsdecode(error.filename))}: " if error.filename else ""
    return f"{named}{error.strerror or error}"


def another(name: str, wanted: str) -> UsageError | None:
    """The error for a name that is known, and is not of the kind that is wanted: what it is, and what to type."""
    from seriatim_models.cli.report_builder import property_catalogue
    from seriatim_models.programs import MUTANTS, PROGRAMS

    kinds = (
        ("program", PROGRAMS, f"seriatim check {name}"),
        ("mutant", MUTANTS, f"seriatim check --mutant {name}"),
        ("property", property_catalogue(), f"seriatim explain {name}"),
    )
    for kind, known, command in kinds:
        if name in known:
            return UsageError(f"{name!r} is a {kind}, not a {wanted}; `{command}` takes it")
    return None


def unknown(kind: str, name: str, known: Iterable[str], look: str) -> UsageError:
    """The error for a name that is not known; `look` is the command that lists those that are."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    if near:
        hint = f"did you mean {by_lower[near[0]]!r}?"
    elif len(by_lower) <= FEW:
        hint = f"known are {', '.join(by_lower.values())}"
    else:
        hint = f"`{look}` lists them"
    return UsageError(f"there is no {kind} {name!r}; {hint}")
