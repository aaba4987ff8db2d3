"""How a transition system is written down: for a solver to prove, and to hold recorded executions against.

A *state* is a set of named functions over sorts that may have any number of members.
An *action* has parameters, a guard, and defines each function afterwards.
An *invariant* is a formula for every choice of its parameters. All of it is plain z3;
`induction` hands it to the solver; `concrete` evaluates the same formulas on finite, concrete states.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import z3

from seriatim_workshop.formal import SPEC

FOLDER = SPEC / "induction"
SYSTEMS = ("nodes", "entries", "lists", "consumers", "wakeups", "jobs", "handover")
"""The systems of `spec/induction`, in the order in which they build on each other."""

Term = Any
"""A z3 expression or sort. z3 ships no types, and builds its expressions by overloading every operator."""

Formula = Callable[..., Term]


class SymbolicState:
    """A state, symbolic: its functions by name. `but` gives the state after some of them changed."""

    def __init__(self, functions: Mapping[str, Formula]) -> None:
        self._functions = dict(functions)

    def __getattr__(self, name: str) -> Formula:
        try:
            return self._functions[name]
        except KeyError:
            raise AttributeError(f"the state has no function {name}") from None

    def but(self, **changed: Formula) -> SymbolicState:
        """Everything as it is, except these functions."""
        unknown = changed.keys() - self._functions.keys()
        if unknown:
            raise AttributeError(f"the state has no function {', '.join(sorted(unknown))}")
        return SymbolicState({**self._functions, **changed})


def at(function: Formula, *arguments_and_value: Term) -> Formula:
    """The function changed at one place: ``at(s.status, e, DELETED)``."""
    *places, value = arguments_and_value

    def changed(*arguments: Term) -> Term:
        here = [a == b for a, b in zip(arguments, places, strict=True)]
        return z3.If(z3.And(here), value, function(*arguments)) if here else value

    return changed


def every(*sorts_and_body: Any) -> Term:
    """For all members of the sorts: ``every(Entry, Consumer, lambda e, c: ...)``."""
    *sorts, body = sorts_and_body
    bound = [z3.FreshConst(sort, sort.name().lower()[0]) for sort in sorts]
    return z3.ForAll(bound, body(*bound))


def some(*sorts_and_body: Any) -> Term:
    """There are members of the sorts."""
    *sorts, body = sorts_and_body
    bound = [z3.FreshConst(sort, sort.name().lower()[0]) for sort in sorts]
    return z3.Exists(bound, body(*bound))


@dataclass(frozen=True)
class Action:
    """One atomic step that some thread may take."""

    name: str
    parameters: dict[str, Term]
    """Names and sorts."""
    build: Callable[..., tuple[Term, SymbolicState]]
    """From a state and the parameters: the guard, and the state afterwards."""
    description: str

    def symbols(self) -> list[Term]:
        """A fresh constant for each parameter."""
        return [z3.Const(f"{name}!", sort) for name, sort in self.parameters.items()]


@dataclass(frozen=True)
class Claim:
    """An invariant, or something that follows from the invariants, or holds between a state and the next."""

    name: str
    property: str
    """The id of the property that it is, or helps to prove; '' for a lemma of its own."""
    parameters: dict[str, Term]
    body: Formula
    description: str

    def closed(self, *states: SymbolicState) -> Term:
        """For all values of the parameters."""
        symbols = [z3.FreshConst(sort, name) for name, sort in self.parameters.items()]
        body = self.body(*states, *symbols)
        return z3.ForAll(symbols, body) if symbols else body

    def broken(self, *states: SymbolicState) -> Term:
        """For some values, which are constants, so that a counterexample names them."""
        symbols = [z3.Const(f"{name}?", sort) for name, sort in self.parameters.items()]
        return z3.Not(self.body(*states, *symbols))


@dataclass(frozen=True)
class BrokenVariant:
    """A broken action in the place of a right one, and the claim that it must break."""

    action: Action
    replaces: str
    breaks: str
    """The claim that is not preserved."""
    property: str
    finding: str
    """Its source: an F-number of FINDINGS.md, or the kind of mistake."""
    only_induction: str = ""
    """Why it breaks the induction only, and no promise that can be reached; '' if it does harm."""


@dataclass
class TransitionSystem:
    """A transition system with what is claimed of it."""

    name: str
    description: str
    sorts: tuple[Term, ...]
    """Any number of members each."""
    functions: dict[str, Term] = field(default_factory=dict)
    rigid: frozenset[str] = frozenset()
    """Functions that no action changes."""
    start: Formula = lambda s: z3.BoolVal(True)
    actions: dict[str, Action] = field(default_factory=dict)
    invariants: dict[str, Claim] = field(default_factory=dict)
    safety: dict[str, Claim] = field(default_factory=dict)
    steps: dict[str, Claim] = field(default_factory=dict)
    """Claims about a state and the next one."""
    broken_variants: dict[str, BrokenVariant] = field(default_factory=dict)
    witnesses: dict[str, Claim] = field(default_factory=dict)
    """States that must be possible: the invariants are not empty."""

    def declare(self, name: str, *domain_and_range: Term, rigid: bool = False) -> None:
        """A function of the state."""
        self.functions[name] = z3.Function(f"{self.name}.{name}", *domain_and_range)
        if rigid:
            self.rigid |= {name}

    @cached_property
    def sort_names(self) -> tuple[str, ...]:
        """What its sorts are called. Each execution asks for them seven times, and the solver is slow to say."""
        return tuple(sort.name() for sort in self.sorts)

    def state(self) -> SymbolicState:
        """An arbitrary state."""
        return SymbolicState(self.functions)

    def next_state(self) -> SymbolicState:
        """An arbitrary state that may come after it; what is rigid is as before."""
        later = {
            name: function
            if name in self.rigid
            else z3.Function(
                f"{self.name}.{name}'",
                *(function.domain(i) for i in range(function.arity())),
                function.range(),
            )
            for name, function in self.functions.items()
        }
        return SymbolicState(later)

    # ---- decorators: the name is the function's, the explanation its docstring

    def initially(self, body: Formula) -> Formula:
        """Declare the initial states: the function returns their formula."""
        self.start = body
        return body

    def action(self, **parameters: Term) -> Callable[[Formula], Formula]:
        """Declare an atomic step: the function returns its guard and the state afterwards."""

        def register(build: Formula) -> Formula:
            self.actions[build.__name__] = _action(build, parameters)
            return build

        return register

    def broken(
        self,
        replaces: str,
        breaks: str,
        property: str,
        finding: str,
        only_induction: str = "",
        **parameters: Term,
    ) -> Callable[[Formula], Formula]:
        """Declare a broken variant of the action `replaces`, which must violate the claim `breaks`."""

        def register(build: Formula) -> Formula:
            made = _action(build, parameters)
            self.broken_variants[made.name] = BrokenVariant(
                made, replaces, breaks, property, finding, only_induction
            )
            return build

        return register

    def invariant(self, property: str = "", **parameters: Term) -> Callable[[Formula], Formula]:
        """Declare a formula that holds in every reachable state."""
        return self._claim(self.invariants, property, parameters)

    def safe(self, property: str, **parameters: Term) -> Callable[[Formula], Formula]:
        """Declare what is promised: it follows from the invariants."""
        return self._claim(self.safety, property, parameters)

    def step(self, property: str, **parameters: Term) -> Callable[[Formula], Formula]:
        """Declare a formula about a state and the next one."""
        return self._claim(self.steps, property, parameters)

    def witness(self, **parameters: Term) -> Callable[[Formula], Formula]:
        """Declare a state that must be possible."""
        return self._claim(self.witnesses, "", parameters)

    def _claim(
        self, where: dict[str, Claim], property: str, parameters: dict[str, Term]
    ) -> Callable[[Formula], Formula]:
        def register(body: Formula) -> Formula:
            name = body.__name__
            where[name] = Claim(name, property, parameters, body, _description(body))
            return body

        return register


def _action(build: Formula, parameters: dict[str, Term]) -> Action:
    return Action(build.__name__, parameters, build, _description(build))


def _description(function: Formula) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise ValueError(f"{function.__name__} has no docstring, which explains it in the proofs")
    return text


def load(name: str) -> TransitionSystem:
    """A system of `spec/induction`."""
    if name not in SYSTEMS:
        raise ValueError(f"there is no system {name}; there are {', '.join(SYSTEMS)}")
    system: TransitionSystem = module(name).SYSTEM
    return system


@cache
def module(name: str) -> Any:  # Any: what a file of `spec/induction` declares
    """A file of `spec/induction`."""
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"seriatim_induction_{name}", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded
