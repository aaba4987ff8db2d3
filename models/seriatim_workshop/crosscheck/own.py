"""`make crosscheck-own`: generated tests with plain threads, some identical, with asyncio, and with loops that wait.

Prints each program whose ways to be run differ, and the sums; the exit code is 1 if any differs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from seriatim_workshop.crosscheck import own_asyncio, own_code, own_loops, own_symmetry

KINDS: dict[str, Any] = {
    "threads": own_code,
    "symmetry": own_symmetry,
    "asyncio": own_asyncio,
    "loops": own_loops,
}


def main() -> int:
    """Compare as many programs of each kind as asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", choices=KINDS, help="only programs of this kind")
    parser.add_argument("--programs", type=int, default=1000, help="how many of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--executions", type=int, default=2000, help="budget of each search")
    parser.add_argument("--seconds", type=float, default=None, help="stop each kind after so many")
    asked = parser.parse_args()
    kinds = [asked.kind] if asked.kind else list(KINDS)
    return int(sum(differing(kind, asked) for kind in kinds) > 0)


def differing(kind: str, asked: argparse.Namespace) -> int:
    """Compare the programs of one kind; returns how many differ."""
    programs = KINDS[kind]
    started = time.perf_counter()
    sums: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(asked.first, asked.first + asked.programs):
            program = programs.generate(seed)
            agreement = programs.compared(program, Path(folder), executions=asked.executions)
            sums["programs"] += 1
            sums["too large"] += agreement.large
            sums["withheld"] += agreement.withheld
            sums["traces"] += agreement.traces
            sums["fewer with symmetry"] += getattr(agreement, "fewer", 0)
            sums["also by brute force"] += bool(agreement.brute)
            sums["differ"] += bool(agreement.wrong)
            if agreement.wrong:
                text = program.text.removeprefix(programs.HEAD)
                print(f"seed {seed}: {'; '.join(agreement.wrong)}\n{text}", flush=True)
            if asked.seconds is not None and time.perf_counter() - started > asked.seconds:
                break
    shown = (f"{name}: {n}" for name, n in sums.items() if n or name in ("too large", "differ"))
    print(f"{kind}: {', '.join(shown)}")
    print(f"{time.perf_counter() - started:.0f} s", flush=True)
    return sums["differ"]


if __name__ == "__main__":
    raise SystemExit(main())
