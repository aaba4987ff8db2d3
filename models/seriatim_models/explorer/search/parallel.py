"""Distributed search: one optimal search in several processes, with no redundancy.

A branch of an optimal search cannot be explored by itself: while an earlier sibling is explored, its races may still
add sequences below the later one. But at the *end of a wakeup sequence* nothing sleeps any more.
Every trace that begins so is to be explored from there, and from nowhere else.
So a task is the end of a wakeup sequence (a leaf).

The coordinator keeps the tree above: its nodes, the branches at each in order, and which of them are leaves.
A worker explores below its leaf. Races with steps above the leaf are not its own: it returns the sequences.
The coordinator leaves them at their node exactly as the search of one process would, with the earlier siblings of the
worker's branch asleep and the later ones as the wakeup tree; where that makes a new leaf, there is a new task.
After a batch of executions a worker returns its whole stack, whose open leaves become tasks for others.

So the traces are the same, each found once; the split costs processes and messages.

Processes are forked, so that the program, which may be any closure, need not be sent.
`on_execution` is called in the workers: what it returns comes back, what it remembers only if it is `Summing`.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle  # its error only: what may not go to another process
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from seriatim_models.child_process import end_with, leave_to_parent, shielded
from seriatim_models.explorer.errors import ExplorerError, ModelBug
from seriatim_models.explorer.model.guard import refused
from seriatim_models.explorer.model.program import Limits
from seriatim_models.explorer.model.watchdog import watched
from seriatim_models.explorer.search.dpor import Branch, DporSearch, PathNode
from seriatim_models.explorer.search.frontier import (
    add_counts,
    counts,
    deserialize_branch,
    deserialize_sequences,
    serialize_search,
    serialize_sequences,
)
from seriatim_models.explorer.search.runner import Runner

EXECUTIONS_PER_TASK = 200
"""Executions after which a worker returns the rest of its task, so that others can help; before that, if asked to."""

EXECUTIONS_BETWEEN_LOOKS = 10
"""Executions after which a process looks whether another waits for it."""

ALONE = 0.05
"""Seconds of the processor after which a search is shared, if it has not made so many executions before."""

ENDED = "a process that shared the search has ended: was it killed, or out of memory?"
TASKS_PER_MESSAGE = 32
"""Most tasks in one message."""

GRACE = 0.5
"""Seconds to wait for what is under way when a budget has run out."""


@dataclass
class Split:
    """What it cost to distribute a search, but for the steps above its leaf that each part runs once more."""

    processes: int = 1
    parts: int = 0
    """How many pieces of the tree were given to a process."""
    returned: int = 0
    """Sequences that a part found for nodes above it."""
    repeated: int = 0
    """Complete executions of a trace that had been seen before."""
    blocked: int = 0
    """Executions that were sleep-set blocked: every enabled thread was asleep."""

    def __str__(self) -> str:
        return (
            f"{self.processes} processes shared the search in {self.parts} parts: "
            f"{self.repeated} executions repeated, {self.blocked} sleep-set blocked, "
            f"{self.returned} sequences sent from one part to another"
        )


class WorkerFailure(NamedTuple):
    """What ended a worker's batch, which the coordinator raises."""

    error: Exception
    observed: Any
    """What its observer had seen by then (`Summing.counts`), for the error may have to do with it."""


class WakeupNode:
    """A node of the tree that the coordinator keeps: the state after `step` at its parent."""

    __slots__ = ("asleep", "children", "leaf", "step")

    def __init__(self, step: Branch | None, asleep: list[Branch]) -> None:
        self.step = step
        self.asleep = asleep
        """Steps that sleep here from the start."""
        self.children: list[WakeupNode] = []
        self.leaf = False
        """Whether a task began here: then all that follows is covered."""

    def earlier_siblings(self, child: WakeupNode) -> list[Branch]:
        """Steps that sleep here while `child` is explored: those asleep from the start, and the earlier branches."""
        asleep = list(self.asleep)
        for other in self.children:
            if other is child:
                break
            assert other.step is not None
            asleep.append(other.step)
        return asleep

    def add(self, step: Branch) -> WakeupNode:
        """Add a branch behind the others; its sleep set follows from theirs."""
        sleep = list(self.asleep) + [c.step for c in self.children if c.step is not None]
        mask = step.footprint.mask
        asleep = [s for s in sleep if s.tid != step.tid and not s.footprint.conf & mask]
        child = WakeupNode(Branch(step.tid, step.alternative, step.footprint), asleep)
        self.children.append(child)
        return child


