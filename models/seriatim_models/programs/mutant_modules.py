"""Loading a reference, or a mutant of it: the same source with a few words changed."""

from __future__ import annotations

import difflib
import importlib
import inspect
import linecache
import sys
from functools import cache
from types import ModuleType

from seriatim_models.programs.base import Mutant


class StaleMutant(Exception):
    """The reference no longer has the text that a mutant changes, or has it more than once."""


def source(reference: str) -> str:
    """The text of `seriatim.<reference>`."""
    return inspect.getsource(importlib.import_module(f"seriatim.{reference}"))


def mutated(mutant: Mutant) -> str:
    """The mutant's text."""
    text = source(mutant.reference)
    for old, new in mutant.edits:
        if text.count(old) != 1:
            raise StaleMutant(
                f"mutant {mutant.id}: its text stands {text.count(old)} times in seriatim.{mutant.reference}, "
                f"not once: {old.strip().splitlines()[0]!r}"
            )
        text = text.replace(old, new)
    return text


def diff(mutant: Mutant) -> str:
    """What the mutant changes, as a unified diff."""
    name = f"{mutant.reference}.py"
    return "\n".join(
        difflib.unified_diff(
            source(mutant.reference).splitlines(),
            mutated(mutant).splitlines(),
            name,
            f"{name} ({mutant.id})",
            n=2,
            lineterm="",
        )
    )


@cache
def load(reference: str, mutant: Mutant | None = None) -> ModuleType:
    """The reference itself, or the mutant as a module of its own."""
    if mutant is None:
        return importlib.import_module(f"seriatim.{reference}")
    name = f"seriatim.{reference}__{mutant.id.replace('-', '_')}"
    text = mutated(mutant)
    module = ModuleType(name, mutant.title)
    module.__file__ = f"<mutant {mutant.id}>"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    sys.modules[name] = module  # dataclasses look their module up by name
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module
