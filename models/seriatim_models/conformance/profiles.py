"""What a system promises: the properties that its recordings are judged by, in the form that it promises them.

Systems differ in two things above all: where a message that is given back lands, and when.
A profile holds a system to its own word and to nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass

from seriatim_models.properties import WHITEBOX
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.requeue import RequeueLateness


@dataclass(frozen=True)
class Profile:
    """A named promise."""

    id: str
    title: str
    properties: tuple[AnyProperty, ...]


def _but(*changed: AnyProperty, without: frozenset[str] = frozenset()) -> tuple[AnyProperty, ...]:
    """All that a recording can show, with some properties in another form and some left out."""
    forms = {p.id: p for p in changed}
    return tuple(forms.get(p.id, p) for p in BLACKBOX if p.id not in without)


PROFILES = {
    profile.id: profile
    for profile in (
        Profile("any", "everything that a recording can show", BLACKBOX),
        Profile(
            "amqp-0-9-1-4.7",
            "AMQP 0-9-1, section 4.7: first deliveries keep order; nothing is said of those given back",
            _but(without=frozenset({"P5", "P6"})),
        ),
        Profile(
            "rabbit-classic",
            "RabbitMQ, classic queue: given back to its old place, and back within the prefetch",
            _but(RequeueLateness()),
        ),
        Profile(
            "strict-qpid",
            "strict order: given back to its old place, and back before anything later",
            _but(RequeueLateness(within=0)),
        ),
        Profile(
            "reference",
            "what the reference, or another white box, records of itself: events of level model",
            WHITEBOX,
        ),
    )
}
