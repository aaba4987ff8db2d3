"""A system that is started as its description says: free ports, a folder of its own, and what faults need."""

from __future__ import annotations

import contextlib
import glob
import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from seriatim_models.conformance.faults.description import (
    RUN,
    SystemDescription,
    SystemSetting,
    filled,
)
from seriatim_models.conformance.faults.disk import SmallDisk
from seriatim_models.conformance.faults.nemesis import SystemFaults, each
from seriatim_models.conformance.faults.network import NodeNetwork
from seriatim_models.conformance.faults.node import LOOPBACK, ServerNode, alive
from seriatim_models.conformance.faults.relay import FaultRelay
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.history.depth import whole_number

PREPARING = 600.0
"""Seconds that a command which prepares the first start may take."""
PREFIX = "seriatim"


@dataclass(frozen=True)
class DescribedSystem:
    """A system that runs."""

    description: SystemDescription
    setting: SystemSetting
    reach: str
    """What its clients are told: the relay's port in place of the server's, if there is a relay."""
    home: Path
    faults: SystemFaults


@contextmanager
def started(
    description: SystemDescription,
    here: Path,
    *,
    setting: str = RUN,
    installed: Mapping[str, str] | None = None,
    relayed: bool = False,
    disk: int = 0,
) -> Iterator[DescribedSystem]:
    """A system from the moment it listens; afterwards it, all that it started and its folder are gone.

    `here` is the folder of its description, `installed` has the values of ``{jars}`` and ``{go}``. With `relayed` its
    clients go through a relay; `disk` is the size in megabytes of a disk of its own for ``{data}``, 0 for none.
    Raises `Fault` if it cannot be started, and `DescriptionError` for an unknown setting.
    """
    chosen = description.setting_of(setting)
    count = description.nodes
    if count > 1 and (relayed or disk):
        what = "a relay" if relayed else "a small disk"
        raise ProtocolFault("start", f"{description.id} has {count} nodes: {what} is for one")
    with ExitStack() as stack:
        top = stack.enter_context(folder(description.id))
        network = stack.enter_context(NodeNetwork(count)) if count > 1 else None
        ports = free_ports(description.ports)
        first = description.ports[0]
        if missing := set(description.lacks) - set(installed or {}):
            braces = " and ".join(f"{{{name}}}" for name in sorted(missing))
            raise ProtocolFault(
                "start",
                f"{description.id} needs what `make conform` installs for {braces}: give paths of yours",
            )
        common: dict[str, object] = {"here": here, "pid": os.getpid(), **ports, **(installed or {})}
        if network:
            for n in range(count):
                common |= {f"address{n + 1}": network.address(n)}
                common |= {f"listen{n + 1}": network.reach(n)}
        nodes, reaches = [], []
        small: SmallDisk | None = None
        relay: FaultRelay | None = None
        for n in range(count):
            home = top / f"node{n + 1}" if network else top
            data = home / "data"
            data.mkdir(parents=True)
            values = {**common, "home": home, "data": data}
            if network:
                values |= {"node": n + 1, "address": network.address(n), "listen": network.reach(n)}
            small = stack.enter_context(SmallDisk(data, disk)) if disk else None
            inside = network.prefix(n) if network else small.prefix if small else []
            host = network.reach(n) if network else LOOPBACK
            node = _prepared(description, chosen, values, inside, ports, host)
            nodes.append(node)
            stack.enter_context(contextlib.closing(node))
            relay = stack.enter_context(FaultRelay(ports[first])) if relayed else None
            reached = {**values, first: relay.port} if relay else values
            reaches.append(filled(description.reach, reached))
        each(nodes, ServerNode.start)
        faults = SystemFaults(nodes, relay, small, network)
        yield DescribedSystem(description, chosen, ",".join(reaches), top, faults)


def _prepared(
    description: SystemDescription,
    setting: SystemSetting,
    values: dict[str, object],
    inside: list[str],
    ports: Mapping[str, int],
    host: str,
) -> ServerNode:
    """A node with its files, prepared and not started; `inside` is what its commands begin with. Raises `Fault`."""
    home = Path(str(values["home"]))
    for name, text in description.files.items():
        (home / name).write_text(filled(text, values), encoding="utf-8")
    before = [*inside, *_given(home, description.user)]
    environment = {**description.environment, **setting.environment}
    environment = {name: filled(text, values) for name, text in environment.items()}
    if description.search:
        environment["PATH"] = os.pathsep.join([*found(description.search), os.environ["PATH"]])

    def command(parts: list[str]) -> list[str]:
        given = [filled(part, values) for part in parts]
        program = shutil.which(given[0], path=environment.get("PATH")) or given[0]
        return [*before, program, *given[1:]]

    for parts in description.prepare:
        run_to_end(command(parts), environment, home)
    return ServerNode(
        command([*description.start, *setting.options]),
        home,
        ports[description.ready or description.ports[0]],
        host=host,
        environment=environment,
        stop=description.stop,
    )


def found(patterns: list[str]) -> list[str]:
    """The folders that patterns stand for, the last one of each."""
    matches = (sorted(glob.glob(pattern)) for pattern in patterns)
    return [each[-1] for each in matches if each]


def free_ports(names: list[str]) -> dict[str, int]:
    """A port of the loopback for each name that no process listens on, all different.

    None that the system gives to outgoing connections: while a killed server is down its port could become the near end
    of one, even of one to itself by a client that tries again and again.
    """
    try:
        least = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        least = 32768  # linux/Documentation/networking/ip-sysctl
    drawn = random.Random(os.urandom(8))
    with ExitStack() as stack:
        found: dict[str, int] = {}
        while len(found) < len(names):
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", drawn.randrange(least // 2, least)))
                found[names[len(found)]] = int(probe.getsockname()[1])
        return found


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """A folder that is gone afterwards; one that a killed driver left is removed now."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}-{name}-*-*"):
        owner = left.name.removeprefix(f"{PREFIX}-{name}-").partition("-")[0]
        if (number := whole_number(owner)) is not None and not alive(number):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{PREFIX}-{name}-{os.getpid()}-", ignore_cleanup_errors=True
    ) as made:
        yield Path(made)


def run_to_end(
    command: list[str], environment: Mapping[str, str], home: Path | None = None
) -> None:
    """Run a command to its end. Raises `Fault` with the last line that it printed."""
    try:
        done = subprocess.run(
            command,
            cwd=home,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PREPARING,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProtocolFault("start", f"{command[0]}: {error}") from None
    if done.returncode:
        output = done.stdout.decode("utf-8", "replace").strip().splitlines()
        last = output[-1] if output else "it printed nothing"
        raise ProtocolFault("start", f"{' '.join(command[:3])} failed: {last}")


def _given(home: Path, user: str) -> list[str]:
    """Make a folder and what is in it a user's; returns what a command begins with that is run as that user. Nothing is
    done for no user, or by one who is not root. Raises `Fault` if there is no such user.
    """
    if not user or os.geteuid() != 0:
        return []
    try:
        for each in (home, *home.rglob("*")):
            shutil.chown(each, user, user)
    except (LookupError, OSError) as error:
        raise ProtocolFault("start", f"cannot be run as {user}: {error}") from None
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
