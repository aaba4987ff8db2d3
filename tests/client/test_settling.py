"""Settle, prefetch, requeue and close against a model of lists."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from seriatim.broker import Act, Message, Server, Wire
from seriatim.host import Threads
from seriatim_models.recording.client import server_snapshot


class Settling(RuleBasedStateMachine):
    """One queue; channel 1 has a consumer with a prefetch, channels 2 and 3 get. A place is a number of arrival."""

    def __init__(self) -> None:
        super().__init__()
        host = Threads()
        self.server = Server(host)
        self.wire = Wire(host, "c")
        self.prefetch = 0
        self.consuming = False
        self.arrived = 0
        self.ready: list[int] = []
        self.unacked: dict[int, dict[int, int]] = {n: {} for n in (1, 2, 3)}
        """Channel -> delivery tag -> place."""
        self.tags = dict.fromkeys((1, 2, 3), 0)
        self.again: set[int] = set()
        for n in self.unacked:
            self.server.open(self.wire, n)
        self.at(1, lambda c: self.server.declare_queue(c, "q"))

    def at(self, channel: int, act: Act) -> None:
        self.server.request(self.wire, channel, act)

    # ---- the model

    def push(self) -> None:
        mine = self.unacked[1]
        while self.consuming and self.ready and (not self.prefetch or len(mine) < self.prefetch):
            self.take(1)

    def take(self, channel: int) -> None:
        self.tags[channel] += 1
        self.unacked[channel][self.tags[channel]] = self.ready.pop(0)

    def back(self, places: list[int]) -> None:
        self.again.update(places)
        self.ready = sorted([*self.ready, *places])

    # ---- the rules

    @rule()
    def publish(self) -> None:
        self.arrived += 1
        place = self.arrived
        self.at(2, lambda c: self.server.publish(c, "", "q", Message(str(place))))
        self.ready.append(place)
        self.push()

    @precondition(lambda self: not self.consuming)
    @rule(prefetch=st.integers(0, 3), whole=st.booleans())
    def consume(self, prefetch: int, whole: bool) -> None:
        self.at(1, lambda c: self.server.qos(c, prefetch, whole))
        self.at(1, lambda c: self.server.qos(c, 0, not whole))
        self.at(1, lambda c: self.server.consume(c, "q", "t"))
        self.prefetch, self.consuming = prefetch, True
        self.push()

    @rule(channel=st.sampled_from([2, 3]), auto_ack=st.booleans())
    def get(self, channel: int, auto_ack: bool) -> None:
        self.at(channel, lambda c: self.server.get(c, "q", auto_ack))
        if self.ready:
            self.take(channel)
            if auto_ack:
                self.unacked[channel].popitem()

    @rule(
        data=st.data(),
        channel=st.sampled_from([1, 2, 3]),
        multiple=st.booleans(),
        requeue=st.sampled_from([None, True, False]),
    )
    def settle(
        self, data: st.DataObject, channel: int, multiple: bool, requeue: bool | None
    ) -> None:
        held = self.unacked[channel]
        if not held:
            return
        tag = data.draw(st.sampled_from([*held, 0] if multiple else [*held]), "tag")
        self.at(channel, lambda c: self.server.settle(c, tag, multiple, requeue))
        tags = [t for t in held if (t <= tag or not tag if multiple else t == tag)]
        places = [held.pop(t) for t in tags]
        if requeue:
            self.back(places)
        self.push()

    @rule(channel=st.sampled_from([1, 2, 3]), by_mistake=st.booleans())
    def close(self, channel: int, by_mistake: bool) -> None:
        """A channel closes, of itself or because it settles what there is not, and another takes its number."""
        if by_mistake:
            self.at(channel, lambda c: self.server.settle(c, 10**6, False, None))
        else:
            self.at(channel, self.server.close_channel)
        self.server.open(self.wire, channel)
        if channel == 1:
            self.consuming = False
        self.back(list(self.unacked[channel].values()))
        self.unacked[channel].clear()
        self.tags[channel] = 0
        self.push()

    @invariant()
    def same(self) -> None:
        snapshot = server_snapshot(self.server)
        assert snapshot["queues"] == {"q": [[str(p), p, p in self.again] for p in self.ready]}
        assert snapshot["unacked"] == {
            f"c.{n}": [str(p) for p in held.values()] for n, held in self.unacked.items()
        }


Settling.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSettling = Settling.TestCase
