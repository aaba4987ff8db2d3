"""Mistakes of order, by rule: statements in another order, outside their lock, tried once, checked too early.

What `operators` changes is one small thing; what goes wrong in a concurrent program is mostly the order of things.
Each operator here is a function with a name: of a block of statements (`@of_blocks`), or of an expression
(`@of_expressions`). A change that would use a local name before it is defined is not made: it would fail at once.
Nor is one of two statements that commute: it is the same program (`movers`).
Recording stays where it is, and constructors are left alone: no other thread knows their object yet.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from seriatim_workshop.mutation.movers import LockMovers
from seriatim_workshop.mutation.operators import Mutation, Path_, parsed, scope_of
from seriatim_workshop.mutation.rewriting import (
    UNSHARED,
    Block,
    BlockPlace,
    assign,
    called,
    calls,
    defines,
    independent,
    is_lock,
    jumps,
    leaves_loop,
    movable,
    moved,
    name,
    once,
    replaced,
    shown,
    tells,
    touches,
    uses,
    walk,
    with_body,
    writes,
)

Changed = Iterator[tuple[str, Block]]
"""What was changed, in words, and what stands there now."""
Other = Iterator[tuple[str, ast.expr]]

BLOCK_OPERATORS: dict[str, Callable[[Block, BlockPlace], Changed]] = {}
"""The operators on blocks, by name."""
EXPRESSION_OPERATORS: dict[str, Callable[[ast.expr, BlockPlace], Other]] = {}
"""The operators on expressions, by name."""


def of_blocks(
    function: Callable[[Block, BlockPlace], Changed],
) -> Callable[[Block, BlockPlace], Changed]:
    """Register an operator on blocks under its name with dashes."""
    BLOCK_OPERATORS[function.__name__.replace("_", "-")] = function
    return function


def of_expressions(
    function: Callable[[ast.expr, BlockPlace], Other],
) -> Callable[[ast.expr, BlockPlace], Other]:
    """Register an operator on expressions under its name with dashes."""
    EXPRESSION_OPERATORS[function.__name__.replace("_", "-")] = function
    return function


# ---- statements in another order


@of_blocks
def swapped(block: Block, place: BlockPlace) -> Changed:
    """Swap two adjacent statements; what only records between them stays where it is."""
    steps = [n for n, s in enumerate(block) if not tells(s)]
    for a, b in pairwise(steps):
        one, other = block[a], block[b]
        known = independent(ast.Module(block[a + 1 : b], []), ast.Module([one, other], []))
        if known and _may_pass(one, other) and not place.commute(one, other):
            new = list(block)
            new[a], new[b] = other, one
            yield f"{shown(one)} | {shown(other)}", new


@of_blocks
def moved_past_several(block: Block, place: BlockPlace) -> Changed:
    """Move a statement past two or more others, up or down."""
    steps = [n for n, s in enumerate(block) if not tells(s)]
    for k, origin in enumerate(steps):
        for way in (steps[k + 1 :], steps[:k][::-1]):
            same = True
            for far, target in enumerate(way, 1):
                between = block[min(origin, target) : max(origin, target)]
                records = ast.Module([s for s in between if tells(s)], [])
                allowed = _may_pass(block[origin], block[target], far > 1)
                if not allowed or not independent(records, block[origin]):
                    break
                same = same and place.commute(block[origin], block[target])
                if far > 1 and not same:
                    words = f"{shown(block[origin])} to {shown(block[target])}"
                    yield words, moved(block, origin, target)


def _may_pass(one: ast.stmt, other: ast.stmt, any_effect: bool = False) -> bool:
    return (
        movable(one)
        and movable(other)
        and independent(one, other)
        and (any_effect or writes(one) or writes(other))
        and touches(one)
        and touches(other)
    )


@of_blocks
def acts_before_it_checks(block: Block, place: BlockPlace) -> Changed:
    """Do the first statement under a condition before the condition is asked, and whatever its answer."""
    for n, s in enumerate(block):
        if not isinstance(s, ast.If) or not touches(s.test):
            continue
        first = s.body[0]
        if not (movable(first) and writes(first)) or defines(s.test) & uses(first):
            continue
        checked = with_body(s, s.body[1:])
        at = n
        while at and defines(block[at - 1]) & uses(s.test) and independent(block[at - 1], first):
            at -= 1  # what the condition is about is asked in a statement before it
        yield shown(first), [*block[:at], first, *block[at:n], checked, *block[n + 1 :]]


@of_blocks
def branches_swapped(block: Block, place: BlockPlace) -> Changed:
    """Ask the condition of an `elif` before that of its `if`."""
    for n, s in enumerate(block):
        if isinstance(s, ast.If) and len(s.orelse) == 1 and isinstance(s.orelse[0], ast.If):
            other = s.orelse[0]
            last = ast.If(s.test, s.body, other.orelse)
            yield shown(other.test), replaced(block, n, ast.If(other.test, other.body, [last]))


@of_expressions
def conditions_swapped(node: ast.expr, place: BlockPlace) -> Other:
    """Ask two adjacent conditions of an `and` or `or` in the other order."""
    if isinstance(node, ast.BoolOp):
        for n, (one, other) in enumerate(pairwise(node.values)):
            guard = "isinstance" in ast.unparse(one) or " is not None" in ast.unparse(one)
            if independent(one, other) and touches(one) and touches(other) and not guard:
                values = [*node.values[:n], other, one, *node.values[n + 2 :]]
                yield f"{shown(one)} | {shown(other)}", ast.BoolOp(node.op, values)


# ---- locks


@of_blocks
def lock_removed(block: Block, place: BlockPlace) -> Changed:
    """Run what stands under a lock without it."""
    for n, s in enumerate(block):
        if isinstance(s, ast.With) and is_lock(s):
            yield shown(s), replaced(block, n, *s.body)


@of_blocks
def lock_split(block: Block, place: BlockPlace) -> Changed:
    """Free a lock between two statements and take it again."""
    for n, s in enumerate(block):
        if isinstance(s, ast.With) and is_lock(s):
            for k in range(1, len(s.body)):
                if not tells(s.body[k - 1]) and touches(*s.body[k:]):
                    halves = with_body(s, s.body[:k]), with_body(s, s.body[k:])
                    yield f"before {shown(s.body[k])}", replaced(block, n, *halves)


@of_blocks
def lock_given_up(block: Block, place: BlockPlace) -> Changed:
    """Free the lock under which a method is called, before one of its statements, and take it again."""
    for lock in place.locks_of_callers:
        gap = [s for verb in ("release", "acquire") for s in ast.parse(f"{lock}.{verb}()").body]
        for n, s in enumerate(block):
            if not tells(s) and touches(s) and (n > 0 or len(place.around) > 1):
                yield f"{lock} before {shown(s)}", [*block[:n], *gap, *block[n:]]


@of_blocks
def before_the_lock(block: Block, place: BlockPlace) -> Changed:
    """Move a statement out of its lock, in front of it."""
    for n, s in enumerate(block):
        if isinstance(s, ast.With) and is_lock(s):
            for k, one in enumerate(s.body):
                before = s.body[:k]
                if not (movable(one) and touches(one) and all(independent(x, one) for x in before)):
                    continue
                if not place.private(one, before):
                    rest = with_body(s, replaced(s.body, k))
                    yield shown(one), replaced(block, n, one, rest)


@of_blocks
def behind_the_lock(block: Block, place: BlockPlace) -> Changed:
    """Move a statement out of its lock, behind it; what is returned is computed under it still."""
    for n, s in enumerate(block):
        if isinstance(s, ast.With) and is_lock(s):
            body, end = list(s.body), list[ast.stmt]()
            if isinstance(body[-1], ast.Return):
                value = body[-1].value or ast.Constant(None)
                body[-1:] = [assign("result_", value)]
                end = [ast.Return(name("result_"))]
            for k, one in enumerate(s.body):
                later = s.body[k + 1 :]
                if not (movable(one) and touches(one) and all(independent(x, one) for x in later)):
                    continue
                if not place.private(one, later):
                    rest = with_body(s, replaced(body, k))
                    yield shown(one), replaced(block, n, rest, one, *end)


@of_blocks
def into_the_lock(block: Block, place: BlockPlace) -> Changed:
    """Take a lock one statement earlier, or keep it for one statement more."""
    for n, s in enumerate(block):
        if not (isinstance(s, ast.With) and is_lock(s)):
            continue
        before, behind = block[n - 1 : n], block[n + 1 : n + 2]
        if n and movable(before[0]) and touches(before[0]) and not place.private(before[0]):
            wider = with_body(s, [*before, *s.body])
            yield shown(before[0]), [*block[: n - 1], wider, *block[n + 1 :]]
        if not behind or jumps(s.body[-1]):
            continue
        if touches(behind[0]) and not place.private(behind[0]):
            wider = with_body(s, [*s.body, *behind])
            yield shown(behind[0]), [*block[:n], wider, *block[n + 2 :]]


@of_blocks
def read_before_the_lock(block: Block, place: BlockPlace) -> Changed:
    """Read a value before the lock is taken and use it under the lock."""
    for n, s in enumerate(block):
        if isinstance(s, ast.With) and is_lock(s):
            for k, one in enumerate(s.body):
                known = defines(*s.body[:k])
                for value, put in _values(one):
                    if not touches(value) or uses(value) & known:
                        continue
                    if not (_is_all(one, value) and place.private(value, s.body[:k])):
                        rest = with_body(s, replaced(s.body, k, put(name("early_"))))
                        yield shown(value), replaced(block, n, assign("early_", value), rest)


@of_blocks
def read_too_early(block: Block, place: BlockPlace) -> Changed:
    """Read what a condition asks, or a value that is used, before the statement in front and not after it."""
    for n, s in enumerate(block[1:], 1):
        before = block[n - 1]
        if not (movable(before) and writes(before)):
            continue
        for value, put in _values(s):
            if not touches(value) or defines(before) & uses(value) or _is_step(s, value):
                continue
            if not (_is_all(s, value) and place.commute(value, before)):
                new = [assign("early_", value), before, put(name("early_"))]
                yield shown(value), [*block[: n - 1], *new, *block[n + 1 :]]


def _is_step(statement: ast.stmt, value: ast.expr) -> bool:
    """Whether the value is all that a statement is about: to move it is to move the statement (`swapped`)."""
    return isinstance(statement, ast.Assign | ast.Expr) and value is statement.value


def _is_all(statement: ast.stmt, value: ast.expr) -> bool:
    """Whether the value is computed once, first and in any case when the statement is run, or could be."""
    whole = {ast.If: "test", ast.For: "iter", ast.Return: "value", ast.Assign: "value"}
    if getattr(statement, whole.get(type(statement), ""), None) is value:
        return True
    # or it makes an object of what is there already, which cannot fail and could as well be made twice
    made = isinstance(value, ast.Call) and ast.unparse(value.func).strip("_")[:1].isupper()
    inside = (n for n in walk(value) if n is not value)
    return made and not any(isinstance(n, ast.Call | ast.Attribute | ast.Subscript) for n in inside)


Put = Callable[[ast.expr], ast.stmt]


def _values(statement: ast.stmt) -> Iterator[tuple[ast.expr, Put]]:
    """The values that a statement computes first, each with what puts another expression in its place."""
    found: list[ast.expr] = []
    if isinstance(statement, ast.If):
        found.append(statement.test)
        first = statement.test
        if isinstance(first, ast.BoolOp | ast.Compare | ast.UnaryOp):
            found += [n for n in walk(first) if isinstance(n, ast.Call)]
    elif isinstance(statement, ast.While) and not isinstance(statement.test, ast.Constant):
        found.append(statement.test)
    elif isinstance(statement, ast.For):
        found.append(statement.iter)
    elif isinstance(statement, ast.Return | ast.Assign | ast.Expr) and statement.value is not None:
        found.append(statement.value)
        if isinstance(statement.value, ast.Call):
            found += [a for a in statement.value.args if isinstance(a, ast.Call)]
    for value in found:
        if isinstance(statement, ast.Expr) and value is statement.value:
            continue
        if not defines(value):
            yield value, lambda new, value=value: _put_expression(statement, value, new)  # type: ignore[misc]


def _put_expression(statement: ast.stmt, old: ast.expr, new: ast.expr) -> ast.stmt:
    """The statement with one expression in place of another."""

    class Put(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            again: ast.AST = new if node is old else super().visit(_shallow(node))
            return again

    changed = Put().visit(statement)
    assert isinstance(changed, ast.stmt)
    return changed


def _shallow(node: ast.AST) -> ast.AST:
    """A copy of a node and of its lists, not of what is in them."""
    new = copy.copy(node)
    for field, value in ast.iter_fields(new):
        if isinstance(value, list):
            setattr(new, field, list(value))
    return new


# ---- loops, and checks that are not made again


def _compares(*nodes: ast.AST) -> bool:
    return any(called(c) in ("compare_and_set", "change") for c in calls(*nodes))


@of_blocks
def compare_and_set_tried_once(block: Block, place: BlockPlace) -> Changed:
    """Try a compare-and-set once, and not until it succeeds."""
    for n, s in enumerate(block):
        if isinstance(s, ast.While) and _compares(s):
            yield shown(s), replaced(block, n, once(s))


@of_blocks
def while_made_if(block: Block, place: BlockPlace) -> Changed:
    """Make a loop run once, so that its condition is not asked again."""
    for n, s in enumerate(block):
        if isinstance(s, ast.While) and not _compares(s):
            yield shown(s), replaced(block, n, once(s))


@of_blocks
def read_before_the_loop(block: Block, place: BlockPlace) -> Changed:
    """Do a loop's first statement once before the loop, and not in each round."""
    for n, s in enumerate(block):
        if not isinstance(s, ast.For | ast.While) or len(s.body) < 2:
            continue
        first = s.body[0]
        bound = defines(s.target if isinstance(s, ast.For) else s.test)
        fixed = not (uses(first) & bound or leaves_loop(first))
        if movable(first) and touches(first) and fixed:
            yield shown(first), replaced(block, n, first, with_body(s, s.body[1:]))


