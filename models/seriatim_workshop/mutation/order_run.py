"""Mistakes of order, judged: how many of them the closed programs and the matrix catch over every schedule.

`python -m seriatim_workshop.mutation.order_run [--file NAME] [--operator NAME] [--sample N --seed S] [--list]`:
a checkpoint log under build/ keeps what was tried, so that a run that was stopped goes on. At the end it prints two
tables in Markdown (`order_tables`). `--table` prints them from the log and tries nothing; `--record` puts the outcomes
into the file from which the page's tables are made. Who was not caught is tried again with `--again`, and with
more `--seconds` each.
`--suite` hands those to the tests and machines (`kill_suite`) and prints what they say of each; it does not count.
`seriatim.host` is below every schedule: the explorer has a host of its own. So its mutants are for `--suite` alone.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from seriatim_models.programs.mutant_modules import system_of
from seriatim_workshop.mutation.coverage import block_name, coverage_of
from seriatim_workshop.mutation.exhaustive import SECONDS, judged_exhaustively
from seriatim_workshop.mutation.operators import FILES, Mutation
from seriatim_workshop.mutation.order import OPERATORS, order_mutations
from seriatim_workshop.mutation.order_tables import (
    caught,
    is_open,
    kind,
    operator_of,
    record,
    tables,
)
from seriatim_workshop.mutation.run import (
    MutantOutcome,
    common_options,
    judge_all,
    keep,
    read_journal,
    sampled,
)
from seriatim_workshop.mutation.searching import ALL

JUDGED = [file for file in FILES if system_of(file) is not None]
"""The files whose mutants the explorer can run."""
LIMIT = 7200.0
"""Real seconds after which a process that judges is ended; its seconds of the processor end it before."""

Outcomes = dict[str, MutantOutcome]


def main(arguments: list[str]) -> int:
    """Judge the mutants of order that the arguments ask for, and print the tables."""
    options = _parser().parse_args(arguments)
    every = [m for file in options.file or JUDGED for m in order_mutations(file)]
    if options.operator:
        every = [m for m in every if operator_of(m) in options.operator]
    chosen = sampled([m for m in every if options.only in m.name], options)
    if options.list:
        return 0
    outcomes = {} if options.fresh else read_journal(options.journal)
    if options.suite:
        return _by_the_suite([m for m in chosen if not caught(outcomes.get(m.key))], options)
    if not options.table:
        tried = {k for k, o in outcomes.items() if not (options.again and is_due(o, options.ends))}
        _judge([m for m in chosen if m.key not in tried], outcomes, options)
    if options.record:
        record({m.key: outcomes[m.key] for m in chosen if m.key in outcomes})
    tried_ones = [m for m in chosen if m.key in outcomes]
    print(tables(tried_ones, outcomes, Counter(m.file for m in chosen)))
    return 1 if any(is_open(m.name, outcomes[m.key]) for m in tried_ones) else 0


def is_due(outcome: MutantOutcome, ends: bool) -> bool:
    """Return whether a mutant is tried again: nothing caught it, or with `ends` nothing that says what is wrong."""
    return not caught(outcome) or (ends and kind(outcome) == "end")


def _parser() -> argparse.ArgumentParser:
    parser = common_options("mutate-order", __doc__, "order-mutants.jsonl")
    parser.add_argument("--operator", choices=OPERATORS, action="append", help="which kind (all)")
    parser.add_argument("--most", type=int, default=ALL, help=f"executions of a program ({ALL})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the processor, for each")
    parser.add_argument(
        "--ends", action="store_true", help="with --again also those that only end otherwise"
    )
    parser.add_argument("--table", action="store_true", help="only print what the log says")
    parser.add_argument("--record", action="store_true", help="keep the outcomes for the page")
    parser.add_argument("--suite", action="store_true", help="tests and machines on what is left")
    return parser


def _judge(todo: list[Mutation], outcomes: Outcomes, options: argparse.Namespace) -> None:
    for system in dict.fromkeys(system_of(m.file) for m in todo):
        coverage_of(system or "")  # once, and not in each process
    most, seconds = str(options.most), str(options.seconds)
    rows = ((m.file, m.source, block_name(m.file, m.path), most, seconds) for m in todo)
    judged = judge_all(rows, options.jobs, LIMIT, judged_exhaustively)
    keep(todo, judged, outcomes, options.journal, options.fresh)


def _by_the_suite(left: list[Mutation], options: argparse.Namespace) -> int:
    """Run tests and machines on what no schedule caught, and print what they say."""
    journal = options.journal.with_suffix(".suite.jsonl")
    known = {} if options.fresh else read_journal(journal)
    todo = [m for m in left if m.key not in known]
    judged = judge_all(((m.file, m.source) for m in todo), options.jobs)
    keep(todo, judged, known, journal, options.fresh)
    for m in left:
        outcome = known[m.key]
        print(f"{outcome.outcome:9}  {m.name}  {outcome.by}")
    counts = Counter(known[m.key].outcome for m in left)
    print(", ".join(f"{n} {what}" for what, n in counts.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
