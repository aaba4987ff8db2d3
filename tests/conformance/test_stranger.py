"""Queues that others wrote: `conform` with its defaults reports what is wrong, and nothing that is right."""

from __future__ import annotations

import pytest

from seriatim_models.conformance.local import Local
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.search import SearchBounds, search
from seriatim_models.conformance.selftest import self_test
from seriatim_models.properties.base import Verdict

from . import stranger

MINUTE = SearchBounds(seconds=30.0, first=True)
"""The defaults; what is found is made short in as much time again."""


@pytest.mark.parametrize("made", stranger.RIGHT, ids=lambda made: made.__name__)
def test_a_right_queue_passes(made: type) -> None:
    system = Local(made)
    assert not [check for check in self_test(system) if check.why and not check.skipped]
    outcome = search(system, PROFILES["any"], SearchBounds(seconds=60.0, scripts=100), seed=1)
    assert outcome.witnesses == []
    tested = {f.property for f in outcome.findings if f.verdict is Verdict.OK}
    assert "P1" in tested
    assert made is not stranger.Ranked or "P22" in tested
    assert made is not stranger.Grouped or "P23" in tested


@pytest.mark.parametrize("made", stranger.WRONG, ids=lambda made: made.__name__)
def test_a_wrong_one_is_reported(made: type) -> None:
    (witness,) = search(Local(made), PROFILES["any"], MINUTE, seed=1).witnesses
    assert witness.property in stranger.WRONG[made].split()


@pytest.mark.slow  # as many seconds as the search is given
@pytest.mark.parametrize("made", stranger.RARE, ids=lambda made: made.__name__)
def test_what_is_rare_is_reported_under_load(made: type) -> None:
    (witness,) = search(Local(made), PROFILES["any"], MINUTE, seed=1).witnesses
    assert witness.property in stranger.RARE[made].split()
