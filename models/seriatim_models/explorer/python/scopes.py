"""Which names of a module several threads can rebind: closure variables and globals, found in its syntax tree.

A local variable belongs to one call and so to one thread, unless a function defined inside it uses it as well:
then it is a *closure variable* (a cell, in CPython's words), and a thread may run the inner function.
A global is shared by all threads; it is worth watching only if some function rebinds it (`global name`).
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ComprehensionNode = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(eq=False)
class Scope:
    """One block of names: a module, a class, a function or a comprehension."""

    kind: str
    """``module``, ``class``, ``function`` or ``comprehension`` (``generator`` for one that runs later); ``annotation``
    for the parameters of a generic and for what is evaluated when somebody asks for it."""
    name: str
    parent: Scope | None
    bound: Counter[str] = field(default_factory=Counter)
    """How often each name is bound here, parameters apart."""
    parameters: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    cells: set[str] = field(default_factory=set)
    """Its variables that a function inside it uses."""
    token: str = ""
    """Name of the local variable that stands for one activation of this scope."""

    @property
    def qualname(self) -> str:
        """The name as Python's `__qualname__` has it."""
        around = self.parent
        while around is not None and around.kind == "annotation":
            around = around.parent
        if around is None or around.kind == "module":
            return self.name
        link = ".<locals>." if around.kind != "class" else "."
        return f"{around.qualname}{link}{self.name}"

    def binds(self, name: str) -> bool:
        """Whether the name is a variable of this scope."""
        if name in self.globals or name in self.nonlocals:
            return False
        return name in self.parameters or name in self.bound

    def owner(self, name: str) -> Scope | None:
        """The function or comprehension whose variable `name` is here; None for a global or built-in name."""
        scope: Scope | None = self
        sees_class = True
        while scope is not None and scope.kind != "module":
            if name in scope.globals:
                return None
            if (sees_class or scope.kind != "class") and scope.binds(name):
                return None if scope.kind == "class" else scope
            sees_class = sees_class and scope.kind == "annotation"
            scope = scope.parent
        return None

    def in_class(self, name: str) -> bool:
        """Whether a name that is none of a function is an attribute of the class around, and no global."""
        scope: Scope | None = self
        while scope is not None and scope.kind == "annotation":
            scope = scope.parent
        return scope is not None and scope.kind == "class" and scope.binds(name)


