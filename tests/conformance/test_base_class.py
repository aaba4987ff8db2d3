"""The pytest base class, as somebody else's repository would use it."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from seriatim_models.conformance.reference import Reference
from seriatim_models.conformance.search import SearchBounds
from seriatim_models.conformance.testing import Conformance
from seriatim_workshop.planted import mistakes

FEW = SearchBounds(seconds=30.0, scripts=40)


class TestReference(Conformance):
    profile = "strict-qpid"
    bounds = FEW

    def implementation(self) -> Any:
        return Reference()


class TestStandardLibrary(Conformance):
    bounds = FEW

    def implementation(self) -> Any:
        return queue.Queue()


def test_a_class_may_declare_what_no_method_shows() -> None:
    class Grouped(Conformance):
        bounds = SearchBounds(seconds=60.0, scripts=200)
        can = ("held-groups",)

        def implementation(self) -> Any:
            return getattr(mistakes, "groups-ignored")()

    with pytest.raises(AssertionError, match="P23"):
        Grouped().test_it_keeps_its_profile()


class Newest(Conformance):
    bounds = FEW

    def implementation(self) -> Any:
        return queue.LifoQueue()


def test_a_failure_shows_the_shortest_script_and_the_seed() -> None:
    with pytest.raises(
        AssertionError, match=r"(?s)seed 1.*P5.*the shortest way:.*publish q=q m=m1"
    ):
        Newest().test_it_keeps_its_profile()


@pytest.mark.slow
def test_a_call_that_never_returns_is_a_failure() -> None:
    class Hangs:
        def publish(self, q: str, m: str) -> None:
            while True:
                pass

        def get(self, q: str) -> None: ...

    class Hanging(Conformance):
        bounds = SearchBounds(seconds=1.5, scripts=5)  # the first script is generated within

        def implementation(self) -> Any:
            return Hangs()

    with pytest.raises(AssertionError, match="within"):
        Hanging().test_it_keeps_its_profile()
