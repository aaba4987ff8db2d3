"""A million bad lines among good ones, through the command on Spark. Minutes long: `pytest -m slow` on this file.

Each bad line is found again in quarantine, with its place, its reason and the start of its text, and the workers'
memory does not grow with how many there are.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from seriatim_models.history.faults import REASON_MAX, TEXT_MAX
from seriatim_models.history.lines import LINE_MAX
from seriatim_models.pipeline.audit import tables

pytestmark = [pytest.mark.slow, pytest.mark.scale, pytest.mark.spark, pytest.mark.timeout(1800)]

BAD = int(os.environ.get("BAD", "1000000"))
FILES = ("plain.jsonl", "packed.jsonl.gz", "packed.jsonl.zst", "parts/more.jsonl")
GOOD = 5000
"""Good lines in each file, and as many gaps: memory may grow with those, so there are as many among few bad lines."""
GROWTH = 60  # MB: what a worker may need more for all of them than for a tenth

KINDS: tuple[tuple[bytes, str], ...] = (
    (b"no event at all", "not JSON: JSON is malformed"),
    (b"\xff\xfe\xfd", "not JSON: JSON is malformed: invalid character (byte 0)"),
    (b'{"i":"x","ev":"note"}', "field i: expected `int`, got `str`"),
    (b'{"i":7,"t":7,"ev":"deli', "not JSON: Input data was truncated"),
    (b'{"i":7,"t":7}', "object missing required field `ev`"),
    (b'{"i":7,"ev":"note","ph":"perhaps"}', "field ph: 'perhaps' is none of"),
    (b'{"i":7,"ev":"note","ph":"' + b"x" * 3000 + b'"}', "field ph: 'xxxx"),
    (b'{"i":0,"t":0,"ev":"note"}', "field i: 0 occurs a second time"),
    (b"[]" * 2500, "expected `object`, got `array`"),
)
HUGE = b"y" * (LINE_MAX + 1000), f"longer than {LINE_MAX} bytes"


def kind(n: int) -> tuple[bytes, str]:
    """The `n`th bad line of a file, and what is to be said of it."""
    return HUGE if n == 5000 else KINDS[n % len(KINDS)]


def bad_line(line: int, bad: int) -> int | None:
    """Which bad line of so many stands there (from 1, with the header); None if a good one does."""
    every = bad // GOOD  # one good line follows so many bad ones
    place = line - 3  # after the header and a first good line
    return None if place < 0 or place % (every + 1) == every else place - place // (every + 1)


def written(path: Path, bad: int) -> int:
    """Write a file with so many bad lines; how many lines it has."""

    def blocks() -> Iterator[bytes]:
        run = path.name.replace(".", " ").encode()
        yield b'{"schema":"qh/1","run":"%s"}\n{"i":0,"t":0,"ev":"note"}\n' % run
        held, n, line = [], 0, 2
        while n < bad:
            line += 1
            which = bad_line(line, bad)
            if which is None:
                held.append(b'{"i":%d,"t":%d,"ev":"note"}\n' % (line, line))
            else:
                held.append(kind(which)[0] + b"\n")
                n += 1
            if len(held) == 1000:
                yield b"".join(held)
                held = []
        yield b"".join(held)
        lines[0] = line

    lines = [0]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as packed:
                packed.writelines(blocks())
        elif path.name.endswith(".zst"):
            with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as stream:
                for block in blocks():
                    stream.write(block)
        else:
            raw.writelines(blocks())
    return lines[0]


def descendants(root: int) -> Iterator[Path]:
    """The folders in /proc of all processes under one."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    left = children.get(root, [])
    while left:
        process = left.pop()
        left += children.get(process, [])
        yield Path("/proc", str(process))


def peak(process: Path) -> int:
    """The most memory that a worker of PySpark ever had, in MB; 0 for another process."""
    try:
        if b"pyspark.daemon" not in (process / "cmdline").read_bytes():
            return 0
        status = (process / "status").read_text()
    except OSError:
        return 0
    return (
        next((int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM")), 0) // 1024
    )


def audited(folder: Path, out: Path) -> int:
    """Run the command; the peak of any worker, in MB."""
    command = [sys.executable, "-m", "seriatim_models.cli.submit", "audit", str(folder)]
    command += ["--engine", "spark", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    most = 0
    try:
        while process.poll() is None:
            most = max([most, *map(peak, descendants(process.pid))])
            time.sleep(0.2)
    finally:
        process.kill()
    said = process.communicate()[0].decode()
    assert process.returncode == 3, said  # nothing but notes: inconclusive
    assert f"{BAD if out.name == 'out' else BAD // 10:,} lines left out" in said
    return most


def test_a_million_bad_lines(tmp_path: Path) -> None:
    """a million of them: each is found again, and memory does not grow with them."""
    # Bad lines are found and counted everywhere, by test_bad_input.py; only their memory is a matter of Linux.
    if not Path("/proc/self/status").exists():
        pytest.skip("measures memory by /proc, which only Linux has")
    begun = time.monotonic()
    lines = {}
    for share, folder in ((BAD // 10, tmp_path / "few"), (BAD, tmp_path / "in")):
        lines = {str(folder / f): written(folder / f, share // len(FILES)) for f in FILES}
    made = time.monotonic()
    few = audited(tmp_path / "few", tmp_path / "out-few")
    first = time.monotonic()
    many = audited(tmp_path / "in", tmp_path / "out")
    done = time.monotonic()
    print(
        f"{BAD:,} bad lines: made in {made - begun:.0f} s, a tenth audited in {first - made:.0f} s, "
        f"all in {done - first:.0f} s; a worker had at most {few} MB, then {many} MB"
    )
    held = tables.read(tmp_path / "out")
    for file in held["files"].to_pylist():
        counts = [file[name] for name in ("header", "blank", "events", "rejected")]
        assert file["lines"] == sum(counts) == lines[file["source"]]
        assert file["rejected"] == BAD // len(FILES)
    found: dict[str, list[int]] = {source: [] for source in lines}
    for batch in held["quarantine"].to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            which = bad_line(row["line"], BAD // len(FILES))
            assert which is not None, row
            text, reason = kind(which)
            assert row["reason"].startswith(reason), (row, reason)
            assert len(row["reason"]) <= REASON_MAX
            assert row["text"] == text[: 4 * TEXT_MAX].decode(errors="replace")[:TEXT_MAX]
            assert row["duplicate"] == ("second time" in reason)
            found[row["source"]].append(row["line"])
    for source, last in lines.items():
        bad = [n for n in range(1, last + 1) if bad_line(n, BAD // len(FILES)) is not None]
        assert sorted(found[source]) == bad
    assert 0 < many <= few + GROWTH
