"""Killed at random moments with SIGKILL, nothing is lost and nothing doubled. Minutes long: `make test-kill`."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.history import read_history, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import chunks, tables
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.campaign.checkpoint import CheckpointLog
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_models.programs import PROGRAMS

from .conftest import DATA
from .test_stream import equal

pytestmark = [pytest.mark.slow, pytest.mark.scale, pytest.mark.spark, pytest.mark.timeout(3000)]

KILLS = int(os.environ.get("KILLS", "20"))
SEED = int(os.environ.get("SEED", time.time_ns() % 10**6))


def begin(*arguments: object) -> subprocess.Popen[bytes]:
    """The command in a process group of its own, so that its Java and its workers die with it."""
    command = [sys.executable, "-m", "seriatim_models.cli.submit", *map(str, arguments)]
    return subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def killed(process: subprocess.Popen[bytes], after: float) -> bool:
    """Kill it then; whether it was still alive."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after)
    alive = process.poll() is None
    if alive:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return alive


def parts(folder: Path, draw: random.Random) -> list[Path]:
    """Three runs in many parts, of which neighbours may appear in the wrong order."""
    out = []
    whole = folder / "whole"
    generate(whole, 60_000, queues=20, each=2, seed=draw.randrange(2**20))
    made = read_history(whole / "part-00000.parquet")
    broker = read_history(DATA / "rabbit-classic-lockstep.jsonl.gz")
    for name, history, n in (("made", made, 40), ("broker", broker, 20)):
        size = len(history.events) // n + 1
        for k in range(n):
            path = folder / f"{name}-{k:03d}.{draw.choice(['jsonl', 'jsonl.gz', 'jsonl.zst'])}"
            events = history.events[k * size : (k + 1) * size]
            write_history(path, events, Header(run=name, params=history.header.params))
            out.append(path)
    lines = out[3].read_bytes().split(b"\n") if out[3].suffix == ".jsonl" else []
    if len(lines) > 9:
        lines[7] = lines[7][:20]
        out[3].write_bytes(b"\n".join(lines))
    for k in range(0, len(out) - 1, 5):
        out[k], out[k + 1] = out[k + 1], out[k]
    return out


