"""Parts of one recording in several files: those without a header continue the one that ends right before them."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from seriatim_models.history import Event, Header
from seriatim_models.history.header import header_object
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.stream.run_state import RunState
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_workshop.right.drawing import draw, history

HEADERS = (Header(run="one", rec="r", lvl="api", clk="x"), Header(rec="r", lvl="api"), None)


def written(path: Path, header: Header | None, events: list[Event]) -> Path:
    lines = [msgspec.json.encode(header_object(header))] if header else []
    path.write_bytes(b"\n".join([*lines, *map(msgspec.json.encode, events)]) + b"\n")
    return path


def parts(events: list[Event], folder: Path, header: Header | None, choose: random.Random) -> None:
    """The events in two to five files, of which the first has the header; their names say nothing."""
    cuts = sorted(choose.sample(range(1, len(events)), choose.randint(1, 4)))
    names = [f"{n}.jsonl" for n in range(len(cuts) + 1)]
    choose.shuffle(names)
    for name, begin, end in zip(names, [0, *cuts], [*cuts, len(events)], strict=True):
        again = header is not None and bool(header.run) and choose.random() < 0.5
        written(folder / name, header if again or not begin else None, events[begin:end])


def judged(*paths: Path) -> list[tuple[str, Verdict, int, int, int]]:
    report = audit_paths(paths, engine="local")
    return sorted(
        (f.property, f.verdict, f.n_tested, f.n_untestable, f.n_violations) for f in report.findings
    )


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("seed", range(8))
def test_parts_are_judged_as_the_whole(header: Header | None, seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    events = history(draw(seed))
    whole = written(tmp_path / "whole.jsonl", header, events)
    folder = tmp_path / "parts"
    folder.mkdir()
    parts(events, folder, header, choose)
    named = sorted(folder.iterdir())
    choose.shuffle(named)
    assert judged(folder) == judged(*named) == judged(whole)


def test_a_stream_judges_parts_as_the_whole(tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream.run_state import ArrivedFile

    events = history(draw(3))
    folder = tmp_path / "parts"
    folder.mkdir()
    parts(events, folder, HEADERS[0], random.Random(3))
    [run] = plan([folder]).runs
    [sources] = run.recorders
    state = RunState(run.run, BLACKBOX)
    firsts = [min(e.i for e in _events(Path(s.path))) for s in sources]
    arrived = [
        ArrivedFile(s.path, "r", first, 0, s.continues)
        for s, first in zip(sources, firsts, strict=True)
    ]
    state.take(arrived[::-1], newest=0, lateness=10, final=True)
    found = sorted((f.property, f.verdict, f.n_tested) for f in state.summary.findings)
    whole = judged(written(tmp_path / "whole.jsonl", HEADERS[0], events))
    assert found == [(p, v, n) for p, v, n, *_ in whole]


def _events(path: Path) -> list[Event]:
    from seriatim_models.history import read_history

    return read_history(path).events


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("seed", range(8))
def test_a_right_run_without_its_beginning(
    header: Header | None, seed: int, tmp_path: Path
) -> None:
    """What the beginning could explain is nobody's fault: of one run, whichever part had the header."""
    choose = random.Random(seed)
    events = history(draw(seed))
    cut = choose.randrange(2, len(events))
    again = choose.randrange(cut, len(events))
    written(tmp_path / "b.jsonl", None, events[cut:again] or events[cut:])
    if events[cut:again]:
        written(tmp_path / "a.jsonl", header if header and header.run else None, events[again:])
    report = audit_paths([tmp_path], engine="local")
    assert len({f.subject for f in report.findings}) == 1
    assert [f for f in report.findings if f.verdict is Verdict.VIOLATED] == []


def test_what_could_continue_two_recordings_continues_none(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 0), ("c", 2)):
        events = [Event(i=first + n, t=n, ev="note") for n in range(2)]
        written(tmp_path / f"{name}.jsonl", None, events)
    assert [r.run for r in plan([tmp_path]).runs] == ["a", "b", "c"]


def test_a_part_with_another_recorder_is_a_run_of_its_own(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 2)):
        events = [Event(i=first + n, t=n, ev="note") for n in range(2)]
        written(tmp_path / f"{name}.jsonl", Header(rec=name), events)
    assert [r.run for r in plan([tmp_path]).runs] == ["a", "b"]
