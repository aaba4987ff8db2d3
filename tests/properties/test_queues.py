"""Queues that are cleared by columns have the counts of the row-based forms, and none of them a violation."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.history import Event, read_history, table
from seriatim_models.history.complete import complete
from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.audit.findings import RunStatistics, annotated
from seriatim_models.pipeline.synthetic import generate as synthetic
from seriatim_models.pipeline.synthetic.injected import KINDS
from seriatim_models.properties.blackbox import BLACKBOX, at_rest
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder
from seriatim_models.properties.blackbox.strict import WINDOW, StrictOrder
from seriatim_models.properties.blackbox.wakeups import WITHIN
from seriatim_models.properties.columnar import queue_arrays, queues
from seriatim_models.properties.columnar.checks import loaded
from seriatim_models.properties.columnar.columns import Bools
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.queues import ClearedQueues, QueueCheck, RegularQueues
from seriatim_workshop.crosscheck.columnar import by_chunks, history, mutate

from .blackbox_histories import any_history

CHECKED = [p for p in BLACKBOX if queues.clears(p)]
BY_CHECK = {
    name: [p for p in CHECKED if p.queue_check == name]
    for name in sorted({p.queue_check for p in CHECKED})
}
REGULAR, LINES = StrictOrder.queue_check, FirstDeliveryOrder.queue_check
DATA = Path(__file__).parent.parent / "data"
PAUSES = (*[1000] * 40, 2 * WITHIN, 0)


class _Made:
    """Histories of brokers that nearly always give the oldest message."""

    def __init__(self, seed: int, pauses: Sequence[int] = PAUSES) -> None:
        self.pauses = pauses
        self.chance = random.Random(seed)
        self.events: list[Event] = []
        self.t = 0

    def add(self, ev: str, q: str, **fields: Any) -> None:
        self.t += self.chance.choice(self.pauses)
        where = {"conn": f"c-{q[-1]}", "ch": 1, "gen": 1, **fields}
        self.events.append(Event(i=0, ev=ev, lvl="broker", t=self.t, q=q, **where))

    def run(self, steps: int, names: Sequence[str]) -> list[Event]:
        chance = self.chance
        there: dict[str, list[int]] = {q: [] for q in names}
        held: dict[str, list[tuple[int, int, int]]] = {q: [] for q in names}
        unanswered: dict[str, list[int]] = {q: [] for q in names}
        sent, tags = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        for q in names:
            self.add("qos", q, prefetch=3, scope="consumer")
            self.events[-1] = msgspec.structs.replace(self.events[-1], q="")
            self.add("consume", q, ctag="c", ph=chance.choice(["", "ok"]))
        for _ in range(steps):
            q, kind = chance.choice(names), chance.random()
            if kind < 0.35:
                m, sent[q] = sent[q], sent[q] + 1
                self.publish(q, m, "invoke")
                there[q].append(m)
                unanswered[q].append(m)
            elif kind < 0.5 and unanswered[q]:
                self.publish(q, unanswered[q].pop(chance.choice([0, 0, -1])), "ok")
            elif kind < 0.75 and there[q]:
                there[q].sort()
                m = there[q].pop(0 if chance.random() < 0.99 else -1)
                tags[q] += 1
                ch = chance.choice([1, 1, 1, 2])
                held[q].append((m, tags[q], ch))
                self.add(
                    "deliver", q, m=f"{q}{m}", pub=q, pseq=m, dtag=tags[q], ctag=chance.choice("cd"), prefetch=3,
                    scope="consumer", redelivered=chance.random() < 0.1, autoack=False, ch=ch,
                )  # fmt: skip
            elif kind < 0.97 and held[q]:
                m, tag, ch = held[q].pop(chance.randrange(len(held[q])))
                back = chance.random() < 0.4
                there[q] += [m] * back
                self.add(
                    "nack" if back else "ack", q, ph="invoke", ch=ch, ms=[f"{q}{m}"], dtag=tag, requeue=back or None
                )  # fmt: skip
            elif kind > 0.985:
                ev = chance.choice(["cancel", "consume", "ch_close"])
                self.add(ev, q, ctag="" if ev == "ch_close" else "c", ph="ok")
        return self.events

    def publish(self, q: str, m: int, ph: str) -> None:
        self.add("publish", q, conn="p", ph=ph, op=m, m=f"{q}{m}", pub=q, pseq=m)


def made(seed: int) -> list[Event]:
    """The completed history of a seed; in half of them something is changed."""
    of = _Made(seed)
    events = of.run(of.chance.randrange(20, 120), ["qa", "qb", "ra"][: of.chance.randrange(1, 4)])
    for _ in range(of.chance.choice([0, 0, 1, 2])):
        mutate(events, of.chance)
    return list(complete(msgspec.structs.replace(e, i=n) for n, e in enumerate(events)))


SELDOM = frozenset({"m", "ctag", "proc"})
"""What P4 asks for only where somebody polls, or acts without a channel. All else a check names among its columns."""


def batches(
    events: Sequence[Event], cuts: Sequence[int], columns: Collection[str]
) -> Iterator[EventBatch]:
    """The events as chunk files have them, with some columns at hand."""
    edges = sorted({0, len(events), *(c for c in cuts if c < len(events))})
    for a, b in pairwise(edges):
        held = table.columns(list(events[a:b]))
        held = {c: v for c, v in held.items() if v.null_count < len(v)}
        held["n"] = pa.array(range(a, b), pa.int64())
        at_hand = {c: v for c, v in held.items() if c in columns or c == "n"}

        def later(name: str, held: Mapping[str, pa.Array] = held) -> pa.Array | None:
            assert name in SELDOM or name not in held, f"{name} is read in vain later"
            return held.get(name)

        yield EventBatch(pa.RecordBatch.from_pydict(at_hand), later)


def cleared(
    events: Sequence[Event], cuts: Sequence[int] = (), check: str = REGULAR
) -> ClearedQueues | None:
    """The events given in batches."""
    regular: QueueCheck = loaded(check)(BY_CHECK[check])
    for batch in batches(events, cuts, regular.columns):
        regular.take(batch)
    return regular.finish(None)


def _open(regular: RegularQueues) -> dict[str, object]:
    """What is open in each regular queue, without what is stale: who had a message that nobody has."""
    found = dict[str, object]()
    for name, queue in regular.state().queues.items():
        if not queue.irregular:
            messages = {
                m: (of.rank, of.since, of.stream, of.number, of.back, of.since < 0 and (of.by, of.dtag, of.consumer))
                for m, of in queue.messages.items()
            }  # fmt: skip
            fields = {**msgspec.structs.asdict(queue), "messages": messages}
            found[name] = {**fields, "returned": sorted(queue.returned), "early": [*queue.early]}
    return found


def advanced(events: Sequence[Event], cuts: Sequence[int]) -> int:
    """Whole arrays and the loop over rows make the same of each batch. Returns how many queues the arrays advanced."""
    by_arrays, by_rows = (RegularQueues(BY_CHECK[REGULAR]) for _ in range(2))
    counted = 0

    def counting(*of: Any) -> Bools:
        nonlocal counted
        done = queue_arrays.advance(*of)
        counted += int(done.sum())
        return done

    def nothing(rows: Any, names: Any, of: Sequence[Any], within: int) -> Bools:
        return np.zeros(len(of), np.bool_)

    for batch in batches(events, cuts, queues.COLUMNS):
        for regular, way in ((by_arrays, counting), (by_rows, nothing)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(queues, "advance", way)
                regular.take(batch)
        assert by_arrays.finish(None) == by_rows.finish(None)
        if not by_rows.lost:
            assert _open(by_arrays) == _open(by_rows)
    return counted


def compare(events: Sequence[Event], cuts: Sequence[int] = (), counting: str = REGULAR) -> int:
    """What is cleared, and what the rows say of the rest, is what they say of all. Returns the cases of one check."""
    counted = 0
    latest = max((e.t for e in events if e.t is not None), default=None)
    for check, properties in BY_CHECK.items():
        found = cleared(events, cuts, check)
        if found is None:
            continue
        rest = [e for e in events if not e.q or e.q in found.irregular]
        rest.append(Event(i=-1, ev="note", t=latest))
        for p in properties:
            whole, part, cases = p.check(events), p.check(rest), found.cases[p.id]
            assert whole.n_tested == part.n_tested + cases.tested, p.id
            assert whole.n_untestable == part.n_untestable + cases.untestable, p.id
            assert (whole.n_violations, whole.witness) == (part.n_violations, part.witness), p.id
            counted += cases.tested if check == counting else 0
    return counted


@pytest.mark.parametrize("seed", range(150))
def test_arrays_and_rows_leave_the_same_state(seed: int) -> None:
    chance = random.Random(seed)
    events = made(seed) if seed % 3 else history(seed * 3 + 1)
    advanced(events, sorted(chance.sample(range(1, 120), chance.randrange(6))))


def slips(seed: int) -> list[Event]:
    """A short history of one queue, nearly plain: now and then a name is used again, or another one settles."""
    of = _Made(seed, [1000])
    chance = of.chance

    def slip() -> bool:
        return chance.random() < 0.02

    there, held, sent, tag, number = list[tuple[int, int]](), list[tuple[int, int, int]](), 0, 0, 0
    who = chance.choice(["invoke", "invoke", ""])
    for _ in range(chance.randrange(10, 60)):
        kind = chance.random()
        if kind < 0.35:
            for _ in range(chance.choice([1, 1, 2])):
                m = chance.randrange(sent) if sent and slip() else sent
                sent, number = max(sent, m + 1), number if slip() else number + 1
                of.add(
                    "publish",
                    "qa",
                    conn="p",
                    ph="" if slip() else who,
                    m=f"qa{m}",
                    pub="qa",
                    pseq=number,
                )
                there.append((m, number))
        elif kind < 0.5 and sent:
            m = (
                chance.randrange(sent)
                if chance.random() < 0.3
                else max(0, sent - chance.randrange(1, 3))
            )
            of.add("publish", "qa", conn="p", ph="ok", m=f"qa{m}", pub="qa", pseq=m)
        elif kind < 0.7 and there:
            there.sort()
            m, pseq = there.pop(chance.randrange(len(there)) if slip() else 0)
            tag += 1
            held.append((m, tag, pseq))
            of.add(
                "deliver", "qa", m=f"qa{m}", pub="qa", pseq=pseq + slip(), dtag=tag, ctag=chance.choice("cd"),
                prefetch=2, scope="consumer", redelivered=chance.random() < 0.1, autoack=False, nolocal=False,
            )  # fmt: skip
        elif kind < 0.9 and held:
            m, dtag, pseq = held.pop(chance.randrange(len(held)))
            back = chance.random() < 0.4
            there += [(m, pseq)] * back
            of.add(
                "nack" if back else "ack", "qa", ph="invoke", ch=1 + slip(), ms=[f"qa{m}"],
                dtag=dtag + slip(), requeue=back or None,
            )  # fmt: skip
        elif kind > 0.9:
            begins = chance.random() < 0.7 if tag == 0 else slip()
            of.add("consume" if begins else "cancel", "qa", ctag=chance.choice("cde"), ph="ok")
    return list(complete(msgspec.structs.replace(e, i=n) for n, e in enumerate(of.events)))


@pytest.mark.parametrize("part", range(10))
def test_arrays_refuse_what_is_not_plain(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if part % 2:
        for module in (at_rest, queue_arrays):
            monkeypatch.setattr(module, "EARLY_KEPT", 3)
    counted = 0
    for seed in range(part * 40, part * 40 + 40):
        cuts = random.Random(seed).sample(range(1, 60), seed % 4)
        counted += advanced(slips(seed), sorted(cuts))
    assert counted > 10


@pytest.mark.parametrize(("each", "enough"), [(0, 3 * 40), (1, 3 * 30)])
def test_arrays_advance_most_of_what_is_plain(each: int, enough: int) -> None:
    """Of a right broker, whose messages come back now and then, every queue in each of three batches."""
    inject = [(kind, n) for kind in KINDS for n in range(each)]
    made = [e for batch in synthetic.batches(20_000, 40, 0, inject) for e in table.events(batch)]
    events = [msgspec.structs.replace(e, lvl="broker", i=n) for n, e in enumerate(made)]
    assert advanced(events, [7000, 13_000]) >= enough


@pytest.mark.parametrize("seed", range(120))
def test_queues_in_order(seed: int) -> None:
    events = made(seed)
    compare(events, [len(events) // 3, len(events) // 2])


@pytest.mark.parametrize("seed", [*range(8), 1023, 1049, 1066, 1080, 1093])
def test_in_chunk_files(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those from 1000 on have a channel of two queues whose end names one of them."""
    monkeypatch.setattr(chunks, "SLICE", 10)  # so that a few events are worth a task
    monkeypatch.setattr(chunks, "WHOLE", 10)
    events = made(seed)
    expected = [annotated(p, p.check(events), RunStatistics("run")) for p in BLACKBOX]
    assert by_chunks(events) == expected