def test_a_stream_killed_again_and_again_comes_to_what_a_batch_does(tmp_path: Path) -> None:
    print(f"SEED={SEED} KILLS={KILLS}")
    draw = random.Random(SEED)
    (tmp_path / "made").mkdir()
    (tmp_path / "in").mkdir()
    waiting = parts(tmp_path / "made", draw)
    # One group of files for each process that is killed, so that each has something to do.
    cuts = [k * len(waiting) // (KILLS + 1) for k in range(KILLS + 2)]
    groups = [waiting[lo:hi] for lo, hi in pairwise(cuts)]
    stopped = threading.Event()

    def feed(coming: list[Path], pauses: random.Random) -> None:
        """The recorders: whole files, renamed into place."""
        while coming and not stopped.is_set():
            path = coming.pop(0)
            path.touch()
            path.rename(tmp_path / "in" / path.name)
            stopped.wait(pauses.uniform(0, 2))

    stream = (
        "stream",
        tmp_path / "in",
        "--out",
        tmp_path / "out",
        "--lateness",
        3600,
        "--every",
        0.5,
    )
    progressed = 0
    batch = -1
    coming: list[Path] = []
    for n, group in enumerate(groups[:KILLS]):
        coming += group
        process = begin(*stream, "--idle", 3600)
        feeder = threading.Thread(target=feed, args=(coming, random.Random(draw.random())))
        feeder.start()
        try:
            # In turn: after a batch was done, in a batch, and anywhere, its start included.
            if n % 3 == 0:
                _batch_done(tmp_path / "out" / "stream.json", batch, process)
            elif n % 3 == 1:
                _at_work(tmp_path / "out", process)
        finally:
            alive = killed(process, draw.uniform(0, 5 if n % 3 == 0 else 20))
            stopped.set()
            feeder.join()
        assert alive, "the stream ended by itself"
        stopped.clear()
        state = tmp_path / "out" / "stream.json"
        if state.exists():
            now = _batch(state)
            assert now >= batch, "the state went back"
            progressed += now > batch
            batch = now
    feed(coming + groups[KILLS], random.Random(draw.random()))
    last = begin(*stream, "--once")
    said = last.communicate()[1].decode()
    assert last.returncode == 1, said  # violations were planted
    everything = PROFILES["any"].properties
    audit_paths([tmp_path / "in"], engine="spark", properties=everything, out=tmp_path / "batch")
    equal(tmp_path / "out", tmp_path / "batch")
    files = tables.read(tmp_path / "out")["files"]
    assert len(files) == len(waiting)
    print(f"{KILLS} kills, {progressed} of them after new batches, {batch + 1} batches")
    assert progressed >= len(range(0, KILLS, 3)), "the kills came before anything was done"


def _batch_done(state: Path, batch: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has done a batch after number `batch`."""
    until = time.monotonic() + 300
    while process.poll() is None and (not state.exists() or _batch(state) <= batch):
        assert time.monotonic() < until, "no batch was done"
        time.sleep(0.05)


def _at_work(out: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has begun a batch: it takes a while to start, and there is little to kill then."""
    before = set(out.glob("batch-*"))
    until = time.monotonic() + 120
    while process.poll() is None and set(out.glob("batch-*")) <= before:
        assert time.monotonic() < until, "no batch was begun"
        time.sleep(0.05)


def _batch(state: Path) -> int:
    import json

    number = json.loads(state.read_bytes())["batch"]
    assert isinstance(number, int)
    return number


def test_an_ingest_killed_again_and_again_leaves_the_old_state_or_the_new(tmp_path: Path) -> None:
    print(f"SEED={SEED}")
    draw = random.Random(SEED)
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (tmp_path / "made").mkdir()
    waiting = [p for p in parts(tmp_path / "made", draw) if p.name.startswith("broker")]
    shutil.copy(waiting[0], source)
    audit_paths([source], engine="spark", out=out)
    states = [chunks.read_manifest(out)]
    for path in waiting[1 : 1 + max(KILLS // 2, 1)]:
        shutil.copy(path, source)
        process = begin("audit", source, "--engine", "spark", "--out", out)
        until = time.monotonic() + 120
        old = set(out.glob("work-*"))
        while process.poll() is None and set(out.glob("work-*")) <= old:
            assert time.monotonic() < until, "no work was begun"
            time.sleep(0.02)
        killed(process, draw.uniform(0, 4))
        now = chunks.read_manifest(out)
        assert all((out / p).exists() for p in now.paths())
        planned = plan([source]).runs[0].recorders[0]
        stamped = [s.path for s in now.units[0].recorders[0]]
        assert now == states[-1] or stamped == [s.path for s in planned]
        states.append(now)
    found = audit_paths([source], engine="spark", out=out)
    local = audit_paths([source])
    assert found.findings == local.findings
    assert found.statistics == local.statistics
    assert len(list(out.glob("tables-*"))) == 1


def test_ctrl_c_stops_a_stream_after_its_batch(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    generate(tmp_path / "made", 3000, queues=2)
    (tmp_path / "made" / "part-00000.parquet").rename(tmp_path / "in" / "a.parquet")
    process = begin("stream", tmp_path / "in", "--out", tmp_path / "out")
    until = time.monotonic() + 120
    while not (tmp_path / "out" / "tables").exists() or _files(tmp_path / "out") < 1:
        assert time.monotonic() < until, "no batch came to its end"
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 1, said
    assert "Traceback" not in said
    assert "1 file, " in said


def _files(out: Path) -> int:
    return len(tables.read(out)["files"])


def test_an_exhaustive_campaign_killed_again_and_again_does_nothing_twice(tmp_path: Path) -> None:
    print(f"SEED={SEED} KILLS={KILLS}")
    draw = random.Random(SEED)
    program = PROGRAMS["consumer-priorities"]
    command = ("campaign", program.id, "--exhaustive", "--out", tmp_path)
    kills, behind = 0, [0]
    while kills < max(KILLS // 4, 2):
        process = begin(*command)
        until = time.monotonic() + 120
        while process.poll() is None and len(_parts(tmp_path)) == behind[-1]:
            assert time.monotonic() < until, "no part was done"
            time.sleep(0.02)
        if not killed(process, draw.uniform(0, 3)):
            break  # it was done sooner
        kills += 1
        behind.append(len(_parts(tmp_path)))
    last = begin(*command)
    said = last.communicate()[1].decode()
    assert last.returncode == 0, said
    parts = _parts(tmp_path)
    assert len(set(parts)) == len(parts), "a part was done twice"
    print(f"{kills} kills, with {behind[1:]} parts done; {len(parts)} in the end")
    assert kills
    [coverage] = pq.read_table(tmp_path / "coverage.parquet").to_pylist()
    assert (coverage["traces"], coverage["exhausted"]) == (program.traces, True)
    assert coverage["items"] == len(parts)
    # Nothing of a killed one is left to be taken for work.
    assert not list(tmp_path.glob("batches-*"))


def _parts(out: Path) -> list[str]:
    """The ids in a campaign's checkpoint log."""
    return [o.id for o in CheckpointLog(out).new_results()]
