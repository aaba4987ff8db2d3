"""Wrong references by the hundred, made by rule: how many do the programs and the machines catch?

`python -m seriatim_models.machines.mutate [--sample N] [--seed S] [--list]`: a journal under build/ remembers what was
tried, so that a run that was stopped goes on, and a larger sample needs only the rest.

The tools that exist change the file in place, or know only the mutants that a test runner of theirs can switch on;
here a mutant is a module of its own in a process of its own, and nobody else sees it.

What is not changed: annotations, contracts, docstrings, `__repr__`, and what is only told (`record`, names, messages of
exceptions): a change there changes no behaviour of the queue.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = ("queue", "host")
LIMIT = 60
"""Seconds that judging one mutant may take; a mutant that goes round in circles for longer is caught by that."""

Path_ = tuple[tuple[str, int | None], ...]
"""The way from the root of a syntax tree to a node: name of a field, and index where it is a list."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
}
TOLD = ("record", "ValueError", "TypeError", "QueueMisuse")
"""Calls whose arguments only tell."""


@dataclass(frozen=True)
class Mutation:
    """One change of one reference."""

    file: str
    line: int
    what: str
    path: Path_
    new: ast.AST
    tree: ast.Module

    @property
    def source(self) -> str:
        """The whole mutated module."""
        changed = copy.deepcopy(self.tree)
        _put(changed, self.path, self.new)
        return ast.unparse(ast.fix_missing_locations(changed))

    @property
    def key(self) -> str:
        """Stays the same until the reference or the change does."""
        return hashlib.sha256(f"{self.file}\n{self.source}".encode()).hexdigest()[:16]


def mutations(file: str) -> Iterator[Mutation]:
    """Every mutation of `seriatim.<file>`."""
    text = (ROOT / "reference" / "seriatim" / f"{file}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    for path, node in _places(tree):
        for what, new in _changes(node):
            yield Mutation(file, node.lineno, what, path, new, tree)


def _places(root: ast.Module) -> Iterator[tuple[Path_, ast.expr | ast.stmt]]:
    """Every statement and expression that may be changed, with the way to it from the root."""

    def visit(node: ast.AST, path: Path_) -> Iterator[tuple[Path_, ast.expr | ast.stmt]]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args", "bases") and not (
                name == "args" and isinstance(node, ast.Call)
            ):
                continue
            children = value if isinstance(value, list) else [value]
            for n, child in enumerate(children):
                if not isinstance(child, ast.AST) or _silent(child):
                    continue
                at: Path_ = (*path, (name, n if isinstance(value, list) else None))
                if isinstance(child, ast.expr | ast.stmt):
                    yield at, child
                yield from visit(child, at)

    for n, top in enumerate(root.body):
        protocol = isinstance(top, ast.ClassDef) and any(
            isinstance(b, ast.Subscript | ast.Name) and "Protocol" in ast.unparse(b)
            for b in top.bases
        )
        if isinstance(top, ast.ClassDef | ast.FunctionDef) and not protocol:
            yield from visit(top, (("body", n),))


def _silent(node: ast.AST) -> bool:
    """What only tells, or is not run at all."""
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__repr__", "label")
    if isinstance(node, ast.Expr):
        node = node.value
        if isinstance(node, ast.Constant):
            return True
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in TOLD
    return False


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    shown = ast.unparse(node).splitlines()[0][:60]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARISONS[type(node.ops[0])]:
            new = copy.deepcopy(node)
            new.ops = [other()]
            yield f"{shown} -> {ast.unparse(new)}", new
    elif isinstance(node, ast.BoolOp):
        new_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"and/or swapped: {shown}", ast.BoolOp(new_op, node.values)
        for n in range(len(node.values)):
            rest = [v for m, v in enumerate(node.values) if m != n]
            new_value = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield f"without `{ast.unparse(node.values[n])}`: {shown}", new_value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"{shown} -> without not", node.operand
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield f"{shown} -> without minus", node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield f"+/- swapped: {shown}", ast.BinOp(node.left, op, node.right)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{shown} -> {not node.value}", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield f"{shown} -> {node.value + 1}", ast.Constant(node.value + 1)
    elif isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(
        node.test, ast.Compare | ast.Constant
    ):
        negated = copy.deepcopy(node)
        negated.test = ast.UnaryOp(ast.Not(), node.test)
        yield f"negated: {shown}", negated
    elif (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)) or isinstance(
        node, ast.Assign | ast.AugAssign | ast.Break | ast.Continue
    ):
        yield f"dropped: {shown}", ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None:
        yield f"{shown} -> dropped", ast.Pass()


