"""The formulas of a system, evaluated on a finite, concrete state: the same ones that the solver proves things about.

Members are named by strings; a number is an int, a truth value a bool, a value of an enumeration its name.
A formula is compiled once into closures, since it is evaluated at every step of every execution.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from operator import ge, gt, le, lt, sub

import z3

from seriatim_workshop.formal.theory import Action, Term, TransitionSystem, load

Value = str | int | bool
Bound = tuple[Value, ...]
"""What quantified variables stand for, the innermost last."""
Evaluate = Callable[["Concrete", "dict[str, Value]", Bound], Value]

NOBODY = "nobody"
"""The value of a function at arguments for which none was given."""


class NotThat(Exception):
    """The specification has no such step here; the message says why."""


@dataclass
class Concrete:
    """A state with named members."""

    system: TransitionSystem
    members: dict[str, list[str]]
    """By sort. Members may be added at any time."""
    tables: dict[str, dict[Bound, Value]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.system.functions:
            self.tables.setdefault(name, {})

    def of(self, sort: Term) -> list[Value]:
        """The members of a sort, or the values of an enumeration."""
        return [*self.members[sort.name()]] if sort.name() in self.members else [*_values(sort)]

    def get(self, name: str, *arguments: Value) -> Value:
        return self.tables[name].get(arguments, _default(self.system.functions[name].range()))

    def put(self, name: str, *arguments_and_value: Value) -> None:
        """Say what a rigid function is."""
        *arguments, value = arguments_and_value
        self.tables[name][tuple(arguments)] = value

    def allows(self, action: str, **parameters: Value) -> bool:
        """Whether its guard holds."""
        return bool(_compiled(self.system.name, action).guard(self, parameters, ()))

    def take(self, action: str, **parameters: Value) -> None:
        """Take the step. Raises `NotThat` if its guard does not hold."""
        step = _compiled(self.system.name, action)
        if not step.guard(self, parameters, ()):
            shown = ", ".join(f"{n} = {v}" for n, v in parameters.items())
            failed = step.failed(self, parameters)
            raise NotThat(f"{action}({shown}) is not possible here: {failed}")
        changed = {}
        for name, body in step.after.items():
            function = self.system.functions[name]
            domain = [self.of(function.domain(i)) for i in range(function.arity())]
            changed[name] = {
                at: body(self, {**parameters, **{f"#{i}": v for i, v in enumerate(at)}}, ())
                for at in itertools.product(*domain)
            }
        self.tables.update(changed)

    def broken(self) -> list[str]:
        """The invariants that do not hold in this state."""
        return [
            name
            for name in self.system.invariants
            if not _invariant(self.system.name, name)(self, {}, ())
        ]


@dataclass(frozen=True)
class Step:
    """An action, compiled."""

    guard: Evaluate
    parts: tuple[tuple[str, Evaluate], ...]
    """The guard's conjuncts, with their text."""
    after: dict[str, Evaluate]
    """The functions that it changes; their arguments are called #0, #1, ..."""

    def failed(self, state: Concrete, parameters: dict[str, Value]) -> str:
        """The text of the first conjunct of the guard that does not hold."""
        return next(
            (name for name, part in self.parts if not part(state, parameters, ())), "its guard"
        )


@cache
def _compiled(system: str, action: str) -> Step:
    return _compile_action(load(system), load(system).actions[action])


@cache
def _invariant(system: str, name: str) -> Evaluate:
    return compiled(load(system).invariants[name].closed(load(system).state()), {})


def _compile_action(system: TransitionSystem, action: Action) -> Step:
    symbols = action.symbols()
    names = dict(zip((s.decl().name() for s in symbols), action.parameters, strict=True))
    before = system.state()
    guard, after = action.build(before, *symbols)
    conjuncts = guard.children() if z3.is_and(guard) else [guard]
    changes = {}
    for name, function in system.functions.items():
        changed = getattr(after, name)
        if changed is function:
            continue
        places = [z3.Const(f"#{i}", function.domain(i)) for i in range(function.arity())]
        body = changed(*places)
        changes[name] = compiled(body, names) if z3.is_expr(body) else _constant(body)
    return Step(
        compiled(guard, names),
        tuple((_said(c, system, names), compiled(c, names)) for c in conjuncts),
        changes,
    )


