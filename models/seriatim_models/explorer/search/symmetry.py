"""Symmetry: threads that run one function with the same arguments are explored once up to exchanging them.

**The idea.** Spawn three threads in a row that run the same function. Every execution in which the second is first has
a twin in which the first is first, with the two names exchanged. If no name can be seen, the twin tells nothing new.
Of n such threads up to n! executions are twins of one.

**Where a branch is left.** For a race `dpor` wants to leave a sequence v at a node E. What is to be seen then is all
that begins with E and v, and each way of exchanging identical threads makes a twin of it. One twin is enough: that
which is explored first. To find where a twin belongs, follow the current path with it, as long as the step on the path
is a weak initial of what is left of the twin. If a sleeping step is one, all that begins like the twin has been
explored; if nothing is left of it, it is being explored. Otherwise the twin belongs to the node where the path ends
for it, the later the deeper, and there into the tree. So of each race that an execution shows some twin is left or
seen, which is what the proof of `dpor` needs; and nothing sleeps that would not sleep otherwise, so no execution is
blocked. In 14,963 generated programs (215,009 traces, as many as by brute force) 60,196 executions were run; 60,107 of
them were no twin of an earlier one, and the others, as far as looked at, were of programs with choices.
(To leave *nothing* where a twin begins like the branch that is being explored is wrong:
the race that would find it in there may be one of an execution that was left out.)

**How traces are counted.** By the Foata normal form (`trace.foata`), with two changes, so that exchanging threads makes
a name of a name. The spawns of identical threads are a chain, and each of the threads counts as born by the last of
them. And the joins of identical threads are left out of the name: who joins one joins all of them, one after another
with nothing in between, so how many of the joins have been done follows from which threads have ended.

**What makes threads identical**: one parent spawned them in a row, with one function over the same variables and
arguments (`alike`). That is what the caller of ``Dpor(symmetry=True)`` asks to be used.
**What must not tell them apart**: a join of one and not of the others, a name or number of a thread that is asked
for, chance. Some of it is seen (`Misuse`). Beyond that executions are run again with two threads exchanged, the first
`CHECKED` and then each time that their number has doubled: the same steps must meet the same values and end alike.

Clarke, Jha, Enders & Filkorn, Exploiting symmetry in temporal logic model checking (1996), for the idea;
Kokologiannakis, Marmanis & Vafeiadis, SPORE: Combining symmetry and partial order reduction (PLDI 2024), for its union
with partial orders.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, permutations, product
from math import factorial, prod
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, NamedTuple

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model.execution import Execution, Space
from seriatim_models.explorer.model.operations import Footprint, Join, Operation, Thread
from seriatim_models.explorer.search.runner import ask
from seriatim_models.explorer.trace.termination import classify

CHECKED = 8
"""Executions that are all run again with two threads exchanged, before only some are."""

MOST_NAMES = 1 << 18
"""Traces, up to exchanging threads, that are remembered to be counted."""

MOST_PERMUTATIONS = 720
"""With more of them traces are not counted."""

LARGE = 24
"""Where there are more ways of exchanging threads, two are exchanged at a time."""

PLAIN = (int, str, bool, float, bytes, type(None))
"""Types whose values name no thread."""


class Predecessors(NamedTuple):
    """What a step comes directly after: in its thread, by what enabled it, and by conflicts. -1: nothing."""

    last: int
    enabled_by: int
    conflicts: list[int]


class Exchange:
    """A way of exchanging identical threads: for each group a permutation of its members."""

    def __init__(self, identical: IdenticalThreads, orders: tuple[tuple[int, ...], ...]) -> None:
        self.identical = identical
        self.orders = orders
        self._inverse = tuple(
            tuple(sorted(range(len(order)), key=order.__getitem__)) for order in orders
        )
        self._footprints: dict[tuple[int, bool], Footprint] = {}
        self._threads: dict[tuple[int, bool], int] = {}

    def thread(self, tid: int, back: bool = False) -> int:
        """The thread that a thread becomes, or that becomes it."""
        known = self._threads.get((tid, back))
        if known is None:
            found = self.identical.member(tid)
            orders = self._inverse if back else self.orders
            known = tid if found is None else self.identical.moved(tid, orders[found[0]][found[1]])
            self._threads[tid, back] = known
        return known

    def footprint(self, footprint: Footprint, back: bool = False) -> Footprint:
        """What a step touches if the threads are exchanged: their objects are, too."""
        known = self._footprints.get((footprint.mask, back))
        if known is None:
            known = self._footprints[footprint.mask, back] = self.identical.space.footprint(
                tuple((self._object(index, back), mode) for index, mode in footprint.accesses)
            )
        return known

    def _object(self, index: int, back: bool) -> int:
        identical = self.identical
        owner = identical.owner_of.get(index)
        if owner is not None:
            return identical.owned_by[self.thread(owner, back)]
        maker, number = identical.space.name_of_object(index)
        return index if maker < 0 else identical.space.object(self.thread(maker, back), number)[0]


class IdenticalThreads:
    """Groups of identical threads, and what becomes of a thread that is exchanged."""

    def __init__(self, space: Space, groups: tuple[tuple[int, ...], ...]) -> None:
        self.space = space
        self.groups = groups
        self.owner_of: dict[int, int] = {}
        """The member of a group that an object belongs to which the parent made: what the member's end writes."""
        self.owned_by: dict[int, int] = {}
        self._moved: dict[tuple[int, int], int] = {}
        self._members: dict[int, tuple[int, int, tuple[int, ...]] | None] = {}
        self._exchanges: dict[tuple[tuple[int, ...], ...], Exchange] = {}
        self._exchanges_of: dict[tuple[int, ...], list[tuple[list[int], Exchange]]] = {}
        self.nothing = self.exchange(tuple(tuple(range(len(group))) for group in groups))

    def exchange(self, orders: tuple[tuple[int, ...], ...]) -> Exchange:
        """The exchange that permutes the members of each group so."""
        known = self._exchanges.get(orders)
        if known is None:
            known = self._exchanges[orders] = Exchange(self, orders)
        return known

    def exchange_of_two(self, group: int, one: int, other: int) -> Exchange:
        """The exchange of two members of a group."""
        orders = list(self.nothing.orders)
        order = list(orders[group])
        order[one], order[other] = other, one
        orders[group] = tuple(order)
        return self.exchange(tuple(orders))

    def exchanges_of(self, groups: tuple[int, ...]) -> list[tuple[list[int], Exchange]]:
        """All ways of exchanging members of these groups, each with the groups whose members move.

        Where these are too many, those of two members only.
        """
        known = self._exchanges_of.get(groups)
        if known is None:
            nothing = self.nothing.orders
            sizes = [len(self.groups[group]) for group in groups]
            if prod(map(factorial, sizes)) > LARGE:
                known = [
                    ([group], self.exchange_of_two(group, one, other))
                    for group, size in zip(groups, sizes, strict=True)
                    for one, other in combinations(range(size), 2)
                ]
            else:
                known = []
                for chosen in product(*(permutations(range(size)) for size in sizes)):
                    orders = list(nothing)
                    for group, order in zip(groups, chosen, strict=True):
                        orders[group] = order
                    moved = [group for group in groups if orders[group] != nothing[group]]
                    if moved:
                        known.append((moved, self.exchange(tuple(orders))))
            self._exchanges_of[groups] = known
        return known

    def member(self, tid: int) -> tuple[int, int, tuple[int, ...]] | None:
        """Of a thread below an identical one: its group, its number in there, and the path from there."""
        if tid not in self._members:
            path = self.space.paths[tid]
            self._members[tid] = next(
                (
                    (g, k, path[len(root) :])
                    for g, group in enumerate(self.groups)
                    for k, root in enumerate(self.space.paths[t] for t in group)
                    if path[: len(root)] == root
                ),
                None,
            )
        return self._members[tid]

    def moved(self, tid: int, to: int) -> int:
        """The thread that a thread below a member of a group becomes below another member."""
        known = self._moved.get((tid, to))
        if known is None:
            found = self.member(tid)
            assert found is not None
            group, _, path = found
            root = self.space.paths[self.groups[group][to]]
            known = self._moved[tid, to] = self.space.at((*root, *path))
        return known


