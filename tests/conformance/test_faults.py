"""Systems that are broken on purpose: their descriptions, processes, connections and disks, and what is judged then."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from seriatim_models.cli import run as run_command
from seriatim_models.conformance.concurrent.driving import ConcurrentRun, run_workload
from seriatim_models.conformance.concurrent.objects import ThreadedObject
from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import (
    MIX,
    REOPEN,
    ConcurrentWorkload,
    FaultKind,
    PlannedFault,
    kinds_of,
    plan_faults,
)
from seriatim_models.conformance.faults.described import free_ports, started
from seriatim_models.conformance.faults.description import (
    DescriptionError,
    SystemDescription,
    parse_description,
    read_description,
)
from seriatim_models.conformance.faults.disk import SmallDisk
from seriatim_models.conformance.faults.network import NodeNetwork
from seriatim_models.conformance.faults.node import ServerNode, alive, descendants
from seriatim_models.conformance.faults.relay import FaultRelay
from seriatim_models.conformance.protocol import Fault
from seriatim_models.history import Header, read_history
from seriatim_models.history.event import Event
from seriatim_models.properties import audit
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox.conservation import Conservation
from seriatim_models.properties.columnar.evaluator import judge
from seriatim_models.properties.standing import confirmed
from seriatim_workshop.systems import chaos, servers
from seriatim_workshop.systems.registry import SYSTEMS

from .planted_client import PlantedClient
from .planted_cluster import REACHED, ClientHandler, Node, PeerHandler, Server

HERE = Path(__file__).parent
PLANTED = """
format = "seriatim-system/1"
id = "planted"
title = "a queue with a log"
origin = "this folder"
reach = "127.0.0.1:{{port}}"
start = ["{python}", "{{here}}/planted_server.py", "{{port}}", "{{data}}"]

[setting.before]
options = ["before"]
survives = ["kill", "pause", "cut"]
settled = ["kill"]

[setting.later]
options = ["later"]
survives = ["kill", "pause", "cut"]
settled = ["kill"]
"""


CLUSTER = """
format = "seriatim-system/1"
id = "planted-cluster"
title = "a queue of three replicas"
origin = "this folder"
nodes = 3
ports = ["port", "peers"]
reach = "{{listen}}:{{port}}"
start = [
  "{python}", "{{here}}/planted_cluster.py", "{{node}}", "{mode}", "{{listen}}:{{port}}",
  "{{address1}}:{{peers}}", "{{address2}}:{{peers}}", "{{address3}}:{{peers}}",
]