@of_blocks
def condition_read_before_the_loop(block: Block, place: BlockPlace) -> Changed:
    """Read the value that a loop's condition examines once before the loop, and not in each round."""
    for n, s in enumerate(block):
        if isinstance(s, ast.While):
            for named in (node for node in walk(s.test) if isinstance(node, ast.NamedExpr)):
                local = named.target.id
                again = _put_expression(s, named, name(local))
                yield shown(named), replaced(block, n, assign(local, named.value), again)


@of_blocks
def waits_before_it_checks(block: Block, place: BlockPlace) -> Changed:
    """Wait once before the condition is asked of which one waits that it changes."""
    for n, s in enumerate(block):
        if isinstance(s, ast.While) and any(
            "wait" in called(c) or "sleep" in called(c) for c in calls(s.body[-1])
        ):
            first = s.body[-1]
            if movable(first) and not leaves_loop(first):
                yield shown(first), replaced(block, n, first, s)


@of_blocks
def behind_the_loop(block: Block, place: BlockPlace) -> Changed:
    """Do a loop's last statement once behind the loop, and not in each round."""
    for n, s in enumerate(block):
        endless = isinstance(s, ast.While) and isinstance(s.test, ast.Constant)
        if isinstance(s, ast.For | ast.While) and not endless and len(s.body) > 1:
            last = s.body[-1]
            bound = defines(s.target) if isinstance(s, ast.For) else set()
            fixed = not (uses(last) & (bound | defines(*s.body)) or leaves_loop(last))
            if movable(last) and touches(last) and fixed:
                yield shown(last), replaced(block, n, with_body(s, s.body[:-1]), last)


