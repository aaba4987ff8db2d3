"""A recording as one picture: clients are rows, faults bands, and what is violated stands where it happened."""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ET
from base64 import b64decode
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.history import Header, write_history
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report.recording_page import recording_page
from seriatim_models.report.timeline import COLUMNS, timeline_of, timeline_svg

MS = 1_000_000


def call(i: int, t: int, client: str, ph: str, op: int) -> Event:
    """One end of a publish, at so many milliseconds."""
    return Event(
        i=i,
        t=t * MS,
        ev="publish",
        ph=ph,
        proc=client,
        conn=f"{client}.1",
        q="q",
        m=f"m{op}",
        op=op,
    )


EVENTS = [
    call(0, 0, "client1", "invoke", 1),
    call(1, 2, "client1", "ok", 1),
    Event(i=2, t=10 * MS, ev="fault", ph="invoke", op=-1, proc="nemesis", args={"kind": "kill"}),
    call(3, 11, "client2", "invoke", 2),
    call(4, 15, "client2", "info", 2),
    Event(i=5, t=20 * MS, ev="fault", ph="ok", op=-1, proc="nemesis", args={"kind": "kill"}),
    call(6, 21, "client1", "invoke", 3),
    call(7, 25, "client1", "fail", 3),
    Event(i=8, t=30 * MS, ev="fault", ph="invoke", op=-2, proc="nemesis", args={"kind": "<cut>"}),
    Event(i=9, t=40 * MS, ev="note", q="q"),
]  # fmt: skip


