"""Faults at moments that a seed draws, each healed before the next, and all at the end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seriatim_models.conformance.faults.description import FaultKind
from seriatim_models.conformance.faults.disk import SmallDisk
from seriatim_models.conformance.faults.node import ServerNode
from seriatim_models.conformance.faults.relay import FaultRelay
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.history.event import Event, event

LATE = 0.05  # seconds of `delay`
SLOW = 20_000.0  # bytes a second of `throttle`
NETWORK: tuple[FaultKind, ...] = ("cut", "half-open", "delay", "throttle")
"""Faults of the connections, for which clients go through a relay."""


@dataclass(frozen=True)
class PlannedFault:
    """A fault: how many seconds after the one before it has healed, and for how many."""

    after: float
    kind: FaultKind
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind} after {self.after:.2f} s for {self.seconds:.2f} s"


@dataclass(frozen=True)
class FaultTargets:
    """What there is to be broken."""

    node: ServerNode
    relay: FaultRelay | None = None
    disk: SmallDisk | None = None


def plan_faults(
    kinds: Sequence[FaultKind], seconds: float, seed: int, *, longest: float = 1.0
) -> list[PlannedFault]:
    """Faults for so many seconds, each kind as often as the others but for one. The first comes always."""
    drawn = random.Random(f"{seed}/faults")
    plan: list[PlannedFault] = []
    used = 0.0
    while kinds:
        turn = list(kinds)
        drawn.shuffle(turn)
        for kind in turn:
            fault = PlannedFault(drawn.uniform(0.3, 1.5), kind, drawn.uniform(0.1, longest))
            used += fault.after + fault.seconds
            if plan and used > seconds:
                return plan
            plan.append(fault)
    return plan


class Nemesis(threading.Thread):
    """Does what was planned and tells of each fault when it begins and when it has healed."""

    def __init__(
        self,
        plan: Sequence[PlannedFault],
        targets: FaultTargets,
        tell: Callable[[PlannedFault, int, str], None],
    ) -> None:
        """`tell` is called with the fault, its number, and ``invoke`` or ``ok``."""
        super().__init__(name="nemesis", daemon=True)
        self.plan, self.targets, self._tell = plan, targets, tell
        self._over = threading.Event()
        self.error: Exception | None = None
        """Why it gave up, such as a server that does not start again."""

    def run(self) -> None:
        """Do the faults one after another, each healed before the next."""
        try:
            for number, fault in enumerate(self.plan, 1):
                if self._over.wait(fault.after):
                    return
                self._tell(fault, number, "invoke")
                try:
                    begin_fault(fault.kind, self.targets)
                    self._over.wait(fault.seconds)
                finally:
                    heal_fault(fault.kind, self.targets)
                self._tell(fault, number, "ok")
        except (OSError, ProtocolFault) as error:
            self.error = error

    def finish(self) -> None:
        """End it, with everything healed. Raises `Fault` if it could not be."""
        self._over.set()
        self.join()
        if self.error is not None:
            raise ProtocolFault("died", f"the faults ended early: {self.error}") from self.error


def begin_fault(kind: FaultKind, targets: FaultTargets) -> None:
    """Do a fault. Raises `Fault` if it needs something that is not there."""
    node, relay, disk = targets.node, targets.relay, targets.disk
    if kind == "kill":
        node.kill()
    elif kind == "restart":
        node.stop()
    elif kind == "pause":
        node.pause()
    elif kind == "disk-full":
        if disk is None:
            raise ProtocolFault("start", "a full disk needs a disk of its own")
        disk.fill()
    elif relay is None:
        raise ProtocolFault("start", f"{kind} needs a relay")
    elif kind == "cut":
        relay.cut()
    elif kind == "half-open":
        relay.half_open()
    elif kind == "delay":
        relay.delay(LATE)
    else:
        relay.throttle(SLOW)


def heal_fault(kind: FaultKind, targets: FaultTargets) -> None:
    """Undo a fault; a server that does not run is started. Raises `Fault` if it does not start."""
    node, relay, disk = targets.node, targets.relay, targets.disk
    if kind == "pause":
        node.resume()
    elif kind == "disk-full" and disk is not None:
        disk.free()
    elif relay is not None and kind in NETWORK:
        relay.heal()
    if not node.running:  # what was asked, or a server that a full disk ended
        node.start()


def fault_event(fault: PlannedFault, number: int, phase: str, i: int) -> Event:
    """The event of a fault that begins (``invoke``) or has healed (``ok``), now."""
    fields = {"kind": fault.kind, "ph": phase, "op": number}
    return event(i, time.monotonic_ns(), "nemesis", "fault", fields, "api")
