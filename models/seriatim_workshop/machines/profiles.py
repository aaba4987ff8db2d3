"""Settings of Hypothesis for machines and generated programs."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, core, settings


def checking(examples: int, **changes: Any) -> settings:
    """Return settings that draw the same `examples` every time, unless --hypothesis-seed=N asks for others.

    `changes` are further settings of Hypothesis, such as `stateful_step_count`.
    """
    base: dict[str, Any] = {
        "derandomize": core.global_force_seed is None,
        "database": None,
        "deadline": None,
        "suppress_health_check": list(HealthCheck),
    }
    return settings(**{**base, "max_examples": examples, **changes})


def searching(examples: int, **changes: Any) -> settings:
    """Return settings for finding any one violation: it is not shrunk, and no second one is looked for."""
    return checking(
        examples, **{"phases": [Phase.generate], "report_multiple_bugs": False, **changes}
    )
