"""Hypothesis strategies for qh/1 events of every shape the format carries."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from seriatim_models.history.event import LEVELS, PHASES, SCOPES, Event

ints = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.sampled_from(["", "a", "é\n\u2028", "q1"])
json_values = st.recursive(
    st.none() | st.booleans() | ints | texts | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)


@st.composite
def events(draw: st.DrawFn, i: int) -> Event:
    """Any event the schema allows, of a name that needs no particular field."""
    fields: dict[str, Any] = {}
    for name in draw(st.sets(st.sampled_from(sorted(set(Event.__struct_fields__) - {"i", "ev"})))):
        if name == "ph":
            fields[name] = draw(st.sampled_from(PHASES))
        elif name == "lvl":
            fields[name] = draw(st.sampled_from(LEVELS))
        elif name == "scope":
            fields[name] = draw(st.sampled_from(SCOPES))
        elif name == "args":
            fields[name] = draw(st.dictionaries(texts, json_values, max_size=3))
        elif name == "x":
            fields[name] = draw(st.dictionaries(texts, texts, max_size=3))
        elif name == "ms":
            fields[name] = draw(st.lists(texts, max_size=3))
        elif isinstance(getattr(Event(i=0, ev=""), name), str):
            fields[name] = draw(names)
        elif name in (
            "redelivered", "multiple", "requeue", "dead", "autoack", "exclusive", "nolocal",
        ):  # fmt: skip
            fields[name] = draw(st.booleans())
        elif name in ("key", "err"):
            fields[name] = draw(texts.filter(bool))
        else:
            fields[name] = draw(ints)
    return Event(i=i, ev=draw(st.sampled_from(["cancel", "note", "theirs"])), **fields)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Events with a rising index."""
    indices = sorted(draw(st.sets(st.integers(0, 2**63 - 1), max_size=6)))
    return [draw(events(i)) for i in indices]