class Coordinator:
    """Keeps the tree above the tasks, hands out leaves and inserts what the workers return."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.space = runner.space
        self.root = WakeupNode(None, [])
        self.tasks: deque[list[WakeupNode]] = deque()
        """Paths from the root, each to a leaf that is to be explored."""
        self.split = Split()

    def receive(self, data: dict[str, Any], trail: list[WakeupNode]) -> None:
        """What came back from the task at the end of `trail`: sequences for the nodes above, and its open stack."""
        space = self.space
        depths, sequences = data["outbox"]
        self.split.parts += 1
        self.split.returned += len(depths)
        for depth, sequence in zip(depths, deserialize_sequences(sequences, space), strict=True):
            self._insert(trail[: depth + 1], trail[depth + 1], sequence)
        if data["search"] is None:
            return
        path = [deserialize_branch(b, space) for b in data["search"]["path"]]
        here = trail[-1]
        trail = list(trail)
        given = len(trail) - 1
        for depth in range(given, len(path)):
            sleep, tree = data["search"]["nodes"][depth]
            # What has been explored here is asleep from the start, for all that follows.
            here.asleep = [deserialize_branch(b, space) for b in sleep]
            child = here.add(path[depth])
            for open_branch in tree:
                self._add_open_tree(trail, deserialize_branch(open_branch, space))
            here = child
            trail = [*trail, child]
        for following in path[-1].children:
            self._add_open_tree(trail, following)
        if not path[-1].children:
            self._add_task(trail)

    def _add_open_tree(self, trail: list[WakeupNode], branch: Branch) -> None:
        """Copy an open wakeup tree to the end of `trail`, and give its leaves away."""
        trail = [*trail, trail[-1].add(branch)]
        while len(branch.children) == 1:
            branch = branch.children[0]
            trail.append(trail[-1].add(branch))
        for following in branch.children:
            self._add_open_tree(trail, following)
        if not branch.children:
            self._add_task(trail)

    def _add_task(self, trail: list[WakeupNode]) -> None:
        leaf = trail[-1]
        leaf.leaf = True
        if leaf.asleep:
            raise ModelBug("a step sleeps at the end of a wakeup sequence")
        self.tasks.append(trail)

    def _insert(self, trail: list[WakeupNode], origin: WakeupNode, sequence: list[Branch]) -> None:
        """Leave a sequence, found below `origin`, at the end of `trail`, unless something covers it."""
        here = trail[-1]
        if any(weak_initial(s, sequence) is not None for s in here.earlier_siblings(origin)):
            return
        rest = list(sequence)
        children = here.children[here.children.index(origin) + 1 :]
        while True:
            for child in children:
                assert child.step is not None
                k = weak_initial(child.step, rest)
                if k is None:
                    continue
                if k >= 0:
                    del rest[k]
                if child.leaf or not rest:
                    return
                trail = [*trail, child]
                children = child.children
                break
            else:
                break
        trail = list(trail)
        for step in rest:
            trail.append(trail[-1].add(step))
        self._add_task(trail)

    def explore_one_task(self, pool: WorkerPool) -> None:
        """Explore below one leaf in this process, as a worker does, and serve the workers meanwhile.

        It ends earlier if one of them is left without a task: every end makes more of them, and costs both sides.
        """
        runner = self.runner
        trail = self.tasks.pop()
        search = search_below(self.task(trail), runner, runner.seconds_left)
        executions = int(min(EXECUTIONS_PER_TASK, pool.room))
        pool.reserved = executions
        over = False
        while executions > 0 and not over:
            over = run_batch(search, min(EXECUTIONS_BETWEEN_LOOKS, executions))
            executions -= EXECUTIONS_BETWEEN_LOOKS
            pool.serve(self, 0)
            found = runner.found and not runner.limits.keep_going
            if search.runner.spent or found or (pool.idle and not self.tasks):
                break
        pool.reserved = 0
        add_counts(runner, counts(search.runner))
        self.receive(answer(search, over), trail)

    def task(self, trail: list[WakeupNode]) -> dict[str, Any]:
        """A task as plain data: a search whose floor is the leaf."""
        path = [p.step for p in trail if p.step is not None]
        earlier_siblings = [trail[d].earlier_siblings(trail[d + 1]) for d in range(len(trail) - 1)]
        return {"sequences": serialize_sequences([path, *earlier_siblings], self.space)}


def weak_initial(step: Branch, sequence: list[Branch]) -> int | None:
    """Whether `step` can come first in an execution that contains the sequence: p in WI(v).

    None if not; else its place in the sequence, -1 if it is not in it.
    `dpor` asks the same of sets of steps of one execution; here the steps come from several executions.
    """
    conf = step.footprint.conf
    for k, other in enumerate(sequence):
        if other.tid == step.tid:
            if other.alternative != step.alternative or any(
                s.footprint.mask & other.footprint.conf for s in sequence[:k]
            ):
                return None
            return k
    if any(s.footprint.mask & conf for s in sequence):
        return None
    return -1


def explore_parallel(runner: Runner, jobs: int) -> None:
    """The search of `runner`, in `jobs` processes, of which this is one."""
    search = DporSearch(runner)
    if run_alone(search) or runner.spent:
        return
    coordinator = Coordinator(runner)
    coordinator.split.processes = jobs
    runner.split = coordinator.split
    coordinator.receive(answer(search, over=False), [coordinator.root])
    try:
        _share(runner, coordinator, jobs)
    finally:
        coordinator.split.repeated, coordinator.split.blocked = runner.redundant, runner.blocked


def _share(runner: Runner, coordinator: Coordinator, jobs: int) -> None:
    with WorkerPool(runner, jobs - 1) as pool:
        pool.assign_tasks(coordinator)
        while (coordinator.tasks or pool.busy) and not runner.over():
            if coordinator.tasks and pool.room > 0:
                coordinator.explore_one_task(pool)
            if not coordinator.tasks:
                pool.ask_for_more()
            pool.serve(coordinator, 0 if coordinator.tasks and pool.room > 0 else 0.2)
            if runner.found and not runner.limits.keep_going:
                return
        if runner.spent:
            # Tasks under way end at the same deadline; their executions count, but open no new tasks.
            for _, answers in pool.receive(within=GRACE):
                for data in answers:
                    add_counts(runner, data["counts"])
            return
    runner.exhausted = runner.cut == 0
    if runner.cut:
        runner.spent = f"max_steps={runner.limits.max_steps}"


class WorkerPool:
    """The processes, and what each of them is busy with."""

    def __init__(self, runner: Runner, jobs: int) -> None:
        self.runner = runner
        self.workers: list[tuple[Any, Connection]] = []
        self.busy: dict[Connection, list[list[WakeupNode]]] = {}
        """The leaves from which each is exploring."""
        self.idle: list[Connection] = []
        self.promised: dict[Connection, int] = {}
        """How many executions each may make at most."""
        self.asked: set[Connection] = set()
        """Those that were asked to return what they have not done."""
        self.reserved = 0
        """How many the coordinator itself may make, in the task that it is at."""
        context = multiprocessing.get_context("fork")
        for _ in range(jobs):
            mine, its = context.Pipe()
            process = context.Process(target=work, args=(its, runner, os.getpid()), daemon=True)
            with shielded():
                process.start()
            its.close()
            self.workers.append((process, mine))
            self.idle.append(mine)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        for process, connection in self.workers:
            connection.close()
            process.kill()
            process.join()

    @property
    def room(self) -> float:
        """How many executions the budget still allows, of which none is promised."""
        return self.runner.room - sum(self.promised.values()) - self.reserved

    def assign_tasks(self, coordinator: Coordinator) -> None:
        """Send tasks to all idle workers: several in one message where there are many."""
        runner = self.runner
        while coordinator.tasks and self.idle:
            room = self.room / (len(self.workers) + 1)  # the others have their share
            many = len(coordinator.tasks) // (2 * len(self.workers))
            number = max(1, min(TASKS_PER_MESSAGE, many))
            executions = ceil(min((20 if many else 1) * EXECUTIONS_PER_TASK, room))
            if executions < 1:
                return
            connection = self.idle.pop()
            trails = [
                coordinator.tasks.popleft() for _ in range(number)
            ]  # the shallowest, so the largest
            tasks = [coordinator.task(trail) for trail in trails]
            try:
                connection.send((tasks, executions, runner.seconds_left))
            except ConnectionError as error:
                raise ExplorerError(ENDED) from error
            self.busy[connection] = trails
            self.promised[connection] = executions

    def ask_for_more(self) -> None:
        """Ask the busy workers, each once, to return what they have not done: there is nothing else to do."""
        for connection in self.busy:
            if connection not in self.asked:
                self.asked.add(connection)
                with suppress(OSError):  # it has ended: `receive` says so
                    connection.send(None)

    def serve(self, coordinator: Coordinator, within: float) -> None:
        """Take what the workers return within so many seconds, and send them more."""
        for trails, answers in self.receive(within):
            for trail, data in zip(trails, answers, strict=True):
                add_counts(self.runner, data["counts"])
                coordinator.receive(data, trail)
        self.assign_tasks(coordinator)

    def receive(self, within: float) -> Iterator[tuple[list[list[WakeupNode]], list[Any]]]:
        """The leaves and answers of the workers that have finished; raises what a worker raised."""
        for ready in wait(list(self.busy), timeout=within):
            assert isinstance(ready, Connection)
            try:
                answers = ready.recv()
            except (EOFError, ConnectionError) as error:
                raise ExplorerError(ENDED) from error
            trails = self.busy.pop(ready)
            del self.promised[ready]
            self.asked.discard(ready)
            self.idle.append(ready)
            if isinstance(answers, WorkerFailure):
                if self.runner.summing is not None and answers.observed is not None:
                    self.runner.summing.add(answers.observed)
                raise answers.error
            yield trails[: len(answers)], answers


def run_batch(search: DporSearch, executions: int) -> bool:
    """Run a search for so many executions, within its budget. True if it is over: all was seen, or a violation."""
    runner = search.runner
    return any(not runner.over() and search.once() for _ in range(executions))


def run_alone(search: DporSearch) -> bool:
    """Run a search for as long as other processes would cost more than they do. True if it is over."""
    until = time.process_time() + ALONE
    for _ in range(0, EXECUTIONS_PER_TASK, EXECUTIONS_BETWEEN_LOOKS):
        if run_batch(search, EXECUTIONS_BETWEEN_LOOKS):
            return True
        if time.process_time() > until:
            break
    return False


def answer(search: DporSearch, over: bool) -> dict[str, Any]:
    """What a worker returns after a batch: counts, sequences for nodes above its leaf, and its open stack."""
    space = search.runner.space
    return {
        "counts": counts(search.runner),
        "outbox": [
            [k[0] for k in search.outbox],
            serialize_sequences(list(search.outbox.values()), space),
        ],
        "search": None if over else serialize_search(search),
    }


def search_below(task: dict[str, Any], parent: Runner, seconds: float | None = None) -> DporSearch:
    """A search that begins at a leaf, with counts of its own."""
    limits = Limits(
        seconds=seconds,
        max_steps=parent.limits.max_steps,
        keep_going=parent.limits.keep_going,
    )
    runner = Runner(
        parent.program,
        parent.setting,
        limits,
        on_execution=parent.on_execution if parent.summing is None else parent.summing.empty(),
        count_traces=parent.seen is not None,
        space=parent.space,
        observer=parent.observer,
    )
    search = DporSearch(runner)
    path, *earlier_siblings = deserialize_sequences(task["sequences"], runner.space)
    search.floor = len(path)
    search.path = [Branch(b.tid, b.alternative, b.footprint) for b in path]
    search.nodes = [PathNode(sleep, []) for sleep in earlier_siblings]
    return search


def work(connection: Connection, parent: Runner, coordinator: int) -> None:
    """A worker: one message with tasks after another, for as long as the process of the coordinator lives."""
    leave_to_parent()  # the coordinator ends its workers
    end_with(coordinator)  # if it can: it may be killed
    with watched(parent.limits.seconds):
        _work_watched(connection, parent)


def _work_watched(connection: Connection, parent: Runner) -> None:
    while True:
        try:
            message = connection.recv()
        except (EOFError, ConnectionError):
            return
        if message is None:  # it was asked for what it had returned already
            continue
        tasks, executions, seconds = message
        answers: Any = []
        summing = None
        try:
            for task in tasks:
                search = search_below(task, parent, seconds)
                summing = search.runner.summing
                over = False
                while executions > 0 and not over and not search.runner.spent:
                    over = run_batch(search, min(EXECUTIONS_BETWEEN_LOOKS, executions))
                    executions -= EXECUTIONS_BETWEEN_LOOKS
                    if connection.poll():
                        executions = 0
                if refused:
                    raise refused[0]
                answers.append(answer(search, over))
        except Exception as error:  # the coordinator raises it
            answers = WorkerFailure(error, None if summing is None else summing.counts())
        try:
            connection.send(answers)
        except (TypeError, AttributeError, pickle.PicklingError):
            if isinstance(answers, WorkerFailure):
                answers = answers.error
            named = ExplorerError(f"{type(answers).__name__} in a process: {answers}")
            connection.send(WorkerFailure(named, None))
