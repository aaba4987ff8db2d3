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


class Programs(dict[str, Program]):
    """The programs over one reference, by id."""

    def __init__(self, reference: str) -> None:
        super().__init__()
        self.reference = reference

    def program(
        self,
        id: str,
        title: str,
        properties: str,
        beyond: str,
        traces: int,
        *,
        real_time: bool = False,
    ) -> Callable[[Build], Build]:
        """Register the decorated builder as a program that tests the properties named, with blanks between."""

        def register(build: Build) -> Build:
            self[id] = Program(
                id,
                title,
                self.reference,
                tuple(properties.split()),
                build,
                beyond,
                traces,
                real_time,
            )
            return build

        return register


class Mutants(dict[str, Mutant]):
    """The mutants of one reference, by id."""

    def __init__(self, reference: str) -> None:
        super().__init__()
        self.reference = reference

    def add(
        self,
        *,
        id: str,
        killed_by: str,
        program: str,
        steps: int,
        origin: str,
        title: str,
        edit: tuple[str, str] | None = None,
        edits: tuple[tuple[str, str], ...] = (),
        also: tuple[str, ...] = (),
    ) -> None:
        """Register a mutant made by one `edit`, or by several `edits`."""
        changes = edits if edit is None else (edit, *edits)
        self[id] = Mutant(
            id=id,
            origin=origin,
            title=title,
            reference=self.reference,
            edits=changes,
            killed_by=killed_by,
            program=program,
            steps=steps,
            also=also,
        )
