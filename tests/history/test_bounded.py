"""What is bounded by forgetting the oldest finds that one at once."""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import msgspec
import pytest

import seriatim_models
from seriatim_models.history.bounded import ForgetsOldest, forget_oldest, ordered
from seriatim_models.history.complete import Completion
from seriatim_models.pipeline import state_file
from seriatim_models.properties.blackbox import BLACKBOX

SOURCES = sorted(Path(seriatim_models.__file__).parent.rglob("*.py"))
STATES = sorted(ForgetsOldest.__subclasses__(), key=lambda kind: kind.__name__)


def test_the_oldest_is_what_was_put_in_first() -> None:
    held = ordered({"a": 1, "b": 2, "c": 3})
    held["a"] = 4  # it stays where it was
    assert (forget_oldest(held), list(held)) == ("a", ["b", "c"])
    assert ordered(held) is held


def test_no_oldest_key_of_a_plain_dict_is_removed() -> None:
    """A dict that loses its first key again and again looks through the holes: 60 us each where 65,536 are kept."""
    removes = re.compile(r"del [\w.]+\[next\(iter\(")
    assert len(SOURCES) > 300
    assert [p.name for p in SOURCES if removes.search(p.read_text())] == []


@pytest.mark.parametrize("kind", STATES, ids=lambda kind: kind.__name__)
def test_states_keep_their_order_when_they_are_read(kind: Any) -> None:
    state = kind()
    again = state_file.decoded(Path("state"), state_file.encoded(state), kind, "")
    names = [f.name for f in msgspec.structs.fields(kind)]
    assert kind.bounded
    for name in kind.bounded:
        assert name in names
        assert isinstance(getattr(state, name), OrderedDict)
        assert isinstance(getattr(again, name), OrderedDict)


def test_the_states_are_those_that_are_kept() -> None:
    assert len(BLACKBOX) > 15  # their modules are loaded
    assert Completion in STATES
    assert len(STATES) > 10
