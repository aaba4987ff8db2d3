"""SP: how far each consumer has got (article "Strict Ordering")."""

from __future__ import annotations

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.whitebox.entries import PerKey, Violations
from seriatim_models.properties.whitebox.replay import OnReplay, Replay
from seriatim_models.properties.whitebox.state import EntryHistory
from seriatim_models.properties.whitebox.sweep import Offers

SOURCE = "Strict Ordering"


def ahead(pointer: list[int], entry: EntryHistory) -> bool:
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
    kind = "safety"
    reads = frozenset({"ptr_cas"})

    def key(self, e: Event) -> str | None:
        return str(catalogue.sub(e)) if e.ev == "ptr_cas" and catalogue.ok(e) else None

    def alone(self, e: Event) -> str | None:
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
        left, found = catalogue.new_pointer(before), catalogue.old_pointer(now)
        return None if left == found else f"the pointer was left at {left} and found at {found}"


class Sp2(OnReplay):
    """A case is an entry in a snapshot that a consumer wants."""

    id = "SP-2"
    sentence = (
        "At quiescence no AVAILABLE entry that an acquiring subscription wants lies behind its pointer, "
        "uncovered by a rewind."
    )
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        for q, shot in h.snapshots.items():
            groups = catalogue.groups(shot)
            for name, state_of in catalogue.consumers(shot).items():
                consumer = h.consumers.get(name)
                if consumer is None or not consumer.acquires:
                    continue
                for m, _, state, _ in catalogue.entries(shot):
                    entry = h.entries.get(m)
                    if entry is None or not consumer.selects(entry) or entry.q != q:
                        continue
                    if entry.expires or groups.get(entry.group, name) != name:
                        continue
                    tested += 1
                    if state == "AVAILABLE" and ahead(state_of["pointer"], entry):
                        moved = [
                            e for e in consumer.pointer if ahead(catalogue.new_pointer(e), entry)
                        ]
                        since = [h.event(i) for i in entry.state.when[-1:]]
                        evidence = sorted([*since, *moved[-1:]], key=lambda e: e.i)
                        bad.append(
                            (
                                f"{m} is available and {name} wants it, but its pointer is past it, "
                                f"at {state_of['pointer']}",
                                evidence or [shot],  # an entry that was overwritten has no past
                            )
                        )
        return Finding.of(self.id, tested, bad)


class Sp3(OnReplay):
    """A case is a move of a pointer other than a rewind."""

    id = "SP-3"
    sentence = "Advancing never skips an AVAILABLE matching entry."
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        offers = Offers(e for e in h.entries.values() if not e.expires)
        moves = [(e, consumer) for consumer in h.consumers.values() for e in consumer.pointer]
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
                    bad.append(
                        (
                            f"{consumer.name} was moved past {entry.m}, available since {since}",
                            [h.event(since), e],
                        )
                    )
        return Finding.of(self.id, tested, bad)


POINTERS = (Sp1(), Sp2(), Sp3())
