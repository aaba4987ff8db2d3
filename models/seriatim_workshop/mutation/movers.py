"""Which statements commute, so that to run them in the other order is the same program.

Lipton's reduction (Communications of the ACM 18:12, 1975): an access to data that is guarded by a lock which the thread
holds is a *both-mover*: no other thread can tell whether it came before or after the thread's next step. So two
statements that stand in one critical section may change places if no name that one of them writes is read or written by
the other, one of them is a both-mover, and neither gives up the lock or may leave the block. The same holds for data
that only one thread touches, and for what is never changed once its object was made; that may leave its lock, too.
A mutant that differs by such a change is the right program.

Names of attributes stand for all objects that have them, and a call for every method of that name: both say that more
is touched than is. What cannot be resolved (a function that was handed in, an iteration over more than a built-in
container, a wait) commutes with nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from seriatim_models.programs.mutant_modules import SYSTEMS, source, system_of
from seriatim_workshop.mutation.rewriting import PURE, calls, defines, is_lock, leaves_loop, walk

GUARDED: Mapping[str, frozenset[str]] = {
    "broker.Server._lock": frozenset(
        {
            *("_queues", "_channels", "gone", "_last"),
            *("ready", "consumers", "bindings", "arrivals", "owner"),
            *("unacked", "tag", "prefetch", "consumer_prefetch", "consumer", "redelivered"),
        }
    ),
    "workpool.Executor._lock": frozenset({"_open", "_tasks"}),
    "workpool.WorkPool._lock": frozenset(
        {"_pool", "_ready", "_in_progress", "_unlimited", "_interrupted"}
    ),
    "client.Connection._lock": frozenset({"_closed", "_gone"}),
    "client.Channel._lock": frozenset({"_active", "_calls", "reply", "closed"}),
    "fair.FairConsumer._lock": frozenset({"waiting"}),
    "log.Topic._writing": frozenset({"_closed", "_names"}),
    "log.Channel._lock": frozenset({"_stopping"}),
    "log.Channel._parks": frozenset({"_parked_to"}),
    "queue.QueueConsumerManager.moving": frozenset({"listed", "in_list"}),
}
"""By lock: the plain attributes that are touched under it alone, once their object is known to others.

Tests run the references with a check at every one of these accesses.
"""
CONFINED: Mapping[str, frozenset[str]] = {
    "fair": frozenset({"deficit", "_held", "_ended"}),
    "queue": frozenset({"sent"}),
    "client": frozenset({"_taken"}),
}
"""By system: the plain attributes that one thread alone touches."""
UNDER: Mapping[str, frozenset[str]] = {
    "broker.Server._lock": frozenset(
        {
            *("Server.close_channel", "Server.declare_queue", "Server.bind", "Server.publish"),
            *("Server._route", "Server._reachable", "Server.qos", "Server.consume"),
            *("Server.cancel", "Server.get", "Server.settle", "Server._push_all"),
            *("Server._hand_out", "Server._requeue", "ServerConsumer.may_take"),
        }
    ),
    "workpool.WorkPool._lock": frozenset({"WorkPool._full"}),
    "client.Channel._lock": frozenset({"Channel._converse", "Channel._finish"}),
    "fair.FairConsumer._lock": frozenset({"FairConsumer._take"}),
    "log.Topic._writing": frozenset({"Topic._append"}),
}
"""By lock: the functions that are called under it alone."""

CHANGING = frozenset(
    {
        *("append", "appendleft", "add", "remove", "discard", "pop", "popleft", "extend"),
        *("update", "setdefault", "clear", "insert"),
    }
)
"""Methods of built-in containers that change them."""
READING = frozenset({"get", "values", "items", "keys", "copy", "count", "index"})
"""Methods of built-in containers that do not."""
BUILT_IN = PURE | {"next", "enumerate", "zip", "bool", "hash"}
SIGNALS = frozenset({"notify", "notify_all", "release"})
"""Calls that other threads notice and that do not wait."""


class Unresolved(Exception):
    """It is not known what a statement touches."""


@dataclass(frozen=True)
class AccessSet:
    """What a statement touches, by the names of attributes; the content of a local container is ``local NAME``."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    steps: bool = False
    """Whether it takes steps that other threads notice: locks, signals, cells."""
    leaves: bool = False
    """Whether it may leave the block, or raise."""

    def __or__(self, other: AccessSet) -> AccessSet:
        """Return what the two touch together."""
        return AccessSet(
            self.reads | other.reads,
            self.writes | other.writes,
            self.steps or other.steps,
            self.leaves or other.leaves,
        )

    @property
    def touched(self) -> frozenset[str]:
        """What is read or written."""
        return self.reads | self.writes

    def meets(self, other: AccessSet) -> bool:
        """Return whether one writes what the other touches."""
        return bool(self.writes & other.touched or other.writes & self.touched)