[setting.replicated]
survives = ["kill", "pause", "partition"]
"""


def planted(mode: str = "") -> SystemDescription:
    text = (
        CLUSTER.format(python=sys.executable, mode=mode)
        if mode
        else PLANTED.format(python=sys.executable)
    )
    return parse_description(text, "planted.toml")


# ---- descriptions


@pytest.mark.parametrize("name", sorted({s.server for s in SYSTEMS.values() if s.server}))
def test_every_description_can_be_read_and_says_where_its_program_is_from(name: str) -> None:
    description = servers.description_of(name)
    assert description.id == name
    assert description.origin
    for setting in description.setting.values():
        assert setting.says, "what is promised, in a sentence"
        assert setting.source, "where that is documented"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("seriatim-system/1", "seriatim-system/9", "format: 'seriatim-system/9' cannot be read"),
        ('title = "a queue with a log"', "", "missing required field `title`"),
        ("title =", "titel =", "unknown field `titel`"),
        ("start = [", "start = [] #", "start: the command is empty"),
        ("{{data}}", "{{dta}}", "start: '{dta}': no value for 'dta'"),
        ("{{here}}", "{{here", "start: "),
        ('"kill", "pause"', '"kil", "pause"', "Invalid enum value 'kil'"),
        ('origin = "this folder"', 'origin = "x"\nports = []', "ports: a system needs one"),
        ('origin = "this folder"', 'origin = "x"\nready = "http"', "ready: 'http' is none of its"),
        ("reach =", "reach", "planted.toml: "),
        ("{{data}}", "{{data[0]}}", "start: '{data[0]}': no value for 'data[0]'"),
        ("{{data}}", "{{data.__class__}}", "no value for 'data.__class__'"),
        ("{{data}}", "{{data:>999999999}}", "no value for 'data:>999999999'"),
        ("{{data}}", "\\u0000", "start: '\\x00' has a NUL in it"),
        ('origin = "this folder"', 'origin = "x"\nprepare = [[]]', "prepare: a command is empty"),
        (
            'origin = "this folder"',
            'origin = "x"\nfiles = {{"../x" = ""}}',
            "files: '../x' is not in the folder",
        ),
        (
            'origin = "this folder"',
            'origin = "x"\nfiles = {{"/x" = ""}}',
            "files: '/x' is not in the folder",
        ),
        (
            'origin = "this folder"',
            'origin = "x"\nfiles = {{"" = ""}}',
            "files: '' is not in the folder",
        ),
        (
            'origin = "this folder"',
            'origin = "x"\nenvironment = {{"A=B" = ""}}',
            "environment: 'A=B' is no name",
        ),
        (
            'origin = "this folder"',
            'origin = "x"\nenvironment = {{"A" = "\\u0000"}}',
            "environment: '\\x00' has a NUL",
        ),
        ('id = "planted"', 'id = "../planted"', "id: '../planted' is not letters"),
    ],
)
def test_a_bad_description_is_refused_in_a_sentence(old: str, new: str, why: str) -> None:
    assert old in PLANTED
    text = PLANTED.replace(old, new).format(python="python")
    with pytest.raises(DescriptionError) as caught:
        parse_description(text, "planted.toml")
    assert why in str(caught.value)
    assert str(caught.value).startswith("planted.toml: ")


def test_a_description_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"none\.toml: cannot be read: No such file"):
        read_description(tmp_path / "none.toml")
    with pytest.raises(DescriptionError, match="has no setting 'fast'; there are before, later"):
        planted().setting_of("fast")


def test_ports_are_none_that_outgoing_connections_get() -> None:
    least = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = [port for _ in range(20) for port in free_ports(["a", "b"]).values()]
    assert max(found) < least
    assert min(found) > 1024


# ---- processes

LISTENS = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
HIDES = (
    "import os\n"
    "if not os.fork():\n"
    "    os.setsid()\n"
    "    if not os.fork(): os.execve('/bin/sleep', ['sleep', '1000'], {})\n"
    "    os._exit(0)\n"
)
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
WAITS = "time.sleep(1000)"


def node_of(tmp_path: Path, *parts: str) -> ServerNode:
    (port,) = free_ports(["port"]).values()
    command = [sys.executable, "-c", LISTENS + "".join(parts) + WAITS, str(port)]
    return ServerNode(command, tmp_path, port)


def gone(pids: list[int]) -> bool:
    until = time.monotonic() + 20
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(map(alive, pids))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop", "close"])
@pytest.mark.parametrize("parts", [(), (HIDES,), (DEAF, HIDES)], ids=["plain", "hides", "deaf"])
def test_nothing_of_a_server_is_left(
    tmp_path: Path, how: str, parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seriatim_models.conformance.faults.node.STOPPING", 0.5)
    node = node_of(tmp_path, *parts)
    node.start()
    until = time.monotonic() + 20
    while len(node.pids()) < 1 + (HIDES in parts) and time.monotonic() < until:
        time.sleep(0.01)
    pids = node.pids()
    assert len(pids) >= 1 + (HIDES in parts)
    getattr(node, how)()
    assert gone(pids)
    node.start()  # and it can be started again, on the same port
    node.close()


def test_a_paused_server_is_stopped_and_goes_on(tmp_path: Path) -> None:
    with node_of(tmp_path) as node:
        (pid,) = node.pids()
        node.pause()
        assert state(pid) == "T"
        node.resume()
        assert state(pid) != "T"
        node.pause()
    assert gone([pid])  # also if it ends paused


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_server_that_ends_at_once_says_why(tmp_path: Path) -> None:
    (port,) = free_ports(["port"]).values()
    node = ServerNode(["sh", "-c", "echo oh no; exit 3"], tmp_path, port)
    with pytest.raises(Fault, match="sh ended with exit code 3: oh no"):
        node.start()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Fault, match=rf"port {port} of 127\.0\.0\.1 is taken"):
            ServerNode(["sleep", "1000"], tmp_path, port).start()


def test_a_program_or_signal_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="no-such-program: there is no such program"):
        ServerNode(["no-such-program"], tmp_path, free_ports(["p"])["p"]).start()
    with pytest.raises(Fault, match="no signal 'QUICK'"):
        ServerNode(["sleep", "1000"], tmp_path, 1, stop="QUICK")


DRIVER = """
import sys, time
from pathlib import Path
from seriatim_models.conformance.faults.node import ServerNode
with ServerNode([sys.executable, "-c", sys.argv[2], sys.argv[3]], Path(sys.argv[1]), int(sys.argv[3])) as node:
    while len(node.pids()) < 2:
        time.sleep(0.01)
    if sys.argv[4] == "paused":
        node.pause()
    print(*node.pids(), flush=True)
    time.sleep(1000)
