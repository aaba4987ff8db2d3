"""Terms of the solver as Python source: evaluated at every step of every execution, they are made functions once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import z3

from seriatim_workshop.formal.theory import Term

Value = str | int | bool

NOBODY = "nobody"
"""The value of a function at arguments for which none was given."""

Function = Callable[..., Any]
"""Takes the tables, the members and an action's parameters; what it returns depends on what it was made of."""


class SourceWriter:
    """Writes terms as Python source, and notes which tables and sorts it names."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = dict(names)
        self._tables: dict[str, str] = {}
        self._sorts: dict[str, str] = {}
        self._bound: list[str] = []
        self._fresh = itertools.count()

    def function(self, body: str, parameters: list[str]) -> Function:
        """The function with this body, whose parameters are the tables, the members and these."""
        lines = [f"def made(T, M, {', '.join(parameters)}):"]
        lines += [f"    {local} = T[{name!r}]" for name, local in self._tables.items()]
        lines += [f"    {local} = M[{name!r}]" for name, local in self._sorts.items()]
        space: dict[str, Any] = {}
        exec("\n".join([*lines, f"    {body}"]), space)  # made of z3 terms alone
        made: Function = space["made"]
        return made

    def table(self, name: str) -> str:
        """The local variable that is the table."""
        return self._tables.setdefault(name, f"t_{name.replace(' ', '_')}")

    def bind(self, constant: str) -> str:
        """A local variable for a constant."""
        self._names[constant] = local = f"v{next(self._fresh)}"
        return local

    def domain(self, sort: Term) -> str:
        """What a variable of the sort goes over."""
        if isinstance(sort, z3.DatatypeSortRef):
            return repr(tuple(values(sort)))
        if sort == z3.BoolSort():
            return "(False, True)"
        name = str(sort.name())
        return self._sorts.setdefault(name, f"m_{name}")

    def __call__(self, term: Term) -> str:
        if z3.is_quantifier(term):
            return self._quantified(term)
        if z3.is_var(term):
            return self._bound[-1 - int(z3.get_var_index(term))]
        if z3.is_int_value(term):
            return str(term.as_long())
        kind = term.decl().kind()
        if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
            return str(kind == z3.Z3_OP_TRUE)
        if kind == z3.Z3_OP_DT_CONSTRUCTOR:
            return repr(str(term.decl().name()))
        parts = [self(child) for child in term.children()]
        if kind == z3.Z3_OP_UNINTERPRETED:
            name = term.decl().name()
            if "." not in name:
                return str(self._names.get(name, name))
            table = self.table(name.split(".", 1)[1])
            key = f"({', '.join(parts)}{',' * bool(parts)})"
            return f"{table}.get({key}, {default(term.sort())!r})"
        return _operation(kind, parts, term)

    def _quantified(self, term: Term) -> str:
        bound = [f"v{next(self._fresh)}" for _ in range(term.num_vars())]
        loops = " ".join(
            f"for {name} in {self.domain(term.var_sort(i))}" for i, name in enumerate(bound)
        )
        self._bound += bound
        body = self(term.body())
        del self._bound[-len(bound) :]
        return f"{'all' if term.is_forall() else 'any'}({body} {loops})"


def _operation(kind: int, parts: list[str], term: Term) -> str:
    """The source of one operation."""
    if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR):
        return f"({(' and ' if kind == z3.Z3_OP_AND else ' or ').join(parts)})"
    if kind == z3.Z3_OP_ADD:
        return f"({' + '.join(parts)})"
    if kind == z3.Z3_OP_NOT:
        return f"(not {parts[0]})"
    if kind == z3.Z3_OP_ITE:
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    if kind == z3.Z3_OP_IMPLIES:
        return f"(not {parts[0]} or {parts[1]})"
    symbols = {
        z3.Z3_OP_EQ: "==",
        z3.Z3_OP_IFF: "==",
        z3.Z3_OP_DISTINCT: "!=",
        z3.Z3_OP_XOR: "!=",
        z3.Z3_OP_LE: "<=",
        z3.Z3_OP_LT: "<",
        z3.Z3_OP_GE: ">=",
        z3.Z3_OP_GT: ">",
        z3.Z3_OP_SUB: "-",
    }
    if kind not in symbols or len(parts) != 2:
        raise NotImplementedError(f"no way to evaluate {term.decl()}")
    return f"({parts[0]} {symbols[kind]} {parts[1]})"


def values(sort: Term) -> list[str]:
    """The names of an enumeration's values."""
    return [sort.constructor(i).name() for i in range(sort.num_constructors())]


@cache
def default(sort: Term) -> Value:
    """The value of a function of this sort where none was given."""
    if sort == z3.BoolSort():
        return False
    if sort == z3.IntSort():
        return 0
    return values(sort)[0] if isinstance(sort, z3.DatatypeSortRef) else NOBODY