@dataclass
class SystemTables:
    """What the modules of a system say of their attributes and functions, by name alone."""

    functions: dict[str, list[ast.FunctionDef]] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    """Methods of protocols: somebody else's code."""
    properties: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)
    """Attributes that hold built-in containers."""
    shared: dict[str, str] = field(default_factory=dict)
    """Attributes that are the host's: ``cell``, ``lock``, ``condition`` or ``semaphore``."""
    changed: set[str] = field(default_factory=set)
    """Attributes that are written, or whose content is, when their object has been made."""
    named: set[str] = field(default_factory=set)
    """All attributes that are named anywhere."""
    made: set[str] = field(default_factory=set)
    """Classes whose constructor does more than to keep its arguments."""


@cache
def tables_of(system: str) -> SystemTables:
    """Return what the modules of a system say of their attributes and functions."""
    found = SystemTables()
    trees = [ast.parse(source(module)) for module in SYSTEMS[system]]
    for cls in (node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)):
        if any("Protocol" in ast.unparse(base) for base in cls.bases):
            found.foreign |= {node.name for node in cls.body if isinstance(node, ast.FunctionDef)}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                _note_class(node, found)
            elif isinstance(node, ast.FunctionDef):
                if node.name not in found.foreign:
                    found.functions.setdefault(node.name, []).append(node)
                if any(ast.unparse(d) == "property" for d in node.decorator_list):
                    found.properties.add(node.name)
                if node.name not in ("__init__", "__post_init__"):
                    found.changed |= set(_changed_by(node))
            elif isinstance(node, ast.Attribute):
                found.named.add(node.attr)
    return found


def _note_class(cls: ast.ClassDef, found: SystemTables) -> None:
    """Note the attributes of a class: containers, and what the host made."""
    for node in ast.walk(cls):
        if isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__post_init__"):
            found.made.add(cls.name)
        if isinstance(node, ast.AnnAssign):
            attribute = _own_name(node.target)
            kind = ast.unparse(node.annotation).partition("[")[0]
            if kind in ("list", "dict", "set", "deque"):
                found.containers.add(attribute)
            if kind == "Cell":
                found.shared[attribute] = "cell"
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            made = node.value.func
            if isinstance(made, ast.Attribute) and ast.unparse(made.value).endswith("host"):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                found.shared[_own_name(target)] = made.attr


def _own_name(target: ast.expr) -> str:
    return target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)


def _changed_by(function: ast.FunctionDef) -> Iterator[str]:
    """The attributes that a function writes, or whose content it may write."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            yield from _container(node.value, function)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _container(node.func.value, function) if node.func.attr in CHANGING else ()


def _container(node: ast.expr, function: ast.FunctionDef) -> Iterator[str]:
    """The attributes that may be, or hold, the container that an expression in a function is."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):  # whatever it may have been given, or iterates over
        gives = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.comprehension
        given = (part for part in ast.walk(function) if isinstance(part, gives))
        for part in (g for g in given if node.id in defines(g)):
            yield from _attributes(part)
    else:
        yield from _attributes(node)


def _attributes(node: ast.AST) -> Iterator[str]:
    yield from (n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute))


# ---- what a statement touches


