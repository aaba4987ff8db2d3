"""A condition of a guard in words, for whoever reads why an execution was rejected."""

from __future__ import annotations

import z3

from seriatim_workshop.formal.theory import Term

PHRASES = {
    "owes": "{0} owes {2} a rewind for {1}",
    "looking": "{0} looks for somebody",
    "whose": "the consumer that {0} looks for",
    "found": "{0} has found what it stands at",
    "passed": "{0} has seen that what it stands at is not wanted",
    "cursor": "the place where {0} stands",
    "place": "the place of {0}",
    "place_seen": "the place where {0} began to look",
    "mark_seen": "the pointer object that {0} has read",
    "mark": "the pointer object of {0}",
    "pointer": "the place of the pointer of {0}",
    "vain": "{1} was of no use at some moment of the look of {0}",
    "used": "the pointer object {0} was there before",
    "status": "the state of {0}",
    "owner": "the owner of {0}",
    "holds": "{0} holds {1}",
    "known": "{0} has been registered",
    "registered": "{0} is registered",
    "acquires": "{0} is no browser",
    "counted": "what {0} has added to the depth",
    "uncounted": "what {0} has taken from the depth",
    "disposing": "{0} has still to take {1} from the depth",
    "joined": "{0} has {1} counted in its group",
    "owned": "the group {0} is owned",
    "group_owner": "the owner of the group {0}",
    "expired": "{0} has expired",
    "keeping": "{0} is in a pass of housekeeping",
    "overdue": "the time of {1} had come when the pass of {0} began",
    "due": "the delay of {0} is over",
    "sees_due": "{0} has read on the clock that the delay of {1} is over",
    "of": "the list of {0}",
    "is_head": "{0} is the head of a list",
    "sized": "the list {0} knows its size",
    "number": "the number of {0}",
    "next": "what is linked behind {0}",
    "tail": "the tail of {0}",
    "nodes.there": "the node that {0} has read behind it",
    "seen_live": "{0} has seen that {1} is not deleted",
    "returned": "{0} has returned {1}",
    "at_the_end": "{0} has read that nothing follows",
    "calm": "nobody else has changed a link of the list of {0}",
    "base": "the node where {0} stands",
    "covered": "how far {0} has come",
    "going": "{0} goes on",
    "done": "{0} has ended",
    "walker": "the thread of {0}",
    "moment": "the moment that comes next",
    "linked_at": "when {0} was linked",
    "marked_at": "when {0} was deleted",
    "began_at": "when {0} began",
    "nodes.counted": "{0} has been added to the size",
    "nodes.uncounted": "{0} has been taken from the size",
    "immediate": "{0} is immediate",
    "wants": "{0} selects {1}",
    "overtaking": "the queue has priorities",
    "mortal": "{0} expires some time",
    "grouped": "{0} is of a group",
    "group": "the group of {0}",
    "top": "the last place",
    "actor": "for whom something was done last",
    "delivered": "{0} was delivered",
    "dropped": "{0} was dropped undelivered",
    "given_up": "the publisher of {0} is done",
    "disposer": "who made {0} DEQUEUED",
    "past": "{0} was shown what it stands at",
    "shown": "how often {0} was shown {1}",
    "announcer": "who made {0} available",
    "member": "{0} is in the list {1}",
    "mover": "who moves {0}",
    "lists.place": "where {0} is in a move",
    "name": "the name of {0}",
    "exclusive": "{0} wants to be the only one",
    "limited": "{0} needs credit",
    "allowance": "what {0} begins with",
    "pushed": "the queue pushes",
    "alone": "the queue has an only one",
    "the_only": "the only one",
    "closings": "how often {0} was closed",
    "granted": "what {0} was granted",
    "spent": "what {0} has spent",
    "in_flight": "what is paid for {0} and not decided",
    "obtained": "how often something was acquired for {0}, or shown to it",
    "admitting": "the lock of admission is taken",
    "passing": "the walk of {0} is for whatever there is",
    "about": "the message that {0} walks for",
    "maker": "who made it so that {1} could go to {0}",
    "followed": "a job has followed since {1} could go to {0}",
    "offerer": "who made {0} available",
    "answered": "a job has followed since {0} is available",
    "pending": "a job is pending",
    "linked": "{0} is linked",
    "last": "{0} is the last",
    "marked": "{0} is deleted",
    "knows": "{0} has read what is next",
    "here": "the node whose next {0} has read",
    "locked": "the lock of {0} is taken",
    "listed": "the list of {0}",
    "lists.there": "there is a list of the Interested of priority {0}",
    "level": "the priority of {0}",
    "flag": "{0} says that it wants messages",
    "in_all": "{0} is in the list of all",
    "begun": "{0} has been in a list",
    "closed": "{0} is closed",
    "moves": "the consumer that {0} moves",
    "admits": "{0} has the lock of admission",
    "sends": "{0} has the send lock of {1}",
    "sending": "the send lock of {0} is taken",
    "present": "{0} is there",
    "came": "{0} has joined",
    "wish": "the flag of {0}",
    "credit": "the credit of {0}",
    "said": "it was said last that {0} wants messages",
    "resuming": "{0} has still to see to it that {1} wants messages",
    "pausing": "{0} has still to see to it that {1} wants none",
    "drained": "{0} has taken the last credit of {1}",
    "asks": "{0} has looked whether {1} wants work",
    "closes": "{0} has still to remove {1}, which it closed",
    "pulls": "{0} pulls for {1}",
    "could_ask": "{1} wanted work since {0} began to take something for it",
    "outbid": "{0} has still to try again to pay with the credit of {1}, which another was faster to change",
    "taker": "who obtained something last",
    "sent": "how often something was sent to {0}",
    "consumers.serves": "{0} has still to keep for whom it obtained something",
    "served": "for whom {0} obtained something",
    "served_last": "who was served last",
    "paid": "{0} has paid for what is not decided",
    "payer": "for whom {0} has paid",
    "walking": "{0} walks",
    "preparing": "{0} has still to announce {1}",
    "giving": "{0} has still to wake {1}",
    "leaving": "{0} has still to take {1} out of its list",
    "coming": "{0} has still to take {1} into Interested",
    "higher": "{0} is of higher priority than {1}",
    "freed": "{0} has set the group of {1} free",
    "owing": "{0} has still to wake another than {1}",
    "left_to": "{0} has still to wake {1}, whom it left a message to",
    "arrivals": "how often anybody came into Interested",
    "since": "the place of {0} among the Interested",
    "stood_back": "{1} had no use for {2}, or no interest, since that is available and {0} tries to take it",
    "has": "{0} has {1}",
    "likes": "{0} selects {1}",
    "listens": "{0} listens",
    "has_passed": "{0} has passed {1}",
    "announces": "{0} announces {1} in its call",
    "resumes": "{1} began to listen in the call of {0}",
    "owes_it": "{0} has still to wake browser {1}, which could be shown {2}",
    "awaits": "{0} could be shown {1} ever since that was announced",
    "wakings": "how often {0} was woken",
    "todo": "the walk of {0} has still to come to {1}",
    "seen": "the walk of {0} has looked at {2} for {1}",
    "scanned": "{0} has looked at {1}",
    "regained": "since it took something {0} came into Interested anew",
    "available": "{0} is available",
    "fit": "{0} could take {1}",
    "phase": "the phase of the pull for {0}",
    "runs": "the thread that pulls for {0}",
    "permit": "{0} is woken",
    "wakeups.lies": "the number of wake-ups of {0} that nobody has drawn",
    "wakeups.drawn": "a wake-up of {0} was drawn",
    "deliverable": "{1} could go to {0}",
    "bound": "{0} has still to see to a job, since {2} could go to {1}",
    "jobs.owes": "{0} owes {1} a job",
    "offered": "{0} is available to whoever comes",
    "looks": "{0} runs a job",
    "jobs.to_submit": "{0} has still to submit a job",
    "jobs.lies": "a permit of the executor lies there",
    "jobs.drawn": "{0} has drawn the permit of a job",
    "jobs.seen": "{2} could not go to {1} at some moment of the job of {0}",
    "arrives": "{0} delivers {1}, which it enqueued",
    "asked": "{0} has asked {1}",
    "turn": "{0} has asked {1} last",
    "within": "a call of {0} is under way",
    "jobs.served": "what {0} enqueued is taken",
    "steady": "what {0} enqueued could go to {1} all the while",
    "there": "{0} has seen what it enqueued available since its last attempt",
    "was_there": "what {0} enqueued was available since its last attempt",
    "jobs.dropped": "{0} was dropped",
    "handover.runs": "{0} runs {1}",
    "handover.serves": "{0} serves {1}",
    "session_of": "the session of {0}",
    "connection_of": "the connection of {0}",
    "waits": "{0} waits",
    "queued": "{0} is queued",
    "scheduled": "{0} is scheduled",
    "ready": "{0} is ready",
    "to_queue": "{0} has still to queue {1}",
    "to_schedule": "{0} has still to schedule {1}",
    "to_submit": "{0} has still to submit {1}",
    "to_check": "{0} has still to look at {1} once more",
    "lies": "the permit {0} lies there",
    "drawn": "{0} has drawn the permit {1}",
    "stands_for": "the connection that the permit {0} stands for",
    "to_permit": "{0} has still to give a permit for {1}",
    "in_vain": "{0} has served {1}, and got nothing for it",
    "emptied": "{0} has taken {1}, and seen nothing wait there since",
    "ended": "{0} has run {1}, and seen nothing queued since",
    "adder": "who put {0} into its set last",
    "queuer": "who queued {0} last",
}
"""A function of a system, or of one by its full name -> what it says of its arguments; of any other its name and
they are said."""


