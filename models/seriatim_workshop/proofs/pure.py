"""Which functions are pure, as far as their text shows: `pure(root)`.

A function is called pure if all that its text does is to compute a result from its arguments:

- it assigns to local names only, and changes no object but what it has made itself (a literal, a comprehension, or the
  result of `list`, `dict`, `set`, `bytearray`, `deque`, `Counter` or `defaultdict`);
- it calls functions of the standard library and methods that are in `BUILTINS`, `MODULES` and `METHODS`, classes in
  `CLASSES`, dataclasses and named tuples of the same tree, and functions that are pure themselves;
- it neither yields nor awaits, and has no `global`, `nonlocal`, `with`, `import`, `del` of a part or `print`.

What it cannot see it does not call pure: a function that is given a function and calls it, a method of an object whose
class it does not know, a property that does more than read. Of those that take `self` only the methods of frozen
dataclasses, enums and named tuples can be pure.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = _words(
    "abs all any bin bool bytes chr dict divmod enumerate filter float format frozenset hash "
    "hex int isinstance issubclass len list map max min next oct ord pow range repr reversed "
    "round set slice sorted str sum tuple type zip bytearray callable"
)
MODULES: Mapping[str, frozenset[str]] = {
    "math": frozenset(),
    "itertools": frozenset(),
    "operator": frozenset(),
    "re": frozenset(),
    "json": frozenset({"load", "dump"}),
    "html": frozenset(),
    "textwrap": frozenset(),
    "bisect": frozenset({"insort", "insort_left", "insort_right"}),
    "struct": frozenset({"pack_into"}),
    "zlib": frozenset(),
    "base64": frozenset({"encode", "decode"}),
    "hashlib": frozenset({"file_digest"}),
    "collections": frozenset(),
    "functools": frozenset({"cache", "lru_cache"}),
    "statistics": frozenset(),
    "shlex": frozenset(),
    "difflib": frozenset(),
    "unicodedata": frozenset(),
    "dataclasses": frozenset(),
    "fractions": frozenset(),
    "decimal": frozenset({"getcontext", "setcontext", "localcontext"}),
    "keyword": frozenset(),
    "string": frozenset(),
}
"""Modules of the standard library whose functions are pure -> those of them that are not."""

METHODS = _words(
    "as_integer_ratio bit_length capitalize casefold center count decode difference encode "
    "endswith expandtabs find format from_bytes fromhex hex index intersection is_integer "
    "isalnum isalpha isascii isdecimal isdigit isdisjoint isidentifier islower isnumeric "
    "isprintable isspace issubset issuperset istitle isupper items join keys ljust lower "
    "lstrip maketrans most_common partition removeprefix removesuffix rfind rindex rjust "
    "rpartition rsplit rstrip split splitlines startswith strip swapcase symmetric_difference "
    "title to_bytes translate union upper values zfill group groups start end span fullmatch "
    "finditer findall search match sub _replace digest hexdigest elements total"
)
"""Methods of strings, bytes, numbers, tuples, mappings, sets, patterns and matches that change nothing. `get` is one of
them when it has arguments: without any it reads a cell."""

CHANGING = _words(
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove "
    "reverse rotate setdefault sort subtract update"
)
"""Methods that change an object: allowed on what the function has made."""

MAKERS = frozenset({"list", "dict", "set", "bytearray", "deque", "Counter", "defaultdict"})
CLASSES = frozenset(
    {"Fraction", "Decimal", "Counter", "deque", "defaultdict", "OrderedDict", "Path", "PurePath"}
    | {"ValueError", "TypeError", "KeyError", "IndexError", "AssertionError", "LookupError"}
    | {"NotImplementedError", "ArithmeticError", "OverflowError", "StopIteration", "RuntimeError"}
)


@dataclass(frozen=True)
class PureFunction:
    """A function that is pure."""

    name: str
    """With its module, as in `package.module.function` or `package.module.Class.method`."""
    node: ast.FunctionDef
    scalar: bool
    """Whether it takes only what CrossHair makes by itself: numbers, text, bytes, and tuples or lists of those."""


@dataclass
class PythonModule:
    """What the names of a module stand for."""

    name: str
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    """By name, and methods of frozen classes as `Class.method`."""
    values: set[str] = field(default_factory=set)
    """Frozen dataclasses, named tuples, enumerations and exceptions: to make one changes nothing."""


def modules(root: Path) -> dict[str, PythonModule]:
    """Every module below a folder, by its full name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent if (root / "__init__.py").exists() else root).parts
        name = ".".join((*parts[:-1], path.stem)).removesuffix(".__init__")
        found[name] = _module(name, ast.parse(path.read_text(encoding="utf-8")))
    return found