class AccessReader:
    """Reads what the statements of one function touch."""

    def __init__(
        self, system: str, function: ast.AST, under_way: frozenset[str] = frozenset()
    ) -> None:
        self.system = system
        self.tables = tables_of(system)
        self.under_way = under_way
        """The functions whose footprint is being computed."""
        self.defined = dict[str, list[ast.expr]]()
        """By local name: what it is given."""
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._define(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                self._define(node.target, node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                self._define(node.target, node.iter)

    def _define(self, target: ast.expr, value: ast.expr) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.defined.setdefault(node.id, []).append(value)

    def footprint(self, node: ast.AST) -> AccessSet:
        """Return what a statement or an expression touches; raises `Unresolved`."""
        total = AccessSet(leaves=leaves_loop(node))
        for part in walk(node):
            if not isinstance(part, ast.Lambda):  # `_call` says who may be handed one
                total |= self._part(part)
        return total

    def _part(self, node: ast.AST) -> AccessSet:
        if isinstance(node, ast.FunctionDef | ast.Yield | ast.YieldFrom | ast.Try):
            raise Unresolved(type(node).__name__)
        if isinstance(node, ast.Return | ast.Raise | ast.Assert):
            return AccessSet(leaves=True)
        if isinstance(node, ast.With):
            if not is_lock(node):
                raise Unresolved("with")
            return AccessSet(steps=True)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return AccessSet(reads=frozenset({f"local {node.id}"}))
        if isinstance(node, ast.Subscript):
            roots = self.content(node.value)
            changes = not isinstance(node.ctx, ast.Load)
            return AccessSet(writes=roots) if changes else AccessSet(reads=roots)
        if isinstance(node, ast.For | ast.comprehension):
            return self._iterated(node.iter)
        if isinstance(node, ast.Compare):
            parts = zip(node.ops, node.comparators, strict=True)
            inside = [c for op, c in parts if isinstance(op, ast.In | ast.NotIn)]
            return _all(self._iterated(c) for c in inside)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
            return AccessSet(reads=frozenset({node.target.attr}))
        if isinstance(node, ast.Call):
            return self._call(node)
        return AccessSet()

    def _attribute(self, node: ast.Attribute) -> AccessSet:
        if node.attr in self.tables.properties:
            return self._function(node.attr)
        name = frozenset({node.attr})
        return AccessSet(reads=name) if isinstance(node.ctx, ast.Load) else AccessSet(writes=name)

    def _iterated(self, node: ast.expr) -> AccessSet:
        """What it reads to iterate over something, or to look for something in it."""
        if isinstance(node, ast.Call):
            return AccessSet()  # of a container, or a list that was made: `_call` says
        return AccessSet(reads=self.content(node))

    def content(self, node: ast.expr) -> frozenset[str]:
        """Return the names for the content of a built-in container; raises `Unresolved` if it may be something else."""
        if isinstance(node, ast.Attribute):
            if node.attr not in self.tables.containers:
                raise Unresolved(f"the content of {node.attr}")
            return frozenset({node.attr})
        if isinstance(node, ast.Subscript):
            return self.content(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self.content(node.func.value)  # `values`, `pop`: something that is in it
        if isinstance(node, ast.Name):
            if node.id not in self.defined:
                raise Unresolved(f"{node.id} was handed in")
            mine = frozenset({f"local {node.id}"})
            return mine.union(*(self.content(value) for value in self.defined[node.id]))
        fresh = ast.List | ast.Dict | ast.Set | ast.Tuple | ast.ListComp | ast.SetComp
        if isinstance(node, fresh | ast.DictComp | ast.GeneratorExp | ast.Constant):
            return frozenset()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in BUILT_IN:
            return frozenset().union(*(self.content(a) for a in node.args))
        if isinstance(node, ast.BinOp):
            return frozenset()  # it makes another
        raise Unresolved(f"the content of {ast.unparse(node)}")

    def _call(self, node: ast.Call) -> AccessSet:
        made = node.func
        handed = [k.value for k in node.keywords] + node.args
        keys = [given.body for given in handed if isinstance(given, ast.Lambda)]
        if isinstance(made, ast.Name):
            if made.id in BUILT_IN | {"insort"}:
                into = self.content(node.args[0]) if made.id == "insort" else frozenset[str]()
                return AccessSet(writes=into) | _all(map(self.footprint, keys))
            if keys:
                raise Unresolved("a function that is called later")
            if made.id.lstrip("_")[:1].isupper() and made.id not in self.tables.made:
                return AccessSet()
            return self._function(made.id)
        if not isinstance(made, ast.Attribute) or keys:
            raise Unresolved(ast.unparse(made))
        owner = made.value
        attribute = owner.attr if isinstance(owner, ast.Attribute) else ""
        if made.attr == "record":
            return AccessSet()
        kind = self.tables.shared.get(attribute, "")
        if kind == "cell":
            name = frozenset({attribute})
            return AccessSet(name, frozenset() if made.attr == "get" else name, steps=True)
        if kind:
            if made.attr not in SIGNALS or kind == "lock":
                raise Unresolved("it may wait, or gives up a lock")
            return AccessSet(steps=True)
        container = attribute in self.tables.containers or isinstance(
            owner, ast.Name | ast.Subscript
        )
        if container and made.attr in CHANGING | READING and self._is_container(owner):
            roots = self.content(owner)
            return AccessSet(writes=roots) if made.attr in CHANGING else AccessSet(reads=roots)
        return self._function(made.attr)

    def _is_container(self, owner: ast.expr) -> bool:
        try:
            self.content(owner)
        except Unresolved:
            return False
        return True

    def _function(self, name: str) -> AccessSet:
        """What every function of that name touches."""
        if name not in self.tables.functions:
            raise Unresolved(f"a call of {name}")
        if name in self.under_way:
            return AccessSet()
        total = AccessSet()
        for function in self.tables.functions[name]:
            inner = AccessReader(self.system, function, self.under_way | {name})
            for statement in function.body:
                mine = inner.footprint(statement)
                raises = any(isinstance(n, ast.Raise | ast.Assert) for n in walk(statement))
                raises = raises or _calls_leave(inner, statement)
                total |= replace(mine, leaves=raises)
        return _without_locals(total)


def _calls_leave(reader: AccessReader, node: ast.AST) -> bool:
    """Whether what a statement calls may raise."""
    return any(reader._call(call).leaves for call in calls(node))


def _without_locals(footprint: AccessSet) -> AccessSet:
    """The footprint of a call: the local names are the function's own."""

    def outside(names: frozenset[str]) -> frozenset[str]:
        return frozenset(n for n in names if not n.startswith("local "))

    return replace(footprint, reads=outside(footprint.reads), writes=outside(footprint.writes))


def _all(footprints: Iterable[AccessSet]) -> AccessSet:
    total = AccessSet()
    for one in footprints:
        total |= one
    return total


# ---- what commutes


@dataclass(frozen=True)
class LockMovers:
    """Says which statements of a function commute."""

    file: str
    cls: str
    function: ast.FunctionDef

    def commute(self, one: ast.AST, other: ast.AST, around: Iterable[ast.AST]) -> bool:
        """Return whether two adjacent statements, or a value and a statement, are the same in either order.

        `around` are the statements around them. Whether one uses a local name that the other defines is not asked here.
        """
        mine, its = self._footprint(one), self._footprint(other)
        if mine is None or its is None or mine.meets(its) or mine.leaves or its.leaves:
            return False
        free = self._free(around)
        return any(not f.steps and f.touched <= free | _locals(f) for f in (mine, its))

    def private(self, one: ast.AST, passed: Iterable[ast.AST]) -> bool:
        """Return whether a statement or a value may leave its lock, or come into it, past some others.

        It touches only what no other thread changes or sees.
        """
        mine, others = self._footprint(one), [self._footprint(other) for other in passed]
        if mine is None or mine.steps or mine.leaves:
            return False
        if any(f is None or f.leaves or f.meets(mine) for f in others):
            return False
        confined = CONFINED.get(system_of(self.file) or "", frozenset())
        return mine.touched <= self._fixed() | confined | _locals(mine)

    def _footprint(self, node: ast.AST) -> AccessSet | None:
        """What a node touches; None if that is not known."""
        system = system_of(self.file)
        if system is None:
            return None
        try:
            return AccessReader(system, self.function).footprint(node)
        except Unresolved:
            return None

    def _free(self, around: Iterable[ast.AST]) -> frozenset[str]:
        """The attributes whose accesses are both-movers here: guarded by a lock that is held, confined or fixed."""
        held = {f"{self.file}.{self.cls}.{name}" for name in _locks(around)}
        name = f"{self.cls}.{self.function.name}"
        held |= {lock for lock, functions in UNDER.items() if name in functions}
        guarded = frozenset[str]().union(*(GUARDED.get(lock, frozenset()) for lock in held))
        return guarded | CONFINED.get(system_of(self.file) or "", frozenset()) | self._fixed()

    def _fixed(self) -> frozenset[str]:
        """The attributes that are never changed once their object was made."""
        tables = tables_of(system_of(self.file) or "")
        return frozenset(tables.named - tables.changed - set(tables.shared) - tables.properties)


def _locals(footprint: AccessSet) -> frozenset[str]:
    return frozenset(n for n in footprint.touched if n.startswith("local "))


def _locks(around: Iterable[ast.AST]) -> Iterator[str]:
    """The names of the locks that the statements around a place hold."""
    for node in around:
        if isinstance(node, ast.With) and is_lock(node):
            for item in node.items:
                assert isinstance(item.context_expr, ast.Attribute)
                yield item.context_expr.attr
