"""`spec/CONTRACTS.md`: which functions are pure, which have a contract, and what CrossHair says of it.

python -m seriatim_workshop.proofs.contracts_page spec/CONTRACTS.md
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from seriatim_workshop import page_tables
from seriatim_workshop.formal import manifest
from seriatim_workshop.proofs import contract_properties
from seriatim_workshop.proofs.pure import PureFunction, pure
from seriatim_workshop.proofs.run import REFERENCE, contracts

MODELS = Path(__file__).parents[2] / "seriatim_models"

NUMBERS = frozenset({"int", "bool", "float", "None"})

REQUEST = "writes numbers into a request"
SHOWN = "is how a number is shown or drawn"
OWN = {
    "seriatim.log._channel_state": "takes what JSON holds, to any depth; tested with generated states",
    "seriatim.log._parking_state": "takes what JSON holds, to any depth; tested with generated states",
    "seriatim.log._topic_state": "takes what JSON holds, to any depth; tested with generated states",
    "seriatim.log.checksum": "is zlib's, into which CrossHair does not see; tested with every cut of a record",
    "seriatim.log.record_bytes": "has zlib's checksum in it; tested with generated payloads",
    "seriatim.message.Message.__post_init__": "only refuses: `immediate` and delayed at once, which has a test",
    "seriatim.queue.State.__repr__": "is how a state is shown",
    "seriatim_models.explorer.trace.foata.digest_of": "cuts a sum to 16 bytes: there is nothing else to say",
    "seriatim_models.pipeline.audit.metrics.bound": "raises 2 to a fraction, which CrossHair does not compute",
    "seriatim_models.cli.stream_ui.made_again": "is how a number is shown",
    "seriatim_models.conformance.reference._weight": "returns what it is given",
    "seriatim_models.conformance.shapes._consumer": REQUEST,
    "seriatim_models.conformance.vector_scripts._exclusive": REQUEST,
    "seriatim_models.conformance.vector_scripts._get": REQUEST,
    "seriatim_models.conformance.vector_scripts._nack": REQUEST,
    "seriatim_models.conformance.vector_scripts._publish": REQUEST,
    "seriatim_models.matrix.work.performer": "makes a function",
    "seriatim_models.programs.fair.exits": "ends as a faulty client does, on purpose",
    "seriatim_models.programs.fair.fails": "fails as a faulty client does, on purpose",
    "seriatim_models.properties.blackbox.at_rest._least": SHOWN,
    "seriatim_models.properties.blackbox.in_time._ms": SHOWN,
    "seriatim_models.report.interleaving_text._steps": SHOWN,
    "seriatim_models.report.timeline._x": SHOWN,
}
"""Functions with a reason of their own. One that takes numbers alone has a contract or stands here."""


def types_of(function: PureFunction) -> list[str]:
    """The types of all that a function takes; '' where none is given."""
    arguments = function.node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every = [*named, *(each for each in (arguments.vararg, arguments.kwarg) if each is not None)]
    return [ast.unparse(each.annotation) if each.annotation is not None else "" for each in every]


def takes_numbers(function: PureFunction) -> bool:
    """Whether it takes numbers alone: then CrossHair may come to the end of its paths."""
    kinds = [kind.replace(" ", "").split("|") for kind in types_of(function)]
    return bool(kinds) and all(NUMBERS.issuperset(kind) for kind in kinds)


@cache
def claimed() -> dict[str, list[str]]:
    """Function -> the functions of `contract_properties` that call it."""
    tree = ast.parse(Path(contract_properties.__file__).read_text(encoding="utf-8"))
    full = {
        alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = [n.id for each in node.body for n in ast.walk(each) if isinstance(n, ast.Name)]
            for name in sorted(full.keys() & set(names) - {"deal"}):
                found.setdefault(full[name], []).append(node.name)
    return found


def reason(function: PureFunction) -> str:
    """Why a function has no contract. Raises `KeyError` if it takes numbers alone and no reason is known."""
    if function.name in OWN or takes_numbers(function):
        return OWN[function.name]
    if function.scalar:
        return "takes text, bytes or a sequence of any length, which have no end"
    return "takes objects of this project, which CrossHair does not make, or takes nothing"


def rows(functions: Sequence[PureFunction]) -> Iterator[str]:
    """A row for each function: its own contract, what is claimed of it, and the verdict or the reason."""
    properties, pinned = claimed(), {run.function: run for run in manifest.read().contracts}
    module = contract_properties.__name__
    for function in functions:
        own = [function.name] if function.name in pinned else []
        claims = [f"{module}.{name}" for name in properties.get(function.name, ())]
        verdicts = [pinned[name] for name in (*own, *claims)]
        if not verdicts:
            yield f"| `{function.name}` | none | | {reason(function)} |"
            continue
        shown = ", ".join(
            [*(["its own"] if own else []), *(f"`{c.rpartition('.')[2]}`" for c in claims)]
        )
        counts = Counter(run.verdict for run in verdicts)
        said = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items(), reverse=True))
        why = "; ".join(run.says for run in verdicts if run.verdict == "open")
        yield f"| `{function.name}` | {shown} | {said} | {why} |"


def with_contract(functions: Sequence[PureFunction]) -> int:
    """How many of them have a contract, or something that is claimed of them."""
    properties = claimed()
    return sum(bool(contracts(f.node)) or f.name in properties for f in functions)


HEAD = """# Contracts of pure functions

Generated: `python -m seriatim_workshop.proofs.contracts_page spec/CONTRACTS.md`. A function is *pure* if its text shows
that it does nothing but compute its result (`proofs/pure.py` says how that is decided; what it cannot see it does not
call pure). A *contract* is deal's, on the function itself, or a function of `proofs/contract_properties.py` that calls
it and says what must hold; `make prove` lets CrossHair look for arguments that break it.
*Proved*: confirmed over all paths, so for all arguments that the contract allows. *Open*: not refuted, with the reason.
"""


def page() -> str:
    """The whole page."""
    reference, models = pure(REFERENCE), pure(MODELS)
    named = [f for f in models if takes_numbers(f) or f.name in claimed()]
    others = [f for f in models if f not in named]
    table = ["| function | contract | CrossHair | why not, or why open |", "|---|---|---|---|"]
    lines = [
        HEAD,
        f"## `seriatim`: {len(reference)} pure functions, {with_contract(reference)} with a contract",
        "",
        *table,
        *rows(reference),
        "",
        f"## `seriatim_models`: {len(models)} pure functions, {with_contract(models)} with a contract",
        "",
        "By name those that take numbers alone, or have a contract; the others by package.",
        "",
        *table,
        *rows(named),
        "",
        "| package | pure functions | why they have no contract |",
        "|---|---:|---|",
    ]
    counts = Counter((".".join(f.name.split(".")[:2]), reason(f)) for f in others)
    lines += [f"| `{package}` | {n} | {why} |" for (package, why), n in sorted(counts.items())]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(
        page_tables.main(
            "python -m seriatim_workshop.proofs.contracts_page",
            "Write spec/CONTRACTS.md, the list of pure functions and of their contracts.",
            lambda _: page(),
            sys.argv[1:],
        )
    )
