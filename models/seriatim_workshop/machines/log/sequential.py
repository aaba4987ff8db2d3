"""The log call by call, against lists: publish, read, commit, fail, replay, crash and reopen, in any order."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

import seriatim.log as reference
from seriatim_models.machines.log.calls import LOG, SEGMENT, LogHarness, channels
from seriatim_models.machines.single_threaded_host import SingleThreadedHost
from seriatim_workshop.machines.sequential import CallMachine, Disagreement, with_rules

HEADER = 12
"""Bytes of a record's header: less than that is never a record."""


class LogModel:
    """All that was published; how far each channel has come, and how many messages it has parked."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.done = {"a": 0, "b": 0}
        self.parked = {"a": 0, "b": 0}

    def rest(self, channel: str) -> list[bytes]:
        """Return what a channel has not committed."""
        return self.written[self.done[channel] :]

    def publish_one(self, message: str) -> None:
        """Append a message."""
        self.written.append(message.encode("latin-1"))

    def read(self, channel: str, limit: int) -> list[bytes]:
        """Return the next messages."""
        return self.rest(channel)[: max(limit, 0)]

    def commit(self, channel: str, limit: int) -> int:
        """Go past the next messages."""
        number = len(self.read(channel, limit))
        self.done[channel] += number
        return number

    def replay(self, channel: str, fails: bool) -> int:
        """Replay what is parked."""
        if fails:
            return 0
        number, self.parked[channel] = self.parked[channel], 0
        return number

    def open_channel(self, name: str, max_attempts: int, at_tail: bool) -> None:
        """Begin with nothing committed, or with everything."""
        self.done[name] = len(self.written) if at_tail else 0
        self.parked[name] = 0


NOT_HERE = {
    *("consume", "consume_one", "connect", "begin", "disconnect"),
    *("notify", "move", "parked", "close_topic"),
}


@with_rules(LOG, leave_out=NOT_HERE)
class LogMachine(CallMachine):
    """`consume` ends only when it is asked to, so one message at a time is consumed by a rule of its own."""

    lib: ModuleType = reference

    @initialize()
    def begin(self) -> None:
        """Make the topic and its channels."""
        self.model = LogModel()
        self.harness = LogHarness(SingleThreadedHost().world, self.lib)

    def refusals(self) -> tuple[type[BaseException], ...]:
        return (self.lib.Misuse,)

    def label(self, value: Any) -> Any:
        if isinstance(value, self.lib.Channel):
            return value.name
        if isinstance(value, list):
            return [d.message for d in value]
        return None if isinstance(value, self.lib.Position) else value

    @rule(message=st.binary(max_size=SEGMENT - HEADER))
    def publish_anything(self, message: bytes) -> None:
        """Publish any bytes."""
        self.make(LOG["publish_one"], message=message.decode("latin-1"))

    @precondition(lambda self: any(map(self.model.rest, self.model.done)))
    @rule(pick=st.integers(0, 1), fails=st.booleans())
    def handle_one(self, pick: int, fails: bool) -> None:
        """Consume one message, with a handler that succeeds or fails."""
        behind = [c for c in channels(self.harness) if self.model.rest(c.name)]
        channel = behind[pick % len(behind)]
        seen: list[bytes] = []

        def handler(message: bytes) -> None:
            seen.append(message)
            channel.disconnect()
            if fails:
                raise ValueError

        self.harness.consume(channel, handler)
        if seen != self.model.read(channel.name, 1):
            raise Disagreement(f"{channel.name} handled {seen}")
        self.model.commit(channel.name, 1)
        self.model.parked[channel.name] += fails

    @rule(torn=st.binary(max_size=HEADER - 1))
    def crash(self, torn: bytes) -> None:
        """Stop the machine in the middle of a write, and open everything again."""
        files = self.harness.storage.survivors()
        last = max((n for n in files if n.endswith(".log")), default="00000000.log")
        files[last] = files.get(last, b"") + torn
        self.harness.reopen(files)
        for name in self.model.done.keys() - set("ab"):
            self.harness.channel(name, max_attempts=1)

    @invariant()
    def the_rest_is_unread(self) -> None:
        """Each channel's next messages are those of the list, and as many are parked."""
        if not hasattr(self, "model"):
            return
        for c in channels(self.harness):
            if self.label(c.read(1000)) != self.model.rest(c.name):
                raise Disagreement(f"{c.name} reads {c.read(1000)}")
            if len(c.parked()) != self.model.parked[c.name]:
                raise Disagreement(f"{c.name} has parked {c.parked()}")
