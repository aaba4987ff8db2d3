"""Right systems recorded in other people's formats, drawn: nothing that they do may be reported.

A queue and a log as Jepsen writes them, with operations of unknown outcome, drains that nobody saw end, and processes
that crash; and the spans of a queue whose clients have clocks of their own.
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

Operation = dict[str, Any]
SEEDS = 120


def judged(path: Path) -> tuple[list[str], Counter[str]]:
    """The violations of a recording, in words, and the cases of each property."""
    history = read_history(path)
    assert not [q for q in history.quarantine if "messaging spans" not in q.reason]
    events = list(complete(history.events))
    found = [p.check(events) for p in BLACKBOX]
    cases = Counter({p.id: f.n_tested for p, f in zip(BLACKBOX, found, strict=True)})
    return [f.explanation for f in found if f.verdict is Verdict.VIOLATED], cases


class Jepsen:
    """Processes that begin operations, and a system that does each at some instant between its begin and its end.

    An operation whose outcome nobody knows is done later, or never, and its process goes on under another number.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[Operation] = []
        self.under_way: dict[int, Operation | None] = {0: None, 1: None, 2: None}
        self.lost: list[tuple[int, Operation]] = []
        self.time = 0

    def run(self, steps: int) -> None:
        """So many steps of processes drawn at random."""
        for _ in range(steps):
            for process, op in self.lost:
                if not op["done"] and self.random.random() < 0.15:
                    self.happens(process, op)
            process = self.random.choice(list(self.under_way))
            op_or_none = self.under_way[process]
            if op_or_none is None:
                self.begins(process)
            else:
                self.goes_on(process, op_or_none)

    def begins(self, process: int) -> None:
        """An idle process does something."""
        f, value = self.draw(process)
        self.under_way[process] = {"f": f, "value": value, "done": False, "got": []}
        self.says("invoke", process, f, value)

    def goes_on(self, process: int, op: Operation) -> None:
        """What is under way happens, ends, or is lost sight of."""
        chance = self.random.random()
        if chance < 0.07:
            del self.under_way[process]
            self.lost.append((process, op))
            self.under_way[2 + len(self.lost)] = None
            if self.random.random() < 0.7:
                self.says("info", process, op["f"], op["value"], error="timeout")
        elif op["done"]:
            self.under_way[process] = None
            self.ends(process, op)
        elif chance < 0.12 and not op["got"]:
            self.under_way[process] = None
            self.says("fail", process, op["f"], op["value"], error="refused")
        else:
            self.happens(process, op)

    def says(self, kind: str, process: int, f: str, value: object, **more: str) -> None:
        """Write a line."""
        self.time += self.random.choice([0, 1, 1, 5])
        op = {"type": kind, "f": f, "process": process, "time": self.time, "value": value}
        self.lines.append({**op, **more})

    def draw(self, process: int) -> tuple[str, object]:
        """An operation."""
        raise NotImplementedError

    def happens(self, process: int, op: Operation) -> None:
        """It takes effect, or a part of it."""
        raise NotImplementedError

    def ends(self, process: int, op: Operation) -> None:
        """Say how a done operation ended."""
        raise NotImplementedError


