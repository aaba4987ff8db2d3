"""Operations that are one line each, with the bounds between which they happened, in the order of their ends or begins.

So a trace or a table of calls is written. Or without bounds: when they begin, or when they return. Or as two lines
that no number joins. A right queue recorded in these ways is not reported; a wrong one is.
"""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.history import read_history
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.own import load_property

SEEDS = 60
Written = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class Clients:
    """Four clients of one queue, each of whose calls has its effect at some instant between its begin and its end."""

    def __init__(self, seed: int, mistake: str = "") -> None:
        self.random = random.Random(seed)
        self.mistake = mistake
        self.queue: deque[str] = deque()
        self.calls: list[dict[str, Any] | None] = [None] * 4
        self.held: list[list[dict[str, Any]]] = [[], [], [], []]
        self.lines: list[dict[str, Any]] = []
        self.sent = 0

    def run(self, autoack: bool) -> list[dict[str, Any]]:
        """The lines of 160 steps, after which no call begins and those under way end."""
        now = 0
        for step in range(320):
            now += self.random.choice([0, 1, 1, 4])
            client = self.random.randrange(4)
            call = self.calls[client]
            if call is None:
                self.calls[client] = self.begin(client, now) if step < 160 else None
            elif not call.pop("done", False):
                self.happen(call)
            else:
                self.calls[client] = None
                self.end(client, call, now, autoack)
        assert self.calls == [None] * 4
        return self.lines

    def begin(self, client: int, now: int) -> dict[str, Any]:
        """A call that begins."""
        ev = self.random.choice(
            ["publish", "publish", "get", "get", *(["ack"] if self.held[client] else [])]
        )
        call = {
            "ev": ev,
            "t_lo": now,
            "q": "q",
            "conn": f"c{client}",
            "ch": 1,
            "proc": f"p{client}",
        }
        if ev == "publish":
            self.sent += 1
            call["m"] = f"m{self.sent}"
        elif ev == "ack":
            call |= self.held[client].pop(0)
        return call

    def happen(self, call: dict[str, Any]) -> None:
        """Its effect."""
        call["done"] = True
        if call["ev"] == "publish":
            self.queue.append(call["m"])
        elif call["ev"] == "get" and self.queue:
            call["m"] = self.queue.pop() if self.mistake == "stack" else self.queue.popleft()
            if self.mistake == "twice" and self.random.random() < 0.1:
                self.queue.appendleft(call["m"])
        elif call["ev"] == "get" and self.mistake == "phantom":
            call["m"] = "nobody's"

    def end(self, client: int, call: dict[str, Any], now: int, autoack: bool) -> None:
        """Write down a call."""
        if call["ev"] == "get" and "m" in call:
            call["autoack"] = autoack
            if not autoack:
                call["dtag"] = 1 + sum(line.get("dtag") is not None for line in self.lines)
                self.held[client].append({"ms": [call["m"]], "dtag": call["dtag"]})
        self.lines.append({**call, "t": now, "t_hi": now})


