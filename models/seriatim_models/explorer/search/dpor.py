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
  nothing sleeps any more: so no execution is ever sleep-set blocked.

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

**Waiting for a value** (`Await`: a loop that reads until its test passes, as one step). Whether a write disables it,
only its test says, and the last write that it could have come before need not be the last one. So of each write to its
cell that does not happen before what is in front of it, it is asked whether the value before that write passes; if so
it is put there. Additions that commute have no such value, as it depends on those beside them: `Misuse`.

**Choices.** A step with k alternatives is a race with itself: its other alternatives are left as branches,
after notdep(e, E) also.

**What an operation touches** may differ between the order in which it was seen and the reversed one (a failed
compare-and-set may now succeed). `touch_at` gives it for the reversed order, so that sleeping and inserting are exact.

**Identical threads** are distinguished, unless it is asked for that they are not: see `symmetry`.

Memory is the current execution with its branches: bounded by depth, not by the number of executions.
Traces are counted apart from the search, from a bounded sample of their names (`foata.Names`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from seriatim_models.explorer.errors import CHANCE, Misuse, NondeterministicProgram
from seriatim_models.explorer.model.execution import PATIENCE, Execution, going_on
from seriatim_models.explorer.model.operations import (
    Await,
    Footprint,
    Operation,
    Reacquire,
    Thread,
    Wake,
)
from seriatim_models.explorer.model.world import Record
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.search.symmetry import EndedExecution, Exchange, Symmetry, Way
from seriatim_models.explorer.trace.foata import digest_of, normal_form
from seriatim_models.explorer.trace.termination import classify


class Branch:
    """A step in a wakeup tree, with its subtrees in the order in which they are explored. A leaf ends a sequence."""

    __slots__ = ("alternative", "children", "footprint", "tid")

    def __init__(self, tid: int, alternative: int, footprint: Footprint) -> None:
        self.tid = tid
        self.alternative = alternative
        self.footprint = footprint
        self.children: list[Branch] = []


class PathNode:
    """A state on the current path: its sleep set, its wakeup tree, and how many of its branches have been explored."""

    __slots__ = ("done", "sleep", "tree")

    def __init__(self, sleep: list[Branch], tree: list[Branch]) -> None:
        self.sleep = sleep
        self.tree = tree
        self.done = 0


class Dpor:
    """Optimal dynamic partial-order reduction: every trace exactly once.

    With `real_time`, invocations and responses of calls become steps that keep their order against each other.
    With `symmetry`, threads that were spawned in a row with one function count as identical, and traces that differ
    only by exchanging them are not all explored: see `search.symmetry`, also for when `Misuse` is raised.
    """

    def __init__(self, *, real_time: bool = False, symmetry: bool = False) -> None:
        self.real_time = real_time
        self.symmetry = symmetry

    def __str__(self) -> str:
        given = ("real_time", self.real_time), ("symmetry", self.symmetry)
        return f"Dpor({', '.join(f'{name}=True' for name, asked in given if asked)})"

    def search(self, runner: Runner) -> None:
        """Explore the program of `runner` until all is seen, a budget runs out or a violation ends the search."""
        if not self.symmetry:
            DporSearch(runner).run()
            return
        search = DporSearch(runner)
        search.symmetry = symmetry = Symmetry()
        search.run()
        runner.unreduced = symmetry.unreduced


class DporSearch:
    """The state of one search: the current path and what is known about each of its steps.

    Sets of steps are bit sets: bit j stands for the j-th step of the path.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.nodes: list[PathNode] = [PathNode([], [])]
        self.path: list[Branch] = []
        """The step taken at each node."""
        self.known = 0
        """How many leading steps of the path have been executed before, so that all about them is known."""
        self.floor = 0
        """Nodes above this depth belong to the coordinator (see `parallel`): no branch is left or taken there."""
        self.symmetry: Symmetry | None = None
        """What is known of identical threads, if they are to be explored once up to exchanging them."""
        self.outbox: dict[tuple[Any, ...], list[Branch]] = {}
        """The sequences to be left at those nodes; the key begins with the depth."""
        # About each step of the current execution:
        self.ops: list[Operation] = []
        self.values: list[Any] = []
        """Value of the operation's object before the step."""
        self.pasts: list[int] = []
        """What happens before the step, itself included."""
        self.levels: list[int] = []
        self.sums: list[int] = []
        """For the name of the trace, see `foata`."""
        self.turns: list[int] = []
        """How many steps its thread has taken in a row, with it."""
        self.marks: list[int] = []
        """How many events were recorded before the step."""
        self.records: list[Record] | None = None
        """What the last execution recorded, and how much of it belongs to the known steps."""
        self.kept = 0
        # About some of them, with the step first:
        self.races: list[tuple[int, list[int]]] = []
        """Earlier steps with which a step races; ~i for a step i that may have disabled it."""
        self.choices: list[tuple[int, int]] = []
        self.awaits: list[tuple[int, int]] = []
        """Steps that waited for a value, each with what happens before it in its thread."""
        """How many alternatives a step had, where it had more than one."""
        self._independent: dict[int, tuple[int, int]] = {}
        """notdep of the steps that have been asked for, among so many steps of the path."""
        # About all of them:
        self.steps_at: defaultdict[int, int] = defaultdict(int)
        """The steps that touched an object in a mode (see `Footprint.keys`)."""
        self.steps_of: defaultdict[int, int] = defaultdict(int)
        """The steps of a thread."""
        self.takers: defaultdict[int, int] = defaultdict(int)
        """The steps that took an object, and so may have disabled others."""

    # -- the search ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run executions until none is left or a budget runs out."""
        runner = self.runner
        runner.explored = self.explored
        while not runner.over():
            if self.once():
                return
            if runner.save is not None:
                runner.save(self)

    def once(self) -> bool:
        """One execution. True if the search is over: nothing is left, or a violation ends it."""
        runner = self.runner
        ex = runner.fresh(repeating=self.records is not None)
        ex.know(self.pasts, self.steps_of)
        try:
            end = self.execute(ex)
            if self.symmetry is not None:
                self._look_at_threads(self.symmetry, ex, end)
            if end != "blocked":
                self.find_races(ex)
            digest = digest_of(self.sums[-1] if self.sums else 0)
            if runner.forms is not None and end not in (
                "blocked",
                "superseded",
                "cut",
                "failed",
            ):
                tids, alternatives = [s.tid for s in self.path], [s.alternative for s in self.path]
                runner.forms.add(normal_form(ex, tids, alternatives, self.levels))
            self.records = ex.world.records
            world, complete, violations = ex.world, runner.complete, runner.violations
            stop = runner.ended(ex, end, digest)
        except BaseException:
            ex.close()
            raise
        if self.symmetry is not None and runner.complete > complete:
            ended = EndedExecution(self.values, world.results, runner.violations > violations)
            self._count_up_to_symmetry(self.symmetry, ended, check=not stop)
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
            self._unmark(done)
            if node.tree:
                self._forget()
                node.sleep.append(done)
                node.done += 1
                path.append(node.tree.pop(0))
                return True
            nodes.pop()
        return False

    def explored(self) -> float:
        """The part of the tree that has been explored, if its branches are all there and equally large.

        A weighted backtrack estimate (Kilby, Slaney, Thiebaux & Walsh, AAAI 2006). As branches are still to be found,
        it is too large at first, and right at last.
        """
        done, weight = 0.0, 1.0
        for node in self.nodes[self.floor :]:
            weight /= node.done + 1 + len(node.tree)
            done += weight * node.done
        return done

    def _unmark(self, done: Branch) -> None:
        """Take the last step, which is no longer on the path, out of the sets of steps."""
        depth = len(self.path)
        bit = 1 << depth
        for key in done.footprint.keys:
            self.steps_at[key] ^= bit
        self.steps_of[done.tid] ^= bit
        op = self.ops[depth]
        if op.takes:
            self.takers[op.obj.index] &= ~bit

    def _forget(self) -> None:
        """Drop what was known about steps that are no longer on the path."""
        self.known = depth = len(self.path)
        self.kept = self.marks[depth]
        for about in (
            self.ops,
            self.values,
            self.pasts,
            self.levels,
            self.sums,
            self.turns,
            self.marks,
        ):
            del about[depth:]
        if self.symmetry is not None:
            self.symmetry.forget(depth)
        for some in (self.races, self.choices, self.awaits):
            while some and some[-1][0] >= depth:
                some.pop()
        earlier = (1 << depth) - 1
        self._independent = {
            i: (found & earlier, min(until, depth))
            for i, (found, until) in self._independent.items()
            if i < depth
        }

    def execute(self, ex: Execution) -> str:
        """Follow the path, then the wakeup sequence at its end, then any enabled steps; returns how it ended.

        This is Explore(E, Sleep, WuT) of the paper along one path, iteratively: `path` is E, and each node holds
        its sleep set and its wakeup tree. Ends: `termination.classify`, or ``blocked``, ``cut``, ``failed``.
        """
        limits = self.runner.limits
        by_tid, take = ex.by_tid, ex.step
        nodes, path = self.nodes, self.path
        # The prefix that earlier executions have been through.
        self._repeat_known_steps(ex)
        j = self.known
        if j == len(path):
            following = self._choose(ex, nodes[j])
            if isinstance(following, str):
                return following
            path.append(following)
        while True:
            step = path[j]
            thread = by_tid.get(step.tid)
            if thread is None or (op := thread.op) is None or not (op.free or op.ready(thread)):
                raise hidden(f"step {j + 1} of thread {step.tid} is another")
            # One new step: its happens-before and its races, then do it.
            self._note(thread, op, step)
            if self.symmetry is not None:
                self.symmetry.note(thread.latest, op.after(), self.races)
            self.marks.append(len(ex.world.records))
            take(thread, step.alternative)
            self.known = j = j + 1
            if ex.failures and not limits.keep_going:
                return "failed"
            if j < len(path):  # going on from a checkpoint: this node is known
                continue
            # The node behind it. Sleep' = those of Sleep that are independent of the step; WuT' = subtree(WuT, step).
            mask, asleep = step.footprint.mask, nodes[j - 1].sleep
            node = PathNode(
                [s for s in asleep if s.tid != step.tid and not s.footprint.conf & mask]
                if asleep
                else [],
                step.children,
            )
            step.children = []
            nodes.append(node)
            if j >= limits.max_steps:
                # Cut here: what was to come lies beyond the bound.
                node.tree.clear()
                return "cut"
            # The next step: the first branch of the wakeup tree, or at its end any step that does not sleep.
            if node.tree:
                path.append(node.tree.pop(0))
            else:
                following = self._choose(ex, node)
                if isinstance(following, str):
                    return following
                path.append(following)

    def _repeat_known_steps(self, ex: Execution) -> None:
        """Take the steps of the path that have been executed before; they must be the same operations again.

        What they record was kept the last time.
        """
        by_tid = ex.by_tid
        path, ops, known = self.path, self.ops, self.known
        ex.ops, ex.values = ops, []
        self.values = values = ex.values
        while (j := ex.steps) < known:
            step = path[j]
            before = ops[j]
            thread = by_tid.get(step.tid)
            if thread is None or (op := thread.op) is None:
                raise diverged(j, before, None)
            obj = op.obj
            if op.code != before.code or obj.index != before.obj.index:
                raise diverged(j, before, op)
            ops[j] = op
            values.append(obj.value)
            if not ex.repeating or step.alternative:
                ex.step(thread, step.alternative)
                continue
            # The thread may go on by itself as long as it is its turn.
            until = j + 1
            while until < known and path[until].tid == step.tid:
                until += 1
            ex.take_again(thread, ops[until - 1 : j : -1])
        if ex.repeating:
            assert self.records is not None
            ex.world.records = self.records[: self.kept]
            ex.repeating = False

    def _choose(self, ex: Execution, node: PathNode) -> Branch | str:
        """Any step that can happen and does not sleep; or the end. The running thread goes on if it can."""
        path, sleep = self.path, node.sleep
        last = ex.by_tid[path[-1].tid] if path else None
        turns = self.turns[-1] if path else 0
        if last is not None and turns < PATIENCE:
            # What follows would choose this thread too; this is quicker.
            op, tid = last.op, last.tid
            if op is not None and (op.free or op.ready(last)):
                for s in sleep:
                    if s.tid == tid:
                        break
                else:
                    return Branch(tid, 0, op.touch())
        enabled = ex.enabled()
        if not enabled:
            return classify(ex)
        if sleep:
            asleep = {s.tid for s in sleep}
            enabled = [t for t in enabled if t.tid not in asleep]
            if not enabled:
                return "blocked"
        chosen = going_on(enabled, last, turns)
        return Branch(chosen.tid, 0, chosen.op.touch())  # type: ignore[union-attr]

    def _note(self, thread: Thread, op: Operation, step: Branch) -> None:
        """Append what is known about the step that `thread` is about to take: happens-before, races, hash, level."""
        # What it touches was foreseen when the branch was made; the footprint may be another object, not another set.
        footprint = op.touch()
        if step.footprint is not footprint:
            if step.footprint.mask != footprint.mask:
                raise hidden(f"{op.describe()} of {thread.name} touches other things")
            step.footprint = footprint
        tid, alternative = step.tid, step.alternative
        pasts, levels, steps_at = self.pasts, self.levels, self.steps_at
        j = len(pasts)
        past = bit = 1 << j
        level = 0
        # Program order: the last step of the thread, or the spawn of it, and all before that.
        last = thread.last if thread.last >= 0 else thread.born
        if last >= 0:
            past |= pasts[last]
            level = levels[last]
        obj = op.obj
        races: list[int] = []
        if not op.free:
            past, level = self._waited_for(op, past, level, races)
        # Races: dependent steps not yet in the past, the latest first. Each brings its own past,
        # so only the pairs are left that no third step orders (e and e' in a race of the paper).
        against = 0
        for key in footprint.rivals:
            against |= steps_at[key]
        against &= ~past
        while against:
            i = against.bit_length() - 1
            races.append(i)
            if levels[i] > level:
                level = levels[i]
            past |= pasts[i]
            against &= ~past
        # Enter the step into the sets by which later steps find it.
        for key in footprint.keys:
            steps_at[key] |= bit
        self.steps_of[tid] |= bit
        if op.takes and footprint is obj.writes:
            self.takers[obj.index] |= bit
        # Append to the lists, each of which now holds one entry a step; the hash of the Foata normal form grows.
        level += 1
        self.ops.append(op)
        self.values.append(obj.value)
        self.turns.append(self.turns[-1] + 1 if j and self.path[j - 1].tid == tid else 1)
        pasts.append(past)
        levels.append(level)
        hashes = self.runner.space.hashes
        self.sums.append((self.sums[-1] if j else 0) + hashes[tid, level, alternative])
        if races:
            self.races.append((j, races))
        if op.chooses and (alternatives := op.alternatives()) > 1:
            self.choices.append((j, alternatives))

    def _waited_for(
        self, op: Operation, past: int, level: int, races: list[int]
    ) -> tuple[int, int]:
        """Past and level of an operation that is not always enabled; adds a race with what may have disabled it."""
        # The step that enabled it (the notify of a wait, the last step of a joined thread): no race.
        after = op.after()
        if after >= 0:
            past |= self.pasts[after]
            level = max(level, self.levels[after])
        if isinstance(op, Await):
            self.awaits.append((len(self.pasts), past))
            return past, level
        # The last step that took the object of a blocking operation, unless it happens before.
        if op.blocking:
            i = self.takers[op.obj.index].bit_length() - 1
            if i >= 0 and not past >> i & 1:
                races.append(~i)
        return past, level

    # -- races -----------------------------------------------------------------------------------------------------

    def find_races(self, ex: Execution) -> None:
        """Leave a branch for every race of this execution, every untaken alternative, and every blocked operation."""
        self._reverse_races()
        for i, alternatives in self.choices:
            # A choice is a race of a step with itself: the sequence is notdep(e, E), then e with another alternative.
            step = self.path[i]
            for alternative in range(alternatives):
                if alternative != step.alternative:
                    self._reverse(i, self._notdep(i), step.tid, alternative, step.footprint)
        for j, past in self.awaits:
            op = self.ops[j]
            assert isinstance(op, Await)
            self._wait_before(op, self.path[j].tid, past, j)
        for thread in ex.threads:
            if thread.op is not None and thread.op.blocking:
                self._reverse_blocked(thread, thread.op)

    def _notdep(self, i: int) -> int:
        """notdep(e, E) of the paper for the i-th step e: the steps after it that do not happen after it."""
        found, until = self._independent.get(i, (0, i + 1))
        length = len(self.path)
        if until < length:
            pasts = self.pasts
            for k in range(until, length):
                if not pasts[k] >> i & 1:
                    found |= 1 << k
            self._independent[i] = found, length
        return found

    def _reverse_races(self) -> None:
        """For each race of a step i with a later step j leave v = notdep(i, E).j at node i."""
        path, ops, values = self.path, self.ops, self.values
        for j, races in self.races:
            op, tid = ops[j], path[j].tid
            for i in races:
                if i < 0:
                    # op was, or might have been, disabled by a step that took its object.
                    i = ~i
                    if i not in races:
                        self._reverse(i, self._notdep(i), tid, 0, op.obj.writes)
                    continue
                steps = self._notdep(i)
                # The value that the object of j has at the end of notdep: that before i, and what v adds to it.
                value = values[i] if ops[i].obj is op.obj else op.obj.value
                if ops[i].adding:
                    footprint = path[i].footprint
                    for k in bits_of(steps):
                        if path[k].footprint is footprint:
                            value = value + ops[k].amount
                # What j touches there; None where it could not happen.
                touch = op.touch_at(value)
                if touch is not None:
                    self._reverse(i, steps, tid, 0, touch)

    def _reverse_blocked(self, thread: Thread, waiting: Operation) -> None:
        """Leave a branch in which an operation that is blocked at the end happens before what disabled it."""
        if isinstance(waiting, Await):
            last = thread.latest
            past = self.pasts[last] if last >= 0 else 0
            self._wait_before(waiting, thread.tid, past, len(self.path))
            return
        if isinstance(waiting, Wake):
            touch = waiting.obj.adds
            i = -1 if waiting.again.woken is None else waiting.again.woken[0]
        elif isinstance(waiting, Reacquire) and waiting.woken is None:
            return  # asleep on its condition: nothing disabled it
        else:
            touch = waiting.obj.writes
            i = self.takers[waiting.obj.index].bit_length() - 1
        if i < 0:
            return
        # A race only if nothing in front of the operation happens after step i.
        last, after = thread.latest, waiting.after()
        past = (self.pasts[last] if last >= 0 else 0) | (self.pasts[after] if after >= 0 else 0)
        if not past >> i & 1:
            self._reverse(i, self._notdep(i), thread.tid, 0, touch)

    def _wait_before(self, op: Await, tid: int, past: int, end: int) -> None:
        """Leave a branch for each write before step `end` that a thread could have stopped waiting before.

        `past` is what happens before it in its thread. Raises `Misuse` where additions commute.
        """
        reads, adds = op.obj.reads, op.obj.adds
        if any(self.steps_at[key] for key in adds.keys):
            raise Misuse(
                f"{op.obj.name} is waited for and added to: use get_and_add instead of add"
            )
        writes = 0
        for key in reads.rivals:
            writes |= self.steps_at[key]
        for i in bits_of(writes & ((1 << end) - 1) & ~past):
            if op.passes(self.values[i]):
                self._reverse(i, self._notdep(i), tid, 0, reads)

    def _reverse(self, i: int, steps: int, tid: int, alternative: int, touch: Footprint) -> None:
        """Leave the wakeup sequence `steps` then (tid, alternative) at node i, unless it has been or will be seen."""
        node = self.nodes[i]
        # sleep(E') and WI(v) meet: an execution that begins with v has been explored.
        for sleeper in node.sleep:
            if self._weak_initial(sleeper, steps, tid, alternative, touch) is not None:
                return
        if self.symmetry is not None:
            self._reverse_twin(self.symmetry, i, steps, tid, alternative, touch)
            return
        # Above the floor the tree is the coordinator's: the sequence is sent to it.
        if i < self.floor:
            sequence = [self.path[k] for k in bits_of(steps)]
            labels = (i, *((s.tid, s.alternative) for s in sequence), (tid, alternative))
            if labels not in self.outbox:
                self.outbox[labels] = [
                    *(Branch(s.tid, s.alternative, s.footprint) for s in sequence),
                    Branch(tid, alternative, touch),
                ]
            return
        self._insert(node.tree, steps, tid, alternative, touch)

    def _look_at_threads(self, symmetry: Symmetry, ex: Execution, end: str) -> None:
        """Let identical threads be found, in an execution in which no thread failed."""
        if end in ("blocked", "failed"):
            symmetry.look_away()
        else:
            tids, alternatives = [s.tid for s in self.path], [s.alternative for s in self.path]
            symmetry.look_at(ex, self.ops, tids, alternatives)

    def _count_up_to_symmetry(self, symmetry: Symmetry, ended: EndedExecution, check: bool) -> None:
        """Count a complete execution; of some, if they are to be checked, run one with two threads exchanged."""
        symmetry.count(self.sums[-1] if self.sums else 0)
        if check and symmetry.is_to_be_checked():
            other = self.runner.fresh()
            try:
                symmetry.check(other, ended)
            finally:
                other.close()

    def _reverse_twin(
        self, symmetry: Symmetry, i: int, steps: int, tid: int, alternative: int, touch: Footprint
    ) -> None:
        """As `_reverse`, where nothing that sleeps at node i is a weak initial of v: leave v or a twin of it.

        Of all twins that one which is explored first; nothing if one has been. See `symmetry`.
        """
        depth, place = i, self._place_in_tree(i, steps, tid, alternative, touch, None)
        best: Exchange | None = None
        rest = steps
        last: Footprint | None = touch
        for way in symmetry.ways(i, steps, tid):
            found = self._place(way, tid, alternative, touch)
            if found is None:
                return
            if found[0] > depth or (found[0] == depth and found[1] < place):
                depth, place, rest, last = found
                best = way.exchange
        self._insert(self.nodes[depth].tree, rest, tid, alternative, last, best)

    def _place(
        self, way: Way, tid: int, alternative: int, touch: Footprint | None
    ) -> tuple[int, int, int, Footprint | None] | None:
        """Where in the tree the twin of a sequence belongs that `way` makes of it: below which node, and where there.

        Also what is left of the sequence there. None if all that begins like the twin has been, or is being, explored.
        """
        rest, exchange = way.steps, way.exchange
        for k in range(way.begin, len(self.path)):
            if not rest and touch is None:
                return None
            for sleeper in self.nodes[k].sleep:
                twin = exchanged(sleeper, exchange, back=True)
                if self._weak_initial(twin, rest, tid, alternative, touch) is not None:
                    return None
            twin = exchanged(self.path[k], exchange, back=True)
            taken = self._weak_initial(twin, rest, tid, alternative, touch)
            if taken is None:
                place = self._place_in_tree(k, rest, tid, alternative, touch, exchange)
                return k, place, rest, touch
            if taken >= 0:
                rest ^= 1 << taken
            elif taken == -1:
                touch = None
        return None

    def _place_in_tree(
        self,
        i: int,
        steps: int,
        tid: int,
        alternative: int,
        touch: Footprint | None,
        exchange: Exchange | None,
    ) -> int:
        """Below which of the branches to be taken at node i a sequence belongs; their number if below none."""
        tree = self.nodes[i].tree
        for k, child in enumerate(tree):
            first = child if exchange is None else exchanged(child, exchange, back=True)
            if self._weak_initial(first, steps, tid, alternative, touch) is not None:
                return k
        return len(tree)

    def _weak_initial(
        self, step: Branch, steps: int, tid: int, alternative: int, touch: Footprint | None
    ) -> int | None:
        """Whether `step` is a weak initial of v, the sequence `steps` then (tid, alternative): p in WI(v) of the paper.

        That is, whether it can come first in an execution that contains v.
        None if not; else the step of the sequence that it is, or -1 for its last one, or -2 if it is not in there.
        """
        # The thread has a step in v: then its first one there, if nothing in v happens before it.
        own = self.steps_of[step.tid] & steps
        if own:
            first = own & -own
            k = first.bit_length() - 1
            can = self.path[k].alternative == step.alternative and self.pasts[k] & steps == first
            return k if can else None
        # It has none, or it is the last step of v: then it must be independent of all (other) steps of v.
        footprint, place = step.footprint, -2
        if touch is not None:
            if tid == step.tid:
                if alternative != step.alternative:
                    return None
                footprint, place = touch, -1
            elif touch.mask & footprint.conf:
                return None
        for key in footprint.rivals:
            if self.steps_at[key] & steps:
                return None
        return place

    def _insert(
        self,
        children: list[Branch],
        steps: int,
        tid: int,
        alternative: int,
        last: Footprint | None,
        exchange: Exchange | None = None,
    ) -> None:
        """insert(v, WuT) of the paper: add v = `steps` then (tid, alternative), unless a leaf of the tree covers it.

        With `exchange`, of what v becomes by it.
        """
        # Go down along the first branches that are weak initials of what is left of v, and take them out of it.
        while True:
            for child in children:
                first = child if exchange is None else exchanged(child, exchange, back=True)
                k = self._weak_initial(first, steps, tid, alternative, last)
                if k is None:
                    continue
                if k >= 0:
                    steps ^= 1 << k
                elif k == -1:
                    last = None
                if not child.children or (not steps and last is None):
                    return
                children = child.children
                break
            else:
                break
        # What is left becomes a new youngest branch at the node that was reached.
        for k in bits_of(steps):
            step = self.path[k]
            branch = Branch(step.tid, step.alternative, step.footprint)
            children.append(branch if exchange is None else exchanged(branch, exchange))
            children = children[-1].children
        if last is not None:
            branch = Branch(tid, alternative, last)
            children.append(branch if exchange is None else exchanged(branch, exchange))


def exchanged(branch: Branch, exchange: Exchange, back: bool = False) -> Branch:
    """What a branch becomes if identical threads are exchanged, or what becomes it; without its children."""
    return Branch(
        exchange.thread(branch.tid, back),
        branch.alternative,
        exchange.footprint(branch.footprint, back),
    )


def bits_of(steps: int) -> Iterator[int]:
    """The steps in a set, in order."""
    while steps:
        first = steps & -steps
        yield first.bit_length() - 1
        steps ^= first


def diverged(step: int, before: Operation, op: Operation | None) -> NondeterministicProgram:
    """The error for a schedule that did not repeat itself."""
    now = "the thread is not there or has ended" if op is None else f"now it is {op.describe()}"
    return NondeterministicProgram(
        f"two runs of one schedule differ at step {step + 1}: before it was {before.describe()}, "
        f"{now}. {CHANCE}"
    )


def hidden(what: str) -> NondeterministicProgram:
    """Return the error for a step that is another one after steps that it was said not to depend on."""
    return NondeterministicProgram(
        f"{what} than in an execution that differs only in the order of steps that no cell relates to it: two threads "
        "share what is no cell. Look for plain attributes and containers (attributes=True, seriatim check "
        f"--attributes, finds those of the reference). {CHANCE}"
    )
