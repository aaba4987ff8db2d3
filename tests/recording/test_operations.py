"""Recordings and references fit: what is marked is recorded, and what is recorded is marked."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from seriatim.host import HasHost, operation
from seriatim_models.programs.mutant_modules import load
from seriatim_models.recording import client, fair, log, queue


@operation
def _any(of: HasHost) -> None: ...


def marked(lib: ModuleType) -> Iterator[str]:
    """The operations of all classes of a system, as ``Class.method``."""
    for value in vars(lib).values():
        if isinstance(value, type):
            for method in vars(value).values():
                if getattr(method, "__code__", None) is _any.__code__:
                    yield method.__qualname__


@pytest.mark.parametrize("recording", [client, fair, log, queue], ids=lambda r: r.__name__)
def test_operations_that_are_marked_are_those_that_are_recorded(recording: ModuleType) -> None:
    system = recording.__name__.rpartition(".")[2]
    assert set(marked(load(system))) == set(recording.OPERATIONS)
