"""The state of a fair consumer, and what its broker has seen of it, as text.

Only at rest, in an execution of the explorer: its semaphore shows how many tokens there are.
"""

from __future__ import annotations

from typing import Any

from seriatim_models.machines.fair.calls import FairHarness


def state_text(harness: FairHarness) -> str:
    """Return everything that a later call can depend on: what waits, deficits, tokens, and whether it was stopped."""
    consumer = harness.consumer
    tokens: Any = consumer.tokens
    slots = [
        f"{slot.name} waiting={[weight for _, weight in slot.waiting]} deficit={slot.deficit}"
        for slot in harness.slots
    ]
    stopping, held = consumer._stopping.get(), consumer._held
    loop = f"tokens={tokens.value} held={held} stopping={stopping} ended={consumer._ended}"
    return "\n".join([*slots, loop])
