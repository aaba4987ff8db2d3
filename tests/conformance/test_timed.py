"""Messages with a delay or a time to live: right queues pass, planted mistakes are seen. Time is the test's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest

from seriatim_models.conformance import driving, local, selftest
from seriatim_models.conformance.driving import DrivenRun, drive
from seriatim_models.conformance.judging import judged
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.meanings import meanings
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.selftest import self_test
from seriatim_models.conformance.shapes import small_scripts
from seriatim_models.conformance.workloads import drawn_script
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX


class Clock:
    """Time that passes by being looked at, and by sleeping."""

    now = 0

    def monotonic_ns(self) -> int:
        self.now += 1_000
        return self.now

    def monotonic(self) -> float:
        return self.monotonic_ns() / 1e9

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


class Timed:
    """A queue that pushes and is polled, whose messages have their time; `mistake` is the one thing done wrong."""

    can: tuple[str, ...] = (
        *("publish", "get", "consume", "ack", "nack", "qos", "cancel", "open", "close"),
        *("delay", "ttl", "redelivered", "queues"),
    )

    def __init__(self, clock: Clock, mistake: str = "") -> None:
        self.clock, self.mistake = clock, mistake
        self.ready: dict[str, list[list[Any]]] = {}  # place, message, redelivered, when it dies
        self.later: list[tuple[float, str, list[Any]]] = []
        self.held: dict[tuple[int, int], tuple[str, list[Any], str]] = {}
        self.consumers: list[tuple[int, str, str, int, Callable[..., None]]] = []
        self.tags: dict[int, int] = {}
        self.limits: dict[int, int] = {}
        self.places = 0

    def open(self, ch: int) -> None: ...

    def qos(self, ch: int, prefetch: int) -> None:
        self.limits[ch] = prefetch

    def publish(self, q: str, m: str, delay: int | None = None, ttl: int | None = None) -> None:
        now, there = self.clock.monotonic(), self.ready.setdefault(q, [])
        dies = now + ttl / 1000 if ttl else None
        if self.mistake == "immortal-behind-others" and there:
            dies = None
        if self.mistake == "half-a-delay" and delay:
            delay //= 2
        if self.mistake == "no-delay-behind-others" and there:
            delay = None
        if delay and self.mistake != "no-delay":
            self.later.append((now + delay / 1000, q, [0, m, False, dies]))
        else:
            self._put(q, [0, m, False, dies])
            self._push()

    def _put(self, q: str, entry: list[Any]) -> None:
        self.places += 1
        entry[0] = entry[0] or self.places
        self.ready[q] = sorted([*self.ready.get(q, []), entry])

    def sync(self) -> None:
        if self.mistake != "late":
            self._come()
            if self.mistake != "sleeps-when-due":
                self._push()

    def _come(self) -> None:
        due = [each for each in self.later if each[0] <= self.clock.monotonic()]
        for each in due:
            self.later.remove(each)
            self._put(each[1], each[2])
        if self.mistake == "one-at-a-time" and len(due) > 1:
            self.ready[due[0][1]].pop()

    def _next(self, q: str) -> list[Any] | None:
        while self.ready.get(q):
            entry = self.ready[q].pop(0)
            pushed = any(consumer[1] == q for consumer in self.consumers)
            if entry[3] is None or entry[3] > self.clock.monotonic() or self.mistake == "immortal":
                return entry
            if self.mistake == "immortal-for-consumers" and pushed:
                return entry
            if self.mistake == "takes-the-next-along":
                del self.ready[q][:1]
        return None

    def _hold(self, ch: int, q: str, entry: list[Any], ctag: str = "") -> int:
        tag = self.tags[ch] = self.tags.get(ch, 0) + 1
        self.held[ch, tag] = q, entry, ctag
        return tag

    def get(self, ch: int, q: str) -> tuple[str, int, bool] | None:
        if self.mistake != "late":
            self._come()
        entry = self._next(q)
        return None if entry is None else (entry[1], self._hold(ch, q, entry), entry[2])

    def consume(self, ch: int, q: str, ctag: str, deliver: Callable[..., None]) -> None:
        self.consumers.append((ch, q, ctag, self.limits.get(ch, 0), deliver))
        self._push()

    def _push(self) -> None:
        for ch, q, ctag, limit, deliver in self.consumers:
            while not limit or sum(h[2] == ctag for h in self.held.values()) < limit:
                entry = self._next(q)
                if entry is None:
                    break
                deliver(entry[1], self._hold(ch, q, entry, ctag), entry[2])

    def cancel(self, ch: int, ctag: str) -> None:
        self.consumers = [c for c in self.consumers if c[2] != ctag]

    def ack(self, ch: int, dtag: int) -> None:
        del self.held[ch, dtag]
        self._push()

    def nack(self, ch: int, dtag: int) -> None:
        q, entry, _ = self.held.pop((ch, dtag))
        self._put(q, [entry[0], entry[1], True, entry[3]])
        self._push()

    def close(self, ch: int) -> None:
        self.consumers = [c for c in self.consumers if c[0] != ch]
        for by, dtag in [key for key in self.held if key[0] == ch]:
            q, entry, _ = self.held.pop((by, dtag))
            self._put(q, [entry[0], entry[1], True, entry[3]])
        self.tags.pop(ch, None)
        self.limits.pop(ch, None)
        self._push()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (driving, local, selftest):
        monkeypatch.setattr(module, "time", clock)
    return clock


CAN = frozenset(Timed.can)
SCRIPTS = [s for s in small_scripts(CAN) if any(step.delay or step.ttl for step in s)]


def violated(run: DrivenRun) -> set[str]:
    assert not run.fault, run.why
    findings = judged(run, BLACKBOX)
    return {f.property for f in findings if f.verdict is Verdict.VIOLATED}


def test_the_right_queue_passes(clock: Clock) -> None:
    system = Local(lambda: Timed(clock))
    assert not [check for check in self_test(system) if check.why and not check.skipped]
    for script in SCRIPTS:
        assert not violated(drive(system, script)), list(map(str, script))
    for seed in range(100):
        script = drawn_script(CAN, random.Random(seed), 30)
        assert not violated(drive(system, script)), list(map(str, script))


MISTAKES = {
    "no-delay": "P26", "no-delay-behind-others": "P26", "half-a-delay": "P26", "late": "P1", "one-at-a-time": "P1",
    "sleeps-when-due": "P14", "immortal": "P26", "immortal-behind-others": "P26", "immortal-for-consumers": "P26",
    "takes-the-next-along": "P1",
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_planted_mistake_is_seen(clock: Clock, mistake: str) -> None:
    system = Local(lambda: Timed(clock, mistake))
    found = next((found for script in SCRIPTS if (found := violated(drive(system, script)))), set())
    assert MISTAKES[mistake] in found


def test_the_self_test_sees_what_ignores_them(clock: Clock) -> None:
    for mistake, word in (("no-delay", "delay"), ("immortal", "time to live"), ("late", "delay")):
        failed = [
            c for c in self_test(Local(partial(Timed, clock, mistake))) if c.why and not c.skipped
        ]
        assert [word in check.sentence for check in failed] == [True], mistake


def test_a_system_without_the_words_is_not_asked_for_them(clock: Clock) -> None:
    steps = [ScriptStep(op="publish", q="q", delay=200), ScriptStep(op="get", q="q")]

    class Plain(Timed):
        can = tuple(word for word in Timed.can if word not in ("delay", "ttl"))

    assert not violated(drive(Local(lambda: Plain(clock)), steps))
    assert not any(
        step.delay or step.ttl for s in small_scripts(frozenset(Plain.can)) for step in s
    )


class Leased:
    """A queue whose clients hold a message until its lease is over, whatever becomes of their channels."""

    can = ("publish", "get", "ack", "nack", "lease", "open", "close", "redelivered", "queues")

    def __init__(self, clock: Clock, lease: float, mistake: str = "") -> None:
        self.clock, self.lease, self.mistake = clock, lease, mistake
        self.ready: dict[
            str, list[list[Any]]
        ] = {}  # place, message, how often given, whether its lease was over
        self.held: dict[tuple[int, int], tuple[str, list[Any], float]] = {}
        self.given = self.places = 0

    def open(self, ch: int) -> None: ...

    def close(self, ch: int) -> None: ...

    def publish(self, q: str, m: str) -> None:
        self.places += 1
        self.ready.setdefault(q, []).append([self.places, m, 0, False])

    def get(self, ch: int, q: str) -> tuple[str, int, bool, bool] | None:
        now = self.clock.monotonic()
        for by, (of, entry, until) in list(self.held.items()):
            if until < now or (self.mistake == "given-while-held" and not self.ready.get(of)):
                del self.held[by]
                self.ready[of] = sorted([*self.ready[of], [*entry[:3], until < now]])
        if not self.ready.get(q):
            return None
        place, m, times, expired = self.ready[q].pop(0)
        self.given += 1
        self.held[ch, self.given] = q, [place, m, times + 1, False], now + self.lease
        return m, self.given, times > 0, expired

    def _settled(self, ch: int, dtag: int) -> tuple[str, list[Any], float]:
        if (ch, dtag) not in self.held:
            raise local.Refused("its lease is over")
        return self.held.pop((ch, dtag))

    def ack(self, ch: int, dtag: int) -> None:
        self._settled(ch, dtag)

    def nack(self, ch: int, dtag: int) -> None:
        q, entry, _ = self._settled(ch, dtag)
        self.ready[q] = sorted([*self.ready[q], entry])


@pytest.mark.parametrize("lease", [3600.0, 20e-6])
def test_a_right_queue_with_leases_passes(clock: Clock, lease: float) -> None:
    system = Local(lambda: Leased(clock, lease))
    assert not [c for c in self_test(system) if c.why and not c.skipped] or lease < 1
    scripts = small_scripts(system.can)
    scripts += [drawn_script(system.can, random.Random(seed), 30) for seed in range(100)]
    for script in scripts:
        assert violated(drive(system, script)) <= {"P8"}, list(
            map(str, script)
        )  # its tags are not a channel's


class SaysLease(Leased):
    """One that declares how long a lease is, and may have shorter ones."""

    means: ClassVar = {"lease": 0.4}

    def __init__(self, clock: Clock, share: float = 1.0, mistake: str = "") -> None:
        super().__init__(clock, share * 0.4, mistake)


def short_leases(clock: Clock, *how: Any) -> set[str]:
    system = Local(lambda: SaysLease(clock, *how))
    found = set[str]()
    for script in small_scripts(system.can, 0.4):
        if any(step.op == "pass" for step in script) or len(script) == 3:
            found |= {p for p in violated(drive(system, script)) if p != "P8"}
    return found


def test_a_lease_that_lasts_as_long_as_declared_is_a_case(clock: Clock) -> None:
    system = Local(lambda: SaysLease(clock))
    checks = {c.sentence: c for c in self_test(system) if "lease is over" in c.sentence}
    assert [(c.why, c.skipped) for c in checks.values()] == [("", False)]
    assert not short_leases(clock)
    steps = [ScriptStep(op="publish", q="q"), ScriptStep(op="get", q="q"), ScriptStep(op="pass")]
    run = drive(system, [*steps, ScriptStep(op="get", q="q", ch=2)])
    (finding,) = judged(run, [p for p in BLACKBOX if p.id == "P26"])
    assert (finding.verdict, finding.n_tested) == (Verdict.OK, 1)
    settled = [*steps[:2], ScriptStep(op="nack"), ScriptStep(op="get", q="q", ch=2)]
    assert violated(drive(system, settled)) <= {"P8"}  # its tags are not a channel's


def test_a_lease_that_is_shorter_than_declared_is_seen(clock: Clock) -> None:
    assert "P26" in short_leases(clock, 0.3)
    (check,) = [
        c for c in self_test(Local(lambda: SaysLease(clock, 0.3))) if "lease is over" in c.sentence
    ]
    assert check.why == "another has m0 under a lease of 0.4 s; it was 'm0'"


@pytest.mark.parametrize("lease", [0, -1, True, "1", 1e-9, 1e12, float("nan")])
def test_what_is_no_length_of_a_lease_is_refused(lease: Any) -> None:
    with pytest.raises(Fault, match=r"means: lease: .* is not a number of seconds, 0.001 to"):
        meanings({"lease": lease}, frozenset({"lease"}))
    with pytest.raises(Fault, match="says nothing without lease in can"):
        meanings({"lease": 30}, frozenset({"get"}))


def test_who_is_given_what_another_still_holds_is_seen(clock: Clock) -> None:
    scripts = [drawn_script(frozenset(Leased.can), random.Random(seed), 30) for seed in range(30)]
    system = Local(lambda: Leased(clock, 3600.0, "given-while-held"))
    assert any("P2" in violated(drive(system, script)) for script in scripts)
