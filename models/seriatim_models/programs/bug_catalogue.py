"""The bug catalogue: bugs that a broker really had, each with what happened, how it was repaired, and its mutant.

The bugs are those of Apache Qpid Broker-J that its public history names; numbers such as QPID-2900 are its tracker's.
A bug that the reference can express is an `BugCase`; one that it cannot is in `NOT_SHOWN`, with the reason.
Why an interleaving went wrong is often ours to say: commit messages rarely do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BugCase:
    """One bug, as a mutant of the reference queue."""

    bug: str
    """As its tracker names it; more than one where they are the same mistake."""
    mutant: str
    """Id of the mutant; its program, property and counterexample go with it."""
    happened: str
    repair: str
    alike: bool = False
    """The mutant makes the same mistake in another place, because the reference has not that place."""


BUG_CASES = (
    BugCase(
        "QPID-2900",
        "pointer-moved-after-sending",
        "The pointer was moved to a message after the message had been sent. A client that gave it back at once was "
        "faster: the rewind came first, and the late move wiped it out. The message was never offered again.",
        "Move the pointer before the message leaves; here it stands at the message until it is seen to be taken.",
    ),
    BugCase(
        "QPID-3622",
        "rewind-test-reversed",
        "When a released message was compared with the one a pointer was to go back to, the test was the wrong way "
        "round: the later of the two won, and the earlier message lay behind the pointer.",
        "Go back to the earlier of the two.",
    ),
    BugCase(
        "QPID-3927",
        "place-ignores-sub-queue",
        "Places in a priority queue were compared by number alone. Numbers are drawn in each sub-queue, so a message "
        "of high priority could look as if it stood behind one of low priority, and no pointer was moved back to it.",
        "Compare by sub-queue first, then by number.",
    ),
    BugCase(
        "QPID-3888",
        "iteration-returns-deleted",
        "The last node of a list stays linked when it is deleted. The iteration stepped on it without asking whether "
        "it was still alive, and handed it out.",
        "An iteration that ends at a deleted tail ends.",
    ),
    BugCase(
        "QPID-3064, QPID-3157",
        "unlink-at-the-head-only",
        "Removal unlinked only at the head of the list. What was deleted in the middle stayed, and with it all that "
        "it referred to.",
        "Every iteration unlinks what is deleted wherever it meets it, but for the tail.",
    ),
    BugCase(
        "article 'Strict Ordering', repaired in 48fab14af9",
        "published-immediate",
        "An immediate message was seen to be undelivered, and then dequeued whatever had become of it meanwhile. "
        "A delivery that came between gave a consumer a message that was dropped at the same time.",
        "One compare-and-set from the state in which the message was born.",
    ),
    BugCase(
        "QPID-7154",
        "release-without-owner",
        "Rejecting a message released it without asking who held it. It could take the message from a consumer that "
        "had acquired it since, and two had it.",
        "The compare-and-set starts from 'acquired by me'.",
    ),
    BugCase(
        "QPID-6268",
        "published-size-late",
        "The number of unacknowledged messages went up after delivery. The acknowledgement was faster, and the "
        "counter read minus one.",
        "Count up before, and down after.",
        alike=True,
    ),
    BugCase(
        "QPID-6817",
        "close-keeps-messages",
        "A closing consumer dropped what it had acquired and not yet sent. The messages stayed acquired for ever, by "
        "nobody.",
        "Closing releases everything that the consumer holds.",
    ),
    BugCase(
        "QPID-355, QPID-2901",
        "delivers-to-the-closed",
        "A consumer, or its session, closed while a delivery to it was under way. The message went to a consumer that "
        "was not there any more, and stayed acquired.",
        "A close and a delivery exclude each other by the send lock, and a delivery that comes second asks whether the "
        "consumer is closed.",
    ),
    BugCase(
        "QPID-6848",
        "housekeeping-leaves-it",
        "Purging and expiry passed over messages that were locked at that moment, and never came back to them.",
        "Here a message that is held is not housekeeping's; what is available and has expired when a pass begins "
        "is gone when it ends.",
        alike=True,
    ),
    BugCase(
        "QPID-7971",
        "closed-before-disinterest",
        "A closing consumer left the lists before it declared that it was not interested any more. Its interest was "
        "then moved for a consumer that was not there: a stale member of a list, and no other consumer was notified.",
        "Declare it first, then leave.",
    ),
    BugCase(
        "89eb67804d",
        "moved-or-not",
        "Whether a consumer was really moved to the Interested was not asked: a wish that it had expressed before "
        "counted as new, counters drifted, and a consumer that was at work was woken by itself.",
        "Go on only if the move was made.",
        alike=True,
    ),
    BugCase(
        "QPID-5450",
        "group-not-owned",
        "Whose a message group was, was looked up in one critical section, and the message acquired in another. In "
        "between the group went to somebody else: two consumers held messages of one group.",
        "Own the group before touching the message, and give it back if the message was gone.",
    ),
    BugCase(
        "QPID-5450",
        "group-given-up-in-silence",
        "The same repair done by halves: a group that was owned in vain is free again, and nothing notifies those who "
        "had passed over its messages.",
        "Announce what the group still holds.",
        alike=True,
    ),
    BugCase(
        "QPID-3861",
        "group-freed-by-the-last-only",
        "A test on a pointer that was not set answered the wrong way, and a group was stuck.",
        "Here: setting a group free announces all of it, not only the message that was released.",
        alike=True,
    ),
    BugCase(
        "QPID-3821",
        "job-clears-flag-last",
        "The flag 'running' of a delivery job was cleared on one way out only. Once it stuck, "
        "no job was started again.",
        "Clear the flag before looking for work; then it cannot outlive the work.",
        alike=True,
    ),
    BugCase(
        "QPID-1187",
        "wants-without-credit",
        "A consumer without credit went on wanting messages. It was woken for each, took none, "
        "and kept them from others.",
        "Who cannot pay does not want.",
    ),
    BugCase(
        "QPID-327",
        "connection-not-looked-at-again",
        "The tracker names a race between a job of a connection that completes and work that is added to it. In the "
        "reference it is the connection's run: what comes between its last look and the end wakes nobody.",
        "Clear the flag, then look once more.",
        alike=True,
    ),
    BugCase(
        "QPID-6794",
        "connection-looks-then-clears",
        "A flag was read before it was set that one is about to sleep. What came between the two woke nobody.",
        "Show that you rest, then look once more.",
    ),
    BugCase(
        "QPID-56",
        "shortcut-skips-the-pointer",
        "A counter that was not atomic showed that nothing was queued. The new message was handed out directly, past "
        "an older one.",
        "The direct way asks for the next message like any other, and goes on only if that is the new one.",
        alike=True,
    ),
    BugCase(
        "QPID-3704",
        "published-priority-arrival",
        "A message of high priority arrived, and only the pointers that were behind it were moved back. One that was "
        "before it, and was about to go past its place, was left alone.",
        "A fresh pointer for every consumer, wherever it stands.",
    ),
    BugCase(
        "QPID-5877",
        "released-where-the-pointer-stands",
        "A consumer released the last message that it had been given. The pointer to what was released and the pointer "
        "to what was seen last stood at the same message; the test took only an earlier one for released, and the next "
        "message came first.",
        "Earlier, or the same.",
    ),
    BugCase(
        "QPID-7514",
        "group-announced-before-freed",
        "When the last message of a group was settled, what consumers had passed over was announced first, and the "
        "group was taken from its owner after that. Who looked at once found the group still owned, and nobody "
        "announced it again.",
        "Set the group free, then announce.",
    ),
    BugCase(
        "QPID-7417",
        "group-counts-refused-releases",
        "What counted the messages that a group's owner held was notified of changes that were none. "
        "The count fell too low, and the group was free while a message of it was held.",
        "Count only where the state was really changed.",
    ),
    BugCase(
        "QPID-6844",
        "credit-taken-twice",
        "A delivery that could not be made after all was to restore the credit that it had taken. It took more.",
        "Add one instead of taking one.",
    ),
    BugCase(
        "QPID-3855",
        "interested-without-credit",
        "A subscription that was not active counted as active from its registration on. In the reference, a consumer "
        "without credit is then woken first, does nothing, and no other consumer is woken.",
        "Ask whether it is active.",
        alike=True,
    ),
    BugCase(
        "QPID-8210",
        "woken-before-registered",
        "A consumer was known to one part of the manager before it was known to the others. In the reference, a "
        "newcomer that is among the Interested before it is in All goes past a message that is released meanwhile, "
        "and nobody moves its pointer back.",
        "First make it known to all, then look for work.",
        alike=True,
    ),
    BugCase(
        "QPID-2904",
        "closed-without-the-lock",
        "A client stopped its subscription without the send lock, while the delivery job was sending to it: it was "
        "sent a message after it had been told that there would be none.",
        "Stop, and close, under the send lock.",
        alike=True,
    ),
    BugCase(
        "QPID-7514 (turns)",
        "served-until-dry",
        "Targets with work were not served strictly in turn, so one could have more than its share.",
        "Whoever was served goes behind the others.",
        alike=True,
    ),
    BugCase(
        "QPID-3165",
        "job-stops-at-the-first",
        "The delivery job decided from some of the subscriptions that there was no more to do.",
        "Ask all of them before stopping.",
        alike=True,
    ),
    BugCase(
        "QPID-1941",
        "never-deleted",
        "A message was dequeued and its entry never deleted, so the list kept it.",
        "Delete what was dequeued.",
    ),
    BugCase(
        "QPID-3697",
        "monitor-and-send-lock",
        "A sorted queue enqueued under the lock that every caller can hold, and took subscriptions' send locks "
        "under it. Whoever held a send lock and needed the queue's lock waited for the publisher, and the publisher "
        "for whoever that was.",
        "A lock of its own, which nobody takes under a send lock; the reference enqueues without any.",
    ),
    BugCase(
        "repaired in 81a5cd612f",
        "published-look-then-rest",
        "A consumer looked for messages, found none, and only then was moved to those who may be woken. A message that "
        "came between woke nobody.",
        "Move first, then look.",
    ),
)

NOT_SHOWN = {
    "QPID-4012": "compared by a header of a message already freed; here memory is the garbage collector's",
    "QPID-3780": "a mark for scavenging, which the reference does not do: every iteration unlinks",
    "QPID-6528": "a suspended consumer's pointer kept deleted entries in memory; memory is not modelled",
    "QPID-6841": "sending again what a consumer holds; the reference only releases",
    "QPID-1286": "the pointers of closed consumers were moved; here a closed consumer's pointer is never read",
    "QPID-6578, QPID-7591, QPID-8378": "reference counts of messages; the garbage collector's here",
    "QPID-3387": "rejecting for good by one consumer; the reference knows only giving back to all",
    "QPID-3064 (marker)": "a marker node of its own for who was served last; here that is the consumer's node, which "
    "stays linked to what follows",
    "QPID-7593": "a deleted tail kept its consumer in memory; memory is not modelled",
    "f2fb107f7c": "hasNext asked again within next; a Python iterator has no hasNext",
    "QPID-3980, QPID-3979, QPID-8384, QPID-8433": "last-value queues, which the reference is not",
    "QPID-7489": "asking whether a consumer stands at the end of the list; nobody asks that here",
    "QPID-6794 (selector)": "IO threads with selectors of their own; the reference's share one set of connections",
    "QPID-7508": "timers of connections",
    "QPID-7514 (tasks)": "tasks of a closing connection",
    "QPID-8273": "the end of a connection's stream",
    "QPID-6541": "recovery of a stored queue; nothing is stored",
    "QPID-6393": "telling a browser that the queue is empty; the reference tells nobody",
    "QPID-3219": "entries between dequeued and deleted; here whoever wants an entry asks its state first",
    "QPID-2116, QPID-2120": "a message is sent after the flow was stopped; what a client asked for a moment before is "
    "no mistake here",
    "QPID-4946": "a broker that shuts down; here consumers close one by one",
    "QPID-2789": "a queue that is deleted; the reference's queues are not",
    "QPID-3446, QPID-4673, QPID-5571, QPID-6865": "locks of sessions, links and connections in two orders; the "
    "reference's hand-over has no locks",
    "QPID-4902": "an executor that refuses a job; here no call fails for it, and the next that needs one asks (F-111)",
    "QPID-6820, QPID-6830": "listeners of one message's state; the reference has none",
    "QPID-7962": "the answer to a drain; the reference has no drain",
}
"""Bug -> why no mutant of the reference shows it."""
