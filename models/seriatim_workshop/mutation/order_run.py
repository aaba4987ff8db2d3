"""Mistakes of order, judged: how many of them the closed programs and the matrix catch over every schedule.

`python -m seriatim_workshop.mutation.order_run [--file NAME] [--operator NAME] [--sample N --seed S] [--list]`:
a checkpoint log under build/ keeps what was tried, so that a run that was stopped goes on. At the end it prints two
tables in Markdown (by operator, by what caught them) and every mutant that nothing caught, that ran out of time, or
whose programs have more schedules than were run. `--table` prints them from the log and tries nothing.
`--suite` hands those to the tests and machines (`kill_suite`) and prints what they say of each; it does not count.

The score is of those that a property, the outcome oracle, or an end that the explorer names (a deadlock, a lost
wake-up, a livelock, an exception) caught; the equivalent ones are left out.
`seriatim.host` is below every schedule: the explorer has a host of its own. So its mutants are for `--suite` alone.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from seriatim_models.programs.mutant_modules import system_of
from seriatim_workshop.mutation.equivalent import ORDER_EQUIVALENT
from seriatim_workshop.mutation.exhaustive import ALL, block_name, judged_exhaustively, profiles
from seriatim_workshop.mutation.operators import FILES, ROOT, Mutation
from seriatim_workshop.mutation.order import OPERATORS, order_mutations
from seriatim_workshop.mutation.run import (
    MutantOutcome,
    journal_line,
    judge_all,
    open_journal,
    progress_bar,
    read_journal,
)

JUDGED = [file for file in FILES if system_of(file) is not None]
"""The files whose mutants the explorer can run."""
LIMIT = 7200.0
"""Real seconds after which a process that judges is ended; its seconds of the processor end it before."""

Outcomes = dict[str, MutantOutcome]


def main(arguments: list[str]) -> int:
    """Judge the mutants of order that the arguments ask for, and print the tables."""
    options = _parser().parse_args(arguments)
    every = [m for file in options.file or JUDGED for m in order_mutations(file)]
    every = [m for m in every if options.only in m.name]
    if options.operator:
        every = [m for m in every if operator_of(m) in options.operator]
    chosen = every
    if options.sample is not None and options.sample < len(every):
        chosen = random.Random(options.seed).sample(every, options.sample)
    if options.list:
        for m in every:
            print(m.name)
        return 0
    outcomes = {} if options.fresh else read_journal(options.journal)
    if options.suite:
        return _by_the_suite([m for m in chosen if not _caught(outcomes.get(m.key))], options)
    if not options.table:
        tried = {k for k, o in outcomes.items() if not (options.again and not _caught(o))}
        _judge([m for m in chosen if m.key not in tried], outcomes, options)
    tried_ones = [m for m in chosen if m.key in outcomes]
    print(tables(tried_ones, outcomes, len(chosen)))
    return 1 if any(_open(m, outcomes) for m in tried_ones) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mutate-order",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sample", type=int, help="try only so many, sampled at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--file", choices=FILES, action="append", help="which reference (all)")
    parser.add_argument("--operator", choices=OPERATORS, action="append", help="which kind (all)")
    parser.add_argument("--only", default="", help="only those whose name contains this")
    parser.add_argument("--most", type=int, default=ALL, help=f"executions of a program ({ALL})")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / "order-mutants.jsonl")
    parser.add_argument("--again", action="store_true", help="try again those not caught before")
    parser.add_argument("--fresh", action="store_true", help="ignore the outcomes of earlier runs")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    parser.add_argument("--table", action="store_true", help="only print what the log says")
    parser.add_argument("--suite", action="store_true", help="tests and machines on what is left")
    return parser


def operator_of(mutation: Mutation) -> str:
    """The name of the operator that made a mutation."""
    return mutation.what.partition(":")[0]


def _judge(todo: list[Mutation], outcomes: Outcomes, options: argparse.Namespace) -> None:
    for system in dict.fromkeys(system_of(m.file) for m in todo):
        profiles(system or "")  # once, and not in each process
    most = str(options.most)
    rows = ((m.file, m.source, block_name(m.file, m.path), most) for m in todo)
    judged = judge_all(rows, options.jobs, LIMIT, judged_exhaustively)
    with open_journal(options.journal, options.fresh) as out, progress_bar() as progress:
        task = progress.add_task("mutants of order", total=len(todo))
        for n, outcome in judged:
            outcomes[todo[n].key] = outcome
            out.write(journal_line(todo[n], outcome))
            out.flush()
            progress.advance(task)


def _by_the_suite(left: list[Mutation], options: argparse.Namespace) -> int:
    """Run tests and machines on what no schedule caught, and print what they say."""
    journal = options.journal.with_suffix(".suite.jsonl")
    known = {} if options.fresh else read_journal(journal)
    todo = [m for m in left if m.key not in known]
    with open_journal(journal, options.fresh) as out:
        for n, outcome in judge_all(((m.file, m.source) for m in todo), options.jobs):
            known[todo[n].key] = outcome
            out.write(journal_line(todo[n], outcome))
            out.flush()
    for m in left:
        outcome = known[m.key]
        print(f"{outcome.outcome:9}  {m.name}  {outcome.by}")
    counts = Counter(known[m.key].outcome for m in left)
    print(", ".join(f"{n} {what}" for what, n in counts.most_common()))
    return 0


# ---- the tables


def _caught(outcome: MutantOutcome | None) -> bool:
    return outcome is not None and outcome.outcome == "caught"


def _open(mutation: Mutation, outcomes: Outcomes) -> bool:
    """Whether nothing caught it and nothing explains why."""
    return not _caught(outcomes[mutation.key]) and mutation.name not in ORDER_EQUIVALENT


def caught_by(outcome: MutantOutcome) -> str:
    """What caught a mutant: a property, ``outcome``, or the end or exception that the explorer names."""
    return re.sub(r" in \S+$", "", outcome.by)


def tables(mutants: list[Mutation], outcomes: Outcomes, chosen: int) -> str:
    """The tables by file, by operator and by what caught them, and the list of those that nothing caught."""
    lines = [f"{len(mutants)} of {chosen} tried.", ""]
    lines += _scores("file", [(m.file, m) for m in mutants], outcomes)
    lines += ["", *_scores("operator", [(operator_of(m), m) for m in mutants], outcomes)]
    counts = Counter(caught_by(outcomes[m.key]) for m in mutants if _caught(outcomes[m.key]))
    lines += ["", "| caught by | mutants |", "|---|---|"]
    lines += [f"| {by} | {n} |" for by, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))]
    for title, of in (("Open", _open), ("Caught, though listed as equivalent", _caught_equivalent)):
        found = [m for m in mutants if of(m, outcomes)]
        lines += ["", f"{title}: {len(found)}", ""]
        lines += [f"- `{m.name}` (line {m.line}): {_left(outcomes[m.key])}" for m in found]
    return "\n".join(lines)


def _caught_equivalent(mutation: Mutation, outcomes: Outcomes) -> bool:
    return mutation.name in ORDER_EQUIVALENT and _caught(outcomes[mutation.key])


def _left(outcome: MutantOutcome) -> str:
    return f"{outcome.outcome}{f', {outcome.by}' if outcome.by else ''}"


def _scores(title: str, rows: Iterable[tuple[str, Mutation]], outcomes: Outcomes) -> list[str]:
    """A table of scores: one row for each first part of a pair, and one for all."""
    groups: dict[str, list[Mutation]] = {}
    for group, m in rows:
        groups.setdefault(group, []).append(m)
    lines = [
        f"| {title} | mutants | caught | equivalent | out of time | capped | survived | score |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for group, mine in [*sorted(groups.items()), ("all", [m for g in groups.values() for m in g])]:
        caught = sum(_caught(outcomes[m.key]) for m in mine)
        left = [m for m in mine if _open(m, outcomes)]
        ends = Counter(outcomes[m.key].outcome for m in left)
        same = len(mine) - caught - len(left)
        score = f"{100 * caught / (len(mine) - same):.1f} %" if len(mine) > same else "none"
        numbers = (len(mine), caught, same, *(ends[e] for e in ENDS))
        lines.append(f"| {group} | {' | '.join(map(str, numbers))} | {score} |")
    return lines


ENDS = ("out of time", "inconclusive", "survived")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
