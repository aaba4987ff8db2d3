"""Known violations, each a short scene on a queue and channels of its own, seen from inside the broker.

A scene says how many violations each property must find in it. So in a history of any length into which scenes are
injected, each property must find exactly the sum: fewer is a false negative, more is a false positive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from seriatim_models.history import Event


class SceneWriter:
    """Writes the events of one scene. `i` and `t` count from the place where it is injected.

    `q` names the queue of the scene, `i` is the index of its first event and `step` the ns from event to event.
    """

    def __init__(self, q: str, i: int, step: int, shift: int = 0) -> None:
        self.q = q
        self.events: list[Event] = []
        self.shift = shift
        """ns by which the clock is ahead of ``i * step``."""
        self._i, self._step = i, step
        self._tags: Counter[str] = Counter()

    def add(self, ev: str, ph: str = "", **fields: Any) -> Event:
        """Append an event with these fields in place of the usual ones."""
        i = self._i + len(self.events)
        base: dict[str, Any] = {
            "i": i,
            "t": i * self._step + self.shift,
            "ev": ev,
            "ph": ph,
            "lvl": "broker",
            "q": self.q,
        }
        event = Event(**(base | fields))
        self.events.append(event)
        return event

    def on(self, who: str) -> dict[str, Any]:
        """The fields that name the channel of a client."""
        return {"conn": f"{self.q}-{who}", "ch": 1, "gen": 1}

    def publish(self, *numbers: int, **fields: Any) -> None:
        """The messages of these numbers are published and confirmed."""
        for n in numbers:
            at = {"m": f"{self.q}:{n}", "pub": self.q, "pseq": n, **self.on("p"), **fields}
            op = self.add("publish", "invoke", **at).i
            self.add("publish", "ok", op=op, **at)

    def open(self, who: str) -> None:
        """A client opens its channel."""
        self.add("ch_open", **(self.on(who) | {"q": ""}))

    def deliver(
        self, n: int, to: str = "a", again: bool = False, tag: int | None = None, **fields: Any
    ) -> None:
        """Message `n` is delivered to a client, with the next delivery tag unless one is given."""
        self._tags[to] = self._tags[to] + 1 if tag is None else tag
        t = (self._i + len(self.events)) * self._step + self.shift
        base: dict[str, Any] = {
            "m": f"{self.q}:{n}", "pub": self.q, "pseq": n, "ctag": to, "dtag": self._tags[to],
            "redelivered": again, "autoack": False, "t_lo": t, **self.on(to),
        }  # fmt: skip
        self.add("deliver", **(base | fields))

    def settle(self, ev: str, n: int, by: str = "a", tag: int | None = None, **fields: Any) -> None:
        """A client settles message `n`; `ev` is the event, the tag is its latest unless one is given."""
        dtag = self._tags[by] if tag is None else tag
        self.add(ev, "invoke", m="", ms=[f"{self.q}:{n}"], dtag=dtag, **(fields | self.on(by)))

    def ack(self, n: int, by: str = "a", tag: int | None = None) -> None:
        """A client acknowledges message `n`."""
        self.settle("ack", n, by, tag)

    def requeue(self, n: int, by: str = "a") -> None:
        """A client rejects message `n`, which is requeued."""
        self.settle("nack", n, by, requeue=True)


class ViolationKind(NamedTuple):
    """One kind of violation, and the scene that shows it."""

    id: str
    """The property it is a violation of, and which."""
    title: str
    write: Callable[[SceneWriter], None]
    violations: dict[str, int]
    """How many violations each property must find in one such scene; those not named find none."""

    @property
    def property(self) -> str:
        """The id of the property that the kind is named after."""
        return self.id.partition(":")[0]


def _phantom(s: SceneWriter) -> None:
    s.publish(0)
    s.deliver(0)
    s.ack(0)
    s.deliver(7)
    s.ack(7)


def _settled(s: SceneWriter) -> None:
    s.publish(0)
    s.deliver(0)
    s.ack(0)
    s.deliver(0, again=True)
    s.ack(0)


def _lost(s: SceneWriter) -> None:
    s.publish(0, 1)
    s.add("consume", ctag="a", autoack=False, **s.on("a"))
    s.deliver(0)
    s.ack(0)
    s.add("cancel", ctag="a", **s.on("a"))
    s.add("ch_close", ph="ok", **s.on("a"))  # what was on its way to it is back
    s.add("note", args={"depth": 0})


def _overlap(s: SceneWriter) -> None:
    s.publish(0)
    s.deliver(0, "a")
    s.deliver(0, "b", again=True)
    s.ack(0, "b")


def _unmarked(s: SceneWriter) -> None:
    s.publish(0)
    s.deliver(0)
    s.requeue(0)
    s.deliver(0, again=False)
    s.ack(0)


def _marked(s: SceneWriter) -> None:
    s.publish(0)
    s.deliver(0, again=True)
    s.ack(0)


def _order(s: SceneWriter) -> None:
    s.publish(0, 1)
    s.deliver(1)
    s.ack(1)
    s.deliver(0)
    s.ack(0)


def _skipped(s: SceneWriter) -> None:
    s.publish(0, 1)
    s.deliver(0, "a")
    s.requeue(0, "a")
    s.deliver(1, "b")
    s.ack(1, "b")
    s.deliver(0, "b", again=True)
    s.ack(0, "b")


def _late(s: SceneWriter) -> None:
    """The requeued message is overtaken once more than the prefetch of one allows."""
    limit: dict[str, Any] = {"prefetch": 1, "scope": "consumer"}
    s.publish(0, 1, 2, 3)
    s.deliver(0, **limit)
    s.requeue(0)
    for n in (1, 2):
        s.deliver(n, **limit)
        s.ack(n)
    s.deliver(0, again=True, **limit)
    s.ack(0)
    s.deliver(3, **limit)
    s.ack(3)


def _overrun(s: SceneWriter) -> None:
    limit: dict[str, Any] = {"prefetch": 1, "scope": "consumer"}
    s.publish(0, 1)
    s.open("a")
    s.deliver(0, **limit)
    s.deliver(1, **limit)
    s.ack(0, tag=1)
    s.ack(1, tag=2)


def _tag_left_out(s: SceneWriter) -> None:
    s.publish(0, 1)
    s.open("a")
    s.deliver(0)
    s.deliver(1, tag=3)
    s.ack(0, tag=1)
    s.ack(1, tag=3)


def _tag_repeated(s: SceneWriter) -> None:
    s.publish(0, 1)
    s.open("a")
    s.deliver(0)
    s.ack(0)
    s.deliver(1, tag=1)
    s.ack(1)


def _settled_twice(s: SceneWriter) -> None:
    s.publish(0)
    s.open("a")
    s.deliver(0)
    s.ack(0)
    s.ack(0)


def _confirmed_twice(s: SceneWriter) -> None:
    s.open("p")
    s.publish(0)
    s.add("publish", "ok", m=f"{s.q}:0", **s.on("p"))


def _after_cancel(s: SceneWriter) -> None:
    s.publish(0)
    s.open("a")
    s.add("consume", ctag="a", autoack=False, **s.on("a"))
    s.add("cancel", ctag="a", **s.on("a"))
    s.deliver(0)
    s.ack(0)


def _after_close(s: SceneWriter) -> None:
    s.publish(0)
    s.open("a")
    s.add("ch_close", **(s.on("a") | {"q": ""}))
    s.deliver(0)


def _second_exclusive(s: SceneWriter) -> None:
    for who in ("a", "b"):
        s.add("consume", ctag=who, exclusive=True, autoack=False, **s.on(who))


def _not_the_active(s: SceneWriter) -> None:
    s.publish(0, 1)
    s.add("declare", args={"x-single-active-consumer": True})
    for n, who in enumerate("ab"):
        s.deliver(n, who)
        s.ack(n, who)


def _lower_first(s: SceneWriter) -> None:
    s.publish(0)
    for who, prio in (("a", 5), ("b", 1)):
        s.add("qos", prefetch=4, scope="consumer", **(s.on(who) | {"q": ""}))
        s.add("consume", ctag=who, cprio=prio, autoack=False, **s.on(who))
    s.deliver(0, "b")
    s.ack(0, "b")


def _together(s: SceneWriter) -> None:
    for n in (1, 2):
        s.add("cb_begin", dtag=n, **s.on("a"))
    s.add("cb_end", **s.on("a"))


def _callbacks_turned(s: SceneWriter) -> None:
    for n in (2, 1):
        s.add("cb_begin", dtag=n, **s.on("a"))
        s.add("cb_end", **s.on("a"))


def _two_calls(s: SceneWriter) -> None:
    s.open("a")
    for ph in ("invoke", "ok"):
        for op in (1, 2):
            s.add("rpc", ph, op=op, **s.on("a"))


def _asleep(s: SceneWriter) -> None:
    s.add("consume", ctag="a", autoack=False, **s.on("a"))
    s.publish(0)
    s.shift += 60 * 10**9
    s.deliver(0)
    s.ack(0)


def _read_again(s: SceneWriter) -> None:
    def given(pos: int) -> None:
        s.add("deliver", m=f"{s.q}:{pos}", pos=pos, ctag="g", autoack=True, **s.on("a"))

    s.publish(0, 1)
    for pos in (0, 1):
        given(pos)
        s.add("commit", pos=pos, ctag="g", **s.on("a"))
    given(0)


def _low_first(s: SceneWriter) -> None:
    s.add("declare", args={"x-max-priority": 9})
    for n in (0, 1):
        s.publish(n, prio=n)
    for n in (0, 1):
        s.deliver(n, prio=n)
        s.ack(n)


def _group_with_two(s: SceneWriter) -> None:
    s.add("declare", args={"groups": "held"})
    s.publish(0, 1, key="g")
    for n, who in enumerate("ab"):
        s.deliver(n, who, key="g")
    for n, who in enumerate("ab"):
        s.ack(n, who)


def _own_message(s: SceneWriter) -> None:
    s.open("a")
    s.add("consume", ctag="a", nolocal=True, **s.on("a"))
    s.publish(0, conn=f"{s.q}-a")
    s.deliver(0)
    s.ack(0)


def _requeued_before(s: SceneWriter) -> None:
    s.add("declare", args={"requeue": "tail"})
    s.publish(0, 1)
    s.deliver(0)
    s.add("nack", m="", ms=[f"{s.q}:0"], dtag=1, requeue=True, **s.on("a"))
    s.deliver(0, again=True)
    s.ack(0)
    s.deliver(1)
    s.ack(1)


def _early(s: SceneWriter) -> None:
    s.publish(0, args={"delay": 60_000})
    s.deliver(0)
    s.ack(0)


KINDS: tuple[ViolationKind, ...] = (
    ViolationKind("P1:phantom", "a message that nobody sent", _phantom, {"P1": 1, "P20": 1}),
    ViolationKind("P1:settled", "a message comes back after it was acknowledged", _settled, {"P1": 1}),
    ViolationKind("P1:lost", "a confirmed message is in a drained queue no more", _lost, {"P1": 1}),
    ViolationKind("P2:overlap", "two consumers hold one message", _overlap, {"P2": 1}),
    ViolationKind("P3:unmarked", "a redelivery says that it is none", _unmarked, {"P3": 1}),
    ViolationKind("P3:marked", "a first delivery says that it is another", _marked, {"P3": 1}),
    ViolationKind("P4:order", "first deliveries on one channel out of order", _order, {"P4": 1, "P5": 1, "P20": 1}),
    ViolationKind("P5:skipped", "a requeued message is passed over", _skipped, {"P5": 1}),
    ViolationKind("P6:late", "a requeued message is overtaken twice, with a prefetch of 1", _late, {"P5": 2, "P6": 1}),
    ViolationKind("P7:overrun", "more outstanding than the prefetch", _overrun, {"P7": 1}),
    ViolationKind("P8:left-out", "a delivery tag is left out", _tag_left_out, {"P8": 1}),
    ViolationKind("P8:repeated", "a delivery tag comes twice", _tag_repeated, {"P8": 1}),
    ViolationKind("P8:twice", "a delivery tag is settled twice", _settled_twice, {"P8": 1}),
    ViolationKind("P9:cancelled", "a delivery after the confirmed cancel", _after_cancel, {"P9": 1}),
    ViolationKind("P9:closed", "a delivery after the confirmed close", _after_close, {"P9": 1}),
    ViolationKind("P10:exclusive", "a second exclusive consumer", _second_exclusive, {"P10": 1}),
    ViolationKind("P10:active", "another than the single active consumer gets a message", _not_the_active, {"P10": 1}),
    ViolationKind("P11:lower", "a consumer of lower priority goes first", _lower_first, {"P11": 1}),
    ViolationKind("P12:together", "two callbacks of one channel run at once", _together, {"P12": 1}),
    ViolationKind("P12:turned", "callbacks of one channel out of order", _callbacks_turned, {"P12": 1}),
    ViolationKind("P13:calls", "two calls of one channel at once", _two_calls, {"P13": 1}),
    ViolationKind("P14:asleep", "a ready consumer waits a minute beside a message", _asleep, {"P14": 1}),
    ViolationKind("P15:again", "a position comes again after it was committed", _read_again, {"P5": 1, "P15": 1}),
    ViolationKind("P21:twice", "a publish is confirmed twice", _confirmed_twice, {"P21": 1}),
    ViolationKind("P22:low", "a message of lower priority comes first", _low_first, {"P22": 1}),
    ViolationKind("P23:two", "messages of one group are with two consumers", _group_with_two, {"P23": 1}),
    ViolationKind("P24:own", "a no-local consumer is given what its connection sent", _own_message, {"P24": 1}),
    ViolationKind("P25:head", "what is requeued to the tail comes first", _requeued_before, {"P25": 1}),
    ViolationKind("P26:early", "a message is given before its delay is over", _early, {"P26": 1}),
)  # fmt: skip


def scene(
    kind: ViolationKind, number: int, i: int, step: int, shift: int = 0
) -> tuple[list[Event], int]:
    """The events of one injected violation, and the ns by which the clock is ahead after them.

    `i` is the index of its first event, `step` the ns from event to event, and `shift` the ns by which the clock is
    ahead before them.
    """
    writer = SceneWriter(f"{kind.id}#{number}", i, step, shift)
    kind.write(writer)
    return writer.events, writer.shift


def expected(kinds: Iterable[ViolationKind], each: int) -> dict[str, int]:
    """How many violations each property must find if so many of each kind are injected."""
    out: Counter[str] = Counter()
    for kind in kinds:
        for property, n in kind.violations.items():
            out[property] += n * each
    return dict(out)
