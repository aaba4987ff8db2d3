"""What the command line expects of the modules that it calls, as protocols.

They keep the commands honest about how little they need, and let the tests stand in for the real thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from seriatim_models.properties.base import Finding
from seriatim_models.report import stepper

if TYPE_CHECKING:
    from seriatim_models.programs.base import Mutant, Program


class Interleaving(stepper.Interleaving, Protocol):
    """A counterexample of the explorer."""

    @property
    def token(self) -> str: ...

    def text(self) -> str: ...


class Explored(Protocol):
    """What the explorer says of one search."""

    @property
    def verdict(self) -> str: ...

    @property
    def exhausted(self) -> bool: ...

    @property
    def traces(self) -> int | None: ...

    @property
    def complete(self) -> int: ...

    @property
    def blocked(self) -> int: ...

    @property
    def why(self) -> str: ...

    @property
    def bounds(self) -> Mapping[str, int | float | None]: ...

    @property
    def split(self) -> object | None: ...

    @property
    def counterexample(self) -> Interleaving | None: ...


class ProgramResult(Protocol):
    """One program, perhaps over a mutant, with what was found."""

    @property
    def program(self) -> Program: ...

    @property
    def mutant(self) -> Mutant | None: ...

    @property
    def findings(self) -> Sequence[Finding]: ...

    @property
    def explored(self) -> Explored: ...

    @property
    def seconds(self) -> float: ...
