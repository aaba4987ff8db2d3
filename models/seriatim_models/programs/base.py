"""What a program and a mutant are.

A *program* is a small closed concurrent program over one of the references: a few threads, a few operations, an end.
Each is small enough that every schedule of it can be looked at.
A *mutant* is the smallest change to a reference that makes it wrong, with the property that must convict it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from seriatim_models.explorer import World

Build = Callable[[World, ModuleType], None]
"""Sets up shared state and spawns the threads. The module is the reference under test, perhaps a mutant of it."""


@dataclass(frozen=True)
class Program:
    """A closed concurrent program and what it is for."""

    id: str
    title: str
    """One sentence: what meets what."""
    reference: str
    """The module it exercises, e.g. ``queue`` for `seriatim.queue`."""
    properties: tuple[str, ...]
    """Ids of the properties that it tests; each must have been tested in at least one of its executions."""
    build: Build
    beyond: str
    """The bounds of the program, and what lies beyond them."""
    traces: int
    """How many Mazurkiewicz traces it has. A change of this number is a change of the program or of the explorer."""
    real_time: bool = False
    """Whether a property here looks at the real-time order of calls, so that calls and returns must be ordered too."""


@dataclass(frozen=True)
class Mutant:
    """The smallest edit of a reference that makes it wrong."""

    id: str
    origin: str
    """Where the mistake comes from: a seed, a commit, a paper."""
    title: str
    reference: str
    edits: tuple[tuple[str, str], ...]
    """(text that stands exactly once in the reference, what replaces it)."""
    killed_by: str
    """Id of the property that must convict it."""
    program: str
    """Id of the program that shows it."""
    steps: int
    """Length of its shortest counterexample, in steps."""
    also: tuple[str, ...] = ()
    """Other properties that convict it in the same program."""
