"""The planted queue: right as it is, wrong with each mistake, and what the drive needs to see that."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from seriatim_models.conformance.driving import DrivenRun, drive, drive_steps
from seriatim_models.conformance.judging import black_box_profiles
from seriatim_models.conformance.local import Local, Refused
from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.protocol import TRANSACTIONS
from seriatim_models.conformance.python_child import PythonChild
from seriatim_models.conformance.reference import Reference
from seriatim_models.conformance.script import STEPS, ScriptStep
from seriatim_models.conformance.search import SearchBounds, search
from seriatim_models.conformance.selftest import self_test
from seriatim_models.conformance.system import System
from seriatim_models.conformance.vectors import consume, read_vectors
from seriatim_models.conformance.workloads import drawn_script
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.standing import confirmed
from seriatim_workshop.planted import mistakes
from seriatim_workshop.planted.queue import Deliver, PlantedQueue
from seriatim_workshop.planted.run import FACTORIES, PlantedRun, main, recall, table

from .conftest import SPEC

FORMS = forms((PROFILES["any"], *black_box_profiles().values()))
PUBLISH, GET = ScriptStep(op="publish", q="q"), ScriptStep(op="get", q="q")


def consumer(ch: int, tag: str, **more: object) -> ScriptStep:
    return ScriptStep(op="consume", ch=ch, q="q", ctag=tag, **more)  # type: ignore[arg-type]


def violated(run: DrivenRun) -> set[str]:
    assert not run.fault, run.why
    return {f.id for f in FORMS if f.check(run.events).verdict is Verdict.VIOLATED}


def driven(name: str, steps: list[ScriptStep]) -> set[str]:
    """What a script violates on the queue of that name."""
    system = Local(getattr(mistakes, name))
    try:
        return violated(drive(system, steps))
    finally:
        system.end()


@pytest.mark.parametrize("name", mistakes.MISTAKES)
def test_each_mistake_is_one_edit_that_runs(name: str) -> None:
    made = getattr(mistakes, name)()
    made.open(1)
    made.publish("q", "m0")
    made.sync()
    made.end()


def test_there_are_enough_of_every_kind() -> None:
    assert len(mistakes.MISTAKES) >= 40
    assert len({mistake.kind for mistake in mistakes.MISTAKES.values()}) >= 10


@pytest.mark.parametrize("hurried", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_right_queue_violates_nothing_under_load(seed: int, hurried: bool) -> None:
    system = Local(mistakes.right)
    steps = drawn_script(system.can, random.Random(seed), 200, hurried=hurried)
    assert violated(drive_steps(system, steps, 60.0)) == set()
    system.end()


class Lagging(PlantedQueue):
    """The right queue with a thread for each channel, which calls back late and with no lock in hand."""

    def __init__(self) -> None:
        self.waiting: dict[int, queue.Queue[tuple[Deliver, str, int, bool] | None]] = {}
        self.threads: list[threading.Thread] = []
        super().__init__()

    def consume(
        self,
        ch: int,
        q: str,
        ctag: str,
        deliver: Deliver,
        autoack: bool = False,
        exclusive: bool = False,
        cprio: int | None = None,
    ) -> None:
        if ch not in self.waiting:
            self.waiting[ch] = queue.Queue()
            self.threads.append(threading.Thread(target=self._call_back, args=(ch,), daemon=True))
            self.threads[-1].start()
        line = self.waiting[ch]

        def later(m: str, dtag: int, redelivered: bool) -> None:
            line.put((deliver, m, dtag, redelivered))

        super().consume(ch, q, ctag, later, autoack, exclusive, cprio)

    def _call_back(self, ch: int) -> None:
        while (asked := self.waiting[ch].get()) is not None:
            deliver, m, dtag, redelivered = asked
            time.sleep(0.001)
            deliver(m, dtag, redelivered)
            self.waiting[ch].task_done()

    def sync(self) -> None:
        super().sync()
        for line in self.waiting.values():
            line.join()

    def end(self) -> None:
        super().end()
        for line in self.waiting.values():
            line.put(None)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_right_queue_that_calls_back_late_violates_nothing(seed: int) -> None:
    system = Local(Lagging)
    system.can = frozenset(PlantedQueue.can)
    steps = drawn_script(system.can, random.Random(seed), 200, hurried=True)
    assert violated(drive_steps(system, steps, 60.0)) == set()
    system.end()


BY_ANOTHER = ScriptStep(op="get", ch=2, q="q")
LOW, HIGH = (ScriptStep(op="publish", q="q", prio=prio) for prio in (0, 2))
OF_GROUP = ScriptStep(op="publish", q="q", key="k")
ONE_LIMIT = [ScriptStep(op="qos", prefetch=1), consumer(1, "c1")]
SHOWN: dict[str, tuple[str, list[ScriptStep]]] = {
    "never-pushes": ("P14", [consumer(1, "c1"), PUBLISH]),
    "no-push-after-ack": ("P14", [*ONE_LIMIT, PUBLISH, PUBLISH, ScriptStep(op="ack", which=0)]),
    "no-push-after-close": (
        "P14",
        [PUBLISH, GET, consumer(2, "c2"), ScriptStep(op="close", ch=1), GET],
    ),
    "exclusive-is-not": ("P10", [consumer(1, "c1", exclusive=True), consumer(2, "c2")]),
    "priorities-inverted": (
        "P11",
        [consumer(1, "c1", cprio=1), consumer(2, "c2", cprio=2), PUBLISH],
    ),
    "multiple-settles-one": (
        "P1",
        [PUBLISH, PUBLISH, GET, GET, ScriptStep(op="nack", which=1, multiple=True)],
    ),
    "message-priority-ignored": ("P22", [LOW, HIGH]),
    "message-priority-lost-on-requeue": (
        "P22",
        [LOW, HIGH, GET, ScriptStep(op="nack")],
    ),
    "message-priority-for-gets-only": (
        "P22",
        [LOW, HIGH, consumer(1, "c1")],
    ),
    "groups-ignored": ("P23", [OF_GROUP, OF_GROUP, GET, ScriptStep(op="get", ch=2, q="q")]),
    "group-split-on-close": (
        "P23",
        [
            OF_GROUP,
            OF_GROUP,
            GET,
            ScriptStep(op="close"),
            *[ScriptStep(op="get", ch=n, q="q") for n in (2, 3)],
        ],
    ),
    "group-free-after-one": (
        "P23",
        [OF_GROUP, OF_GROUP, OF_GROUP, GET, GET, ScriptStep(op="ack", which=0), BY_ANOTHER],
    ),
    "group-of-the-channel": (
        "P23",
        [OF_GROUP, OF_GROUP, *ONE_LIMIT, consumer(1, "c2")],
    ),
    "group-gets-forgotten": ("P23", [OF_GROUP, OF_GROUP, GET, consumer(2, "c2")]),
    "group-blocks-the-queue": ("P14", [OF_GROUP, OF_GROUP, PUBLISH, GET, consumer(2, "c2")]),
    "group-newest-first": ("P4", [OF_GROUP, OF_GROUP]),
    "group-kept-after-close": ("P1", [OF_GROUP, GET, ScriptStep(op="close")]),
    "tag-zero-leaves-one": (
        "P1",
        [PUBLISH, PUBLISH, GET, GET, ScriptStep(op="nack", multiple=True, every=True)],
    ),
}
"""The shortest scripts for what the drive could not see before, with what they violate."""


@pytest.mark.parametrize("name", SHOWN)
def test_a_short_script_shows_it(name: str) -> None:
    property, steps = SHOWN[name]
    assert property in driven(name, steps)
    assert driven("right", steps) == set()


def test_closing_waits_for_what_it_sets_off() -> None:
    # Two channels close at the end, and a thread pushes what they held to a third: P5, if the second is closed at once.
    steps = [PUBLISH, PUBLISH, ScriptStep(op="get", ch=2, q="q"), GET, consumer(3, "c1")]
    assert all(driven("right", steps) == set() for _ in range(20))


def test_a_refusal_that_closes_its_channel_is_recorded_as_its_end() -> None:
    steps = [PUBLISH, GET, consumer(2, "c2", exclusive=True), consumer(1, "c1"), GET]
    system = Local(Reference)
    run = drive(system, steps)
    assert any(e.ev == "ch_close" and e.ch == 1 and e.err for e in run.events)
    assert violated(run) == set()


def test_an_object_in_its_own_process_is_given_whole_scripts() -> None:
    system = PythonChild(f"{FACTORIES}:right")
    try:
        whole = system.drive([PUBLISH, GET], 60.0)
        assert whole is not None
        assert [e.ev for e in whole.events] == [
            e.ev for e in drive_steps(system, [PUBLISH, GET], 60.0).events
        ]
    finally:
        system.end()


RECOVER = [PUBLISH, PUBLISH, GET, ScriptStep(op="recover")]


def test_whom_a_recovered_message_left_does_not_release_it_by_closing() -> None:
    # P5: m0 is with channel 2 when channel 1 closes, which had it once.
    steps = [*RECOVER, BY_ANOTHER, ScriptStep(op="close"), GET, GET]
    assert driven("right", steps) == set()
    # What recover puts back is judged: behind all others it is out of its place.
    assert "P5" in driven("requeues-to-the-tail", [*RECOVER, BY_ANOTHER])


def test_a_script_is_drawn_of_what_is_declared() -> None:
    can = frozenset(PlantedQueue.can) - {"groups", "held-groups", "message-priority"}
    drawn = [
        step for n in range(200) for step in drawn_script(can, random.Random(n), 30, hurried=False)
    ]
    others = {"open", "read", "seek", "commit", "pass", *TRANSACTIONS}
    assert {step.op for step in drawn} == set(STEPS) - others
    assert {step.q for step in drawn} == {"", "q", "r"}
    assert any(step.exclusive for step in drawn)
    assert any(step.cprio for step in drawn)
    assert not any(step.key or step.prio for step in drawn)
    assert all(step.wait for step in drawn)
    more = can | {"groups", "message-priority"}
    drawn = [step for n in range(50) for step in drawn_script(more, random.Random(n), 30)]
    assert any(step.key for step in drawn)
    assert any(step.prio for step in drawn)
    bare = drawn_script(frozenset({"publish", "get"}), random.Random(1), 300, hurried=True)
    assert {step.op for step in bare} == {"publish", "get"}
    assert {step.q for step in bare} == {"q"}
    assert not all(step.wait for step in bare)


class Grouped:
    """Keeps the order within a group; with `swaps` it does so but for every other message."""

    can = ("publish", "get", "autoack", "groups", "message-priority")

    def __init__(self, swaps: bool = False) -> None:
        self.swaps = swaps
        self.lines: dict[tuple[int, str], list[str]] = {}

    def publish(self, m: str, key: str, prio: int | None) -> None:
        line = self.lines.setdefault((-(prio or 0), key), [])
        line.insert(0 if self.swaps else len(line), m)

    def get(self) -> tuple[str, None, None] | None:
        return next(
            ((line.pop(0), None, None) for _, line in sorted(self.lines.items()) if line), None
        )


@pytest.mark.parametrize("swaps", [False, True])
def test_groups_and_priorities_of_messages_are_driven(swaps: bool) -> None:
    bounds = SearchBounds(seconds=20.0, scripts=25)
    outcome = search(Local(lambda: Grouped(swaps)), PROFILES["sqs-fifo"], bounds, seed=1)
    verdicts = {f.property: f.verdict for f in outcome.findings}
    assert verdicts["P4"] is (Verdict.VIOLATED if swaps else Verdict.OK)
    shown = [str(step) for w in outcome.witnesses for step in w.run.steps]
    assert swaps is bool(shown)


def test_what_methods_show_is_driven_without_can() -> None:
    class Shown:
        def publish(self, q: str, m: str, prio: int | None = None, key: str = "") -> None: ...

        def consume(self, ch: int, exclusive: bool = False, cprio: int | None = None) -> None: ...

    features = {"message-priority", "groups", "exclusive", "priority"}
    assert Local(Shown).can == {"publish", "consume", *features}


def test_several_deliveries_of_a_step_are_written_by_priority() -> None:
    """Of two channels nobody sees which was served first; the recording may not invent that."""
    first, second = (
        [ScriptStep(op="qos", ch=ch, prefetch=1), consumer(ch, f"c{ch}")] for ch in (2, 3)
    )
    steps = [LOW, HIGH, GET, GET, *first, *second, ScriptStep(op="close")]
    assert driven("right", steps) == set()


def test_the_self_test_tries_what_is_declared() -> None:
    assert not [c for c in self_test(Local(mistakes.right)) if c.why and not c.skipped]
    for name, sentence in {
        "groups-ignored": "a group is with one consumer",
        "message-priority-inverted": "of two messages",
        "priorities-inverted": "of two consumers",
        "exclusive-is-not": "an exclusive consumer is alone",
        "multiple-settles-one": "ack with multiple",
        "drop-requeues": "nack without requeue",
        "exceeds-by-one": "no more than its prefetch",
    }.items():
        wrong = [check.sentence for check in self_test(Local(getattr(mistakes, name))) if check.why]
        assert any(sentence in each for each in wrong), name


def test_a_script_ends_when_it_has_enough_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seriatim_models.conformance.driving.EVENTS_MAX", 50)
    system = Local(mistakes.right)
    run = drive_steps(system, [PUBLISH, GET, ScriptStep(op="nack")] * 100, 60.0)
    assert 10 < len(run.steps) < 50
    assert violated(run) == set()
    system.end()


class Refusing:
    """Takes messages, and refuses to hand out any."""

    can = ("publish", "get", "open")

    def open(self, ch: int) -> None: ...

    def publish(self, m: str) -> None: ...

    def get(self) -> None:
        raise Refused("not now")


def test_a_get_that_is_refused_does_not_show_the_queue_empty() -> None:
    # Broker-J closes the connection of whom it refuses an exclusive consumer, and with it whoever would look.
    run = drive(Local(Refusing), [PUBLISH])
    assert not any("depth" in e.args for e in run.events)
    assert violated(run) == set()


class Leaky:
    """A queue that loses one message in three hundred."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.published = 0

    def publish(self, q: str, m: str) -> None:
        self.published += 1
        if self.published % 300:
            self.messages.append(m)

    def get(self, q: str) -> tuple[str, None, None] | None:
        return (self.messages.pop(0), None, None) if self.messages else None


