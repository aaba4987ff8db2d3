"""The search compiled with mypyc beside the same source as pure Python: executions a second of processor time.

``python -m seriatim_workshop.bench.compiled [--rounds N]`` builds the compiled wheel (it needs a C compiler and a
package registry), lets processes of both kinds take turns, and prints the best round of each and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from seriatim_models.explorer import explore
from seriatim_models.programs import PROGRAMS, check_program
from seriatim_workshop.bench.programs import SPEED

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 1.0
"""Processor time for each small program in a round."""
JUDGED = ("handover", "consumer-priorities", "publish-while-closing")
"""Programs over the references, of which so many executions are judged in a round:"""
EXECUTIONS = 600


def unpacked(folder: Path) -> Path:
    """Build the compiled wheel in `folder`, unpack it there, and return where.

    It is built from a copy: a compiled module beside its source would be imported in place of it.
    """
    source = folder / "source"
    unwanted = shutil.ignore_patterns("__pycache__", "build", "*.so")
    for name in ("models", "reference", "spec"):
        shutil.copytree(ROOT / name, source / name, ignore=unwanted)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, source)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "-w",
        str(folder),
        "./source",
    ]
    asking = {**os.environ, "HATCH_BUILD_HOOK_ENABLE_MYPYC": "1"}
    subprocess.run(pip, cwd=folder, env=asking, check=True, timeout=600)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def printed(arguments: Sequence[str], *first: Path) -> list[str]:
    """The lines that Python prints, with these folders before the sources of this checkout."""
    path = os.pathsep.join(map(str, (*first, ROOT / "models", ROOT / "reference")))
    env = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, timeout=600
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return ran.stdout.splitlines()


def speeds() -> dict[str, float]:
    """Executions a second of processor time of each program, in this process."""
    found = {}
    for name, program in SPEED.items():
        done, started = 0, time.process_time()
        while (spent := time.process_time() - started) < SECONDS:
            done += explore(program).executions
        found[name] = done / spent
    for name in JUDGED:
        started = time.process_time()
        done = check_program(PROGRAMS[name], max_executions=EXECUTIONS).explored.executions
        found[name] = done / (time.process_time() - started)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both and print a table; returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.bench.compiled",
        description=(__doc__ or "").split("\n")[0],
    )
    parser.add_argument("--rounds", type=int, default=3, help="turns of each kind (3)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(speeds()))
        return 0
    best: dict[str, dict[bool, float]] = {}
    with tempfile.TemporaryDirectory(prefix="seriatim-compiled-") as made:
        where = unpacked(Path(made))
        for _ in range(options.rounds):
            for fast in (False, True):
                [line] = printed(["-m", __spec__.name, "--one"], *([where] if fast else []))
                for name, speed in json.loads(line).items():
                    both = best.setdefault(name, {})
                    both[fast] = max(speed, both.get(fast, 0.0))
    print("| program | pure | compiled | ratio |\n|---|---|---|---|")
    for name, both in best.items():
        print(
            f"| {name} | {both[False]:,.0f} | {both[True]:,.0f} | {both[True] / both[False]:.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
