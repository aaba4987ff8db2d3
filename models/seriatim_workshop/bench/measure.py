"""What was measured: series of rounds, their median and spread, and ratios taken round by round."""

from __future__ import annotations

import datetime
import os
import platform
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

OUT = Path("build/bench")
DISTURBED = 0.5
"""A series whose spread is larger met a busy machine, or measures something that is not one thing."""


@dataclass(frozen=True)
class Series:
    """One number, measured in several rounds."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        """The middle value."""
        return median(self.values)

    @property
    def spread(self) -> float:
        """From the smallest to the largest, as a share of the median."""
        middle = self.median
        return (max(self.values) - min(self.values)) / middle if middle else 0.0

    @property
    def disturbed(self) -> bool:
        """Whether the spread is larger than `DISTURBED`."""
        return self.spread > DISTURBED

    def over(self, other: Series) -> Series:
        """The ratio, round by round: what disturbed a round disturbed both."""
        return Series([a / b for a, b in zip(self.values, other.values, strict=True)])


class BenchRow(msgspec.Struct, kw_only=True):
    """How one of us did one task. Lists have a value for each round; `seconds` is empty if the task was not finished.

    `rate` is in `unit`s a second; `count` is how many units one finish took, `size` how large the task was;
    `memory` is the peak of the process in bytes.
    """

    task: str
    who: str
    verdict: str
    seconds: list[float] = []
    rate: list[float] = []
    unit: str = ""
    count: int | None = None
    size: float | None = None
    memory: list[int] = []

    @property
    def disturbed(self) -> bool:
        """Whether one of its series scatters more than `DISTURBED`."""
        return any(len(s) > 1 and Series(s).disturbed for s in (self.seconds, self.rate) if s)


class Measured(msgspec.Struct, kw_only=True):
    """One part of the bench, as it is written to its file."""

    part: str
    title: str
    command: str
    rounds: int
    rows: list[BenchRow]
    versions: dict[str, str]
    skipped: dict[str, str] = {}
    notes: list[str] = []
    us: str = "seriatim"
    """Who the others are compared with."""
    date: str = msgspec.field(default_factory=lambda: datetime.date.today().isoformat())
    machine: str = msgspec.field(default_factory=lambda: machine())
    schema: str = "seriatim-bench/1"

    def row(self, task: str, who: str) -> BenchRow | None:
        """The row of this task and participant, or None."""
        return next((r for r in self.rows if (r.task, r.who) == (task, who)), None)

    @property
    def tasks(self) -> list[str]:
        """The tasks, in the order of the rows."""
        return list(dict.fromkeys(r.task for r in self.rows))

    @property
    def everybody(self) -> list[str]:
        """The participants, in the order of the rows."""
        return list(dict.fromkeys(r.who for r in self.rows))

    def write(self) -> Path:
        """Write the part to `build/bench`; returns the file."""
        OUT.mkdir(parents=True, exist_ok=True)
        file = OUT / f"{self.part}.json"
        file.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))
        return file


def measured() -> list[Measured]:
    """Every part whose file is there. Raises msgspec.ValidationError for a file of another form."""
    files = sorted(OUT.glob("*.json"))
    found = []
    for file in files:
        raw = file.read_bytes()
        if b'"seriatim-bench/1"' in raw:
            found.append(msgspec.json.decode(raw, type=Measured))
    return found


def machine() -> str:
    """The machine, in a few words."""
    model = platform.processor() or platform.machine()
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} processors, {platform.system()}, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def peak_memory() -> int:
    """Of this process so far, in bytes; without what its parent used, where the system counts them apart."""
    for line in _lines("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
