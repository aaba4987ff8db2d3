"""Small scripts of every shape, and what pairs of commands were seen."""

from __future__ import annotations

import pytest

from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.judging import judged
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.search import SearchBounds, search
from seriatim_models.conformance.shapes import PairCoverage, small_scripts
from seriatim_models.properties.base import Verdict
from seriatim_workshop.planted import mistakes
from seriatim_workshop.planted.queue import PlantedQueue

CAN = frozenset(PlantedQueue.can)


def test_the_shortest_come_first_and_none_twice() -> None:
    scripts = small_scripts(CAN - {"message-priority", "groups", "held-groups", "priority", "qos"})
    assert [len(s) for s in scripts] == sorted(len(s) for s in scripts)
    assert len({tuple(s) for s in scripts}) == len(scripts)
    more = small_scripts(CAN - {"priority", "qos", "groups", "held-groups"})
    assert len({tuple(s) for s in more}) == len(more)
    marked = [s for s in more if any(step.prio is not None for step in s)]
    assert [len(s) for s in marked] == sorted(len(s) for s in marked)
    assert more[1:60:2] == marked[:30]  # by turns
    every = small_scripts(CAN)
    assert len({tuple(s) for s in every}) == len(every)


@pytest.mark.parametrize(
    "mistake",
    [
        "high-blocks-low",
        "one-of-each-priority",
        "multiple-of-one-consumer",
        "multiple-frees-one",
        "group-freed-in-silence",
    ],
)
def test_what_two_consumers_show_is_found_in_the_first_scripts(mistake: str) -> None:
    system = Local(getattr(mistakes, mistake))
    runs = (drive(system, script) for script in small_scripts(CAN)[:200])
    found = (judged(run, PROFILES["any"].properties) for run in runs)
    assert any(f.verdict is Verdict.VIOLATED for findings in found for f in findings)
    system.end()


def test_every_form_of_a_settlement_is_among_them() -> None:
    seen = {
        (s.op, s.multiple, s.every, s.requeue)
        for script in small_scripts(CAN)
        for s in script
        if s.op in ("ack", "nack", "reject")
    }
    every = [(False, False), (True, False), (True, True)]
    assert seen == {
        *(("ack", *form, True) for form in every),
        *(("nack", *form, requeue) for form in every for requeue in (True, False)),
        *(("reject", False, False, requeue) for requeue in (True, False)),
    }


def test_only_what_an_implementation_can_do_is_asked() -> None:
    for can in ({"publish", "get", "autoack"}, {"publish", "consume", "ack", "autoack"}):
        asked = {step.op for script in small_scripts(frozenset(can)) for step in script}
        assert asked <= can


def test_no_command_of_a_small_script_is_left_out_by_the_right_queue() -> None:
    system = Local(mistakes.right)
    small = small_scripts(CAN)[:120]
    done = [drive(system, script) for script in small]
    system.end()
    assert [len(run.steps) for run in done] == [len(script) for script in small]


def test_a_nack_of_all_that_puts_nothing_back_is_found_in_the_first_scripts() -> None:
    """As Broker-J has it, F-93."""

    class PutsNothingBack(PlantedQueue):
        can = tuple(
            set(PlantedQueue.can) - {"message-priority", "groups", "held-groups", "priority"}
        )  # as a broker of AMQP

        def nack(self, ch: int, dtag: int, multiple: bool = False, requeue: bool = True) -> None:
            super().nack(ch, dtag, multiple, requeue and dtag != 0)

    bounds = SearchBounds(seconds=30.0, scripts=25, first=True)
    outcome = search(Local(PutsNothingBack), PROFILES["any"], bounds, seed=1)
    assert {w.property for w in outcome.witnesses} == {"P1"}
    assert [s.op for s in outcome.witnesses[0].run.steps] == ["publish", "get", "nack"]
    assert Verdict.VIOLATED in {f.verdict for f in outcome.findings}


def test_pairs_that_were_seen_bring_nothing_more() -> None:
    covered = PairCoverage()
    nack = [ScriptStep(op="get", q="q"), ScriptStep(op="nack", which=3)]
    assert covered.brings(nack) > 0
    covered.add(nack)
    assert covered.brings(nack) == 0
    assert covered.brings([nack[0], ScriptStep(op="nack", multiple=True)]) > 0


def test_what_comes_back_is_announced_to_somebody_who_is_ready() -> None:
    """A close, a nack or a recover that wakes nobody is found in the first scripts."""

    class WakesNobody(PlantedQueue):
        def close(self, ch: int) -> None:
            self.quiet = True
            super().close(ch)
            self.quiet = False

        def _wake(self) -> None:
            if not getattr(self, "quiet", False):
                super()._wake()

    bounds = SearchBounds(seconds=60.0, scripts=250, first=True)
    outcome = search(Local(WakesNobody), PROFILES["any"], bounds, seed=1)
    assert {w.property for w in outcome.witnesses} == {"P14"}
