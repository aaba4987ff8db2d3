"""The fair consumer: the published tables, the laws behind them, real threads, and what it refuses."""

import threading

import pytest

from seriatim.fair import FairConsumer, Overrun, Slot
from seriatim.host import Threads
from seriatim_models.programs import PROGRAMS, Mutant, check_program
from seriatim_models.programs.base import edits_of
from seriatim_models.programs.fair_mutants import OUTSIDE, REPAIRED
from seriatim_models.programs.fair_simulation import PUSH, TABLES, compare, simulate


@pytest.mark.slow
def test_both_published_tables_come_out() -> None:
    for name, seconds in (("100 us", 27.448), ("1 us", 9.917)):
        table = compare(name)
        assert table.largest < TABLES[name][2], name
        assert abs(table.outcome.seconds - seconds) < 0.02
        assert table.outcome.permits < 10 * 50


def test_tables_do_not_hang_on_exact_times() -> None:
    """Times drawn from half to one and a half of their own leave proportional what was, and flat what was."""
    shares = [compare(name, 40_000, jitter=0.5, seed=3).outcome.served for name in TABLES]
    assert 9 < shares[0][-1] / shares[0][0] < 11
    assert max(shares[1]) / min(shares[1]) < 1.2
    assert compare("1 us", 5000, 0.5, 3) == compare("1 us", 5000, 0.5, 3)
    assert compare("1 us", 5000, 0.5, 3) != compare("1 us", 5000, 0.5, 4)


def test_rejects_a_jitter_that_would_turn_time_back() -> None:
    with pytest.raises(ValueError, match=r"jitter is from 0 to 1, not 1\.5"):
        simulate(1.0, jitter=1.5)


@pytest.mark.parametrize(
    ("prefetch", "shares"),
    [
        (1, [1] * 10),
        (2, list(range(1, 11))),
        (10, list(range(1, 11))),
        (50, list(range(1, 11))),
    ],
)
def test_one_delivery_ahead_is_enough_for_a_broker_that_answers_at_once(
    prefetch: int, shares: list[int]
) -> None:
    """Without any, each visit finds its slot empty after one delivery, and all are equal."""
    total = 400 * sum(shares)
    served = simulate(1.0, prefetch=prefetch, total=total, push=1e-6).served
    assert all(abs(n - 400 * s) <= 2 * s for n, s in zip(served, shares, strict=True)), served


@pytest.mark.parametrize(
    ("ratio", "low", "high"),
    [
        pytest.param(0.5, 1.0, 1.05, marks=pytest.mark.slow),
        (1.0, 1.0, 1.1),
        (1.1, 9.6, 10.1),
        pytest.param(2, 9.7, 10.1, marks=pytest.mark.slow),
    ],
)
def test_proportional_turns_flat_where_pushing_is_slower_than_serving(
    ratio: float, low: float, high: float
) -> None:
    served = simulate(ratio * PUSH, total=200_000).served
    assert low <= max(served) / min(served) <= high


def test_weights_above_the_quantum_keep_the_ratio() -> None:
    served = simulate(1.0, quanta=(1, 2), weight=5, total=3000, push=1e-3).served
    assert abs(served[1] / served[0] - 2) < 0.02


def test_threads_serve_everything_once_and_stop() -> None:
    """Two brokers push as they are allowed to; every third handler raises."""
    served: list[tuple[str, int]] = []
    settled: list[tuple[tuple[str, int], bool]] = []
    room = {name: threading.Semaphore(8) for name in "ab"}

    def handler(delivery: tuple[str, int]) -> None:
        served.append(delivery)
        if delivery[1] % 3 == 0:
            raise ValueError("every third")

    def settle(delivery: tuple[str, int], well: bool) -> None:
        settled.append((delivery, well))
        room[delivery[0]].release()

    slots = {
        name: Slot[tuple[str, int]](name, q, 8, lambda d: 1 + d[1] % 4)
        for name, q in (("a", 3), ("b", 1))
    }
    consumer = FairConsumer(Threads(), slots.values(), handler, settle)

    def broker(name: str) -> None:
        for k in range(2000):
            assert room[name].acquire(timeout=20)
            consumer.deliver(slots[name], (name, k))

    loop = threading.Thread(target=consumer.run)
    brokers = [threading.Thread(target=broker, args=(n,)) for n in "ab"]
    for thread in [loop, *brokers]:
        thread.start()
    for thread in brokers:
        thread.join(30)
    for name in "ab":
        for _ in range(8):  # all room is there again when all was settled
            assert room[name].acquire(timeout=20)
    consumer.stop()
    loop.join(20)
    assert not loop.is_alive()
    for name in "ab":
        assert [k for n, k in served if n == name] == list(range(2000))
    assert all(well == (d[1] % 3 != 0) for d, well in settled)
    assert not consumer.tokens.try_acquire()


