"""The tables of `spec/README.md` that are made from the systems, the models and the pages of what was run.

`python -m seriatim_workshop.formal.page spec/README.md` writes them, `--check` compares.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from seriatim_workshop.formal import SPEC, coverage, manifest, theory
from seriatim_workshop.formal.assumptions import ASSUMPTIONS, Assumption
from seriatim_workshop.formal.pairs import PAIRS
from seriatim_workshop.formal.theory import TransitionSystem
from seriatim_workshop.page_tables import main as renew_page
from seriatim_workshop.page_tables import replaced

END = "<!-- end of table -->"


def begin(what: str) -> str:
    """Return how the comment begins that stands before a table."""
    return f"<!-- {what}: python -m seriatim_workshop.formal.page spec/README.md -->"


@dataclass(frozen=True)
class ModelHead:
    """What the head of a Promela model says of it."""

    file: str
    title: str
    flags: dict[str, str]
    """Each broken variant's or configuration's flag, without -D, and what it does."""
    bounds: tuple[str, ...]
    """Each bound with the reason why it is enough."""

    def rules(self) -> Iterator[tuple[int, str, str]]:
        """Each rule of the reference that a broken variant breaks: its number, the flag, what the flag does."""
        for flag, says in self.flags.items():
            for number in re.findall(r"rule (\d)", says):
                yield int(number), flag, re.sub(r" *\((?:rule \d|F-\d+|[;, ])+[^()]*\)", "", says)


def head(file: str) -> ModelHead:
    """Read the head of a model."""
    text = (SPEC / "promela" / file).read_text("utf-8").partition("*/")[0]
    lines = [line.removeprefix("/*").removeprefix(" *").rstrip() for line in text.splitlines()]
    flags: dict[str, str] = {}
    bounds: list[str] = []
    flag = ""
    for line in lines[1:]:
        named = re.match(r"   -D(\w+)[^ ]*( -D\S+| with -D\S+)*  +(.*)", line) or re.match(
            r"   -D(\w+)( -D\S+)* (.*)", line
        )
        if named:
            flag = named[1]
            flags[flag] = named[3]
        elif line.startswith("   - "):
            flag = ""
            bounds.append(line[5:])
        elif bounds and line.startswith("     "):
            bounds[-1] += " " + line.strip()
        elif flag and line.startswith("      "):
            flags[flag] += " " + line.strip()
        else:
            flag = ""
    return ModelHead(file, lines[0].strip(), flags, tuple(bounds))


def models() -> list[ModelHead]:
    """The head of every model, in the order of the manifest."""
    return [head(file) for file in dict.fromkeys(run.file for run in manifest.read().runs)]


# ---- the tables


def overview() -> str:
    """What is proved of what, how far, on what assumptions, and how it is tied to the code."""
    rows = [
        "| what | proves | how far | assumes | bound to the code by |",
        "|---|---|---|---|---|",
    ]
    rows += [_system_row(theory.load(name)) for name in theory.SYSTEMS]
    rows += [_model_row(model) for model in models()]
    rows.append(_contracts_row())
    return "\n".join([*rows, "", followed_share()])


def _system_row(system: TransitionSystem) -> str:
    claims = [*system.safety.values(), *system.steps.values()]
    assumed = [str(n) for n, each in enumerate(ASSUMPTIONS, 1) if system.name in each.systems]
    programs = _programs_followed()[system.name]
    cells = (
        f"z3, `{system.name}`: {len(system.actions)} actions, {len(system.invariants)} invariants",
        f"{_ids(c.property for c in claims)}: {len(claims)} claims",
        "any number of members",
        ", ".join(assumed),
        f"{programs} programs followed",
    )
    return f"| {' | '.join(cells)} |"


def _model_row(model: ModelHead) -> str:
    runs = [run for run in manifest.read().runs if run.file == model.file]
    holds = [run for run in runs if run.kind == "holds"]
    live = sum(run.fair or run.any_scheduler for run in holds)
    pairs = sum(pair.file == model.file for pair in PAIRS)
    cells = (
        f"Spin, `{model.file}`: {len(runs)} runs",
        f"{_ids(run.property for run in holds)}: {len(holds)} claims, {live} of liveness",
        f"its bounds, below; {max(run.states for run in holds):,} states",
        _everywhere(),
        f"{pairs} set{'s' * (pairs != 1)} of outcomes",
    )
    return f"| {' | '.join(cells)} |"


def _everywhere() -> str:
    """The number of the first thing that is assumed of all: the memory."""
    return next(str(n) for n, each in enumerate(ASSUMPTIONS, 1) if each.systems == theory.SYSTEMS)


def _contracts_row() -> str:
    verdicts = Counter(one.verdict for one in manifest.read().contracts)
    total = sum(verdicts.values())
    return (
        f"| CrossHair: {total} functions | their contracts "
        f"| {verdicts['proved']} over all paths; {total - verdicts['proved']} open, with reasons "
        "| | it runs the code itself |"
    )


def _ids(properties: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(properties))


def _page() -> list[list[str]]:
    page = (SPEC / "FOLLOWED.md").read_text("utf-8").partition("## Programs")[2]
    table = page.partition("\n## ")[0]
    return [
        [c.strip() for c in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("| ")
    ]


def _programs_followed() -> Counter[str]:
    return Counter(system for row in _page() if row[0] != "all" for system in row[4].split())


def followed_share() -> str:
    """A sentence: how much of the code's executions the systems cover."""
    *programs, total = _page()[1:]
    whole = sum(not row[1].endswith("+") for row in programs)
    return (
        f"Of the shared writes of {total[1]} executions of {len(programs)} programs "
        f"({whole} of them in every schedule), {total[3]} are steps of a system; "
        "the rest are stutters that a system knows, or named as outside in "
        "[FOLLOWED.md](FOLLOWED.md). The numbers of the column *assumes* are those of the list below."
    )