@of_blocks
def check_left_out(block: Block, place: BlockPlace) -> Changed:
    """Take a condition for granted that is asked after an effect, in a lock or in a loop: for true, or for false."""
    for n, s in enumerate(block):
        inside = place.in_loop or any(is_lock(node) for node in place.around)
        if isinstance(s, ast.If) and touches(s.test) and (inside or writes(*block[:n])):
            if not defines(s.test):
                yield f"{shown(s.test)} is true", replaced(block, n, *s.body)
            effect = [ast.Expr(s.test)] if writes(s.test) else []
            yield f"{shown(s.test)} is false", replaced(block, n, *effect, *s.orelse)


@of_blocks
def only_the_first(block: Block, place: BlockPlace) -> Changed:
    """End a loop over several after the first round."""
    for n, s in enumerate(block):
        if isinstance(s, ast.For):
            yield shown(s), replaced(block, n, with_body(s, [*s.body, ast.Break()]))


@of_blocks
def all_rather_than_one(block: Block, place: BlockPlace) -> Changed:
    """Go on with a loop where it is left because one was enough."""
    if any(isinstance(node, ast.For) for node in place.around):
        for n, s in enumerate(block):
            if isinstance(s, ast.Break) or (isinstance(s, ast.Return) and s.value is None):
                yield shown(place.parent), replaced(block, n, ast.Pass())


