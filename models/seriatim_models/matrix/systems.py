"""The systems that have a matrix, by name."""

from __future__ import annotations

from seriatim_models.matrix.client_scenes import CLIENT_SYSTEM, POOL_SYSTEM
from seriatim_models.matrix.fair_scenes import FAIR_SYSTEM
from seriatim_models.matrix.handover_scenes import HANDOVER_SYSTEM
from seriatim_models.matrix.log_scenes import LOG_SYSTEM
from seriatim_models.matrix.queue_scenes import PULL_SYSTEM, PUSH_SYSTEM
from seriatim_models.matrix.scene import MatrixSystem

SYSTEMS: dict[str, MatrixSystem] = {
    s.name: s
    for s in (
        PULL_SYSTEM,
        PUSH_SYSTEM,
        HANDOVER_SYSTEM,
        LOG_SYSTEM,
        FAIR_SYSTEM,
        POOL_SYSTEM,
        CLIENT_SYSTEM,
    )
}
"""In the order in which they are run."""
