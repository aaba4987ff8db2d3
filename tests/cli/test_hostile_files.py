"""Files that somebody broke on purpose cost a line, a file or a sentence, and never a traceback."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from seriatim_models.cli import run
from seriatim_models.conformance.protocol import Fault, parse
from seriatim_models.history import read_history, write_history
from seriatim_models.history.depth import DEPTH_MAX, TOO_DEEP
from seriatim_models.history.lines import LINES, lines
from seriatim_models.pipeline.audit import local
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.properties.blackbox import BLACKBOX

BASE = '{"schema":"qh/1","run":"r"}\n{"i":1,"ev":"publish","m":"a","q":"q"}\n'
LAST = '{"i":3,"ev":"note"}\n'


def nest(levels: int) -> str:
    return "[" * levels + "]" * levels


DEEP = {
    "args.jsonl": BASE + '{"i":2,"ev":"note","args":{"a":' + nest(2000) + "}}\n" + LAST,
    "below-the-stack.jsonl": BASE + '{"i":2,"ev":"note","args":{"a":' + nest(300) + "}}\n" + LAST,
    "unknown.jsonl": BASE + '{"i":2,"ev":"note","zz":' + nest(2000) + "}\n" + LAST,
    "header.jsonl": '{"schema":"qh/1","params":{"a":' + nest(2000) + "}}\n" + LAST,
    "old.jsonl": '{"schema":"qh/0"}\n{"i":1,"ev":"publish","m":' + nest(2000) + "}\n",
    "jepsen.edn": "{:type :invoke, :f :enqueue, :process 0, :value " + nest(2000) + "}\n",
    "jepsen.jsonl": '{"type":"invoke","f":"enqueue","process":0,"value":' + nest(2000) + "}\n",
    "spans.otlp.json": '{"resourceSpans":' + nest(2000) + "}",
    "verdicts.json": nest(2000),
}


def ended(path: Path, capsys: pytest.CaptureFixture[str], *commands: str) -> None:
    """Every command ends by a declared exit code, and says nothing of a fault of its own."""
    for command in commands or ("audit", "lint", "show"):
        code = run([command, str(path)])
        said = capsys.readouterr()
        assert code in (0, 1, 2, 3), (path.name, command, said.err)
        assert "Traceback" not in said.err
        if code == 2:
            assert str(path) in said.err


@pytest.mark.parametrize("name", DEEP)
def test_a_line_nested_two_thousand_deep(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(DEEP[name])
    ended(path, capsys)
    if DEEP[name].startswith(BASE):
        history = read_history(path)
        assert [(r.line, r.reason) for r in history.quarantine] == [(3, TOO_DEEP)]
        assert len(history.events) == 2


def test_the_depth_that_is_allowed_does_not_depend_on_the_way(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from seriatim_models.history.table import write_events

    for levels, kept in ((DEPTH_MAX - 2, 3), (DEPTH_MAX - 1, 2)):
        value = f'{{"i":2,"ev":"note","args":{{"a":{nest(levels)}}}}}\n'
        path = tmp_path / "a.jsonl"
        path.write_text(BASE + value + LAST)
        history = read_history(path)
        assert len(history.events) == kept
        assert local.audit(plan([path]), BLACKBOX).statistics["events"] == kept
        path.write_text(BASE + value.replace("args", "other") + LAST)
        assert len(read_history(path).events) == 3 if levels < DEPTH_MAX - 1 else 2
        if kept == 3:
            write_events(tmp_path / "a.parquet", history.events, history.header)
            assert read_history(tmp_path / "a.parquet").events == history.events


def test_an_answer_of_an_implementation_nested_too_deep_is_garbage() -> None:
    for levels in (DEPTH_MAX, 2000):
        with pytest.raises(Fault, match=TOO_DEEP):
            parse(b'{"id":1,"m":' + nest(levels).encode() + b"}")
    parse(b'{"id":1,"m":' + nest(DEPTH_MAX - 1).encode() + b"}")


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_damage_in_a_compressed_body(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (BASE + "".join(f'{{"i":{i},"ev":"note","err":"{i * 7919 % 9973}"}}\n'
                           for i in range(2, 6000))).encode()  # fmt: skip
    sound = gzip.compress(text) if suffix == "gz" else zstandard.compress(text)
    path = tmp_path / f"a.jsonl.{suffix}"
    for at in (5, 12, len(sound) // 3, len(sound) // 2, len(sound) * 3 // 4, len(sound) - 5):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :])
        ended(path, capsys)
        path.write_bytes(sound[:at])
        ended(path, capsys, "audit")


def test_model_events_without_their_fields_are_quarantined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        '{"schema":"qh/1","lvl":"model"}', '{"i":1,"ev":"clock","args":{"now":1}}',
        '{"i":2,"ev":"entry_cas","m":"a"}', '{"i":3,"ev":"snapshot","q":"q"}', '{"i":4,"ev":"turn"}',
        '{"i":5,"ev":"link","args":{"a":1}}', '{"i":6,"ev":"clock","args":{"now":"x"}}',
    ]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines) + "\n")
    ended(path, capsys)
    report = local.audit(plan([path]), BLACKBOX)
    assert (report.statistics["events"], report.statistics["rejected"]) == (1, 5)


def test_the_columnar_way_takes_no_line_that_the_row_based_way_rejects(tmp_path: Path) -> None:
    """It once took events of levels and scopes that are none, and model-level events without their fields."""
    wrong = [
        '{"i":2,"ev":"ack","conn":"c","scope":"world"}',
        '{"i":2,"ev":"ack","lvl":"moon"}',
        '{"i":2,"ev":"deliver","q":"q"}',
        '{"i":2,"ev":"entry_cas","lvl":"model","m":"a"}',
    ]
    for line in wrong:
        path = tmp_path / "a.jsonl"
        path.write_text(BASE + line + "\n" + LAST)
        rejected = len(read_history(path).quarantine)
        assert rejected == 1, line
        assert local.audit(plan([path]), BLACKBOX).statistics["rejected"] == rejected


def test_parquet_whose_args_are_no_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    args = ["{", nest(2000), nest(300), '{"a":1}', None]
    rows = pa.table({"i": [1, 2, 3, 4, 5], "ev": ["note"] * 5, "args": args})
    pq.write_table(rows, tmp_path / "a.parquet")
    history = read_history(tmp_path / "a.parquet")
    assert [r.line for r in history.quarantine] == [1, 2, 3]
    ended(tmp_path / "a.parquet", capsys)
    binary = rows.set_column(1, "ev", pa.array([b"note", b"\xff", b"", b"n", b"n"]))
    pq.write_table(binary, tmp_path / "a.parquet")
    ended(tmp_path / "a.parquet", capsys)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_in_parquet_that_is_none_of_json_is_refused(number: str, tmp_path: Path) -> None:
    """Python's decoder takes it; that of JSON lines does not."""
    path = tmp_path / "a.parquet"
    args = [f'{{"delay":{number}}}', '{"delay":1e300}']
    parquet.write_table(pa.table({"i": [1, 2], "ev": ["note"] * 2, "args": args}), path)
    history = read_history(path)
    assert [e.args for e in history.events] == [{"delay": 1e300}]
    assert [r.line for r in history.quarantine] == [1]


