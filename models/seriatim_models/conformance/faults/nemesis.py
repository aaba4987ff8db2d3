"""Faults done to a system while its clients are at work, each healed before the next, and all at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import ENDING, FaultKind, PlannedFault
from seriatim_models.conformance.faults.disk import SmallDisk
from seriatim_models.conformance.faults.network import NodeNetwork
from seriatim_models.conformance.faults.node import ServerNode
from seriatim_models.conformance.faults.relay import FaultRelay
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.history.event import GAP

LATE = 0.05  # seconds of `delay`
SLOW = 20_000.0  # bytes a second of `throttle`
NETWORK: tuple[FaultKind, ...] = ("cut", "half-open", "delay", "throttle")
"""Faults of the connections, for which clients go through a relay."""
LOSING: tuple[FaultKind, ...] = (*ENDING, "disk-full", "partition")
"""Faults after which a system that promises nothing of them may have lost something; a full disk may end it."""
NEMESIS = "nemesis"
"""Who records them."""


@dataclass(frozen=True)
class SystemFaults:
    """What there is to be broken: a `FaultInjector`."""

    nodes: Sequence[ServerNode]
    relay: FaultRelay | None = None
    disk: SmallDisk | None = None
    network: NodeNetwork | None = None
    done: list[FaultKind] = field(default_factory=list)
    """What was done and healed, in its order."""

    def disturb(
        self, recording: StreamedRecording, faults: Sequence[PlannedFault], until: float
    ) -> None:
        """Do what was planned, one after another, each healed before the next, until the `time.monotonic` `until`; each
        kind once at least, however slow the system.

        Raises `Fault` if a fault needs something that is not there, or a server does not start again.
        """
        for number, fault in enumerate(faults, 1):
            known = fault.kind in self.done
            time.sleep(fault.after if not known else min(fault.after, left(until)))
            if known and not left(until):
                continue
            whole = set(fault.nodes) >= set(range(len(self.nodes)))
            before = list(recording.connections) if fault.kind in ENDING and whole else []
            self._record(recording, fault, number, "invoke")
            try:
                self.begin(fault)
                time.sleep(fault.seconds)
            finally:
                self.heal(fault)
            self._record(recording, fault, number, "ok")
            self.done.append(fault.kind)
            for conn in before:  # the server that knew of it is gone
                recording.record("conn_drop", proc=NEMESIS, lvl="broker", conn=conn)

    def _record(
        self, recording: StreamedRecording, fault: PlannedFault, number: int, phase: str
    ) -> None:
        args: dict[str, object] = {"kind": fault.kind}
        if len(self.nodes) > 1:
            args["nodes"] = [n + 1 for n in fault.nodes]
        recording.record("fault", proc=NEMESIS, ph=phase, op=-number, args=args)
        if fault.kind in LOSING:
            recording.record(GAP, proc=NEMESIS, ph=phase, args={"fault": fault.kind})

    def begin(self, fault: PlannedFault) -> None:
        """Do a fault. Raises `Fault` if it needs something that is not there."""
        kind, hit = fault.kind, [self.nodes[n] for n in fault.nodes]
        if kind == "kill":
            each(hit, ServerNode.kill)
        elif kind == "restart":
            each(hit, ServerNode.stop)
        elif kind == "pause":
            each(hit, ServerNode.pause)
        elif kind == "partition":
            if self.network is None:
                raise ProtocolFault("start", "a partition needs a system of several nodes")
            rest = [n for n in range(len(self.nodes)) if n not in fault.nodes]
            self.network.split([*([n] for n in fault.nodes), *([rest] if rest else [])])
        elif kind == "disk-full":
            if self.disk is None:
                raise ProtocolFault("start", "a full disk needs a disk of its own")
            self.disk.fill()
        elif self.relay is None:
            raise ProtocolFault("start", f"{kind} needs a relay, which only a single node has")
        elif kind == "cut":
            self.relay.cut()
        elif kind == "half-open":
            self.relay.half_open()
        elif kind == "delay":
            self.relay.delay(LATE)
        else:
            self.relay.throttle(SLOW)

    def heal(self, fault: PlannedFault) -> None:
        """Undo a fault; a server that does not run is started. Raises `Fault` if it does not start."""
        if fault.kind == "pause":
            each([self.nodes[n] for n in fault.nodes], ServerNode.resume)
        elif fault.kind == "partition" and self.network is not None:
            self.network.heal()
        elif fault.kind == "disk-full" and self.disk is not None:
            self.disk.free()
        elif self.relay is not None and fault.kind in NETWORK:
            self.relay.heal()
        # What was asked, or a server that a full disk ended.
        each([node for node in self.nodes if not node.running], ServerNode.start)


def left(until: float) -> float:
    """Seconds until then, 0 if it is over."""
    return max(0.0, until - time.monotonic())


def each(nodes: Sequence[ServerNode], do: Callable[[ServerNode], None]) -> None:
    """Do something to all nodes at once: one may wait for another to come."""
    if len(nodes) == 1:
        do(nodes[0])
    elif nodes:
        with ThreadPoolExecutor(len(nodes)) as pool:
            for done in [pool.submit(do, node) for node in nodes]:
                done.result()
