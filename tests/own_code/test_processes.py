"""No explored program forks the process that explores it, puts another one in its place or signals to it."""

from __future__ import annotations

import _thread
import os
import signal
from collections.abc import Callable
from typing import NoReturn

import pytest
from tests.own_code import processes

from seriatim_models.explorer import OutsideModel
from seriatim_models.explorer.model import guard
from seriatim_models.explorer.python import check

CALLED = [
    (processes.waits_for_any, os, "wait3"),
    (processes.waits_for_any_with_usage, os, "wait4"),
    (processes.waits_by_id, os, "waitid"),
    (processes.forks_on_a_terminal, os, "forkpty"),
    (processes.starts_by_name, os, "posix_spawnp"),
    (processes.becomes_another, os, "execv"),
    (processes.becomes_another_by_list, os, "execv"),
    (processes.becomes_another_by_name, os, "execve"),
    (processes.starts_and_waits, os, "fork"),
    (processes.signals_by_descriptor, signal, "pidfd_send_signal"),
    (processes.interrupts_main, _thread, "interrupt_main"),
]


def was_called(*_: object) -> NoReturn:
    raise RuntimeError("it was called")  # and not the real one, whatever is refused


@pytest.mark.parametrize(("test", "module", "name"), CALLED, ids=[t.__name__ for t, _, _ in CALLED])
def test_it_is_refused_by_name(
    test: Callable[[], None], module: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(module, name):
        pytest.skip(f"this system has no {name}")
    monkeypatch.setattr(module, name, was_called)
    with pytest.raises(OutsideModel, match=rf"{name} is outside the model"):
        check(test)


def test_a_fork_by_c_code_ends_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(guard, "_leave", left.append)
    guard._not_twice()
    assert left == []
    monkeypatch.setattr(guard, "inside", lambda: True)
    guard._not_twice()
    assert left == [1]
