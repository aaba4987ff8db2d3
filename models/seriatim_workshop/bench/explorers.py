"""Explorers of schedules: how each is had, and how it is asked to explore one program.

Each answers in its own process, so that none inherits the heap or the threads of another.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from seriatim_workshop.bench.programs import MISTAKES, SPEED

HERE = Path(__file__).parent / "peers"
PLACE = Path("build/peers")
GRACE = 30.0
"""Seconds that a peer may take beyond what it was given, to start and to end."""


class Absent(Exception):
    """A peer cannot be run here; the message gives the reason."""


class ExplorerOutcome(msgspec.Struct):
    """What one exploration came to.

    `executions` of one exploration; `speed`, executions a second; `seconds` to its end, None if it did not end.
    `verdict`: ok, violated, unfinished (the time was over) or refused, with a reason after a colon.
    """

    executions: int
    speed: float
    seconds: float | None
    verdict: str


class Participant(Protocol):
    """Anyone who is measured: an explorer or a checker."""

    @property
    def name(self) -> str:
        """The name in the tables."""

    def prepare(self) -> str:
        """Install what is missing, and return the version. Raises `Absent`."""


class Explorer(Participant, Protocol):
    """One explorer of schedules, ours or a peer's."""

    @property
    def unit(self) -> str:
        """What it counts: executions, or states."""

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        """Explore one program for so long at most. Raises `Absent`."""


def prepared(
    participants: Sequence[Participant], report: Callable[[str], None]
) -> tuple[dict[str, str], dict[str, str]]:
    """Prepare each; returns the versions of those that can be run and the reasons of those that are skipped."""
    versions: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for each in participants:
        report(f"preparing {each.name}")
        try:
            versions[each.name] = each.prepare()
        except Absent as why:
            skipped[each.name] = str(why)
    return versions, skipped


