"""The tables of the mutants of order in `spec/MUTATION.md`.

`python -m seriatim_workshop.mutation.order_tables spec/MUTATION.md` makes them from `order_outcomes.jsonl` beside this
file, which `order_run --record` writes, and from the list of the equivalent ones.

Caught is what a property reports, or the outcome oracle (clients see what no schedule of the right reference shows
them), or what ends otherwise than the right reference ever does: a deadlock, a livelock, a data race, an exception.
The score is of those that were tried and are not equivalent; out of time and capped are not caught.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from seriatim_workshop.mutation.equivalent import ORDER_EQUIVALENT
from seriatim_workshop.mutation.operators import FILES, Mutation
from seriatim_workshop.mutation.order import commuting_mutations, order_mutations
from seriatim_workshop.mutation.run import MutantOutcome
from seriatim_workshop.page_tables import main as renew_page
from seriatim_workshop.page_tables import replaced

OUTCOMES = Path(__file__).with_name("order_outcomes.jsonl")
"""A line for each mutant that was tried."""
BEGIN = "<!-- order: python -m seriatim_workshop.mutation.order_tables spec/MUTATION.md -->"
END = "<!-- end of order -->"
ENDS = ("out of time", "inconclusive", "survived")

Outcomes = Mapping[str, MutantOutcome]
"""By `Mutation.key`, which changes when the function in which the mutant is does."""


# ---- the file of outcomes


def recorded() -> dict[str, MutantOutcome]:
    """Return the outcomes that were recorded, by key."""
    lines = map(json.loads, OUTCOMES.read_text(encoding="utf-8").splitlines())
    return {d["key"]: MutantOutcome(d["outcome"], d["by"], 0.0) for d in lines}


def record(outcomes: Outcomes) -> None:
    """Put outcomes into the file, in place of earlier ones of the same mutants; a mutant that is no more goes."""
    merged = {**(recorded() if OUTCOMES.exists() else {}), **outcomes}
    every = [m for file in FILES for m in order_mutations(file) if m.key in merged]
    rows = [
        {"key": m.key, "name": m.name, "outcome": merged[m.key].outcome, "by": merged[m.key].by}
        for m in every
    ]
    OUTCOMES.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


# ---- what an outcome says


def operator_of(mutation: Mutation) -> str:
    """Return the name of the operator that made a mutation."""
    return mutation.what.partition(":")[0]


def caught(outcome: MutantOutcome | None) -> bool:
    """Return whether a mutant was caught."""
    return outcome is not None and outcome.outcome == "caught"


def is_open(name: str, outcome: MutantOutcome) -> bool:
    """Return whether nothing caught a mutant and nothing explains why."""
    return not caught(outcome) and name not in ORDER_EQUIVALENT


def caught_by(outcome: MutantOutcome) -> str:
    """Return what caught a mutant: a property, ``outcome``, or the end or exception that the explorer names."""
    return outcome.by.partition(" in ")[0].removesuffix(" outside the threads")


def kind(outcome: MutantOutcome) -> str:
    """Return whether a mutant was caught by a ``property``, by the ``outcome`` oracle, or by an ``end``."""
    by = caught_by(outcome)
    if re.fullmatch(r"[A-Z]+-\d+", by):
        return "property"
    return "outcome" if by == "outcome" else "end"


# ---- the tables


def tables(tried: Sequence[Mutation], outcomes: Outcomes, of: Mapping[str, int]) -> str:
    """Return the tables by file, by operator and by what caught them, and the lists of those that nothing caught.

    `of` is how many there are of each file.
    """
    lines = _scores("file", tried, outcomes, lambda m: f"`{m.file}.py`", of)
    lines += ["", *_scores("operator", tried, outcomes, lambda m: f"`{operator_of(m)}`", {})]
    counts = Counter(caught_by(outcomes[m.key]) for m in tried if caught(outcomes[m.key]))
    lines += ["", "| caught by | mutants |", "|---|---|"]
    lines += [f"| {by} | {n} |" for by, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))]
    for end, title in (
        ("out of time", "Out of time"),
        ("inconclusive", "Open, and not every check was run to its end"),
        ("survived", "Open, and every check that comes to the change was run to its end"),
    ):
        left = [m for m in tried if is_open(m.name, outcomes[m.key])]
        lines += _listed(title, [m for m in left if outcomes[m.key].outcome == end], outcomes)
    wrong = [m for m in tried if m.name in ORDER_EQUIVALENT and caught(outcomes[m.key])]
    if wrong:
        lines += _listed("Caught, though listed as equivalent", wrong, outcomes)
    return "\n".join(lines)


def _listed(title: str, mutants: Sequence[Mutation], outcomes: Outcomes) -> list[str]:
    lines = ["", f"{title}: {len(mutants)}", ""]
    for m in mutants:
        by = outcomes[m.key].by.strip().rstrip(";")
        lines.append(f"- `{m.name}`{f': {by}' if by else ''}")
    return lines if mutants else lines[:-1]


def _scores(
    title: str,
    tried: Iterable[Mutation],
    outcomes: Outcomes,
    group_of: Callable[[Mutation], str],
    of: Mapping[str, int],
) -> list[str]:
    """Return a table of scores: one row for each group, and one for all."""
    groups: dict[str, list[Mutation]] = {}
    for m in tried:
        groups.setdefault(group_of(m), []).append(m)
    head = [title, *(["mutants"] if of else []), "tried", "property", "outcome", "end"]
    head += ["equivalent", "out of time", "capped", "survived", "score"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for group, mine in [*sorted(groups.items()), ("all", [m for g in groups.values() for m in g])]:
        kinds = Counter(kind(outcomes[m.key]) for m in mine if caught(outcomes[m.key]))
        left = [m for m in mine if is_open(m.name, outcomes[m.key])]
        ends = Counter(outcomes[m.key].outcome for m in left)
        due = kinds.total() + len(left)
        numbers = [sum(of.values()) if group == "all" else of[mine[0].file]] if of else []
        numbers += [len(mine), kinds["property"], kinds["outcome"], kinds["end"], len(mine) - due]
        numbers += [ends[e] for e in ENDS]
        score = f"{100 * kinds.total() / due:.1f} %" if due else "none"
        lines.append(f"| {group} | {' | '.join(map(str, numbers))} | {score} |")
    return lines


def equivalents() -> str:
    """Return the table of the mutants that are equivalent, each with its reason."""
    rows = [
        f"| `{name.replace('|', chr(92) + '|')}` | {why} |"
        for name, why in ORDER_EQUIVALENT.items()
    ]
    return "\n".join(["| equivalent | why |", "|---|---|", *rows])


def left_out(files: Iterable[str]) -> str:
    """Return a sentence with how many changes are not made, for the statements commute."""
    counts = {file: sum(1 for _ in commuting_mutations(file)) for file in files}
    rows = ", ".join(f"{n} of `{file}.py`" for file, n in counts.items() if n)
    return f"Not made, for the statements commute: {sum(counts.values())} ({rows})."


def renewed(page: str) -> str:
    """Return the page with its tables made anew."""
    every = {file: list(order_mutations(file)) for file in FILES if file != "host"}
    outcomes = recorded()
    tried = [m for mutants in every.values() for m in mutants if m.key in outcomes]
    of = {file: len(mutants) for file, mutants in every.items()}
    parts = [left_out(every), tables(tried, outcomes, of), equivalents()]
    return replaced(page, BEGIN, END, "\n\n".join(parts))


if __name__ == "__main__":
    sys.exit(
        renew_page(
            "order-tables", "Write the tables of the mutants of order.", renewed, sys.argv[1:]
        )
    )