@of_blocks
def cleaned_up_only_if_all_went_well(block: Block, place: BlockPlace) -> Changed:
    """Do what stands under `finally` or `else` behind the `try`, or before it."""
    for n, s in enumerate(block):
        if isinstance(s, ast.Try) and s.finalbody:
            yield f"after: {shown(s.finalbody[0])}", replaced(block, n, *s.body, *s.finalbody)
            yield f"before: {shown(s.finalbody[0])}", replaced(block, n, *s.finalbody, *s.body)


# ---- compare-and-set, and what it compares


@of_expressions
def compare_and_set_split(node: ast.expr, place: BlockPlace) -> Other:
    """Get and compare, and then set: another thread may come in between."""
    if isinstance(node, ast.Call) and called(node) == "compare_and_set":
        assert isinstance(node.func, ast.Attribute)
        cell, (expected, new) = node.func.value, node.args
        seen = ast.Compare(_method(cell, "get"), [ast.Eq()], [expected])
        done = ast.Compare(_method(cell, "set", new), [ast.Is()], [ast.Constant(None)])
        yield shown(node), ast.BoolOp(ast.And(), [seen, done])


@of_expressions
def set_without_comparing(node: ast.expr, place: BlockPlace) -> Other:
    """Set unconditionally and answer that it was done."""
    if isinstance(node, ast.Call) and called(node) == "compare_and_set":
        assert isinstance(node.func, ast.Attribute)
        done = _method(node.func.value, "set", node.args[1])
        yield shown(node), ast.Compare(done, [ast.Is()], [ast.Constant(None)])


