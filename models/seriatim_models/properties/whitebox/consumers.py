"""What consumers are promised by their queue: who may stand beside whom, and what is sent to whom."""

from __future__ import annotations

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.whitebox.entries import Violations
from seriatim_models.properties.whitebox.replay import OnReplay, Replay
from seriatim_models.properties.whitebox.state import consumer_of


class Ql6(OnReplay):
    """A case is a pair of consumers that registered one after the other, at least one of them as exclusive.

    A consumer is registered from the moment at which it is linked in All until it is marked there.
    """

    id = "QL-6"
    sentence = "While an exclusive consumer is in All, linked and not marked, no other consumer is."
    source = "Strict Ordering, the shortcut for an exclusive subscriber"
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        exclusive: dict[str, bool] = {}
        """By consumer: how it asked for registration last."""
        came: dict[str, list[bool]] = {}
        """By list: whether each of those that registered was exclusive."""
        there: dict[str, dict[str, Event]] = {}
        """By list: the nodes that are linked and not marked, with their links."""
        everybody = {f"{q}.All" for q in h.queues}
        for e in h.events:
            if e.ev == "consumer":
                exclusive[catalogue.sub(e)] = bool(e.exclusive)
            elif catalogue.list_name.get(e, "") not in everybody:
                continue
            elif e.ev == "mark":
                there.get(catalogue.list_name(e), {}).pop(catalogue.node(e), None)
            elif e.ev == "link":
                name, node = catalogue.list_name(e), catalogue.node(e)
                alone = exclusive.get(consumer_of(node), False)
                before = came.setdefault(name, [])
                tested += len(before) if alone else sum(before)
                before.append(alone)
                present = there.setdefault(name, {})
                for other, link in present.items():
                    if alone or exclusive.get(consumer_of(other), False):
                        who = consumer_of(node if alone else other)
                        bad.append(
                            (f"{node} registered beside {other}; {who} is exclusive", [link, e])
                        )
                present[node] = e
        return Finding.of(self.id, tested, bad)


CONSUMERS = (Ql6(),)