def _module(name: str, tree: ast.Module) -> PythonModule:
    found = PythonModule(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found.imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found.imports[alias.asname or alias.name.partition(".")[0]] = alias.name
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.functions[node.name] = node
        elif isinstance(node, ast.ClassDef) and _is_value(node):
            found.values.add(node.name)
            for each in node.body:
                if isinstance(each, ast.FunctionDef):
                    found.functions[f"{node.name}.{each.name}"] = each
    return found


def _is_value(node: ast.ClassDef) -> bool:
    """Whether objects of a class never change: a frozen dataclass, a named tuple, an enumeration, an exception."""
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    kinds = {"NamedTuple", "Enum", "IntEnum", "StrEnum", "Exception", "ValueError"}
    frozen = any(
        "frozen=True" in ast.unparse(each) for each in (*node.decorator_list, *node.keywords)
    )
    made = any(isinstance(n, ast.FunctionDef) and n.name == "__init__" for n in node.body)
    return (frozen or not kinds.isdisjoint(bases)) and not made


class Impurity(ast.NodeVisitor):
    """Finds what a function does besides computing its result: `why`, '' if nothing; and which functions it `calls`."""

    def __init__(self, module: PythonModule, node: ast.FunctionDef, owner: str) -> None:
        self.module, self.owner = module, owner
        self.why = ""
        self.calls: set[str] = set()
        arguments = node.args
        named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        self.given = {each.arg for each in named}
        self.given |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}
        self.nested = {
            n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n is not node
        }
        self.made = {
            target.id
            for n in ast.walk(node)
            if isinstance(n, ast.Assign | ast.AnnAssign) and self._fresh(n.value)
            for target in (n.targets if isinstance(n, ast.Assign) else [n.target])
            if isinstance(target, ast.Name)
        } - self.given
        for statement in node.body:
            self.visit(statement)

    def _fresh(self, value: ast.expr | None) -> bool:
        """Whether an expression makes an object of its own."""
        if isinstance(value, ast.Call):
            return ast.unparse(value.func).partition("[")[0] in MAKERS
        kinds = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
        return isinstance(value, kinds)

    def _impure(self, why: str) -> None:
        self.why = self.why or why

    def generic_visit(self, node: ast.AST) -> None:
        """Refuse statements that do more than compute, and look into the others."""
        kinds = (
            ast.Yield,
            ast.YieldFrom,
            ast.Await,
            ast.Global,
            ast.Nonlocal,
            ast.With,
            ast.AsyncWith,
        )
        if isinstance(node, kinds):
            self._impure(type(node).__name__.lower())
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._impure("imports")
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            base: ast.expr = node.value
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if not (isinstance(base, ast.Name) and base.id in self.made):
                self._impure(f"changes {ast.unparse(node.value)}")
        super().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Refuse a call of what is not known to be pure."""
        called = node.func
        if isinstance(called, ast.Name):
            self._named(called.id)
        elif isinstance(called, ast.Attribute):
            self._method(called, bool(node.args))
        else:
            self._impure("calls what it computes")
        self.generic_visit(node)

    def _named(self, name: str) -> None:
        full = self.module.imports.get(name, "")
        if name in self.given:
            self._impure(f"calls {name}, which it is given")
        elif (
            name in self.nested or name in BUILTINS or name in CLASSES or name in self.module.values
        ):
            pass
        elif name in self.module.functions:
            self.calls.add(f"{self.module.name}.{name}")
        elif _of_library(full):
            pass
        elif full:
            self.calls.add(full)
        else:
            self._impure(f"calls {name}")

    def _method(self, called: ast.Attribute, arguments: bool) -> None:
        base, name = called.value, called.attr
        if isinstance(base, ast.Name) and base.id == "self" and self.owner:
            self.calls.add(f"{self.module.name}.{self.owner}.{name}")
        elif isinstance(base, ast.Name) and base.id in self.made and name in CHANGING:
            pass
        elif (
            isinstance(base, ast.Name)
            and base.id in self.module.imports
            and base.id not in self.made
        ):
            full = f"{self.module.imports[base.id]}.{name}"
            if not _of_library(full):
                self.calls.add(full)
        elif name not in METHODS and not (name == "get" and arguments):
            self._impure(f"calls .{name}()")


def _of_library(full: str) -> bool:
    """Whether a name is that of a pure function of the standard library."""
    module, _, name = full.rpartition(".")
    return module in MODULES and name not in MODULES[module]


SCALARS = frozenset(
    {"int", "str", "bytes", "bool", "float", "None", "tuple", "list", "Sequence", "Iterable"}
)


def _scalar(node: ast.FunctionDef) -> bool:
    """Whether all that it takes is of simple types; one that takes nothing has nothing to be tried."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    kinds = [each.annotation for each in arguments]
    if not kinds or None in kinds or node.args.vararg or node.args.kwarg:
        return False
    names = {n.id for kind in kinds if kind for n in ast.walk(kind) if isinstance(n, ast.Name)}
    return names <= SCALARS


@cache
def pure(root: Path) -> tuple[PureFunction, ...]:
    """The pure functions below a folder, in the order of their names."""
    every = modules(root)
    looked: dict[str, tuple[ast.FunctionDef, Impurity]] = {}
    values: set[str] = set()
    for module in every.values():
        values |= {f"{module.name}.{name}" for name in module.values}
        for name, node in module.functions.items():
            owner = name.rpartition(".")[0]
            looked[f"{module.name}.{name}"] = node, Impurity(module, node, owner)
    clean = {name for name, (_, found) in looked.items() if not found.why}
    while more := {n for n in clean if not looked[n][1].calls <= clean | values}:
        clean -= more
    return tuple(PureFunction(n, looked[n][0], _scalar(looked[n][0])) for n in sorted(clean))
