"""Words that not every queue has: transactions, a queue of the dead, several messages got at once."""

from __future__ import annotations

import functools
import random
import threading
import time
from bisect import insort
from collections.abc import Callable
from pathlib import Path

import pytest

from seriatim_models.conformance.concurrent.driving import run_workload
from seriatim_models.conformance.concurrent.objects import ThreadedObject
from seriatim_models.conformance.concurrent.search import ClientsOutcome, search_clients
from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import ConcurrentWorkload
from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.judging import default_profile, judged
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.protocol import FEATURES, OPERATIONS
from seriatim_models.conformance.search import SearchBounds, search
from seriatim_models.conformance.selftest import CHECKED, self_test
from seriatim_models.conformance.workloads import drawn_script
from seriatim_models.history import Header, read_history
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict

BOUNDS = SearchBounds(seconds=60.0, scripts=1200, steps=30, first=True)
Stored = tuple[int, str, bool]
"""A message with its place, and whether it was delivered before."""


class Words:
    """A queue that pushes and is polled; `mistake` names the one thing that it does wrong."""

    can = (
        *("publish", "get", "consume", "ack", "nack", "reject", "qos", "cancel", "open", "close"),
        *("drop", "dead-letter", "batch", "tx-begin", "tx-commit", "tx-rollback"),
        *("redelivered", "queues"),
    )

    def __init__(self, mistake: str = "") -> None:
        self.mistake = mistake
        self.queues: dict[str, list[Stored]] = {}
        self.held: dict[int, dict[int, tuple[str, Stored, str]]] = {}
        self.tags: dict[int, int] = {}
        self.limits: dict[int, int] = {}
        self.consumers: list[tuple[int, str, str, int, Callable[..., None]]] = []
        self.waiting: dict[int, list[Callable[[], None]]] = {}
        self.n = 0
        self.committing = False

    def open(self, ch: int) -> None:
        self.held[ch] = {}

    def close(self, ch: int) -> None:
        self.limits.pop(ch, None)
        self.tags.pop(ch, None)
        left = self.waiting.pop(ch, [])
        for effect in left if self.mistake == "a close commits" else ():
            effect()
        self.consumers = [c for c in self.consumers if c[0] != ch]
        for q, message, _ in self.held.pop(ch, {}).values():
            self._back(q, message)
        self._push()

    def qos(self, ch: int, prefetch: int, scope: str = "") -> None:
        self.limits[ch] = prefetch

    def publish(self, q: str, m: str, ch: int = 0) -> None:
        if self.mistake == "publishes are seen before the commit":
            ch = 0
        self._later(ch, lambda: self._put(q, m))

    def get(
        self, ch: int, q: str, n: int = 1
    ) -> tuple[str, int, bool] | list[tuple[str, int, bool]] | None:
        queue = self.queues.setdefault(q, [])
        if n == 1:
            return self._take(ch, q, "") if queue else None
        taken = [self._take(ch, q, "") for _ in range(min(n, len(queue)))]
        if self.mistake == "a batch leaves one out" and len(taken) > 1:
            del self.held[ch][taken.pop()[1]]
        if self.mistake == "a batch is backwards":
            taken.reverse()
        if self.mistake == "a batch is shown, and not taken":
            for _, tag, _ in taken[1:]:
                self._back(*self.held[ch][tag][:2])
        return taken

    def consume(self, ch: int, q: str, ctag: str, deliver: Callable[..., None]) -> None:
        self.consumers.append((ch, ctag, q, self.limits.get(ch, 0), deliver))
        self._push()

    def cancel(self, ch: int, ctag: str) -> None:
        self.consumers = [c for c in self.consumers if c[:2] != (ch, ctag)]

    def ack(self, ch: int, dtag: int) -> None:
        if self.mistake == "an ack does not wait for the commit":
            del self.held[ch][dtag]
        else:
            self._later(ch, lambda: self.held[ch].pop(dtag))

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        if self.mistake == "a drop does not wait for the commit" and not requeue:
            self._end(ch, dtag, requeue)
        else:
            self._later(ch, lambda: self._end(ch, dtag, requeue))
        self._push()

    reject = nack

    def tx_begin(self, ch: int) -> None:
        self.waiting[ch] = []

    def tx_commit(self, ch: int) -> None:
        effects = self.waiting.pop(ch)
        if self.mistake == "a commit loses its second half" and len(effects) > 2:
            effects = effects[:2]
        for effect in effects:
            self.committing = self.mistake != "a commit takes effect piece by piece"
            effect()
            self._push()
        self.committing = False
        self._push()

    def tx_rollback(self, ch: int) -> None:
        effects = self.waiting.pop(ch)
        for effect in effects if self.mistake == "a rollback commits" else ():
            effect()
        self._push()

    def _later(self, ch: int, effect: Callable[[], object]) -> None:
        """At once, or at the commit of the channel's transaction."""
        if self.mistake == "all have one transaction" and self.waiting:
            ch = min(self.waiting)
        if ch in self.waiting:
            self.waiting[ch].append(effect)  # type: ignore[arg-type]  # what it returns is not used
        else:
            effect()
            self._push()

    def _end(self, ch: int, dtag: int, requeue: bool) -> None:
        q, (place, m, _), _ = self.held[ch].pop(dtag)
        dead = q.endswith(".dead")
        if requeue or (self.mistake == "what is dropped comes back" and not dead):
            self._back(q, (place, m, True))
        elif not dead and self.mistake != "what is dropped is gone":
            self._put(q + ".dead", m)
            if self.mistake == "what is dropped is there twice":
                self._put(q + ".dead", m)
        elif dead and self.mistake == "the dead do not die":
            self._put(q, m)

    def _put(self, q: str, m: str) -> None:
        self.n += 1
        self.queues.setdefault(q, []).append((self.n, m, False))
        self._push()

    def _back(self, q: str, message: Stored) -> None:
        insort(self.queues[q], (message[0], message[1], True))

    def _take(self, ch: int, q: str, ctag: str) -> tuple[str, int, bool]:
        message = self.queues[q].pop(0)
        self.tags[ch] = tag = self.tags.get(ch, 0) + 1
        self.held[ch][tag] = (q, message, ctag)
        return message[1], tag, message[2]

    def _push(self) -> None:
        while not self.committing and (able := [c for c in self.consumers if self._able(c)]):
            consumer = able[0]
            self.consumers.remove(consumer)
            self.consumers.append(consumer)
            ch, ctag, q, _, deliver = consumer
            deliver(*self._take(ch, q, ctag))

    def _able(self, consumer: tuple[int, str, str, int, Callable[..., None]]) -> bool:
        ch, ctag, q, limit, _ = consumer
        has = sum(of == ctag for _, _, of in self.held[ch].values())
        return bool(self.queues.get(q)) and (not limit or has < limit)


