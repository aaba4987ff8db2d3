"""What the properties of the client, its work pool and the broker share: what names a channel and a delivery.

They read the client's events of level ``model`` (`catalogue.CLIENT`). Those of the server are recorded under its lock.
A key of the pool is ``connection.channel``; a work item of a delivery is called ``connection.channel:tag``.
"""

from __future__ import annotations

from seriatim_models.history.event import Event
from seriatim_models.properties.base import ModelHistory

SOURCE = "The RabbitMQ Threading Model"

Held = tuple[str, int | None, int | None]
"""What names an unacknowledged delivery: connection, channel, delivery tag."""


def channel(e: Event) -> tuple[str, int | None]:
    """The channel of an event: connection and number."""
    return (e.conn, e.ch)


def connection(k: str) -> str:
    """Whose pool a key belongs to; a pool by itself has the name ''."""
    return k.rpartition(".")[0]


def held(e: Event) -> Held:
    """The unacknowledged delivery that an event names."""
    return (e.conn, e.ch, e.dtag)


class Client(ModelHistory):
    """A property over events of level ``model``; names are the client's, so other systems' events are not read."""

    source = SOURCE
