"""What the operators of order share: the blocks of a function, what a statement uses and defines, and what it touches.

A *block* is a list of statements that stand one below the other. An operator is handed a block with the place where it
stands, or an expression, and yields what may stand there instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class Movers(Protocol):
    """What says which statements commute (`movers.LockMovers`)."""

    def commute(self, one: ast.AST, other: ast.AST, around: Iterable[ast.AST]) -> bool:
        """Whether two adjacent statements are the same program in either order."""

    def private(self, one: ast.AST, passed: Iterable[ast.AST]) -> bool:
        """Whether a statement may stand on either side of a lock, past some others."""


PURE = frozenset(
    {
        *("isinstance", "len", "min", "max", "tuple", "list", "set", "dict", "sorted", "range"),
        *("frozenset", "str", "int", "repr", "type", "any", "all", "partial"),
    }
)
"""Calls that touch nothing that two threads share; a class is called to make a new object."""
UNSHARED = ("__init__", "__post_init__", "__repr__", "label", "deleted", "place")
"""Methods in which order does not matter: their object is known to no other thread yet, or they change nothing."""
TELLING = ("record",)
"""Calls that only record what happened: they stay where they are, and others may be moved past them."""

Block = list[ast.stmt]


@dataclass(frozen=True)
class BlockPlace:
    """Where a block stands: the statements around it, the outermost first, beginning with the function."""

    around: tuple[ast.AST, ...]
    locks_of_callers: tuple[str, ...] = ()
    """The locks under which other methods of the class call this function."""
    movers: Movers | None = None
    """Says which statements commute; None: nothing is known, and every change is made."""

    def commute(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two adjacent statements of the block are the same program in either order."""
        return self.movers is not None and self.movers.commute(one, other, self.around)

    def private(self, one: ast.AST, passed: Iterable[ast.AST] = ()) -> bool:
        """Whether it does not matter on which side of a lock a statement stands."""
        return self.movers is not None and self.movers.private(one, passed)

    @property
    def parent(self) -> ast.AST:
        """The statement whose block it is."""
        return self.around[-1]

    @property
    def in_loop(self) -> bool:
        """Whether a loop is around the block."""
        return any(isinstance(node, ast.For | ast.While) for node in self.around)


def walk(node: ast.AST | Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a tree, or of several, without those inside functions and lambdas that are defined there."""
    todo = [node] if isinstance(node, ast.AST) else list(node)
    while todo:
        one = todo.pop()
        yield one
        if not isinstance(one, ast.FunctionDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(one))


def uses(*nodes: ast.AST) -> set[str]:
    """The local names that are read."""
    return {n.id for n in walk(nodes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def defines(*nodes: ast.AST) -> set[str]:
    """The local names that are written."""
    names = {n.id for n in walk(nodes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {n.name for n in walk(nodes) if isinstance(n, ast.FunctionDef)}


def independent(one: ast.AST, other: ast.AST) -> bool:
    """Whether neither uses or writes a local name that the other writes."""
    return not (
        defines(one) & (uses(other) | defines(other)) or defines(other) & (uses(one) | defines(one))
    )


def calls(*nodes: ast.AST) -> Iterator[ast.Call]:
    """The calls that may touch what is shared: not pure functions, and not the making of an object."""
    for node in walk(nodes):
        if isinstance(node, ast.Call):
            name = called(node)
            known = name in PURE or name[:1].isupper()
            if not (isinstance(node.func, ast.Name) and known):
                yield node


def called(call: ast.Call) -> str:
    """The name of what is called, without the object."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def writes(*nodes: ast.AST) -> bool:
    """Whether something may be changed that other threads see, or that reaches them."""
    stores = (ast.Attribute, ast.Subscript)
    return any(
        isinstance(n, stores) and isinstance(n.ctx, ast.Store | ast.Del) for n in walk(nodes)
    ) or any(
        called(c) not in ("get", "now", "place", "values", "items", "keys") for c in calls(*nodes)
    )


def touches(*nodes: ast.AST) -> bool:
    """Whether something is read or changed that other threads may change."""
    return writes(*nodes) or any(isinstance(n, ast.Attribute | ast.Call) for n in walk(nodes))


def tells(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring or only records."""
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.Call) and called(value) in TELLING
    )


def jumps(statement: ast.stmt) -> bool:
    """Whether control always leaves the block here."""
    return isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)


def leaves_loop(statement: ast.AST) -> bool:
    """Whether a `break` or `continue` in the statement is of a loop around it."""
    if isinstance(statement, ast.Break | ast.Continue):
        return True
    if isinstance(statement, ast.For | ast.While):
        return False
    return any(leaves_loop(child) for child in ast.iter_child_nodes(statement))


def movable(statement: ast.stmt) -> bool:
    """Whether it makes sense to have a statement somewhere else."""
    return not (jumps(statement) or tells(statement) or isinstance(statement, ast.FunctionDef))


def shown(node: ast.AST) -> str:
    """The first line of the source of a node, cut off after 50 characters."""
    return ast.unparse(node).splitlines()[0][:50]


def moved(block: Block, origin: int, target: int) -> Block:
    """The block with the statement `origin` standing where `target` stood."""
    rest = [*block[:origin], *block[origin + 1 :]]
    return [*rest[:target], block[origin], *rest[target:]]


def replaced(block: Block, n: int, *new: ast.stmt) -> Block:
    """The block with other statements in place of one."""
    return [*block[:n], *new, *block[n + 1 :]] or [ast.Pass()]


def with_body(statement: ast.stmt, body: Sequence[ast.stmt]) -> ast.stmt:
    """The same statement around another block."""
    fields = dict(ast.iter_fields(statement))
    return type(statement)(**{**fields, "body": list(body) or [ast.Pass()]})


def is_lock(statement: ast.AST) -> bool:
    """Whether it is `with` a lock."""
    return isinstance(statement, ast.With) and all(
        isinstance(item.context_expr, ast.Attribute) for item in statement.items
    )


def name(id: str) -> ast.Name:
    """The value of a local name."""
    return ast.Name(id, ast.Load())


def assign(id: str, value: ast.expr) -> ast.stmt:
    """Give a local name a value."""
    return ast.Assign([ast.Name(id, ast.Store())], value, lineno=getattr(value, "lineno", 1))


def once(loop: ast.While) -> ast.stmt:
    """The loop's body, run at most once: the loop with a `break` at its end."""
    return with_body(loop, [*loop.body, ast.Break()])