def needed(term: Term, names: dict[str, str]) -> str:
    """What a guard asks for, as a sentence about what is needed, or must not be. Names are as in `worded`."""
    inner = term.body() if z3.is_quantifier(term) and term.is_forall() else term
    if z3.is_not(inner):
        bound = (
            [f"any {term.var_sort(i).name().lower()}" for i in range(term.num_vars())]
            if inner is not term
            else []
        )
        return f"it must not be that {_words(inner.arg(0), names, bound)}"
    return f"it needs that {worded(term, names)}"


def worded(term: Term, names: dict[str, str]) -> str:
    """The condition in words. `names` says how its constants are called; in the text each stands as <name>."""
    return _words(term, names, [])


def _words(term: Term, names: dict[str, str], bound: list[str]) -> str:
    if z3.is_quantifier(term):
        more = [f"any {term.var_sort(i).name().lower()}" for i in range(term.num_vars())]
        inner = _words(term.body(), names, [*bound, *more])
        return f"for all of them: {inner}" if term.is_forall() else inner
    if z3.is_var(term):
        return bound[-1 - int(z3.get_var_index(term))]
    parts = [_words(child, names, bound) for child in term.children()]
    kind = term.decl().kind()
    joints = {
        z3.Z3_OP_AND: " and ",
        z3.Z3_OP_OR: " or ",
        z3.Z3_OP_EQ: " is ",
        z3.Z3_OP_LT: " is before ",
        z3.Z3_OP_LE: " is not after ",
        z3.Z3_OP_GT: " is more than ",
        z3.Z3_OP_GE: " is at least ",
        z3.Z3_OP_DISTINCT: " is not ",
        z3.Z3_OP_ADD: " plus ",
        z3.Z3_OP_SUB: " less ",
    }
    if kind == z3.Z3_OP_NOT:
        return f"it is not so that {parts[0]}"
    if kind == z3.Z3_OP_IMPLIES:
        return f"{parts[1]}, if {parts[0]}"
    if kind == z3.Z3_OP_ITE:
        return f"{parts[1]}, if {parts[0]}, else {parts[2]}"
    if kind in joints and len(parts) > 1:
        return joints[kind].join(parts)
    return _named(term, parts, names)


def _named(term: Term, parts: list[str], names: dict[str, str]) -> str:
    """A function of the state, a constant or a value."""
    name = str(term.decl().name())
    if name in names:
        return f"<{names[name]}>"
    plain = name.split(".", 1)[-1]
    phrase = PHRASES.get(name) or PHRASES.get(plain)
    if phrase and (parts or "{" not in phrase):
        return phrase.format(*parts)
    return f"{plain}({', '.join(parts)})" if parts else str(term if "." not in name else plain)
