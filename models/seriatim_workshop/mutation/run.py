"""Mutation testing of the references: how many mutants the programs, the machines and the tests catch.

`python -m seriatim_workshop.mutation.run [--file NAME] [--sample N] [--seed S] [--list]`: a checkpoint log under
build/ keeps what was tried, so that a run that was stopped goes on, and a larger sample needs only the rest.
An outcome is stored by the function that was changed: `--again` tries survivors once more, `--fresh` everything.

The tools that exist change the file in place, or know only the mutants that a test runner of theirs can switch on;
here a mutant is a module of its own in a process of its own, and no other process sees it.
A process is forked from a server that has everything loaded but the references, and its seconds are those of the
processor, so that a busy machine does not make a slow mutant look like an endless one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from seriatim_workshop.mutation.equivalent import EQUIVALENT
from seriatim_workshop.mutation.operators import FILES, ROOT, Mutation, mutations
from seriatim_workshop.mutation.worker import judged

LIMIT = 300.0
"""Seconds after which a process that sleeps is ended; the kill suite ends an endless loop (`kill_suite.allow`)."""


NAP = 5.0
"""Seconds without a tick after which a process is asleep: on a busy machine one that is awake waits for its turn."""
LOST = 255
"""Exit code of a process whose server was ended before it."""
CAPPED = 3
"""Exit code of a judge that found nothing and did not look at everything."""
OUT_OF_TIME = 4
"""Exit code of a judge that found a loop without an end."""
SLEEPERS = 4
"""How many may sleep beside those that work."""


@dataclass(frozen=True)
class MutantOutcome:
    """What became of a mutant: caught, out of time (which is caught too), or survived."""

    outcome: str
    by: str
    seconds: float


# ---- judging, in a process of its own


@dataclass
class _Worker:
    """A process that runs the kill suite on one mutant."""

    process: BaseProcess
    output: Path
    began: float
    used: int | None = None
    """Of the processor, in ticks, when that was last more than before."""
    used_at: float = 0.0

    def awake(self) -> bool:
        """Whether it used the processor of late. A process that sleeps until its test times out delays no other."""
        now = time.monotonic()
        if (used := _ticks(self.process.pid)) != self.used or used is None:
            self.used, self.used_at = used, now
        return now - self.used_at < NAP

    def outcome(self, limit: float) -> MutantOutcome | None:
        """None while it is not decided."""
        seconds = round(time.monotonic() - self.began, 1)
        code = self.process.exitcode
        if code is None:
            if seconds < limit:
                return None
            self.process.kill()
            self.process.join()
            return MutantOutcome("out of time", "asleep", seconds)
        words = self.output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return MutantOutcome("out of time", words[-1][:160] if words else "", seconds)
        if code == 0:
            return MutantOutcome("survived", "", seconds)
        if code == LOST:
            return MutantOutcome("inconclusive", "its process was lost", seconds)
        if code in (CAPPED, OUT_OF_TIME):
            outcome = "inconclusive" if code == CAPPED else "out of time"
            return MutantOutcome(outcome, words[-1][:160], seconds)
        return MutantOutcome("caught", words[-1][:160] if words else f"exit code {code}", seconds)


def _ticks(pid: int | None) -> int | None:
    """What a process has used of the processor; None where the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    user, system = stat.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


def judge_all(
    todo: Iterable[tuple[str, ...]],
    jobs: int = 1,
    limit: float = LIMIT,
    judge: Callable[..., None] = judged,
) -> Iterator[tuple[int, MutantOutcome]]:
    """Yield the outcome of each mutant, with its number, as they become known.

    `judge` is called in a process of its own with a mutant's (file, text of the module), the name of a file for what
    it prints, and whatever else stands in `todo`; it ends the process. A process of ours has one kind of judge.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([judge.__module__])
    waiting = enumerate(todo)
    workers: dict[int, _Worker] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            while True:
                while (
                    sum(w.awake() for w in workers.values()) < jobs
                    and len(workers) < jobs + SLEEPERS
                    and (next_one := next(waiting, None)) is not None
                ):
                    n, (file, source, *more) = next_one
                    output = Path(folder) / str(n)
                    given = (judge, file, source, str(output), *more)
                    process = context.Process(target=_judge_for_server, args=given)
                    process.start()
                    workers[n] = _Worker(process, output, time.monotonic())
                if not workers:
                    return
                connection.wait([w.process.sentinel for w in workers.values()], timeout=1)
                for n, worker in list(workers.items()):
                    if (outcome := worker.outcome(limit)) is not None:
                        del workers[n]
                        yield n, outcome
        finally:
            for worker in workers.values():
                worker.process.kill()
                worker.process.join()


# Any: what the judge takes
def _judge_for_server(judge: Callable[..., None], *given: Any) -> None:
    """Judge, and end with who asked: the server that forked this process lasts as long as it does."""
    threading.Thread(target=_end_with_driver, daemon=True).start()
    judge(*given)


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)


def judge(file: str, source: str, limit: float = LIMIT) -> MutantOutcome:
    """Run everything that judges a reference on one module's text."""
    ((_, outcome),) = judge_all([(file, source)], 1, limit)
    return outcome


# ---- the checkpoint log and the table


