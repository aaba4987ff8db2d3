"""What the properties of the queue go by: what clients asked for and got, who holds what, and which consumer it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import seriatim.queue as reference
from seriatim.host import Threads
from seriatim_models.explorer import Dpor, Pct, World, explore
from seriatim_models.history import Event
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.base import Programs
from seriatim_models.programs.check import check_program, history
from seriatim_models.programs.mutant_modules import load
from seriatim_models.programs.scene import PullScene, PushScene
from seriatim_models.properties import PROPERTIES, Verdict
from seriatim_models.properties.base import Finding, audit
from seriatim_models.recording.queue import recorded, snapshot
from seriatim_workshop.machines.threads import ThreadStage


class Client:
    """A client's end that does nothing."""

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Nothing."""

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Nothing."""


def found(events: list[Event], id: str) -> Finding:
    (finding,) = audit(events, [PROPERTIES[id]])
    return finding


def executions(scenario: Callable[[PullScene], None], samples: int = 0) -> list[list[Event]]:
    """The histories of all schedules of a scenario that differ, or of so many sampled ones."""
    kept: list[list[Event]] = []

    def keep(world: World) -> None:
        if not world.is_replay:
            kept.append(history(world))

    explore(
        lambda world: scenario(PullScene(world, reference)),
        Pct(depth=3, seed=1) if samples else Dpor(),
        max_executions=samples or None,
        on_execution=keep,
    )
    return kept


# ---- groups, wishes and credit: from the history, whatever the queue says of itself


@pytest.mark.parametrize(
    ("mutant", "field", "claim"),
    [
        ("group-leaked", "groups", {"g": "A"}),
        ("group-kept-after-dequeue", "groups", {"g": "A"}),
        ("granted-in-silence", "wants_work", False),
    ],
)
def test_the_queue_believes_what_the_mutant_makes_it_believe(
    mutant: str, field: str, claim: object
) -> None:
    """So a property that asks the snapshot finds nothing wrong, as WK-1 and SP-2 did not."""
    result = check_program(PROGRAMS[MUTANTS[mutant].program], MUTANTS[mutant])
    assert result.verdict is Verdict.VIOLATED
    seen: list[Any] = []
    for events in [_counterexample(mutant)]:
        (shot,) = (e for e in events if e.ev == "snapshot")
        of = shot.args if field in shot.args else shot.args["consumers"]["B"]
        seen.append(of[field])
    assert seen == [claim]


def _counterexample(mutant: str) -> list[Event]:
    kept: list[list[Event]] = []
    m = MUTANTS[mutant]

    def run(world: World) -> None:
        PROGRAMS[m.program].build(world, load("queue", m))

    def keep(world: World) -> str | None:
        events = history(world)
        if found(events, m.killed_by).verdict is Verdict.VIOLATED:
            kept.append(events)
            return "found"
        return None

    explore(run, on_execution=keep, shrink=0)
    return kept[0]


def test_a_paused_consumer_is_not_ready_and_one_that_was_granted_credit_is() -> None:
    def scenario(scene: PullScene) -> None:
        a = scene.subscribe("A", credit=0)
        scene.queue.grant(a, 2)
        scene.queue.set_notify_work_desired(a, False)
        scene.enqueue("m1")

    (events,) = executions(scenario)
    assert found(events, "WK-1").verdict is Verdict.INCONCLUSIVE

    def resumes(scene: PullScene) -> None:
        scenario(scene)
        (a,) = scene.queue.all.consumers()
        scene.queue.set_notify_work_desired(a, True)
        scene.drain(a)

    (events,) = executions(resumes)
    assert (found(events, "WK-1").verdict, found(events, "WK-1").n_tested) == (Verdict.OK, 1)


def test_a_consumer_that_used_up_its_credit_in_a_pull_wants_nothing_until_it_is_granted_more() -> (
    None
):
    def scenario(scene: PullScene) -> None:
        a = scene.subscribe("A", credit=1)
        scene.enqueue("m1", "m2")
        scene.drain(a)

    (events,) = executions(scenario)
    assert found(events, "WK-1").verdict is Verdict.INCONCLUSIVE
    assert found(events, "ES-6").verdict is Verdict.OK


# ---- WK-4: when one of higher priority need not be preferred


