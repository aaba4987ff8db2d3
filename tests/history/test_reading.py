"""Reading and writing qh/1: what is written comes back, and what is broken is counted and said."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings

from seriatim_models.history import (
    Event,
    Header,
    History,
    HistoryError,
    Rejected,
    iter_history,
    read_history,
    write_history,
)
from seriatim_models.history.decode import BadLine, all_checked, checked
from seriatim_models.history.lines import LINE_MAX
from seriatim_models.history.reading import Reader
from seriatim_models.pipeline import audit_paths

from .strategies import histories

SUFFIXES = [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"]


def lines_of(*objects: object) -> str:
    return "".join((o if isinstance(o, str) else json.dumps(o)) + "\n" for o in objects)


def adds_up(h: History) -> bool:
    return h.n_lines == h.n_header + h.n_blank + len(h.events) + len(h.quarantine)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(events=histories())
def test_round_trip(tmp_path: Path, suffix: str, events: list[Event]) -> None:
    path = tmp_path / f"h{suffix}"
    named = [
        e if e.run and e.rec else Event(**{**_fields(e), "run": "r", "rec": "k"}) for e in events
    ]
    assert write_history(path, named, Header(broker="b", params={"n": [1, None]})) == len(events)
    h = read_history(path)
    assert h.quarantine == []
    assert h.events == named
    assert (h.header.broker, h.header.params) == ("b", {"n": [1, None]})
    first = path.read_bytes()
    write_history(path, named, h.header)
    if suffix != ".parquet":
        write_history(path, named, Header(broker="b", params={"n": [1, None]}))
        assert path.read_bytes() == first, "the same events give the same bytes"


def _fields(e: Event) -> dict[str, Any]:
    return {n: getattr(e, n) for n in Event.__struct_fields__}


def test_the_header_gives_defaults_and_the_file_its_run(tmp_path: Path) -> None:
    path = tmp_path / "soak-7.jsonl"
    path.write_text(
        lines_of(
            {"schema": "qh/1", "rec": "k", "lvl": "wire", "clk": "c"},
            {"i": 0, "ev": "note"},
            {"i": 1, "ev": "note", "lvl": "api", "run": "other"},
        )
    )
    a, b = read_history(path).events
    assert (a.run, a.rec, a.lvl, a.clk) == ("soak-7", "k", "wire", "c")
    assert (b.run, b.lvl) == ("other", "api")


def test_a_file_without_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(lines_of({"i": 5, "ev": "note"}))
    h = read_history(path)
    assert (h.n_header, len(h.events)) == (0, 1)
    assert adds_up(h)


def test_unknown_fields_are_kept_as_text(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(lines_of({"i": 0, "ev": "note", "colour": "red", "n": [1, 2], "x": {"a": "b"}}))
    (e,) = read_history(path).events
    assert e.x == {"colour": "red", "n": "[1,2]", "a": "b"}
    write_history(path, [e])
    assert read_history(path).events == [e]


BROKEN: list[tuple[str, str]] = [
    ('{"i": 1, "ev": "ack"', "not JSON"),
    ("[1]", "expected `object`"),
    ('{"ev": "ack"}', "missing required field `i`"),
    ('{"i": 1}', "missing required field `ev`"),
    ('{"i": "1", "ev": "ack"}', "field i: expected `int`"),
    ('{"i": 9223372036854775808, "ev": "ack"}', "field i: expected `int` <="),
    ('{"i": 1, "ev": "ack", "ms": "a"}', "field ms: expected `array"),
    ('{"i": 1, "ev": "ack", "ph": "done"}', "field ph: 'done' is none of invoke, ok, fail, info"),
    ('{"i": 1, "ev": "ack", "lvl": "deep"}', "field lvl: 'deep'"),
    ('{"i": 1, "ev": "qos", "scope": "all"}', "field scope: 'all'"),
    ('{"i": 1, "ev": "deliver"}', "field m: missing from deliver"),
    ('{"i": 1, "ev": "ch_open", "conn": "c"}', "field ch: missing from ch_open"),
    ('{"i": 1, "ev": "ack", "x": {"a": 1}}', "field x[...]: expected `str`"),
    ('{"i": 1, "ev": "ack", "m": "\\ud800"}', "not JSON"),
    ('{"i": 0, "ev": "note"}', "field i: 0 occurs a second time"),
]


@pytest.mark.parametrize(("line", "why"), BROKEN)
def test_rejects_a_broken_line_and_reads_the_rest(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "h.jsonl"
    good = lines_of({"schema": "qh/1"}, {"i": 0, "ev": "note"})
    path.write_text(good + line + "\n" + lines_of({"i": 2, "ev": "note"}))
    h = read_history(path)
    assert [e.i for e in h.events] == [0, 2]
    (r,) = h.quarantine
    assert (r.source, r.line, r.offset, r.text) == (str(path), 3, len(good), line)
    assert why in r.reason
    assert adds_up(h)


def test_rejects_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b'{"i":0,"ev":"note"}\n{"i":1,"ev":"note","m":"\xff"}\n')
    h = read_history(path)
    assert len(h.events) == 1
    assert "UTF-8" in h.quarantine[0].reason


def test_index_that_repeats_or_falls_is_rejected_and_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(lines_of(*({"i": i, "ev": "note"} for i in (1, 2, 5, 2, 4, 6))))
    h = read_history(path)
    assert [e.i for e in h.events] == [1, 2, 5, 6]
    assert [(r.duplicate, r.reason) for r in h.quarantine] == [
        (True, "field i: 2 occurs a second time"),
        (False, "field i: 4 comes after 5; the index must rise"),
    ]


def test_each_recorder_and_run_counts_on_its_own(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(lines_of(*({"i": 1, "ev": "note", "rec": r} for r in "ab")))
    assert len(read_history(path).events) == 2


def test_half_of_the_lines_broken_still_gives_the_other_half(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl.gz"
    body = lines_of(
        {"schema": "qh/1"},
        *("garbage" if i % 2 else {"i": i, "ev": "note"} for i in range(1000)),
        "",
    )
    path.write_bytes(gzip.compress(body.encode()))
    h = read_history(path)
    assert (len(h.events), len(h.quarantine), h.n_blank) == (500, 500, 1)
    assert adds_up(h)
    streamed = list(iter_history(path))
    assert [e for e in streamed if isinstance(e, Event)] == h.events
    assert [r for r in streamed if isinstance(r, Rejected)] == h.quarantine


def test_text_of_a_rejected_line_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b'{"i":0,"ev":"note"}\n' + b"x" * (LINE_MAX + 5) + b'\n{"i":1,"ev":"note"}\n')
    h = read_history(path)
    assert [e.i for e in h.events] == [0, 1]
    assert len(h.quarantine[0].text) == 200
    assert "longer than" in h.quarantine[0].reason
    assert (h.quarantine[0].line, h.n_lines) == (2, 3)


def truncated_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(lines_of({"i": 0, "ev": "note"}).encode() * 50)[:-12])


def truncated_zstd(path: Path) -> None:
    body = lines_of(*({"i": i, "ev": "note"} for i in range(50))).encode()
    path.write_bytes(zstandard.compress(body)[:-3])


def damaged_gzip(path: Path) -> None:
    packed = bytearray(gzip.compress(lines_of({"i": 0, "ev": "note"}).encode()))
    packed[-6] ^= 0xFF  # in the checksum
    path.write_bytes(packed)


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 20)


UNREADABLE: list[tuple[Callable[[Path], object], str]] = [
    (lambda p: None, "cannot be read: No such file"),
    (lambda p: p.mkdir(), "is a folder"),
    (lambda p: p.write_bytes(b""), "line 1: the file is empty"),
    (lambda p: p.write_bytes(b"\n\n"), "line 1: the file is empty"),
    (lambda p: p.write_text('{"schema":"qh/9"}\n'), "line 1: field schema: 'qh/9' cannot be read; known are qh/1"),
    (lambda p: p.write_text('{"schema":"qh/1","lvl":3}\n'), "line 1: field lvl: expected `str`"),
    (lambda p: p.write_text("nothing\nhere\n"), "line 1: not a history, none of its 2 lines"),
    (lambda p: p.write_text("nothing\n"), "line 1: not a history, its only line is no event: "),
    (binary, "line 1: not a history"),
    (lambda p: p.write_bytes(bz2.compress(b"{}")), "is packed by bzip2; read are JSON lines in UTF-8"),
    (lambda p: p.write_bytes(lzma.compress(b"{}")), "is packed by xz; read are"),
    (lambda p: p.write_bytes('{"schema":"qh/1"}'.encode("utf-16")), "is text in UTF-16; read are"),
    (lambda p: p.write_bytes(gzip.compress(b"{}\n") + b"tail"), "line 2: the compressed file is damaged"),
    (truncated_gzip, "the compressed file is cut off"),
    (truncated_zstd, "the compressed file is cut off"),
    (damaged_gzip, "CRC check failed"),
    (lambda p: p.write_bytes(b"PAR1 and no more"), "not readable as Parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "why"), UNREADABLE)
def test_rejects_a_file_that_is_no_history(
    tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    path = tmp_path / "h.jsonl"
    make(path)
    with pytest.raises(HistoryError) as caught:
        read_history(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_a_mark_of_utf8_costs_no_header(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Some shells write it; with it the header was no JSON, and the events were read as of another schema."""
    text = lines_of({"schema": "qh/1", "run": "mine"}, {"i": 1, "ev": "note"})
    path = tmp_path / "h.jsonl"
    path.write_bytes(pack(b"\xef\xbb\xbf" + text.encode()))
    history = read_history(path)
    assert (history.header.run, len(history.events), history.quarantine) == ("mine", 1, [])
    report = audit_paths([path], engine="local")
    assert (report.statistics["events"], report.statistics["rejected"]) == (1, 0)