def run(command: Sequence[str | Path], *, seconds: float, cwd: Path | None = None) -> str:
    """What it prints. Raises `Absent` with its last words if it fails or takes longer."""
    try:
        done = subprocess.run(
            [str(c) for c in command],
            capture_output=True,
            text=True,
            timeout=seconds,
            cwd=cwd,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Absent(f"{command[0]} took more than {seconds:.0f} s") from late
    except OSError as error:
        raise Absent(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Absent(f"{Path(command[0]).name} failed: {output[-1] if output else done.returncode}")
    return done.stdout


def outcome(output: str) -> ExplorerOutcome:
    """The last line that a side prints."""
    lines = output.strip().splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=ExplorerOutcome)
    except (IndexError, msgspec.MsgspecError) as error:
        raise Absent(f"printed something that cannot be read: {lines[-1:]}") from error


def need(*tools: str) -> None:
    """Raises `Absent` if one is not installed."""
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        raise Absent(f"{' and '.join(missing)} not installed")


@dataclass(frozen=True)
class Ours:
    """The explorer of this project, started in a process of its own."""

    name: str = "seriatim"
    unit: str = "executions"

    def prepare(self) -> str:
        from importlib.metadata import version

        return version("seriatim")

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        command = [sys.executable, "-m", "seriatim_workshop.bench.explorers", program, str(seconds)]
        return outcome(run(command, seconds=seconds + GRACE))


@dataclass(frozen=True)
class OursOfPlainPython(Ours):
    """The explorer of this project, of the plain Python that the peers of Python run."""

    name: str = "seriatim, plain Python"

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        script = str(HERE / "python" / "side.py")
        command = [sys.executable, script, "seriatim", program, str(seconds)]
        return outcome(run(command, seconds=3 * seconds + GRACE))


@dataclass(frozen=True)
class PythonPeer:
    """Another explorer of Python, in an environment of its own."""

    name: str
    version: str
    oldest: tuple[int, int]
    """The oldest Python that it runs on."""
    wrapped: bool = False
    """Whether a script must be started by its own command."""
    unit: str = "executions"

    @property
    def home(self) -> Path:
        """The folder of its environment."""
        return PLACE.absolute() / f"{self.name}-{self.version}"

    def prepare(self) -> str:
        python = self.home / "bin" / "python"
        if not (self.home / "installed").exists():
            run([interpreter(self.oldest), "-m", "venv", "--clear", self.home], seconds=120)
            run([python, "-m", "pip", "install", "-q", f"{self.name}=={self.version}"], seconds=300)
            (self.home / "installed").touch()
        output = run(
            [python, "-c", "import platform; print(platform.python_version())"], seconds=60
        )
        return f"{self.version}, Python {output.strip()}"

    def command(self) -> list[str]:
        """How a script is started in its environment."""
        first = [self.name] if self.wrapped else []
        return [str(self.home / "bin" / name) for name in (*first, "python")]

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        script = [str(HERE / "python" / "side.py"), self.name, program, str(seconds)]
        return outcome(run([*self.command(), *script], seconds=3 * seconds + GRACE))


def interpreter(oldest: tuple[int, int]) -> str:
    """A Python that is not older. Raises `Absent` if there is none."""
    names = [found for n in range(9, 20) if (found := shutil.which(f"python3.{n}"))]
    names += filter(None, [shutil.which("python3")])
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    names += map(str, sorted(pyenv.glob("3.*/bin/python")))
    test = f"import sys, venv; sys.exit(sys.version_info < {oldest})"
    for name in names:
        if subprocess.run([name, "-c", test], capture_output=True, check=False).returncode == 0:
            return name
    raise Absent(f"needs Python {oldest[0]}.{oldest[1]} or newer, and there is none here")


@dataclass(frozen=True)
class RustPeer:
    """loom or shuttle, both in one program that cargo builds."""

    name: str
    crate: str
    unit: str = "executions"

    def prepare(self) -> str:
        version = re.search(rf'{self.crate} = "=([^"]+)"', (HERE / "rust/Cargo.toml").read_text())
        binary = rust_side()
        assert version is not None, "Cargo.toml pins both"
        compiler = run(["rustc", "--version"], seconds=30).split()[1]
        return f"{version[1]}, rustc {compiler}" if binary else ""

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        return outcome(
            run([rust_side(), self.name, program, str(seconds)], seconds=seconds + GRACE)
        )


@functools.cache
def rust_side() -> Path:
    """The compiled program of the Rust peers. Raises `Absent`."""
    need("cargo", "rustc")
    home = PLACE.absolute() / "rust"
    copy(HERE / "rust", home)
    run(["cargo", "build", "--release", "--quiet"], seconds=600, cwd=home)
    return home / "target" / "release" / "explorers"


def copy(source: Path, home: Path) -> None:
    """Sources into a place where building may write."""
    shutil.copytree(source, home, dirs_exist_ok=True)


@dataclass(frozen=True)
class JvmPeer:
    """Lincheck's search of arbitrary code, by its defaults."""

    name: str = "Lincheck"
    unit: str = "executions"

    @property
    def home(self) -> Path:
        """The folder in which it is built."""
        return PLACE.absolute() / "jvm"

    def prepare(self) -> str:
        need("java", "mvn")
        copy(HERE / "jvm", self.home)
        run(
            ["mvn", "-q", "-B", "package", "dependency:copy-dependencies"],
            seconds=600,
            cwd=self.home,
        )
        version = re.search(
            r"<version>([\d.]+)</version>\s*</dependency>", (HERE / "jvm/pom.xml").read_text()
        )
        assert version is not None, "pom.xml pins it"
        java = run(["java", "--version"], seconds=30).split()[1]
        return f"{version[1]}, Java {java}"

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        opened = [
            "-XX:+EnableDynamicAgentLoading",
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
            "--add-exports=java.base/jdk.internal.util=ALL-UNNAMED",
            "--add-exports=java.base/sun.security.action=ALL-UNNAMED",
        ]
        path = f"{self.home / 'target/classes'}:{self.home / 'target/dependency'}/*"
        command = ["java", *opened, "-cp", path, "Side", program, str(seconds)]
        return outcome(run(command, seconds=3 * seconds + GRACE))


SPIN: dict[str, list[str]] = {
    "racy counter, 2 threads": ["-DRACY_COUNTER=2"],
    "racy counter, 3 threads": ["-DRACY_COUNTER=3"],
    "racy counter, 4 threads": ["-DRACY_COUNTER=4"],
    "lastzero(5)": ["-DLASTZERO=5"],
    "Michael-Scott, 2 enqueuers, 1 dequeuer": ["-DMICHAEL_SCOTT"],
    "condition buffer, 3 items": ["-DBUFFER=3"],
    "lost update": ["-DLOST_UPDATE"],
    "lost wake-up": ["-DLOST_WAKEUP"],
    "stolen wake-up": ["-DSTOLEN_WAKEUP"],
    "notify for notify_all": ["-DBUFFER=1", "-DPAIRS=2"],
    "ABA": ["-DABA"],
    "immediate race": ["-DIMMEDIATE_RACE"],
    "double dispose": ["-DDOUBLE_DISPOSE"],
    "lock order": ["-DLOCK_ORDER"],
    "torn read": ["-DTORN_READ"],
    "Peterson turned round": ["-DPETERSON_TURNED"],
    "unsafe publication": ["-DUNSAFE_PUBLICATION"],
    "late counter": ["-DLATE_COUNTER"],
}


@dataclass(frozen=True)
class Spin:
    """Spin on the same programs in Promela, with its partial order reduction; translating is not timed."""

    name: str = "Spin"
    unit: str = "states"

    def prepare(self) -> str:
        need("spin", "gcc")
        return run(["spin", "-V"], seconds=10).strip().removeprefix("Spin Version ")

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        home = PLACE.absolute() / "spin" / re.sub(r"\W+", "-", program)
        copy(HERE / "promela", home)
        run(["spin", *SPIN[program], "-a", "programs.pml"], seconds=30, cwd=home)
        run(["gcc", "-O2", "-w", "-DSAFETY", "-o", "pan", "pan.c"], seconds=60, cwd=home)
        times: list[float] = []
        output, begun = "", time.perf_counter()
        while not times or time.perf_counter() - begun < seconds / 2:
            start = time.perf_counter()
            output = run(["./pan", "-m100000"], seconds=seconds + GRACE, cwd=home)
            times.append(time.perf_counter() - start)
        states = re.search(r"^\s*([\d.e+]+) states, stored", output, re.MULTILINE)
        wrong = re.search(r"pan:1: (.+)", output)
        if states is None:
            raise Absent("the search did not end well")
        count = int(float(states[1]))
        verdict = f"violated: {wrong[1]}" if wrong else "ok"
        return ExplorerOutcome(count, count / min(times), min(times), verdict)


EXPLORERS: tuple[Explorer, ...] = (
    Ours(),
    OursOfPlainPython(),
    PythonPeer("frontrun", "0.7.0", (3, 10), wrapped=True),
    PythonPeer("interleave-test", "0.1.0", (3, 12)),
    RustPeer("loom", "loom"),
    RustPeer("shuttle", "shuttle"),
    RustPeer("shuttle-random", "shuttle"),
    JvmPeer(),
    Spin(),
)


def explore_here(program: str, seconds: float) -> ExplorerOutcome:
    """Our own exploration, in this process: again and again until the time is over; a mistake, once."""
    from seriatim_models.explorer import explore

    mistaken = program in MISTAKES
    executions = 0
    times: list[float] = []
    begun = time.perf_counter()
    explore(SPEED["racy counter, 2 threads"])  # the first one warms up
    while True:
        start = time.perf_counter()
        result = explore((MISTAKES | SPEED)[program], seconds=seconds)
        times.append(time.perf_counter() - start)
        executions += result.executions
        if mistaken or time.perf_counter() - begun > seconds / 2:
            break
    verdict = f"violated: {result.why}" if result.verdict == "violated" else result.verdict
    ended = result.exhausted or result.verdict == "violated"
    return ExplorerOutcome(
        result.executions,
        executions / sum(times),
        min(times) if ended else None,
        "unfinished" if verdict == "inconclusive" else verdict,
    )


if __name__ == "__main__":
    print(msgspec.json.encode(explore_here(sys.argv[1], float(sys.argv[2]))).decode())