def ends(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each call, without bounds, in the order in which they returned."""
    return [{k: v for k, v in line.items() if k not in ("t_lo", "t_hi")} for line in lines]


def begins(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each call: what is sent when it is sent, what is got when it is there."""
    timed = [{**line, "t": line["t"] if line["ev"] == "get" else line["t_lo"]} for line in lines]
    return sorted(ends(timed), key=lambda line: int(line["t"]))


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As `ends`, by a recorder without a clock."""
    return [{k: v for k, v in line.items() if k != "t"} for line in ends(lines)]


def phases(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two lines for each call."""
    timed: list[tuple[int, int, int, dict[str, Any]]] = []
    for k, line in enumerate(lines):
        asked = ("m", "dtag") if line["ev"] == "get" else ()
        [end] = ends([line])
        begin = {x: v for x, v in end.items() if x not in asked}
        timed.append((line["t_lo"], k, 0, {**begin, "t": line["t_lo"], "ph": "invoke"}))
        timed.append((line["t"], k, 1, {**end, "ph": "ok"}))
    return [line for *_, line in sorted(timed, key=lambda entry: entry[:3])]


def judged(
    path: Path, lines: list[dict[str, Any]], by_begin: bool, scale: int
) -> tuple[dict[str, str], Counter[str]]:
    """What is reported of lines with bounds, by property, and the cases of each."""
    if by_begin:
        lines = sorted(lines, key=lambda line: line["t_lo"])
    times = [{k: line[k] * scale for k in ("t", "t_lo", "t_hi")} for line in lines]
    return audited(path, [{**line, **t} for line, t in zip(lines, times, strict=True)])


def audited(path: Path, lines: list[dict[str, Any]]) -> tuple[dict[str, str], Counter[str]]:
    """What is reported, by property, and the cases of each."""
    header = {"schema": "qh/1", "run": "r", "rec": "table", "lvl": "api", "clk": "c"}
    numbered = [{"i": i, **line} for i, line in enumerate(lines)]
    path.write_text("\n".join(map(json.dumps, [header, *numbered])))
    history = read_history(path)
    assert history.quarantine == []
    events = list(complete(history.events))
    found = [p.check(events) for p in BLACKBOX]
    reported = {f.property: f.explanation for f in found if f.verdict is Verdict.VIOLATED}
    return reported, Counter({f.property: f.n_tested for f in found})


@pytest.mark.parametrize("scale", [1, 10_000_000], ids=["ns", "10ms"])
@pytest.mark.parametrize("by_begin", [False, True], ids=["ends", "begins"])
@pytest.mark.parametrize("autoack", [False, True], ids=["acks", "autoack"])
def test_a_right_queue_is_not_reported(
    autoack: bool, by_begin: bool, scale: int, tmp_path: Path
) -> None:
    cases = Counter[str]()
    for seed in range(SEEDS):
        lines = Clients(seed).run(autoack)
        reported, tested = judged(tmp_path / "table.jsonl", lines, by_begin, scale)
        assert reported == {}, f"seed {seed}"
        cases += tested
    assert min(cases["P1"], cases["P20"]) > SEEDS


@pytest.mark.parametrize("by_begin", [False, True], ids=["ends", "begins"])
@pytest.mark.parametrize("mistake", ["stack", "twice", "phantom"])
def test_a_wrong_queue_is_reported(mistake: str, by_begin: bool, tmp_path: Path) -> None:
    found = Counter[str]()
    for seed in range(10):
        lines = Clients(seed, mistake).run(autoack=True)
        found.update(list(judged(tmp_path / "table.jsonl", lines, by_begin, 1)[0]))
    assert found["P20"] > 0, found


@pytest.mark.parametrize("written", [ends, begins, timeless, phases])
@pytest.mark.parametrize("autoack", [False, True], ids=["acks", "autoack"])
def test_a_right_queue_is_not_reported_however_its_calls_are_written(
    autoack: bool, written: Written, tmp_path: Path
) -> None:
    cases = Counter[str]()
    for seed in range(SEEDS):
        lines = written(Clients(seed).run(autoack))
        reported, tested = audited(tmp_path / "calls.jsonl", lines)
        assert reported == {}, f"seed {seed}"
        cases += tested
    assert cases["P1"] > SEEDS
    assert (cases["P20"] > SEEDS) is (
        written is phases
    )  # of one line nobody knows when the call ended


@pytest.mark.parametrize("written", [ends, begins, timeless, phases])
@pytest.mark.parametrize("mistake", ["twice", "phantom"])
def test_a_wrong_queue_is_reported_however_its_calls_are_written(
    mistake: str, written: Written, tmp_path: Path
) -> None:
    found = Counter[str]()
    for seed in range(10):
        lines = written(Clients(seed, mistake).run(autoack=True))
        found.update(list(audited(tmp_path / "calls.jsonl", lines)[0]))
    assert min(found["P1"], found["P20"]) > 0, found


def bounded(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each call, with its bounds."""
    return lines


@pytest.mark.parametrize(
    ("written", "decides"), [(bounded, True), (phases, True), (ends, False), (timeless, False)]
)
def test_a_model_takes_calls_as_they_are_written(
    written: Written, decides: bool, tmp_path: Path
) -> None:
    """A right stack is one; a queue is none, where that can be known."""
    model = load_property("spec/own/stack.py:Stack")
    for seed in range(3):
        for mistake in ("stack", ""):
            path = tmp_path / "calls.jsonl"
            audited(path, written(Clients(seed, mistake).run(autoack=False)))
            found = model.check(list(complete(read_history(path).events))).verdict
            assert (found is Verdict.VIOLATED) is (decides and not mistake), (seed, mistake)
