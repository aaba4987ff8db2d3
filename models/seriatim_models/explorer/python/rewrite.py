"""Source code in, the same program out with a call before each access that another thread could see.

What the inserted calls do is in `hooks` and what that names. Here is only where they stand:

| source | becomes |
|---|---|
| `a.x`, `a.x = v`, `del a.x` | `__s_get__(a, "x", site)`, `__s_set__(v, a, "x", site)`, `__s_del__(a, "x", site)` |
| `a[k]`, `a[k] = v`, `del a[k]` | `__s_getitem__`, `__s_setitem__`, `__s_delitem__` |
| shared variable `x` | `(x if __s_cell__(scope, "x", site) is None else x)` |
| `x = v` of a shared variable | `x = __s_cell_set__(scope, "x", v, site)` |
| `f(a)` | `__s_call__(f, site, a)`: C code that reads or changes a container is an access |
| `a + b`, `a += b`, `a == b`, `a in b` | `__s_binary__`, `__s_inplace__`, `__s_compare__`, if of containers |
| `for x in a`, `if a`, f-strings | `__s_iter__(a, site)`, `__s_read__(a, site)` |
| `*a`, unpacking | `__s_spread__(a, site)` |
| `match a` | a chain of `if`, see `patterns` |
| `[...]`, `{...}`, comprehensions | `__s_made__(..., site)`: a container gets its name where it is made |

Shared variables are the closure variables and rebound globals of `scopes`. Line numbers stay, so tracebacks show the
user's lines. A `site` is the index of (file, line) in `SITES`.
An `async def` is rewritten like any function; what an `async for` calls is Python, and has steps of its own.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import sysconfig
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from seriatim_models.explorer.python.patterns import Conditions, condition
from seriatim_models.explorer.python.scopes import (
    Part,
    Scope,
    ScopeFinder,
    annotations_of,
    awaits,
    bound_first,
    bound_in,
    evaluated_later,
    may_have_no_end,
    suspends,
    type_parameters,
)

LIBRARY = sysconfig.get_path("stdlib")
"""Where the standard library lies."""


class Site(NamedTuple):
    """A line of source text."""

    path: str
    line: int
    function: str


SITES: list[Site] = [Site("", 0, "")]
"""Every line that an inserted call stands for, by number."""


def number_of(site: Site) -> int:
    """The number of a line that another process has numbered."""
    if site not in SITES:
        SITES.append(site)
    return SITES.index(site)


UNTOUCHED_CALLS = frozenset(
    ("super", "locals", "globals", "dir", "eval", "exec", "breakpoint", "isinstance", "issubclass", "callable",
     "range", "__import__")
)  # fmt: skip
"""Built-in functions that need the frame of their caller, or look at no contents."""

LOOKS_AT_VARIABLES = ("locals", "vars", "dir", "eval", "exec")
"""Built-in functions that see the variables of their caller."""

INPLACE = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.LShift: "ilshift", ast.RShift: "irshift", ast.BitOr: "ior",
    ast.BitXor: "ixor", ast.BitAnd: "iand", ast.MatMult: "imatmul",
}  # fmt: skip
BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Mod: "mod", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.BitAnd: "and_",
}  # fmt: skip
"""Operators that a container has; names of functions of `operator`."""
COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.In: "contains", ast.NotIn: "not_contains",
}  # fmt: skip

MADE = "<string>"
"""The file of the methods that `dataclasses` makes."""

HOOKED = "__s_"
"""How all names begin that rewritten code has and its source has not."""

MODULE_TOKEN = "__s_module__"
"""The global that stands for the module where a rebound global is an access."""


class Unrewritable(Exception):
    """Source that cannot be observed completely; the message says where and why."""


_cache: dict[tuple[str, str, frozenset[str]], CodeType] = {}


def rewritten(source: str, path: str, extra_globals: frozenset[str] = frozenset()) -> CodeType:
    """Compile a module's source with its accesses announced; cached by the hash of the source.

    `extra_globals` are globals that code outside the module rebinds. Raises `SyntaxError` and `Unrewritable`.
    """
    key = (path, hashlib.blake2b(source.encode(), digest_size=16).hexdigest(), extra_globals)
    code = _cache.get(key)
    if code is None:
        tree = rewritten_tree(ast.parse(source, path), path, extra_globals)
        code = _cache[key] = compile(tree, path, "exec", dont_inherit=True)
    return code


def rewritten_tree(
    tree: ast.Module, path: str, extra_globals: frozenset[str] = frozenset()
) -> ast.Module:
    """The syntax tree with its accesses announced; `tree` itself is changed."""
    Rewriter(tree, path, extra_globals).module(tree)
    return ast.fix_missing_locations(tree)


class _Variables(ast.NodeTransformer):
    """Puts something else in the place of variables."""

    def __init__(self, names: set[str], instead: Callable[[ast.Name], ast.expr]) -> None:
        self._names, self._instead = names, instead

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A variable."""
        read = node.id in self._names and isinstance(node.ctx, ast.Load)
        return self._instead(node) if read else node


