"""Speed and memory of the row-based and the columnar evaluator, from file to verdict in one process.

``python -m seriatim_workshop.bench.columnar_speed [MESSAGES]`` makes a history, audits it in two processes one after
the other, and prints events a second of processor time (this machine may be busy), bytes an event, and the ratio.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import msgspec

from seriatim_models.history import Header, write_history
from seriatim_models.history.complete import Completion
from seriatim_models.history.event import Event
from seriatim_models.history.reading import Reader
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.evaluator import judge_file
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

CHUNK = 20_000  # events, as the local engine takes them


class Speed(msgspec.Struct):
    """One evaluator's figures. Seconds are of the processor; `peak` is what the process grew by, in bytes."""

    evaluator: str
    events: int
    seconds: float
    peak: int
    columns: int
    verdicts: list[str]

    @property
    def per_minute(self) -> float:
        """Events audited in a minute of processor time."""
        return self.events / self.seconds * 60


def _grown(before: int) -> int:
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def columnar(path: str) -> Speed:
    """Return the figures of the columnar evaluator."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    found = judge_file(path)
    seconds = time.process_time() - begun
    verdicts = [f.verdict.value for f in found.findings]
    return Speed("columnar", found.events, seconds, _grown(before), found.nbytes, verdicts)


def row_based(path: str) -> Speed:
    """Return the figures of the row-based evaluator, which takes the events in chunks."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    completion = Completion()
    summaries = [p.begin() for p in BLACKBOX]
    events = 0
    block: list[Event] = []

    def fold() -> None:
        for n, p in enumerate(BLACKBOX):
            summaries[n] = p.combine(summaries[n], p.map(e for e in block if e.ev in p.reads))
        block.clear()

    for item in Reader(path):
        if isinstance(item, Event):
            events += 1
            block.append(completion(item))
            if len(block) == CHUNK:
                fold()
    fold()
    verdicts = [p.finish(s).verdict.value for p, s in zip(BLACKBOX, summaries, strict=True)]
    return Speed("row-based", events, time.process_time() - begun, _grown(before), 0, verdicts)


def measure(messages: int) -> list[Speed]:
    """Return the figures of both evaluators on one synthetic history, each in a process of its own.

    Raises AssertionError if their verdicts differ.
    """
    with tempfile.TemporaryDirectory(prefix="seriatim-") as folder:
        path = str(Path(folder) / "made.jsonl")
        broker = SimulatedBroker(1, messages, consumers=4, prefetch=16)
        write_history(path, broker.run(), Header(run="made", rec="made", lvl="api", clk="made"))
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            found = [pool.apply(evaluator, (path,)) for evaluator in (columnar, row_based)]
    if found[0].verdicts != found[1].verdicts:
        raise AssertionError(f"the two evaluators disagree: {found}")
    return found


def main(arguments: list[str]) -> int:
    """Measure both evaluators on a synthetic history and print the figures; returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.bench.columnar_speed",
        description="Compare the row-based and the columnar evaluator on a synthetic history.",
    )
    parser.add_argument(
        "messages",
        type=int,
        nargs="?",
        default=100_000,
        metavar="MESSAGES",
        help="messages of the history (100,000)",
    )
    by_columns, by_rows = measure(parser.parse_args(arguments).messages)
    for speed in (by_columns, by_rows):
        print(
            f"{speed.evaluator:9} {speed.events:,} events in {speed.seconds:.1f} s of processor: "
            f"{speed.per_minute / 1e6:.2f} million a minute, {speed.peak / speed.events:.0f} bytes an event"
            + (f", {speed.columns / speed.events:.0f} of them columns" if speed.columns else "")
        )
    print(
        f"the columnar evaluator is {by_columns.per_minute / by_rows.per_minute:.1f} times as fast as the row-based one"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
