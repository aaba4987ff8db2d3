"""`make test-planted`: recall and false positives on a large synthetic history with injected violations."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.synthetic.generate import generate


def main() -> int:
    """Make, audit and compare; 0 if every property found exactly the injected violations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--queues", type=int, default=1000)
    parser.add_argument("--each", type=int, default=10, help="injected violations of each kind")
    parser.add_argument("--hot", type=float, default=0.3, help="fraction of events in one queue")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--properties", nargs="*", help="only these")
    parser.add_argument("--out", type=Path, default=Path("build/planted"))
    a = parser.parse_args()
    console = Console(highlight=False)
    shutil.rmtree(a.out, ignore_errors=True)
    begun = time.monotonic()
    made = generate(a.out / "in", a.events, queues=a.queues, each=a.each, hot=a.hot, seed=a.seed)
    console.print(f"{made.events:,} events made in {time.monotonic() - begun:.1f} s, seed {a.seed}")
    begun = time.monotonic()
    report = audit_paths([a.out / "in"], engine="spark", properties=a.properties, out=a.out / "out")
    console.print(f"audited in {time.monotonic() - begun:.1f} s, ingest included")
    table = Table("property", "injected", "found", "tested")
    wrong = 0
    for f in report.findings:
        injected = made.expected.get(f.property, 0)
        wrong += injected != f.n_violations
        mark = "" if injected == f.n_violations else " [red]differs[/]"
        table.add_row(f.property, f"{injected:,}", f"{f.n_violations:,}{mark}", f"{f.n_tested:,}")
    console.print(table)
    console.print("all found, and nothing else" if not wrong else f"{wrong} properties differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
