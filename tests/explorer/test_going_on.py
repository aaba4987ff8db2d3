"""A search goes on from its checkpoint, or in several processes, and finds the same traces, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.explorer import BadCheckpoint, Dpor, Misuse, Random, explore
from seriatim_models.explorer.dpor import Search
from seriatim_models.explorer.frontier import add_counts
from seriatim_models.explorer.generated import generate
from seriatim_models.explorer.litmus import MISTAKES, lastzero, peterson, racy_counter
from seriatim_models.explorer.parallel import Master, answer, below, run_portion
from seriatim_models.explorer.runner import Limits, Program, Runner, Setting


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


def test_rejects_a_checkpoint_for_a_walk(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"Dpor\(\)"):
        explore(lastzero(4), Random(), checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize(("program", "traces"), [(racy_counter(4), 576), (peterson(2), 2420)])
def test_processes_share_a_search_without_redundancy(program: Program, traces: int) -> None:
    result = explore(program, Dpor(), jobs=2)
    assert result.verdict == "ok"
    assert (result.complete, result.traces) == (traces, traces)
    assert (result.blocked, result.redundant) == (0, 0)


def test_processes_find_a_mistake() -> None:
    result = explore(MISTAKES["aba"][0], jobs=2)
    assert result.verdict == "violated"


@pytest.mark.parametrize("portion", [1, 3])
def test_however_it_is_split_the_traces_are_the_same(portion: int) -> None:
    for number in range(7000, 7150):
        program = generate(number)
        setting = Setting(program.real_time, program.timeouts, program.spurious, stuck_ok=True)
        whole = Runner(program, setting, Limits(keep_going=True))
        if not run_portion(Search(whole), 200):
            continue
        split = Runner(program, setting, Limits(keep_going=True))
        search = Search(split)
        if run_portion(search, 1):
            continue
        master = Master(split)
        master.take(answer(search, over=False), [master.root])
        while master.tasks:
            trail = master.tasks.popleft()
            part = below(master.task(trail), split)
            said = answer(part, run_portion(part, portion))
            add_counts(split, said["counts"])
            master.take(said, trail)
        assert split.seen is not None
        assert whole.seen is not None
        assert split.seen.kept == whole.seen.kept, program
        assert split.outcomes == whole.outcomes, program
        assert (split.redundant, split.blocked) == (0, 0), program