def test_clients_are_rows_and_faults_bands() -> None:
    timeline = timeline_of(EVENTS)
    assert sorted(timeline.rows) == ["client1", "client2"]
    assert [(kind, a // MS, b // MS) for kind, a, b in timeline.faults] == [
        ("kill", 10, 20),
        ("<cut>", 30, 40),  # it did not heal
    ]
    counts = [(c.ok, c.info, c.fail) for row in timeline.rows.values() for c in row.values()]
    assert sorted(counts) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    ((total, n, longest),) = timeline.took.values()
    assert (total, n, longest) == (2.0, 1, 2.0)


def test_the_picture_is_one_of_svg_with_each_band_and_violation() -> None:
    finding = Finding(
        property="P1", verdict=Verdict.VIOLATED, n_tested=1, n_violations=1, witness=[EVENTS[4]],
        explanation="m2 & m3",
    )  # fmt: skip
    tree = ET.fromstring(timeline_svg(EVENTS, "a <run>", [finding]))
    groups = [g.get("class") for g in tree.iter() if g.get("class")]
    assert sorted(map(str, groups)) == ["fail", "fault", "fault", "info", "violation"]
    texts = {t.text for t in tree.iter() if t.tag.endswith(("text", "title"))}
    assert {"a <run>", "client1", "client2", "<cut>", "P1: m2 & m3"} <= texts


def test_many_events_make_no_larger_picture() -> None:
    few, many = (
        [call(n, n, f"client{n % 3}", "ok", n) for n in range(size)] for size in (5_000, 50_000)
    )
    sizes = [len(timeline_svg(events, "x")) for events in (few, many)]
    assert sizes[1] < 1.2 * sizes[0] < 1_000 * COLUMNS


def test_a_window_shows_what_ended_in_it_as_large_as_the_whole() -> None:
    timeline = timeline_of(EVENTS, (0.015, 0.025))
    assert timeline.last - timeline.first == 10 * MS
    assert [(kind, (b - a) // MS) for kind, a, b in timeline.faults] == [("kill", 5)]
    counts = [(c.ok, c.info, c.fail) for row in timeline.rows.values() for c in row.values()]
    assert len(counts) < 3
    whole = timeline_svg(EVENTS, "x", (), (0.0, 0.04))
    assert "of which this is from 0 s on" in whole
    assert whole.count("<rect") == timeline_svg(EVENTS, "x").count("<rect")


@pytest.mark.parametrize("between", ["", "1", "2:1", "a:b", "-1:2", "0:inf", "nan:1", "1:2:3"])
def test_rejects_a_window_that_is_none(
    between: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, svg = tmp_path / "run.jsonl", tmp_path / "run.svg"
    write_history(path, EVENTS, Header(run="r"))
    assert run(["show", str(path), "--svg", str(svg), "--between", between]) == 2
    assert "two numbers of seconds" in capsys.readouterr().err
    assert not svg.exists()


def test_rejects_a_window_without_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    write_history(path, EVENTS, Header(run="r"))
    assert run(["show", str(path), "--between", "1:2"]) == 2
    assert "--between is for --svg of a recording" in capsys.readouterr().err


def test_the_command_draws_a_recording(tmp_path: Path) -> None:
    path, svg = tmp_path / "run.jsonl", tmp_path / "run.svg"
    write_history(path, EVENTS, Header(run="r"))
    assert run(["show", str(path), "--svg", str(svg)]) == 0
    assert ET.fromstring(svg.read_text()).tag.endswith("svg")
    assert run(["show", str(path), "--svg", str(svg), "--between", "0.01:0.02"]) == 0
    assert "from 0.01 s on" in svg.read_text()


def packed(page: str, name: str, form: str = "I") -> tuple[int, ...]:
    """A column of a page's operations."""
    found = re.search(rf'id="column-{name}">([^<]*)<', page)
    assert found is not None
    column = b64decode(found[1])
    return struct.unpack(f"<{len(column) // struct.calcsize(form)}{form}", column)


def test_the_page_of_a_recording_has_every_operation() -> None:
    witness = [EVENTS[4]]
    finding = Finding(
        property="P1",
        verdict=Verdict.VIOLATED,
        n_tested=1,
        explanation="</script> lost",
        witness=witness,
    )
    page = recording_page(EVENTS, "<day>", [finding])
    assert "<day>" not in page
    assert page.count("</script>") == page.count("<script")
    found = re.search(r'id="recording">(.*?)</script>', page)
    assert found is not None
    data = json.loads(found[1])
    assert data["rows"] == ["", "client1", "client2"]
    assert [[n // MS for n in packed(page, name)] for name in ("start", "took")] == [
        [0, 11, 21],
        [2, 4, 4],
    ]
    assert packed(page, "outcome", "B") == (0, 2, 1)
    assert [data["names"][n] for n in packed(page, "name")] == ["m1", "m2", "m3"]
    assert [(kind, a // MS, b // MS) for kind, a, b in data["faults"]] == [
        ("kill", 10, 20),
        ("<cut>", 30, 40),  # nothing was asked for any more, and it did not heal
    ]
    assert [v["operations"] for v in data["violations"]] == [[1]]


def test_what_was_never_answered_lasts_to_the_end() -> None:
    page = recording_page(EVENTS[:4], "day")
    assert packed(page, "outcome", "B") == (0, 3)
    assert [n // MS for n in packed(page, "took")] == [2, 0]


def test_a_recording_of_months_fits_into_its_columns() -> None:
    late = call(4, 10**10, "client2", "ok", 2)
    page = recording_page([*EVENTS[:2], EVENTS[3], late], "day")
    found = re.search(r'"unit":(\d+)', page)
    assert found is not None
    unit = int(found[1])
    assert unit > 1
    start, took = packed(page, "start")[1], packed(page, "took")[1]
    assert abs((start + took) * unit - 10**10 * MS) <= 2 * unit


def test_the_page_is_written_by_a_command(tmp_path: Path) -> None:
    file, page = tmp_path / "run.jsonl", tmp_path / "page.html"
    write_history(file, EVENTS, Header(run="day"))
    assert run(["show", str(file), "--timeline", str(page)]) == 0
    assert "client2" in page.read_text()
    assert run(["show", "published-immediate", "--timeline", str(page)]) == 2


def test_what_nobody_called_has_no_unknown_outcome() -> None:
    """Recorders mark deliveries ``info``. A recording of a broker without a fault was red from the first one on."""
    seen = [
        Event(i=n, t=n * MS, ev=ev, ph="info", proc="c", m=f"m{n}")
        for n, ev in enumerate(("deliver", "return", "publish"))
    ]
    ((_, row),) = timeline_of(seen).rows.items()
    assert sum(cell.ok for cell in row.values()) == 2
    assert sum(cell.info for cell in row.values()) == 1
    assert packed(recording_page(seen, "x"), "outcome", "B") == (0, 0, 2)