@pytest.mark.slow  # twenty seconds, as many as it is given
def test_what_is_rare_shows_under_load() -> None:
    outcome = search(Local(Leaky), PROFILES["any"], SearchBounds(seconds=20.0, first=True), seed=1)
    (witness,) = outcome.witnesses
    assert witness.property in ("P1", "P20", "P5")
    assert sum(step.op == "publish" for step in witness.run.steps) >= 300
    assert 1 <= witness.runs <= 3  # as many further runs as there was time for
    assert witness.again == witness.runs  # what it does depends on nothing else


def test_a_moment_of_standing_still_does_not_take_the_further_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = 4.0
    over = time.monotonic() + seconds

    def stalling(system: System, steps: Sequence[ScriptStep], until: float) -> DrivenRun:
        if time.monotonic() > over:
            time.sleep(0.2)  # ten times what the script takes
        return drive(system, steps, until=until)

    monkeypatch.setattr("seriatim_models.conformance.search.drive", stalling)
    bounds = SearchBounds(seconds=seconds, first=True)
    (witness,) = search(Local(Leaky), PROFILES["any"], bounds, seed=1).witnesses
    assert 1 <= witness.again == witness.runs


class TwoExclusive:
    """Declares exclusive consumers and refuses none."""

    can = ("publish", "get", "consume", "open", "exclusive")

    def open(self, ch: int) -> None: ...

    def publish(self, q: str, m: str) -> None: ...

    def get(self, q: str) -> None: ...

    def consume(self, ch: int, exclusive: bool) -> None: ...


