"""FQ: deficit weighted round robin serves in proportion, and its loop neither spins nor oversleeps.

The events are those of `catalogue.FAIR`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import combinations

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import ModelHistory, Violations

SOURCE = "Fair Consuming with RabbitMQ"
DRR = "Shreedhar & Varghese 1996"


class OfSlots(ModelHistory):
    """A property of the slots; `reads` names its events."""

    source = SOURCE

    @staticmethod
    def known(events: Iterable[Event]) -> list[Event]:
        """The events without those that name a slot of which the recording has no `slot` event."""
        held = list(events)
        slots = {catalogue.slot(e) for e in held if e.ev == "slot"}
        return [e for e in held if "slot" not in e.args or catalogue.slot(e) in slots]

    @staticmethod
    def quanta(events: Iterable[Event]) -> dict[str, int]:
        """The quantum of each slot."""
        return {catalogue.slot(e): catalogue.quantum(e) for e in events if e.ev == "slot"}

    @staticmethod
    def heaviest(events: Iterable[Event]) -> int:
        """The weight of the heaviest delivery, 0 if there was none."""
        return max((catalogue.weight(e) for e in events if e.ev == "arrive"), default=0)


class Fq1(OfSlots):
    """A case is a visit of a slot."""

    id = "FQ-1"
    sentence = "After every visit 0 <= deficit < weight of the slot's first delivery; an idle slot's deficit is 0."
    source = f"{SOURCE}; {DRR}"
    reads = frozenset({"slot", "arrive", "take", "visit"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        """What is first is known from arrivals and takes, not from what the visit says of the slot."""
        tested = 0
        waiting: dict[str, deque[int]] = {}
        for e in self.known(events):
            slot = catalogue.slot(e)
            weights = waiting.setdefault(slot, deque())
            if e.ev == "arrive":
                weights.append(catalogue.weight(e))
            elif e.ev == "take" and weights:
                weights.popleft()
            elif e.ev == "visit":
                tested += 1
                deficit = catalogue.deficit(e)
                if not weights and deficit:
                    bad.append((f"{slot} is idle with deficit {deficit}", [e]))
                elif weights and not 0 <= deficit < weights[0]:
                    why = f"{slot} has deficit {deficit} after a visit, its first delivery weighs {weights[0]}"
                    bad.append((why, [e]))
        return tested


class Fq2(OfSlots):
    """A case is a delivery that is taken while two slots are busy."""

    id = "FQ-2"
    sentence = (
        "Between two slots i, j busy through any interval, service over quantum differs by at most "
        "1 + W/Qi + W/Qj, W the largest weight."
    )
    source = DRR
    reads = frozenset({"slot", "arrive", "take"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        """Over an interval the difference is that of two points of a running sum, so its extremes suffice."""
        events = self.known(events)
        quanta, most = self.quanta(events), self.heaviest(events)
        tested = 0
        for one, two in combinations(quanta, 2):
            limit = 1 + most / quanta[one] + most / quanta[two]
            waiting = {one: 0, two: 0}
            low = high = now = 0.0
            for e in events:
                slot = catalogue.slot(e)
                if slot not in waiting or e.ev == "slot":
                    continue
                waiting[slot] += 1 if e.ev == "arrive" else -1
                if not all(waiting.values()):
                    low = high = now = 0.0  # one is idle: whatever comes is another interval
                    continue
                if e.ev == "take":
                    tested += 1
                    now += (1 if slot == one else -1) * catalogue.weight(e) / quanta[slot]
                    low, high = min(low, now), max(high, now)
                    if high - low > limit + 1e-9:
                        why = (
                            f"{one} and {two} differ by {high - low:.2f}; the bound is {limit:.2f}"
                        )
                        bad.append((why, [e]))
        return tested


class Fq3(OfSlots):
    """A case is a delivery that arrives."""

    id = "FQ-3"
    sentence = (
        "A delivery of weight w that is first in its slot is taken in one of the first ceil(w/Q) rounds that begin "
        "while it is, unless the loop is asked to end before; and while the loop runs nothing waits for ever. "
        "What was taken is settled once."
    )
    kind = "liveness"
    source = f"{SOURCE}; {DRR}"
    reads = frozenset(
        {"slot", "arrive", "take", "round", "interrupted", "stopping", "stopped", "fair_rest"}
    )

    def cases(self, events: list[Event], bad: Violations) -> int:
        """The bound is tight: a deficit is at least 0 when the delivery comes first, and each round adds Q to it.

        A round that an error of `settle` interrupts may not have come to the slot; one that begins after the loop was
        asked to end comes to none, and the one before that not to all.
        """
        self._settled(events, bad)
        events = self.known(events)
        quanta = self.quanta(events)
        waiting: dict[str, deque[int]] = {slot: deque() for slot in quanta}
        rounds = dict.fromkeys(quanta, 0)
        """How many rounds have begun since the slot's first delivery is the first."""
        ended = ""
        """"stopping" when the loop was asked to end, "stopped" when it has ended."""
        tested = 0
        for e in events:
            if e.ev == "arrive":
                tested += 1
                waiting[catalogue.slot(e)].append(catalogue.weight(e))
            elif e.ev == "take":
                slot = catalogue.slot(e)
                rounds[slot] = 0
                if waiting[slot]:
                    waiting[slot].popleft()
            elif e.ev == "round" and not ended:
                for slot, weights in waiting.items():
                    rounds[slot] += bool(weights)
                    if weights and rounds[slot] > -(-weights[0] // quanta[slot]):
                        why = f"{slot} was busy and not served for {rounds[slot] - 1} rounds"
                        bad.append((why, [e]))
            elif e.ev == "interrupted":
                rounds = {slot: max(0, n - 1) for slot, n in rounds.items()}
            elif e.ev in ("stopping", "stopped"):
                ended = e.ev
            elif e.ev == "fair_rest" and ended != "stopped":
                left = [slot for slot, weights in waiting.items() if weights]
                if left:
                    bad.append((f"{', '.join(left)} will never be served", [e]))
        return tested

    @staticmethod
    def _settled(events: list[Event], bad: Violations) -> None:
        """Add where more or fewer deliveries were settled than taken, if settlements are recorded."""
        taken = sum(e.ev == "take" for e in events)
        for e in events:
            if e.ev == "fair_rest" and len(e.args.get("settlements", [0] * taken)) != taken:
                bad.append((f"{taken} were taken and {len(e.args['settlements'])} settled", [e]))


class Fq4(OfSlots):
    """A case is a return from parking, and the end of a run."""

    id = "FQ-4"
    sentence = (
        "Tokens equal waiting deliveries whenever the loop parks: it neither spins on an empty set "
        "nor sleeps on a full one. No slot holds more than its prefetch."
    )
    reads = frozenset({"slot", "arrive", "take", "unpark", "stopped", "fair_rest"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        """A token that `stop` gave wakes the loop with nothing waiting, and that is what it is for.

        What is delivered to a slot that the loop does not have, if its slots were recorded, waits for nobody.
        """
        room = {catalogue.slot(e): e.prefetch for e in events if e.ev == "slot"}
        if room:
            events = [e for e in self.known(events) if e.ev != "slot"]
        waiting = tested = 0
        held = dict.fromkeys(room, 0)
        empty: Event | None = None
        for e in events:
            if e.ev in ("arrive", "take"):
                more = 1 if e.ev == "arrive" else -1
                waiting += more
                slot = catalogue.slot(e)
                held[slot] = held.get(slot, 0) + more
                most = room.get(slot)
                if more > 0 and most is not None and held[slot] > most:
                    bad.append(
                        (f"{slot} holds {held[slot]} deliveries, its prefetch is {most}", [e])
                    )
            elif e.ev == "stopped":
                empty = None
            elif e.ev == "unpark":
                tested += 1
                empty = e if waiting == 0 else empty
            else:
                tested += 1
                if catalogue.tokens(e) != waiting:
                    why = f"{catalogue.tokens(e)} tokens and {waiting} deliveries waiting at rest"
                    bad.append((why, [e]))
        if empty is not None:
            bad.append(("the loop was woken and nothing was waiting", [empty]))
        return tested


class Fq5(OfSlots):
    """A case is a slot of a simulation."""

    id = "FQ-5"
    sentence = (
        "The article's two tables come out of the model: proportional rates when the consumer is the "
        "bottleneck, flat rates when the broker's push is."
    )
    reads = frozenset({"rates"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        tested = 0
        for e in events:
            pairs = zip(catalogue.expected(e), catalogue.served(e), strict=True)
            for k, (expected, served) in enumerate(pairs):
                tested += 1
                if abs(served - expected) > catalogue.tolerance(e) * expected:
                    bad.append((f"slot {k} was served {served} times, not {expected}", [e]))
        return tested


FAIR = (Fq1(), Fq2(), Fq3(), Fq4(), Fq5())
