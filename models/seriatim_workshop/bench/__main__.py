"""The command of the bench: ``python -m seriatim_workshop.bench [PART ...] [--rounds N] [--seconds S]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from rich.console import Console

from seriatim_workshop.bench import (
    campaigns,
    exploring,
    growing,
    oracle,
    overhead,
    pipelines,
    show,
    streams,
)
from seriatim_workshop.bench.measure import Measured, measured

Part = Callable[[int, float, Callable[[str], None], int], Measured]
PARTS: dict[str, Part] = {
    exploring.PART: exploring.measure,
    overhead.PART: overhead.measure,
    oracle.PART: oracle.measure,
    pipelines.PART: pipelines.measure,
    streams.PART: streams.measure,
    campaigns.PART: campaigns.measure,
    growing.PART: growing.measure,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the parts that are named (all) and write numbers and a page; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure us and our peers side by side; numbers and a page go to build/bench.",
        epilog="parts: " + ", ".join(PARTS),
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="which parts (all)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often everything is measured (3)"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="for each task and round (1)")
    parser.add_argument(
        "--largest",
        type=int,
        default=1_000_000,
        help="the largest size, where tasks have sizes (10^6)",
    )
    options = parser.parse_args(argv)
    if unknown := [p for p in options.parts if p not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds must be positive")
    console = Console(width=None if sys.stdout.isatty() else 150)
    for name in options.parts or PARTS:
        with console.status(name) as status:
            part = PARTS[name](options.rounds, options.seconds, status.update, options.largest)
        file = part.write()
        show.text(part, console)
        console.print(f"numbers: {file}", markup=False)
    console.print(f"page: {show.page(measured())}", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