def test_a_consumer_that_is_about_to_register_need_not_be_preferred() -> None:
    """Its record is older than its membership of All; WK-4 went by the record, and reported the reference."""

    def scenario(scene: PullScene) -> None:
        low = scene.subscribe("low")
        scene.enqueue("m1")
        scene.spawn(lambda: scene.subscribe("high", priority=1), name="high")
        scene.spawn(lambda: scene.queue.deliver_single_message(low), name="low")

    verdicts = [found(events, "WK-4") for events in executions(scenario)]
    assert {f.verdict for f in verdicts} <= {Verdict.OK, Verdict.INCONCLUSIVE}
    overtaken = 0
    for events in executions(scenario):
        names = [e.ev if e.ev != "consumer" else f"{e.ev} {e.args['sub']}" for e in events]
        record = names.index("consumer high")
        linked = next(
            n
            for n, e in enumerate(events)
            if e.ev == "link" and e.args["node"].startswith("high@q.All")
        )
        looked = next(
            n for n, e in enumerate(events) if e.ev == "attempt" and e.args["sub"] == "low"
        )
        overtaken += record < looked < linked
    assert overtaken, "no schedule has the attempt between the record and the membership"


def test_a_message_that_expires_between_two_looks_need_not_go_to_the_higher_one() -> None:
    """Who looks for itself may want it, and see then that nobody else does; WK-4 reported the reference."""

    def scenario(scene: PullScene) -> None:
        scene.subscribe("high", priority=1)
        low = scene.subscribe("low")
        scene.enqueue("m1", expires=5)
        scene.spawn(lambda: scene.pass_time(10), name="clock")
        scene.spawn(lambda: scene.attempt(low), name="low")

    runs = list(executions(scenario))
    assert any(e.ev == "deliver" for events in runs for e in events), (
        "no schedule has the two looks"
    )
    assert {found(events, "WK-4").verdict for events in runs} == {Verdict.INCONCLUSIVE}


# ---- who it was: two consumers of one name


def two_of_one_name(mutant: str, group: str = "g") -> list[Event]:
    lib = load("queue", MUTANTS[mutant]) if mutant else reference
    stage = ThreadStage()
    queue = lib.PullQueue(recorded(stage.host), "q")
    first = queue.subscribe("A", Client())
    for id in ("g1", "g2"):
        queue.enqueue(lib.Message(id, group=group))
    queue.deliver_single_message(first)
    queue.close(first)
    second = queue.subscribe("A", Client())
    queue.deliver_single_message(second)
    queue.deliver_single_message(second)
    stage.record("snapshot", **snapshot(queue))
    return stage.history()


def test_the_next_consumer_of_a_name_is_another_one() -> None:
    """The queue knows no group, and the history one."""
    wrong = [
        msgspec.structs.replace(e, args={**e.args, "group": "g"}) if "group" in e.args else e
        for e in two_of_one_name("close-keeps-messages", group="")
    ]
    finding = found(wrong, "MG-1")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.explanation == "A took g2 while A held g1 of the same group g"


@pytest.mark.parametrize("id", ["MG-1", "SP-1", "ES-4", "ES-5", "QL-1", "SO-3", "WK-1"])
def test_the_next_consumer_of_a_name_may_do_what_it_does(id: str) -> None:
    """SP-1 held the new consumer's pointer against the old one's."""
    assert found(two_of_one_name(""), id).verdict is Verdict.OK


# ---- cases are what could have gone wrong


def test_two_enqueues_that_overlap_are_no_case_of_an_order() -> None:
    events = [
        Event(i=0, ev="queue", q="q", lvl="model", args={"levels": 1, "kind": "pull"}),
        *(
            Event(i=i, ev="enqueue", ph="invoke", q="q", m=m, proc=m, lvl="model")
            for i, m in ((1, "m1"), (2, "m2"))
        ),
        *(
            Event(
                i=i,
                ev="link",
                proc=m,
                lvl="model",
                args={"list": "q", "node": m, "place": [0, n], "at": "q"},
            )
            for i, m, n in ((3, "m2", 1), (4, "m1", 2))
        ),
        *(
            Event(i=i, ev="enqueue", ph="ok", m=m, proc=m, lvl="model", args={"place": [0, n]})
            for i, m, n in ((5, "m1", 2), (6, "m2", 1))
        ),
    ]
    finding = found(events, "SO-1")
    assert (finding.verdict, finding.n_tested) == (Verdict.INCONCLUSIVE, 0)