def test_rejects_what_cannot_be_paid() -> None:
    with pytest.raises(ValueError, match="slot p: quantum=0 and prefetch=1 must be positive"):
        Slot[int]("p", 0, 1)
    with pytest.raises(ValueError, match="slot p: quantum=-4 "):
        Slot[int]("p", -4, 1)
    with pytest.raises(ValueError, match="slot p: quantum=1 and prefetch=0 must be positive"):
        Slot[int]("p", 1, 0)
    slot = Slot[int]("p", 1, 1, lambda d: d)
    consumer = FairConsumer(Threads(), [slot], lambda d: None, lambda d, well: None)
    for weight in (0, -1):
        with pytest.raises(ValueError, match=f"slot p: a weight is positive, not {weight}"):
            consumer.deliver(slot, weight)
    assert not consumer.tokens.try_acquire()


def test_rejects_a_slot_that_nobody_serves() -> None:
    consumer = FairConsumer[int](Threads(), [], lambda d: None, lambda d, well: None)
    with pytest.raises(ValueError, match="slot p is not one of this consumer's"):
        consumer.deliver(Slot("p", 1, 1), 1)
    assert not consumer.tokens.try_acquire()


def test_a_loop_that_was_asked_to_end_ends_once_and_does_not_run_again() -> None:
    """A second `stop` leaves no token behind, and a second `run` neither sleeps nor serves."""
    slot = Slot[int]("p", 1, 1)
    consumer = FairConsumer(Threads(), [slot], lambda d: None, lambda d, well: None)
    consumer.stop()
    consumer.stop()
    consumer.run()
    consumer.deliver(slot, 1)
    consumer.run()
    assert [w for w, _ in slot.waiting] == [1]
    assert consumer.tokens.try_acquire()
    assert not consumer.tokens.try_acquire()


def test_rejects_more_than_the_prefetch() -> None:
    slot = Slot[int]("p", 1, 1)
    consumer = FairConsumer(Threads(), [slot], lambda d: None, lambda d, well: None)
    consumer.deliver(slot, 1)
    with pytest.raises(Overrun, match="slot p: a delivery beyond its prefetch 1"):
        consumer.deliver(slot, 1)
    assert len(slot.waiting) == 1


@pytest.mark.parametrize(
    ("id", "property"),
    [
        (p.id, q)
        for p in PROGRAMS.values()
        if p.reference == "fair" and p.id != "fair-settle-fails"
        for q in p.properties
    ],
)
def test_the_published_repair_is_right_where_nothing_is_raised_or_dropped(
    id: str, property: str
) -> None:
    """Its blocking acquire waits for tokens that come late, and they come: no mutant, though it looks like one."""
    repair = Mutant("repair", "", "", "fair", edits_of(f"{REPAIRED}@@{OUTSIDE}"), property, id, 0)
    result = check_program(PROGRAMS[id], repair)
    assert result.explored.verdict == "ok", result.explored.why


def test_error_of_settle_ends_run_which_may_be_called_again() -> None:
    slot = Slot[int]("p", 3, 3)
    settled: list[int] = []
    errors = [ConnectionError("the channel is closed")]

    def settle(delivery: int, well: bool) -> None:
        if errors:
            raise errors.pop()
        settled.append(delivery)
        if len(settled) == 2:
            consumer.stop()

    consumer = FairConsumer(Threads(), [slot], lambda d: None, settle)
    for k in range(3):
        consumer.deliver(slot, k)
    with pytest.raises(ConnectionError, match="the channel is closed"):
        consumer.run()
    consumer.run()
    assert settled == [1, 2]
    assert not consumer.tokens.try_acquire()


def test_a_delivery_is_weighed_once() -> None:
    """Its weight is that of its arrival: weighed again when it is taken, it would be under the lock."""
    weighed: list[str] = []
    handled: list[str] = []

    def weight(delivery: str) -> int:
        weighed.append(delivery)
        return 1 + len(weighed)

    slot = Slot("s", 1, 2, weight)
    consumer = FairConsumer(Threads(), [slot], handled.append, lambda delivery, well: None)
    for delivery in "ab":
        consumer.deliver(slot, delivery)
    for _ in range(5):
        assert consumer.park()
        consumer.round()
    assert (weighed, handled) == (["a", "b"], ["a", "b"])
