"""Jepsen operation histories of a queue, EDN or JSON, one operation a line (or a vector of them).

``{:type :invoke, :f :enqueue, :value 1, :process 0, :time 3291485317, :index 0}``
(https://github.com/jepsen-io/history; the queue workload: `jepsen.tests`, `jepsen.checker/total-queue`).

| operation | becomes |
|---|---|
| enqueue invoke, ok, fail, info | publish with that phase |
| dequeue invoke, ok with a value | get, `autoack`: in Jepsen's model what is dequeued is gone |
| dequeue ok with nil, fail with :empty or :exhausted | get ok without a message: the queue was seen empty |
| dequeue fail otherwise, info | get fail, info |
| drain ok with values | a get ok for each, each at some instant since its invoke; then a note of depth 0 |
| operations of :nemesis | left out (they are not of the queue), counted in nothing |

What the format cannot say: whether a message came back (a crashed consumer that had dequeued and not
acknowledged shows as a second dequeue of the value), priorities, connections. It has no levels below the client's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from seriatim_models.history.event import Event
from seriatim_models.history.importers import edn
from seriatim_models.history.lines import Line

LINT = (
    "requeues and closes are not in the format: what comes a second time counts as taken twice",
    "redelivered flags, prefetch and connections are not in the format: P2, P3 and P5 to P9 have few or no cases",
)
"""What verdicts on such a history leave open, in words."""

QUEUE = "jepsen"
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
    except (msgspec.DecodeError, UnicodeDecodeError):
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

    def read(self, rows: Iterable[Line]) -> Iterator[tuple[Line, list[Event] | str]]:
        """Each line with its events, or why it is none."""
        for line in rows:
            raw = line.raw.strip()
            if raw in (b"", b"[", b"]"):
                yield line, []
                continue
            try:
                yield line, self._events(self._operation(raw))
            except ValueError as fault:
                yield line, str(fault)

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
        else:
            try:
                found = edn.loads(text)
            except edn.BadEdn as error:
                raise ValueError(f"not EDN: {error}") from None
        if not isinstance(found, dict):
            raise ValueError("no operation: not a map")
        return found

    def _events(self, op: dict[str, Any]) -> list[Event]:
        process = op.get("process")
        if process == "nemesis":
            return []
        if process is None:
            raise ValueError("field process: missing")
        ph, f, t = op.get("type"), op.get("f"), op.get("time")
        if ph not in _PHASES:
            raise ValueError(f"field type: {ph!r} is none of {', '.join(sorted(_PHASES))}")
        if t is not None and not isinstance(t, int):
            raise ValueError(f"field time: {t!r} is no whole number of nanoseconds")
        if f not in ("enqueue", "dequeue", "drain"):
            raise ValueError(f"field f: {f!r} is none of enqueue, dequeue, drain")
        process_name = str(process)
        if ph == "invoke":
            if process_name in self._invoked:
                raise ValueError(
                    f"field process: {process_name} begins an operation while it has one"
                )
            self._invoked[process_name] = (self._i, t, f)
            number: int | None = self._i
            since = t
        else:
            number, since, begun = self._invoked.pop(process_name, (None, None, f))
            if begun != f:
                raise ValueError(f"field f: {process_name} began {begun} and ends {f}")
        value = op.get("value")
        base: dict[str, Any] = {"t": t, "proc": process_name, "q": QUEUE, "op": number}
        if f == "enqueue":
            if value is None:
                raise ValueError("field value: missing from enqueue")
            return [self._event(ev="publish", ph=ph, m=_name(value), **base)]
        if f == "dequeue":
            return [self._dequeued(op, ph, value, base)]
        return self._drained(ph, value, since, base)

    def _event(self, **fields: Any) -> Event:
        self._i += 1
        return Event(i=self._i - 1, **fields)

    def _dequeued(self, op: dict[str, Any], ph: str, value: object, base: dict[str, Any]) -> Event:
        error = op.get("error")
        errors = {str(e) for e in (error if isinstance(error, list) else [error])}
        if ph == "fail" and (errors & _EMPTY):
            return self._event(ev="get", ph="ok", autoack=True, **base)
        m = _name(value) if ph == "ok" and value is not None else ""
        return self._event(ev="get", ph=ph, m=m, autoack=True, **base)

    def _drained(
        self, ph: str, value: object, since: int | None, base: dict[str, Any]
    ) -> list[Event]:
        if ph != "ok":
            return []  # what a drain that did not end took is not recorded
        if not isinstance(value, list):
            raise ValueError("field value: a drain gives a list")
        base = {**base, "op": None}
        gets = [
            self._event(ev="get", ph="ok", m=_name(v), autoack=True, t_lo=since, **base)
            for v in value
        ]
        return [*gets, self._event(ev="note", ph="info", args={"depth": 0}, **base)]


def _name(value: object) -> str:
    return value if isinstance(value, str) else str(value)
