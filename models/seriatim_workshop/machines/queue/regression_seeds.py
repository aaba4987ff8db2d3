"""Small plans that are generated too rarely: each reaches what nothing else did, or showed a mistake of ours."""

from __future__ import annotations

from seriatim_models.machines.queue.calls import PlannedMessage
from seriatim_workshop.machines.queue.generated_programs import PlannedConsumer, QueuePlan

REGRESSION_SEEDS: dict[str, QueuePlan] = {
    "a push consumer closes while a message arrives": QueuePlan(
        kind="push",
        consumers=(PlannedConsumer(script=("close",)),),
        publishers=((PlannedMessage(),),),
    ),
    "a push consumer gives back while the job serves it": QueuePlan(
        kind="push",
        preloaded=(PlannedMessage(),),
        consumers=(
            PlannedConsumer(
                acquires=False, keys=("x",), credit=0, script=("release", "resume", "release")
            ),
            PlannedConsumer(held=2, script=("release", "resume", "release")),
        ),
    ),
    "credit comes while credit is paid": QueuePlan(
        kind="push",
        preloaded=(PlannedMessage(), PlannedMessage()),
        consumers=(PlannedConsumer(credit=0, script=("grant", "grant")),),
    ),
    "two groups are set free at once": QueuePlan(
        preloaded=(PlannedMessage(group="g"), PlannedMessage(group="h")),
        consumers=(
            PlannedConsumer(credit=1, held=1, script=("dequeue",)),
            PlannedConsumer(held=1, script=("dequeue",)),
        ),
    ),
    "two consumers are the first of their priorities": QueuePlan(
        consumers=(
            PlannedConsumer(credit=0, script=("grant",)),
            PlannedConsumer(credit=0, priority=1, script=("grant",)),
        )
    ),
    "a request comes in while an IO thread is about to leave the connection": QueuePlan(
        consumers=(PlannedConsumer(credit=0, script=("grant",)),),
        publishers=((PlannedMessage(),),),
        io=2,
    ),
    "two IO threads are after two connections at once": QueuePlan(
        consumers=(
            PlannedConsumer(credit=0, script=("grant",)),
            PlannedConsumer(credit=0, script=("grant",), target=3),
        ),
        io=2,
    ),
}