def test_a_folder_names_what_is_packed_in_another_way(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines_of({"schema": "qh/1"}, {"i": 1, "ev": "note"}))
    (tmp_path / "b.jsonl.bz2").write_bytes(bz2.compress(b"{}"))
    (rejected,) = audit_paths([tmp_path], engine="local").quarantine
    assert rejected.source == str(tmp_path / "b.jsonl.bz2")
    assert rejected.reason.startswith("is packed by bzip2")


def test_a_folder_holds_histories_in_capitals_too(tmp_path: Path) -> None:
    """As systems name them that do not distinguish; one in capitals was passed over, and not named."""
    events = [Event(i=1, ev="note")]
    for name in ("day.JSONL", "night.Jsonl.GZ", "noon.PARQUET", "eve.jsonl"):
        write_history(tmp_path / name, events)
    (tmp_path / "b.JSONL.BZ2").write_bytes(bz2.compress(b"{}"))
    (tmp_path / "README.TXT").write_text("no history")
    assert (tmp_path / "night.Jsonl.GZ").read_bytes()[:2] == b"\x1f\x8b"
    report = audit_paths([tmp_path], engine="local")
    assert {f.subject for f in report.findings} == {"day", "night", "noon", "eve"}
    assert report.statistics["events"] == 4
    assert [r.source for r in report.quarantine] == [str(tmp_path / "b.JSONL.BZ2")]