"""


def heeds_signals() -> None:
    """Undo what a child inherits: started in the background pytest ignores SIGINT, and under nohup SIGHUP."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("how", ["running", "paused"])
def test_nothing_is_left_when_the_driver_is_ended(
    tmp_path: Path, number: signal.Signals, how: str
) -> None:
    (port,) = free_ports(["port"]).values()
    code = LISTENS + DEAF + HIDES + WAITS
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path), code, str(port), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=heeds_signals,
    )
    assert driver.stdout is not None
    pids = [int(pid) for pid in driver.stdout.readline().split()]
    assert len(pids) >= 2
    supervisors = descendants(driver.pid)
    driver.send_signal(number)
    driver.wait()
    driver.stdout.close()
    assert gone([*pids, *supervisors])


# ---- connections


def echo(relay: Callable[[int], FaultRelay]) -> tuple[FaultRelay, socket.socket]:
    """A relay in front of a listener."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)
    return relay(listener.getsockname()[1]), listener


def connected(relay: FaultRelay, listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = socket.create_connection(("127.0.0.1", relay.port), timeout=10)
    server, _ = listener.accept()
    server.settimeout(10)
    return client, server


def refused(relay: FaultRelay) -> None:
    with socket.create_connection(("127.0.0.1", relay.port), timeout=10) as more:
        more.sendall(b"x")
        more.recv(1)
        more.sendall(b"x")
        more.recv(1)


def test_a_relay_forwards_both_ways_and_ends_with_its_client() -> None:
    relay, listener = echo(FaultRelay)
    with listener, relay:
        client, server = connected(relay, listener)
        with client, server:
            block = bytes(range(256)) * 4096
            client.sendall(block)
            got = b""
            while len(got) < len(block):
                got += server.recv(2**16)
            assert got == block
            server.sendall(b"back")
            assert client.recv(4) == b"back"
            client.close()
            assert server.recv(1) == b""


def test_a_cut_resets_both_sides_and_refuses_until_it_heals() -> None:
    relay, listener = echo(FaultRelay)
    with listener, relay:
        client, server = connected(relay, listener)
        with client, server:
            relay.cut()
            for side in (client, server):
                with pytest.raises(ConnectionResetError):
                    side.recv(1)
            with pytest.raises(ConnectionError):
                refused(relay)
            relay.heal()
            again, other = connected(relay, listener)
            with again, other:
                again.sendall(b"x")
                assert other.recv(1) == b"x"


def test_half_open_ends_the_servers_side_and_says_nothing_to_the_client() -> None:
    relay, listener = echo(FaultRelay)
    with listener, relay:
        client, server = connected(relay, listener)
        with client, server:
            relay.half_open()
            with pytest.raises(ConnectionResetError):
                server.recv(1)
            client.sendall(b"into the void")
            client.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.recv(1)
            relay.heal()
            with pytest.raises(TimeoutError):
                client.recv(1)
            again, other = connected(relay, listener)
            with again, other:
                again.sendall(b"x")
                assert other.recv(1) == b"x"


def test_a_delay_and_a_slow_line_hold_bytes_back() -> None:
    relay, listener = echo(FaultRelay)
    with listener, relay:
        client, server = connected(relay, listener)
        with client, server:
            for late, rate in ((0.2, 0.0), (0.0, 5.0)):
                relay.delay(late)
                relay.throttle(rate)
                begun = time.monotonic()
                client.sendall(b"x")
                assert server.recv(1) == b"x"
                assert time.monotonic() - begun >= 0.19
                relay.heal()


def test_bytes_behind_a_delay_stay_in_order() -> None:
    relay, listener = echo(FaultRelay)
    with listener, relay:
        client, server = connected(relay, listener)
        with client, server:
            relay.delay(0.1)
            client.sendall(b"abc")
            relay.delay(0.0)
            client.sendall(b"def")
            got = b""
            while len(got) < 6:
                got += server.recv(6)
            assert got == b"abcdef"


# ---- disks


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root; the next test has the refusal")
def test_a_small_disk_fills_up_and_is_gone_with_its_holder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with SmallDisk(folder, 2) as disk:
        assert disk.fill() > 2**20
        assert disk.full()
        write = [*disk.prefix, "sh", "-c", f"head -c 9999 /dev/zero > {folder}/more"]
        assert subprocess.run(write, stderr=subprocess.DEVNULL, check=False).returncode
        disk.free()
        assert not subprocess.run(write, check=False).returncode
        assert os.listdir(folder) == []  # nobody else sees it
    assert str(folder) not in Path("/proc/mounts").read_text()


def test_without_root_a_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Fault, match="a full disk needs Linux and root"):
        SmallDisk(tmp_path)


# ---- plans


def test_a_seed_is_a_plan_with_each_kind() -> None:
    kinds: list[FaultKind] = ["kill", "pause", "cut"]
    plan = plan_faults(kinds, 60.0, 7)
    assert plan == plan_faults(kinds, 60.0, 7) != plan_faults(kinds, 60.0, 8)
    counts = [sum(fault.kind == kind for fault in plan) for kind in kinds]
    assert min(counts) >= max(counts) - 1 > 1
    assert sum(fault.after + fault.seconds for fault in plan) <= 60
    assert plan_faults(["kill"], 0.0, 7)  # one comes always


def test_kinds_are_named() -> None:
    assert kinds_of("kill,half-open") == ["kill", "half-open"]
    with pytest.raises(ValueError, match="no fault 'kil'; there are kill, restart"):
        kinds_of("kil")


# ---- a planted mistake


def faulty(
    setting: str,
    kinds: list[FaultKind],
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str = "",
    faults: tuple[PlannedFault, ...] = (),
) -> tuple[ConcurrentRun, list[FaultKind]]:
    """The run of a workload on the planted server (or cluster, of a mode), recorded, and the faults that were done."""
    with started(planted(mode), HERE, setting=setting, relayed="cut" in kinds) as system:
        monkeypatch.setenv("SERIATIM_TARGET", system.reach)
        faults = faults or plan_faults(kinds, 4.0, 1)
        mix = MIX | REOPEN | ({"publish": 80, "close": 4} if mode else {})
        workload = ConcurrentWorkload(rate=400, faults=faults, phases=(("faults", 4.0),), mix=mix)
        promised = {"survives": system.setting.survives, "settled": system.setting.settled}
        with StreamedRecording(path, Header(rec="drive", lvl="api", clk="here")) as recording:
            run = run_workload(
                ThreadedObject(PlantedClient),
                workload,
                recording,
                nemesis=system.faults,
                declares=promised,
                patience=30,
            )
        return run, system.faults.done


def verdict_of(events: list[Event]) -> Verdict:
    prop = Conservation()
    (finding,) = audit(events, [prop])
    (by_columns,) = judge(events, [prop])
    assert by_columns.verdict is finding.verdict
    return confirmed(prop, finding).verdict


@pytest.mark.slow
def test_confirmed_before_it_is_written_is_found_by_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = faulty("later", ["kill"], tmp_path / "run.jsonl", monkeypatch)
    assert run.drained
    assert verdict_of(list(read_history(tmp_path / "run.jsonl").events)) is Verdict.VIOLATED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "kinds"), [("before", ["kill", "pause", "cut"]), ("later", ["pause", "cut"])]
)
def test_without_a_kill_or_without_the_mistake_nothing_is_violated(
    setting: str, kinds: list[FaultKind], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    run, done = faulty(setting, kinds, path, monkeypatch)
    assert run.drained, run.undrained
    assert set(done) == set(kinds)
    row = chaos.ChaosRow(id="x", title="x", profile="any")
    row = chaos.judged_row(row, run, list(read_history(path).events))
    assert row.lost == 0
    assert row.violates == []
    assert {"P1", "P2", "P14"} <= set(row.tested)


ALONE = tuple(PlannedFault(after=0.5, kind="partition", seconds=3.0, nodes=(0,)) for _ in range(2))


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="networks need root; another test has the refusal")
def test_confirmed_by_a_majority_survives_a_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    run, done = faulty("replicated", [], path, monkeypatch, "majority", ALONE)
    assert set(done) == {"partition"}
    assert run.drained, run.undrained
    assert verdict_of(list(read_history(path).events)) is Verdict.OK


@pytest.mark.slow
@pytest.mark.scale
@pytest.mark.timeout(
    900
)  # under five minutes to find it, as long to make it small, and some runs more
@pytest.mark.skipif(os.geteuid() != 0, reason="networks need root; another test has the refusal")
def test_confirmed_by_whoever_is_reachable_is_found_by_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The smallest clients that show it still need a partition."""
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("COLUMNS", "200")
    words = ["conform", "--system", written(tmp_path, "reachable"), "--setting", "replicated"]
    words += ["--faults", "partition", "--python", "planted_client:PlantedClient"]
    words += ["--clients", "4", "--seconds", "200", "--seed", "2", "--out", str(tmp_path)]
    assert run_command(words) == 1
    smallest = capsys.readouterr().out.partition("The smallest clients that violate P1, again in ")[
        2
    ]
    assert smallest
    assert not smallest.startswith("0 of")
    assert "partition of node" in smallest


