"""A small state that satisfies a formula, and a way to read it: counterexamples to induction, and witnesses.

Each sort gets at most one member, then two, then three; a state of fewer members is easier to read.
Then every fact that may as well be false, zero or the first of its kind is made so, and what is left is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import z3

from seriatim_workshop.formal.theory import Action, Term, TransitionSystem

SIZES = (1, 2, 3)
"""What needs more than three of a kind would not be found, and would be called open."""
SECONDS_MAX = 120
NUMBERS = range(4)
"""Places are made as small as one of these, if they can be."""


@dataclass(frozen=True)
class Small:
    """A satisfiable set of facts over few members."""

    system: TransitionSystem
    solver: Term
    members: dict[str, list[Term]]
    """By sort."""
    action: Action | None
    """The action that is about to be taken, if there is one."""

    def __str__(self) -> str:
        """What is so before and after, one fact a line."""
        hidden = self._simplify()
        model = self.solver.model()
        names = self._names(model)

        def value(term: Term) -> str:
            shown = str(model.eval(_term(term), model_completion=True))
            return names.get(shown, shown)

        state = self.system.state()
        action, symbols = self.action, []
        after, head, titles = state, "", ("", "so", "")
        if action is not None:
            symbols = action.symbols()
            after = action.build(state, *symbols)[1]
            shown = ", ".join(
                f"{n} = {value(s)}" for n, s in zip(action.parameters, symbols, strict=True)
            )
            head, titles = f"{action.name}({shown})\n", ("", "before", "after")
        lines = [titles]
        for name, arguments in self._places():
            fact = getattr(state, name)(*arguments)
            before, then = value(fact), value(getattr(after, name)(*arguments))
            if before != then or fact.get_id() not in hidden:
                words = " ".join((name, *map(value, arguments)))
                lines.append((words, before, "" if before == then else then))
        widths = [max(len(line[k]) for line in lines) for k in range(2)]
        return head + "\n".join(
            f"  {w:{widths[0]}}   {b:{widths[1]}}   {a}".rstrip() for w, b, a in lines
        )

    def closed(self) -> list[Term]:
        """There are no others than the members: every function stays among them, and so do the constants."""
        state = self.system.state()
        facts = [getattr(state, name)(*arguments) for name, arguments in self._places()]
        facts += [c for c in _constants(self.solver.assertions()) if c not in self._everybody()]
        return [
            z3.Or([fact == member for member in self.members[fact.sort().name()]])
            for fact in facts
            if fact.sort() in self.system.sorts
        ]

    def _everybody(self) -> set[Term]:
        return {member for members in self.members.values() for member in members}

    def _places(self) -> list[tuple[str, tuple[Term, ...]]]:
        """Every function at every choice of members."""
        return [
            (name, arguments)
            for name, function in self.system.functions.items()
            for arguments in itertools.product(
                *(self._plain(function.domain(i)) for i in range(function.arity()))
            )
        ]

    def _simplify(self) -> set[int]:
        """Add to the facts what may as well be so; the ids of the terms about which there is nothing to say."""
        state = self.system.state()
        hidden = set()
        for name, arguments in self._places():
            fact = getattr(state, name)(*arguments)
            plain, *others = self._plain(fact.sort())
            if self._can_be(fact == plain):
                if not (fact.sort() in self.system.sorts and not self._can_be(fact != plain)):
                    hidden.add(fact.get_id())
                elif len(others) == 0:
                    hidden.add(fact.get_id())  # it is the only one of its kind
                self.solver.add(fact == plain)
            else:
                found = next((v for v in others if self._can_be(fact == v)), None)
                if found is not None:
                    self.solver.add(fact == found)
        assert str(self.solver.check()) == "sat"
        return hidden

    def _can_be(self, fact: Term) -> bool:
        return str(self.solver.check(fact)) == "sat"

    def _plain(self, sort: Term) -> list[Term]:
        """The values that a function may have, the one of which there is least to say first."""
        if sort in self.system.sorts:
            return self.members[sort.name()]
        if sort == z3.BoolSort():
            return [z3.BoolVal(False), z3.BoolVal(True)]
        if sort == z3.IntSort():
            return [z3.IntVal(n) for n in NUMBERS]
        return constructors(sort)

    def _names(self, model: Term) -> dict[str, str]:
        """The solver's name of a member -> e1, e2, c1, ..."""
        return {
            str(model.eval(member, model_completion=True)): member.decl().name()
            for members in self.members.values()
            for member in reversed(members)
        }


def smallest(system: TransitionSystem, facts: list[Term], action: Action | None) -> Small | None:
    """As few members as there can be; None if nothing was found."""
    sizes = sorted(itertools.product(SIZES, repeat=len(system.sorts)), key=sum)
    for counts in sizes:
        members = {
            sort.name(): [z3.Const(f"{sort.name()[0].lower()}{i + 1}", sort) for i in range(count)]
            for sort, count in zip(system.sorts, counts, strict=True)
        }
        solver = z3.Solver()
        solver.set("timeout", SECONDS_MAX * 1000)
        solver.add([ground(fact, members) for fact in facts])
        solver.add([z3.Distinct(these) for these in members.values() if len(these) > 1])
        small = Small(system, solver, members, action)
        solver.add(small.closed())
        if str(solver.check()) == "sat":
            return small
    return None


def ground(fact: Term, members: dict[str, list[Term]]) -> Term:
    """The same without quantifiers, instantiated for each member: what is left is easy to decide."""
    if z3.is_quantifier(fact):
        kinds = [fact.var_sort(i) for i in range(fact.num_vars())]
        parts = [
            ground(z3.substitute_vars(fact.body(), *reversed(chosen)), members)
            for chosen in itertools.product(
                *(members.get(s.name()) or constructors(s) for s in kinds)
            )
        ]
        return z3.And(parts) if fact.is_forall() else z3.Or(parts)
    children = fact.children()
    if not children:
        return fact
    made = [ground(child, members) for child in children]
    if z3.is_and(fact):
        return z3.And(made)
    return z3.Or(made) if z3.is_or(fact) else fact.decl()(*made)


def constructors(sort: Term) -> list[Term]:
    """The values of an enumeration."""
    return [sort.constructor(i)() for i in range(sort.num_constructors())]


def _constants(facts: Iterable[Term]) -> set[Term]:
    """The constants that occur in the facts."""
    found, todo, seen = set(), list(facts), set()
    while todo:
        term = todo.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        todo += term.children()
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found.add(term)
    return found


def _term(value: Term) -> Term:
    """What an action writes may be a plain bool or int."""
    if isinstance(value, bool):
        return z3.BoolVal(value)
    return z3.IntVal(value) if isinstance(value, int) else value