def assumptions() -> str:
    """Everything that is assumed, in one list, with who shows it."""
    rows = ["| | assumed in | what | shown by |", "|---:|---|---|---|"]
    for number, each in enumerate(ASSUMPTIONS, 1):
        rows.append(f"| {number} | {_where(each)} | {each.what} | {each.shown_by} |")
    return "\n".join(rows)


def _where(each: Assumption) -> str:
    return each.where or "all"


def rules() -> str:
    """For each rule of `seriatim.queue` the broken variants of the models, and the claims that refute them."""
    rows = ["| rule | model | broken variant | refuted by |", "|---:|---|---|---|"]
    found = []
    for model in models():
        for number, flag, says in model.rules():
            refuted = [
                run.claim or "assertions"
                for run in manifest.read().runs
                if run.file == model.file and run.kind == "fails" and f"-D{flag}" in run.flags
            ]
            claims = ", ".join(f"`{claim}`" for claim in dict.fromkeys(refuted))
            found.append((number, f"| {number} | `{model.file}` | `{flag}`: {says} | {claims} |"))
    return "\n".join([*rows, *(row for _, row in sorted(found, key=lambda pair: pair[0]))])


def bounds() -> str:
    """Each bound of each model, and why it is enough."""
    rows = ["| model | bound | why it is enough |", "|---|---|---|"]
    for model in models():
        for bound in model.bounds:
            what, _, why = bound.partition(": ")
            rows.append(f"| `{model.file}` | {what} | {why} |")
    return "\n".join(rows)


TABLES = {
    "overview": overview,
    "promises": coverage.table,
    "assumptions": assumptions,
    "rules": rules,
    "bounds": bounds,
}


def renewed(page: str) -> str:
    """Return the page with its tables made anew."""
    for name, table in TABLES.items():
        page = replaced(page, begin(name), END, table())
    return page


if __name__ == "__main__":
    sys.exit(
        renew_page(
            "python -m seriatim_workshop.formal.page",
            "Write the tables of what is proved into spec/README.md.",
            renewed,
            sys.argv[1:],
        )
    )