class ScopeFinder(ast.NodeVisitor):
    """Builds the scopes of a module; `scopes` maps the node that opens a scope to it."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope("module", "<module>", None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.here = self.module
        self.annotations = None if _as_text(tree) else ANNOTATIONS
        """When annotations are evaluated; None: they stay a text."""
        for statement in tree.body:
            self.visit(statement)
        self._find_cells()

    @property
    def rebound_globals(self) -> set[str]:
        """Globals that a function of the module declares with `global`."""
        return {name for scope in self.scopes.values() for name in scope.globals}

    # -- binding ----------------------------------------------------------------------------------------------------

    def _bind(self, name: str, scope: Scope | None = None) -> None:
        (scope or self.here).bound[name] += 1

    def _statement_scope(self) -> Scope:
        scope = self.here
        while scope.kind in ("comprehension", "generator") and scope.parent is not None:
            scope = scope.parent
        return scope

    def visit_Name(self, node: ast.Name) -> None:
        """Record a use or a binding."""
        if isinstance(node.ctx, ast.Load):
            self.here.used.add(node.id)
        else:
            self._bind(node.id)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Bind in the function around, as Python does even inside a comprehension."""
        self.visit(node.value)
        self._bind(node.target.id, self._statement_scope())

    def visit_Global(self, node: ast.Global) -> None:
        """Record a declaration."""
        self.here.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """Record a declaration, which is a use, too."""
        self.here.nonlocals.update(node.names)
        self.here.used.update(node.names)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Bind what is imported."""
        for alias in node.names:
            self._bind(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Bind the exception."""
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        """Bind what a pattern captures."""
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        """Bind what a pattern captures of all other keys."""
        if node.rest:
            self._bind(node.rest)
        self.generic_visit(node)

    # -- scopes -----------------------------------------------------------------------------------------------------

    def _inside(self, node: ast.AST, kind: str, name: str, parts: Iterable[ast.AST]) -> Scope:
        around = self.here
        scope = self.scopes[node] = self.here = Scope(kind, name, around)
        for part in parts:
            self.visit(part)
        self.here = around
        return scope

    def _generic(self, node: ast.AST) -> None:
        """Open the scope of the parameters of a generic, if it has any; who calls it closes it."""
        parameters = type_parameters(node)
        if parameters:
            scope = self.scopes[parameters[0]] = self.here = Scope("annotation", "", self.here)
            scope.parameters = {parameter.name for parameter in parameters}
            for parameter in parameters:
                for part in evaluated_later(parameter):
                    self._later(getattr(*part))

    def _later(self, part: ast.expr) -> None:
        self._inside(part, "annotation", "", (part,))

    def _annotated(self, annotation: ast.expr) -> None:
        """What an annotation reads, now or when somebody asks for it."""
        if self.annotations == "later":
            self._later(annotation)
        elif self.annotations is not None:
            self.visit(annotation)

    def _function(self, node: FunctionNode, name: str, body: list[ast.AST]) -> None:
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)
        outside = self.here
        self._generic(node)
        for part in annotations_of(node):
            self._annotated(getattr(*part))
        scope = self._inside(node, "function", name, ())
        scope.parameters = {argument.arg for argument in arguments_of(arguments)}
        self.here = scope
        for statement in body:
            self.visit(statement)
        self.here = outside

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Bind the name; open a scope."""
        self._bind(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._function(node, node.name, list(node.body))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Open a scope."""
        self._function(node, "<lambda>", [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Bind the name; open a scope, whose names are attributes and no variables."""
        self._bind(node.name)
        for decorator in node.decorator_list:
            self.visit(decorator)
        outside = self.here
        self._generic(node)
        for part in (*node.bases, *node.keywords):
            self.visit(part)
        self._inside(node, "class", node.name, node.body)
        self.here = outside

    def visit_TypeAlias(self, node: Any) -> None:
        """Bind the name of `type X = value`; the value is evaluated when somebody asks for it."""
        self._bind(node.name.id)
        outside = self.here
        self._generic(node)
        self._later(node.value)
        self.here = outside

    def _comprehension(self, node: ComprehensionNode) -> None:
        self.visit(node.generators[0].iter)
        parts: list[ast.AST] = []
        for k, generator in enumerate(node.generators):
            parts += [generator.target, *generator.ifs, *([generator.iter] if k else [])]
        if isinstance(node, ast.DictComp):
            parts += [node.key, node.value]
        else:
            parts.append(node.elt)
        kind = "generator" if isinstance(node, ast.GeneratorExp) else "comprehension"
        self._inside(node, kind, f"<{kind}>", parts)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """An annotation, which within a function nobody evaluates."""
        self.visit(node.target)
        if self.here.kind != "function":
            self._annotated(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    # -- closure variables ------------------------------------------------------------------------------------------

    def _find_cells(self) -> None:
        """Mark the variables that an inner function uses, but for parameters that nobody rebinds."""
        for scope in list(self.scopes.values()):
            for name in scope.used:
                owner = scope.owner(name)
                if owner is None or not _leaves_the_call(scope, owner):
                    continue
                if owner.bound[name] or name not in owner.parameters or self._rebound(owner, name):
                    owner.cells.add(name)
        number = 0
        for scope in self.scopes.values():
            if scope.cells:
                number += 1
                scope.token = f"__s_scope_{number}__"

    def _rebound(self, owner: Scope, name: str) -> bool:
        return any(
            name in scope.nonlocals and scope.owner(name) is owner for scope in self.scopes.values()
        )


def _leaves_the_call(user: Scope, owner: Scope) -> bool:
    """Whether code of `user` may run outside the call that `owner` is: a function or generator lies between."""
    scope: Scope | None = user
    while scope is not None and scope is not owner:
        if scope.kind in ("function", "generator", "annotation"):
            return True
        scope = scope.parent
    return False


def arguments_of(arguments: ast.arguments) -> Iterator[ast.arg]:
    """Every parameter of a function."""
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            yield extra


# -- what is evaluated when somebody asks for it -----------------------------------------------------------------------

ANNOTATIONS = "later" if sys.version_info >= (3, 14) else "at once"
"""When this interpreter evaluates annotations."""


def _as_text(tree: ast.Module) -> bool:
    """Whether a module leaves its annotations a text: `from __future__ import annotations`."""
    return any(
        isinstance(statement, ast.ImportFrom)
        and statement.module == "__future__"
        and any(alias.name == "annotations" for alias in statement.names)
        for statement in tree.body
    )


Part = tuple[Any, str]
"""A piece of code by the node that has it, and its name there."""


def annotations_of(node: FunctionNode) -> list[Part]:
    """The annotations of the parameters of a function, and of what it returns."""
    found: list[Part] = [(argument, "annotation") for argument in arguments_of(node.args)]
    return [part for part in (*found, (node, "returns")) if getattr(*part, None) is not None]


def type_parameters(node: ast.AST) -> list[Any]:
    """The parameters `[T, *Ts, **P]` of a generic function, class or alias, which there are since 3.12."""
    return getattr(node, "type_params", None) or []


def evaluated_later(parameter: ast.AST) -> list[Part]:
    """The bound and the default of a parameter of a generic."""
    found = [(parameter, name) for name in ("bound", "default_value")]
    return [part for part in found if getattr(*part, None) is not None]


# -- loops ------------------------------------------------------------------------------------------------------------


NAMING = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
)  # fmt: skip
"""What binds its `name`, if it has one."""


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a loop, without what is in the functions and classes that are defined there."""
    yield node
    if not isinstance(node, FunctionNode | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _inside(child)


def may_have_no_end(elements: ast.expr) -> bool:
    """Whether what a `for` goes through looks as if it had no end, and were made for this loop alone."""
    if not isinstance(elements, ast.Call):
        return False
    called = elements.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    return name in ("count", "repeat") or (name == "iter" and len(elements.args) == 2)


def suspends(loop: ast.For | ast.While) -> bool:
    """Whether each round of a loop lets others run in its thread: it yields, or goes through what is asynchronous."""
    waits = ast.Yield | ast.YieldFrom | ast.AsyncFor
    return any(
        isinstance(node, waits) or (isinstance(node, ast.comprehension) and node.is_async)
        for node in _inside(loop)
    )


def awaits(loop: ast.For | ast.While) -> bool:
    """Whether a round of a loop may let others run in its thread: what it awaits may be there already."""
    return any(isinstance(node, ast.Await | ast.AsyncWith) for node in _inside(loop))


def bound_in(loop: ast.For | ast.While) -> set[str]:
    """The names that a loop binds or deletes."""
    names: set[str] = set()
    for node in _inside(loop):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, NAMING) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names


def bound_first(loop: ast.While) -> set[str]:
    """Names that each round of a loop binds before anything reads them, also what comes after the loop.

    Found are `while (x := f()) is None` and `while True: x = f()`, if no statement before that may jump.
    """
    first: ast.AST = loop.test
    while True:
        if isinstance(first, ast.Compare):
            first = first.left
        elif isinstance(first, ast.UnaryOp):
            first = first.operand
        elif isinstance(first, ast.BoolOp):
            first = first.values[0]
        else:
            break
    if isinstance(first, ast.NamedExpr):
        return {first.target.id} - _loaded(first.value)
    found: set[str] = set()
    read: set[str] = set()
    if isinstance(loop.test, ast.Constant) and loop.test.value:
        for statement in loop.body:
            if not isinstance(statement, ast.Assign | ast.Expr):
                break
            read |= _loaded(statement)
            if isinstance(statement, ast.Assign):
                found |= {t.id for t in statement.targets if isinstance(t, ast.Name)} - read
    return found


def _loaded(node: ast.AST) -> set[str]:
    """The names that are read in a piece of code, also by functions that are defined there."""
    return {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
