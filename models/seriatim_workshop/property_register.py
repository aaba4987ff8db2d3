"""The table of `spec/PROPERTIES.md`, from the registries themselves.

python -m seriatim_workshop.property_register spec/PROPERTIES.md     # bring the file up to date
python -m seriatim_workshop.property_register --check FILE           # exit 1 if it is not
"""

from __future__ import annotations

import sys

from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.properties import PROPERTIES
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.whitebox.composites import COMPOSITES
from seriatim_workshop import page_tables

ORACLE = (
    "What the oracle judges other systems by. P16 to P19 read what a recorder inside shows, and are made of the\n"
    "properties above; all others read what clients see. "
    "`HISTORY.md` says how histories are written and who promises what."
)
"""Between the two tables."""

BEGIN, END = "<!-- register:", "<!-- end of register -->"


def table() -> str:
    """One row a property: id, sentence, source, kind, the programs that test it, the mutants that it must catch."""
    rows = [
        "| id | statement | source | kind | tested in | mutants caught |",
        "|---|---|---|---|---|---|",
    ]
    for p in PROPERTIES.values():
        programs = [x.id for x in PROGRAMS.values() if p.id in x.properties]
        mutants = [m.id for m in MUTANTS.values() if m.killed_by == p.id or p.id in m.also]
        cells = [p.id, p.sentence, p.source, p.kind, ", ".join(programs), ", ".join(mutants)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def oracle() -> str:
    """One row a property of the oracle: what it reads and keeps, its cost, and what may be judged apart."""
    rows = [
        "| id | statement | source | kind | a case takes | judged by | events read | kept from chunk to chunk | time |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for p in sorted((*BLACKBOX, *COMPOSITES), key=lambda p: int(p.id.removeprefix("P"))):
        reads = ", ".join(sorted(p.reads)) if p in BLACKBOX else "those of its parts"
        cells = [p.id, p.sentence, p.source, p.kind, p.case, p.scope, reads, p.keeps or "", p.time]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def renewed(text: str) -> str:
    """Return the register's text with its tables made anew."""
    return page_tables.replaced(text, BEGIN, END, f"{table()}\n\n{ORACLE}\n\n{oracle()}")


if __name__ == "__main__":
    sys.exit(
        page_tables.main(
            "python -m seriatim_workshop.property_register",
            "Write the tables of spec/PROPERTIES.md from the registries.",
            renewed,
            sys.argv[1:],
        )
    )
