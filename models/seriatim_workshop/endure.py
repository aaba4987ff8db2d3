"""A stream, a matrix and a campaign for long under faults, each compared with one that nobody disturbed.

    python -m seriatim_workshop.endure [--seconds S] [--rate EVENTS] [--seed N] [--out DIR] [--stream-only]

Recordings with known violations come into a folder, so many events a second, each run in several files. Meanwhile the
driver, with all that came of it, or one of its Python workers is killed with SIGKILL, a worker is paused with SIGSTOP
for some seconds, or the disk that the stream keeps its state on is full for some seconds. A driver that was killed, or
that ended because its disk was full, is begun again. In the end the stream takes what is left, and its tables must be
those of batch audits, each of some runs that have come whole: recordings are made and audited while the stream runs.
How far the stream was behind is a figure, too: in the end of a long run it must follow.
Then a matrix with a journal, and an exhaustive campaign with its checkpoint log, are killed and starved of disk in the
same way; their results must be those of one that ran undisturbed, and no part may be done twice.
`DIR` (build/endure) has `memory.svg`, `figures.json` and, as they come, `samples.csv` (seconds, MiB, seconds behind).
The full disk is a tmpfs of its own, which takes Linux and root; where it cannot be had the figures say so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from seriatim_models.conformance.faults.disk import SmallDisk
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.protocol import Fault
from seriatim_models.files import write_whole
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.campaign.checkpoint import CheckpointLog
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_models.programs import PROGRAMS
from seriatim_models.supervisor import supervised

PART = 4.0
"""Seconds of events in each file."""
PARTS = 4
"""Files of one run, one after another: what the stream carries from file to file is at stake."""
KILL, KILL_WORKER, PAUSE_WORKER, FILL = (
    "kill the driver", "kill a worker", "pause a worker", "fill the disk",
)  # fmt: skip
STARVED = "ended because the disk was full"
GRACE = 5.0
"""Seconds that a command has to end if this process does; then it is killed, with all that came of it."""
PAUSE = 3.0
"""Seconds that a worker is paused."""
FULL = 8.0
"""Seconds that the disk is full, if the process does not end before."""
DISK = 1024
"""Megabytes of the disk beside what a stream keeps of its events."""
KEPT = 34
"""Bytes of the disk for each event: twice what a stream keeps of those that `generate` makes."""
SLICE = 8
"""Runs of one batch audit."""
FOLLOWS = 60.0
"""Seconds of events that a stream may be behind, in the median of the last quarter of a long run."""
GROWTH = 1.5
"""So many times what it had in the second quarter of a run may the stream have in the last: more is a leak."""
LONG = 300.0
"""Seconds from which on memory and delay are judged: before, Java's heap still grows to its working size."""
JUDGED = re.compile(rb"^batch \d+: ([\d,]+) files?,", re.MULTILINE)
"""What a stream says after each batch: files so far."""
WORKER = b"\0pyspark.daemon\0"
"""An argument of them, and of no other process: the command line of Spark's Java says pyspark, too."""
SURVIVED = re.compile(
    rb"^batch \d+: ([\d,]+) tasks? made again whose worker was lost", re.MULTILINE
)
"""What it says after a batch of which workers were lost: tasks."""
TAIL = 2**20
"""Bytes at the end of what it said in which the last of these lines is looked for."""
MATRIX = ("matrix", "pull", "--depth", "2", "--jobs", "2")
"""A minute on two cores: what is over sooner is not disturbed."""
CAMPAIGN = "consumer-priorities"
DISTURBED = (
    ("the stream", "faults"),
    ("the matrix", "faults of the matrix"),
    ("the campaign", "faults of the campaign"),
)
"""Who must have been disturbed, and the figure that counts it: equal results of what was left alone show nothing."""
MIB = 2**20

# Any: figures are JSON, whose names `main` prints.
Figures = dict[str, Any]


