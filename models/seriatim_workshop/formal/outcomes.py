"""Compare the outcomes of the Promela models with those of the same programs over the reference.

python -m seriatim_workshop.formal.outcomes                  # all pairs; exit 1 on any difference
python -m seriatim_workshop.formal.outcomes immediate-race   # some, by the beginning of a name

Both sides cover every interleaving independently. A difference is a mistake on one side:
then an execution is printed that ends in an outcome which the other side does not have, and one of the other side's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from seriatim_models.explorer import Dpor, World, explore
from seriatim_workshop.formal import pan, tools, trail
from seriatim_workshop.formal.manifest import SpinRun
from seriatim_workshop.formal.pairs import PAIRS, Pair


class Incomplete(Exception):
    """The explorer did not see everything, so there is nothing to compare."""


@dataclass(frozen=True)
class Compared:
    """Both sets of outcomes."""

    pair: Pair
    spin: dict[str, int]
    """Outcomes in words, with the model's number."""
    python: frozenset[str]
    seconds: float

    @property
    def only_spin(self) -> list[str]:
        """Outcomes that only Spin finds."""
        return sorted(self.spin.keys() - self.python)

    @property
    def only_python(self) -> list[str]:
        """Outcomes that only the explorer finds."""
        return sorted(self.python - self.spin.keys())

    @property
    def agree(self) -> bool:
        """Whether both sets are the same, and not empty."""
        return bool(self.spin) and self.spin.keys() == self.python


def compare(pair: Pair, folder: Path) -> Compared:
    """Compute both sets. Raises `Incomplete` if the explorer did not come to an end."""
    began = time.perf_counter()
    spin = {pair.words(code): code for code in pan.outcomes(pair.file, pair.flags, folder)}
    found = explore(
        pair.python(), Dpor(), name=pair.name, keep_going=True, shrink=0, count_traces=False
    )
    if not found.exhausted:
        raise Incomplete(f"{pair.name}: {found.why}")
    return Compared(pair, spin, frozenset(found.outcomes), time.perf_counter() - began)


def python_execution(pair: Pair, outcome: str) -> str:
    """An execution of the reference that ends so, as short as shrinking gets it."""
    program = pair.python()

    def run(world: World) -> None:
        program(world)
        world.at_end(lambda: f"outcome: {outcome}" if outcome in world.results else None)

    found = explore(run, Dpor(), name=pair.name)
    return f"over the reference, {found.counterexample or found.why}"


def spin_execution(pair: Pair, outcome: str, code: int, folder: Path) -> str:
    """A shortest execution of the model that ends so."""
    source, account = pan.reach(pair.file, pair.flags, folder, code)
    run = SpinRun(
        pair.file, pair.file, pair.flags, None, "outcome", "fails", outcome, False, 0, 0, 0
    )
    case = trail.readable(run, source, account)
    return f"in Promela, {case}".split("\n\nreplay:")[0]


def explain(found: Compared, folder: Path) -> str:
    """The difference, with one execution of each side."""
    pair = found.pair
    wrong, other = (
        (found.only_spin[0], next(iter(sorted(found.python)), ""))
        if found.only_spin
        else (next(iter(found.spin), ""), found.only_python[0])
    )
    lines = [
        f"{pair.name} and {pair.file} {' '.join(pair.flags)} differ in {pair.description}.",
        *(f"  only Spin finds: {o}" for o in found.only_spin),
        *(f"  only the explorer finds: {o}" for o in found.only_python),
    ]
    if wrong:
        lines += ["", spin_execution(pair, wrong, found.spin[wrong], folder)]
    if other:
        lines += ["", python_execution(pair, other)]
    return "\n".join(lines)


def table(compared: list[Compared]) -> Table:
    """One row a pair."""
    rows = Table(title="Outcomes in Promela and in Python", title_justify="left", box=None)
    for name in ("program", "model", "outcome", "found by both"):
        rows.add_column(name, overflow="fold")
    rows.add_column("seconds", justify="right")
    for c in compared:
        outcomes = "; ".join(sorted(c.python & c.spin.keys())) or "nothing"
        mark = "" if c.agree else "[red]DIFFER[/] "
        model = " ".join([c.pair.file, *(f.removeprefix("-D") for f in c.pair.flags)])
        rows.add_row(c.pair.name, model, c.pair.description, mark + outcomes, f"{c.seconds:.1f}")
    return rows


def main(args: list[str] | None = None) -> int:
    """Compare the pairs that are named (all); 1 if one differs."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.outcomes",
        description="Compare the sets of final outcomes of each small program that exists in Promela and in Python. "
        "Exit code 1: they differ; 2: Spin or gcc is missing; 3: one side did not come to an end.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a pair, or how its name begins")
    asked = parser.parse_args(args)
    console = Console()
    pairs = [p for p in PAIRS if not asked.names or p.name.startswith(tuple(asked.names))]
    if not pairs:
        print(f"no pair is called {' '.join(asked.names)}; one is {PAIRS[0].name}", file=sys.stderr)
        return 2
    try:
        tools.ensure()
    except tools.Missing as why:
        print(why, file=sys.stderr)
        return 2
    compared, differences = [], []
    with tempfile.TemporaryDirectory(prefix="seriatim-outcomes-") as name:
        for n, pair in enumerate(pairs, 1):
            try:
                found = compare(pair, Path(name))
            except (Incomplete, pan.SpinFailed) as why:
                print(why, file=sys.stderr)
                return 3
            compared.append(found)
            mark = " " if found.agree else "!"
            both = f"{len(found.python)} outcomes, {'the same' if found.agree else 'not the same'}"
            print(f"{mark} {n:3}/{len(pairs)} {pair.name:44.44} {both}", flush=True)
            if not found.agree:
                differences.append(explain(found, Path(name)))
        if asked.names:
            console.print(table(compared))
    for difference in differences:
        print(f"\n{difference}")
    console.print(f"{len(compared)} pairs, {len(differences)} differ")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