class Queue(Jepsen):
    """First in, first out; drained by several."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.queue: deque[int] = deque()
        self.sent = 0

    def draw(self, process: int) -> tuple[str, object]:
        f = self.random.choice(["enqueue", "enqueue", "dequeue", "dequeue", "drain"])
        if f == "enqueue":
            self.sent += 1
        return f, self.sent if f == "enqueue" else None

    def happens(self, process: int, op: Operation) -> None:
        op["done"] = op["f"] != "drain"
        if op["f"] == "enqueue":
            self.queue.append(op["value"])
        elif op["f"] == "dequeue":
            op["got"] = [self.queue.popleft()] if self.queue else []
        elif self.queue:
            op["got"].append(self.queue.popleft())
        else:
            op["done"] = True

    def ends(self, process: int, op: Operation) -> None:
        if op["f"] == "dequeue" and not op["got"] and self.random.random() < 0.5:
            self.says("fail", process, "dequeue", None, error="empty")
            return
        got = {"enqueue": op["value"], "drain": op["got"], "dequeue": (op["got"] or [None])[0]}
        self.says("ok", process, op["f"], got[op["f"]])


class Log(Jepsen):
    """Two logs, with readers that are assigned or subscribe, transactions, and offsets that are left out."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.logs: dict[int, list[tuple[int, int]]] = {5: [], 6: []}
        self.reads: dict[int, dict[int, int]] = {}
        self.subscribed: set[int] = set()
        self.sent = 0

    def draw(self, process: int) -> tuple[str, object]:
        if process not in self.reads and self.random.random() < 0.6:
            return self.random.choice(["assign", "subscribe"]), [5, 6]
        f = self.random.choice(["send", "poll", "txn"])
        parts = self.random.randrange(1, 4) if f == "txn" else 1
        return f, [self._part(f) for _ in range(parts)]

    def _part(self, f: str) -> list[Any]:
        if f == "poll" or (f == "txn" and self.random.random() < 0.5):
            return ["poll"]
        self.sent += 1
        return ["send", self.random.choice([5, 6]), self.sent]

    def happens(self, process: int, op: Operation) -> None:
        op["done"] = True
        if op["f"] in ("assign", "subscribe"):
            (self.subscribed.add if op["f"] == "subscribe" else self.subscribed.discard)(process)
            self.reads[process] = {k: self._anywhere(k) for k in self.logs}
            op["got"] = op["value"]
            return
        if process in self.subscribed and process in self.reads and self.random.random() < 0.3:
            self.reads[process] = {k: self._anywhere(k) for k in self.logs}
        op["got"] = [self._done(process, part) for part in op["value"]]

    def _anywhere(self, k: int) -> int:
        return self.random.randrange(self.logs[k][-1][0] + 2) if self.logs[k] else 0

    def _done(self, process: int, part: list[Any]) -> list[Any]:
        if part[0] == "send":
            log = self.logs[part[1]]
            at = (log[-1][0] + 1 if log else 0) + (self.random.random() < 0.2)
            log.append((at, part[2]))
            return ["send", part[1], [at if self.random.random() < 0.9 else None, part[2]]]
        reads = self.reads.get(process, {})
        found = {
            k: [r for r in self.logs[k] if r[0] >= reads[k]][: self.random.randrange(4)]
            for k in reads
        }
        reads.update({k: records[-1][0] + 1 for k, records in found.items() if records})
        return ["poll", found]

    def ends(self, process: int, op: Operation) -> None:
        self.says("ok", process, op["f"], op["got"])


@pytest.mark.parametrize(("system", "tested"), [(Queue, {"P1", "P20"}), (Log, {"P1", "P15"})])
def test_a_right_system_recorded_by_jepsen_is_not_reported(
    system: Callable[[int], Jepsen], tested: set[str], tmp_path: Path
) -> None:
    path, cases = tmp_path / "history.jsonl", Counter[str]()
    for seed in range(SEEDS):
        drawn = system(seed)
        drawn.run(80)
        path.write_text("\n".join(map(json.dumps, drawn.lines)))
        violations, tested_now = judged(path)
        assert violations == [], f"seed {seed}"
        cases += tested_now
    assert min(cases[id] for id in tested) > SEEDS


DRAIN = """\
{:type :invoke, :f :enqueue, :value 1, :process 0, :time 1}
{:type :ok, :f :enqueue, :value 1, :process 0, :time 2}
{:type :invoke, :f :drain, :process 1, :time 3}
{:type :invoke, :f :dequeue, :process 2, :time 4}
{:type :ok, :f :dequeue, :value nil, :process 2, :time 5}
"""


