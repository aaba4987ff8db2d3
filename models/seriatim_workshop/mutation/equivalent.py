"""Mutations of the references that nothing can catch, each with the reason why.

The key is `Mutation.name`, which names the function and the change. A test holds that every name still stands for a
mutation: when the code is changed, its reason is read again or goes.
"""

from __future__ import annotations

NOT_LOOKED_AT = "only whether it is true is looked at, and None is not"
FOR_THE_TYPES = "stated for the type checker: the rest of the condition implies it"
REST_LOOKS = (
    "whoever left Interested in this moment looks once more, or wakes somebody else (rules 6 and 7), "
    "so the thread that came too late may stop here or go on"
)

ONLY_TOLD = "a number for the record: that calls have different ones is asked, and whether it is 0"

AT_THE_END = "the function ends there, and so returns None"

EQUIVALENT: dict[str, str] = {
    "client.Connection.__init__: 0 -> 1": ONLY_TOLD,
    "client.Connection.reader: without `frame.error is not None`: frame.error is not None and frame.kind == 'gone'": (
        FOR_THE_TYPES
    ),
    "client.Connection.close: 1 -> 2": ONLY_TOLD,
    "client.Connection.close: dropped: self._closers += 1": (
        "a number for the record, which tells a reader one who closes from another; nothing asks for it"
    ),
    "client.Channel.__init__: 0 -> 1": ONLY_TOLD,
    "client.Channel._call: 1 -> 2": ONLY_TOLD,
    "workpool.WorkService._run_one: return None -> dropped": AT_THE_END,
    "fair.FairConsumer._handle: return None -> dropped": AT_THE_END,
    "log.Channel._attempt: return None -> dropped": AT_THE_END,
    "queue.Consumer.take_credit: return False -> dropped": NOT_LOOKED_AT,
    "queue.Queue._group_allows: without `not group`: not group or self.groups.get().get(group, (consumer, 0))[0] ": (
        "nobody owns the group ''; asking first saves a look at a shared cell, and with it schedules to explore"
    ),
    "queue.Queue._group_allows: 0 -> 1": "the count of a group that nobody owns is not looked at",
    "queue.QueueConsumerManager._move: dropped: consumer.in_list = None": (
        "only a consumer that was removed and is moved once more would notice, and none is"
    ),
    "queue.PullQueue._notify: False -> True (2)": REST_LOOKS,
    "log.recover: +/- swapped: size - offset": (
        "more is asked for than there is, and what there is comes: to the end of the file both ways"
    ),
    "handover.ConsumerTarget.process: return False -> dropped": NOT_LOOKED_AT,
}

ORDER_EQUIVALENT: dict[str, str] = {}
"""The same of the mutants of order (`seriatim_workshop.mutation.order`)."""