class Way(NamedTuple):
    """A way of exchanging threads in the steps of an execution from step `begin` on."""

    exchange: Exchange
    begin: int
    steps: int


class EndedExecution(NamedTuple):
    """What is compared of an execution that has ended, besides its operations."""

    values: list[Any]
    """Those of the steps' objects before the steps."""
    results: list[object]
    wrong: bool


class Symmetry:
    """What a search knows of the identical threads of its program.

    Its lists have one entry for each step of the current execution.
    """

    def __init__(self) -> None:
        self.before: list[Predecessors] = []
        self.traces: dict[int, int] | None = {}
        """Of each trace up to exchanging threads, by the least of its names, how many there are. None: too many."""
        self._ops: list[Operation] = []
        self._tids: list[int] = []
        self._alternatives: list[int] = []
        self._levels: list[int] = []
        self._named: list[bool] = []
        self._identical: IdenticalThreads | None = None
        self._known: dict[tuple[tuple[int, ...], ...], IdenticalThreads] = {}
        self._begins: list[int | None] = []
        """Of each group the step with which its threads can be exchanged first: all are born, none has taken one."""
        self._joins: dict[int, int] = {}
        """The steps that join one of a group, and the group."""
        self._ended = 0
        self._paths: list[tuple[int, ...]] = []

    # -- called by the search ----------------------------------------------------------------------------------------

    def note(self, last: int, enabled_by: int, races: list[tuple[int, list[int]]]) -> None:
        """The next step comes directly after these, and after those that the last entry of `races` has of it."""
        own = races[-1][1] if races and races[-1][0] == len(self.before) else ()
        self.before.append(Predecessors(last, enabled_by, [i for i in own if i >= 0]))

    def forget(self, depth: int) -> None:
        """Steps from there on are no longer part of the execution."""
        del self.before[depth:]

    def look_away(self) -> None:
        """An execution is over of which nothing is to be used."""
        self._identical = None

    def look_at(
        self,
        ex: Execution,
        ops: list[Operation],
        tids: list[int],
        alternatives: list[int],
    ) -> None:
        """An execution is over: find its identical threads, and name its steps.

        Raises `Misuse` if something distinguishes them.
        """
        self.look_away()
        self._ops, self._tids, self._alternatives = ops, tids, alternatives
        groups = self._find(ex)
        if not groups:
            return
        key = tuple(tuple(t.tid for t in group) for group in groups)
        identical = self._known.get(key)
        if identical is None:
            identical = self._known[key] = IdenticalThreads(ex.space, key)
        self._identical = identical
        for thread in itertools.chain.from_iterable(groups):
            if thread.end_of is not None:
                identical.owner_of[thread.end_of] = thread.tid
                identical.owned_by[thread.tid] = thread.end_of
        self._begins = [self._begin(g, group[-1].born + 1) for g, group in enumerate(groups)]
        self._refuse_what_was_asked(ex, groups)
        self._refuse_single_joins(ex, groups)
        self._level(groups)

    def _find(self, ex: Execution) -> list[list[Thread]]:
        """Groups of two and more threads that a parent spawned in a row with equal functions."""
        paths = self._paths = ex.space.paths
        latest: dict[tuple[int, ...], list[Thread]] = {}
        """The group that the last child of each parent is in."""
        groups: list[list[Thread]] = []
        for thread in ex.order:
            path = paths[thread.tid]
            if not path or thread.body is None:
                continue
            group = latest.get(path[:-1])
            if group is None or not self._in_a_row(group[-1], thread):
                group = latest[path[:-1]] = []
                groups.append(group)
            group.append(thread)
        groups = [group for group in groups if len(group) > 1]
        roots = {paths[t.tid] for group in groups for t in group}
        # Those below identical threads are exchanged with these, and not among each other.
        return [
            group
            for group in groups
            if not any(paths[group[0].tid][:n] in roots for n in range(len(paths[group[0].tid])))
        ]

    def _begin(self, group: int, begin: int) -> int | None:
        """The step with which the threads of a group can be exchanged first, if none has taken one before."""
        assert self._identical is not None
        for tid in self._tids[:begin]:
            found = self._identical.member(tid)
            if found is not None and found[0] == group:
                return None
        return begin

    def _in_a_row(self, one: Thread, other: Thread) -> bool:
        paths = self._paths
        if paths[other.tid][-1] != paths[one.tid][-1] + 1 or one.daemon != other.daemon:
            return False
        if other.born != one.born and self.before[other.born].last != one.born:
            return False
        return alike(one.body, other.body)

    def _refuse_what_was_asked(self, ex: Execution, groups: list[list[Thread]]) -> None:
        assert self._identical is not None
        for tid, what in ex.distinguished.items():
            found = self._identical.member(tid)
            if found is not None:
                raise apart(groups[found[0]], what)

    def _refuse_single_joins(self, ex: Execution, groups: list[list[Thread]]) -> None:
        """Who joins one of a group joins all of it, with nothing in between. Notes which steps are such joins."""
        assert self._identical is not None
        named = self._named = [True] * len(self._ops)
        self._joins = {}
        missing: dict[tuple[int, int], set[int]] = {}
        group_of = {t.tid: g for g, group in enumerate(groups) for t in group}
        announced = [(-1, t.tid, t.op) for t in ex.threads]
        done = [(j, tid, op) for j, (tid, op) in enumerate(zip(self._tids, self._ops, strict=True))]
        for j, tid, op in [*done, *announced]:
            joins = isinstance(op, Join)
            open_groups = [g for t, g in missing if t == tid]
            if open_groups and not joins:
                raise apart(groups[open_groups[0]], "one is joined before the others")
            if not joins or op.target.tid not in group_of:  # type: ignore[union-attr]
                continue
            target = op.target.tid  # type: ignore[union-attr]
            group = group_of[target]
            member = self._identical.member(tid)
            if member is not None and member[0] == group:
                raise apart(groups[group], "one joins another")
            if j < 0:
                continue
            named[j] = False
            self._joins[j] = group
            followed = missing.setdefault((tid, group), {t.tid for t in groups[group]})
            followed.discard(target)
            if not followed:
                del missing[tid, group]

    def _level(self, groups: list[list[Thread]]) -> None:
        """The level of each step, with the two changes that the module names."""
        later = {t.tid: len(group) - 1 - k for group in groups for k, t in enumerate(group)}
        born = {t.tid: t.born for group in groups for t in group}
        levels: list[int] = []
        for j, (last, enabled_by, conflicts) in enumerate(self.before):
            level = levels[last] if last >= 0 else 0
            tid = self._tids[j]
            if tid in later and last == born[tid] >= 0 and self._tids[last] != tid:
                level += later[tid]
            if enabled_by >= 0:
                level = max(level, levels[enabled_by])
            for i in conflicts:
                level = max(level, levels[i])
            levels.append(level + self._named[j])
        self._levels = levels

    # -- asked by the search ---------------------------------------------------------------------------------------

    def ways(self, i: int, steps: int, tid: int) -> Iterator[Way]:
        """The ways of exchanging threads in what is done before step i, then in `steps`, then by thread `tid`."""
        identical = self._identical
        if identical is None:
            return
        usable: dict[int, int] = {}
        for group, begin in enumerate(self._begins):
            if begin is not None and begin <= i:
                done = self._movable(group, steps | (1 << i) - (1 << begin), tid)
                if done is not None:
                    usable[group] = begin
        for moved, exchange in identical.exchanges_of(tuple(usable)):
            begin = min(usable[group] for group in moved)
            done = steps | (1 << i) - (1 << begin)
            for group in moved:
                done = self._movable(group, done, tid) or 0
            yield Way(exchange, begin, done)

    def _movable(self, group: int, steps: int, tid: int) -> int | None:
        """The steps of a sequence, with one of thread `tid` behind them, that are to be done if threads are exchanged.

        None if somebody goes on in it who has joined one of the group: who was joined first would have to be, too.
        Joins with which a thread ends are left out: they can be done later.
        """
        for j in self._joins:
            if steps >> j & 1 and self._group_joined(j) == group:
                joiner = self._tids[j]
                behind = range(j + 1, len(self._tids))
                if joiner == tid or any(
                    self._tids[k] == joiner and self._group_joined(k) != group and steps >> k & 1
                    for k in behind
                ):
                    return None
                steps ^= 1 << j
        return steps

    def _group_joined(self, j: int) -> int:
        """The group of which step j joins a thread, -1 if it joins none."""
        return -1 if self._named[j] else self._joins[j]

    # -- counting --------------------------------------------------------------------------------------------------

    def count(self, total: int) -> None:
        """Count the trace of the execution, whose hashes sum up to `total`, and those that exchanging makes of it."""
        if self.traces is None:
            return
        sums = {total} if self._identical is None else self._sums(self._identical)
        if sums is None or len(self.traces) >= MOST_NAMES:
            self.traces = None
        else:
            self.traces[min(sums)] = len(sums)

    @property
    def unreduced(self) -> int | None:
        """How many traces there are if all threads are distinguished; None: too many to be counted."""
        return None if self.traces is None else sum(self.traces.values())

    def _sums(self, identical: IdenticalThreads) -> set[int] | None:
        """The names of the trace under all ways of exchanging identical threads; None if these are too many."""
        groups, hashes = identical.groups, identical.space.hashes
        if prod(factorial(len(g)) for g in groups) > MOST_PERMUTATIONS:
            return None
        fixed = 0
        moving = [[[0] * len(g) for _ in g] for g in groups]
        """Of each group the sum of the steps below each member, if they were below each other member."""
        for tid, level, alternative, named in zip(
            self._tids, self._levels, self._alternatives, self._named, strict=True
        ):
            found = identical.member(tid)
            if found is None:
                fixed += hashes[tid, level, alternative] if named else 0
                continue
            sums = moving[found[0]][found[1]]
            for to in range(len(sums)):
                sums[to] += hashes[identical.moved(tid, to), level, alternative] if named else 0
        each = [
            {
                sum(sums[k][to] for k, to in enumerate(order))
                for order in permutations(range(len(sums)))
            }
            for sums in moving
        ]
        return {fixed + sum(chosen) for chosen in product(*each)}

    # -- checking --------------------------------------------------------------------------------------------------

    def is_to_be_checked(self) -> bool:
        """Whether the execution that has ended is to be run again with two threads exchanged."""
        if self._identical is None:
            return False
        self._ended += 1
        return self._ended <= CHECKED or self._ended & (self._ended - 1) == 0

    def check(self, ex: Execution, ended: EndedExecution) -> None:
        """Run in `ex`, which is fresh, the execution that has ended with two threads exchanged.

        Raises `Misuse` if it meets other operations or values, or ends otherwise.
        """
        identical = self._identical
        assert identical is not None
        pairs = [(g, k) for g, group in enumerate(identical.groups) for k in range(len(group) - 1)]
        group, one = pairs[self._ended % len(pairs)]
        exchange = identical.exchange_of_two(group, one, one + 1)
        members = [ex.space.paths[t] for t in identical.groups[group][one : one + 2]]

        def differs(what: str) -> Misuse:
            return apart_named([".".join(map(str, m)) for m in members], what)

        in_order = sorted(range(len(self._ops)), key=lambda j: (self._levels[j], j))
        joined = {t for g in identical.groups for t in g}
        for j in in_order:
            if not self._named[j]:
                continue
            before = self._ops[j]
            tid = exchange.thread(self._tids[j])
            thread = ex.by_tid.get(tid)
            while thread is not None and _joins(thread, joined):
                ex.step(thread, 0)
            op = None if thread is None else thread.op
            if thread is None or op is None or not (op.free or op.ready(thread)):
                raise differs(
                    f"step {j + 1}, {before.describe()}, is not there with them exchanged"
                )
            if type(op) is not type(before):
                raise differs(
                    f"step {j + 1} is {before.describe()}, with them exchanged {op.describe()}"
                )
            value = op.obj.value
            if (
                not op.adding
                and type(value) in PLAIN
                and type(ended.values[j]) in PLAIN
                and value != ended.values[j]
            ):
                raise differs(
                    f"before step {j + 1}, {before.describe()}, the value is {ended.values[j]!r}, "
                    f"with them exchanged {value!r}"
                )
            ex.step(thread, self._alternatives[j])
        ex.finish(classify(ex))
        wrong = [ask(check) for check in list(ex.world.checks)]
        if sorted(map(repr, ex.world.results)) != sorted(map(repr, ended.results)):
            raise differs(f"the outcome is {ended.results}, with them exchanged {ex.world.results}")
        if (bool(ex.failures) or any(w is not None for w in wrong)) > ended.wrong:
            raise differs("nothing is wrong, with them exchanged something is")