def main(arguments: list[str]) -> int:
    """Judge the mutants that the arguments ask for, and print the tables."""
    options = common_options("mutate", __doc__, "mutants.jsonl").parse_args(arguments)
    files = options.file or list(FILES)
    chosen = sampled(
        [m for file in files for m in mutations(file) if options.only in m.name], options
    )
    if options.list:
        return 0
    outcomes = {} if options.fresh else read_journal(options.journal)
    right = [(f, (ROOT / "reference" / "seriatim" / f"{f}.py").read_text("utf-8")) for f in files]
    for n, outcome in judge_all(right, options.jobs):
        if outcome.outcome != "survived":
            print(
                f"{right[n][0]}.py itself does not pass: {outcome.by or outcome.outcome}",
                file=sys.stderr,
            )
            return 2
    tried = {k for k, o in outcomes.items() if not (options.again and o.outcome == "survived")}
    todo = [m for m in chosen if m.key not in tried]
    judged_ones = judge_all(((m.file, m.source) for m in todo), options.jobs)
    keep(todo, judged_ones, outcomes, options.journal, options.fresh)
    return report(chosen, outcomes)


def common_options(prog: str, description: str | None, journal: str) -> argparse.ArgumentParser:
    """Return a parser of the options that every run of mutants has; the checkpoint log is a file under build/."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, help="try only so many, sampled at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--file", choices=FILES, action="append", help="which reference (all)")
    parser.add_argument("--only", default="", help="only those whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / journal)
    parser.add_argument("--again", action="store_true", help="try again those not caught before")
    parser.add_argument("--fresh", action="store_true", help="ignore the outcomes of earlier runs")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    return parser


def sampled(every: list[Mutation], options: argparse.Namespace) -> list[Mutation]:
    """Return the mutants that are sampled, or all; with `--list` it prints the names of all."""
    if options.list:
        for m in every:
            print(m.name)
    if options.sample is None or options.sample >= len(every):
        return every
    return random.Random(options.seed).sample(every, options.sample)


def keep(
    todo: Sequence[Mutation],
    judged_ones: Iterable[tuple[int, MutantOutcome]],
    outcomes: dict[str, MutantOutcome],
    journal: Path,
    fresh: bool = False,
) -> None:
    """Put each outcome into `outcomes` and into the checkpoint log as it becomes known, and show how many are left."""
    with open_journal(journal, fresh) as out, progress_bar() as progress:
        task = progress.add_task("mutants", total=len(todo))
        for n, outcome in judged_ones:
            outcomes[todo[n].key] = outcome
            out.write(journal_line(todo[n], outcome))
            out.flush()
            progress.advance(task)


def progress_bar() -> Progress:
    """A bar on a terminal, and nothing elsewhere."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )


def read_journal(journal: Path) -> dict[str, MutantOutcome]:
    """The outcomes of earlier runs, by the key of the mutant; a line that a kill left half written is left out."""
    if not journal.exists():
        return {}
    text = journal.read_text(encoding="utf-8")
    lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
    return {d["key"]: MutantOutcome(d["outcome"], d["by"], d["seconds"]) for d in lines}


def open_journal(journal: Path, fresh: bool = False) -> IO[str]:
    """The checkpoint log, open behind its last whole line, or empty if it is to be begun afresh."""
    journal.parent.mkdir(parents=True, exist_ok=True)
    if fresh or not journal.exists():
        return journal.open("w", encoding="utf-8")
    whole = journal.read_bytes().rfind(b"\n") + 1
    os.truncate(journal, whole)
    return journal.open("a", encoding="utf-8")


def journal_line(mutation: Mutation, outcome: MutantOutcome) -> str:
    """The line of the checkpoint log for one mutant."""
    row: dict[str, str | float] = {"key": mutation.key, "name": mutation.name}
    row |= {"outcome": outcome.outcome, "by": outcome.by, "seconds": outcome.seconds}
    return json.dumps(row) + "\n"


def report(chosen: list[Mutation], outcomes: dict[str, MutantOutcome]) -> int:
    """Print the score by reference, and the survivors; 1 if one survived that is not listed as equivalent."""
    open_ = [
        m for m in chosen if outcomes[m.key].outcome == "survived" and m.name not in EQUIVALENT
    ]
    for m in open_:
        print(f"survived  {m.name}   ({m.file}.py:{m.line})")
    wrong = [m for m in chosen if outcomes[m.key].outcome != "survived" and m.name in EQUIVALENT]
    for m in wrong:
        print(f"caught, though listed as equivalent  {m.name}: {outcomes[m.key].by}")
    print("reference  mutants  caught  of these out of time  equivalent  survived  score")
    for file in [*FILES, "all"]:
        mine = [m for m in chosen if file in (m.file, "all")]
        late = sum(outcomes[m.key].outcome == "out of time" for m in mine)
        caught = late + sum(outcomes[m.key].outcome == "caught" for m in mine)
        same = sum(m.name in EQUIVALENT for m in mine if outcomes[m.key].outcome == "survived")
        if mine:
            score = 100 * caught / max(1, len(mine) - same)
            print(
                f"{file:9}  {len(mine):7}  {caught:6}  {late:20}  {same:10}  "
                f"{len(mine) - caught - same:8}  {score:.1f} %"
            )
    return 1 if open_ or wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