@of_expressions
def expected_value_read_again(node: ast.expr, place: BlockPlace) -> Other:
    """Compare with the value of now, and not with the one that was examined."""
    if isinstance(node, ast.Call) and called(node) == "compare_and_set":
        assert isinstance(node.func, ast.Attribute)
        cell, (expected, new) = node.func.value, node.args
        if isinstance(expected, ast.Name) and not expected.id.isupper():
            yield shown(node), _method(cell, "compare_and_set", _method(cell, "get"), new)


@of_expressions
def addition_split(node: ast.expr, place: BlockPlace) -> Other:
    """Get a number and then set the sum: another thread's addition in between is lost."""
    if (
        isinstance(node, ast.Call)
        and called(node) == "add"
        and isinstance(node.func, ast.Attribute)
    ):
        amount = node.args[0] if len(node.args) == 1 else None
        cell = node.func.value
        if amount is not None and _is_number(amount):
            total = ast.BinOp(_method(cell, "get"), ast.Add(), amount)
            yield shown(node), _method(cell, "set", total)


def _is_number(node: ast.expr) -> bool:
    return ast.unparse(node).lstrip("-").isdigit() or ast.unparse(node) == "messages"


def _method(cell: ast.expr, method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(cell, method, ast.Load()), list(arguments), [])