def alike(one: object, other: object) -> bool:
    """Whether two callables do the same, whoever calls them: one function, over the same variables and arguments."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return (
            one.__code__ is other.__code__
            and one.__globals__ is other.__globals__
            and _same(one.__closure__ or (), other.__closure__ or ())
            and _same(one.__defaults__ or (), other.__defaults__ or ())
            and _same_by_name(one.__kwdefaults__ or {}, other.__kwdefaults__ or {})
            and _same_by_name(one.__dict__, other.__dict__)
        )
    if isinstance(one, MethodType) and isinstance(other, MethodType):
        return one.__self__ is other.__self__ and alike(one.__func__, other.__func__)
    if type(one) is partial and type(other) is partial:
        return (
            alike(one.func, other.func)
            and _same(one.args, other.args)
            and _same_by_name(one.keywords, other.keywords)
        )
    return isinstance(one, BuiltinMethodType) and one == other


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether objects are the same one by one, or of plain types and equal."""
    return len(some) == len(others) and all(
        a is b or (type(a) is type(b) and type(a) in PLAIN and a == b)
        for a, b in zip(some, others, strict=True)
    )


def _same_by_name(some: Mapping[str, object], others: Mapping[str, object]) -> bool:
    return some.keys() == others.keys() and _same(
        list(some.values()), [others[name] for name in some]
    )


def _joins(thread: Thread, joined: set[int]) -> bool:
    """Whether a thread can join one of these now."""
    op = thread.op
    return isinstance(op, Join) and op.target.tid in joined and op.ready(thread)


def apart(group: list[Thread], what: str) -> Misuse:
    """The error for threads that are not identical."""
    return apart_named([t.name for t in group], what)


def apart_named(names: Sequence[str], what: str) -> Misuse:
    """The error for threads of these names that are not identical."""
    return Misuse(
        f"the threads {', '.join(names)} run one function, but cannot be exchanged: {what}. Explore without symmetry"
    )
