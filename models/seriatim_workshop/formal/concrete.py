"""The formulas of a system, evaluated on a finite, concrete state: the same ones that the solver proves things about.

Members are named by strings; a number is an int, a truth value a bool, a value of an enumeration its name.
An action is translated once into a Python function that looks its guard up in tables and changes only the places
that the action names, since it is evaluated at every step of every execution.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property

import z3

from seriatim_workshop.formal.rejection import Rejection
from seriatim_workshop.formal.source import (
    Function,
    SourceWriter,
    Value,
    default,
    values,
)
from seriatim_workshop.formal.theory import (
    Action,
    Claim,
    SymbolicState,
    Term,
    TransitionSystem,
)

Arguments = tuple[Value, ...]
Table = dict[Arguments, Value]
Changes = list[tuple[str, Table]]
"""The functions that a step changes, each with the values that it has afterwards where it may have changed."""


class NotThat(Exception):
    """The specification has no such step here; the message says why."""


@dataclass
class Concrete:
    """A state with named members."""

    system: TransitionSystem
    members: dict[str, list[str]]
    """By sort. Members may be added at any time."""
    tables: dict[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.system.functions:
            self.tables.setdefault(name, {})
        self._defaults = defaults(self.system)

    def get(self, name: str, *arguments: Value) -> Value:
        return self.tables[name].get(arguments, self._defaults[name])

    def put(self, name: str, *arguments_and_value: Value) -> None:
        """Say what a rigid function is."""
        *arguments, value = arguments_and_value
        self.tables[name][tuple(arguments)] = value

    def allows(self, action: str, **parameters: Value) -> bool:
        """Whether its guard holds."""
        step = compiled(self.system.actions[action], self.system)
        return bool(step.guard(self.tables, self.members, **parameters))

    def take(self, action: str, **parameters: Value) -> Changes:
        """Take the step and return what it may have changed. Raises `NotThat` if its guard does not hold."""
        return self.perform(self.system.actions[action], parameters)

    def taken(self, action: str, **parameters: Value) -> Changes | None:
        """Take the step if its guard holds, and return what it may have changed; None if it does not."""
        return self._performed(compiled(self.system.actions[action], self.system), parameters)

    def _performed(self, step: Step, parameters: dict[str, Value]) -> Changes | None:
        changes: Changes | None = step.after(self.tables, self.members, **parameters)
        for name, changed in changes or ():
            self.tables[name].update(changed)
        return changes

    def perform(self, action: Action, parameters: dict[str, Value]) -> Changes:
        """Take the step, of the system or of a broken variant. Raises `NotThat` if its guard does not hold."""
        step = compiled(action, self.system)
        changes = self._performed(step, parameters)
        if changes is None:
            shown = ", ".join(f"{n} = {v}" for n, v in parameters.items())
            raise NotThat(
                f"{action.name}({shown}) is not possible here: {self._why(step, parameters)}"
            )
        return changes

    def _why(self, step: Step, parameters: dict[str, Value]) -> str:
        """The first condition of the guard that does not hold, and what in it, with the members' names."""
        for term, names, part in step.parts:
            if not part(self.tables, self.members, **parameters):
                rejection = Rejection(self.tables, self.members, names, parameters)
                return rejection.why(_settled(term, names, parameters))
        return "its guard"

    def holds(self, claim: Claim, before: Concrete | None = None) -> bool:
        """Whether a claim is true of this state, for all values of its parameters (of `before` and this one)."""
        tables = self.tables
        if before is not None:
            tables = {**tables, **{f"before {name}": t for name, t in before.tables.items()}}
        return bool(evaluator(claim, self.system, before is not None)(tables, self.members))

    def witnesses(self, claim: Claim) -> bool:
        """Whether a claim is true of this state for some values of its parameters."""
        return bool(evaluator(claim, self.system, False, "any")(self.tables, self.members))

    def broken(self) -> list[str]:
        """The invariants that do not hold in this state."""
        return [name for name, claim in self.system.invariants.items() if not self.holds(claim)]

    def copy(self) -> Concrete:
        """The same state, on its own."""
        return Concrete(self.system, self.members, {n: dict(t) for n, t in self.tables.items()})


@dataclass(frozen=True)
class Step:
    """An action, translated: each part of it when it is first asked for."""

    action: Action
    system: TransitionSystem
    allowed: Term
    """The guard."""
    changed: SymbolicState
    """The state afterwards."""
    names: dict[str, str]
    """Of the constants that stand for the parameters: which."""

    @cached_property
    def guard(self) -> Function:
        """Whether the guard holds."""
        return self._function(self.allowed)

    @cached_property
    def parts(self) -> tuple[tuple[Term, dict[str, str], Function], ...]:
        """The guard's conjuncts, what their constants are called, and each as a function."""
        conjuncts = self.allowed.children() if z3.is_and(self.allowed) else [self.allowed]
        return tuple((one, self.names, self._function(one)) for one in conjuncts)

    @cached_property
    def after(self) -> Function:
        """Returns `Changes`, or None if the guard does not hold."""
        updates = SourceWriter(self.names)
        allowed = updates(self.allowed)
        changes = []
        for name, function in self.system.functions.items():
            changed = getattr(self.changed, name)
            if changed is not function:
                changes.append(f"({name!r}, {_change(updates, function, changed)})")
        body = f"return [{', '.join(changes)}] if {allowed} else None"
        return updates.function(body, [*self.action.parameters])

    def _function(self, term: Term) -> Function:
        write = SourceWriter(self.names)
        return write.function(f"return {write(term)}", [*self.action.parameters])