@of_expressions
def equal_for_identical(node: ast.expr, place: BlockPlace) -> Other:
    """Compare two objects by `==` where their identity matters."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = node.comparators[0]
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and not isinstance(other, ast.Constant):
            op = ast.Eq() if isinstance(node.ops[0], ast.Is) else ast.NotEq()
            yield shown(node), ast.Compare(node.left, [op], [other])


# ---- who is notified, and over what one iterates


@of_expressions
def notified_one_or_all(node: ast.expr, place: BlockPlace) -> Other:
    """Notify one for all or all for one; release one permit for several or two for one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method = node.func.attr
        owner = node.func.value
        if method == "notify_all" or (method == "notify" and "." in ast.unparse(owner)):
            if method == "notify_all" or _is_condition(owner):
                new = {"notify_all": "notify", "notify": "notify_all"}[method]
                yield shown(node), _method(owner, new, *node.args)
        elif method == "release" and len(node.args) < 2:
            if not node.args:
                yield f"{shown(node)} twice", _method(owner, "release", ast.Constant(2))
            elif ast.unparse(owner).rpartition(".")[2].strip("_") in ("permits", "tokens"):
                yield f"{shown(node)} once", _method(owner, "release")


def _is_condition(owner: ast.expr) -> bool:
    """`Channel.notify` of the log is a method; the conditions are attributes with an underscore."""
    return isinstance(owner, ast.Attribute) and owner.attr.startswith("_")


@of_expressions
def iterated_over_a_copy(node: ast.expr, place: BlockPlace) -> Other:
    """Iterate over a copy that is made before the first round, or over the original where a copy is made."""
    parent = place.parent
    if isinstance(parent, ast.For) and node is parent.iter:
        if isinstance(node, ast.Call) and called(node) == "list" and node.args:
            yield f"without {shown(node)}", node.args[0]
        elif not (isinstance(node, ast.Call) and called(node) in ("list", "range", "sorted")):
            yield shown(node), ast.Call(name("list"), [node], [])


def compared_by_value(node: ast.ClassDef) -> Iterator[tuple[int, ast.expr]]:
    """Compare the objects of a class by their fields, where the class says by identity: the place of the decorator."""
    for n, decorator in enumerate(node.decorator_list):
        if isinstance(decorator, ast.Call):
            rest = [k for k in decorator.keywords if k.arg != "eq"]
            if len(rest) < len(decorator.keywords):
                yield n, ast.Call(decorator.func, decorator.args, rest)


OPERATORS = [*BLOCK_OPERATORS, *EXPRESSION_OPERATORS, "compared-by-value"]
"""The names of all operators."""


# ---- all mutations of a file


@cache
def order_mutations(file: str) -> tuple[Mutation, ...]:
    """Every mutation of the order of `seriatim.<file>`."""
    return tuple(mutations_of(file, parsed(file)))


def commuting_mutations(file: str) -> Iterator[Mutation]:
    """Every change of the order of `seriatim.<file>` that is left out, for it is the same program (`movers`)."""
    made = {m.key for m in order_mutations(file)}
    yield from (m for m in mutations_of(file, parsed(file), all_of_them=True) if m.key not in made)


