"""Us and peers, in turn, in one run on one machine: medians of several rounds, ratios with their spread."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

US = "seriatim"
MISTAKE_SECONDS = 10.0
PLACE = Path("build/peers")


@dataclass(frozen=True)
class Peer:
    """Another explorer, in an environment of its own."""

    name: str
    version: str
    oldest: tuple[int, int]
    """The oldest Python that it runs on."""
    wrapped: bool = False
    """Whether a script must be started by its own command."""

    def command(self) -> list[str]:
        """How a script is started; installs the peer if it is not there. Raises RuntimeError with the reason."""
        home = PLACE.absolute() / f"{self.name}-{self.version}"
        python = home / "bin" / "python"
        if not (home / "installed").exists():
            maker = interpreter(self.oldest)
            made = subprocess.run(
                [maker, "-m", "venv", "--clear", str(home)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if made.returncode == 0:
                made = subprocess.run(
                    [str(python), "-m", "pip", "install", "-q", f"{self.name}=={self.version}"],
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
            if made.returncode:
                said = (made.stderr.strip() or made.stdout.strip()).splitlines()
                raise RuntimeError(f"could not be installed: {said[-1] if said else 'no reason'}")
            (home / "installed").touch()
        return [str(home / "bin" / self.name), str(python)] if self.wrapped else [str(python)]

    def measure(self, seconds: float, mistakes: bool) -> dict[str, Any]:
        """One round of it."""
        side = Path(__file__).with_name("side.py")
        command = [*self.command(), str(side), self.name, str(seconds)]
        if mistakes:
            command.append(str(MISTAKE_SECONDS))
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise RuntimeError(f"failed: {done.stderr.strip().splitlines()[-1]}")
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said


PEERS = (
    Peer("frontrun", "0.7.0", (3, 10), wrapped=True),
    Peer("interleave-test", "0.1.0", (3, 12)),
)


def interpreter(oldest: tuple[int, int]) -> str:
    """A Python that is not older. Raises RuntimeError if there is none."""
    names = [found for n in range(9, 20) if (found := shutil.which(f"python3.{n}"))]
    names += filter(None, [shutil.which("python3")])
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    names += map(str, sorted(pyenv.glob("3.*/bin/python")))
    test = f"import sys, venv; sys.exit(sys.version_info < {oldest})"
    for name in names:
        if subprocess.run([name, "-c", test], capture_output=True, check=False).returncode == 0:
            return name
    raise RuntimeError(f"needs Python {oldest[0]}.{oldest[1]} or newer, and there is none here")


def run(
    console: Console,
    ours: Callable[[float], dict[str, Any]],
    rounds: int,
    seconds: float,
    file: Path,
) -> None:
    """Measure everybody in turn, print what came of it, keep the numbers in `file`."""
    rows: dict[str, list[dict[str, Any]]] = {US: []}
    skipped: dict[str, str] = {}
    for n in range(rounds):
        rows[US].append(ours(seconds))
        for peer in PEERS:
            if peer.name in skipped:
                continue
            try:
                rows.setdefault(peer.name, []).append(peer.measure(seconds, n == 0))
            except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
                skipped[peer.name] = str(error)
                rows.pop(peer.name, None)
    for table in (speeds(rows), mistakes(rows)):
        console.print(table)
    console.print(
        "runs: executions until everything was seen, or (with +) until the time was over. x: how many times slower "
        "than we are, from one round to another; to the end: how many times longer until everything was seen.\n"
        "Peers search without a bound, between lines or bytecodes of plain "
        "Python; we, between operations of a controlled host."
    )
    for name, why in skipped.items():
        console.print(f"skipped {name}: {why}", markup=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"seconds": seconds, "rounds": rows, "skipped": skipped}, indent=1))
    console.print(f"numbers: {file}", markup=False)


def title(name: str, said: Iterable[dict[str, Any]]) -> str:
    first = next(iter(said))
    return f"{name} {first['version']}\nPython {first['python']}"


def speeds(rows: dict[str, list[dict[str, Any]]]) -> Table:
    """Executions a second, runs and time to the end, for each program and each of us."""
    table = Table(title="Executions a second, runs to the end, time to the end")
    table.add_column("program")
    for name, said in rows.items():
        table.add_column(title(name, said), justify="right")
    for program in rows[US][0]["speed"]:
        cells = []
        for said in rows.values():
            mine = [s["speed"][program] for s in said]
            ended = [m["seconds"] for m in mine if m["seconds"] is not None]
            end = f"in {median(ended):.4f} s" if len(ended) == len(mine) else "unfinished"
            runs = f"{median(m['executions'] for m in mine):,.0f}{'' if ended else '+'} runs"
            text = f"{median(m['speed'] for m in mine):,.0f}/s\n{runs}\n{end}"
            if said is not rows[US]:
                ratios = sorted(
                    a["speed"][program]["speed"] / b["speed"]
                    for a, b in zip(rows[US], mine, strict=True)
                )
                text += f"\nx {median(ratios):,.0f} ({ratios[0]:,.0f} to {ratios[-1]:,.0f})"
                text += to_the_end([s["speed"][program] for s in rows[US]], mine)
            cells.append(text)
        table.add_row(program, *cells, end_section=True)
    return table


def to_the_end(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> str:
    """How many times longer they take until everything was seen; at least how many, if they did not get there."""
    if any(m["seconds"] is None for m in ours):
        return ""
    best = median(m["seconds"] for m in ours)
    if all(m["seconds"] is not None for m in theirs):
        return f"\nto the end x {median(m['seconds'] for m in theirs) / best:,.0f}"
    spent = median(m["executions"] / m["speed"] for m in theirs)
    return f"\nto the end x {spent / best:,.0f} or more"


def mistakes(rows: dict[str, list[dict[str, Any]]]) -> Table:
    """Who finds what."""
    table = Table(title="Who finds the mistake, after how many executions")
    table.add_column("mistake")
    for name, said in rows.items():
        table.add_column(title(name, said))
    for mistake in rows[US][0]["mistakes"]:
        found = [said[0]["mistakes"][mistake] for said in rows.values()]
        table.add_row(mistake, *(f"{f['verdict']}, {f['executions']}" for f in found))
    return table
