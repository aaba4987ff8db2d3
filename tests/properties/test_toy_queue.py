"""A queue of somebody else's, which records white-box events as `spec/HISTORY.md` has them, is judged like ours.

`ToyQueue` and `ToyScheduler` are written from that page alone: they know nothing of the reference or of the package.
Each can be given a mistake, and then the property that is about it, and no other, reports a violation.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seriatim_models.history import read_history
from seriatim_models.properties import PROPERTIES, WHITEBOX, Finding, Verdict
from seriatim_models.properties.whitebox.composites import COMPOSITES


class Recording:
    """Lines of qh/1."""

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = [
            {"schema": "qh/1", "run": "toy", "rec": "toy", "lvl": "model"}
        ]

    def say(self, ev: str, args: dict[str, object] | None = None, **envelope: object) -> None:
        line = {"i": len(self.lines), "t": len(self.lines), "ev": ev, "proc": "main", **envelope}
        self.lines.append({**line, "args": args} if args else line)


class ToyQueue:
    """Messages in a list, consumers that are notified one at a time and then pull."""

    def __init__(self, record: Recording, mistake: str = "") -> None:
        self.record, self.mistake = record, mistake
        self.state: dict[str, tuple[str, str]] = {}
        self.place: dict[str, list[int]] = {}
        self.pointer: dict[str, list[int]] = {}
        self.listed: dict[str, str] = {}
        self.depth = 0
        record.say("queue", {"kind": "pull"}, q="q")

    def consumer(self, name: str) -> None:
        self.record.say("consumer", {"sub": name, "acquires": True}, q="q")
        self.pointer[name], self.listed[name] = [0, 0, 0], "Removed"
        self.move(name, "Interested")

    def move(self, name: str, new: str) -> None:
        for at in ("leave", "enter"):
            self.record.say(
                "qcm_move", {"sub": name, "old": self.listed[name], "new": new, "at": at}
            )
        self.listed[name] = new

    def notify(self) -> None:
        waiting = [name for name, where in self.listed.items() if where == "Interested"]
        if waiting and self.mistake != "forgets to notify":
            self.move(waiting[0], "Notified")
            self.record.say("notify", {"sub": waiting[0]})

    def enqueue(self, m: str) -> None:
        self.record.say("enqueue", ph="invoke", q="q", m=m)
        self.depth += 1
        self.place[m], self.state[m] = [0, len(self.place) + 1], ("AVAILABLE", "")
        self.record.say("link", {"list": "q", "node": m, "place": self.place[m]})
        self.notify()
        self.record.say("enqueue", ph="ok", m=m)

    def change(self, m: str, new: str, consumer: str) -> None:
        old, owner = self.state[m]
        self.state[m] = (new, consumer if new == "ACQUIRED" else "")
        how = "set" if self.mistake == "checks, then sets" else "cas"
        args = {"how": how, "old": old, "new": new, "sub": consumer or owner, "ok": True}
        self.record.say("entry_cas", args, m=m)

    def point(self, name: str, new: list[int], cause: str) -> None:
        args = {"sub": name, "how": "cas", "old": self.pointer[name], "new": new}
        self.record.say("ptr_cas", {**args, "cause": cause, "ok": True})
        self.pointer[name] = new

    def pull(self, name: str) -> str:
        self.record.say("pull", {"sub": name}, ph="invoke")
        self.move(name, "Interested")
        self.record.say("attempt", {"sub": name}, ph="invoke")
        found = self.next_available(name)
        if found:
            self.point(name, [*self.place[found], 0], "advance")
            self.change(found, "ACQUIRED", name)
            self.record.say("deliver", {"sub": name}, m=found)
        self.record.say("attempt", {"sub": name}, ph="ok", m=found)
        if found:
            self.move(name, "Notified")
        self.record.say("pull", {"sub": name}, ph="ok", m=found)
        return found

    def next_available(self, name: str) -> str:
        ahead = [m for m, place in self.place.items() if [*place, 0] > self.pointer[name]]
        there = [m for m in ahead if self.state[m][0] == "AVAILABLE"]
        return there[0] if there else ""

    def dequeue(self, name: str, m: str) -> None:
        self.record.say("dequeue", {"sub": name}, ph="invoke", m=m)
        if self.mistake != "skips a state":
            self.change(m, "DEQUEUED", name)
        if self.mistake != "miscounts":
            self.depth -= 1
        self.change(m, "DELETED", "")
        self.record.say("unlink", {"list": "q", "node": m})
        self.record.say("dequeue", {"sub": name}, ph="ok", m=m)

    def release(self, name: str, m: str) -> None:
        self.record.say("release", {"sub": name}, ph="invoke", m=m)
        self.change(m, "AVAILABLE", name)
        for other, pointer in self.pointer.items():
            if pointer >= [*self.place[m], 0] and self.mistake != "forgets to rewind":
                self.point(other, [0, 0, 0], "rewind")
        self.notify()
        self.record.say("release", {"sub": name}, ph="ok", m=m)

    def rest(self) -> None:
        there = [(m, s) for m, s in self.state.items() if s[0] != "DELETED"]
        names = list(self.pointer)
        lists = {where: [n for n in names if self.listed[n] == where] for where in LISTS}
        consumers = {
            n: {"pointer": p, "credit": None, "wants_work": True} for n, p in self.pointer.items()
        }
        snapshot: dict[str, object] = {
            "entries": [[m, self.place[m], state, owner] for m, (state, owner) in there],
            "depth": self.depth,
            "groups": {},
            "lists": {
                "q.All": [names, len(names)],
                **{f"q.{where}": [members, len(members)] for where, members in lists.items()},
            },
            "consumers": consumers,
        }
        self.record.say("snapshot", snapshot, q="q")


LISTS = ("NotInterested", "Interested", "Notified")


class ToyScheduler:
    """Deficit round robin over two slots."""

    def __init__(self, record: Recording, mistake: str = "") -> None:
        self.record, self.mistake = record, mistake
        self.waiting: dict[str, list[int]] = {"a": [], "b": []}
        self.deficit = {"a": 0, "b": 0}
        for slot in self.waiting:
            record.say("slot", {"slot": slot, "quantum": 2})

    def arrive(self, slot: str, weight: int) -> None:
        self.record.say("arrive", {"slot": slot, "weight": weight})
        self.waiting[slot].append(weight)

    def round(self) -> None:
        self.record.say("round")
        for slot, weights in self.waiting.items():
            self.deficit[slot] += 2 if weights else 0
            while weights and weights[0] <= self.deficit[slot]:
                self.deficit[slot] -= weights[0]
                self.record.say("take", {"slot": slot, "weight": weights.pop(0)})
            if not weights and self.mistake != "keeps the deficit":
                self.deficit[slot] = 0
            visit = {"slot": slot, "deficit": self.deficit[slot], "empty": not weights}
            self.record.say("visit", {**visit})

    def rest(self) -> None:
        n = sum(map(len, self.waiting.values()))
        self.record.say("fair_rest", {"tokens": n, "waiting": n})


def recorded(mistake: str, path: Path) -> dict[str, Finding]:
    """What P16 to P19 and ES-5 find in a run of both, written to a file and read back."""
    record = Recording()
    queue = ToyQueue(record, mistake)
    for name in ("A", "B"):
        queue.consumer(name)
    for m in ("m1", "m2", "m3"):
        queue.enqueue(m)
    returned = False
    while ready := [name for name, where in queue.listed.items() if where == "Notified"]:
        for name in ready:
            m = queue.pull(name)
            if m == "m1" and not returned:
                returned = True
                queue.pull("B")  # which is past m1 by now
                queue.release(name, m)
                queue.dequeue("B", "m2")
            elif m:
                queue.dequeue(name, m)
    queue.rest()
    scheduler = ToyScheduler(record, mistake)
    for slot, weight in (("a", 1), ("a", 3), ("b", 1)):
        scheduler.arrive(slot, weight)
    for _ in range(3):
        scheduler.round()
    scheduler.rest()
    path.write_text("".join(json.dumps(line) + "\n" for line in record.lines), encoding="utf-8")
    history = read_history(path)
    assert not history.quarantine
    return {p.id: p.check(history.events) for p in (*COMPOSITES, PROPERTIES["ES-5"])}


def test_a_toy_queue_that_is_right_is_found_right(tmp_path: Path) -> None:
    found = recorded("", tmp_path / "toy.jsonl")
    assert {f.property: f.verdict for f in found.values()} == dict.fromkeys(found, Verdict.OK)
    assert all(f.n_tested for f in found.values())


@pytest.mark.parametrize(
    ("mistake", "violated"),
    [
        ("skips a state", {"P16": "ES-1: m"}),
        ("checks, then sets", {"P16": "ES-1: m1 went AVAILABLE -> ACQUIRED by set"}),
        ("forgets to rewind", {"P17": "SP-2: m1 is available", "P18": "WK-1: "}),
        ("forgets to notify", {"P18": "WK-1: "}),
        ("keeps the deficit", {"P19": "FQ-1: b is idle with deficit"}),
        ("miscounts", {"ES-5": "the counter says"}),
    ],
)
def test_a_mistake_is_found_by_the_property_that_is_about_it(
    mistake: str, violated: dict[str, str], tmp_path: Path
) -> None:
    found = recorded(mistake, tmp_path / "toy.jsonl")
    assert {id for id, f in found.items() if f.verdict is Verdict.VIOLATED} == set(violated)
    for id, why in violated.items():
        assert found[id].explanation.startswith(why)


def test_a_recording_with_lost_lines_can_be_judged(tmp_path: Path) -> None:
    """Whatever is missing: other events may name what was in it."""
    recorded("", tmp_path / "toy.jsonl")
    events = read_history(tmp_path / "toy.jsonl").events
    for lost in range(len(events)):
        for kept in (events[:lost] + events[lost + 1 :], events[lost:]):
            for p in (*COMPOSITES, *WHITEBOX):
                assert p.check(kept).property == p.id