def mutations_of(file: str, tree: ast.Module, all_of_them: bool = False) -> Iterator[Mutation]:
    """Every mutation of the order of a module, numbered within its function, none twice.

    Statements that commute are not swapped, unless `all_of_them` are asked for.
    """
    seen: Counter[tuple[str, str]] = Counter()
    keys: set[str] = set()
    for kind, what, path, line, new in _changes("" if all_of_them else file, tree):
        scope, scope_path = scope_of(tree, path)
        if kind == "compared-by-value":
            scope, scope_path = _at_class(tree, path)
        words = f"{kind}: {what}"
        mutation = Mutation(
            file, scope, words, seen[scope, words] + 1, line, path, new, tree, scope_path
        )
        if mutation.key not in keys and mutation.key != mutation.key_of_the_right_one:
            keys.add(mutation.key)
            seen[scope, words] += 1
            yield mutation


def _at_class(tree: ast.Module, path: Path_) -> tuple[str, Path_]:
    node = tree.body[path[0][1] or 0]
    assert isinstance(node, ast.ClassDef)
    return node.name, path[:1]


Edit = tuple[str, str, Path_, int, ast.AST | Block]
"""Operator, what in words, the way to what is replaced, line, and what replaces it."""


def _changes(file: str, tree: ast.Module) -> Iterator[Edit]:
    for n, top in enumerate(tree.body):
        here: Path_ = (("body", n),)
        if isinstance(top, ast.ClassDef):
            if any("Protocol" in ast.unparse(base) for base in top.bases):
                continue
            for k, decorator in compared_by_value(top):
                at: Path_ = (*here, ("decorator_list", k))
                yield "compared-by-value", top.name, at, top.lineno, decorator
            callers = _locks_of_callers(top)
            for m, method in enumerate(top.body):
                if isinstance(method, ast.FunctionDef) and method.name not in UNSHARED:
                    locks = tuple(sorted(callers.get(method.name, ())))
                    place = BlockPlace((method,), locks, LockMovers(file, top.name, method))
                    yield from _in_blocks(method, (*here, ("body", m)), place)
        elif isinstance(top, ast.FunctionDef):
            yield from _in_blocks(top, here, BlockPlace((top,), (), LockMovers(file, "", top)))


def _locks_of_callers(cls: ast.ClassDef) -> dict[str, set[str]]:
    """By method: the locks, as they are written there, under which the class's methods call it."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(cls):
        if isinstance(node, ast.With) and is_lock(node):
            lock = ast.unparse(node.items[0].context_expr)
            for call in ast.walk(node):
                mine = isinstance(call, ast.Call) and ast.unparse(call.func).startswith("self._")
                if isinstance(call, ast.Call) and mine and lock.startswith("self."):
                    found.setdefault(called(call), set()).add(lock)
    return found


def _in_blocks(node: ast.AST, path: Path_, place: BlockPlace) -> Iterator[Edit]:
    """The changes of all blocks and expressions of a statement that has blocks."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if not isinstance(block, list) or not block:
            continue
        at: Path_ = (*path, (field, None))
        for kind, operator in BLOCK_OPERATORS.items():
            for what, new in operator(block, place):
                yield kind, what, at, block[0].lineno, new
        for n, statement in enumerate(block):
            if tells(statement) or isinstance(statement, ast.Raise):
                continue
            here: Path_ = (*path, (field, n))
            inner = dataclasses.replace(place, around=(*place.around, statement))
            yield from _in_expressions(statement, here, inner)
            yield from _in_blocks(statement, here, inner)
    for n, handler in enumerate(getattr(node, "handlers", ())):
        yield from _in_blocks(handler, (*path, ("handlers", n)), place)


def _in_expressions(node: ast.AST, path: Path_, place: BlockPlace) -> Iterator[Edit]:
    """The changes of all expressions of a statement, without those of its blocks."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for n, child in enumerate(value if isinstance(value, list) else [value]):
            here: Path_ = (*path, (field, n if isinstance(value, list) else None))
            if isinstance(child, ast.expr):
                for kind, operator in EXPRESSION_OPERATORS.items():
                    for what, new in operator(child, place):
                        yield kind, what, here, child.lineno, new
            if isinstance(child, ast.expr | ast.keyword | ast.comprehension | ast.withitem):
                yield from _in_expressions(child, here, place)