@pytest.mark.parametrize(
    ("end", "violated"),
    [
        ("", False),
        ("{:type :info, :f :drain, :process 1, :time 6, :error :timeout}", False),
        ("{:type :ok, :f :drain, :value [1], :process 1, :time 6}", False),
        ("{:type :ok, :f :drain, :value [], :process 1, :time 6}", True),
        ("{:type :fail, :f :drain, :process 1, :time 6, :error :refused}", True),
    ],
)
def test_what_a_drain_took_of_which_nobody_saw_the_end_is_unknown(
    end: str, violated: bool, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    path.write_text(DRAIN + end)
    assert bool(judged(path)[0]) is violated


def test_a_drain_may_have_come_before_an_enqueue_that_it_overlaps(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    drain, enqueue = DRAIN.splitlines()[2].replace(":time 3", ":time 0"), DRAIN.splitlines()[:2]
    end = "{:type :ok, :f :drain, :value [], :process 1, :time 6}"
    path.write_text("\n".join([drain, *enqueue, end]))
    assert judged(path)[0] == []


# OpenTelemetry


class Spans:
    """A right queue whose clients' spans are sampled."""

    def __init__(self, seed: int, hosts: int, skew: int) -> None:
        self.random = random.Random(seed)
        self.skew = [self.random.randrange(-skew, skew + 1) for _ in range(2 * hosts)]
        self.hosts = hosts
        self.queue: deque[tuple[int, str]] = deque()
        self.lines: list[tuple[int, str]] = []
        self.spans = 0

    def span(
        self, client: int, kind: int, does: str, begin: int, end: int, m: int, **link: Any
    ) -> str:
        """Keep a span; its id."""
        self.spans += 1
        id = f"{self.spans:016x}"
        times = [str(10**18 + self.skew[client] + 100_000 * t) for t in (begin, end)]
        has = {
            "messaging.destination.name": "q",
            "messaging.operation.type": does,
            "messaging.message.id": f"m{m}",
        }
        span = {
            "traceId": f"{m:032x}", "spanId": id, "name": f"{does} q", "kind": kind, **link,
            "startTimeUnixNano": times[0], "endTimeUnixNano": times[1], "attributes": _attributes(has),
        }  # fmt: skip
        about = {"attributes": _attributes({"host.name": f"host {client}"})}
        resource = {"resource": about, "scopeSpans": [{"scope": {"name": "x"}, "spans": [span]}]}
        if self.random.random() < 0.9:
            self.lines.append((int(times[1]), json.dumps({"resourceSpans": [resource]})))
        return id

    def run(self, steps: int, newest_first: bool = False) -> None:
        """So many messages sent or received."""
        now = 0
        for m in range(steps):
            now += self.random.choice([0, 1, 3, 20])
            host = self.random.randrange(self.hosts)
            if self.random.random() < 0.5:
                ends = now + self.random.randrange(6)
                self.queue.append((m, self.span(host, 4, "send", now, ends, m)))
                now = ends
            elif self.queue:
                sent, parent = self.queue.pop() if newest_first else self.queue.popleft()
                ends = now + self.random.randrange(1, 5)
                client = host + self.hosts
                self.span(client, 3, "receive", now, ends, sent, parentSpanId=parent)
                if self.random.random() < 0.05:
                    self.queue.appendleft((sent, parent))  # it comes again
                now += self.random.choice([0, 1, 5])

    def write(self, path: Path) -> None:
        """As exporters do: when they end."""
        path.write_text("\n".join(line for _, line in sorted(self.lines)))


def _attributes(of: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in of.items()]


@pytest.mark.parametrize("hosts", [1, 3])
def test_spans_of_a_right_queue_are_not_reported_whatever_the_clocks(
    hosts: int, tmp_path: Path
) -> None:
    path, cases = tmp_path / "spans.otlp.jsonl", Counter[str]()
    for seed in range(SEEDS):
        drawn = Spans(seed, hosts, 3_000_000)
        drawn.run(60)
        drawn.write(path)
        violations, tested_now = judged(path)
        assert violations == [], f"seed {seed}"
        cases += tested_now
    assert cases["P1"] > SEEDS
    assert (cases["P5"] > 0) is (hosts == 1)  # times of two clocks do not compare


def test_spans_of_a_stack_are_reported_where_one_clock_saw_it(tmp_path: Path) -> None:
    path = tmp_path / "spans.otlp.jsonl"
    reported = 0
    for seed in range(10):
        drawn = Spans(seed, 1, 3_000_000)
        drawn.run(60, newest_first=True)
        drawn.write(path)
        reported += bool(judged(path)[0])
    assert reported > 0
