"""Why a condition does not hold in a concrete state: not the whole of it, but the part that fails, for which members.

A guard that forbids many things at once (`settle`: a call returns only if its thread is bound to nothing) is rejected
because of one of them. The sentence says which, and names those to whom it happens.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import z3

from seriatim_workshop.formal.source import SourceWriter, Value, values
from seriatim_workshop.formal.theory import Term
from seriatim_workshop.formal.wording import needed, worded


class Rejection:
    """Finds what fails, in one state. Constants that stand for members are named in `names`."""

    def __init__(
        self,
        tables: Mapping[str, Mapping[tuple[Value, ...], Value]],
        members: Mapping[str, list[str]],
        names: Mapping[str, str],
        parameters: Mapping[str, Value],
    ) -> None:
        self._tables, self._members = tables, members
        self._names = dict(names)
        self._values = dict(parameters)

    def why(self, term: Term) -> str:
        """A sentence about a condition that is false here."""
        text = self._false(term)
        for name, value in sorted(self._values.items(), key=lambda p: -len(p[0])):
            text = text.replace(f"<{name}>", str(value))
        return text

    def _false(self, term: Term) -> str:
        """What is needed, and is not so, or must not be so, and is."""
        if z3.is_not(term):
            return f"it must not be that {self._true(term.arg(0))}"
        if z3.is_and(term):
            return self._false(next(part for part in term.children() if not self._holds(part)))
        if z3.is_implies(term):
            return f"{self._false(term.arg(1))}, since {self._true(term.arg(0))}"
        if z3.is_quantifier(term) and term.is_forall():
            return self._false(next(one for one in self._instances(term) if not self._holds(one)))
        return needed(term, self._names)

    def _true(self, term: Term) -> str:
        """What is so."""
        if z3.is_or(term):
            return self._true(next(part for part in term.children() if self._holds(part)))
        if z3.is_and(term):
            return " and ".join(self._true(part) for part in term.children())
        if z3.is_quantifier(term) and term.is_exists():
            return self._true(next(one for one in self._instances(term) if self._holds(one)))
        return worded(term, self._names)

    def _instances(self, term: Term) -> Iterator[Term]:
        """The body of a quantifier, for each choice of members."""
        sorts = [term.var_sort(i) for i in range(term.num_vars())]
        for chosen in itertools.product(*map(self._domain, sorts)):
            constants = [
                self._constant(value, sort) for value, sort in zip(chosen, sorts, strict=True)
            ]
            yield z3.substitute_vars(term.body(), *reversed(constants))

    def _domain(self, sort: Term) -> list[Value]:
        if isinstance(sort, z3.DatatypeSortRef):
            return [*values(sort)]
        return [False, True] if sort == z3.BoolSort() else [*self._members[sort.name()]]

    def _constant(self, value: Value, sort: Term) -> Term:
        """What stands for a member in a term."""
        if isinstance(value, bool):
            return z3.BoolVal(value)
        if isinstance(sort, z3.DatatypeSortRef):
            return sort.constructor(values(sort).index(str(value)))()
        name = f"?{len(self._names)}"
        self._names[name] = name
        self._values[name] = value
        return z3.Const(name, sort)

    def _holds(self, term: Term) -> bool:
        write = SourceWriter({name: repr(self._values[as_]) for name, as_ in self._names.items()})
        return bool(write.function(f"return {write(term)}", [])(self._tables, self._members))
