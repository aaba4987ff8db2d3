"""A search goes on from its checkpoint, or in several processes, and finds the same traces, each once."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.explorer import (
    BadCheckpoint,
    Dpor,
    ExplorerError,
    Misuse,
    Random,
    World,
    explore,
)
from seriatim_models.explorer.model.execution import Execution, Space
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.model.program import Limits, Program, Setting
from seriatim_models.explorer.search import frontier, parallel
from seriatim_models.explorer.search.dpor import DporSearch
from seriatim_models.explorer.search.frontier import add_counts
from seriatim_models.explorer.search.parallel import (
    EXECUTIONS_BETWEEN_LOOKS,
    EXECUTIONS_PER_TASK,
    Coordinator,
    WorkerPool,
    answer,
    run_batch,
    search_below,
)
from seriatim_models.explorer.search.runner import Runner
from seriatim_workshop import fuzz_formats
from seriatim_workshop.crosscheck.generated_programs import generate
from seriatim_workshop.fuzz import VALUES
from seriatim_workshop.litmus import MISTAKES, lastzero, peterson, racy_counter


def test_a_search_goes_on_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    most = 0
    while True:
        most += 70
        result = explore(racy_counter(4), max_executions=most, checkpoint=file)
        if result.exhausted:
            break
        assert result.verdict == "inconclusive"
        assert result.complete == most
    whole = explore(racy_counter(4))
    assert (result.complete, result.traces, result.redundant, result.blocked) == (576, 576, 0, 0)
    assert result.outcomes == whole.outcomes
    assert not file.exists()


def test_rejects_the_checkpoint_of_another_program(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    explore(racy_counter(4), max_executions=5, checkpoint=file)
    with pytest.raises(BadCheckpoint, match="another program"):
        explore(lastzero(4), checkpoint=file)


def test_rejects_what_is_no_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.write_text("{}")
    with pytest.raises(BadCheckpoint, match="not a checkpoint"):
        explore(lastzero(4), checkpoint=file)


def test_a_forged_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    """One whose checksum fits, and that is of no search: it was a KeyError, a TypeError and the like."""
    file = tmp_path / "checkpoint"
    explore(racy_counter(4), max_executions=5, checkpoint=file)
    honest = file.read_bytes().partition(b"\n")[2]
    said = []
    for number in range(300):
        choose = random.Random(number)
        tree = [json.loads(honest)]
        fuzz_formats.changed(choose, tree, VALUES)
        body = json.dumps(tree[0] if tree else None).encode()
        file.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        runner = Runner(racy_counter(4), Setting(), Limits())
        try:
            frontier.load(file, runner, json.loads(honest)["program"])
        except BadCheckpoint as error:
            said.append(str(error))
    assert len(said) > 100
    assert all(each.startswith(str(file)) for each in said)


def test_no_damaged_byte_of_a_checkpoint_is_overlooked(tmp_path: Path) -> None:
    """A digit of a count or of a path, changed, once led to a search that left out schedules."""
    file = tmp_path / "checkpoint"
    explore(racy_counter(4), max_executions=5, checkpoint=file)
    sound = file.read_bytes()
    for at in range(0, len(sound), max(len(sound) // 60, 1)):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        with pytest.raises(BadCheckpoint, match="damaged"):
            explore(racy_counter(4), checkpoint=file)
        file.write_bytes(sound[:at])
        with pytest.raises(BadCheckpoint, match="damaged"):
            explore(racy_counter(4), checkpoint=file)
    file.write_bytes(sound)
    assert explore(racy_counter(4), checkpoint=file).traces == 576


def test_rejects_a_checkpoint_for_a_walk(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"Dpor\(\)"):
        explore(lastzero(4), Random(), checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize(("program", "traces"), [(racy_counter(4), 576), (peterson(2), 2420)])
def test_processes_share_a_search_without_redundancy(program: Program, traces: int) -> None:
    result = explore(program, Dpor(), jobs=2)
    assert result.verdict == "ok"
    assert (result.complete, result.traces) == (traces, traces)
    assert (result.blocked, result.redundant) == (0, 0)


class Sum:
    """Adds up what the readers and writers of `peterson` returned."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, world: World) -> None:
        if not world.is_replay:
            self.seen[world.end] += 1
            self.seen["steps"] += world.steps

    def empty(self) -> Sum:
        return Sum()

    def counts(self) -> dict[str, int]:
        return dict(self.seen)

    def add(self, counts: dict[str, int]) -> None:
        self.seen.update(counts)


def test_processes_add_up_what_they_observed() -> None:
    alone, together = Sum(), Sum()
    one = explore(peterson(2), on_execution=alone)
    two = explore(peterson(2), on_execution=together, jobs=3)
    assert one.split is None
    assert two.split is not None
    assert two.split.parts > 3
    assert together.seen == alone.seen
    assert alone.seen["finished"] == 2420


