"""Symbolic execution of every pure function of the reference that has a contract: `make prove`.

CrossHair looks at each function with symbolic arguments. "Confirmed over all paths" means that it tried every path and
that the solver found no argument that breaks the contract: for that function the contract is proved.
Where the paths do not come to an end, "not refuted in N s" is all that is known.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from seriatim_models.supervisor import supervised
from seriatim_workshop.formal import manifest

REFERENCE = Path(__file__).parents[3] / "reference"
MODELS = Path(__file__).parents[2]
"""The root of this package; only its `contract_properties` are looked at."""
SECONDS = 20


OPEN = {
    "seriatim.queue.legal": "takes any strings as names of states, which have no end; "
    "over the states that there are `legal_is_the_propertys_table` is proved",
    "seriatim.broker.settled_by": "takes lists of any length, which have no end; "
    "for two outstanding deliveries `two_outstanding_are_settled_right` is proved",
    "seriatim.log.segment_name": "writes a number as text, for which CrossHair tries one number after the other; "
    "100,000,000 of them are too many",
}
"""What is not proved, and why not."""

WITHOUT = {
    "seriatim.__init__": "it looks names up among the entry points of the installed package",
    "seriatim.host": "`operation` is not pure: it makes a method record its call and its return",
    "seriatim.log": "its other functions read or write the storage that they are given, take what JSON holds, "
    "or compute checksums by zlib, into which CrossHair does not see; "
    "they are tested with generated payloads, and with every cut of a record",
}
"""The modules whose functions have no contract, and why not."""


@dataclass(frozen=True)
class Function:
    """A function that promises something: `target` is its name as CrossHair takes it."""

    target: str
    contracts: tuple[str, ...]
    promises: bool
    """Whether any of them says something about the result."""


@dataclass(frozen=True)
class ProofResult:
    """What came of looking at one function."""

    function: Function
    verdict: str
    """proved, open or refuted"""
    words: str


def contracts(node: ast.FunctionDef) -> tuple[str, ...]:
    """The contracts of a function, by the names that deal gives them."""
    calls = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return tuple(
        c.attr
        for c in calls
        if isinstance(c, ast.Attribute) and isinstance(c.value, ast.Name) and c.value.id == "deal"
    )


def without_contract(root: Path = REFERENCE) -> Iterator[str]:
    """Every function of a module that has no contract, by its full name."""
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not contracts(node):
                yield f"{module}.{node.name}"


def functions(root: Path = REFERENCE, pattern: str = "*.py") -> Iterator[Function]:
    """Every function of a module with a contract, be it only that it is pure."""
    for path in sorted(root.rglob(pattern)):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and (found := contracts(node)):
                promises = not {"post", "ensure"}.isdisjoint(found)
                yield Function(f"{module}.{node.name}", found, promises)


def prove(function: Function, seconds: float = SECONDS, root: Path = REFERENCE) -> ProofResult:
    """Let CrossHair look at one function for a while."""
    if not function.promises:
        return ProofResult(function, "open", "promises nothing of its result")
    done = subprocess.run(
        supervised(
            [
                *(sys.executable, "-m", "crosshair", "check", function.target),
                "--analysis_kind=deal",
                "--report_all",
                f"--per_condition_timeout={seconds}",
                f"--per_path_timeout={seconds}",
            ]
        ),
        capture_output=True,
        text=True,
        cwd=root,
        check=False,
    )
    printed = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    words = [line.split(": ", 2)[-1].strip() for line in printed]
    if done.returncode or any(": error:" in line for line in printed):
        return ProofResult(function, "refuted", "; ".join(words) or f"exit code {done.returncode}")
    if printed and all("Confirmed over all paths" in line for line in printed):
        return ProofResult(function, "proved", "confirmed over all paths")
    return ProofResult(function, "open", f"not refuted in {seconds:g} s: {'; '.join(words)}")


def lint(root: Path = REFERENCE) -> tuple[int, str]:
    """Run deal's own linter over the reference; return its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "deal", "lint", str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def contract_run(outcome: ProofResult) -> manifest.ContractRun:
    """What is kept of an outcome: of an open one the reason, and never how long it took."""
    target, says = outcome.function.target, outcome.words
    if outcome.verdict == "open":
        says = OPEN.get(target, "why is not known")
    return manifest.ContractRun(target, "+".join(outcome.function.contracts), outcome.verdict, says)


def line(outcome: ProofResult) -> str:
    """One function in one line of 80 columns; what is not proved has its reason below."""
    run = contract_run(outcome)
    head = f"  {run.function:66.66} {run.verdict}"
    reason = textwrap.fill(run.says, 79, initial_indent="      ", subsequent_indent="      ")
    return head if run.verdict == "proved" else f"{head}\n{reason}"


def main(arguments: list[str]) -> int:
    """Prove all contracts and print a table; return 0, or 1 if one was refuted or the linter complains.

    Raises SystemExit with code 2 if the arguments are wrong, and with 0 for `--help`.
    """
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.proofs.run",
        description="Run CrossHair on every pure function of the reference that has a contract, and deal's linter.",
        epilog="The exit code is 1 if a contract was refuted or the linter complains.",
    )
    parser.add_argument(
        "seconds",
        type=float,
        nargs="?",
        default=SECONDS,
        metavar="SECONDS",
        help=f"the most for each condition of a function ({SECONDS})",
    )
    parser.add_argument(
        "--pin", action="store_true", help="write the outcomes into spec/manifest.json"
    )
    asked = parser.parse_args(arguments)
    seconds = asked.seconds
    outcomes = [prove(f, seconds) for f in functions()]
    outcomes += [prove(f, seconds, MODELS) for f in functions(MODELS, "contract_properties.py")]
    for o in outcomes:
        print(line(o))
    runs = [contract_run(o) for o in outcomes]
    pinned = manifest.read()
    if asked.pin:
        manifest.write(replace(pinned, contracts=runs))
    was = {run.function: run.verdict for run in pinned.contracts}
    for run in runs:
        if not asked.pin and was.get(run.function) != run.verdict:
            print(f"{run.function} is {run.verdict}; in spec/manifest.json {was.get(run.function)}")
    proved = sum(o.verdict == "proved" for o in outcomes)
    refuted = sum(o.verdict == "refuted" for o in outcomes)
    code, printed = lint()
    print(f"{printed}\n" if code else "", end="")
    print(
        f"{len(outcomes)} functions: {proved} confirmed over all paths, {refuted} refuted; "
        f"deal lint: {'clean' if not code else 'see above'}"
    )
    return 1 if refuted or code or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
