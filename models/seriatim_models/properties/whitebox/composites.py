"""P16 to P19: what a recorder inside a queue shows, under the ids of the black-box properties.

Nothing is judged twice: each is the conjunction of properties that the reference is judged by.
Another implementation that records the same events (their names and arguments are listed in `spec/HISTORY.md`) is
judged by the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding, Property, Verdict
from seriatim_models.properties.whitebox.entries import ENTRIES, IMMEDIATE
from seriatim_models.properties.whitebox.fair import FAIR
from seriatim_models.properties.whitebox.lists import LISTS
from seriatim_models.properties.whitebox.order import ORDER
from seriatim_models.properties.whitebox.pointers import POINTERS
from seriatim_models.properties.whitebox.wakeups import WAKEUPS

_PARTS: dict[str, AnyProperty] = {
    p.id: p for p in (*ORDER, *ENTRIES, *IMMEDIATE, *POINTERS, *LISTS, *WAKEUPS, *FAIR)
}


# Any: each part knows the type of its own summary
class Composite(Property[list[Any]]):
    """A property that holds if each of its parts does; the summary has one for each part."""

    case = "what a recorder inside a queue writes (events of level model)"
    levels = frozenset({"", "model"})

    def __init__(self, id: str, sentence: str, parts: tuple[str, ...]) -> None:
        # Not class variables here: the four differ in nothing but these.
        self.id = id  # type: ignore[misc]  # see above
        self.sentence = sentence  # type: ignore[misc]  # see above
        self.parts = tuple(_PARTS[part] for part in parts)
        self.source = f"{', '.join(parts)} of the register"  # type: ignore[misc]  # see above
        names = [p.reads for p in self.parts]
        self.reads = frozenset().union(*names) if all(names) else frozenset()  # type: ignore[misc]  # see above
        self.summary_type = tuple[tuple(p.summary_type for p in self.parts)]  # type: ignore[misc]  # see above

    def begin(self) -> list[Any]:
        return [p.begin() for p in self.parts]

    def map(self, events: Iterable[Event]) -> list[Any]:
        held = [e for e in events if e.lvl in self.levels]
        return [p.map(e for e in held if not p.reads or e.ev in p.reads) for p in self.parts]

    def combine(self, left: list[Any], right: list[Any]) -> list[Any]:
        return [p.combine(a, b) for p, a, b in zip(self.parts, left, right, strict=True)]

    def finish(self, summary: list[Any]) -> Finding:
        found = [p.finish(s) for p, s in zip(self.parts, summary, strict=True)]
        bad = [
            (f"{f.property}: {f.explanation}", f.witness)
            for f in found
            if f.verdict is Verdict.VIOLATED
        ]
        return Finding.of(
            self.id,
            sum(f.n_tested for f in found),
            bad,
            n_untestable=sum(f.n_untestable for f in found),
            n_violations=sum(f.n_violations for f in found),
        )

    def check(self, events: Iterable[Event]) -> Finding:
        return self.finish(self.map(events))


COMPOSITES: tuple[AnyProperty, ...] = (
    Composite(
        "P16",
        "An entry changes state only as its automaton allows; an immediate message is not both given and dropped.",
        ("ES-1", "ES-2", "ES-3", "IM-1"),
    ),
    Composite(
        "P17",
        "A subscription's pointer moves forward only unless it is rewound, and nothing it wants is left behind it.",
        ("SP-1", "SP-2", "SP-3"),
    ),
    Composite(
        "P18",
        "A consumer is in exactly one list of the consumer manager; where work meets interest somebody is notified.",
        ("QL-1", "QL-2", "WK-1"),
    ),
    Composite(
        "P19",
        "Deficit round robin keeps its deficits in bounds, serves every busy slot, and conserves its permits.",
        ("FQ-1", "FQ-2", "FQ-3", "FQ-4"),
    ),
)
"""In the order of their ids."""