def test_a_later_process_adds_up_what_an_earlier_one_observed(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    explore(peterson(2), on_execution=Sum(), max_executions=900, checkpoint=file)
    later = Sum()
    explore(peterson(2), on_execution=later, checkpoint=file)
    assert later.seen["finished"] == 2420


@pytest.mark.parametrize("most", [50, 700])
def test_processes_keep_to_a_budget_of_executions(most: int) -> None:
    result = explore(peterson(2), max_executions=most, jobs=3)
    assert result.complete == most
    assert result.verdict == "inconclusive"
    assert f"max_executions={most}" in result.why


def test_a_budget_that_is_promised_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again and again for an answer while there is nothing that may be done meanwhile."""
    looks = []
    receive = WorkerPool.receive

    def counted(pool: WorkerPool, within: float) -> Any:
        looks.append(within)
        return receive(pool, within)

    monkeypatch.setattr(WorkerPool, "receive", counted)
    result = explore(racy_counter(5), max_executions=3000, jobs=2)
    assert result.complete == 3000
    assert result.split is not None
    assert 0 < len(looks) < 3000 / EXECUTIONS_BETWEEN_LOOKS + 2 * result.split.parts


@pytest.mark.parametrize(
    ("alone", "executions"), [(0.0, EXECUTIONS_BETWEEN_LOOKS), (1e9, EXECUTIONS_PER_TASK)]
)
def test_a_search_of_slow_executions_is_shared_early(
    monkeypatch: pytest.MonkeyPatch, alone: float, executions: int
) -> None:
    monkeypatch.setattr(parallel, "ALONE", alone)
    search = DporSearch(Runner(racy_counter(4), Setting(), Limits()))
    assert not parallel.run_alone(search)
    assert search.runner.complete == executions


def test_an_error_in_a_process_is_raised_here() -> None:
    here = os.getpid()

    def observe(world: World) -> None:
        if os.getpid() != here:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        explore(peterson(2), on_execution=observe, jobs=2)


def test_a_process_that_is_killed_is_an_error_that_says_so() -> None:
    here = os.getpid()

    def observe(world: World) -> None:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ExplorerError, match="was it killed"):
        explore(peterson(2), on_execution=observe, jobs=2)


def test_processes_find_a_mistake() -> None:
    result = explore(MISTAKES["aba"][0], jobs=2)
    assert result.verdict == "violated"


@pytest.mark.slow
@pytest.mark.parametrize("executions", [1, 3])
def test_however_it_is_split_the_traces_are_the_same(executions: int) -> None:
    for number in range(7000, 7150):
        program = generate(number)
        setting = Setting(program.real_time, program.timeouts, program.spurious, stuck_ok=True)
        whole = Runner(program, setting, Limits(keep_going=True))
        if not run_batch(DporSearch(whole), 200):
            continue
        split = Runner(program, setting, Limits(keep_going=True))
        search = DporSearch(split)
        if run_batch(search, 1):
            continue
        coordinator = Coordinator(split)
        coordinator.receive(answer(search, over=False), [coordinator.root])
        while coordinator.tasks:
            trail = coordinator.tasks.popleft()
            part = search_below(coordinator.task(trail), split)
            said = answer(part, run_batch(part, executions))
            add_counts(split, said["counts"])
            coordinator.receive(said, trail)
        assert split.seen is not None
        assert whole.seen is not None
        assert split.seen.kept == whole.seen.kept, program
        assert split.outcomes == whole.outcomes, program
        assert (split.redundant, split.blocked) == (0, 0), program


@pytest.mark.slow
def test_an_exploration_that_is_over_leaves_nothing_behind() -> None:
    def living() -> list[Execution | Thread | Space]:
        gc.collect()
        return [o for o in gc.get_objects() if isinstance(o, Execution | Thread | Space)]

    before = living()  # held, so that what other tests left neither goes now nor lends its identity
    known = set(map(id, before))
    for program in (racy_counter(3), MISTAKES["crossed_locks"][0]):
        explore(program)
    assert [o for o in living() if id(o) not in known] == []


KILLED = """
import itertools, os, signal, sys
import seriatim_models.explorer.search.explore as search
from seriatim_models.explorer import explore
from seriatim_workshop.litmus import racy_counter
search.SAVE_EVERY = 0.0
executions = itertools.count(1)

def die(world):
    if next(executions) == 100:
        os.kill(os.getpid(), signal.SIGKILL)

explore(racy_counter(4), checkpoint=sys.argv[1], on_execution=die)
"""


@pytest.mark.timeout(120)
def test_a_search_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    done = subprocess.run([sys.executable, "-c", KILLED, str(file)], timeout=100)
    assert done.returncode == -signal.SIGKILL
    begun = json.loads(file.read_bytes().partition(b"\n")[2])["counts"]["complete"]
    assert 0 < begun <= 100
    result = explore(racy_counter(4), checkpoint=file)
    assert (result.complete, result.traces, result.redundant) == (576, 576, 0)
