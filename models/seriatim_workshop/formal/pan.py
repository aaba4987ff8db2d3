"""One Promela model: translated by Spin, compiled by gcc, searched.

Safety is searched breadth first, so that a counterexample is a shortest one;
liveness depth first for acceptance cycles, under weak fairness, or under every scheduler where a run says so.
Partial order reduction is off but for the largest: the numbers then belong to the model.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from seriatim_models.supervisor import supervised
from seriatim_workshop.formal import SPEC

PROMELA = SPEC / "promela"
COMMON = ["-O1", "-w"]
REDUCED = frozenset({"list.pml", "-DTHREE"})
"""The models and flags whose spaces are searched with partial order reduction."""
SAFETY = ["-DSAFETY", "-DBFS"]
LIVENESS = ["-DNFAIR=4"]  # up to 6 processes and a claim
SECONDS_MAX = 300
"""No search may take longer; the slowest takes a few."""
DEPTH_MAX = 2_000_000


class SpinFailed(Exception):
    """Spin, gcc or the search itself went wrong: not a verdict."""


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    errors: int
    states: int
    depth: int
    seconds: float
    output: str
    trail: Path | None


@dataclass(frozen=True)
class PanModel:
    """A translated and compiled model, in a folder of its own."""

    source: Path
    flags: list[str]
    folder: Path
    fair: bool
    live: bool
    """Compiled for liveness; `fair` says whether under weak fairness."""
    claims: bool

    def search(self, claim: str | None) -> SearchResult:
        """Search for a violation of the claim; without one, of assertions, and for stuck threads."""
        if self.claims == (claim is None):
            raise ValueError(
                "a model is compiled with its claims to ask for one, and without to ask for none"
            )
        (self.folder / f"{self.source.name}.trail").unlink(missing_ok=True)
        options = [] if claim is None else ["-N", claim]
        options += ["-a"] if self.live else []
        options += ["-f"] if self.fair else []
        began = time.perf_counter()
        output = _run(["./pan", f"-m{DEPTH_MAX}", *options], self.folder)
        seconds = time.perf_counter() - began
        shape = re.search(r"depth reached (\d+)(?:.*?), errors: (\d+)", output)
        stored = re.search(r"^\s*([\d.e+]+) states, stored", output, re.MULTILINE)
        if shape is None or stored is None or "max search depth too small" in output:
            raise SpinFailed(f"{self.source.name}: the search did not end well:\n{output}")
        errors = int(shape[2])
        if errors == 0 and "Search not completed" in output:
            raise SpinFailed(f"{self.source.name}: the search was cut short:\n{output}")
        trail = self.folder / f"{self.source.name}.trail"
        return SearchResult(
            errors,
            int(float(stored[1])),
            int(shape[1]),
            seconds,
            output,
            trail if trail.exists() else None,
        )

    def replay(self, trail: Path) -> str:
        """Spin's own account of a trail."""
        flags = [*self.flags, "-t", "-p", "-g", "-k", trail.name]
        return _run(["spin", *flags, self.source.name], self.folder)


def outcomes(file: str, flags: list[str], folder: Path) -> set[int]:
    """Every number that a model prints at its end, over all interleavings. The model prints it under -DOUTCOMES."""
    model = build(file, [*flags, "-DOUTCOMES", "-DAVOID=-1"], folder, claims=False)
    found = model.search(None)
    if found.errors:
        raise SpinFailed(f"{file} {' '.join(flags)} goes wrong before its end:\n{found.output}")
    return {int(n) for n in re.findall(r"outcome (-?\d+)", found.output)}


def reach(file: str, flags: list[str], folder: Path, outcome: int) -> tuple[str, str]:
    """A shortest execution that ends in this outcome: the model's source, and Spin's account of it."""
    model = build(file, [*flags, "-DOUTCOMES", f"-DAVOID={outcome}"], folder, claims=False)
    found = model.search(None)
    if found.trail is None:
        raise SpinFailed(f"{file} {' '.join(flags)} has no outcome {outcome}")
    return model.source.read_text(encoding="utf-8"), model.replay(found.trail)


def build(
    file: str,
    flags: list[str],
    folder: Path,
    *,
    fair: bool = False,
    any_scheduler: bool = False,
    claims: bool = True,
) -> PanModel:
    """Translate and compile, without its claims if they would hide who is stuck. It gets a folder in `folder`."""
    live = fair or any_scheduler
    inner = Path(tempfile.mkdtemp(dir=folder))
    source = inner / file
    source.write_bytes((PROMELA / file).read_bytes())
    output = _run(["spin", *flags, "-a", file], inner)
    if not (inner / "pan.c").exists() or "Error" in output:
        raise SpinFailed(f"Spin does not accept {file} {' '.join(flags)}:\n{output}")
    how = [*(LIVENESS if live else SAFETY), *([] if REDUCED & {file, *flags} else ["-DNOREDUCE"])]
    how += [] if claims else ["-DNOCLAIM", "-DPRINTF"]
    output = _run(["gcc", *COMMON, *how, "-o", "pan", "pan.c"], inner)
    if not (inner / "pan").exists():
        raise SpinFailed(f"gcc does not accept {file} {' '.join(flags)}:\n{output}")
    return PanModel(source, flags, inner, fair, live, claims)


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            supervised(command),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise SpinFailed(f"{' '.join(command)} took more than {SECONDS_MAX} s") from late
    return done.stdout + done.stderr
