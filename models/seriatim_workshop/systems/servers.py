"""Servers started for one run: own port on the loopback, own folder, and gone afterwards whatever happens.

What is missing is installed if that can be done without a question: by root on Debian. Else `NotHere` names what is
missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from seriatim_models.conformance.child import MARK, reap

STARTING = 90.0
"""Seconds until a server must listen."""
INSTALLING = 600.0
"""Seconds that an installation may take."""
CACHE = Path("build/conform/installed")
LOG_SHOWN = 500  # characters of a server's log that say why it did not start


class NotHere(Exception):
    """The system cannot be run on this machine; the message gives the reason."""


@contextmanager
def rabbitmq() -> Iterator[str]:
    """RabbitMQ as Debian packs it: the URL of a node of its own."""
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    needed("rabbitmq-server", server)
    with folder("rabbitmq") as home:
        port, distribution, names = free_port(), free_port(), free_port()
        environment = {
            "HOME": str(home),
            "RABBITMQ_NODENAME": f"conform-{port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(home / "none"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "none-either"),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        with running([str(server)], home, port, environment):
            yield f"amqp://guest:guest@127.0.0.1:{port}/"


@contextmanager
def brokerj() -> Iterator[str]:
    """Apache Qpid Broker-J from Maven Central: the URL of a broker in a process of its own."""
    classes = jars("brokerj", "qpid-broker-core")
    here = resources.files(__package__)
    with (
        folder("brokerj") as home,
        resources.as_file(here / "brokerj.java") as source,
        resources.as_file(here / "brokerj.json") as configuration,
    ):
        port = free_port()
        command = [*java(classes), str(source), str(configuration)]
        with running([*command, str(port), str(home)], home, port):
            yield f"amqp://guest:guest@127.0.0.1:{port}/"


@contextmanager
def artemis() -> Iterator[str]:
    """Apache ActiveMQ Artemis from Maven Central: host, the port of STOMP, and that of its counts."""
    classes = jars("artemis", "artemis-server")
    with (
        folder("artemis") as home,
        resources.as_file(resources.files(__package__) / "artemis.java") as source,
    ):
        port, http = free_port(), free_port()
        command = [*java(classes), str(source), str(port), str(http), str(home)]
        with running(command, home, http):
            yield f"127.0.0.1:{port}:{http}"


@contextmanager
def elasticmq() -> Iterator[str]:
    """ElasticMQ from Maven Central: host and port."""
    classes = jars("elasticmq", "elasticmq-rest-sqs")
    with (
        folder("elasticmq") as home,
        resources.as_file(resources.files(__package__) / "elasticmq.java") as source,
    ):
        port = free_port()
        with running([*java(classes), str(source), str(port)], home, port):
            yield f"127.0.0.1:{port}"


KAFKA = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={home}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
"""


@contextmanager
def kafka() -> Iterator[str]:
    """Apache Kafka from Maven Central, broker and controller in one process (KRaft): host and port."""
    classes = jars("kafka", "kafka_2")
    with folder("kafka") as home:
        port, controller = free_port(), free_port()
        settings = home / "server.properties"
        settings.write_text(KAFKA.format(port=port, controller=controller, home=home), "utf-8")
        cluster = "c2VyaWF0aW1fY29uZm9ybQ"  # an id is 16 bytes in base 64
        format = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        install([*java(classes), *format])
        with running([*java(classes), "kafka.Kafka", str(settings)], home, port):
            yield f"127.0.0.1:{port}"


NSQ = "v1.3.0"


@contextmanager
def nsq() -> Iterator[str]:
    """nsqd, built from its Go module: host, the port of its protocol, and that of HTTP.

    Its own program cannot be built from outside its module, which replaces one that it requires.
    """
    built = (CACHE / "go" / "nsqd").absolute()
    if not built.exists():
        needed("golang-go", "go")
        with folder("nsqd-source") as source:
            text = (resources.files(__package__) / "nsqd.go").read_text(encoding="utf-8")
            (source / "main.go").write_text(text, encoding="utf-8")
            for step in (
                ["mod", "init", "nsqd"],
                ["get", f"github.com/nsqio/nsq@{NSQ}"],
                ["get", f"github.com/nsqio/nsq/nsqd@{NSQ}"],
                ["build", "-o", str(built), "."],
            ):
                install(["go", "-C", str(source), *step])
    port, http = free_port(), free_port()
    with folder("nsq") as home, running([str(built), str(port), str(http), str(home)], home, port):
        yield f"127.0.0.1:{port}:{http}"


