"""Jepsen operation histories of a queue or a log, EDN or JSON, one operation a line (or a vector of them).

``{:type :invoke, :f :enqueue, :value 1, :process 0, :time 3291485317, :index 0}``
(https://github.com/jepsen-io/history; the queue workload: `jepsen.tests`, `jepsen.checker/total-queue`;
the log workload: `jepsen.tests.kafka`).

| operation | becomes |
|---|---|
| enqueue invoke, ok, fail, info | publish with that phase |
| dequeue invoke, ok with a value | get, `autoack`: in Jepsen's model what is dequeued is gone |
| dequeue ok with nil, fail with :empty or :exhausted | get ok without a message: the queue was seen empty |
| dequeue fail otherwise, info | get fail, info |
| drain ok | a get that found the queue empty, and one for each value, taken at some instant since its invoke |
| drain ok, while no enqueue was under way | then a note of depth 0 |
| drain info, or without an end | it may take anything from its invoke on: a gap there and before each take after it |
| the last of these empty dequeues, if every enqueue had ended before it began | a note of depth 0 at the end |
| send, or [:send k v] of a txn | publish of message k/v to the log k, with the offset that is returned |
| send of a value alone, poll of one or several | the same of one log without offsets; a gap before one polled again |
| poll, or [:poll] of a txn | a deliver for each pair of offset and value, to the reader that the process is |
| subscribe, assign, crash, a poll that rebalanced or did not end ok | seek: the reader may go on anywhere |
| operations of :nemesis, and those that only look (`LOOKS`) | left out: they are not of the queue |

A poll moves a reader that has subscribed wherever the group lets it, so there a `seek` stands before each poll;
of partitions that were assigned it goes on where it was.

What the format cannot say: whether a message came back (a crashed consumer that had dequeued and not
acknowledged shows as a second dequeue of the value), priorities, connections. It has no levels below the client's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from seriatim_models.history.depth import TOO_DEEP, too_deep, too_large
from seriatim_models.history.event import GAP, Event
from seriatim_models.history.importers import edn
from seriatim_models.history.lines import Line

LINT = (
    "requeues and closes are not in the format: what a queue gives a second time counts as taken twice",
    "redelivered flags, prefetch and connections are not in the format: P2, P3 and P5 to P9 have few or no cases",
)
"""What verdicts on such a history leave open, in words."""

_Read = tuple[Line, dict[str, Any] | str | None, bool]
"""A line; its operation (None: it holds none), or what is wrong with it; whether it begins a drain that is lost."""

QUEUE = "jepsen"
LOOKS = frozenset(
    (
        "debug-topic-partitions",
        "list-offsets",
        "topics",
        "partitions",
        "info",
        "log",
        "start",
        "stop",
    )
)
"""Operations of clients that change nothing."""

_QUEUE = ("enqueue", "dequeue", "drain")
_LOG = ("send", "poll", "txn")
_MOVES = ("subscribe", "assign", "crash")
_PHASES = {"invoke", "ok", "fail", "info"}
_EMPTY = {"empty", "exhausted", "timed-out-empty"}


def fits(first: bytes, name: str) -> bool:
    """Whether a file begins as such a history does."""
    text = first.lstrip()
    if text.startswith((b"{:", b"[{:", b"#jepsen", b"[#jepsen", b"[ {:")):
        return True
    if name.endswith((".edn", ".edn.gz", ".edn.zst")):
        return True
    try:
        found = msgspec.json.decode(text.lstrip(b"[").rstrip(b",]\r\n"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) and {"type", "f", "process"} <= set(found)


def header() -> dict[str, Any]:
    """The header that such a history would have."""
    return {"rec": "jepsen", "lvl": "api", "clk": "jepsen", "params": {"lint": list(LINT)}}


class JepsenImporter:
    """Events of one file; keeps which operation each process has under way."""

    def __init__(self) -> None:
        self._i = 0
        self._invoked: dict[str, tuple[int, int | None, str]] = {}
        self._enqueued = -1
        """The number of the last event of an enqueue."""
        self._empty: dict[str, Any] | None = None
        """The last empty dequeue that saw all that had been enqueued."""
        self._bare = False
        """Whether a send named no log."""
        self._seen: set[str] = set()
        """Values that were polled from a log without a name."""
        self._sends: dict[str, list[Event]] = {}
        """What each process has under way to a log."""
        self._assigned: set[str] = set()
        """Processes that read partitions of their own choice."""
        self._logs: dict[str, None] = {}
        """Logs that were named so far."""
        self._lost_drain = False
        """Whether a drain has begun of which nobody knows what it took, or whether it is over."""

    def read(self, rows: Iterable[Line]) -> Iterator[tuple[Line, list[Event] | str]]:
        """Each line with its events, or why it is none."""
        line: Line | None = None
        for line, op, lost in self._operations(rows):
            try:
                if isinstance(op, str):
                    raise ValueError(op)
                gap = [self._event(ev=GAP)] if lost else []
                self._lost_drain = self._lost_drain or lost
                yield line, gap + ([] if op is None else self._events(op))
            except ValueError as fault:
                self._enqueued, self._empty = self._i, None  # it may have been an enqueue
                yield line, str(fault)
        if line is not None and self._empty is not None:
            yield (
                line,
                [
                    *self._perhaps_taken(),
                    self._event(ev="note", ph="info", args={"depth": 0}, **self._empty),
                ],
            )

    def _operations(self, rows: Iterable[Line]) -> Iterator[_Read]:
        """Each line with its operation, and whether that is a drain of which nobody will know what it took.

        So lines are held back while a drain is under way.
        """
        held: list[_Read] = []
        drains: dict[object, int] = {}
        for line in rows:
            op = self._operation_or_fault(line.raw.strip())
            held.append((line, op, False))
            if isinstance(op, dict) and op.get("f") == "drain":
                process, ph = str(op.get("process")), op.get("type")
                if ph == "invoke":
                    drains.setdefault(process, len(held) - 1)
                elif process in drains:
                    begun = drains.pop(process)
                    held[begun] = (*held[begun][:2], ph == "info")
            if not drains:
                yield from held
                held.clear()
        for begun in drains.values():
            held[begun] = (*held[begun][:2], True)
        yield from held

    def _operation_or_fault(self, raw: bytes) -> dict[str, Any] | str | None:
        if raw in (b"", b"[", b"]"):
            return None
        try:
            return self._operation(raw)
        except ValueError as fault:
            return str(fault)

    def _operation(self, raw: bytes) -> dict[str, Any]:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8: {error.reason}") from None
        text = text.rstrip(",")
        if text.startswith("["):
            text = text[1:]
        if text.endswith("]") and text.count("]") > text.count("["):
            text = text[:-1]
        found: object
        if '":' in text.replace(" ", "") and text.startswith('{"'):
            try:
                found = msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                raise ValueError(f"not JSON: {error}") from None
            except RecursionError:
                raise ValueError(TOO_DEEP) from None
            if too_deep(found):
                raise ValueError(TOO_DEEP)
        else:
            try:
                found = edn.loads(text)
            except edn.BadEdn as error:
                raise ValueError(f"not EDN: {error}") from None
        if not isinstance(found, dict):
            raise ValueError("no operation: not a map")
        return found

    def _events(self, op: dict[str, Any]) -> list[Event]:
        for name in ("process", "f", "type"):
            if isinstance(op.get(name), dict | list):
                raise ValueError(f"field {name}: {op[name]!r} is no name")
        process, f = op.get("process"), op.get("f")
        if process == "nemesis" or f in LOOKS:
            return []
        if process is None:
            raise ValueError("field process: missing")
        ph, t = op.get("type"), op.get("time")
        if ph not in _PHASES:
            raise ValueError(f"field type: {ph!r} is none of {', '.join(sorted(_PHASES))}")
        if t is not None and (type(t) is not int or too_large(t)):
            raise ValueError(f"field time: {t!r} is no whole number of nanoseconds")
        if f not in (*_QUEUE, *_LOG, *_MOVES):
            raise ValueError(f"field f: {f!r} is none of {', '.join((*_QUEUE, *_LOG, *_MOVES))}")
        process_name = str(process)
        number, since = self._paired(process_name, ph, f, t)
        base: dict[str, Any] = {"t": t, "proc": process_name}
        if f in _MOVES:
            return self._moved(f, ph, base)
        if f in _LOG:
            return self._logged(op, ph, since, base)
        return self._queued(op, ph, since, {**base, "q": QUEUE, "op": number})

    def _paired(
        self, process: str, ph: str, f: str, t: int | None
    ) -> tuple[int | None, int | None]:
        """The number of the event that began an operation, and when that was."""
        if ph == "invoke":
            if process in self._invoked:
                raise ValueError(f"field process: {process} begins an operation while it has one")
            self._invoked[process] = (self._i, t, f)
            return self._i, t
        number, since, begun = self._invoked.pop(process, (None, None, f))
        if begun != f:
            raise ValueError(f"field f: {process} began {begun} and ends {f}")
        return number, since

    # ---- queues

    def _queued(
        self, op: dict[str, Any], ph: str, since: int | None, base: dict[str, Any]
    ) -> list[Event]:
        value = op.get("value")
        if op["f"] == "enqueue":
            if value is None:
                raise ValueError("field value: missing from enqueue")
            self._enqueued, self._empty = self._i, None
            return [self._event(ev="publish", ph=ph, m=_name(value), **base)]
        gap = self._perhaps_taken()
        if op["f"] == "dequeue":
            return [*gap, self._dequeued(op, ph, value, base)]
        return [*gap, *self._drained(ph, value, since, base)]

    def _alone(self, base: dict[str, Any]) -> bool:
        """Whether no enqueue was under way at any time of the operation that ends."""
        under_way = any(f == "enqueue" for _, _, f in self._invoked.values())
        return not under_way and base["op"] is not None and base["op"] > self._enqueued

    def _perhaps_taken(self) -> list[Event]:
        """A gap, if a drain that is lost may have taken anything until now."""
        return [self._event(ev=GAP)] if self._lost_drain else []

    def _event(self, **fields: Any) -> Event:
        self._i += 1
        return Event(i=self._i - 1, **fields)

    def _dequeued(self, op: dict[str, Any], ph: str, value: object, base: dict[str, Any]) -> Event:
        error = op.get("error")
        errors = {str(e) for e in (error if isinstance(error, list) else [error])}
        if (ph == "fail" and (errors & _EMPTY)) or (ph == "ok" and value is None):
            if self._alone(base):
                self._empty = {**base, "op": None}
            return self._event(ev="get", ph="ok", autoack=True, **base)
        m = _name(value) if ph == "ok" and value is not None else ""
        return self._event(ev="get", ph=ph, m=m, autoack=True, **base)

    def _drained(
        self, ph: str, value: object, since: int | None, base: dict[str, Any]
    ) -> list[Event]:
        if ph != "ok":
            return [self._event(ev="get", ph=ph, autoack=True, **base)]
        if not isinstance(value, list):
            raise ValueError("field value: a drain gives a list")
        alone, later = self._alone(base), {**base, "op": None}
        made = [
            self._event(ev="get", ph="ok", m=_name(v), autoack=True, t_lo=since, **later)
            for v in value
        ]
        made.append(self._event(ev="get", ph="ok", autoack=True, **base))
        if alone:
            made.append(self._event(ev="note", ph="info", args={"depth": 0}, **later))
        return made

    # ---- logs

    def _moved(self, f: str, ph: str, base: dict[str, Any]) -> list[Event]:
        """A reader is somewhere else in every log that it may read."""
        if ph == "invoke":
            return []
        (self._assigned.add if f == "assign" else self._assigned.discard)(base["proc"])
        return self._seek(base)

    def _seek(self, base: dict[str, Any]) -> list[Event]:
        return [
            self._event(ev="seek", ph="ok", q=k, part=0, ctag=base["proc"], **base)
            for k in self._logs
        ]

    def _logged(
        self, op: dict[str, Any], ph: str, since: int | None, base: dict[str, Any]
    ) -> list[Event]:
        """The events of a send, a poll or a transaction of both."""
        process, value = base["proc"], self._of_one_log(op["f"], op.get("value"))
        if not isinstance(value, list) or not all(isinstance(x, list) and x for x in value):
            if op["f"] == "poll" and ph != "ok":
                value = []
            else:
                raise ValueError(f"field value: a {op['f']} is a list of [:send k v] and [:poll]")
        sends = [_sent(x) for x in value if x[0] == "send"]
        self._logs.update(dict.fromkeys(k for k, _, _ in sends))
        if ph == "invoke":
            made = [
                self._event(ev="publish", ph=ph, q=k, part=0, m=f"{k}/{v}", op=self._i, **base)
                for k, _, v in sends
            ]
            self._sends[process] = made
            return made
        made = []
        begun = {e.m: e for e in self._sends.pop(process, [])}
        for k, pos, v in sends:
            opened = begun.pop(f"{k}/{v}", None)
            made.append(
                self._event(
                    ev="publish", ph=ph, q=k, part=0, m=f"{k}/{v}", pos=pos if ph == "ok" else None,
                    op=None if opened is None else opened.op, **base,
                )
            )  # fmt: skip
        for opened in begun.values():  # it ended without saying how
            made.append(
                self._event(ev="publish", ph="fail" if ph == "fail" else "info", q=opened.q, part=0,
                            m=opened.m, op=opened.op, **base)
            )  # fmt: skip
        polled = any(x[0] == "poll" for x in value) or op["f"] == "poll"
        if polled and (ph != "ok" or op.get("rebalance-log") or process not in self._assigned):
            made += self._seek(base)
        if ph == "ok":
            for one in value:
                if one[0] == "poll":
                    made += self._polled(one, since, base)
        return made

    def _of_one_log(self, f: str, value: object) -> object:
        """The value of a log operation; of what names no log, as the micro-operation that says the same of one log."""
        if f == "send" and isinstance(value, str | int | float):
            self._bare = True
            return [["send", QUEUE, value]]
        several = value if isinstance(value, list) else [] if value is None else [value]
        if f == "poll" and self._bare and all(isinstance(v, str | int | float) for v in several):
            return [["poll", {QUEUE: [[None, v] for v in several]}]]
        return value

    def _polled(self, micro: list[Any], since: int | None, base: dict[str, Any]) -> list[Event]:
        found = micro[1] if len(micro) > 1 and micro[1] is not None else {}
        if not isinstance(found, dict):
            raise ValueError(
                "field value: a poll gives a map from log to pairs of offset and value"
            )
        made = []
        for key, pairs in found.items():
            k = _name(key)
            self._logs.setdefault(k)
            if not isinstance(pairs := pairs or [], list):
                raise ValueError(f"field value: {pairs!r} is no list of offset and value")
            for pair in pairs:
                if not isinstance(pair, list) or len(pair) != 2:
                    raise ValueError(f"field value: {pair!r} is no pair of offset and value")
                if k == QUEUE and pair[0] is None:  # which reader goes on where nobody knows
                    if _name(pair[1]) in self._seen:
                        made.append(self._event(ev=GAP))
                    self._seen.add(_name(pair[1]))
                made.append(
                    self._event(ev="deliver", q=k, part=0, m=f"{k}/{_name(pair[1])}", pos=_offset(pair[0]),
                                ctag=base["proc"], t_lo=since, **base)
                )  # fmt: skip
        return made


def _sent(micro: list[Any]) -> tuple[str, int | None, str]:
    """(log, offset or None, value) of ``[:send k v]`` or ``[:send k [offset v]]``."""
    if len(micro) != 3:
        raise ValueError(f"field value: {micro!r} is no [:send k v]")
    _, key, value = micro
    if isinstance(value, list) and len(value) == 2:
        return _name(key), _offset(value[0]), _name(value[1])
    return _name(key), None, _name(value)


def _offset(value: object) -> int | None:
    return value if type(value) is int and not too_large(value) else None


def _name(value: object) -> str:
    return value if isinstance(value, str) else str(value)
