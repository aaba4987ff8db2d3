"""The table of the broker's mistakes in spec/SEEDS.md, made of the bug catalogue and of the mutants' origins.

python -m seriatim_workshop.broker_mistakes spec/SEEDS.md
python -m seriatim_workshop.broker_mistakes --check spec/SEEDS.md
"""

from __future__ import annotations

import sys

from seriatim_models.programs import MUTANTS
from seriatim_models.programs.bug_catalogue import BUG_CASES, NOT_SHOWN
from seriatim_workshop import page_tables

BEGIN, END = "<!-- mistakes:", "<!-- end of the mistakes -->"


def table() -> str:
    """One row a mistake: its number, the mutant with what breaks it where, or the reason why there is none."""
    rows = ["| bug | mutant | broken property | program |", "|---|---|---|---|"]
    for case in BUG_CASES:
        mutant = MUTANTS[case.mutant]
        bug = f"{case.bug} in kind" if case.alike else case.bug
        rows.append(f"| {bug} | `{mutant.id}` | {mutant.killed_by} | `{mutant.program}` |")
    rows += ["", "| bug | why no mutant shows it |", "|---|---|"]
    rows += [f"| {bug} | {why} |" for bug, why in NOT_SHOWN.items()]
    return "\n".join(rows)


def renewed(text: str) -> str:
    """Return the page's text with its table made anew."""
    return page_tables.replaced(text, BEGIN, END, table())


if __name__ == "__main__":
    sys.exit(
        page_tables.main(
            "python -m seriatim_workshop.broker_mistakes",
            "Write the table of the broker's mistakes in spec/SEEDS.md from the bug catalogue.",
            renewed,
            sys.argv[1:],
        )
    )