class Disturbed:
    """One command of ours, begun again and again, and what is done to it."""

    def __init__(
        self, log: Path, chance: random.Random, arguments: list[str], disk: SmallDisk | None
    ) -> None:
        self.chance, self.disk, self._log = chance, disk, log
        self.faults: Counter[str] = Counter()
        prefix = disk.prefix if disk is not None else []
        self._command = [*prefix, sys.executable, "-m", "seriatim_models.cli.submit", *arguments]
        self.begin()

    def begin(self, *more: str) -> None:
        """Begin it, in a session of its own. What it says goes to a file: nobody would read a pipe."""
        self.starved = False
        with self._log.open("wb") as said:
            self.process = subprocess.Popen(
                supervised([*self._command, *more], GRACE),
                start_new_session=True,
                stdout=said,
                stderr=said,
            )

    def said(self) -> str:
        """The end of what it said."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]

    def processes(self) -> list[int]:
        """The processes of its session."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ProcessLookupError):
                    if os.getsid(int(entry.name)) == self.process.pid:
                        found.append(int(entry.name))
        return found

    def workers(self) -> list[int]:
        """Those of them that are Python workers of Spark, or its daemon, of which these are forks."""
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                if WORKER in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def stop(self) -> None:
        """Kill it and all that came of it."""
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()  # a zombie is of the session, too
        self.process.wait()

    def fault(self, *kinds: str) -> None:
        """Do one fault of these kinds. One that needs a worker, or a disk, is another where there is none."""
        workers = self.workers()
        possible = [k for k in kinds if k != FILL or self.disk is not None]
        possible = [k for k in possible if workers or k not in (KILL_WORKER, PAUSE_WORKER)]
        what = self.chance.choice(possible)
        self.faults[what] += 1
        if what == KILL:
            self.stop()
            self.begin()
        elif what == FILL:
            self._starve()
        else:
            pid = self.chance.choice(workers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if what == KILL_WORKER else signal.SIGSTOP)
                if what == PAUSE_WORKER:
                    time.sleep(PAUSE)
                    os.kill(pid, signal.SIGCONT)

    def _starve(self) -> None:
        """Fill the disk for a while. Raises `SystemExit` if the process ends by anything but a sentence.

        One that had written everything ends with 0: what it wrote is compared in the end, as always.
        """
        assert self.disk is not None
        self.disk.fill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(FULL)
        ended = self.process.poll()
        self.disk.free()
        self.starved = True
        if ended:
            self.again_after(ended, STARVED)

    def again_after(self, ended: int, why: str) -> None:
        """Begin it again, if it ended as it must. Raises `SystemExit` if not."""
        self.faults[why] += 1
        said = self.said()
        if ended != 2 or "this is a fault of seriatim itself" in said:
            sys.exit(f"a process that {why} did so with {ended}: {said}")
        self.begin()


class Endurance(Disturbed):
    """The stream, and its memory over time."""

    def __init__(self, folder: Path, seed: int, disk: SmallDisk | None) -> None:
        self.source, self.out = folder / "in", folder / "out"
        self.memory: list[tuple[float, float]] = []
        """Seconds since the beginning, and MiB of all processes of the stream."""
        self.samples = folder / "samples.csv"
        """All that is measured, as it comes: a run that is ended has these figures."""
        self.behind: list[tuple[float, float]] = []
        """Seconds since the beginning, and seconds of events that came and were not judged."""
        self.judged = 0
        """Files, as far as it said so."""
        self.survived = 0
        """Tasks that it made again, as it said."""
        self.begun = time.monotonic()
        stream = ["stream", str(self.source), "--out", str(self.out), "--lateness", "3600"]
        stream += ["--every", "0.5"]
        super().__init__(folder / "stream.log", random.Random(seed), stream, disk)

    def begin(self, *more: str) -> None:
        """Begin it; without anything else it does not end by itself."""
        self.count_survived()
        super().begin(*(more or ("--idle", "36000")))

    def measure(self, fed: int) -> None:
        """Note how much memory all of them have, and how far they are behind, of so many files."""
        pages = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                pages += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        mib = pages * os.sysconf("SC_PAGE_SIZE") / MIB
        now = time.monotonic() - self.begun
        self.memory.append((now, mib))
        with self._log.open("rb") as said:
            said.seek(max(self._log.stat().st_size - TAIL, 0))
            for files in JUDGED.findall(said.read()):
                self.judged = max(self.judged, int(files.replace(b",", b"")))
        self.behind.append((now, PART * (fed - self.judged)))
        with self.samples.open("a", encoding="utf-8") as file:
            file.write(f"{now:.1f},{mib:.0f},{self.behind[-1][1]:g}\n")

    def count_survived(self) -> None:
        """Count the tasks that the stream made again since it was begun, before its log is begun anew or in the end."""
        if self._log.exists():
            found = SURVIVED.findall(self._log.read_bytes())
            self.survived += sum(int(tasks.replace(b",", b"")) for tasks in found)

    def go_on(self) -> None:
        """Begin it again if it ended, as where a worker was killed. Raises `SystemExit` if not by a sentence."""
        if (ended := self.process.poll()) is not None:
            self.again_after(ended, "ended by itself")

    def finish(self) -> None:
        """Take all that is left. Raises `SystemExit` if the stream says that something is wrong with it."""
        self.stop()
        self.begin("--once")
        if self.process.wait() != 1:  # violations were planted
            sys.exit(f"the stream ended with {self.process.returncode}: {self.said()}")
        self.count_survived()


