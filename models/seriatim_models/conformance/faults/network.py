"""A network of their own for the nodes of a cluster, which can be split.

Each node has a network namespace with two interfaces: one to the driver, over which clients reach it whatever happens
between the nodes, and one to the switch that joins the nodes. A partition puts nodes on different switches: packets
between them are lost without a word, as behind a broken cable, and connections live on in silence.
The namespaces end with the processes in them: nothing has to be taken down, also if the driver is killed. That takes
Linux and root.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack

from seriatim_models.conformance.faults.namespace import NamespaceHolder
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.supervisor import SUPERVISED

SUBNETS = ipaddress.ip_network("198.18.0.0/15")
"""For tests of networks (RFC 2544): no address of it is anybody's."""
SWITCH_ID = 64
"""How many clusters can be on a machine at once: each has two /24 of `SUBNETS`."""


class NodeNetwork:
    """Namespaces for so many nodes. A context manager."""

    def __init__(self, nodes: int) -> None:
        """Raises `Fault` where this cannot be done."""
        if not SUPERVISED or os.geteuid() != 0:
            raise ProtocolFault(
                "start", "a partition needs Linux and root, for networks of its own"
            )
        for tool, package in (("ip", "iproute2"), ("unshare", "util-linux")):
            if shutil.which(tool) is None:
                raise ProtocolFault("start", f"a partition needs {tool} (Debian: {package})")
        self.nodes = nodes
        self._stack = ExitStack()

    def __enter__(self) -> NodeNetwork:
        with ExitStack() as stack:
            self._hub = stack.enter_context(NamespaceHolder("--net"))
            self._own = [stack.enter_context(NamespaceHolder("--net")) for _ in range(self.nodes)]
            self._take_number()
            for switch in range(self.nodes):
                self._in_hub("link", "add", f"switch{switch}", "type", "bridge")
                self._in_hub("link", "set", f"switch{switch}", "up")
            for n in range(self.nodes):
                if n:
                    self._lay_cable(n)
                self._join(n)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def address(self, node: int) -> str:
        """By which the other nodes reach a node, counted from 0."""
        return str(self._subnet(2 * self._number)[node + 1])

    def reach(self, node: int) -> str:
        """By which clients of the driver reach a node."""
        return str(self._subnet(2 * self._number + 1)[4 * node + 2])

    def prefix(self, node: int) -> list[str]:
        """What a command begins with that runs on a node."""
        return self._own[node].prefix

    def split(self, groups: Sequence[Sequence[int]]) -> None:
        """Let only nodes of one group reach each other; each node is in one group."""
        for switch, group in enumerate(groups):
            for n in group:
                self._in_hub("link", "set", f"node{n}", "master", f"switch{switch}")

    def heal(self) -> None:
        """Let all reach each other."""
        self.split([range(self.nodes)])

    def _subnet(self, number: int) -> ipaddress.IPv4Network:
        first = int(SUBNETS.network_address) + 256 * number
        return ipaddress.IPv4Network((first, 24))

    def _take_number(self) -> None:
        """Take a number that no other cluster on this machine has: who makes the first node's cable has taken it."""
        for number in range(SWITCH_ID):
            self._number = number
            if self._is_taken():
                continue
            try:
                self._lay_cable(0)
                return
            except ProtocolFault:
                if not self._is_taken():
                    raise
        raise ProtocolFault("start", f"{SWITCH_ID} clusters have all networks on this machine")

    def _is_taken(self) -> bool:
        return f" {self._cable('')}" in _run("ip", "link")

    def _cable(self, node: int | str) -> str:
        """The name of the driver's end of a node's cable."""
        return f"srt{self._number}n{node}"

    def _lay_cable(self, n: int) -> None:
        own = str(self._own[n].pid)
        _run(
            "ip",
            "link",
            "add",
            self._cable(n),
            "type",
            "veth",
            "peer",
            "name",
            "clients",
            "netns",
            own,
        )

    def _driver(self, node: int) -> str:
        return str(self._subnet(2 * self._number + 1)[4 * node + 1])

    def _join(self, n: int) -> None:
        """Connect a node to the driver and to the first switch."""
        hub, outside = str(self._hub.pid), self._cable(n)
        _run("ip", "addr", "add", f"{self._driver(n)}/30", "dev", outside)
        _run("ip", "link", "set", outside, "up")
        within = [*self.prefix(n), "ip"]
        _run(
            *within,
            "link",
            "add",
            "peers",
            "type",
            "veth",
            "peer",
            "name",
            f"node{n}",
            "netns",
            hub,
        )
        for name, address in (
            ("clients", f"{self.reach(n)}/30"),
            ("peers", f"{self.address(n)}/24"),
        ):
            _run(*within, "addr", "add", address, "dev", name)
            _run(*within, "link", "set", name, "up")
        _run(*within, "link", "set", "lo", "up")
        self._in_hub("link", "set", f"node{n}", "master", "switch0", "up")

    def _in_hub(self, *words: str) -> None:
        _run(*self._hub.prefix, "ip", *words)


def _run(*command: str) -> str:
    """The output of a command. Raises `Fault` with what it says if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip()
        raise ProtocolFault("start", f"no network could be made: {' '.join(command[-6:])}: {why}")
    return done.stdout.decode("utf-8", "replace")
