"""Wrong references by rule: each way in which one small thing in a reference's syntax tree can be changed.

What is not changed: annotations, contracts, docstrings, `__slots__`, `__repr__`, `label`, and what is only recorded
(`record`, names, what is raised): a change there changes no behaviour of a program that is right.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = sorted(
    path.stem for path in (ROOT / "reference" / "seriatim").glob("*.py") if path.stem != "__init__"
)
"""The modules of the reference, from the folder: to import them here would load what a worker replaces."""

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
RECORDING_CALLS = ("record",)
"""Calls that only record what happened."""


@dataclass(frozen=True)
class Mutation:
    """One change of one reference."""

    file: str
    scope: str
    """The function in which it is, as ``Class.method``."""
    what: str
    nth: int
    """Which of those that read the same within the scope, from 1."""
    line: int
    path: Path_
    new: ast.AST | list[ast.stmt]
    tree: ast.Module
    scope_path: Path_

    @property
    def name(self) -> str:
        """Says which it is, whatever else changes in the file."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.file}.{self.scope}: {self.what}{again}"

    @property
    def source(self) -> str:
        """The whole mutated module."""
        return self._unparsed(self.tree)

    @cached_property
    def key(self) -> str:
        """Stays the same until the function in which it is does, or the change."""
        return self._hashed(self._unparsed(_at(self.tree, self.scope_path)))

    @property
    def key_of_the_right_one(self) -> str:
        """The key of a change that changes nothing."""
        return self._hashed(ast.unparse(_at(self.tree, self.scope_path)))

    def _hashed(self, text: str) -> str:
        return hashlib.sha256(f"{self.file}.{self.scope}\n{text}".encode()).hexdigest()[:16]

    def _unparsed(self, node: ast.AST) -> str:
        """The text of the tree or a part of it with the change, which is taken back: to copy a tree takes longer."""
        right = _at(self.tree, self.path)
        for new in self.new if isinstance(self.new, list) else [self.new]:
            ast.fix_missing_locations(new)
        _put(self.tree, self.path, self.new)
        try:
            return ast.unparse(node)
        finally:
            _put(self.tree, self.path, right)


def mutations(file: str) -> Iterator[Mutation]:
    """Every mutation of `seriatim.<file>`."""
    tree = parsed(file)
    seen: Counter[tuple[str, str]] = Counter()
    for path, node in _places(tree):
        scope, scope_path = scope_of(tree, path)
        for what, new in _changes(node):
            seen[scope, what] += 1
            nth = seen[scope, what]
            yield Mutation(file, scope, what, nth, node.lineno, path, new, tree, scope_path)


def parsed(file: str) -> ast.Module:
    """The syntax tree of `seriatim.<file>`, which is read and not imported."""
    text = (ROOT / "reference" / "seriatim" / f"{file}.py").read_text(encoding="utf-8")
    return ast.parse(text)


def scope_of(tree: ast.Module, path: Path_) -> tuple[str, Path_]:
    """The innermost function (or class, for what stands in none) around a place, and the way to it."""
    names: list[str] = []
    node: ast.AST = tree
    end = 0
    for n, step in enumerate(path[:-1], 1):
        node = _at(node, (step,))
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
            end = n
    return ".".join(names), path[:end]


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
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__slots__"
    if isinstance(node, ast.Expr):
        node = node.value
        if isinstance(node, ast.Constant):
            return True
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in RECORDING_CALLS
    return False


UNARY: dict[type[ast.unaryop], str] = {ast.Not: "not", ast.USub: "minus"}


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
    elif isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        yield f"{shown} -> without {UNARY[type(node.op)]}", node.operand
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


def _at(root: ast.AST, path: Path_) -> ast.AST:
    node = root
    for name, n in path:
        value = getattr(node, name)
        node = value if n is None else value[n]
    return node


def _put(root: ast.AST, path: Path_, new: ast.AST | list[ast.stmt]) -> None:
    parent = _at(root, path[:-1])
    name, n = path[-1]
    if n is None:
        setattr(parent, name, new)
    else:
        getattr(parent, name)[n] = new