def runs_of(seconds: float) -> int:
    """How many runs come in so many seconds."""
    return max(round(seconds / PART / PARTS), 1)


def made_parts(folder: Path, n: int, rate: int, seed: int) -> list[Path]:
    """The recordings of one run, several files, ready to be moved."""
    run = folder / str(n)
    generate(run, int(rate * PART * PARTS), queues=20, seed=seed + n, run=f"run-{n:05d}")
    (whole,) = run.glob("*.parquet")
    rows = pq.read_table(whole)
    size = -(-rows.num_rows // PARTS)
    parts = [run / f"{k}.of" for k in range(PARTS)]
    for k, part in enumerate(parts):
        pq.write_table(rows.slice(k * size, size), part)
    whole.unlink()
    return parts


def drawn(memory: list[tuple[float, float]]) -> str:
    """Memory over time, as SVG."""
    most = max(mib for _, mib in memory) or 1.0
    end = max(t for t, _ in memory) or 1.0
    points = " ".join(f"{40 + 700 * t / end:.1f},{220 - 200 * mib / most:.1f}" for t, mib in memory)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 250" font-family="sans-serif" font-size="12">'
        f'<title>Memory of the stream</title><polyline fill="none" stroke="#36c" points="{points}"/>'
        f'<text x="40" y="14">{most:.0f} MiB at most</text><text x="680" y="240">{end:.0f} s</text></svg>\n'
    )


def differing(one: Path, others: Sequence[Path]) -> list[str]:
    """The names of the tables of one audit that differ from those of others, each of other runs, together."""
    theirs: dict[str, list[str]] = {}
    for folder in others:
        for name, rows in tables.read(folder).items():
            theirs.setdefault(name, []).extend(map(repr, rows.to_pylist()))
    return [
        name
        for name, rows in tables.read(one).items()
        if sorted(map(repr, rows.to_pylist())) != sorted(theirs[name])
    ]


