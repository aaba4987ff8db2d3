"""A matrix as work: waves, the journal, and what counts as proved."""

from pathlib import Path

import pytest

from seriatim_models.matrix.cells import PairResult
from seriatim_models.matrix.plan import distinct, plan_universe
from seriatim_models.matrix.queue_scenes import PUSH_SYSTEM
from seriatim_models.matrix.totals import add_up
from seriatim_models.matrix.work import (
    Done,
    Journal,
    PairData,
    Waves,
    WrongJournal,
    perform_here,
    run_waves,
)
from seriatim_models.properties import Verdict

PLAN = plan_universe("two", "push", 1)


def result(executions: int, exhausted: bool = True, problem: str = "") -> PairResult:
    return PairResult(executions, exhausted, problem)


def test_a_key_names_its_program() -> None:
    for program in PLAN.programs:
        assert PairData.read(program.key, PUSH_SYSTEM) == program
    assert len({p.key for p in PLAN.programs}) == len(PLAN.programs)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("", "is no program"),
        ("settle nowhere: ; job | job", "is no program"),
        ("settle two: ; subscribe A | steal B", "has no call 'steal'"),
        ("settle two: ; subscribe A | close B", "close B cannot be made"),
        ("settle two: close A; subscribe A | enqueue m1", "close A cannot be made"),
    ],
)
def test_a_key_that_names_none_is_refused(key: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        PairData.read(key, PUSH_SYSTEM)


def test_what_was_capped_comes_again_with_a_larger_budget() -> None:
    waves = Waves("push", PLAN.programs, (2, 1000))
    assert run_waves(waves, perform_here)
    assert len(waves.results) == len(PLAN.programs)
    assert all(d.result.exhausted for d in waves.results.values())
    assert any(d.result.executions > 2 for d in waves.results.values())
    assert {c.verdict for c in add_up(PLAN.programs, waves.results.values())} == {Verdict.OK}


def test_capped_and_missing_are_never_ok() -> None:
    done = [Done(p, result(2, exhausted=False)) for p in PLAN.programs[:3]]
    cells = add_up(PLAN.programs, done)
    assert sum(c.capped for c in cells) == 3
    assert sum(c.missing for c in cells) == len(PLAN.programs) - 3
    assert Verdict.OK not in {c.verdict for c in cells}
    assert all(c.verdict is Verdict.INCONCLUSIVE for c in add_up(PLAN.programs, []))


def test_the_shortest_problem_of_a_cell_comes_first() -> None:
    done = [Done(p, result(1, problem="wrong")) for p in reversed(PLAN.programs)]
    for cell in add_up(PLAN.programs, done):
        lengths = [len(p.program.path) for p in cell.problems]
        assert cell.verdict is Verdict.VIOLATED
        assert lengths == sorted(lengths)


def test_programs_that_differ_in_names_only_are_run_once() -> None:
    two, alone = plan_universe("two", "push", 1), plan_universe("alone", "push", 1)
    together = list(distinct("push", [*alone.programs, *two.programs]))
    assert len(alone.programs) < len(together) < len(alone.programs) + len(two.programs)
    assert list(distinct("push", together)) == together
    other = plan_universe("selector", "push", 0).programs
    assert list(distinct("push", [*alone.programs, *other]))[len(alone.programs) :], (
        "a consumer with a selector is another consumer"
    )


def test_a_journal_goes_on_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    journal = Journal(path, "push", 1)
    assert journal.read() == []
    first, second, third = (Done(p, result(1)) for p in PLAN.programs[:3])
    journal.keep(first)
    journal.keep(second)
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    again = Journal(path, "push", 1)
    assert again.read() == [first]
    again.keep(third)
    again.close()
    assert Journal(path, "push", 1).read() == [first, third]


def test_another_journal_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, "push", 1)
    journal.keep(Done(PLAN.programs[0], result(1)))
    journal.close()
    kept = path.read_bytes()
    with pytest.raises(WrongJournal, match="depth 1 and not 2"):
        Journal(path, "push", 2).read()
    path.write_bytes(kept.replace(b'"code":"', b'"code":"x', 1))
    with pytest.raises(WrongJournal, match="other sources, which have changed since"):
        Journal(path, "push", 1).read()
    path.write_bytes(kept + b"{\n")
    with pytest.raises(WrongJournal, match="damaged"):
        Journal(path, "push", 1).read()
    path.write_bytes(b"hello\n")
    with pytest.raises(WrongJournal, match="not a journal"):
        Journal(path, "push", 1).read()
    assert path.read_bytes() == b"hello\n"
