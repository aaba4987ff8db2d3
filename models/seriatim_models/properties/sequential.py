"""A sequential model as a property: whether an object that serves one client at a time explains a recording.

As in Porcupine (https://github.com/anishathalye/porcupine) a model is an initial state and a step:

```python
class Stack(SequentialModel):
    id, sentence, source = "STACK", "Who gets takes what was put last.", "an example"

    def initial(self):
        return ()

    def step(self, state, call):
        if call.name == "publish":
            return (*state, call.m)
        if not call.m:  # found nothing
            return state if not state else None
        return state[:-1] if state and state[-1] == call.m else None
```

The recording is *linearizable* (Herlihy & Wing 1990) if each call can be given one moment between its beginning and its
end so that the model, stepped in that order, answers as was recorded. Each part (a queue, unless `part` says otherwise)
is searched by itself, as Wing & Gong (1993) do, with the memory of Lowe (2017).

A call that failed had no effect. Of one whose outcome nobody knows it is open whether it happened; if it was a `get`,
also what it took. A recording with lost lines or with several clocks is untestable, and so is a part whose search takes
more than `most` states.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

import msgspec

from seriatim_models.history.event import EXACT, GAP, Event
from seriatim_models.properties.base import Finding, WholeHistory
from seriatim_models.properties.blackbox.strict import ALWAYS, NEVER, Time, when

SENDS = frozenset(("publish",))


class ModelCall(NamedTuple):
    """One call of a client, from `begin` to `end`."""

    name: str
    """The event: publish, get, deliver, ..."""
    q: str
    m: str
    """The message that was given or got; empty if a get found none."""
    begin: Time
    end: Time
    known: bool
    """Whether its outcome was recorded."""
    event: Event
    """Its end, or its beginning if it has none: for whatever else the model wants to know."""
    events: tuple[Event, ...]

    def __str__(self) -> str:
        outcome = "" if self.known else ", outcome unknown"
        return f"{self.name} {self.m or '(nothing)'} by {self.event.proc or '?'}{outcome}"


class SequentialModel(WholeHistory):
    """Base of properties that are a sequential model: give it `id`, `sentence`, `source`, `initial` and `step`.

    A case is a call whose outcome is known and that is not a publish: the model could have answered otherwise.
    """

    scope = "queue"
    reads = frozenset({"publish", "get", "deliver", GAP})
    most: ClassVar[int] = 200_000
    """States after which the search of a part is given up."""

    def initial(self) -> Hashable:
        """The state before the first call; it must be hashable: a tuple, a string, a frozenset."""
        raise NotImplementedError

    def step(self, state: Hashable, call: ModelCall) -> Hashable | None:
        """The state after a call, or None if the object would not have answered so."""
        raise NotImplementedError

    def part(self, event: Event) -> Hashable:
        """What is an object of its own: the queue, by default."""
        return event.q

    def finish(self, summary: list[Event]) -> Finding:
        """The finding on a whole history."""
        calls = calls_of([e for e in summary if e.ev != GAP])
        why = ""
        if any(e.ev == GAP for e in summary):
            why = "lines of the recording were lost: any call may be among them"
        elif len({e.clk for e in summary if e.t is not None}) > 1:
            why = "the events have several clocks, whose times cannot be compared"
        parts: dict[Hashable, list[ModelCall]] = {}
        for call in calls:
            parts.setdefault(self.part(call.event), []).append(call)
        tested = untestable = 0
        bad: list[tuple[str, list[Event]]] = []
        for mine in parts.values():
            cases = sum(c.known and c.name not in SENDS for c in mine)
            explained = None if why else self.explains(mine)
            if explained is None:
                untestable += cases
                why = why or f"no order was found or ruled out in {self._limit(mine):,} states"
                if any(_unbounded(c) for c in mine):
                    why += "; calls on one line without t_lo have none: record invoke and ok"
                continue
            tested += cases
            if not explained:
                bad.append(self._witness(mine))
        found = Finding.of(self.id, tested, bad, n_untestable=untestable)
        if bad or not untestable:
            return found
        return msgspec.structs.replace(found, explanation=why)

    def _limit(self, calls: Iterable[ModelCall]) -> int:
        """States after which a search is given up: soon, where the calls have no order among them."""
        return self.most // 10 if any(_unbounded(c) for c in calls) else self.most

    def explains(self, calls: Sequence[ModelCall]) -> bool | None:
        """Whether some order of the calls of one part is one of the model; None if that was not found out."""
        calls = sorted(calls, key=lambda c: c.begin)
        must = sum(1 << k for k, c in enumerate(calls) if c.known)
        sent = sorted({c.m for c in calls if c.name in SENDS})
        tried: set[tuple[int, Hashable]] = set()
        limit = self._limit(calls)
        paths = [self._following(calls, sent, 0, self.initial())]
        if not must:
            return True
        while paths:
            following = next(paths[-1], None)
            if following is None:
                paths.pop()
                continue
            done, state = following
            if done & must == must:
                return True
            if following in tried:
                continue
            if len(tried) >= limit:
                return None
            tried.add(following)
            paths.append(self._following(calls, sent, done, state))
        return False

    def _following(
        self, calls: Sequence[ModelCall], sent: Sequence[str], done: int, state: Hashable
    ) -> Iterator[tuple[int, Hashable]]:
        """What may be next: a call that has begun before any other that is not done has ended."""
        horizon = NEVER
        for k, call in enumerate(calls):
            if call.begin > horizon:
                break
            if not done >> k & 1 and call.end < horizon:
                horizon = call.end
        for k, call in enumerate(calls):
            if call.begin > horizon:
                return
            if done >> k & 1:
                continue
            unknown = not call.known and call.name not in SENDS
            for m in sent if unknown else (call.m,):
                after = self.step(state, call._replace(m=m))
                if after is not None:
                    yield done | 1 << k, after

    def _witness(self, calls: Sequence[ModelCall]) -> tuple[str, list[Event]]:
        """The shortest beginning of a part that no order explains, and what it ends with."""
        ends = sorted((c.end, c.event.i) for c in calls if c.known)
        low, high = 0, len(ends) - 1
        while low < high:
            middle = (low + high) // 2
            if self.explains(_until(calls, ends[middle])) is False:
                high = middle
            else:
                low = middle + 1
        shown = _until(calls, ends[low])
        last = next(c for c in shown if c.known and (c.end, c.event.i) == ends[low])
        events = sorted({e.i: e for c in shown for e in c.events}.values(), key=lambda e: e.i)
        return (
            f"no order of these {len(shown)} calls is one of the model; the last is {last}, at event {last.event.i}",
            events,
        )


def _unbounded(call: ModelCall) -> bool:
    """Whether a call that was made may have begun at any time."""
    return call.begin == ALWAYS and call.name != "deliver"


def _until(calls: Sequence[ModelCall], end: tuple[Time, int]) -> list[ModelCall]:
    """The calls that had begun by then; what had not ended is open."""
    return [
        c if c.known and (c.end, c.event.i) <= end else c._replace(known=False, end=NEVER)
        for c in calls
        if c.begin <= end[0]
    ]


def calls_of(events: Sequence[Event]) -> list[ModelCall]:
    """The calls of a history: beginnings with their ends, deliveries, and events without phases."""
    out: list[ModelCall] = []
    open_: dict[tuple[str, str, int | None, str], Event] = {}
    for event in events:
        key = (event.rec, event.ev, event.op, event.proc)
        if event.ph == "invoke":
            if (before := open_.get(key)) is not None:
                out.append(_open(before))
            open_[key] = event
            continue
        begun = open_.pop(key, None) if event.ph else None
        if event.ph == "fail":
            continue
        both = (event,) if begun is None else (begun, event)
        m = event.m or (begun.m if begun is not None else "")
        begin: Time = ALWAYS
        if event.t_lo is not None:
            begin = event.t_lo
        elif begun is not None:
            begin = when(begun)
        elif not event.ph and event.ev != "deliver" and event.lvl not in ("", "api"):
            begin = when(
                event
            )  # above a client library the line may stand behind the call, as in P20
        # What a client sent without waiting for an answer is there at some time later, or never.
        silent = not event.ph and event.ev in SENDS and event.lvl not in EXACT
        known = event.ph != "info" and not (silent and event.t_hi is None)
        end: Time = NEVER
        if known:
            end = event.t_hi if event.t_hi is not None else when(event)
        out.append(ModelCall(event.ev, event.q, m, begin, end, known, event, both))
    return out + [_open(event) for event in open_.values()]


def _open(event: Event) -> ModelCall:
    """A call of which only the beginning is known."""
    return ModelCall(event.ev, event.q, event.m, when(event), NEVER, False, event, (event,))
