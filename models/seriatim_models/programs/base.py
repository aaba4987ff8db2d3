"""What a program and a mutant are.

A *program* is a small closed concurrent program over one of the references: a few threads, a few operations, an end.
Each is small enough that every schedule of it can be looked at.
A *mutant* is the smallest change to a reference that makes it wrong, with the property that it must violate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from types import ModuleType
from typing import Concatenate, Generic, ParamSpec, TypeVar

from seriatim_models.explorer import ExplorerError, World

P = ParamSpec("P")
S = TypeVar("S")

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
    """Id of the property that it must violate."""
    program: str
    """Id of the program that shows it."""
    steps: int
    """Length of its shortest counterexample, in steps."""
    also: tuple[str, ...] = ()
    """Other properties that it violates in the same program."""


class Programs(dict[str, Program]):
    """The programs over one reference, by id."""

    def __init__(self, reference: str) -> None:
        super().__init__()
        self.reference = reference

    def scenarios(self, scene: Callable[Concatenate[World, ModuleType, P], S]) -> Scenarios[P, S]:
        """Return a decorator whose functions are programs over this reference, on a `scene` of their own."""
        return Scenarios(self, scene)


class Scenarios(Generic[P, S]):
    """Registers functions as programs; each call of one is handed a new scene.

    The program's id is the function's name with dashes, without an underscore at its end. The docstring's first
    paragraph is the title, its paragraph "Bounds: ..." the program's `beyond`.
    """

    def __init__(
        self, programs: Programs, scene: Callable[Concatenate[World, ModuleType, P], S]
    ) -> None:
        self.programs = programs
        self.scene = scene

    def __call__(
        self,
        properties: str,
        traces: int,
        real_time: bool = False,
        thread: str = "",
        *args: P.args,
        **setup: P.kwargs,
    ) -> Callable[[Callable[[S], None]], Callable[[S], None]]:
        """Register the decorated function as a program that tests the properties named, with blanks between.

        With `thread` the function is what a thread of that name does, the only one; without, it sets the scene up.
        Raises `ValueError` if there is a program of that name.

        What follows `thread` is handed on to the scene.
        """

        def register(scenario: Callable[[S], None]) -> Callable[[S], None]:
            @wraps(scenario)
            def build(world: World, lib: ModuleType) -> None:
                act = partial(scenario, self.scene(world, lib, *args, **setup))
                if thread:
                    world.spawn(act, name=thread)
                else:
                    act()

            id = scenario.__name__.removesuffix("_").replace("_", "-")
            if id in self.programs:
                raise ValueError(f"two programs are called {id}")
            title, bounds = (" ".join(p.split()) for p in (scenario.__doc__ or "").split("\n\n"))
            self.programs[id] = Program(
                id=id,
                title=title,
                reference=self.programs.reference,
                properties=tuple(properties.split()),
                build=build,
                beyond=bounds.removeprefix("Bounds: "),
                traces=traces,
                real_time=real_time,
            )
            return scenario

        return register


class Scene:
    """What a scenario is handed: the execution it runs in and the module under test, perhaps a mutant."""

    def __init__(self, world: World, lib: ModuleType) -> None:
        self.world = world
        self.lib = lib

    @contextmanager
    def refused(self, *declared: type[Exception]) -> Iterator[None]:
        """Make a call that must be refused, by one of these errors; what it raises is recorded and goes no further."""
        try:
            yield
        except ExplorerError:
            raise
        except Exception as error:
            known = isinstance(error, declared)
            self.world.record("raised", error=type(error).__name__, declared=known)
        else:
            self.world.record("raised", error="nothing", declared=False)

    @contextmanager
    def accepted(self, *refusals: type[Exception]) -> Iterator[None]:
        """Make a call that is in contract; one of these errors is recorded as undeclared and goes no further."""
        try:
            yield
        except refusals as error:
            self.world.record("raised", error=type(error).__name__, declared=False)


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
        diff: str = "",
        edit: tuple[str, str] | None = None,
        also: tuple[str, ...] = (),
    ) -> None:
        """Register a mutant, made by a `diff` of whole lines or by one `edit` within a line (old text, new text).

        Each line of a diff begins with a blank (it stays), a minus or a plus; hunks are divided by a line ``@@``.
        Raises `ValueError` if the id is taken.
        """
        if id in self:
            raise ValueError(f"two mutants are called {id}")
        changes = edits_of(diff) if diff else ()
        if edit is not None:
            changes += (edit,)
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


def edits_of(diff: str) -> tuple[tuple[str, str], ...]:
    """Return what a diff of whole lines replaces: of each hunk the text that stands there, and the new text."""
    hunks = (h.removesuffix("\n").split("\n") for h in diff.removeprefix("\n").split("@@\n"))
    return tuple((_without("+", lines), _without("-", lines)) for lines in hunks)


def _without(sign: str, lines: Sequence[str]) -> str:
    return "".join(f"{line[1:]}\n" for line in lines if not line.startswith(sign))