@contextmanager
def beanstalkd() -> Iterator[str]:
    """beanstalkd: host and port."""
    needed("beanstalkd", "beanstalkd")
    port = free_port()
    with (
        folder("beanstalkd") as home,
        running(["beanstalkd", "-l", "127.0.0.1", "-p", str(port)], home, port),
    ):
        yield f"127.0.0.1:{port}"


@contextmanager
def redis() -> Iterator[str]:
    """Redis, keeping nothing: host and port."""
    needed("redis-server", "redis-server")
    port = free_port()
    options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    with (
        folder("redis") as home,
        running(["redis-server", *options, "--dir", str(home)], home, port),
    ):
        yield f"127.0.0.1:{port}"


@contextmanager
def nats() -> Iterator[str]:
    """NATS with JetStream: host and port."""
    found = shutil.which("nats-server") or str(CACHE / "go" / "nats-server")
    if not Path(found).exists():
        try:
            needed("nats-server", "nats-server")
            found = "nats-server"
        except NotHere:
            if shutil.which("go") is None:
                raise
            where = {"GOBIN": str((CACHE / "go").absolute())}
            install(["go", "install", "github.com/nats-io/nats-server/v2@latest"], where)
    port = free_port()
    with folder("nats") as home:
        command = [found, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(home)]
        with running(command, home, port):
            yield f"127.0.0.1:{port}"


@contextmanager
def postgresql() -> Iterator[str]:
    """PostgreSQL with a cluster of its own: host and port. It does not run as root."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        needed("postgresql", "initdb")
    programs = found[-1].parent
    port = free_port()
    with folder("postgresql") as home:
        as_nobody = []
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
            as_nobody = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = str(home / "data")
        initdb = [str(programs / "initdb"), "-D", data, "-U", "seriatim", "-A", "trust", "-N"]
        install([*as_nobody, *initdb])
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={home}"]
        server = [str(programs / "postgres"), "-D", data, "-p", str(port), "-F", *options]
        with running([*as_nobody, *server], home, port):
            yield f"127.0.0.1:{port}"


@contextmanager
def nothing() -> Iterator[str]:
    """What lives in the process that tests it needs no server."""
    yield ""


# ---- what they have in common


def needed(package: str, program: str | Path) -> None:
    """See that a program is there, installing its Debian package if that can be done."""
    if shutil.which(str(program)):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise NotHere(f"{program} is not installed (Debian: apt-get install {package})")
    # As if in single-user mode, so that the package does not start a service of its own.
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    try:
        install(apt, quiet)
    except NotHere:
        install(["apt-get", "update", "-qq"], quiet)
        install(apt, quiet)
    if not shutil.which(str(program)):
        raise NotHere(f"{package} is installed and has no {program}")


def jars(name: str, chief: str) -> Path:
    """The folder with the classes of ``NAME.xml`` and all that they need; from Maven Central without `chief`."""
    needed("default-jdk-headless", "javac")
    needed("maven", "mvn")
    found = (CACHE / name).absolute()
    if not list(found.glob(f"{chief}*.jar")):
        with resources.as_file(resources.files(__package__) / f"{name}.xml") as pom:
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={found}"]
            install(["mvn", "-q", "-B", "-f", str(pom), *goal])
    return found


def java(classes: Path) -> list[str]:
    """The command that runs a class, or a source file, with the classes of a folder."""
    return ["java", "-Xmx512m", "-cp", f"{classes}/*"]


def install(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    """Raises `NotHere` with the last line that the command printed."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INSTALLING,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHere(f"{command[0]}: {error}") from None
    if done.returncode:
        output = done.stdout.decode("utf-8", "replace").strip().splitlines() or [
            "it output nothing"
        ]
        raise NotHere(f"{' '.join(command[:3])} failed: {output[-1]}")


def free_port() -> int:
    """A port of the loopback that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(
        prefix=f"seriatim-{name}-", ignore_cleanup_errors=True
    ) as made:
        yield Path(made)


@contextmanager
def running(
    command: list[str], home: Path, port: int, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server from the moment it listens; afterwards it and all that it started are gone."""
    mark = f"server-{os.getpid()}-{port}"
    log = home / "seriatim.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=home,
            env={**os.environ, **(environment or {}), MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _listening(process, command, port, log)
            yield
        finally:
            reap(process, mark)


def _listening(process: subprocess.Popen[bytes], command: list[str], port: int, log: Path) -> None:
    until = time.monotonic() + STARTING
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        ended = process.poll() is not None
        if ended or time.monotonic() > until:
            output = log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_SHOWN:]
            how = (
                f"ended with exit code {process.returncode}"
                if ended
                else f"does not listen after {STARTING:g} s"
            )
            raise NotHere(
                f"{Path(command[0]).name} {how}: {output.splitlines()[-1] if output else 'it printed nothing'}"
            )
        time.sleep(0.1)
