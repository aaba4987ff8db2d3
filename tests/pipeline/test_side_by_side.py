"""A recording whose properties several processes share is judged as by one."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from functools import partial
from multiprocessing import Pipe, active_children
from pathlib import Path

import msgspec
import pytest

from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import PROFILES, SYSTEMS
from seriatim_models.history import Event, Header, write_history
from seriatim_models.pipeline import AuditReport, PipelineError, audit_paths
from seriatim_models.pipeline.audit import block_process, side_by_side
from seriatim_models.pipeline.audit.block_process import BlockFailure
from seriatim_models.pipeline.audit.side_by_side import Shares, divided, judged
from seriatim_models.properties.base import AnyProperty, Verdict, WholeHistory
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.second_look import SecondLook, encoded
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

from .conftest import DATA

FORMS = forms((PROFILES["any"], *SYSTEMS.values()))


class Own(WholeHistory):
    id = "OWN"
    sentence = "Nothing is published twice."
    source = "this test"
    reads = frozenset({"publish"})

    def cases(self, events: list[Event], bad: list[tuple[str, list[Event]]]) -> int:
        return len(events)


@pytest.fixture(autouse=True)
def every_file_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "ENOUGH", 0)


def recorded(path: Path, fault: str = "", run: str = "r") -> Path:
    write_history(path, SimulatedBroker(5, 200, fault=fault).run(), Header(run=run, lvl="api"))
    return path


def audited(path: Path, jobs: int, judges: Sequence[AnyProperty] = BLACKBOX) -> AuditReport:
    report = audit_paths([path], properties=judges, jobs=jobs)
    assert not active_children()
    return report


@pytest.mark.parametrize("judges", [BLACKBOX, FORMS], ids=["properties", "forms"])
@pytest.mark.parametrize("jobs", [1, 2, 3, 64])
def test_every_property_is_judged_once(jobs: int, judges: Sequence[AnyProperty]) -> None:
    elsewhere = divided(judges, jobs)
    assert len(elsewhere) == min(jobs, side_by_side.MOST) - 1
    numbers = [n for share in elsewhere for n in share]
    assert len(set(numbers)) == len(numbers)
    assert set(numbers) < set(range(len(judges)))  # P1 to P3 together, wherever that is
    for share in elsewhere:
        ids = {judges[n].id for n in share}
        assert ids.isdisjoint({"P1", "P2", "P3"}) or ids > {"P1", "P2", "P3"}


@pytest.mark.parametrize("jobs", [2, 3])
def test_what_a_user_wrote_is_judged_where_he_imported_it(jobs: int, tmp_path: Path) -> None:
    judges = (Own(), *BLACKBOX, Own())
    numbers = {n for share in divided(judges, jobs) for n in share}
    assert numbers.isdisjoint({0, len(judges) - 1})
    path = recorded(tmp_path / "h.jsonl")
    assert audited(path, jobs, judges).findings == audited(path, 1, judges).findings


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("fault", ["", "loses", "doubles"])
def test_the_findings_are_those_of_one_process(jobs: int, fault: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "h.jsonl", fault)
    alone, shared = audited(path, 1, FORMS), audited(path, jobs, FORMS)
    assert shared == alone
    assert (alone.verdict is Verdict.VIOLATED) == bool(fault)


@pytest.mark.slow
def test_a_recording_of_a_broker_is_judged_as_by_one_process() -> None:
    path = DATA / "rabbit-classic-competing.jsonl.gz"
    assert audited(path, 2, FORMS) == audited(path, 1, FORMS)


def test_a_file_that_is_not_clean_leaves_no_process(tmp_path: Path) -> None:
    path = recorded(tmp_path / "h.jsonl")
    path.write_bytes(path.read_bytes() + b"half a li\n")
    report = audited(path, 2)
    assert report.statistics["rejected"] == 1
    assert report == audited(path, 1)


@pytest.mark.parametrize("when", ["take", "judged"])
def test_a_process_that_is_killed_is_an_error_of_one_sentence(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = getattr(Shares, when)

    def kill(self: Shares, *given: bytes) -> object:
        for process in self.processes:
            process.kill()
        return killed(self, *given)

    monkeypatch.setattr(Shares, when, kill)
    path = recorded(tmp_path / "h.jsonl")
    with pytest.raises(PipelineError, match="was it killed, or out of memory"):
        audit_paths([path], jobs=2)
    assert not active_children()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyError("x")])
def test_what_another_process_meets_is_said_here(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That there is no room leaves the file to the rows, and a mistake of ours shows where it is."""

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(SecondLook, "keep", fails)
    monkeypatch.setattr(block_process, "leave_to_parent", lambda: None)
    monkeypatch.setattr(block_process, "end_with", lambda _: None)
    reads, writes = Pipe(duplex=False)
    hears, answers = Pipe(duplex=False)
    writes.send_bytes(encoded([Event(i=1, ev="publish", m="a", q="q")]))
    block_process.do(0, partial(judged, BLACKBOX), reads, answers)
    answer = msgspec.msgpack.decode(hears.recv_bytes(), type=BlockFailure)
    if isinstance(error, OSError):
        assert answer.of_system == (errno.ENOSPC, os.strerror(errno.ENOSPC))
    else:
        assert "KeyError: 'x'" in answer.trace
