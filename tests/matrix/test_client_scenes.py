"""The client and its work pool in the matrix: own threads go on while somebody waits, wrong references are seen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest

from seriatim.host import Host
from seriatim_models.explorer import World, explore
from seriatim_models.machines.single_threaded_host import SingleThreadedHost, WouldWait
from seriatim_models.matrix.cells import CallPair, PairResult, run_pair
from seriatim_models.matrix.client_scenes import (
    CLIENT_SYSTEM,
    LATE,
    NEVER_SENT,
    NOT_ANSWERED,
    POOL_SYSTEM,
    TOO_LATE,
    UNTIL_THE_CHANNELS_END,
    ClientUniverse,
    PoolUniverse,
)
from seriatim_models.matrix.own_threads import HostOfWaiters, OwnThreads
from seriatim_models.matrix.plan import plan_universe
from seriatim_models.matrix.scene import Invocation, Unsettled
from seriatim_models.matrix.states import explore_states, recorded_scene
from seriatim_models.matrix.work import PairData, universe_of
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.base import Mutants
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.matrix_mutants import first_problem

LIB = load("client")


def client(key: str, mutant: str = "") -> PairResult:
    lib = load("client", MUTANTS[mutant] if mutant else None)
    right = LIB if mutant else None
    pair = PairData.read(key, CLIENT_SYSTEM).pair(CLIENT_SYSTEM)
    return run_pair(CLIENT_SYSTEM, lib, pair, right=right)


def pool(key: str) -> PairResult:
    return run_pair(POOL_SYSTEM, LIB, PairData.read(key, POOL_SYSTEM).pair(POOL_SYSTEM))


# ---- own threads


def reading(host: Host, take: Callable[[], None]) -> Callable[[], None]:
    """A reader that is brought one permit, and what waits until it has taken it."""
    arrived = host.semaphore(1, "arrived")
    lock = host.lock("lock")
    taken = host.condition(lock, "taken")
    got: list[bool] = []

    def reader() -> None:
        while True:
            arrived.acquire()
            with lock:
                take()
                got.append(True)
                taken.notify_all()

    own = host.own  # type: ignore[attr-defined]  # it is a HostOfWaiters
    own.threads["reader"] = reader

    def wait() -> None:
        with lock:
            while not got:
                taken.wait()

    return wait


def nothing() -> None:
    """Do nothing."""


def test_who_waits_on_one_thread_lets_the_reader_go_on() -> None:
    host = HostOfWaiters(SingleThreadedHost(), OwnThreads(lambda: True))
    reading(host, nothing)()
    assert host.own.taken == 1
    assert not host.own.go_on(), "nothing more arrives"


def test_who_waits_for_nothing_is_told_so() -> None:
    host = HostOfWaiters(SingleThreadedHost(), OwnThreads(lambda: True))
    lock = host.lock()
    with lock, pytest.raises(WouldWait):
        host.condition(lock).wait()
    with lock, pytest.raises(WouldWait, match="lock"):
        lock.acquire()
    with lock:
        assert not host.condition(lock).wait(1), "its time is over"


def test_a_thread_that_never_comes_to_an_end_is_told_of() -> None:
    host = HostOfWaiters(SingleThreadedHost(), OwnThreads(lambda: True))
    again = host.semaphore(1)

    def endless() -> None:
        while True:
            again.acquire()
            again.release()

    host.own.threads["endless"] = endless
    with pytest.raises(Unsettled, match="more to do"):
        host.own.go_on()


def test_a_thread_that_has_ended_does_not_begin_again() -> None:
    own = OwnThreads(lambda: True)
    ran: list[int] = []
    own.threads["once"] = lambda: ran.append(1)
    assert not own.go_on()
    assert not own.go_on()
    assert ran == [1]


def test_threads_that_run_wait_as_threads_do() -> None:
    """In an execution of the explorer the set-up lets the reader go on, and later the reader is a thread."""

    def program(world: World) -> None:
        before = HostOfWaiters(world, OwnThreads(lambda: world.alone))
        reading(before, nothing)()
        assert before.own.taken == 1
        beside = HostOfWaiters(world, OwnThreads(lambda: world.alone))
        wait = reading(beside, nothing)
        world.spawn(wait, name="waiter")
        world.spawn(beside.own.threads["reader"], name="reader", daemon=True)
        world.at_end(lambda: "the waiter took it" if beside.own.taken else None)

    result = explore(program)
    assert result.verdict == "ok", result
    assert result.executions > 1


# ---- the work pool


def test_work_is_run_while_who_adds_waits_for_room() -> None:
    scene, _ = recorded_scene(POOL_SYSTEM, universe_of(POOL_SYSTEM, "full"), LIB)
    assert scene.outcome()["ran"] == {}
    assert scene.make(Invocation("add", ("a",))) == "True"
    assert scene.outcome()["ran"] == {"a": ["a:n1"]}
    scene.settle()
    assert scene.outcome()["ran"] == {"a": ["a:n1", "a:n2"]}


def test_labels_of_work_are_no_part_of_a_state() -> None:
    texts = []
    scene, _ = recorded_scene(POOL_SYSTEM, universe_of(POOL_SYSTEM, "channel"), LIB)
    scene.make(Invocation("register", ("a",)))
    for _ in range(2):
        scene.make(Invocation("add", ("a",)))
        texts.append(scene.state())
        scene.settle()
    assert texts[0] == texts[1]
    assert texts[0] != scene.state()


def test_where_calls_wait_they_race_beside_the_workers_only() -> None:
    modes = {p.mode for p in plan_universe("full", "pool", 1).programs}
    assert modes == {"serve"}
    assert {p.mode for p in plan_universe("channel", "pool", 1).programs} == {"settle", "serve"}


@pytest.mark.parametrize("universe", POOL_SYSTEM.universes, ids=lambda u: u.name)
def test_every_single_call_on_the_pool_is_right(universe: PoolUniverse) -> None:
    found = explore_states(POOL_SYSTEM, universe, LIB, 2)
    assert not [
        (str(e.state), str(e.offer.invocation), e.problem) for e in found.edges if e.problem
    ]


def test_a_channel_may_be_registered_anew_while_its_callback_runs() -> None:
    """The runnable then finished a block that it had begun, and was refused: its thread ended."""
    result = pool("serve channel: register a, add a; register a | unregister a")
    assert result.exhausted
    assert not result.problem


def test_what_was_left_when_a_channel_ended_may_have_run() -> None:
    result = pool("serve full: ; add a | interrupt")
    assert not result.problem
    assert len(result.excused) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    [
        "published-interrupted-put",
        "published-limits-stay-lifted",
        "published-rejected-runnable",
        "published-callback-raises",
        "put-inside-the-lock",
        "finished-is-dormant",
        "unregistered-is-not-in-progress",
    ],
)
def test_the_pools_matrix_judges_mutants(mutant: str) -> None:
    lib = load("client", MUTANTS[mutant])
    assert first_problem("pool", lib, depth=1, max_executions=100), f"{mutant} survives"


# ---- the client


def made(universe: str, *calls: str) -> list[str]:
    """What each of some calls, one after the other on one thread, returned."""
    scene, _ = recorded_scene(CLIENT_SYSTEM, universe_of(CLIENT_SYSTEM, universe), LIB)
    return [scene.make(Invocation.read(c)) for c in calls]


def test_a_call_waits_for_its_reply_on_one_thread() -> None:
    get = "get c.1 q False None"
    assert made("calls", get, get, "publish c.1 q", get) == [
        "m1 1", "", "", "c.1>q#1 2"
    ]  # fmt: skip


def test_a_connection_that_closes_waits_for_its_end() -> None:
    close = "close_connection c"
    assert made("ends", close, close, "get c.2 q False None") == ["", "", "refused 200"]


def test_the_servers_refusal_is_its_answer() -> None:
    there_is_none = "get c.1 none False None"
    assert made("refused", there_is_none, there_is_none, "close c.1") == [
        "refused 404", "refused 404", ""
    ]  # fmt: skip


def test_who_is_not_answered_learns_of_the_end_by_the_next_call() -> None:
    assert made("refused", "ack c.1 1 False", "close c.1", "ack c.1 1 False") == [
        "", "", "refused 406"
    ]  # fmt: skip


@pytest.mark.parametrize("universe", CLIENT_SYSTEM.universes, ids=lambda u: u.name)
def test_every_single_call_on_the_client_is_right(universe: ClientUniverse) -> None:
    found = explore_states(CLIENT_SYSTEM, universe, LIB, 1)
    assert not [
        (str(e.state), str(e.offer.invocation), e.problem) for e in found.edges if e.problem
    ]
    offered = {str(e.offer.invocation) for e in found.edges}
    assert offered == set(universe.calls), "what a universe names can be called in it"


@pytest.mark.parametrize(
    ("key", "excused"),
    [
        ("serve calls: ; get c.1 q False None | close c.1", ()),
        ("serve calls: ; get c.1 q False None | get c.1 q False None", ()),
        ("serve exclusive: ; consume c.1 q t exclusive | consume d.1 q u -", ()),
        ("serve calls: ; publish c.1 q | close c.1", (NOT_ANSWERED.why,)),
        ("serve refused: ; ack c.1 1 False | ack c.1 1 False", (NOT_ANSWERED.why,)),
        (
            "serve impatient: ; get c.1 q False 1 | qos c.1 1 True",
            tuple(sorted((NEVER_SENT.why, TOO_LATE.why))),
        ),
    ],
)
def test_pairs_of_the_client_are_right(key: str, excused: tuple[str, ...]) -> None:
    result = client(key)
    assert (result.problem, result.excused, result.exhausted) == ("", excused, True)


def test_letting_pass_hides_nothing_of_what_is_open() -> None:
    open_ = {"c.1": {"closed": 0, "got": ["m1"], "holds": []}, "q": [], "returned": {}}
    closed = {**open_, "c.1": {"closed": 200, "got": ["m1"], "holds": []}}
    for outcome, hidden in ((open_, False), (closed, True)):
        other = {**outcome, "c.1": {**outcome["c.1"], "got": []}}  # type: ignore[dict-item]
        compared = UNTIL_THE_CHANNELS_END.compared
        assert (compared(outcome) == compared(other)) is hidden
        assert compared(outcome) != compared({**outcome, "q": ["m1"]})


def test_a_call_with_a_limit_is_compared_unless_it_was_late() -> None:
    impatient = Invocation.read("get c.1 q False 1")
    patient = Invocation.read("get c.1 q False None")
    late = {"returned": {str(impatient): LATE, str(patient): "m1 1"}}
    answered = {"returned": {str(impatient): "m2 2", str(patient): "m1 1"}}
    assert NEVER_SENT.compared(late) == {"returned": {str(patient): "m1 1"}}
    assert NEVER_SENT.compared(answered) == answered
    universe = universe_of(CLIENT_SYSTEM, "impatient")
    for exception in (TOO_LATE, NEVER_SENT):
        assert not list(exception.instead(universe, (patient, patient)))
    [(there, _)] = TOO_LATE.instead(universe, (impatient, patient))
    scene, _ = recorded_scene(CLIENT_SYSTEM, there, LIB)
    assert [scene.make(impatient), scene.make(patient)] == [LATE, "m2 2"], "it was made there"


def test_pairs_of_the_client_race_beside_its_threads_only() -> None:
    modes = {p.mode for u in ("calls", "misuse") for p in plan_universe(u, "client", 1).programs}
    assert modes == {"serve"}


@pytest.mark.parametrize(
    ("mutant", "key", "what"),
    [
        ("no-turn", "serve calls: ; get c.1 q False None | qos c.1 1 True", "RPC-1"),
        ("exclusive-came-first", "serve exclusive: ; consume c.1 q t exclusive | consume d.1 q u -", "EX-1"),
        ("published-late-reply", "serve impatient: ; get c.1 q False 1 | qos c.1 1 True", "RPC-1"),
        (
            "published-timeout-clears-anothers-call",
            "serve impatient: ; get c.1 q False None | get c.1 q False 1", "RPC-1",
        ),
        ("close-keeps-deliveries", "serve ends: ; close c.1 | shutdown", "QS-2"),
    ],
)  # fmt: skip
def test_a_wrong_client_is_seen_in_a_pair(mutant: str, key: str, what: str) -> None:
    assert client(key, mutant).problem.startswith(what)


def test_two_who_open_channels_at_once_are_seen_without_the_lock() -> None:
    mutants = Mutants("client")
    mutants.add(
        id="lock-given-up",
        killed_by="",
        program="",
        steps=0,
        origin="an example",
        title="the lock is given up between the number and the channel, so two channels have one number",
        edit=(
            "            channel = Channel(self, number)\n",
            "            self._lock.release()\n            self._lock.acquire()\n"
            "            channel = Channel(self, number)\n",
        ),
    )
    pair = PairData.read("serve opening: ; open_channel d | open_channel d", CLIENT_SYSTEM)
    wrong = load("client", mutants["lock-given-up"])
    result = run_pair(CLIENT_SYSTEM, wrong, pair.pair(CLIENT_SYSTEM), right=LIB)
    assert result.problem.startswith("outcome: ")


def test_a_publish_that_is_lost_on_an_open_channel_is_not_let_pass() -> None:
    mutants = Mutants("client")
    mutants.add(
        id="lost-beside-a-call",
        killed_by="",
        program="",
        steps=0,
        origin="an example",
        title="a publish is lost while its channel waits for a reply",
        edit=(
            "        self._send(lambda c: self.server.publish(c, exchange, key, message))\n",
            "        with self._lock:\n            if self._active is not None:\n                return\n"
            "        self._send(lambda c: self.server.publish(c, exchange, key, message))\n",
        ),
    )
    pair = PairData.read("serve calls: ; publish c.1 q | qos c.1 1 True", CLIENT_SYSTEM)
    wrong = load("client", mutants["lost-beside-a-call"])
    result = run_pair(CLIENT_SYSTEM, wrong, pair.pair(CLIENT_SYSTEM), right=LIB)
    assert result.problem.startswith("outcome: ")


SETTLING = (
    "publish c.1 x",
    "ack c.1 1 True",
    "ack c.1 0 True",
    "reject c.1 1 False",
    "nack c.1 1 True True",
)


@pytest.mark.parametrize("given", [(), ("consume c.1 q t -",)], ids=["nothing", "delivered"])
@pytest.mark.parametrize("calls", list(combinations(SETTLING, 3)), ids=" | ".join)
def test_several_that_are_sent_while_a_channel_closes_may_be_ignored(
    calls: tuple[str, ...], given: tuple[str, ...]
) -> None:
    universe = ClientUniverse("three", "", given, True, calls=calls)
    at_once = tuple(map(Invocation.read, calls))
    program = CallPair(universe, (), at_once, ("",) * len(calls), "serve")
    assert not run_pair(CLIENT_SYSTEM, LIB, program, 200).problem
