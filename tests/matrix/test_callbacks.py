"""Calls from inside a delivery: which a callback may make is declared once, and each is run beside others."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from seriatim_models.machines.calls import ApiCall, CallStanding, callable_inside, calls_of
from seriatim_models.machines.queue.calls import PUSH, PushHarness
from seriatim_models.matrix.callbacks import CallInside
from seriatim_models.matrix.cells import CallPair, run_pair
from seriatim_models.matrix.log_scenes import LOG_SYSTEM, REPLAYED_TWICE
from seriatim_models.matrix.plan import plan_universe
from seriatim_models.matrix.queue_scenes import PUSH_SYSTEM, PushMatrixScene, QueueUniverse
from seriatim_models.matrix.scene import Invocation, MatrixSystem, Offer, Unsettled
from seriatim_models.matrix.states import edge_problem, explore_path, recorded_scene
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.work import PairData, call_names, universe_of
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load, source
from seriatim_workshop.mutation.exhaustive import modules_with

WITH_CALLBACKS = ("pull", "push", "client", "log", "fair")
DELIVERS = {
    "pull": "enqueue m1",
    "push": "enqueue m1",
    "log": "consume_one a",
    "fair": "deliver p0 1",
}
"""The call that brings a callback its first delivery, where the universe does not give it."""


@pytest.mark.parametrize("name", WITH_CALLBACKS)
def test_each_call_that_a_callback_may_make_is_made_in_a_universe(name: str) -> None:
    system = SYSTEMS[name]
    made = {u.callback for u in system.universes if u.callback}
    assert made == set(callable_inside(system.table))
    assert made


@pytest.mark.parametrize("name", WITH_CALLBACKS)
def test_in_each_such_universe_the_call_is_made_and_comes_to_its_end(name: str) -> None:
    system = SYSTEMS[name]
    for universe in system.universes:
        if universe.callback:
            scene, _ = recorded_scene(system, universe, load(system.reference))
            if name in DELIVERS:
                scene.make(Invocation.read(DELIVERS[name]))
            scene.settle()
            assert scene.outcome()["called"], universe.name


def test_a_call_of_a_callback_has_cells_of_its_own_beside_others() -> None:
    planned = plan_universe("inside-ack", "client", 0).programs
    assert ("ack inside", "close") in {p.cell for p in planned}
    assert "ack inside" in call_names(SYSTEMS["client"])
    read = PairData.read("serve inside-ack: ; close c.1", SYSTEMS["client"])
    assert read.cell == ("ack inside", "close"), "one that is read names the same cell"


def test_of_universes_that_differ_in_what_callbacks_call_no_program_is_left_out() -> None:
    paused, released = (universe_of(PUSH_SYSTEM, f"inside-{call}") for call in ("pause", "release"))
    calls = [Invocation("enqueue", ("m1",))]
    assert PUSH_SYSTEM.signature(paused, calls) != PUSH_SYSTEM.signature(released, calls)


# ---- what must not be called there


class WithCallbacks(PushMatrixScene):
    """A queue that pushes, whose callbacks call what they must not."""

    table = calls_of(PushHarness)


FORBIDDEN = replace(PUSH_SYSTEM, empty=WithCallbacks, table=WithCallbacks.table)


@pytest.mark.parametrize(
    "call", sorted(set(callable_inside(FORBIDDEN.table)) - {*callable_inside(PUSH)})
)
def test_what_a_pushed_callback_must_not_call_is_declared_with_a_reason(call: str) -> None:
    assert call in ("enqueue", "close")
    assert PUSH[call].inside is None


@pytest.mark.parametrize("call", ["enqueue", "close"])
def test_a_pushed_callback_that_publishes_or_closes_waits_for_its_own_send_lock(call: str) -> None:
    given = ("subscribe A",)
    universe = QueueUniverse("forbidden", "must not be", callback=call, given=given)
    pair = CallPair(universe, (), (Invocation("enqueue", ("m1",)),), ("",))
    assert "A.send_lock" in run_pair(FORBIDDEN, load("queue"), pair).problem


# ---- wrong references are seen


def caught(system: MatrixSystem, key: str, lib: ModuleType) -> str:
    return run_pair(
        system, lib, PairData.read(key, system).pair(system), right=load(system.reference)
    ).problem


def test_a_callback_that_runs_on_the_reader_is_seen() -> None:
    lib = load("client", MUTANTS["callback-on-the-reader"])
    assert caught(SYSTEMS["client"], "serve inside-get: ; publish d.1 q", lib)


def test_a_job_that_is_delivered_under_the_send_lock_is_seen() -> None:
    lib = load("queue", MUTANTS["pushed-under-the-send-lock"])
    assert caught(PUSH_SYSTEM, "settle inside-release: ; enqueue m1 | pause A", lib)


def changed(file: str, old: str, new: str) -> ModuleType:
    assert source(file).count(old) == 1
    return modules_with(file, source(file).replace(old, new))


def test_a_delivery_that_is_weighed_under_the_lock_is_seen() -> None:
    lib = changed(
        "fair",
        "        weight = slot.weight(delivery)\n",
        "        with self._lock:\n            weight = slot.weight(delivery)\n",
    )
    assert caught(SYSTEMS["fair"], "settle inside-deliver: ; deliver p0 1 | stop", lib)


def test_a_call_alone_that_waits_for_its_own_lock_is_an_error_and_does_not_hang() -> None:
    of, right = SYSTEMS["fair"], load("fair")
    lib = changed(
        "fair",
        "        weight = slot.weight(delivery)\n",
        "        with self._lock:\n            weight = slot.weight(delivery)\n",
    )
    state = explore_path(of, universe_of(of, "inside-deliver"), right, ())
    [offer] = [o for o in state.offers if str(o.invocation) == "deliver p0 1"]
    assert edge_problem(of, state, offer, right, right) == ""
    assert edge_problem(of, state, offer, lib, right) == "error: WouldWait: for a lock"


def test_a_message_that_is_settled_under_the_lock_is_seen() -> None:
    lib = changed(
        "fair",
        "                self.settle(delivery, well)\n",
        "                with self._lock:\n                    self.settle(delivery, well)\n",
    )
    assert caught(SYSTEMS["fair"], "settle inside-deliver: deliver p0 1; serve_round | stop", lib)


def test_a_handler_of_the_log_that_is_called_under_a_lock_is_seen() -> None:
    lib = changed(
        "log",
        "            handler(delivery.message)\n",
        "            with self._lock:\n                handler(delivery.message)\n",
    )
    assert caught(SYSTEMS["log"], "settle inside-notify: ; consume_one a | publish_one good", lib)


def test_two_who_replay_at_once_are_let_pass_and_a_message_that_stays_is_not() -> None:
    """The exception leaves out how many messages each replay had, and nothing of what is parked."""
    key, right = "settle inside-replay: ; consume_one a | replay a False", load("log")
    result = run_pair(LOG_SYSTEM, right, PairData.read(key, LOG_SYSTEM).pair(LOG_SYSTEM))
    assert result.exhausted
    assert not result.problem
    assert result.excused == (REPLAYED_TWICE.why,)
    lib = changed(
        "log",
        '        self._note_parked(parked.place, None, b"")\n',
        "        if parked.place not in [p.place for p in self.parked()]:\n"
        '            self._note_parked(parked.place, None, b"")\n',
    )
    assert caught(LOG_SYSTEM, key, lib)


def test_a_call_that_does_what_its_class_forbids_is_told_of() -> None:
    """A call without effect that changes the state, one that is refused, and one that does not return."""
    state: list[int] = []

    def call(standing: CallStanding) -> ApiCall:
        return replace(PUSH["pause"], arguments={}, standing=lambda harness: standing)

    def inside(standing: CallStanding, result: str = "", changes: bool = False) -> CallInside:
        def run(who: str, arguments: object) -> str:
            state.extend([1] * changes)
            return result

        made = CallInside(call(standing), None, run, lambda: len(state))
        made.make("A", judged=True)
        return made

    inside(CallStanding.NO_OP).check_end()
    inside(CallStanding.IN_CONTRACT, changes=True).check_end()
    inside(CallStanding.REFUSED, "refused").check_end()
    with pytest.raises(Unsettled, match="changed the state"):
        inside(CallStanding.NO_OP, changes=True).check_end()
    with pytest.raises(Unsettled, match="must be refused"):
        inside(CallStanding.REFUSED).check_end()
    with pytest.raises(Unsettled, match="was refused"):
        inside(CallStanding.IN_CONTRACT, "refused").check_end()
    waiting = inside(CallStanding.IN_CONTRACT)
    waiting.returned["B"] = "unfinished"
    with pytest.raises(Unsettled, match="did not return in B"):
        waiting.check_end()


def test_an_offer_says_what_its_class_forbids() -> None:
    offer = Offer(Invocation("get"), CallStanding.IN_CONTRACT, answer="refused 404")
    assert not offer.problem("refused 404", unchanged=False)
    assert "due was refused 404" in offer.problem("", unchanged=False)
