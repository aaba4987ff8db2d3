"""LC: a channel of a log reads in order, at least once, and neither sleeps over news nor spins (article "part 4").

The events are those of `catalogue.LOG`; a place or position is [segment, offset], and places are in write order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seriatim_models.history import catalogue
from seriatim_models.history.catalogue import ChannelAtRest
from seriatim_models.history.event import Event
from seriatim_models.properties.base import ModelHistory, Violations

SOURCE = "Building a Queue, part 4"
Place = tuple[int, int]


def place(e: Event) -> Place:
    """The place of an event: segment and offset."""
    return (catalogue.place(e)[0], catalogue.place(e)[1])


class OfChannels(ModelHistory):
    """A property that looks at each channel's events in turn."""

    source = SOURCE

    @staticmethod
    def by_channel(events: Iterable[Event]) -> Iterator[tuple[str, list[Event]]]:
        """Each channel with its events, in the order of their first."""
        found: dict[str, list[Event]] = {}
        for e in events:
            if name := catalogue.channel.get(e, ""):
                found.setdefault(name, []).append(e)
        yield from found.items()

    @staticmethod
    def written(events: Iterable[Event]) -> dict[Place, Event]:
        """The append of each position."""
        return {place(e): e for e in events if e.ev == "append"}

    @staticmethod
    def rest(events: Iterable[Event]) -> Event | None:
        """The state when nothing moves any more, if it was recorded."""
        return next((e for e in events if e.ev == "log_rest"), None)


def standing(rest: Event) -> Iterator[tuple[str, ChannelAtRest, Place]]:
    """Each channel at rest: name, state, position."""
    for name, state in catalogue.channels(rest).items():
        yield name, state, (state["place"][0], state["place"][1])