class Rewriter(ast.NodeTransformer):
    """One module."""

    def __init__(self, tree: ast.Module, path: str, extra_globals: frozenset[str]) -> None:
        finder = ScopeFinder(tree)
        self.path = path
        self.scopes = finder.scopes
        self.scope: Scope = finder.module
        self.annotations = finder.annotations
        self.watched_globals = finder.rebound_globals | extra_globals
        self.classes: list[str] = []
        self.temporaries = 0
        self.of_library = path.startswith(LIBRARY) and "site-packages" not in path
        """Whether it is of the standard library, of which no loop waits by reading."""
        self.guarded = 0
        """How many statements around, in the function, may catch an exception."""
        self.sites: dict[tuple[int, str], int] = {}

    # -- small parts -----------------------------------------------------------------------------------

    def site(self, node: ast.AST) -> ast.expr:
        """The number of the node's line, as an expression."""
        line = getattr(node, "lineno", 0)
        key = (line, self.scope.qualname)
        number = self.sites.get(key)
        if number is None:
            number = self.sites[key] = len(SITES)
            SITES.append(Site(self.path, *key))
        return ast.Constant(number)

    def hook(self, name: str, node: ast.AST, *arguments: ast.expr) -> ast.Call:
        """A call of an inserted function, at the place of `node`."""
        called = ast.Call(ast.Name(f"__s_{name}__", ast.Load()), [*arguments, self.site(node)], [])
        return ast.copy_location(called, node)

    def temporary(self) -> str:
        """A fresh local name."""
        self.temporaries += 1
        return f"__s_t{self.temporaries}__"

    def mangled(self, name: str) -> ast.Constant:
        """An attribute's name as a constant, private names mangled as in the class around."""
        if name.startswith("__") and not name.endswith("__") and self.classes:
            stripped = self.classes[-1].lstrip("_")
            if stripped:
                name = f"_{stripped}{name}"
        return ast.Constant(name)

    def token(self, name: str) -> str:
        """The name of what stands for the scope of a shared variable; "" if `name` is no such variable here."""
        owner = self.scope.owner(name)
        if owner is not None:
            return owner.token if name in owner.cells else ""
        if name in self.watched_globals and not self.scope.in_class(name):
            return MODULE_TOKEN
        return ""

    def visited(self, node: ast.expr) -> ast.expr:
        """An expression after transformation."""
        result = self.visit(node)
        assert isinstance(result, ast.expr)
        return result

    def maybe_container(self, node: ast.expr) -> bool:
        """Whether an expression's value may be a container, as far as its form tells."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, bytes)  # which may be compared with a bytearray
        if isinstance(node, ast.JoinedStr | ast.Lambda | ast.Compare):
            return False
        return not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))

    def read(self, node: ast.expr) -> ast.expr:
        """The transformed expression, whose contents are read at once where it stands."""
        inner = self.visited(node)
        return self.hook("read", node, inner) if self.maybe_container(node) else inner

    def iterated(self, node: ast.expr) -> ast.expr:
        """What a `for` goes through."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "range":
                return self.visited(node)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            return self.generic_visit(node)  # type: ignore[return-value]  # nobody else has it
        return self.hook("iter", node, self.visited(node))

    # -- scopes ----------------------------------------------------------------------------------------

    def module(self, tree: ast.Module) -> None:
        """Rewrite the body of the module."""
        tree.body = self.block(tree.body)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements."""
        result: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            if isinstance(new, list):
                result += new
            elif new is not None:
                result.append(new)
        return result

    def _body_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
        scope = self.scopes[node]
        guarded, self.guarded = self.guarded, 0
        body = self.block(node.body)
        self.guarded = guarded
        if scope.cells:
            made = ast.Assign(
                [ast.Name(scope.token, ast.Store())],
                ast.Call(ast.Name("__s_scope__", ast.Load()), [ast.Constant(scope.qualname)], []),
            )
            at = int(ast.get_docstring(node, clean=False) is not None)
            body.insert(at, ast.copy_location(made, node.body[0]))
        return body

    def visit_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> ast.AST | list[ast.stmt]:
        """A function: its own scope; its annotations stay, but for variables that are shared."""
        node.decorator_list = [self.visited(d) for d in node.decorator_list]
        token = self.token(node.name)
        self._defaults(node.args)
        around = self.scope
        self._generic(node)
        if self.annotations is not None:
            for part in annotations_of(node):
                self._reads_variables(part)
        self.scope = self.scopes[node]
        node.body = self._body_of(node)
        self.scope = around
        if token:
            return [self._announced(node, token, node.name), node]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """A function of one expression."""
        self._defaults(node.args)
        around, self.scope = self.scope, self.scopes[node]
        node.body = self.visited(node.body)
        self.scope = around
        return node

    def _defaults(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visited(d) for d in arguments.defaults]
        arguments.kw_defaults = [d and self.visited(d) for d in arguments.kw_defaults]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST | list[ast.stmt]:
        """A class: its names are attributes."""
        node.decorator_list = [
            self.hook("decorated", d, self.visited(d)) for d in node.decorator_list
        ]
        token = self.token(node.name)
        around = self.scope
        self._generic(node)
        node.bases = [self.visited(b) for b in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visited(keyword.value)
        self.scope = self.scopes[node]
        self.classes.append(node.name)
        node.body = self.block(node.body)
        self.classes.pop()
        self.scope = around
        if token:
            return [self._announced(node, token, node.name), node]
        return node

    def _generic(self, node: ast.AST) -> None:
        """Enter the scope of the parameters of a generic; who calls it leaves it."""
        parameters = type_parameters(node)
        if parameters:
            self.scope = self.scopes[parameters[0]]
            for parameter in parameters:
                for part in evaluated_later(parameter):
                    self._reads_variables(part)

    def _reads_variables(self, part: Part) -> None:
        """Announce the shared variables of an annotation, or of its like; all else stays: `annotationlib` reads it."""
        code: ast.expr = getattr(*part)
        around, self.scope = self.scope, self.scopes.get(code, self.scope)
        shared = {
            each.id
            for each in ast.walk(code)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and self.token(each.id)
        }
        if shared:
            hook = "cell" if self.scope is around else "cell_later"
            setattr(*part, _Variables(shared, lambda name: self._read(name, hook)).visit(code))
        self.scope = around

    def visit_TypeAlias(self, node: Any) -> ast.AST | list[ast.AST]:
        """`type X = value`: the name is bound, the value is evaluated when somebody asks for it."""
        token = self.token(node.name.id)
        around = self.scope
        self._generic(node)
        self._reads_variables((node, "value"))
        self.scope = around
        return [self._announced(node, token, node.name.id), node] if token else node

    def _generated(self, generator: ast.comprehension) -> ast.expr:
        """What a `for`, or an `async for`, of a comprehension goes through."""
        go_through = self.visited if generator.is_async else self.iterated
        return go_through(generator.iter)

    def _with_scope(
        self, generator: ast.comprehension, scope: Scope, iterated: ast.expr
    ) -> ast.expr:
        """What the first `for` goes through, each element beside what stands for the comprehension's variables."""
        name = "__s_scoped_async__" if generator.is_async else "__s_scoped__"
        called = ast.Name(name, ast.Load())
        made = ast.Call(called, [iterated, ast.Constant(scope.qualname)], [])
        return ast.copy_location(made, iterated)

    def _bound(self, statement: ast.stmt, node: ast.expr) -> ast.comprehension:
        """`x = v` within a comprehension: `for x in (v,)`."""
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            raise Unrewritable(
                f"{self.path}:{node.lineno}: this comprehension stores into an attribute or an item: "
                "write a for statement"
            )
        once = ast.Tuple([statement.value], ast.Load())
        return ast.comprehension(statement.targets[0], once, [], 0)

    def _comprehension(self, node: ast.expr) -> ast.expr:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        scope = self.scopes[node]
        first = self._generated(generators[0])
        if scope.cells:
            first = self._with_scope(generators[0], scope, first)
        around, self.scope = self.scope, scope
        rewritten: list[ast.comprehension] = []
        for k, generator in enumerate(generators):
            generator.iter = first if k == 0 else self._generated(generator)
            after: list[ast.stmt] = []
            generator.target = self.plain(generator.target, after, node)
            if k == 0 and scope.cells:
                token = ast.Name(scope.token, ast.Store())
                generator.target = ast.Tuple([token, generator.target], ast.Store())
            rewritten += [generator, *(self._bound(each, node) for each in after)]
            conditions, generator.ifs = generator.ifs, []  # behind what binds the names
            rewritten[-1].ifs = [self.read(condition) for condition in conditions]
        node.generators = rewritten  # type: ignore[attr-defined]
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visited(node.key), self.visited(node.value)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            node.elt = self.visited(node.elt)
        self.scope = around
        return self.hook("made", node, node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """A container that is made here."""
        return self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        """A container that is made here."""
        return self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        """A container that is made here."""
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """An iterator."""
        return self._comprehension(node)

    # -- reading ---------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A variable; announced if it is shared."""
        if not (isinstance(node.ctx, ast.Load) and self.token(node.id)):
            return node
        return self._read(node, "cell")

    def _read(self, node: ast.Name, hook: str) -> ast.expr:
        """A shared variable, announced by this hook."""
        token = ast.Name(self.token(node.id), ast.Load())
        announced = self.hook(hook, node, token, ast.Constant(node.id))
        again = ast.copy_location(ast.Name(node.id, ast.Load()), node)
        test = ast.Compare(announced, [ast.Is()], [ast.Constant(None)])
        return ast.copy_location(ast.IfExp(test, again, node), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`a.x` as a value."""
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)  # type: ignore[return-value]
        return self.hook("get", node, self.visited(node.value), self.mangled(node.attr))

    def key(self, node: ast.expr) -> ast.expr:
        """A subscript, its slices made by calls."""
        if isinstance(node, ast.Slice):
            parts = [
                self.visited(part) if part is not None else ast.Constant(None)
                for part in (node.lower, node.upper, node.step)
            ]
            made = ast.Call(ast.Name("__s_slice__", ast.Load()), parts, [])
            return ast.copy_location(made, node)
        if isinstance(node, ast.Tuple):
            node.elts = [self.key(element) for element in node.elts]
            return node
        return self.visited(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`a[k]` as a value."""
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)  # type: ignore[return-value]
        return self.hook("getitem", node, self.visited(node.value), self.key(node.slice))

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        """`*a` in a call or a display reads all of `a` at once."""
        if isinstance(node.ctx, ast.Load):
            node.value = self.hook("spread", node, self.visited(node.value))
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call; what C code does to containers is announced."""
        untouched = isinstance(node.func, ast.Name) and node.func.id in UNTOUCHED_CALLS
        if untouched and node.func.id == "dir" and node.args:  # type: ignore[attr-defined]
            untouched = False
        runs_text = untouched and node.func.id in ("eval", "exec") and node.args  # type: ignore[attr-defined]
        function = node.func if untouched else self.visited(node.func)
        node.args = [self.visited(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = (
                self.read(keyword.value) if keyword.arg is None else self.visited(keyword.value)
            )
        if runs_text:
            node.args[0] = self.hook("text", node, node.args[0])
        if untouched:
            own = not node.args and node.func.id in ("locals", "dir")  # type: ignore[attr-defined]
            return ast.Call(ast.Name("__s_shown__", ast.Load()), [node], []) if own else node
        called = ast.Name("__s_call__", ast.Load())
        return ast.copy_location(
            ast.Call(called, [function, self.site(node), *node.args], node.keywords), node
        )

    def visit_List(self, node: ast.List) -> ast.expr:
        """A list that is made here."""
        self.generic_visit(node)
        return self.hook("made", node, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        """A set that is made here."""
        self.generic_visit(node)
        return self.hook("made", node, node)

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        """A dict that is made here."""
        for k, key in enumerate(node.keys):
            node.values[k] = (
                self.read(node.values[k]) if key is None else self.visited(node.values[k])
            )
            node.keys[k] = key and self.visited(key)
        return self.hook("made", node, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """`a + b`, where it may be about containers."""
        name = BINARY.get(type(node.op))
        numbers = any(
            isinstance(side, ast.Constant) and isinstance(side.value, int | float)
            for side in (node.left, node.right)
        )
        both = (node.left, node.right)
        plain = name is None or (numbers and not isinstance(node.op, ast.Mult))
        node.left, node.right = self.visited(node.left), self.visited(node.right)
        if plain or not any(self.maybe_container(side) for side in both):
            return node
        return self.hook("binary", node, ast.Constant(name), node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`a == b` and `a in b`."""
        sides = [node.left, *node.comparators]
        names = [COMPARE.get(type(op)) for op in node.ops]
        if len(node.ops) > 1:
            # A chain: each container is read where it is evaluated.
            reads = [
                self.read(side) if self.maybe_container(side) and any(names) else self.visited(side)
                for side in sides
            ]
            node.left, node.comparators = reads[0], reads[1:]
            return node
        before = list(sides)
        node.left, node.comparators[0] = self.visited(sides[0]), self.visited(sides[1])
        in_it = isinstance(node.ops[0], ast.In | ast.NotIn)
        if names[0] is None or not (
            all(self.maybe_container(side) for side in before)
            or (in_it and self.maybe_container(before[1]))
        ):
            return node
        return self.hook("compare", node, ast.Constant(names[0]), node.left, node.comparators[0])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`a and b`: the truth of a container is its length."""
        last = self.visited(node.values[-1])
        node.values = [*(self.read(value) for value in node.values[:-1]), last]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not a`."""
        negates = isinstance(node.op, ast.Not)
        node.operand = self.read(node.operand) if negates else self.visited(node.operand)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """`a if b else c`."""
        node.test = self.read(node.test)
        node.body, node.orelse = self.visited(node.body), self.visited(node.orelse)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        """A value in an f-string."""
        if self.maybe_container(node.value):
            node.value = self.hook("format", node, self.visited(node.value))
        if node.format_spec is not None:
            node.format_spec = self.visited(node.format_spec)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """`(x := a)`."""
        node.value = self.visited(node.value)
        token = self.token(node.target.id)
        if token:
            node.value = self._cell_set(node, token, node.target.id, node.value)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        """`yield from a`."""
        node.value = self.iterated(node.value)
        return node

    # -- writing ---------------------------------------------------------------------------------------

    def _announced(self, node: ast.AST, token: str, name: str) -> ast.stmt:
        """A statement that announces that a shared variable is about to be bound."""
        call = self.hook(
            "cell_set", node, ast.Name(token, ast.Load()), ast.Constant(name), ast.Constant(None)
        )
        return ast.copy_location(ast.Expr(call), node)

    def _cell_set(self, node: ast.AST, token: str, name: str, value: ast.expr) -> ast.expr:
        return self.hook("cell_set", node, ast.Name(token, ast.Load()), ast.Constant(name), value)

    def _instrumented(self, target: ast.expr) -> bool:
        """Whether storing into a target is an access."""
        if isinstance(target, ast.Name):
            return bool(self.token(target.id))
        if isinstance(target, ast.Starred):
            return self._instrumented(target.value)
        if isinstance(target, ast.Tuple | ast.List):
            return any(self._instrumented(element) for element in target.elts)
        return True

    def stored(self, target: ast.expr, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        """Statements that store an evaluated `value` into `target`."""
        if isinstance(target, ast.Attribute):
            call = self.hook(
                "set", node, value, self.visited(target.value), self.mangled(target.attr)
            )
            return [ast.copy_location(ast.Expr(call), node)]
        if isinstance(target, ast.Subscript):
            call = self.hook(
                "setitem", node, value, self.visited(target.value), self.key(target.slice)
            )
            return [ast.copy_location(ast.Expr(call), node)]
        if isinstance(target, ast.Name):
            token = self.token(target.id)
            if token:
                value = self._cell_set(node, token, target.id, value)
            return [ast.copy_location(ast.Assign([target], value), node)]
        assert isinstance(target, ast.Tuple | ast.List)
        after: list[ast.stmt] = []
        plain = self.plain(target, after, node)
        value = self.hook("spread", node, value)
        return [ast.copy_location(ast.Assign([plain], value), node), *after]

    def plain(self, target: ast.expr, after: list[ast.stmt], node: ast.AST) -> ast.expr:
        """A target into which storing is no access; `after` gets the statements that store from there."""
        if not self._instrumented(target):
            return target
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self.plain(element, after, node) for element in target.elts]
            return target
        if isinstance(target, ast.Starred):
            target.value = self.plain(target.value, after, node)
            return target
        name = self.temporary()
        after += self.stored(target, ast.Name(name, ast.Load()), node)
        return ast.copy_location(ast.Name(name, ast.Store()), target)

    def emptied(self, statements: list[ast.stmt], node: ast.AST) -> list[ast.stmt]:
        """Let go of what the temporary names hold that these statements have bound."""
        names = [
            statement.targets[0] for statement in statements if isinstance(statement, ast.Assign)
        ]
        return [ast.copy_location(ast.Assign([name], ast.Constant(None)), node) for name in names]

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        """`a = b = v`."""
        unpacks = any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
        tuple_of_same = isinstance(node.value, ast.Tuple | ast.List) and not any(
            isinstance(element, ast.Starred) for element in node.value.elts
        )
        if tuple_of_same and len(node.targets) == 1 and unpacks:
            node.value = self.generic_visit(node.value)  # type: ignore[assignment]  # unpacked at once
        else:
            node.value = self.visited(node.value)
        if not unpacks and not any(self._instrumented(target) for target in node.targets):
            return node
        if len(node.targets) == 1:
            return self.stored(node.targets[0], node.value, node)
        name = self.temporary()
        first = ast.Assign([ast.Name(name, ast.Store())], node.value)
        statements: list[ast.stmt] = [ast.copy_location(first, node)]
        for target in node.targets:
            statements += self.stored(target, ast.Name(name, ast.Load()), node)
        return [*statements, *self.emptied(statements[:1], node)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.stmt]:
        """`a: int = v`; the annotation stays where somebody may ask for it."""
        known = self.scope.kind in ("module", "class")
        if known and self.annotations is not None:
            self._reads_variables((node, "annotation"))
        if node.value is None:
            return node
        node.value = self.visited(node.value)
        if not self._instrumented(node.target):
            return node
        stored = self.stored(node.target, node.value, node)
        if known and isinstance(node.target, ast.Name):
            annotated = ast.AnnAssign(node.target, node.annotation, None, node.simple)
            stored.append(ast.copy_location(annotated, node))
        return stored

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        """`a += v`: read, compute, write."""
        target, operator = node.target, ast.Constant(INPLACE[type(node.op)])
        numeric = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int | float)
        numeric = numeric and not isinstance(node.op, ast.Mult)  # a list may be repeated in place
        value = self.visited(node.value)
        if isinstance(target, ast.Name) and not self.token(target.id):
            if numeric:
                node.value = value
                return node
            load = ast.copy_location(ast.Name(target.id, ast.Load()), node)
            new = self.hook("inplace", node, operator, load, value)
            return ast.copy_location(ast.Assign([target], new), node)
        before: list[ast.stmt] = []

        def held(part: ast.expr) -> ast.expr:
            """The part of a target, evaluated once."""
            name = self.temporary()
            assign = ast.Assign([ast.Name(name, ast.Store())], part)
            before.append(ast.copy_location(assign, node))
            return ast.Name(name, ast.Load())

        if isinstance(target, ast.Name):
            load_name = ast.copy_location(ast.Name(target.id, ast.Load()), node)
            new = self.hook("inplace", node, operator, self.visited(load_name), value)
            return self.stored(target, new, node)
        obj = held(self.visited(target.value))
        if isinstance(target, ast.Attribute):
            attribute = self.mangled(target.attr)
            old = self.hook("get", node, obj, attribute)
            new = self.hook("inplace", node, operator, old, value)
            call = self.hook("set", node, new, obj, attribute)
        else:
            key = held(self.key(target.slice))
            old = self.hook("getitem", node, obj, key)
            new = self.hook("inplace", node, operator, old, value)
            call = self.hook("setitem", node, new, obj, key)
        return [*before, ast.copy_location(ast.Expr(call), node), *self.emptied(before, node)]

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        """`del a.x, b[k], c`."""
        statements: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                call = self.hook("del", node, self.visited(target.value), self.mangled(target.attr))
                statements.append(ast.copy_location(ast.Expr(call), node))
            elif isinstance(target, ast.Subscript):
                call = self.hook(
                    "delitem", node, self.visited(target.value), self.key(target.slice)
                )
                statements.append(ast.copy_location(ast.Expr(call), node))
            else:
                if isinstance(target, ast.Name) and (token := self.token(target.id)):
                    statements.append(self._announced(node, token, target.id))
                statements.append(ast.copy_location(ast.Delete([target]), node))
        return statements

    # -- statements with a target or a condition -------------------------------------------------------

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """`for x in a`; if it has no end, its rounds are looked at as those of a `while`."""
        begun = self._begun(node) if self._waits(node) and may_have_no_end(node.iter) else None
        node.iter = self.iterated(node.iter)
        if begun is None:
            return self._looped(node)
        name = ast.Name(begun.targets[0].id, ast.Load())  # type: ignore[attr-defined]
        call = ast.Call(ast.Name("__s_endless__", ast.Load()), [name, node.iter], [])
        node.iter = ast.copy_location(call, node.iter)
        return [begun, self._looped(node)]

    def _waits(self, node: ast.For | ast.While) -> bool:
        """Whether the rounds of a loop are looked at."""
        return self.scope.kind == "function" and not self.of_library and not suspends(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        """`async for x in a`: methods of `a` run."""
        node.iter = self.visited(node.iter)
        return self._looped(node)

    def _looped(self, node: ast.For | ast.AsyncFor) -> ast.For | ast.AsyncFor:
        after: list[ast.stmt] = []
        node.target = self.plain(node.target, after, node)
        node.body = [*after, *self.block(node.body)]
        node.orelse = self.block(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        """`while a`; its rounds are looked at, see `waiting_loops`."""
        begun = self._begun(node) if self._waits(node) else None
        node.test = self.read(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        if begun is None:
            return node
        name = ast.Name(begun.targets[0].id, ast.Load())  # type: ignore[attr-defined]
        head = ast.Call(ast.Name("__s_round__", ast.Load()), [name], [])
        node.test = ast.copy_location(ast.BoolOp(ast.And(), [head, node.test]), node.test)
        return [begun, node]

    def _begun(self, node: ast.For | ast.While) -> ast.Assign:
        """A statement that begins a loop, with the names of the variables that it binds and that somebody reads."""
        names = bound_in(node)
        if isinstance(node, ast.For):
            if self.scope.used.isdisjoint(LOOKS_AT_VARIABLES):
                names &= self.scope.used
        elif not self.guarded:
            names -= bound_first(node)
        call = self.hook("loop_of_task" if awaits(node) else "loop", node)
        call.args = [call.args[-1], *map(ast.Constant, sorted(names))]
        return ast.copy_location(ast.Assign([ast.Name(self.temporary(), ast.Store())], call), node)

    def visit_If(self, node: ast.If) -> ast.AST:
        """`if a`."""
        node.test = self.read(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.AST:
        """`with a as x`, `async with a as x`."""
        after: list[ast.stmt] = []
        for item in node.items:
            item.context_expr = self.visited(item.context_expr)
            if isinstance(node, ast.With):
                item.context_expr = self.hook("managed", node, item.context_expr)
            if item.optional_vars is not None:
                item.optional_vars = self.plain(item.optional_vars, after, node)
        self.guarded += 1
        node.body = [*after, *self.block(node.body)]
        self.guarded -= 1
        return node

    visit_AsyncWith = visit_With

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.AST:
        """`try`."""
        self.guarded += 1
        self.generic_visit(node)
        self.guarded -= 1
        return node

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """`except E as x`."""
        if node.type is not None:
            node.type = self.visited(node.type)
        if node.name and self.token(node.name):
            target = ast.copy_location(ast.Name(node.name, ast.Store()), node)
            shared, node.name = node.name, self.temporary()
            before = self.stored(target, ast.Name(node.name, ast.Load()), node)
            # Python unbinds the name at the end, whatever the handler did with it; others may read it until then.
            unset = ast.copy_location(ast.Constant(None), node)
            unbound = ast.copy_location(ast.Delete([ast.Name(shared, ast.Del())]), node)
            last = [*self.stored(copy.copy(target), unset, node), *self.visit_Delete(unbound)]
            self.guarded += 1
            body: list[ast.stmt] = [ast.Try(self.block(node.body), [], [], last)]
            self.guarded -= 1
            node.body = [*before, ast.copy_location(body[0], node)]
            return node
        node.body = self.block(node.body)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """`raise a from b`: an object that others may have raised, too, changes."""
        again = not isinstance(node.exc, ast.Call)
        if node.exc is not None:
            node.exc = self.visited(node.exc)
            if again:
                node.exc = self.hook("raised", node, node.exc)
        if node.cause is not None:
            node.cause = self.visited(node.cause)
        return node

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        """`match a`: a chain of `if`, see `patterns`."""
        conditions = Conditions(self.temporary, self.visited, self.hook)
        subject, value = conditions.held(self.visited(node.subject))
        assert isinstance(subject, ast.NamedExpr)
        branches: list[tuple[ast.match_case, ast.expr]] = []
        for case in node.cases:
            conditions.captured = {}
            tests = conditions.tests(case.pattern, value)
            bindings: list[ast.expr] = []
            for name, held in conditions.captured.items():
                target = ast.copy_location(ast.Name(name, ast.Store()), case.pattern)
                kept: ast.expr = ast.Name(held, ast.Load())
                token = self.token(name)
                if token:
                    kept = self._cell_set(case.pattern, token, name, kept)
                bindings.append(ast.NamedExpr(target, kept))
            guard = None if case.guard is None else self.read(case.guard)
            test = condition(tests, bindings, guard)
            branches.append((case, ast.copy_location(test, case.pattern)))
        released = [
            ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None))
            for name in conditions.names
        ]
        chain: list[ast.stmt] = [ast.copy_location(each, node) for each in released]
        for case, test in reversed(branches):
            body = [*(ast.copy_location(each, node) for each in released), *self.block(case.body)]
            chain = [ast.copy_location(ast.If(test, body, chain), case.pattern)]
        return [ast.copy_location(ast.Assign([subject.target], subject.value), node), *chain]

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """`assert a == b`: without a message it says what the two sides were."""
        failed = ast.Name("AssertionError", ast.Load())
        if node.msg is not None:
            test: ast.expr = self.read(node.test)
            raised = ast.Call(failed, [self.visited(node.msg)], [])
            statements: list[ast.stmt] = []
        else:
            text = ast.unparse(node.test)
            explained = ast.Name("__s_assertion__", ast.Load())
            compares = isinstance(node.test, ast.Compare) and len(node.test.ops) == 1
            if compares:
                assert isinstance(node.test, ast.Compare)
                left, right = self.temporary(), self.temporary()
                statements = [
                    ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], self.visited(side)), node)
                    for name, side in (
                        (left, node.test.left), (right, node.test.comparators[0])
                    )
                ]  # fmt: skip
                sides = [ast.Name(left, ast.Load()), ast.Name(right, ast.Load())]
                op = COMPARE.get(type(node.test.ops[0]))
                test = (
                    ast.Compare(sides[0], node.test.ops, [sides[1]])
                    if op is None
                    else self.hook("compare", node, ast.Constant(op), *sides)
                )
                arguments: list[ast.expr] = [ast.Constant(text), *sides]
            else:
                statements = []
                test = self.read(node.test)
                arguments = [ast.Constant(text)]
            raised = ast.Call(failed, [ast.Call(explained, arguments, [])], [])
        test = ast.copy_location(ast.UnaryOp(ast.Not(), test), node)
        raising = ast.copy_location(ast.Raise(ast.copy_location(raised, node), None), node)
        branch = ast.copy_location(ast.If(test, [raising], []), node)
        return [*statements, branch, *self.emptied(statements, node)]
