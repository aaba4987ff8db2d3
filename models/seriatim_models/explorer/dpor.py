"""Optimal dynamic partial-order reduction: every Mazurkiewicz trace exactly once, and nothing else.

**The idea.** Run the program once. Find the *races*: pairs of dependent steps of different threads that nothing forces
into their order. For each race (e, e') write down how to run e' first, as a continuation of the prefix before e,
and leave it there as a branch to be taken later. When no branch is left, every trace has been seen
(Flanagan & Godefroid, POPL 2005).

**Optimality** needs three things more (Abdulla, Aronis, Jonsson & Sagonas, POPL 2014; JACM 64(4), 2017):

- *Sleep sets.* After the branch `p` of a prefix E is done, `p` sleeps at E: whatever begins with p has been seen.
  It sleeps on in the other branches until something dependent on it happens.
- *Source sets.* The branch for a race (e, e') is v = notdep(e, E).e': **every** step after e that does not happen after
  e, then e'. If some sleeping q could as well be the first step of an execution that contains v (q is a *weak initial*
  of v), then v has been seen, and no branch is needed.
- *Wakeup trees.* The whole sequence v is left as a branch, not its first step only, in an ordered tree of such
  sequences, unless a sequence in that tree already leads to the same place. After v has been followed,
  nothing sleeps any more: so no execution is ever started in vain.

**Happens-before** is a bit set for each step (bit i: step i happens before or is it), a Python integer.

**Blocking** (JACM 2017, section 7, adapts the notion of race). A step e can disable a step o of another thread q:
it takes the lock, the last permit, or (notify) ends the wait that would time out. Then e and o may have a release
between them, or o may never happen. So for a blocking o we also look at the last earlier step e on its object that
*takes*; if nothing in front of o (in its thread, or what enabled it) happens after e, then e and o race.
It suffices to take the last one: if o can happen at all after e, it can happen as soon as it is enabled again,
and in that trace e is the last. The pair of a release and the acquire that it enables is no race: before the
release the acquire cannot happen. That is asked of the operation itself (`touch_at`), with the value
that its object has before e (plus what commuting additions of v give).
Executions in which threads are stuck are maximal too, and their announced operations are looked at as well.

**Choices.** A step with k ways is a race with itself: its other ways are left as branches, after notdep(e, E) also.

**What an operation touches** may differ between the order in which it was seen and the reversed one (a failed
compare-and-set may now succeed). `touch_at` says it for the reversed order, so that sleeping and inserting are exact.

Memory is the current execution with its branches: bounded by depth, not by the number of executions
(the set of 16-byte trace names is kept only for counting, and can be switched off).
"""

from __future__ import annotations

from typing import Any

from seriatim_models.explorer.ends import classify
from seriatim_models.explorer.errors import ModelBug, NondeterministicProgram
from seriatim_models.explorer.execution import PATIENCE, Execution, Thread, going_on
from seriatim_models.explorer.foata import digest_of, normal_form
from seriatim_models.explorer.operations import (
    READ,
    WRITE,
    Footprint,
    Operation,
    Reacquire,
    Wake,
)
from seriatim_models.explorer.runner import Runner


class Branch:
    """A step in a wakeup tree, with the sequences that go on from it in order. A leaf ends a wakeup sequence."""

    __slots__ = ("children", "print", "tid", "way")

    def __init__(self, tid: int, way: int, print: Footprint) -> None:
        self.tid = tid
        self.way = way
        self.print = print
        self.children: list[Branch] = []


class Node:
    """A state on the current path: who sleeps there, and the branches that are still to be taken."""

    __slots__ = ("sleep", "tree")

    def __init__(self, sleep: list[Branch], tree: list[Branch]) -> None:
        self.sleep = sleep
        self.tree = tree


class Dpor:
    """Optimal dynamic partial-order reduction: every trace exactly once.

    With `real_time`, invocations and responses of calls become steps that keep their order against each other.
    """

    def __init__(self, *, real_time: bool = False) -> None:
        self.real_time = real_time

    def __str__(self) -> str:
        return f"Dpor({'real_time=True' if self.real_time else ''})"

    def search(self, runner: Runner) -> None:
        Search(runner).run()


