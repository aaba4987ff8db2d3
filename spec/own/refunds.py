"""A domain rule as a property: no refund is delivered before the payment that it refunds."""

from __future__ import annotations

from seriatim_models.history import Event
from seriatim_models.properties.base import WholeHistory


class RefundAfterPayment(WholeHistory):
    """Messages are named pay-N and refund-N. A case is a delivery of a refund whose payment was published."""

    id = "REFUND"
    sentence = "No refund is delivered before the payment that it refunds."
    source = "the rules of our shop, section 4"
    kind = "safety"
    reads = frozenset({"publish", "deliver", "get"})

    def cases(self, events: list[Event], bad: list[tuple[str, list[Event]]]) -> int:
        """Put violations into `bad`; return how many cases were tested."""
        published = {e.m for e in events if e.ev == "publish"}
        paid: set[str] = set()
        tested = 0
        for event in events:
            if event.ev == "publish" or not event.m:
                continue
            kind, _, number = event.m.partition("-")
            if kind == "pay":
                paid.add(number)
            elif kind == "refund" and f"pay-{number}" in published:
                tested += 1
                if number not in paid:
                    bad.append((f"refund {number} came before its payment", [event]))
        return tested