def test_a_name_of_any_length_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"i": 1, "ev": "note", "q": "x" * 10**6}) + "\n")
    assert write_history(tmp_path / "b.jsonl", read_history(path).events) == 1


LONG_NAMES = b"".join(
    b'{"i":%d,"t":%d,"ev":"note","q":"%s"}\n' % (i, i, b"q" * 2**13) for i in range(2**15 + 1)
)
"""256 MiB of events in which nothing is wrong."""


@pytest.mark.parametrize(
    "text", [b"\n" * 2**27, b"\0" * 2**29, b"[" + b" " * 2**29 + b"]\n", LONG_NAMES]
)
@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_what_unpacks_to_a_thousandfold_is_a_sentence(
    suffix: str, text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two gigabytes of empty lines in two megabytes took minutes; what is clean was read, whatever it came to."""
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(gzip.compress(text, 5) if suffix == "gz" else zstandard.compress(text))
    started = time.process_time()
    assert run(["audit", str(path), "--engine", "local"]) == 2
    assert time.process_time() - started < 20
    assert "packed bytes become more than" in " ".join(capsys.readouterr().err.split())


def test_a_regular_recording_may_be_packed_well(tmp_path: Path) -> None:
    """Nothing but numbers that count up, and more lines than a small file may have without a look at its size."""
    path = tmp_path / "a.jsonl.zst"
    counted = "".join(f'{{"i":{i},"ev":"note"}}\n' for i in range(LINES + 10_000))
    path.write_bytes(zstandard.ZstdCompressor(9).compress(counted.encode()))
    assert sum(1 for _ in lines(path)) == LINES + 10_000


def test_a_million_rows_of_one_value_are_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.table({"i": np.zeros(LINES + 1, np.int64), "ev": ["note"] * (LINES + 1)})
    parquet.write_table(rows, path)
    assert run(["audit", str(path), "--engine", "local"]) == 2
    assert f"packed bytes become {LINES + 1:,} rows" in " ".join(capsys.readouterr().err.split())