class Search:
    """The state of one search: the current path and what is known about each of its steps."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.nodes: list[Node] = [Node([], [])]
        self.path: list[Branch] = []
        """The step taken at each node."""
        self.known = 0
        """How many leading steps of the path have been executed before, so that all about them is known."""
        self.floor = 0
        """Nodes above this depth are somebody else's (see `parallel`): no branch is left or taken there."""
        self.outbox: dict[tuple[Any, ...], list[Branch]] = {}
        """The sequences to be left at those nodes; the key begins with the depth."""
        # About each step of the current execution:
        self.tids: list[int] = []
        self.ways: list[int] = []
        self.prints: list[Footprint] = []
        self.ops: list[Operation] = []
        self.values: list[Any] = []
        """Value of the operation's object before the step."""
        self.pasts: list[int] = []
        """What happens before the step, itself included."""
        self.races: list[list[int]] = []
        """Earlier steps with which it races."""
        self.kinds: list[int] = []
        """How many ways it had."""
        self.levels: list[int] = []
        self.sums: list[int] = []
        self.signs: list[tuple[int, int]] = []
        self._touched: dict[int, list[int]] = {}
        """For each object, the steps that read, wrote, added, took (four bit sets)."""

    # -- the search ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        runner = self.runner
        while not runner.over():
            if self.once():
                return
            if runner.save is not None:
                runner.save(self)

    def once(self) -> bool:
        """One execution. True if the search is over: nothing is left, or a violation ends it."""
        runner = self.runner
        ex = runner.fresh()
        try:
            end = self.execute(ex)
            if end != "blocked":
                self.find_races(ex)
            digest = digest_of(self.sums[-1]) if self.sums else digest_of(0)
            if runner.forms is not None and end not in ("blocked", "cut", "failed"):
                runner.forms.add(normal_form(ex, self.tids, self.ways, self.levels))
            stop = runner.ended(ex, end, digest)
        except BaseException:
            ex.close()
            raise
        if stop:
            return True
        if self.advance():
            return False
        runner.exhausted = runner.cut == 0
        if runner.cut:
            runner.spent = f"max_steps={runner.limits.max_steps}"
        return True

    def advance(self) -> bool:
        """Go to the next branch: the deepest node that has one. False if there is none."""
        nodes, path = self.nodes, self.path
        del nodes[len(path) :]
        while len(path) > self.floor:
            node = nodes[-1]
            done = path.pop()
            if node.tree:
                node.sleep.append(done)
                path.append(node.tree.pop(0))
                self._forget(len(path) - 1)
                return True
            nodes.pop()
        return False

    def _forget(self, depth: int) -> None:
        """Drop what was known about the steps from `depth` on."""
        touched = self._touched
        for j in range(depth, len(self.prints)):
            for index, _ in self.prints[j].accesses:
                sets = touched[index]
                keep = (1 << depth) - 1
                sets[0] &= keep
                sets[1] &= keep
                sets[2] &= keep
                sets[3] &= keep
        for about in (
            self.tids, self.ways, self.prints, self.ops, self.values, self.pasts, self.races,
            self.kinds, self.levels, self.sums, self.signs,
        ):  # fmt: skip
            del about[depth:]
        self.known = depth

    def execute(self, ex: Execution) -> str:
        """Follow the path, then the wakeup sequence at its end, then whatever can happen. Returns the end."""
        runner = self.runner
        limits = runner.limits
        by_tid = ex.by_tid
        nodes, path = self.nodes, self.path
        ops, values, signs = self.ops, self.values, self.signs
        for j in range(self.known):
            step = path[j]
            thread = by_tid.get(step.tid)
            if thread is None or (op := thread.op) is None:
                raise diverged(j, signs[j], None)
            obj = op.obj
            if (op.code, obj.index) != signs[j]:
                raise diverged(j, signs[j], op)
            ops[j] = op
            values[j] = obj.value
            ex.step(thread, step.way)
        j = self.known
        if j < len(path):
            step = path[j]
        else:
            first = self._choose(ex, nodes[j])
            if isinstance(first, str):
                return first
            step = first
            path.append(step)
        while True:
            thread = by_tid.get(step.tid)
            if thread is None or thread.op is None or not thread.op.ready(thread):
                raise ModelBug(
                    f"step {j + 1} of a wakeup sequence cannot happen (thread {step.tid})"
                )
            self._note(ex, thread, step)
            ex.step(thread, step.way)
            self.known = j = j + 1
            if ex.failures and not limits.keep_going:
                return "failed"
            if j < len(path):  # going on from a checkpoint: this node is known
                step = path[j]
                continue
            node = nodes[j - 1]
            mask = step.print.mask
            sleep = [s for s in node.sleep if s.tid != step.tid and not s.print.conf & mask]
            node = Node(sleep, step.children)
            step.children = []
            nodes.append(node)
            if j >= limits.max_steps:
                # Cut here: what was to come lies beyond the bound.
                node.tree.clear()
                return "cut"
            if node.tree:
                step = node.tree.pop(0)
            else:
                following = self._choose(ex, node)
                if isinstance(following, str):
                    return following
                step = following
            path.append(step)

    def _choose(self, ex: Execution, node: Node) -> Branch | str:
        """Any step that can happen and does not sleep; or the end. The running thread goes on if it can."""
        able = ex.able()
        if not able:
            return classify(ex)
        if node.sleep:
            asleep = {s.tid for s in node.sleep}
            able = [t for t in able if t.tid not in asleep]
            if not able:
                return "blocked"
        last = ex.by_tid[self.tids[-1]] if self.tids else None
        turns = 0
        if last is not None and len(able) > 1 and self.tids[-PATIENCE:].count(last.tid) == PATIENCE:
            turns = PATIENCE
        chosen = going_on(able, last, turns)
        return Branch(chosen.tid, 0, chosen.op.touch())  # type: ignore[union-attr]

    def _note(self, ex: Execution, thread: Thread, step: Branch) -> None:
        """Everything about the step that `thread` is going to take now."""
        op = thread.op
        assert op is not None
        print = op.touch()
        if step.print.mask != print.mask:
            raise ModelBug(f"{op.describe()} of {thread.name} touches other things than foreseen")
        step.print = print
        tid = thread.tid
        j = len(self.tids)
        bit = 1 << j
        pasts, levels = self.pasts, self.levels
        past = bit
        level = 0
        last = thread.last if thread.last >= 0 else thread.born
        if last >= 0:
            past |= pasts[last]
            level = levels[last]
        after = op.after()
        if after >= 0:
            past |= pasts[after]
            if levels[after] > level:
                level = levels[after]
        races: list[int] = []
        touched = self._touched
        if op.blocking:
            sets = touched.get(op.obj.index)
            if sets is not None and sets[3]:
                i = sets[3].bit_length() - 1
                if not past >> i & 1:
                    races.append(~i)
        against = 0
        for index, mode in print.accesses:
            sets = touched.get(index)
            if sets is None:
                sets = touched[index] = [0, 0, 0, 0]
            else:
                if mode == WRITE:
                    against |= sets[0] | sets[1] | sets[2]
                elif mode == READ:
                    against |= sets[1] | sets[2]
                else:
                    against |= sets[0] | sets[1]
            sets[mode] |= bit
            if mode == WRITE and op.takes:
                sets[3] |= bit
        against &= ~past
        while against:
            i = against.bit_length() - 1
            races.append(i)
            if levels[i] > level:
                level = levels[i]
            past |= pasts[i]
            against &= ~past
        level += 1
        obj = op.obj
        self.tids.append(tid)
        self.ways.append(step.way)
        self.prints.append(print)
        self.ops.append(op)
        self.values.append(obj.value)
        self.pasts.append(past)
        self.races.append(races)
        self.kinds.append(op.ways())
        levels.append(level)
        sums = self.sums
        mark = ex.space.mark(tid, level, step.way)
        sums.append(sums[-1] + mark if sums else mark)
        self.signs.append((op.code, obj.index))

    # -- races -----------------------------------------------------------------------------------------------------

    def find_races(self, ex: Execution) -> None:
        """Reverse every race of this execution."""
        n = len(self.tids)
        tids, ops, values = self.tids, self.ops, self.values
        independent: dict[int, tuple[list[int], int]] = {}
        pasts = self.pasts

        def notdep(i: int) -> tuple[list[int], int]:
            """The steps after i that do not happen after it, as a list and as a bit set."""
            found = independent.get(i)
            if found is None:
                steps = [k for k in range(i + 1, n) if not pasts[k] >> i & 1]
                bits = 0
                for k in steps:
                    bits |= 1 << k
                found = independent[i] = steps, bits
            return found

        for j in range(n):
            races = self.races[j]
            if not races:
                continue
            op = ops[j]
            tid = tids[j]
            for i in races:
                if i < 0:
                    # op was, or might have been, disabled by a step that took its object.
                    i = ~i
                    if i in races:
                        continue
                    steps, bits = notdep(i)
                    self._reverse(i, steps, bits, tid, 0, op.obj.writes)
                    continue
                steps, bits = notdep(i)
                value = values[i] if ops[i].obj is op.obj else op.obj.value
                if ops[i].adding:
                    print = self.prints[i]
                    for k in steps:
                        if self.prints[k] is print:
                            value = value + ops[k].amount
                touch = op.touch_at(value)
                if touch is not None:
                    self._reverse(i, steps, bits, tid, 0, touch)
        for i in range(n):
            kinds = self.kinds[i]
            if kinds > 1:
                steps, bits = notdep(i)
                for way in range(kinds):
                    if way != self.ways[i]:
                        self._reverse(i, steps, bits, tids[i], way, self.prints[i])
        for thread in ex.threads:
            waiting = thread.op
            if waiting is not None and waiting.blocking:
                if isinstance(waiting, Wake):
                    touch = waiting.obj.adds
                    i = -1 if waiting.again.woken is None else waiting.again.woken[0]
                elif isinstance(waiting, Reacquire) and waiting.woken is None:
                    continue
                else:
                    touch = waiting.obj.writes
                    sets = self._touched.get(waiting.obj.index)
                    i = -1 if sets is None else sets[3].bit_length() - 1
                if i < 0:
                    continue
                last = thread.last if thread.last >= 0 else thread.born
                after = waiting.after()
                past = (pasts[last] if last >= 0 else 0) | (pasts[after] if after >= 0 else 0)
                if past >> i & 1:
                    continue
                steps, bits = notdep(i)
                self._reverse(i, steps, bits, thread.tid, 0, touch)

    def _reverse(
        self, i: int, steps: list[int], bits: int, tid: int, way: int, touch: Footprint
    ) -> None:
        """Leave the sequence `steps` then (tid, way) as a branch at node i, unless it has been or will be seen."""
        node = self.nodes[i]
        for sleeper in node.sleep:
            if self._weak_initial(sleeper, steps, bits, tid, way, touch) is not None:
                return
        if i < self.floor:
            labels = (i, *((self.tids[k], self.ways[k]) for k in steps), (tid, way))
            if labels not in self.outbox:
                self.outbox[labels] = [
                    *(Branch(self.tids[k], self.ways[k], self.prints[k]) for k in steps),
                    Branch(tid, way, touch),
                ]
            return
        self._insert(node.tree, steps, bits, tid, way, touch)

    def _weak_initial(
        self, step: Branch, steps: list[int], bits: int, tid: int, way: int, touch: Footprint | None
    ) -> int | None:
        """Can `step` come first in an execution that contains the sequence `steps` then (tid, way)?

        None if not; else the step of the sequence that it is, or -1 for its last one, or -2 if it is not in there.
        """
        who = step.tid
        tids = self.tids
        for k in steps:
            if tids[k] == who:
                if self.ways[k] == step.way and self.pasts[k] & bits == 1 << k:
                    return k
                return None
        prints = self.prints
        conf = step.print.conf
        if touch is not None and tid == who:
            if way != step.way:
                return None
            conf = touch.conf
            for k in steps:
                if prints[k].mask & conf:
                    return None
            return -1
        if touch is not None and touch.mask & conf:
            return None
        if conf:
            for k in steps:
                if prints[k].mask & conf:
                    return None
        return -2

    def _insert(
        self,
        children: list[Branch],
        steps: list[int],
        bits: int,
        tid: int,
        way: int,
        last: Footprint | None,
    ) -> None:
        """Insert a sequence into a wakeup tree, unless the tree leads to the same place already."""
        while True:
            for child in children:
                k = self._weak_initial(child, steps, bits, tid, way, last)
                if k is None:
                    continue
                if k >= 0:
                    steps = [s for s in steps if s != k]
                    bits &= ~(1 << k)
                elif k == -1:
                    last = None
                if not child.children or (not steps and last is None):
                    return
                children = child.children
                break
            else:
                break
        for k in steps:
            branch = Branch(self.tids[k], self.ways[k], self.prints[k])
            children.append(branch)
            children = branch.children
        if last is not None:
            children.append(Branch(tid, way, last))


def diverged(step: int, sign: tuple[int, int], op: Operation | None) -> NondeterministicProgram:
    """The error for a schedule that did not repeat itself."""
    now = "the thread is not there or has ended" if op is None else f"now it is {op.describe()}"
    return NondeterministicProgram(
        f"two runs of one schedule differ at step {step + 1}: before it was operation {sign[0]} on object {sign[1]}, "
        f"{now}. Is every source of chance inside the model? Look for random numbers, clocks, id() or hash() order, "
        "and state that outlives one execution; use world.choose() and world.now(), and build all state in the program."
    )
