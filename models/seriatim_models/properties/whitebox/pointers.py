"""SP: how far each consumer has got (article "Strict Ordering")."""

from __future__ import annotations

from collections.abc import Sequence

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Violations
from seriatim_models.properties.whitebox.entries import PerKey
from seriatim_models.properties.whitebox.replay import OnReplay, Replay, when
from seriatim_models.properties.whitebox.state import EntryHistory
from seriatim_models.properties.whitebox.sweep import Offers

SOURCE = "Strict Ordering"


def ahead(pointer: Sequence[int], entry: EntryHistory) -> bool:
    """Whether a pointer has gone past the entry's place."""
    return (pointer[0], pointer[1]) > entry.place or (
        (pointer[0], pointer[1]) == entry.place and bool(pointer[2])
    )


class Sp1(PerKey):
    """A case is a move of a pointer."""

    id = "SP-1"
    sentence = (
        "A pointer moves forward only, except by an explicit rewind "
        "(a released entry, a higher-priority arrival), each by compare-and-set."
    )
    source = SOURCE
    reads = frozenset({"ptr_cas", "consumer"})

    def key(self, e: Event) -> str | None:
        counts = e.ev == "consumer" or catalogue.ok(e)
        return str(catalogue.sub(e)) if counts else None

    def counts(self, e: Event) -> bool:
        return e.ev == "ptr_cas"

    def alone(self, e: Event) -> str | None:
        if e.ev == "consumer":
            return None
        old, new = catalogue.old_pointer(e), catalogue.new_pointer(e)
        how = catalogue.how(e)
        if how != "cas":
            return f"the pointer of {catalogue.sub(e)} was moved by {how}, not by compare-and-set"
        if catalogue.cause(e) == "rewind":
            return (
                f"a rewind took {catalogue.sub(e)} forward, {old} -> {new}" if new > old else None
            )
        return None if new > old else f"an advance took {catalogue.sub(e)} back, {old} -> {new}"

    def pair(self, before: Event, now: Event) -> str | None:
        if "consumer" in (before.ev, now.ev):
            return None  # another consumer of that name begins with a pointer of its own
        left, found = catalogue.new_pointer(before), catalogue.old_pointer(now)
        return None if left == found else f"the pointer was left at {left} and found at {found}"


class Sp2(OnReplay):
    """A case is an entry that is available at rest and that a consumer selects, and a rewind of its pointer."""

    id = "SP-2"
    sentence = (
        "At quiescence no AVAILABLE entry that an open acquiring consumer selects, and whose group nobody else "
        "has acquired messages of, lies behind its pointer."
    )
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for q, shot in h.snapshots.items():
            owners = h.group_owners(q, shot.i)
            available = [
                e
                for e in h.entries.values()
                if e.q == q and e.links and not e.expires
                if e.state.at(shot.i) == ("AVAILABLE", "")
            ]
            for consumer in h.subscriptions:
                if consumer.q != q or not consumer.acquires or not consumer.is_open(shot.i):
                    continue
                tested += sum(catalogue.cause(e) == "rewind" for e in consumer.pointer)
                # Where it stands the queue must say: a design may have more than one pointer for a consumer.
                at_rest = catalogue.consumers(shot).get(consumer.name)
                pointer = consumer.points if at_rest is None else at_rest["pointer"]
                for entry in available:
                    if not consumer.selects(entry):
                        continue
                    if owners.get(entry.group, consumer) is not consumer:
                        continue
                    tested += 1
                    if ahead(pointer, entry):
                        moved = [
                            e for e in consumer.pointer if ahead(catalogue.new_pointer(e), entry)
                        ]
                        since = h.event(entry.state.when[-1])
                        why = (
                            f"{entry.m} is available and {consumer.name} wants it, but its pointer is past it, "
                            f"at {list(pointer)}"
                        )
                        bad.append((why, sorted([since, *moved[-1:]], key=lambda e: e.i)))
        return tested


class Sp3(OnReplay):
    """A case is a move of a pointer other than a rewind."""

    id = "SP-3"
    sentence = "Advancing never skips an AVAILABLE matching entry."
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        offers = Offers(e for e in h.entries.values() if not e.expires)
        moves = [(e, consumer) for consumer in h.subscriptions for e in consumer.pointer]
        for e, consumer in sorted(moves, key=lambda move: move[0].i):
            if catalogue.cause(e) == "rewind":
                continue
            began = h.scan_start(e)
            tested += 1
            old, new = catalogue.old_pointer(e), catalogue.new_pointer(e)
            for entry in offers.selected(consumer, e.i, (new[0], new[1]), (old[0], old[1])):
                since = entry.state.since(began)
                if (
                    since is not None
                    and not ahead(old, entry)
                    and entry.available_through(began, e.i)
                    and (not consumer.acquires or h.group_free(entry, consumer, began, e.i))
                ):
                    why = f"{consumer.name} was moved past {entry.m}, available since {when(h.event(since))}"
                    bad.append((why, [h.event(since), e]))
        return tested


POINTERS = (Sp1(), Sp2(), Sp3())
