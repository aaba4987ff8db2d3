"""Small plans that drawing comes upon too rarely: each reaches what nothing else did, or showed a fault of ours."""

from __future__ import annotations

from seriatim_models.machines.queue.generated_programs import Plan, Taker, Told

CORNERS: dict[str, Plan] = {
    "a push consumer closes while a message arrives": Plan(
        kind="push", takers=(Taker(script=("close",)),), publishers=((Told(),),)
    ),
    "a push consumer gives back while the job serves it": Plan(
        kind="push",
        there=(Told(),),
        takers=(
            Taker(acquires=False, keys=("x",), credit=0, script=("release", "resume", "release")),
            Taker(held=2, script=("release", "resume", "release")),
        ),
    ),
    "credit comes while credit is paid": Plan(
        kind="push",
        there=(Told(), Told()),
        takers=(Taker(credit=0, script=("grant", "grant")),),
    ),
    "two groups are set free at once": Plan(
        there=(Told(group="g"), Told(group="h")),
        takers=(
            Taker(credit=1, held=1, script=("dequeue",)),
            Taker(held=1, script=("dequeue",)),
        ),
    ),
    "two consumers are the first of their priorities": Plan(
        takers=(Taker(credit=0, script=("grant",)), Taker(credit=0, priority=1, script=("grant",)))
    ),
    "a request comes in while an IO thread is about to leave the connection": Plan(
        takers=(Taker(credit=0, script=("grant",)),), publishers=((Told(),),), io=2
    ),
}
