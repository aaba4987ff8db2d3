"""A stream for long under faults, compared with a batch audit of the same files; memory as a plot.

    python -m seriatim_workshop.endure [--seconds S] [--rate EVENTS] [--seed N] [--out DIR]

Recordings with known violations come into a folder, so many events a second. Meanwhile the driver, with all that came
of it, or one of its Python workers is killed with SIGKILL, or a worker is paused with SIGSTOP for some seconds. A
driver that was killed is begun again. In the end the stream takes what is left, and its tables must be those of a batch
audit.
`DIR` (build/endure) has `memory.svg` and `figures.json`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.synthetic.generate import generate

PART = 4.0
"""Seconds of events in each file."""
FAULTS = ("kill the driver", "kill a worker", "pause a worker")
PAUSE = 3.0
MIB = 2**20


class Endurance:
    """One run: the stream's process, what was done to it, and its memory over time."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.source, self.out = folder / "in", folder / "out"
        self.chance = random.Random(seed)
        self.faults: Counter[str] = Counter()
        self.memory: list[tuple[float, float]] = []
        """Seconds since the beginning, and MiB of all processes of the stream."""
        self.begun = time.monotonic()
        self.process = self._begin()

    def _begin(self, *how: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "seriatim_models.cli.submit", "stream", str(self.source)]
        command += ["--out", str(self.out), "--lateness", "3600", "--every", "0.5"]
        command += how or ("--idle", "36000")
        return subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def processes(self) -> list[int]:
        """The processes of the stream's session."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ProcessLookupError):
                    if os.getsid(int(entry.name)) == self.process.pid:
                        found.append(int(entry.name))
        return found

    def workers(self) -> list[int]:
        """Those of them that are Python workers of Spark."""
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                if b"pyspark" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def measure(self) -> None:
        """Note how much memory all of them have."""
        pages = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                pages += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        mib = pages * os.sysconf("SC_PAGE_SIZE") / MIB
        self.memory.append((time.monotonic() - self.begun, mib))

    def fault(self) -> None:
        """Do one of the faults, as long as the process lives; one that needs a worker waits until there is one."""
        workers = self.workers()
        what = self.chance.choice(FAULTS if workers else FAULTS[:1])
        self.faults[what] += 1
        if what == FAULTS[0]:
            self.stop()
            self.process = self._begin()
            return
        pid = self.chance.choice(workers)
        with contextlib.suppress(ProcessLookupError):
            if what == FAULTS[1]:
                os.kill(pid, signal.SIGKILL)
                return
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PAUSE)
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Kill the process and all that came of it."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()

    def finish(self) -> None:
        """Take all that is left. Raises `SystemExit` if the stream says that something is wrong with it."""
        self.stop()
        self.process = self._begin("--once")
        said = self.process.communicate()[1].decode()
        if self.process.returncode != 1:  # violations were planted
            sys.exit(f"the stream ended with {self.process.returncode}: {said[-2000:]}")


def made_parts(folder: Path, seconds: float, rate: int, seed: int) -> list[Path]:
    """The recordings, each a run of its own, ready to be moved."""
    parts = []
    for n in range(max(int(seconds / PART), 2)):
        generate(folder / str(n), int(rate * PART), queues=20, seed=seed + n, run=f"run-{n:05d}")
        parts.append(folder / str(n) / "part-00000.parquet")
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


def differing(one: Path, other: Path) -> list[str]:
    """The names of tables that differ."""
    mine, theirs = tables.read(one), tables.read(other)
    return [
        name
        for name, rows in mine.items()
        if sorted(map(repr, rows.to_pylist())) != sorted(map(repr, theirs[name].to_pylist()))
    ]


def feed(parts: list[Path], into: Path, stopped: threading.Event) -> None:
    """Move a part into the folder every so many seconds."""
    for n, path in enumerate(parts):
        path.touch()
        path.rename(into / f"{n:05d}.parquet")
        if stopped.wait(PART):
            return


def endure(folder: Path, seconds: float, rate: int, seed: int) -> dict[str, object]:
    """Run it all; returns the figures. `folder` is made anew."""
    folder = (
        folder.resolve()
    )  # tables name files as they were named to them, and the stream has their full names
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    parts = made_parts(folder / "made", seconds, rate, seed)
    run, stopped = Endurance(folder, seed), threading.Event()
    feeder = threading.Thread(target=feed, args=(parts, run.source, stopped), daemon=True)
    feeder.start()
    following = time.monotonic() + run.chance.uniform(15, 30)
    try:
        while feeder.is_alive():
            run.measure()
            if time.monotonic() > following:
                run.fault()
                following = time.monotonic() + run.chance.uniform(15, 40)
            time.sleep(0.5)
        run.finish()
    finally:
        stopped.set()
        run.stop()
    (folder / "memory.svg").write_text(drawn(run.memory), encoding="utf-8")
    properties = PROFILES["any"].properties
    audit_paths([run.source], engine="spark", properties=properties, out=folder / "batch")
    late = [mib for t, mib in run.memory if t > run.memory[-1][0] / 2]
    return {
        "seconds": seconds,
        "events": int(rate * PART) * len(parts),
        "faults": dict(run.faults),
        "most MiB in the first half": round(max(m for _, m in run.memory[: -len(late)])),
        "most MiB in the second half": round(max(late)),
        "tables that differ from the batch audit": differing(run.out, folder / "batch"),
    }


def main() -> None:
    """Endure from the command line; exit code 1 if the result is another than that of a batch audit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/endure"))
    given = parser.parse_args()
    figures = endure(given.out, given.seconds, given.rate, given.seed)
    text = json.dumps(figures, indent=1)
    (given.out / "figures.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    sys.exit(bool(figures["tables that differ from the batch audit"]))


if __name__ == "__main__":
    main()
