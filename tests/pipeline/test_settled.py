"""What a stream sets aside changes no finding: neither counts nor witnesses, whatever comes afterwards."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.history.event import SETTLES
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.stream import settled
from seriatim_models.pipeline.stream.settled import SettledMessages
from seriatim_models.properties.base import Fold
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.lifecycle import acquires
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

from .conftest import first_events

LIFECYCLES = BLACKBOX[:3]
RECORDINGS = ("rabbit-classic-lockstep", "rabbit-classic-competing")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that can be set aside is, soon."""
    for name, value in (("AGE", 5), ("LEAST", 1), ("STEP", 3), ("BLOCK", 4)):
        monkeypatch.setattr(settled, name, value)


def compared(
    events: Sequence[Event],
    folder: Path,
    draw: random.Random,
    sizes: Sequence[int] = (1, 7, 40, 200),
) -> SettledMessages:
    """Judge the events in batches of any size, with and without setting aside, and compare after each."""
    whole, fold = Fold(LIFECYCLES, first=True), Fold(LIFECYCLES, first=True)
    aside = SettledMessages(LIFECYCLES, folder, "s", "delete it")
    at = 0
    while at < len(events):
        size = draw.choice(sizes)
        batch, at = events[at : at + size], at + size
        whole.take(batch)
        aside.recall(fold.summaries, batch)
        fold.take(batch)
        aside.set_aside(fold.summaries, all=draw.random() < 0.5)
        if draw.random() < 0.1:  # as from a state that was saved and loaded
            aside = SettledMessages(LIFECYCLES, folder, "s", "delete it", aside.saved)
        if draw.random() < 0.1 or at >= len(events):
            assert fold.finish() == whole.finish(), at
    return aside


def disturbed(events: list[Event], draw: random.Random) -> list[Event]:
    """The same history, in which some of what was over comes again, fails, or is heard of late."""
    out = list(events)
    for _ in range(draw.randrange(1, 9)):
        event = draw.choice(events)
        if event.ev in SETTLES:
            event = msgspec.structs.replace(
                event,
                ph=draw.choice(("ok", "fail", "info")),
                ms=draw.choice((event.ms, None)),
                q=draw.choice((event.q, "")),
            )
        elif acquires(event):
            event = msgspec.structs.replace(
                event,
                redelivered=draw.choice((None, False, True)),
                q=draw.choice((event.q, "elsewhere")),
            )
        elif event.ev == "publish":
            event = msgspec.structs.replace(event, ph=draw.choice(("", "invoke", "ok", "fail")))
        out.insert(draw.randrange(len(out)), event)
    return [msgspec.structs.replace(e, i=n) for n, e in enumerate(out)]


@pytest.mark.parametrize("seed", range(60))
def test_findings_are_those_of_a_run_all_in_memory(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    fault = draw.choice(("", *FAULTS))
    made = list(SimulatedBroker(seed, 150, fault=fault, q="q").run())
    compared(list(complete(disturbed(made, draw))), tmp_path, draw)


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_of_rabbitmq_are_set_aside(name: str, tmp_path: Path) -> None:
    draw = random.Random(name)
    events = list(complete(first_events(name, 9000)))
    aside = compared(events, tmp_path, draw)
    summaries = Fold(LIFECYCLES, first=True).summaries
    kept = sum(len(aside._segment(n).names) for n in aside.saved.segments)
    kept -= sum(map(len, aside.saved.recalled.values()))
    messages = {e.m for e in events if acquires(e)}
    assert kept > 0.8 * len(messages), (kept, len(messages))
    # All of them come back when they are asked for.
    aside.recall(summaries, [Event(i=0, ev="deliver", m=m) for m in messages])
    assert [len(s.lifecycles) for s in summaries] == [kept] * 3


def test_an_answer_to_a_settlement_brings_back_what_it_settled(tmp_path: Path) -> None:
    """A message that was settled by a command that failed, as was heard late and without its name, is not settled."""
    settles = {"conn": "c", "ch": 1, "gen": 1, "q": "q"}
    events = [Event(i=0, ev="note")]
    for n in range(20):
        m = f"m{n}"
        events += [
            Event(i=0, ev="publish", ph="invoke", m=m, q="q"),
            Event(i=0, ev="publish", ph="ok", m=m, q="q"),
            Event(i=0, ev="deliver", m=m, dtag=n, redelivered=False, **settles),  # type: ignore[arg-type]
            Event(i=0, ev="ack", ph="invoke", op=n, dtag=n, ms=[m], **settles),  # type: ignore[arg-type]
        ]
    events.append(Event(i=0, ev="ack", ph="fail", op=3, dtag=3, **settles))  # type: ignore[arg-type]
    events = [msgspec.structs.replace(e, i=n) for n, e in enumerate(events)]
    aside = compared(events, tmp_path, random.Random(1), sizes=(1,))
    assert sum(map(len, aside.saved.recalled.values())) == 1


def test_rejects_a_segment_that_is_damaged(tmp_path: Path) -> None:
    aside = compared(list(complete(first_events(RECORDINGS[1], 3000))), tmp_path, random.Random(2))
    assert aside.saved.segments
    for suffix in ("names", "settled"):
        again = SettledMessages(LIFECYCLES, tmp_path, "s", "delete it", aside.saved)
        path = tmp_path / f"{aside.saved.segments[0]}.{suffix}"
        sound = path.read_bytes()
        path.write_bytes(sound[:-9] + bytes([sound[-9] ^ 1]) + sound[-8:])
        messages = [e for e in first_events(RECORDINGS[1], 3000) if e.m]
        with pytest.raises(PipelineError, match="checksum does not fit; delete it"):
            again.recall(Fold(LIFECYCLES, first=True).summaries, messages)
        path.write_bytes(sound)
