"""White-box properties: cut anywhere and combined they say the same, and on nothing they say nothing."""

from itertools import pairwise

import pytest

from seriatim_models.history import Event
from seriatim_models.properties import WHITEBOX, Verdict
from seriatim_models.properties.base import AnyProperty, audit
from seriatim_models.properties.whitebox import judge

from .whitebox_histories import histories

PLACES = (0, 1, 7, 19, 40, 41, 90, 10_000)
"""Where histories are cut: before everything, in the set-up, amid the race, behind the end."""


HISTORIES = histories()


@pytest.mark.parametrize("p", WHITEBOX, ids=lambda p: p.id)
def test_cut_anywhere_and_combined_is_the_whole(p: AnyProperty) -> None:
    verdicts = set()
    for events in HISTORIES:
        whole = p.finish(p.map(events))
        verdicts.add(whole.verdict)
        pieces = [p.map(events[a:b]) for a, b in pairwise(sorted({*PLACES, len(events)}))]
        left = p.map([])
        for piece in pieces:
            left = p.combine(left, piece)
        assert p.finish(left) == whole
        right = p.map([])
        for piece in reversed([p.map(events[a:b]) for a, b in pairwise(PLACES)]):
            right = p.combine(piece, right)
        assert p.finish(right) == whole
    assert Verdict.OK in verdicts


def test_judging_together_is_judging_one_by_one() -> None:
    for events in HISTORIES[:5]:
        assert judge(events, WHITEBOX) == audit(events, WHITEBOX)


@pytest.mark.parametrize("p", WHITEBOX, ids=lambda p: p.id)
def test_nothing_is_not_proof(p: AnyProperty) -> None:
    assert p.check([]).verdict is Verdict.INCONCLUSIVE


def test_what_a_broker_showed_is_not_read_as_what_the_reference_did() -> None:
    seen = [Event(i=0, ev="deliver", m="m1", lvl="api"), Event(i=1, ev="close", lvl="api")]
    assert {f.verdict for f in audit(seen, WHITEBOX)} == {Verdict.INCONCLUSIVE}