def _put(root: ast.AST, path: Path_, new: ast.AST) -> None:
    node = root
    for name, n in path[:-1]:
        value = getattr(node, name)
        node = value if n is None else value[n]
    name, n = path[-1]
    if n is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[n] = new


# ---- judging, in a process of its own

JUDGE = """
import sys, types
file, text = sys.argv[1], sys.stdin.read()
import seriatim
name = f"seriatim.{file}"
module = types.ModuleType(name)
module.__file__ = f"<mutant of {name}>"
sys.modules[name] = module
try:
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    setattr(seriatim, file, module)
    from seriatim_models.machines import quick
except BaseException as error:
    print(f"does not load: {type(error).__name__}: {error}")
    sys.exit(1)
sys.exit(quick.main([]))
"""


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: caught, out of time (which is caught too), or survived."""

    fate: str
    by: str
    seconds: float


def judge(file: str, source: str, limit: float = LIMIT) -> Fate:
    """Run the quick programs and machines on a module's text."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-c", JUDGE, file],
            input=source,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Fate("out of time", "", round(limit, 1))
    seconds = round(time.monotonic() - started, 1)
    said = (done.stdout.strip() or done.stderr.strip()).splitlines()
    if done.returncode == 0:
        return Fate("survived", "", seconds)
    return Fate("caught", said[-1][:160] if said else f"exit code {done.returncode}", seconds)


# ---- the journal and the table


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__)
    parser.add_argument("--sample", type=int, help="try only so many, drawn by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", choices=FILES, action="append", help="queue, host (both)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / "mutants.jsonl")
    parser.add_argument("--again", action="store_true", help="try again who survived before")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    said = parser.parse_args(arguments)
    every = [m for file in said.file or FILES for m in mutations(file)]
    chosen = every
    if said.sample is not None and said.sample < len(every):
        chosen = random.Random(said.seed).sample(every, said.sample)
    if said.list:
        for m in every:
            print(f"{m.file}.py:{m.line}: {m.what}")
        return 0
    fates = _read(said.journal)
    said.journal.parent.mkdir(parents=True, exist_ok=True)
    for file in said.file or FILES:
        text = (ROOT / "reference" / "seriatim" / f"{file}.py").read_text(encoding="utf-8")
        if (right := judge(file, text)).fate != "survived":
            print(f"the reference itself does not pass: {right.by or right.fate}", file=sys.stderr)
            return 2
    tried = {k for k, f in fates.items() if not (said.again and f.fate == "survived")}
    todo = [m for m in chosen if m.key not in tried]
    with ThreadPoolExecutor(said.jobs) as pool, said.journal.open("a", encoding="utf-8") as out:
        for m, fate in zip(todo, pool.map(lambda m: judge(m.file, m.source), todo), strict=True):
            fates[m.key] = fate
            line = {"key": m.key, "at": f"{m.file}.py:{m.line}", "what": m.what, **vars(fate)}
            out.write(json.dumps(line) + "\n")
            out.flush()
    report(every, chosen, fates)
    return 0


def _read(journal: Path) -> dict[str, Fate]:
    if not journal.exists():
        return {}
    lines = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    return {d["key"]: Fate(d["fate"], d["by"], d["seconds"]) for d in lines}


def report(every: list[Mutation], chosen: list[Mutation], fates: dict[str, Fate]) -> None:
    """The score, and who survived."""
    for m in sorted(chosen, key=lambda m: (m.file, m.line)):
        if fates[m.key].fate == "survived":
            print(f"survived  {m.file}.py:{m.line}: {m.what}")
    count = {f: sum(fates[m.key].fate == f for m in chosen) for f in ("caught", "out of time")}
    caught = sum(count.values())
    print(
        f"{caught} of {len(chosen)} caught ({100 * caught / len(chosen):.1f} %), "
        f"{count['out of time']} of these by running out of time; there are {len(every)}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