def _said(term: Term, system: TransitionSystem, names: dict[str, str]) -> str:
    """A conjunct in one line, with the names that its author gave."""
    text = " ".join(str(term).split()).replace(f"{system.name}.", "")
    for symbol, name in names.items():
        text = text.replace(symbol, name)
    return text


def compiled(term: Term, names: dict[str, str]) -> Evaluate:
    """A closure that gives the term's value. `names` says how the parameters among its constants are called."""
    if z3.is_quantifier(term):
        return _quantified(term, names)
    if z3.is_var(term):
        place = -1 - z3.get_var_index(term)
        return lambda state, given, bound: bound[place]
    if z3.is_int_value(term):
        return _constant(term.as_long())
    kind, parts = term.decl().kind(), [compiled(child, names) for child in term.children()]
    if kind == z3.Z3_OP_TRUE or kind == z3.Z3_OP_FALSE:
        return _constant(kind == z3.Z3_OP_TRUE)
    if kind == z3.Z3_OP_DT_CONSTRUCTOR:
        return _constant(term.decl().name())
    if kind == z3.Z3_OP_UNINTERPRETED:
        name = term.decl().name()
        if "." not in name:
            name = names.get(name, name)
            return lambda state, given, bound: given[name]
        name = name.split(".", 1)[1]
        return lambda state, given, bound: state.get(
            name, *[part(state, given, bound) for part in parts]
        )
    return _operation(kind, parts, term)


def _quantified(term: Term, names: dict[str, str]) -> Evaluate:
    body = compiled(term.body(), names)
    sorts = [term.var_sort(i) for i in range(term.num_vars())]
    collect = all if term.is_forall() else any
    return lambda state, given, bound: collect(
        body(state, given, (*bound, *chosen))
        for chosen in itertools.product(*(state.of(sort) for sort in sorts))
    )


def _operation(kind: int, parts: list[Evaluate], term: Term) -> Evaluate:
    if kind == z3.Z3_OP_AND:
        return lambda state, given, bound: all(p(state, given, bound) for p in parts)
    if kind == z3.Z3_OP_OR:
        return lambda state, given, bound: any(p(state, given, bound) for p in parts)
    if kind == z3.Z3_OP_NOT:
        (inner,) = parts
        return lambda state, given, bound: not inner(state, given, bound)
    if kind == z3.Z3_OP_ITE:
        when, then, other = parts
        return lambda state, given, bound: (
            then(state, given, bound) if when(state, given, bound) else other(state, given, bound)
        )
    if kind == z3.Z3_OP_ADD:
        return lambda state, given, bound: sum(int(p(state, given, bound)) for p in parts)
    first, second = parts
    if kind == z3.Z3_OP_IMPLIES:
        return lambda state, given, bound: (
            not first(state, given, bound) or bool(second(state, given, bound))
        )
    if kind in (z3.Z3_OP_EQ, z3.Z3_OP_IFF):
        return lambda state, given, bound: first(state, given, bound) == second(state, given, bound)
    if kind in (z3.Z3_OP_DISTINCT, z3.Z3_OP_XOR):
        return lambda state, given, bound: first(state, given, bound) != second(state, given, bound)
    numeric = {
        z3.Z3_OP_LE: le,
        z3.Z3_OP_LT: lt,
        z3.Z3_OP_GE: ge,
        z3.Z3_OP_GT: gt,
        z3.Z3_OP_SUB: sub,
    }
    if kind not in numeric:
        raise NotImplementedError(f"no way to evaluate {term.decl()}")
    operate = numeric[kind]
    return lambda state, given, bound: operate(
        int(first(state, given, bound)), int(second(state, given, bound))
    )


def _constant(value: Value) -> Evaluate:
    return lambda state, given, bound: value


def _values(sort: Term) -> list[str]:
    return [sort.constructor(i).name() for i in range(sort.num_constructors())]


def _default(sort: Term) -> Value:
    if sort == z3.BoolSort():
        return False
    if sort == z3.IntSort():
        return 0
    return _values(sort)[0] if isinstance(sort, z3.DatatypeSortRef) else NOBODY