def test_a_taking_without_an_alternative_is_no_case_of_an_order() -> None:
    def scenario(scene: PullScene) -> None:
        a = scene.subscribe("A")
        scene.enqueue("m1")
        scene.drain(a)
        scene.enqueue("m2")
        scene.drain(a)

    (events,) = executions(scenario)
    assert found(events, "SO-3").verdict is Verdict.INCONCLUSIVE


# ---- browsers


def test_what_was_dequeued_while_a_browser_looked_may_be_shown() -> None:
    """The record of being shown it comes after the dequeue; the look came before."""
    seen: set[tuple[bool, bool]] = set()

    def scenario(scene: PullScene) -> None:
        a = scene.taker("A")
        browser = scene.subscribe("browser", acquires=False)
        scene.enqueue("m1")

        def take() -> None:
            if (entry := scene.attempt(a)) is not None:
                scene.queue.dequeue(entry, a)

        scene.spawn(take, name="A")
        scene.spawn(lambda: scene.queue.deliver_single_message(browser), name="browser")

    for events in executions(scenario, samples=400):
        at = {e.ev if e.ev != "entry_cas" else e.args["new"]: e.i for e in events}
        shown, gone = at.get("browse"), at.get("DEQUEUED")
        seen.add((shown is not None, shown is not None and gone is not None and gone < shown))
        for id in ("ES-3", "SO-4"):
            assert found(events, id).verdict is not Verdict.VIOLATED
    assert seen == {(True, False), (True, True), (False, False)}


def test_a_browser_is_not_shown_what_had_expired_or_is_delayed() -> None:
    programs = Programs("queue")

    @programs.scenarios(PullScene)("TM-1", traces=1)
    def browse_in_time(scene: PullScene) -> None:
        """A browser looks at messages with a time.

        Bounds: Sequential.
        """
        scene.clock_starts()
        scene.enqueue("late", expires=5)
        scene.enqueue("early", not_before=9)
        scene.enqueue("good", expires=8)
        scene.pass_time(6)
        browser = scene.subscribe("browser", acquires=False)
        scene.spawn(lambda: scene.drain(browser), name="browser")

    right = check_program(programs["browse-in-time"])
    assert (right.verdict, right.findings[0].n_tested) == (Verdict.OK, 1)
    wrong = check_program(programs["browse-in-time"], MUTANTS["expired-is-taken"])
    assert wrong.findings[0].verdict is Verdict.VIOLATED


# ---- IM-3: afterwards too


def push(world: World, mutant: str) -> PushScene:
    return PushScene(world, load("queue", MUTANTS[mutant]) if mutant else reference)


@pytest.mark.parametrize("immediate", [False, True])
@pytest.mark.parametrize(
    ("mutant", "due"), [("", Verdict.OK), ("given-back-without-a-job", Verdict.VIOLATED)]
)
def test_an_immediate_message_that_was_given_back_is_an_ordinary_one(
    mutant: str, due: Verdict, immediate: bool
) -> None:
    kept: set[Verdict] = set()

    def scenario(world: World) -> None:
        scene = push(world, mutant)
        a = scene.subscribe("A", credit=1)
        held = scene.enqueue("m1", immediate=immediate)
        scene.spawn(lambda: scene.queue.release(held, a), name="A")

    def keep(world: World) -> None:
        kept.add(found(history(world), "IM-3").verdict)

    explore(scenario, on_execution=keep)
    assert kept == {due}


@pytest.mark.parametrize(
    ("mutant", "due"),
    [("", Verdict.OK), ("group-kept-after-dequeue", Verdict.VIOLATED)],
)
def test_what_a_group_set_free_is_looked_for(mutant: str, due: Verdict) -> None:
    """A job that does not begin when the last message of a group is dequeued: the rest of the group lies there."""
    lib = load("queue", MUTANTS[mutant]) if mutant else reference
    stage, jobs = ThreadStage(), list[Callable[[], None]]()
    queue = lib.PushQueue(recorded(stage.host), jobs.append, "q")
    first = queue.subscribe("A", Client(), credit=1)
    held = queue.enqueue(lib.Message("g1", group="g"))
    queue.enqueue(lib.Message("g2", group="g"))
    queue.subscribe("B", Client())
    while jobs:
        jobs.pop(0)()
    queue.dequeue(held, first)
    assert found(stage.history(), "IM-3").verdict is due