@pytest.mark.skipif(os.geteuid() != 0, reason="networks need root; another test has the refusal")
def test_networks_that_are_made_at_once_are_different_ones() -> None:
    def address(begin: threading.Barrier) -> str:
        begin.wait()
        with NodeNetwork(1) as network:
            begin.wait()
            return network.address(0)

    for _ in range(3):
        begin = threading.Barrier(4, timeout=30)
        with ThreadPoolExecutor(4) as pool:
            made = [pool.submit(address, begin) for _ in range(4)]
            assert len({each.result() for each in made}) == 4


def test_without_root_a_partition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Fault, match="a partition needs Linux and root"):
        NodeNetwork(3)


def written(folder: Path, mode: str = "") -> str:
    """The description of the planted server, or cluster, as a file."""
    path = folder / "planted.toml"
    text = (CLUSTER if mode else PLANTED).format(python=sys.executable, mode=mode)
    path.write_text(text.replace("{here}", str(HERE)))
    return str(path)


def addresses() -> str:
    return subprocess.run(["ip", "addr"], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="networks need root")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_cluster_whose_driver_ends(
    number: signal.Signals, tmp_path: Path
) -> None:
    words = ["record", "--system", written(tmp_path, "majority"), "--setting", "replicated"]
    words += ["--faults", "partition,kill", "--python", "planted_client:PlantedClient"]
    words += ["--seconds", "60", "--rate", "100", "--out", str(tmp_path / "run.jsonl")]
    driver = subprocess.Popen(
        [sys.executable, "-m", "seriatim_models.cli.submit", *words],
        cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    path, until = tmp_path / "run.jsonl", time.monotonic() + 60
    while not (path.exists() and b"partition" in path.read_bytes()) and time.monotonic() < until:
        assert driver.poll() is None
        time.sleep(0.05)
    below = descendants(driver.pid)
    assert len(below) >= 3 * 2 + 4 * 2  # nodes and namespaces, each under a supervisor
    environments = (Path(f"/proc/{pid}/environ").read_text() for pid in below)
    reach = next(
        t.partition("SERIATIM_TARGET=")[2] for t in environments if "SERIATIM_TARGET=" in t
    )
    mine = f" {reach.partition('.2:')[0]}.1/30 "  # the driver's end of the first node's cable
    assert mine in addresses()
    driver.send_signal(number)
    driver.wait(60)
    assert gone(below)
    while mine in addresses() and time.monotonic() < until + 60:
        time.sleep(0.05)  # the kernel takes a network down when its last process is gone
    assert mine not in addresses()
    if number is not signal.SIGKILL:
        assert read_history(path).events


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "code"), [("later", 1), ("before", 0)])
def test_the_command_starts_a_system_and_kills_it(
    setting: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording of a run with kills; what had been confirmed and not written is a violation of P1."""
    monkeypatch.chdir(HERE)
    words = ["--system", written(tmp_path), "--setting", setting, "--faults", "kill"]
    words += ["--python", "planted_client:PlantedClient", "--rate", "300", "--seconds", "4"]
    path = str(tmp_path / "run.jsonl")
    assert run_command(["record", *words, "--out", path]) == 0
    assert {e.args["kind"] for e in read_history(path).events if e.ev == "fault"} == {"kill"}
    assert run_command(["audit", path, "--engine", "local", "--profile", "amqp-0-9-1-4.7"]) == code


@pytest.mark.slow
def test_small_clients_and_faults_are_drawn_and_made_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message that was confirmed, and one kill; further commands only wait for it."""
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("COLUMNS", "200")
    words = ["--system", written(tmp_path), "--setting", "later", "--faults", "kill,pause"]
    words += ["--python", "planted_client:PlantedClient", "--seed", "1", "--seconds", "20"]
    assert run_command(["conform", *words, "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "faults: kill after" in shown
    assert "pause" not in shown.partition("The smallest clients that violate P1")[2]


def test_bad_words_about_systems_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue, out = ["--python", "queue:Queue"], ["--out", str(tmp_path / "x.jsonl")]
    for words, why in (
        (["--faults", "kill"], "--setting and --faults are for --system"),
        (["--system", written(tmp_path), "--faults", "kil"], "no fault 'kil'; there are kill,"),
        (["--system", written(tmp_path), "--setting", "no"], "has no setting 'no'"),
        (["--system", str(tmp_path / "none.toml")], "none.toml: cannot be read: No such file"),
        (
            ["--system", written(tmp_path), "--faults", "partition"],
            "a partition needs several nodes",
        ),
    ):
        assert run_command(["record", *queue, *words, *out]) == 2
        assert why in " ".join(capsys.readouterr().err.split())


# ---- what is judged


def lost_after(fault: str, survives: list[str], *, held: int | None = 0) -> list[Event]:
    """A confirmed message, a fault, and a queue that is empty after it."""
    note = {"depth": 0} | ({} if held is None else {"held": held})
    return [
        Event(i=1, ev="declare", lvl="api", q="q", args={"survives": survives}),
        Event(i=2, ev="publish", lvl="api", q="q", m="a", ph="invoke", op=1, conn="p"),
        Event(i=3, ev="publish", lvl="api", q="q", m="a", ph="ok", op=1, conn="p"),
        Event(i=4, ev="get", lvl="api", q="q", ph="invoke", op=2, conn="c"),
        Event(i=5, ev="gap", lvl="api", ph="invoke", args={"fault": fault}),
        Event(i=6, ev="get", lvl="api", q="q", ph="info", op=2, conn="c"),
        Event(i=7, ev="gap", lvl="api", ph="ok", args={"fault": fault}),
        Event(i=8, ev="note", lvl="api", q="q", args=note),
    ]


def test_a_loss_is_one_only_if_its_survival_is_declared() -> None:
    assert verdict_of(lost_after("kill", ["kill"])) is Verdict.VIOLATED
    assert verdict_of(lost_after("kill", ["restart"])) is Verdict.INCONCLUSIVE
    assert verdict_of(lost_after("kill", ["kill"])[1:]) is Verdict.INCONCLUSIVE  # undeclared


def test_a_get_of_unknown_outcome_may_hold_what_is_missing() -> None:
    assert verdict_of(lost_after("kill", ["kill"], held=None)) is Verdict.INCONCLUSIVE
    assert verdict_of(lost_after("kill", ["kill"], held=1)) is Verdict.INCONCLUSIVE


def test_without_a_fault_a_loss_needs_no_declaration() -> None:
    events = [e for e in lost_after("kill", [])[1:] if e.ev != "gap"]
    assert verdict_of(events) is Verdict.VIOLATED


def again_after(settled: list[str], answer: str) -> list[Event]:
    """A message that is settled, and comes again after a kill."""
    return [
        Event(i=1, ev="declare", lvl="api", q="q", args={"settled": settled}),
        Event(i=2, ev="publish", lvl="api", q="q", m="a", conn="p", ph="invoke", op=1),
        Event(i=3, ev="publish", lvl="api", q="q", m="a", conn="p", ph="ok", op=1),
        Event(i=4, ev="get", lvl="api", q="q", m="a", dtag=1, conn="c", ph="ok", op=2),
        Event(i=5, ev="ack", lvl="api", q="q", dtag=1, ms=["a"], conn="c", ph="invoke", op=3),
        Event(i=6, ev="ack", lvl="api", q="q", dtag=1, ms=["a"], conn="c", ph=answer, op=3),
        Event(i=7, ev="gap", lvl="api", ph="invoke", args={"fault": "kill"}),
        Event(i=8, ev="gap", lvl="api", ph="ok", args={"fault": "kill"}),
        Event(i=9, ev="get", lvl="api", q="q", m="a", dtag=1, conn="d", ph="ok", op=4),
    ]


def test_a_message_comes_again_after_a_fault_only_as_declared() -> None:
    assert verdict_of(again_after(["kill"], "ok")) is Verdict.VIOLATED
    assert verdict_of(again_after(["kill"], "info")) is not Verdict.VIOLATED
    assert verdict_of(again_after([], "ok")) is not Verdict.VIOLATED


def test_what_was_dropped_is_settled_as_well() -> None:
    dropped = [
        msgspec.structs.replace(e, ev="nack", requeue=False) if e.ev == "ack" else e
        for e in again_after(["kill"], "ok")
    ]
    assert verdict_of(dropped) is Verdict.VIOLATED


def test_a_system_that_serves_before_its_fault_is_recorded_as_over_is_judged() -> None:
    """Its clients are faster than who started it."""
    *before, begun, over, again = again_after(["kill"], "ok")
    opened = Event(i=0, ev="conn_open", lvl="api", conn="d")
    assert verdict_of([*before, begun, opened, again, over]) is Verdict.VIOLATED
    late = [*before[:-1], begun, before[-1], opened, again, over]
    assert verdict_of(late) is not Verdict.VIOLATED  # it was answered while the system ended


def test_a_message_may_come_again_from_the_other_side_of_a_partition() -> None:
    begun, over = again_after([], "ok")[-3:-1]
    *before, last = [e for e in again_after([], "ok") if e.ev != "gap"]
    for at in (2, 4):  # the partition begins before the message is taken, or before it is settled
        split = msgspec.structs.replace(begun, i=0, args={"fault": "partition"})
        assert verdict_of([*before[:at], split, *before[at:], last]) is not Verdict.VIOLATED
        healed = msgspec.structs.replace(over, i=0, args={"fault": "partition"})
        assert verdict_of([*before[:at], split, healed, *before[at:], last]) is Verdict.VIOLATED


@pytest.mark.parametrize(("mode", "answer"), [("reachable", "0 m"), ("majority", "refused")])
def test_a_node_that_nobody_agrees_with_hands_nothing_out(
    mode: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may know nothing of what the others settled since."""
    monkeypatch.setattr(Node, "watch", lambda _: None)
    node = Node(0, mode, [("127.0.0.1", 1)] * 3)
    node.log, node.up = ["+m"], {0}
    try:
        got = ClientHandler.do(cast("ClientHandler", None), node, {}, "get", "", "0")
    except ConnectionError:
        got = "refused"
    assert got == answer


@pytest.mark.parametrize("mode", ["reachable", "majority"])
def test_a_node_that_is_busy_is_not_out_of_reach(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a busy machine is a partition, and the mistake of `reachable` shows without one."""
    monkeypatch.setattr(Node, "watch", lambda _: None)
    with Server(("127.0.0.1", 0), PeerHandler) as server:
        at = cast("tuple[str, int]", server.server_address)
        node, other = (Node(n, mode, [("127.0.0.1", 1), at]) for n in range(2))
        server.node = other  # type: ignore[attr-defined]
        node.up = {0, 1}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with ThreadPoolExecutor(1) as pool:
            with other.lock:
                assert not pool.submit(node.append, "+m").result(30)
            read, slow = PeerHandler.handle, threading.Event()
            monkeypatch.setattr(PeerHandler, "handle", lambda self: slow.wait(30) and read(self))
            asked = pool.submit(node.append, "+m")
            with pytest.raises(TimeoutError):
                asked.result(3 * REACHED)
            slow.set()
            assert asked.result(30)
        assert node.log == other.log == ["+m"]
        server.shutdown()


def test_a_majority_goes_on_beside_a_node_with_what_was_never_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A partition may begin between what a node takes and its answer."""
    monkeypatch.setattr(Node, "watch", lambda _: None)
    node = Node(0, "majority", [("127.0.0.1", 1)] * 3)
    node.log, node.up = ["+x"], {0, 1, 2}
    others = {1: ["+y"], 2: ["+x"]}

    def ask(n: int, request: dict[str, Any]) -> dict[str, Any]:
        return {"taken": request["log"][: len(others[n])] == others[n]}

    monkeypatch.setattr(node, "ask", ask)
    assert node.append("+z")
    others[2] = ["+x", "+z", "+w"]
    assert not node.append("+v")


# ---- the table


def test_a_case_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        chaos.main(["no-such-system"])
    assert caught.value.code == 2
    assert "no case 'no-such-system'; there are beanstalkd/memory/kill" in capsys.readouterr().err


def test_every_case_has_its_setting_and_its_row() -> None:
    page = (HERE.parents[1] / "spec" / "SYSTEMS.md").read_text(encoding="utf-8")
    for case in chaos.CASES:
        assert case.setting in servers.description_of(case.system).setting
        assert f"`make chaos CASE={case.id}`" in page