class Lc1(OfChannels):
    """A case is a call of a handler."""

    id = "LC-1"
    sentence = (
        "A channel reads its topic in write order, each channel from its own position "
        "(segment, offset), one message at a time."
    )
    reads = frozenset({"append", "channel", "connect", "handle", "commit"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        written = self.written(events)
        tested = 0
        for name, own in self.by_channel(events):
            floor: Place = (0, 0)
            ahead: set[Place] = set()
            """What was handled of a batch that is not committed."""
            at: Event | None = None
            """The attempt that has not ended, or failed, or succeeded; whatever is next comes after it."""
            for e in own:
                if e.ev in ("channel", "commit"):
                    floor = place(e)
                    ahead = set()
                elif e.ev == "connect":
                    at = None
                elif e.ev == "handle" and e.ph == "invoke":
                    tested += 1
                    here = place(e)
                    was = written.get(here)
                    missed = [p for p in written if floor <= p < here and p not in ahead]
                    if at is not None and at.ph == "invoke":
                        bad.append((f"{name} handles two messages at once", [at, e]))
                    elif here < floor:
                        bad.append((f"{name} stands at {floor} and handles {here}", [e]))
                    elif missed and written[missed[0]].i < e.i:
                        why = f"{name} handles {here} before {missed[0]}"
                        bad.append((why, [written[missed[0]], e]))
                    elif was is not None and catalogue.body(was) != catalogue.body(e):
                        bad.append((f"{name} reads at {here} what was not written", [was, e]))
                    at = e
                elif e.ev == "handle":
                    at = e
                    if e.ph == "ok":
                        ahead.add(place(e))
        return tested


class Lc2(OfChannels):
    """A case is a move of a channel's position."""

    id = "LC-2"
    sentence = (
        "At least once: the position moves only past a message whose handler succeeded "
        "(or that was parked), and survives a crash."
    )
    reads = frozenset({"append", "channel", "handle", "park", "commit"})

    def cases(self, events: list[Event], bad: Violations) -> int:  # noqa: C901, PLR0912  # a branch per event
        written = self.written(events)
        tested = 0
        stands: dict[str, Event] = {}
        seen: dict[str, set[Place]] = {}  # on threads, before the record that it was written
        for e in events:
            if e.ev in ("channel", "commit"):
                stands[catalogue.channel(e)] = e
                if e.ev == "channel":
                    seen[catalogue.channel(e)] = set()
            elif e.ev in ("handle", "park") and "channel" in e.args:
                seen.setdefault(catalogue.channel(e), set()).add(place(e))
            elif e.ev == "append":
                for name, at in stands.items():
                    if place(e) < place(at) and place(e) not in seen.get(name, ()):
                        why = f"{name} stands at {place(at)} and will not see what is written at {place(e)}"
                        bad.append((why, [at, e]))
        for name, own in self.by_channel(events):
            done: set[Place] = set()
            base: Place | None = None
            last: Event | None = None
            for e in own:
                if (e.ev == "handle" and e.ph == "ok") or (e.ev == "park" and not e.ph):
                    done.add(place(e))
                elif e.ev in ("channel", "commit"):
                    if base is None:
                        base = place(e)
                    else:
                        tested += 1
                    lost = [p for p in written if base <= p < place(e) and p not in done]
                    if lost:
                        why = f"{name} moves past {lost[0]}, which was neither handled nor parked"
                        bad.append((why, [written[lost[0]], e]))
                    if last is not None and place(e) < place(last):
                        bad.append((f"{name} stood at {place(last)}, now {place(e)}", [last, e]))
                    last = e
        return tested


class Lc3(OfChannels):
    """A case is a call of publish."""

    id = "LC-3"
    sentence = (
        "The publisher never waits for a consumer, and a disconnected channel costs no growing memory: "
        "publishers signal to a connected channel once, and to no other; at rest no file is left open."
    )
    kind = "liveness"
    reads = frozenset({"publish", "recovery", "log_rest"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        rest = self.rest(events)
        if rest is None:
            return 0
        going: dict[str, Event] = {}
        tested = 0
        for e in events:
            if e.ev == "publish" and e.ph == "invoke":
                tested += 1
                going[e.proc] = e
            elif e.ev == "publish":
                going.pop(e.proc, None)
            elif e.ev == "recovery":  # the machine had stopped
                going.clear()
        for proc, e in going.items():
            bad.append((f"{proc} never returned from publish", [e]))
        if catalogue.open_files.get(rest, 0):
            bad.append((f"files left open: {catalogue.open_files(rest)}", [rest]))
        for name, state, _ in standing(rest):
            if not state["connected"] and state["held"]:
                bad.append((f"{name} is disconnected and keeps {state['held']} in memory", [rest]))
            if state.get("listed", state["connected"]) != state["connected"]:
                why = f"publishers signal to {name} {state['listed']} times; connected: {state['connected']}"
                bad.append((why, [rest]))
        return tested


class Lc4(OfChannels):
    """A case is a channel with a consumer at rest while the topic is not empty."""

    id = "LC-4"
    sentence = (
        "No lost wake-up: at rest no consumer sleeps, or has stopped short of sleeping, while an unread message is "
        "there, backlog at connect included, unless its handler is at work or it pauses after a failure; "
        "nor when it was asked to end."
    )
    kind = "liveness"
    reads = frozenset(
        {
            "append", "channel", "commit", "connect", "disconnected", "look", "sleep", "woke", "handle",
            "back_off", "log_rest",
        }
    )  # fmt: skip

    def cases(self, events: list[Event], bad: Violations) -> int:
        """Where a channel stands is what it committed last, not what it says at rest."""
        rest = self.rest(events)
        if rest is None:
            return 0
        tested = 0
        written = self.written(events)
        for name, own in self.by_channel(events):
            stood = [place(e) for e in own if e.ev in ("channel", "commit")]
            used = [e for e in own if e.ev in ("connect", "disconnected")]
            doing = [e for e in own if e.ev not in ("channel", "commit")]
            if not stood or not used or used[-1].ev == "disconnected":
                continue
            tested += bool(written)
            unread = [e for p, e in written.items() if p >= stood[-1]]
            last = doing[-1]
            busy = last.ev in ("connect", "back_off") or (
                last.ev == "handle" and last.ph == "invoke"
            )
            if unread and not busy:
                what = "sleeps" if last.ev == "sleep" else "does nothing"
                why = f"{name} {what} at {stood[-1]} and {len(unread)} are unread"
                bad.append((why, [last, unread[0]]))
            asked = name in catalogue.channels(rest) and catalogue.channels(rest)[name].get("asked")
            if asked and last.ev == "sleep":
                bad.append((f"{name} was asked to end and sleeps", [last, rest]))
        return tested


class Lc5(OfChannels):
    """A case is a look that found nothing."""

    id = "LC-5"
    sentence = (
        "No spin: with nothing to read a consumer sleeps; a count of what waits, if there is one, "
        "is never negative, and not above what is unread when all rests."
    )
    reads = frozenset({"append", "look", "sleep", "waiting", "log_rest"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        tested = 0
        rest = self.rest(events)
        for name, own in self.by_channel(events):
            dry: Event | None = None
            for e in own:
                if e.ev == "sleep" or (e.ev == "look" and catalogue.unread(e)):
                    dry = None
                elif e.ev == "look":
                    tested += 1
                    if dry is not None:
                        bad.append((f"{name} found nothing twice and did not sleep", [dry, e]))
                    dry = e
                elif e.ev == "waiting" and catalogue.count_waiting(e) < 0:
                    bad.append((f"{name} counts {catalogue.count_waiting(e)} waiting", [e]))
            counts = [e for e in own if e.ev == "waiting"]
            if rest is not None and counts and name in catalogue.channels(rest):
                at = tuple(catalogue.channels(rest)[name]["place"])
                unread = sum(p >= at for p in self.written(events))
                if catalogue.count_waiting(counts[-1]) > unread:
                    why = f"{name} counts {catalogue.count_waiting(counts[-1])} waiting, {unread} are unread"
                    bad.append((why, [counts[-1]]))
        return tested


class Lc6(OfChannels):
    """A case is a failure of a handler."""

    id = "LC-6"
    sentence = (
        "A message that always fails holds its channel's order without burning the processor: "
        "it is tried exactly a stated number of times with a pause between, then parked, once, then the rest goes on; "
        "parked it stays until a replay of it succeeds."
    )
    reads = frozenset({"channel", "handle", "back_off", "park", "struck", "log_rest"})

    def cases(self, events: list[Event], bad: Violations) -> int:  # noqa: C901, PLR0912  # a branch per event
        tested = 0
        for name, own in self.by_channel(events):
            limit = before = 0
            failed: list[Event] = []
            paused = parked = False
            for e in own:
                if e.ev == "channel":
                    limit, before = catalogue.max_attempts(e), catalogue.attempts.get(e, 0)
                    failed = []
                elif e.ev == "back_off":
                    paused = True
                elif e.ev == "park" and e.ph == "info":
                    before -= 1  # who connects tries once more: that it failed is not stored either
                    paused = True
                elif e.ev == "park":
                    here = [f for f in failed if place(f) == place(e)]
                    if parked or before + len(here) < limit:
                        times = (
                            "twice" if parked else f"after {before + len(here)} of {limit} attempts"
                        )
                        bad.append((f"{name} parks {place(e)} {times}", [*here[-1:], e]))
                    parked = True
                elif e.ph == "fail":
                    tested += 1
                    if failed and place(failed[-1]) != place(e):
                        failed, before = [], 0
                    failed.append(e)
                    paused = parked = False
                    if before + len(failed) > limit:
                        bad.append((f"{name} tried {place(e)} more than {limit} times", [e]))
                elif e.ph == "invoke" and failed:
                    if place(e) == place(failed[-1]):
                        if not paused:
                            why = f"{name} tries {place(e)} again without a pause"
                            bad.append((why, [failed[-1], e]))
                    elif not parked:
                        why = (
                            f"{name} goes past {place(failed[-1])}, which failed and is not parked"
                        )
                        bad.append((why, [failed[-1], e]))
                elif e.ph == "ok":
                    failed, before = [], 0
        self._kept(events, bad)
        return tested

    def _kept(self, events: list[Event], bad: Violations) -> None:
        """At rest the parking file lists what was parked and not struck off."""
        rest = self.rest(events)
        for name, own in self.by_channel(events):
            parked: dict[Place, Event] = {}
            for e in own:
                if e.ev == "park" and not e.ph:
                    parked[place(e)] = e
                elif e.ev == "struck":
                    parked.pop(place(e), None)
            if rest is None or name not in catalogue.channels(rest):
                continue
            listed = {(s, o) for s, o in catalogue.channels(rest)[name]["parked"]}
            for p, e in parked.items():
                if p not in listed:
                    bad.append((f"{name} parked {p} and does not list it", [e, rest]))
            for p in listed - parked.keys():
                bad.append((f"{name} lists {p}, which is not parked or was replayed", [rest]))


class Lc7(OfChannels):
    """A case is a publish that was taken or refused."""

    id = "LC-7"
    sentence = "A message is taken if and only if it fits into a segment, however full the segment in use is."
    reads = frozenset({"topic", "publish"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        room = tested = 0
        going: dict[str, Event] = {}
        for e in events:
            if e.ev == "topic":
                room = catalogue.segment_size(e)
            elif e.ph == "invoke":
                going[e.proc] = e
            elif e.ph == "info":  # closed, or the disk failed
                going.pop(e.proc, None)
            elif asked := going.pop(e.proc, None):
                tested += 1
                if (e.ph == "ok") != ((asked.size or 0) <= room):
                    what = "taken" if e.ph == "ok" else "refused"
                    why = f"a record of {asked.size} bytes was {what}; a segment has {room}"
                    bad.append((why, [asked, e]))
        return tested


class Lc8(OfChannels):
    """A case is a publish that returned, or a file that was opened again."""

    id = "LC-8"
    sentence = (
        "What was published stays: nothing is written over it, and after a crash the topic reaches past it; "
        "opening it again sets aside what was half written, and refuses, unchanged, what is damaged."
    )
    reads = frozenset({"topic", "publish", "append", "recovery"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        tested = 0
        promised: Event | None = None
        """The last one: places rise."""
        for e in events:
            if e.ev == "publish":
                if e.ph == "ok":
                    tested += 1
                    promised = e
                continue
            if e.ev == "recovery":
                tested += 1
                bad += self._recovered(e)
                continue
            end = place(e) if e.ev == "append" else (catalogue.tail(e)[0], catalogue.tail(e)[1])
            if promised is not None and end <= place(promised):
                what = "written" if e.ev == "append" else "opened again with its end"
                why = f"{place(promised)} was published, and the topic is {what} at {end}"
                bad.append((why, [promised, e]))
        return tested

    def _recovered(self, e: Event) -> Violations:
        before, after = catalogue.file_before(e), catalogue.file_after(e)
        if catalogue.refused(e) and not catalogue.spoilt(e):
            return [(f"{before!r}: what a crash may leave was refused as damaged", [e])]
        if catalogue.spoilt(e):
            why = "was not seen" if not catalogue.refused(e) else "was changed"
            wrong = after != before or not catalogue.refused(e)
        else:
            why = f"to {after!r}, and {catalogue.set_aside(e)!r} is set aside"
            wrong = before != after + catalogue.set_aside(e)
        return (
            [(f"damage {why}" if catalogue.spoilt(e) else f"{before!r}: {why}", [e])]
            if wrong
            else []
        )


LOG = (Lc1(), Lc2(), Lc3(), Lc4(), Lc5(), Lc6(), Lc7(), Lc8())
