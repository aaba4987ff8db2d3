"""`seriatim conform` without a profile: what a documented system of that kind allows is open, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.cli import run

QUEUES = '''
class Workers:
    """Messages with leases, given out from one end; what is not acknowledged goes back to its place."""

    can = ("publish", "get", "ack", "nack")
    last = False

    def __init__(self):
        self.ready, self.held, self.tags, self.place = {}, {}, {}, []

    def publish(self, q, m):
        self.place.append(m)
        self.ready.setdefault(q, []).append(m)

    def get(self, ch, q):
        if not self.ready.get(q):
            return None
        m = self.ready[q].pop(-1 if self.last else 0)
        tag = self.tags[ch] = self.tags.get(ch, 0) + 1
        self.held[ch, tag] = q, m
        return m, tag, None

    def ack(self, ch, dtag):
        del self.held[ch, dtag]

    def nack(self, ch, dtag, requeue=True):
        q, m = self.held.pop((ch, dtag))
        if requeue:
            self.ready[q] = sorted([*self.ready[q], m], key=self.place.index)


class Unordered(Workers):
    last = True


class Forgets(Workers):
    def nack(self, ch, dtag, requeue=True):
        del self.held[ch, dtag]


class Stack:
    def __init__(self):
        self.there = []

    def put(self, m):
        self.there.append(m)

    def get(self):
        return self.there.pop() if self.there else None
'''


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]  # of pytest
    """Drive one of `QUEUES`; the exit code."""
    (tmp_path / "drawn_queues.py").write_text(QUEUES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def driven(name: str, *options: str) -> int:
        bounds = ("--scripts", "60", "--seed", "1", "--seconds", "20")
        return run(["conform", "--python", f"drawn_queues:{name}", *bounds, *options])

    return driven


def test_a_queue_in_order_is_ok(drive) -> None:  # type: ignore[no-untyped-def]  # see the fixture
    assert drive("Workers") == 0


@pytest.mark.slow
def test_leases_without_order_are_what_some_systems_document(  # type: ignore[no-untyped-def]
    drive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drive("Unordered") == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "would allow it" in shown
    assert "name the system by --profile" in shown
    assert "P5 violated" not in shown
    assert drive("Unordered", "--profile", "sqs-standard") == 0
    assert drive("Unordered", "--profile", "any") == 1


def test_what_no_system_documents_is_a_violation(drive) -> None:  # type: ignore[no-untyped-def]
    assert drive("Forgets") == 1


def test_a_system_without_acknowledgements_is_none_of_those_that_have_them(drive) -> None:  # type: ignore[no-untyped-def]
    """A stack keeps nothing that a plain queue promises, and a plain queue is all that it can be."""
    assert drive("Stack") == 1
