"""P21: every publish is answered once."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest, ordered
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.blackbox.channels import CaseCounts, ChannelProperty, Tracks
from seriatim_models.properties.blackbox.naming import (
    Holder,
)

PublishKey = tuple[str, str, str]
"""A message as one recorder sends it to one queue: recorder, queue, message."""


class Publishes(msgspec.Struct, ForgetsOldest):
    """The publishes of one channel."""

    bounded: ClassVar = ("waiting", "answered")

    waiting: dict[PublishKey, tuple[Event, int]] = {}
    """Of a message the latest publish, and how many were sent and not answered yet."""
    answered: dict[PublishKey, tuple[Event, Event]] = {}
    """Of messages of which no publish waits: the latest publish, and its answer."""
    opened: Event | None = None
    """The channel's opening."""
    whole: bool = False
    """Every publish of the channel is known: its opening was seen, no lines were lost, and nothing was forgotten."""
    resting: bytes = b""
    """What was `answered`, packed, while nothing comes of the channel."""


_Answered = dict[PublishKey, tuple[Event, Event]]
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(_Answered).decode


WAITING_KEPT = (
    65_536  # messages; without confirms nothing is ever answered, and the state must stay small
)
ANSWERED_KEPT = 256  # messages; an answer that comes twice comes soon


class AnsweredOnce(ChannelProperty[Publishes]):
    """P21. A case is an answer to a publish: `ok` if it was confirmed, `fail` if it was refused.

    A second answer is a violation if no other publish of the same message can be meant: where each of the channel's
    publishes is known, or where both answers name the same operation (`op`). Otherwise it is untestable, as is an
    answer to a publish that the recording does not have: it may have begun late. An outcome that stays unknown
    (`info`) is no answer, and one may still follow it; a message that is published again may be answered again.
    Publishes without phases say nothing of their answers.
    """

    id = "P21"
    sentence = "Every publish is answered at most once: confirmed or refused, and never both."
    source = "https://www.rabbitmq.com/docs/confirms#publisher-confirms"
    rests_on = ""
    case = "publisher confirms"
    reads = frozenset({"publish", "ch_open", GAP})
    summary_type = Tracks[Publishes]
    channel_check = "seriatim_models.properties.columnar.channel_checks:AnswerCheck"
    keeps = (
        "of each channel, publishes without an answer (65,536 messages), and the latest 256 answers"
    )
    promised_in: ClassVar[Mapping[str, str]] = {
        "rabbit-classic": "https://www.rabbitmq.com/docs/confirms#publisher-confirms",
        "rabbit-quorum": "https://www.rabbitmq.com/docs/confirms#publisher-confirms",
    }
    silent_elsewhere = "publisher confirms are an extension that not every system has"

    def rest(self, state: Publishes) -> None:
        if state.answered:
            state.resting = zlib.compress(_pack(state.answered), 1)
            state.answered.clear()

    def step(self, state: Publishes, event: Event, by: Holder, tally: CaseCounts) -> None:
        if state.resting:
            state.answered = ordered(_unpack(zlib.decompress(state.resting)))
            state.resting = b""
        if event.ev == "ch_open":
            state.opened, state.whole = event, True
            return
        key = event.rec, event.q, event.m
        if event.ph == "invoke":
            _, waiting = state.waiting.get(key, (event, 0))
            state.waiting[key] = event, waiting + 1
            state.answered.pop(key, None)
            if len(state.waiting) > WAITING_KEPT:
                forget_oldest(state.waiting)
                state.whole = False
        elif event.ph in ("ok", "fail"):
            self._answer(state, event, key, tally)
        elif event.ph == "":
            state.waiting.pop(key, None)
            state.answered.pop(key, None)

    def _answer(self, state: Publishes, event: Event, key: PublishKey, tally: CaseCounts) -> None:
        sent, waiting = state.waiting.pop(key, (event, 0))
        before = state.answered.get(key)
        if waiting:
            tally.tested += 1
            if waiting > 1:
                state.waiting[key] = sent, waiting - 1
            else:
                state.answered[key] = sent, event
                if len(state.answered) > ANSWERED_KEPT:
                    forget_oldest(state.answered)
        elif before is not None and (
            state.whole or (event.op is not None and event.op == before[1].op)
        ):
            tally.tested += 1
            opened = [state.opened] if state.opened else []
            tally.report_violation(
                f"the publish of {event.m} was answered with {event.ph} at event {event.i}, "
                f"after {before[1].ph} at event {before[1].i}",
                [*opened, *before, event],
            )
        else:
            tally.untestable += 1