@pytest.mark.parametrize(("check", "enough"), [(REGULAR, 15), (LINES, 12)])
def test_much_is_cleared_and_some_is_violated(check: str, enough: int) -> None:
    counts = [compare(made(seed), counting=check) for seed in range(60)]
    assert sum(c > 0 for c in counts) > enough
    assert any(p.check(made(seed)).n_violations for p in BY_CHECK[check] for seed in range(60))


@pytest.mark.parametrize("name", ["lockstep", "competing"])
def test_first_deliveries_of_a_client_are_cleared(name: str) -> None:
    """What a client of RabbitMQ recorded has no first delivery that is left to the rows."""
    events = list(complete(read_history(DATA / f"rabbit-classic-{name}.jsonl.gz").events))
    found = cleared(events, [1000, 5000], LINES)
    assert found is not None
    assert not found.irregular
    whole = FirstDeliveryOrder().check(events)
    assert found.cases["P4"] == (whole.n_tested, whole.n_untestable)
    assert whole.n_tested > 2000


@settings(max_examples=100, deadline=None)
@given(events=any_history(), cuts=st.lists(st.integers(1, 60), max_size=4))
def test_any_history(events: list[Event], cuts: list[int]) -> None:
    compare(events, cuts)


@pytest.mark.parametrize("seed", range(0, 90, 2))
def test_mutated_histories(seed: int) -> None:
    compare(history(seed))