class OneExclusive(TwoExclusive):
    """Declares exclusive consumers and keeps it."""

    def __init__(self) -> None:
        self.alone: list[bool] = []

    def consume(self, ch: int, exclusive: bool) -> None:
        if any(self.alone) or (exclusive and self.alone):
            raise Refused("not alone", 403)
        self.alone.append(exclusive)


def test_a_vector_is_judged_by_what_the_system_declares() -> None:
    vectors = [v for v in read_vectors(SPEC.parent / "vectors") if v.id.startswith("06")]
    assert all(not r.agrees and r.why for r in consume(Local(TwoExclusive), vectors))
    assert all(r.agrees for r in consume(Local(OneExclusive), vectors))
    # Who asks for the outcomes of one system gets them.
    assert all(r.agrees for r in consume(Local(TwoExclusive), vectors, by="rabbitmq-quorum"))


def test_the_page_says_what_was_caught() -> None:
    runs = [
        PlantedRun(name="right", seed=1, scripts=2, steps=9),
        PlantedRun(name="never-pushes", seed=1, property="P14", commands=2, again="3 of 3"),
        PlantedRun(name="skips-tags", seed=1),
    ]
    assert (
        recall(runs) == "Of 2 mistakes 1 were caught in every run of theirs (1 of 2 with seed 1)."
    )
    page = table(runs)
    assert "| never-pushes | wake-ups: nobody is ever pushed anything | yes | P14 | 2 |" in page
    assert "seed 1: nothing violated, in 2 scripts and 9 steps" in page


def test_an_unknown_mistake_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["no-such", "--out", str(tmp_path)]) == 2
    assert "no-such" in capsys.readouterr().err


@pytest.mark.parametrize("op", ["close", "nack", "recover"])
def test_what_was_put_back_and_lies_at_rest_is_shown_by_its_own_events(op: str) -> None:
    """Whoever gave a message back must be seen to have had it, or the witness shows nothing by itself."""
    quiet = {"close": "no-push-after-close", "nack": "no-push-after-nack"}.get(op, "never-pushes")
    taken = [PUBLISH, GET, consumer(2, "c2")]
    run = drive(Local(getattr(mistakes, quiet)), [*taken, ScriptStep(op=op)])
    (p14,) = (p for p in PROFILES["any"].properties if p.id == "P14")
    assert confirmed(p14, p14.check(run.events)).verdict is Verdict.VIOLATED
