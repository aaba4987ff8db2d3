"""Events of the log, `seriatim.log`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seriatim.log import HEADER, Channel, Delivery, Position, Topic
from seriatim_models.recording.base import (
    CellEvents,
    OperationEvents,
    Record,
    Recording,
    after,
    before,
)
from seriatim_models.watched import WatchedHost


def text(message: bytes) -> str:
    """Return a message as a string of one character for each byte."""
    return message.decode("latin-1")


def publish(
    record: Record, method: Callable[..., Position], topic: Topic, message: bytes
) -> Position:
    """Record ``publish``: invoke; ok, with the place; fail, if it was too large; info, if it may have been written."""
    record("publish", ph="invoke", size=HEADER.size + len(message))
    try:
        place = method(topic, message)
    except Exception as error:
        if type(error).__name__ == "Misuse" and str(error) != "the topic is closed":
            record("publish", ph="fail")
        else:
            record("publish", ph="info", why=repr(error))
        raise
    record("publish", ph="ok", place=list(place))
    return place


def sleep(record: Record, method: Callable[..., None], channel: Channel) -> None:
    """Record ``sleep`` and ``woke``."""
    record("sleep", channel=channel.name)
    method(channel)
    record("woke", channel=channel.name)


def attempt(
    record: Record,
    method: Callable[..., Exception | None],
    channel: Channel,
    handler: object,
    delivery: Delivery,
) -> Exception | None:
    """Record ``handle``: invoke, and ok or fail."""
    place, body = list(delivery.place), text(delivery.message)
    record("handle", channel=channel.name, ph="invoke", place=place, body=body)
    error = method(channel, handler, delivery)
    ph = "ok" if error is None else "fail"
    record("handle", channel=channel.name, ph=ph, place=place, body=body)
    return error


def park(
    record: Record,
    method: Callable[..., None],
    channel: Channel,
    delivery: Delivery,
    error: Exception,
) -> None:
    """Record ``park``; info, if it may have been written."""
    where = placed(None, channel, delivery)
    try:
        method(channel, delivery, error)
    except OSError as failed:
        record("park", ph="info", why=repr(failed), **where)
        raise
    record("park", **where)


def placed(_: None, channel: Channel, what: Any, *more: object) -> dict[str, object]:
    """Return the channel and the place of `what`, which is a delivery or a parked message."""
    return {"channel": channel.name, "place": list(what.place)}


CELLS: dict[str, CellEvents] = {}
"""No changes of the log's cells are recorded."""

OPERATIONS: dict[str, OperationEvents] = {
    "Topic.publish": publish,
    "Topic._append": after(
        "append",
        lambda place, topic, message: {"place": list(place), "body": text(message)},
    ),
    "Topic.strike": after("disconnected", lambda _, topic, channel: {"channel": channel.name}),
    "Channel.connect": after("connect", lambda _, channel: {"channel": channel.name}),
    "Channel._unread": after(
        "look", lambda unread, channel: {"channel": channel.name, "unread": unread}
    ),
    "Channel._sleep": sleep,
    "Channel._attempt": attempt,
    "Channel._back_off": before(
        "back_off", lambda channel: {"channel": channel.name, "attempts": channel.attempts}
    ),
    "Channel._commit": after(
        "commit", lambda _, channel, position: {"channel": channel.name, "place": list(position)}
    ),
    "Channel._park": park,
    "Channel.replay": after("struck", placed),
}
"""What records each operation, by the method's name."""


def recorded(host: WatchedHost) -> Recording:
    """Return a host that records what topics and channels on it do."""
    return Recording(host, CELLS, OPERATIONS)