def test_a_message_that_waits_beyond_the_window_was_no_choice() -> None:
    """One message comes and goes before another that is there, more often than the window is long."""
    of = _Made(0, [1000])
    of.publish("qa", 0, "invoke")
    of.publish("qa", 1, "invoke")
    for tag in range(1, WINDOW + 10):
        of.add("deliver", "qa", m="qa0", pub="qa", pseq=0, dtag=tag, ctag="c")
        of.add("nack", "qa", ph="invoke", ms=["qa0"], dtag=tag, requeue=True)
    of.add("deliver", "qa", m="qa0", pub="qa", pseq=0, dtag=0, ctag="c")
    of.add("deliver", "qa", m="qa1", pub="qa", pseq=1, dtag=0, ctag="c")
    events = list(complete(msgspec.structs.replace(e, i=n) for n, e in enumerate(of.events)))
    assert compare(events) > WINDOW
    assert compare(events[:-1]) > WINDOW
    assert advanced(events, range(40, len(events), 40)) > 90


@pytest.mark.parametrize("seed", range(60))
def test_a_consumer_of_which_nobody_knows_what_it_refuses(seed: int) -> None:
    """Deliveries of which it is not recorded what their consumer asked for, of messages of others or of its own."""
    chance = random.Random(seed)
    own = chance.choice(["p", "c-a", ""])
    given = [chance.random() < 0.5 for _ in range(2)]
    events = [
        msgspec.structs.replace(
            e,
            nolocal=None if e.ev == "deliver" and given[e.conn == "c-a"] else e.nolocal,
            conn=own if e.conn == "p" else e.conn,
        )
        for e in made(seed)
    ]
    compare(events, [len(events) // 2])


@pytest.mark.parametrize(("sender", "regular"), [("p", True), ("", False), ("c-a", False)])
def test_who_may_have_refused_is_judged_by_rows(sender: str, regular: bool) -> None:
    """Two messages are there, and the later one is given first to a consumer that may not want its own."""
    of = _Made(0, [1000])
    for m in (0, 1):
        of.publish("qa", m, "invoke")
    of.publish("ra", 0, "invoke")
    for q in ("qa", "ra"):
        of.add("deliver", q, m=f"{q}0", pub=q, pseq=0, dtag=1, ctag="c")
    events = [
        msgspec.structs.replace(e, i=n, t_lo=e.t, conn=sender if e.conn == "p" else e.conn)
        for n, e in enumerate(of.events)
    ]
    found = cleared(events)
    assert found is not None
    assert ("qa" not in found.irregular) == regular
    compare(events)


def test_another_place_for_what_was_given_back_is_left_to_the_rows() -> None:
    assert queues.clears(StrictOrder())
    assert not queues.clears(StrictOrder(returned=False))