@pytest.mark.parametrize(("key", "due"), [("a", Verdict.OK), ("b", Verdict.VIOLATED)])
def test_who_resumes_wakes_a_higher_one_only_for_what_both_select(key: str, due: Verdict) -> None:
    stage = ThreadStage()
    queue = reference.PullQueue(recorded(stage.host), "q")
    high = queue.subscribe("high", Client(), priority=1, keys=frozenset({"a"}))
    low = queue.subscribe("low", Client())
    queue.set_notify_work_desired(low, False)
    queue.enqueue(reference.Message("m1", key=key))
    queue.manager.set_notified(high, False)  # as if m1 had come this moment
    queue._first_to_take = lambda consumer, entry: high  # type: ignore[method-assign]
    queue.set_notify_work_desired(low, True)
    assert found(stage.history(), "WK-11").verdict is due


@pytest.mark.parametrize(("refusals", "due"), [(0, Verdict.OK), (1, Verdict.INCONCLUSIVE)])
def test_a_job_that_was_refused_has_not_begun(refusals: int, due: Verdict) -> None:
    """No call fails for it, and none is judged by it; that it was refused is on record."""
    stage, answers = ThreadStage(), ["refused"] * refusals

    def submit(job: Callable[[], None]) -> None:
        if answers:
            raise RuntimeError(answers.pop())

    queue = reference.PushQueue(recorded(stage.host), submit, "q")
    queue.enqueue(reference.Message("m1"))
    assert found(stage.history(), "IM-3").verdict is due
    if refusals:
        queue.deliver_async()
        assert [e.args["at"] for e in stage.history() if e.ev == "job"] == [
            *("submit", "refused"),
            "submit",
        ]


@pytest.mark.parametrize("handling", [False, True])
def test_that_a_job_was_refused_is_on_record_in_every_schedule(handling: bool) -> None:
    """Under the explorer too, where another stack records; a job that runs where an error is handled has begun."""
    seen: set[str] = set()

    def program(world: World) -> None:
        jobs: list[Callable[[], None]] = []

        def submit(job: Callable[[], None]) -> None:
            if jobs:
                raise RuntimeError("no more")
            jobs.append(job)

        queue = reference.PushQueue(recorded(world.host), submit, "q")

        def run() -> None:
            queue.enqueue(reference.Message("m1"))
            if handling:
                try:
                    raise ValueError
                except ValueError:
                    jobs[0]()
            else:
                jobs[0]()
            queue.deliver_async()

        world.spawn(run, name="P")

    def look(world: World) -> None:
        seen.add(" ".join(str(r.args["at"]) for r in world.records if r.ev == "job"))

    assert explore(program, on_execution=look).verdict == "ok"
    assert seen == {"submit begin submit refused"}


# ---- QL-4: what it does not measure, the cost


class Counting(Threads):
    """A host that counts the operations on its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def cell(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        host, cell = self, super().cell(value, *args, **kwargs)

        class Counted:
            """A cell whose operations are counted."""

            def __getattr__(self, name: str) -> Any:
                host.operations += 1
                return getattr(cell, name)

        return Counted()


def test_append_and_delete_cost_the_same_however_long_the_list_is() -> None:
    costs = set()
    for length in (1, 10, 1000):
        host = Counting()
        queue = reference.PullQueue(host, "q")
        consumer = queue.subscribe("A", Client())
        members = reference.ConsumerList(host, "list")
        nodes = [reference.ListEntry(host, "list", consumer) for _ in range(length + 1)]
        for node in nodes[:-1]:
            members.add(node)
        before = host.operations
        members.add(nodes[-1])
        added = host.operations
        members.delete(nodes[length // 2])
        costs.add((added - before, host.operations - added))
    assert costs == {(4, 2)}


def test_deleted_nodes_are_unlinked_by_one_iteration_at_the_cost_of_its_length() -> None:
    host = Counting()
    queue = reference.PullQueue(host, "q")
    consumer = queue.subscribe("A", Client())
    members = reference.ConsumerList(host, "list")
    nodes = [reference.ListEntry(host, "list", consumer) for _ in range(100)]
    for node in nodes:
        members.add(node)
    for node in nodes[:-1]:
        members.delete(node)
    costs = []
    for _ in range(2):
        before = host.operations
        assert list(members) == nodes[-1:]
        costs.append(host.operations - before)
    assert costs[0] > 99
    assert costs[1] < 10