_COMPILED: dict[int, tuple[Action, Step]] = {}


def compiled(action: Action, system: TransitionSystem) -> Step:
    """The action as functions. They are kept as long as the action."""
    known = _COMPILED.get(id(action))
    if known is None:
        known = _COMPILED[id(action)] = (action, _translated(action, system))
    return known[1]


def _translated(action: Action, system: TransitionSystem) -> Step:
    symbols = action.symbols()
    names = {s.decl().name(): name for s, name in zip(symbols, action.parameters, strict=True)}
    guard, after = action.build(system.state(), *symbols)
    return Step(action, system, guard, after, names)


def _settled(term: Term, names: dict[str, str], parameters: dict[str, Value]) -> Term:
    """The condition with the values of those parameters that are of an enumeration, and without what they decide."""
    known = []
    for constant in _constants(term):
        sort = constant.sort()
        if isinstance(sort, z3.DatatypeSortRef) and constant.decl().name() in names:
            value = parameters[names[constant.decl().name()]]
            known.append((constant, sort.constructor(values(sort).index(str(value)))()))
    return z3.simplify(z3.substitute(term, *known)) if known else term


def _constants(term: Term) -> set[Term]:
    """The constants in a term that no quantifier binds."""
    if z3.is_quantifier(term):
        return _constants(term.body())
    if z3.is_app(term) and term.num_args() == 0:
        return {term}
    return {constant for child in term.children() for constant in _constants(child)}


def _change(write: SourceWriter, function: Term, changed: Function) -> str:
    """The source of a dictionary of what changes in one table: of few places, if they are named; else of all."""
    places = [z3.Const(f"#{i}", function.domain(i)) for i in range(function.arity())]
    body = changed(*places)
    if not z3.is_expr(body):
        body = z3.BoolVal(body) if isinstance(body, bool) else z3.IntVal(body)
    points = _points(body, function, places)
    if points is not None:
        pairs = [f"({', '.join(map(write, at))}{',' * bool(at)}): {write(v)}" for at, v in points]
        return f"{{{', '.join(pairs)}}}"
    names = [write.bind(f"#{i}") for i in range(len(places))]
    loops = " ".join(
        f"for {name} in {write.domain(place.sort())}"
        for name, place in zip(names, places, strict=True)
    )
    return f"{{({', '.join(names)}{',' * bool(names)}): {write(body)} {loops}}}"


def _points(body: Term, function: Term, places: list[Term]) -> list[tuple[list[Term], Term]] | None:
    """The places that `at` names, the innermost change first; None if the change has another form."""
    if z3.is_app_of(body, z3.Z3_OP_ITE):
        condition, value, rest = body.children()
        tests = condition.children() if z3.is_and(condition) else [condition]
        if len(tests) == len(places) and all(
            z3.is_eq(test) and test.arg(0).eq(place)
            for test, place in zip(tests, places, strict=True)
        ):
            inner = _points(rest, function, places)
            return None if inner is None else [*inner, ([t.arg(1) for t in tests], value)]
        return None
    if not places:
        return [([], body)]
    return [] if body.eq(function(*places)) else None


def evaluator(
    claim: Claim, system: TransitionSystem, two: bool, quantifier: str = "all"
) -> Function:
    """A claim as a function of the tables (of two states, if it is about a step) and the members."""
    return _evaluator(id(claim), claim.name, quantifier, two, _ClaimOf(claim, system))


@dataclass(frozen=True, eq=False)
class _ClaimOf:
    """A claim with its system, kept as long as what was made of it."""

    claim: Claim
    system: TransitionSystem

    def __hash__(self) -> int:
        return id(self.claim)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ClaimOf) and other.claim is self.claim


@cache
def _evaluator(key: int, name: str, quantifier: str, two: bool, held: _ClaimOf) -> Function:
    claim, system = held.claim, held.system
    symbols = [z3.Const(f"{n}!", sort) for n, sort in claim.parameters.items()]
    write = SourceWriter({})
    loops = " ".join(
        f"for {write.bind(s.decl().name())} in {write.domain(s.sort())}" for s in symbols
    )
    if two:
        after = system.state()
        functions = {
            n: z3.Function(
                f"{system.name}.before {n}", *[f.domain(i) for i in range(f.arity())], f.range()
            )
            for n, f in system.functions.items()
        }
        body = write(claim.body(type(after)(functions), after, *symbols))
    else:
        body = write(claim.body(system.state(), *symbols))
    return write.function(f"return {quantifier}({body} {loops or 'for _ in (0,)'})", [])


_DEFAULTS: dict[int, tuple[TransitionSystem, dict[str, Value]]] = {}


def defaults(system: TransitionSystem) -> dict[str, Value]:
    """The value of each function where none was given."""
    known = _DEFAULTS.get(id(system))
    if known is None or len(known[1]) != len(system.functions):
        found = {each: default(f.range()) for each, f in system.functions.items()}
        known = _DEFAULTS[id(system)] = (system, found)
    return known[1]


def choices(state: Concrete, sorts: Iterable[Term], numbers: range) -> Iterable[Arguments]:
    """Every choice of members, values and numbers for these sorts."""
    domains: list[list[Value]] = []
    for sort in sorts:
        if sort == z3.IntSort():
            domains.append([*numbers])
        elif isinstance(sort, z3.DatatypeSortRef):
            domains.append([*values(sort)])
        else:
            domains.append([*state.members[sort.name()]])
    return itertools.product(*domains)