def test_a_header_alone_is_an_empty_history(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    write_history(path, [])
    assert read_history(path).events == []


def test_frames_of_zstd_one_after_another_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl.zst"
    path.write_bytes(
        b"".join(zstandard.compress(lines_of({"i": i, "ev": "note"}).encode()) for i in range(3))
    )
    assert [e.i for e in read_history(path).events] == [0, 1, 2]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("becomes", ["shorter", "empty", "another", "a folder"])
def test_a_file_that_becomes_another_while_it_is_read(
    suffix: str, becomes: str, tmp_path: Path
) -> None:
    """What was opened is read as far as it goes; damage is said with its place."""
    path = tmp_path / f"a{suffix}"
    chance = random.Random(1)
    events = [Event(i=i, ev="note", m=f"{chance.getrandbits(99):x}") for i in range(40_000)]
    write_history(path, events, Header(run="a"))
    read = iter(Reader(path))
    assert isinstance(next(read), Event)
    match becomes:
        case "shorter" | "empty":
            os.truncate(path, path.stat().st_size // 2 if becomes == "shorter" else 0)
        case "another":
            (tmp_path / "b").write_bytes(b"\x89PNG\r\n")
            (tmp_path / "b").replace(path)
        case _:
            path.unlink()
            path.mkdir()
    n, rejected, damage = 1, 0, ""
    try:
        for item in read:
            n += isinstance(item, Event)
            rejected += isinstance(item, Rejected)
    except HistoryError as error:
        damage = str(error)
    assert not damage or str(path) in damage
    assert n <= len(events)
    assert n == len(events) or becomes in ("shorter", "empty")
    assert rejected <= 1


def test_events_asked_together_are_refused_as_each_alone() -> None:
    """`all_checked` asks few events what `checked` asks of all: of every shape the same are refused."""
    names = (
        "publish",
        "deliver",
        "get",
        "ack",
        "reject",
        "qos",
        "ch_open",
        "conn_close",
        "note",
        "entry_cas",
    )
    shapes: dict[str, list[Any]] = {
        "ph": ["", "invoke", "ok", "begun"], "lvl": ["", "api", "model", "none"], "scope": [None, "consumer", "none"],
        "m": ["m0", ""], "dtag": [0, None], "ms": [None, [], ["m0"]], "conn": ["c", ""], "ch": [1, None],
        "args": [{}, {"n": 2**64}], "x": [{}, {"y": "z"}],
    }  # fmt: skip
    chance, refused = random.Random(1), 0
    for _ in range(4000):
        some: list[Event] = []
        for i in range(chance.randint(1, 3)):
            fields: dict[str, Any] = {n: chance.choice([v[0]] * 12 + v) for n, v in shapes.items()}
            some.append(Event(i=i, ev=chance.choice(names), **fields))
        bad = [e for e in some if _refused(checked, e)]
        assert _refused(all_checked, some) == bool(bad), some
        refused += bool(bad)
    assert 1000 < refused < 3000


def _refused(check: Callable[[Any], object], what: object) -> bool:
    try:
        check(what)
    except BadLine:
        return True
    return False
