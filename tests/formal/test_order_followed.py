"""Mistakes of order are rejected by a system, and one that is caught and accepted has a reason."""

from dataclasses import replace

import pytest

from seriatim_workshop.formal import SPEC, order_followed
from seriatim_workshop.formal.order_reasons import REASONS, reason


def test_a_mistake_of_order_is_rejected() -> None:
    known = {m.name: m for m in order_followed.mutations()}
    name = next(name for name in known if name.startswith("queue.NodeList.append: compare-and-set"))
    found = order_followed.followed(known[name], "ES-5 in enqueue-enqueue")
    assert (found.verdict, found.system) == ("rejected", "entries")
    assert "has not linked it" in found.where


def test_what_is_caught_and_accepted_has_a_reason_on_the_page() -> None:
    page = (SPEC / "ORDER_FOLLOWED.md").read_text("utf-8")
    assert reason("nowhere") == "not known yet"
    assert reason("nowhere") not in page
    assert [scope for scope, why in REASONS.items() if why not in page] == [], "no mistake needs it"


def test_what_was_followed_with_another_system_is_followed_again() -> None:
    every = order_followed.mutations()
    known = {
        m.key: order_followed.OrderFollowed(
            m.key, m.name, "rejected", digest=order_followed.digest()
        )
        for m in every[1:]
    }
    other = every[3].key
    known[other] = replace(known[other], digest="another")
    assert [m.key for m in order_followed.stale(known)] == [every[0].key, other]


def test_a_loop_in_the_set_up_is_ended_by_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_followed, "SECONDS", 2)
    monkeypatch.setattr("seriatim_models.explorer.model.watchdog.PATIENCE", 0.1)
    name = "check-left-out: tail.next.compare_and_set(None, node) is false"
    mutation = next(m for m in order_followed.mutations() if name in m.name)
    assert order_followed.isolated(mutation, "").verdict == "endless"


def test_the_page_has_its_counts() -> None:
    page = (SPEC / "ORDER_FOLLOWED.md").read_text("utf-8")
    assert "| every schedule | rejected | fails | endless | accepted |" in page
