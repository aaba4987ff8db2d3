"""AP: calls of an API end as their declarations say, and so do the threads that a system runs itself.

The events are those of `catalogue.CALLS`; they come from the programs, which know what a call declares,
and from the judge of mutants, which puts the ends that the explorer names into the history.
"""

from __future__ import annotations

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, ModelHistory, Violations


class Ap1(ModelHistory):
    """A case is a call that raised, or a thread that never ends."""

    id = "AP-1"
    sentence = (
        "A call that is in contract returns, and one that must be refused raises the error that it declares, "
        "and no other; no error ends a thread of the system's own, and none waits for what nobody will do."
    )
    source = "the table of API calls: in contract, legal without effect, or to be refused"
    reads = frozenset({"raised", "stuck"})
    case_events = CaseEvents(reads)

    def cases(self, events: list[Event], bad: Violations) -> int:
        """Every event is a case; one of a declared error violates nothing."""
        for e in events:
            if e.ev == "stuck":
                bad.append((f"{e.proc or 'a thread'} never ends: {catalogue.waits_for(e)}", [e]))
            elif not catalogue.declared(e):
                bad.append((f"{e.proc or 'a call'} raised {catalogue.error(e)}", [e]))
        return len(events)


CALLS = (Ap1(),)