MISTAKES = (
    "publishes are seen before the commit",
    "a rollback commits",
    "a close commits",
    "a commit loses its second half",
    "a commit takes effect piece by piece",
    "an ack does not wait for the commit",
    "a drop does not wait for the commit",
    "what is dropped is gone",
    "what is dropped comes back",
    "what is dropped is there twice",
    "the dead do not die",
    "a batch leaves one out",
    "a batch is backwards",
    "a batch is shown, and not taken",
)


def test_the_self_test_knows_the_words() -> None:
    checks = list(self_test(Local(Words)))
    assert [(c.sentence, c.why) for c in checks if c.why and not c.skipped] == []
    done = " ".join(c.sentence for c in checks if not c.skipped)
    assert all(word in done for word in ("queue of the dead", "committed", "rollback", "at once"))


NOT_CHECKED = {
    "publish", "open",  # in every check
    "tx-commit", "tx-rollback",  # with tx-begin
    "waits",  # says what may be, not what must
    "dwrr", "dwrr-table", "mandatory", "immediate", "no-local", "prefetch-size",  # vectors have them
}  # fmt: skip


def test_the_self_test_has_a_check_of_each_word() -> None:
    assert {*OPERATIONS, *FEATURES} - CHECKED == NOT_CHECKED


class Shared(Words):
    """One list for all queues, no mark, deliveries after a cancel: each is a word that is not meant."""

    def publish(self, q: str, m: str, ch: int = 0) -> None:
        super().publish("q", m, ch)

    def get(
        self, ch: int, q: str, n: int = 1
    ) -> tuple[str, int, bool] | list[tuple[str, int, bool]] | None:
        got = super().get(ch, "q", n)
        return (*got[:2], False) if isinstance(got, tuple) else got

    def cancel(self, ch: int, ctag: str) -> None:
        pass


def test_the_self_test_says_which_word_is_not_meant() -> None:
    wrong = {c.sentence for c in self_test(Local(Shared)) if c.why and not c.skipped}
    assert {
        "what was handed out before is marked, and nothing else",
        "what is published to a queue is in no other",
        "a cancelled consumer is given nothing more",
    } <= wrong