class Feeder(threading.Thread):
    """Makes the recordings, one run ahead, and moves a part of them into the folder every so many seconds."""

    def __init__(self, made: Path, into: Path, runs: int, rate: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._made, self._into, self._runs, self._rate, self._seed = made, into, runs, rate, seed
        self.stopped = threading.Event()
        self.fed: list[Path] = []
        self.late = 0.0
        """Seconds that the latest part came after its time."""
        self._first = made_parts(made, 0, rate, seed)

    def run(self) -> None:
        begun, parts = time.monotonic(), self._first
        for n in range(self._runs):
            following = list[Path]()
            for part in parts:
                due = begun + PART * len(self.fed)
                if self.stopped.wait(max(due - time.monotonic(), 0.0)):
                    return
                self.late = max(self.late, time.monotonic() - due)
                part.touch()
                self.fed.append(part.rename(self._into / f"{len(self.fed):05d}.parquet"))
                if not following and n + 1 < self._runs:
                    following = made_parts(self._made, n + 1, self._rate, self._seed)
            parts = following
        self.stopped.wait(max(begun + PART * len(self.fed) - time.monotonic(), 0.0))


class Auditor(threading.Thread):
    """Audits the runs that have come whole, some at a time, and keeps the tables only."""

    def __init__(self, feeder: Feeder, out: Path) -> None:
        super().__init__(daemon=True)
        self._feeder, self._out = feeder, out
        self.audits: list[Path] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            properties, begin, ended = PROFILES["any"].properties, 0, False
            while not (ended and begin == len(self._feeder.fed)):
                ended = not self._feeder.is_alive()  # asked before the files are counted
                fed = self._feeder.fed[begin : begin + SLICE * PARTS]
                if not fed or not (ended or len(fed) == SLICE * PARTS):
                    time.sleep(0.5)
                    continue
                out = self._out / f"{len(self.audits):04d}"
                audit_paths(fed, engine="spark", properties=properties, out=out)
                for chunk in (p for p in out.iterdir() if not p.name.startswith("tables")):
                    shutil.rmtree(chunk) if chunk.is_dir() else chunk.unlink()
                self.audits.append(out)
                begin += len(fed)
        except BaseException as error:  # of a thread it would be lost
            self.error = error


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = DISK) -> Iterator[SmallDisk | None]:
    """A disk of its own at a folder, or None where there can be none."""
    folder.mkdir(parents=True)
    try:
        disk = SmallDisk(folder, megabytes)
        with disk:
            yield disk
    except Fault as why:
        print(f"no full disk: {why}", file=sys.stderr)
        yield None