@pytest.mark.parametrize("hurried", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_a_right_queue_with_these_words_is_right(seed: int, hurried: bool) -> None:
    system = Local(Words)
    run = drive(system, drawn_script(system.can, random.Random(seed), 120, hurried=hurried))
    assert not run.fault, run.why
    findings = judged(run, default_profile(system).properties)
    assert [f for f in findings if f.verdict is Verdict.VIOLATED] == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found(mistake: str) -> None:
    system = Local(lambda: Words(mistake))
    outcome = search(system, default_profile(system), BOUNDS, seed=1)
    assert outcome.witnesses, mistake
    assert min(len(w.run.steps) for w in outcome.witnesses) <= 7


class Noted(Words):
    """Writes down what is got, and takes its time for it or not."""

    def __init__(self, drawn: random.Random, gets: list[tuple[int, str, int]]) -> None:
        super().__init__()
        self.drawn, self.gets = drawn, gets

    def get(
        self, ch: int, q: str, n: int = 1
    ) -> tuple[str, int, bool] | list[tuple[str, int, bool]] | None:
        self.gets.append((ch, q, n))
        time.sleep(self.drawn.choice((0.0, 0.0001)))
        return super().get(ch, q, n)


def test_a_number_of_scripts_and_steps_is_the_same_search_again_however_long_it_takes() -> None:
    bounds = SearchBounds(seconds=120.0, scripts=420, steps=30)
    searches = []
    for seed in range(3):
        gets: list[tuple[int, str, int]] = []
        system = Local(functools.partial(Noted, random.Random(seed), gets))
        outcome = search(system, default_profile(system), bounds, seed=1)
        assert not outcome.witnesses
        searches.append((outcome.scripts, outcome.steps, outcome.events, gets))
    assert searches[0][0] == 420
    assert searches[0] == searches[1] == searches[2]


class Locked(Words):
    """The same for several clients: each call has the lock, but for what `mistake` does before it has it."""

    def __init__(self, mistake: str = "") -> None:
        super().__init__(mistake)
        self.lock = threading.RLock()

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name not in METHODS:
            return found

        @functools.wraps(found)
        def locked(*args: object, **named: object) -> object:
            if name == "get" and self.mistake == "a batch looks before it has the lock":
                seen = list(self.queues.get(str(named["q"]), ()))
                time.sleep(0.0005)
                with self.lock:
                    if named["n"] != 1:
                        self.queues[str(named["q"])] = seen
            with self.lock:
                return found(*args, **named)

        return locked


METHODS = frozenset(
    op.replace("-", "_") for op in Words.can if hasattr(Words, op.replace("-", "_"))
)
OF_CLIENTS = (
    "all have one transaction",
    "a batch looks before it has the lock",
    "a rollback commits",
    "a commit loses its second half",
    # Found after a minute and a half where nothing else runs.
    pytest.param("a drop does not wait for the commit", marks=pytest.mark.night),
    "what is dropped is gone",
    "a batch leaves one out",
)


def searched(mistake: str, most: int | None = None) -> ClientsOutcome:
    system = ThreadedObject(lambda: Locked(mistake))
    properties = default_profile(system).properties
    return search_clients(system, properties, clients=3, seconds=250, seed=1, most=most)


@pytest.mark.slow
def test_clients_of_a_right_queue_with_these_words_find_nothing(tmp_path: Path) -> None:
    outcome = searched("", most=200)
    assert (outcome.violated, outcome.runs) == ("", 200)
    system = ThreadedObject(Locked)
    long = ConcurrentWorkload(clients=4, rate=1000, queues=2, phases=(("load", 2.0),))
    path = tmp_path / "run.jsonl"
    with StreamedRecording(path, Header(run="r", rec="drive", lvl="api", clk="here")) as recording:
        run = run_workload(system, long, recording)
    assert (run.fault, run.unknown, run.drained) == ("", 0, True)
    events = list(complete(read_history(path).events))
    assert sum(e.ev == "publish" and e.ph == "ok" and e.q.endswith(".dead") for e in events) > 5
    found = {p.id: p.check(events).verdict for p in default_profile(system).properties}
    assert Verdict.VIOLATED not in found.values()
    assert {found[id] for id in ("P1", "P2", "P3", "P4")} == {Verdict.OK}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mistake", OF_CLIENTS)
def test_clients_find_each_mistake(mistake: str) -> None:
    assert searched(mistake).violated, mistake