def endure(folder: Path, seconds: float, rate: int, seed: int) -> Figures:
    """Run the stream and compare it; returns the figures. `folder` is made anew."""
    (folder / "in").mkdir(parents=True)
    runs = runs_of(seconds)
    events = int(rate * PART * PARTS) * runs
    feeder = Feeder(folder / "made", folder / "in", runs, rate, seed)
    auditor = Auditor(feeder, folder / "batch")
    with small_disk(folder / "out", DISK + events * KEPT // MIB) as disk:
        run = Endurance(folder, seed, disk)
        feeder.start()
        auditor.start()
        following = time.monotonic() + run.chance.uniform(15, 30)
        try:
            while feeder.is_alive():
                run.measure(len(feeder.fed))
                run.go_on()
                if time.monotonic() > following:
                    run.fault(KILL, KILL_WORKER, PAUSE_WORKER, FILL)
                    following = time.monotonic() + run.chance.uniform(15, 40)
                time.sleep(0.5)
            fed = time.monotonic()
            run.finish()
            left = time.monotonic() - fed
        finally:
            feeder.stopped.set()
            run.stop()
        (folder / "memory.svg").write_text(drawn(run.memory), encoding="utf-8")
        auditor.join()
        if auditor.error is not None:
            raise auditor.error
        differ = differing(run.out if disk is None else disk.seen, auditor.audits)
    return {
        "seconds": seconds,
        "events": events,
        "faults": dict(run.faults),
        "tasks made again whose worker was lost": run.survived,
        "full disk": "tried" if disk is not None else "needs Linux and root",
        "most MiB": round(max(m for _, m in run.memory)),
        "MiB in the second quarter": round(in_quarter(run.memory, 1)),
        "MiB in the last quarter": round(in_quarter(run.memory, 3)),
        "seconds that a part came late, at most": round(feeder.late, 1),
        "seconds behind, at most": round(max(s for _, s in run.behind)),
        "seconds behind in the second quarter": round(in_quarter(run.behind, 1)),
        "seconds behind in the last quarter": round(in_quarter(run.behind, 3)),
        "seconds for what was left": round(left, 1),
        "tables that differ from the batch audit": differ,
    }


def in_quarter(samples: list[tuple[float, float]], quarter: int) -> float:
    """The median in one quarter, 0 to 3, of the time of samples (seconds, value)."""
    whole = samples[-1][0] + 1
    return statistics.median(value for t, value in samples if int(4 * t / whole) == quarter)


def through(run: Disturbed) -> Disturbed:
    """Disturb a command until it comes to its end by itself, with 0. Raises `SystemExit` if it ends otherwise."""
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.process.wait(run.chance.uniform(6, 14))
            if run.process.poll() is None:
                run.fault(KILL, FILL)
            elif run.process.returncode and run.starved:
                # It met the full disk, and said so only when there was room again.
                run.again_after(run.process.returncode, STARVED)
            elif run.process.returncode:
                sys.exit(f"a command ended with {run.process.returncode}: {run.said()}")
            else:
                return run
    finally:
        run.stop()


def matrix_table(table: Path) -> object:
    """A matrix as `--json` wrote it, without how long it took."""
    systems = msgspec.json.decode(table.read_bytes())["systems"]
    return [{k: v for k, v in system.items() if k != "seconds"} for system in systems]


def journals(folder: Path, seed: int) -> Figures:
    """Disturb a matrix with a journal and a campaign with a checkpoint log; returns the figures."""
    wrong: list[str] = []
    chance = random.Random(seed)
    with small_disk(folder / "kept") as disk:
        kept = folder / "kept"
        seen = kept if disk is None else disk.seen
        undisturbed = folder / "undisturbed.json"
        alone = [
            *MATRIX,
            "--journal",
            str(folder / "undisturbed.jsonl"),
            "--json",
            str(undisturbed),
        ]
        subprocess.run(
            supervised([sys.executable, "-m", "seriatim_models.cli.submit", *alone]),
            check=True,
            capture_output=True,
        )
        table = folder / "matrix.json"
        again = [*MATRIX, "--journal", str(kept / "matrix.jsonl"), "--json", str(table)]
        matrix = through(Disturbed(folder / "matrix.log", chance, again, disk))
        if matrix_table(table) != matrix_table(undisturbed):
            wrong.append("the matrix has another table than an undisturbed one")
        search = ["campaign", CAMPAIGN, "--exhaustive", "--out", str(kept / "campaign")]
        campaign = through(Disturbed(folder / "campaign.log", chance, search, disk))
        [coverage] = pq.read_table(seen / "campaign" / "coverage.parquet").to_pylist()
        if (coverage["traces"], coverage["exhausted"]) != (PROGRAMS[CAMPAIGN].traces, True):
            wrong.append(f"the campaign has {coverage['traces']} traces")
        done = [result.id for result in CheckpointLog(seen / "campaign").new_results()]
        if len(set(done)) != len(done):
            wrong.append("a part of the campaign was done twice")
    return {
        "faults of the matrix": dict(matrix.faults),
        "faults of the campaign": dict(campaign.faults),
        "parts of the campaign": len(done),
        "wrong with them": wrong,
    }


def problems(figures: Figures) -> list[str]:
    """What must not be, in words."""
    found = [f"{name} differs" for name in figures["tables that differ from the batch audit"]]
    found += figures.get("wrong with them", [])  # of the second half
    found += [f"nothing was done to {what}" for what, name in DISTURBED if not figures.get(name, 1)]
    early, late = figures["MiB in the second quarter"], figures["MiB in the last quarter"]
    if figures["seconds"] >= LONG and late > GROWTH * early:
        found.append(f"memory grew from {early} to {late} MiB")
    behind = figures["seconds behind in the last quarter"]
    if figures["seconds"] >= LONG and behind > FOLLOWS:
        found.append(f"the stream was {behind} seconds behind")
    return found


def main() -> None:
    """Endure from the command line; exit code 1 if a result is another than that of who was left alone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/endure"))
    parser.add_argument("--stream-only", action="store_true", help="no matrix and no campaign")
    given = parser.parse_args()
    # Tables name files as they were named to them, and the stream has their full names.
    out = given.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    figures: Figures = {
        "command": f"--seconds {given.seconds:g} --rate {given.rate} --seed {given.seed}"
    }
    figures |= endure(out, given.seconds, given.rate, given.seed)
    if not given.stream_only:
        figures |= journals(out, given.seed)
    figures["wrong"] = problems(figures)
    text = json.dumps(figures, indent=1)
    write_whole(out / "figures.json", f"{text}\n".encode())
    print(text)
    sys.exit(bool(figures["wrong"]))


if __name__ == "__main__":
    main()
