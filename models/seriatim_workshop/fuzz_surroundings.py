"""Commands in odd surroundings, each a process of its own: nothing but declared ends, whole files, nobody left.

    python -m seriatim_workshop.fuzz_surroundings [--seconds S] [--seed N] [--case NUMBER]

A case is a command line and what whoever begins it leaves it: variables, limits, a mask, signals that are ignored, the
three standard streams, the current folder, and now and then SIGINT or SIGTERM at a drawn moment. Half of the commands
do their work (`WORKING`) and must come to their usual verdict or to exit code 2; the others are drawn
(`fuzz_commands`). What Python itself does not begin with is no case. A case is named by one number, which makes it
again.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from seriatim_workshop import fuzz_commands
from seriatim_workshop.fuzz import CORPUS, RECORDING, cases, fuzzer_options, seed_of
from seriatim_workshop.fuzz_kept import DRAFT

IN_TIME = 300
"""Seconds for one case, of which Spark takes half a minute beside other work."""
ENDING = 60
"""Seconds from a signal to the end."""
BEGIN = "import seriatim_models.start as s; s.main()"
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""The exit code that each has; as a shell sees it, also where the signal itself ends what is being loaded."""
MARK = "SERIATIM_DRAW"
"""A variable by which the processes of a case are known."""
_RECORDING = str(CORPUS / RECORDING)
WORKING: Mapping[str, Sequence[str]] = {
    "audit": ["audit", _RECORDING, "--json", "a.json", "--html", "a.html", "--junit", "a.xml"],
    "lint": ["lint", _RECORDING, "--json", "a.json"],
    "show": ["show", _RECORDING, "--timeline", "a.html"],
    "check": ["check", "two-takers", "--json", "a.json", "--html", "a.html"],
    "processes": ["check", "two-takers", "queue-again", "--jobs", "2", "--json", "a.json"],
    "mutant": ["show", "published-immediate", "--html", "a.html"],
    "generate": ["generate", "made", "--events", "1000"],
    "conform": ["conform", "--python", "queue:Queue", "--seconds", "1", "--seed", "1", "--out", "c"],
    "record": ["record", "--python", "queue:Queue", "--seconds", "1", "--out", "r.jsonl"],
    "matrix": ["matrix", "fair", "--depth", "0", "--jobs", "1", "--json", "a.json"],
    "vectors": ["vectors", "fill", "--folder", "v"],
    "demo": ["demo", "fair", "--total", "1000", "--svg", "a.svg"],
    "list": ["list", "programs"],
    "learn": ["learn", "1"],
    "explain": ["explain", "P1"],
}  # fmt: skip
"""Commands that do their work within seconds, with the files that they write."""
SPARK: Mapping[str, Sequence[str]] = {
    "audit on Spark": ["audit", _RECORDING, "--engine", "spark", "--out", "t", "--master", "local[1]"],
    "stream": ["stream", str(CORPUS), "--out", "t", "--once", "--master", "local[1]"],
    "campaign": ["campaign", "immediate", "--out", "t", "--seeds", "1", "--executions", "5", "--master", "local[1]"],
}  # fmt: skip
VARIABLES: Mapping[str, Sequence[str | None]] = {
    "PYTHONIOENCODING": ("ascii", "latin-1", "utf-16", "cp1252:strict", "ascii:ignore", "utf-8:surrogateescape"),
    "LANG": ("C", "POSIX", "xx_YY.nonsense", "tr_TR.UTF-8", "", "\udcff", "x" * 10_000),
    "LC_ALL": ("C", "POSIX", "xx_YY.nonsense", "tr_TR.UTF-8", "de_DE.ISO-8859-1", ""),
    "LANGUAGE": ("nonsense", "", "de"),
    "PYTHONUTF8": ("0", "1"),
    "TERM": (None, "dumb", "nonsense", "", "xterm-256color"),
    "COLUMNS": ("0", "1", "2", "-1", "9999", "nonsense", "", "80"),
    "LINES": ("0", "1", "nonsense"),
    "NO_COLOR": ("", "1"),
    "FORCE_COLOR": ("", "1", "nonsense"),
    "CLICOLOR_FORCE": ("1",),
    "TMPDIR": ("/nowhere", "/dev/null", "", "/proc", "relative", "x" * 5000, "/tmp/\udcff"),
    "HOME": (None, "/nowhere", "/dev/null", "", "relative", "x" * 5000, "\udcff"),
    "PATH": (None, "", "/nowhere", ".", "x" * 5000),
    "USER": (None, "", "\udcff"),
    "TZ": ("nonsense", "/etc/passwd", ":", "UTC+99", "x" * 5000),
    "PYTHONWARNINGS": ("error", "nonsense", "default"),
    "PYTHONDEVMODE": ("1",),
    "PYTHONINSPECT": ("1",),
    "PYTHONUNBUFFERED": ("1",),
    "PYTHONOPTIMIZE": ("1",),
    "PYTHONHASHSEED": ("0", "1"),
    "PYTHONNODEBUGRANGES": ("1",),
    "PYTHONTRACEMALLOC": ("1",),
    "PYTHONPYCACHEPREFIX": ("/nowhere", "/dev/null", "/proc"),
    "PYTHONASYNCIODEBUG": ("1",),
    "PYTHONBREAKPOINT": ("nonsense",),
    "OPENBLAS_NUM_THREADS": ("nonsense", "0", "-1", "999999"),
    "OMP_NUM_THREADS": ("nonsense", "0"),
    "ARROW_DEFAULT_MEMORY_POOL": ("nonsense",),
    "SERIATIM_BROWSER": ("nonsense",),
    "COMP_WORDS": ("seriatim \udcff",),
    "_SERIATIM_COMPLETE": ("bash_source", "nonsense", "", "zsh_complete"),
    "JAVA_HOME": ("/nowhere", ""),
    "SPARK_HOME": ("/nowhere",),
    "SPARK_LOCAL_DIRS": ("/nowhere", "/dev/null"),
    "JAVA_TOOL_OPTIONS": ("-Dx=y", "-nonsense"),
    "_JAVA_OPTIONS": ("-Xmx1k",),
    "SERIATIM_SPARK_MASTER": ("nonsense",),
}  # fmt: skip
LIMITS: Mapping[str, tuple[int, Sequence[int]]] = {
    "files": (resource.RLIMIT_NOFILE, (3, 4, 5, 8, 12, 20, 40, 64)),
    "memory": (resource.RLIMIT_AS, tuple(n * 2**20 for n in (32, 64, 128, 200, 300, 500, 800, 2000))),
    "data": (resource.RLIMIT_DATA, tuple(n * 2**20 for n in (32, 64, 128, 300))),
    "size": (resource.RLIMIT_FSIZE, (0, 1, 1000, 100_000)),
    "stack": (resource.RLIMIT_STACK, (2**17, 2**20, 2**26)),
    "core": (resource.RLIMIT_CORE, (0,)),
}  # fmt: skip
MASKS = (0o777, 0o277, 0o077, 0)
IGNORED = ("SIGCHLD", "SIGPIPE", "SIGINT", "SIGTERM", "SIGHUP", "SIGXFSZ", "SIGALRM", "SIGUSR1")
PIPE = "pipe"
"""Read to its end by whoever began the command."""


class ProcessSurroundings(NamedTuple):
    """What a command finds that is not its own."""

    variables: Mapping[str, str | None]
    limits: Mapping[str, int]
    mask: int | None
    ignored: Sequence[str]
    streams: Mapping[int, str]
    folder: str
    ended: tuple[signal.Signals, float] | None
    """A signal that comes, and after how many seconds."""

    def __str__(self) -> str:
        variables = {
            name: value if len(str(value)) < 40 else f"{str(value)[:40]}..."
            for name, value in self.variables.items()
        }
        parts = [variables, self.limits, self.mask and oct(self.mask), self.ignored, self.streams]
        return ", ".join(str(part) for part in [*parts, self.folder, self.ended] if part)


def _given(path: str, flags: int) -> Callable[[int], object]:
    def put(number: int) -> None:
        os.dup2(os.open(path, flags), number)

    return put


def _broken(number: int) -> None:
    """A pipe whose other end is closed."""
    ends = os.pipe()
    os.dup2(ends[number != 0], number)
    os.close(ends[0])
    os.close(ends[1])


STREAMS: Mapping[str, Callable[[int], object]] = {
    "closed": os.close,
    "broken": _broken,
    "null": _given(os.devnull, os.O_RDWR),
    "full": _given("/dev/full", os.O_RDWR),
    "for reading": _given(os.devnull, os.O_RDONLY),
    "for writing": _given(os.devnull, os.O_WRONLY),
}


def _deleted(here: Path) -> None:
    gone = here / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


def _deep(here: Path) -> None:
    """A folder whose path is as long as may be named, and no file in it can be named from elsewhere."""
    os.chdir(here)
    room = 4090 - len(str(here))
    while room > 1:
        os.mkdir("x" * min(200, room - 1))
        os.chdir("x" * min(200, room - 1))
        room -= min(200, room - 1) + 1


def _read_only(here: Path) -> None:
    os.chdir(here)
    here.chmod(0o555)


FOLDERS: Mapping[str, Callable[[Path], object]] = {
    "here": os.chdir,
    "deleted": _deleted,
    "deep": _deep,
    "read-only": _read_only,
    "/proc": lambda _here: os.chdir("/proc"),
}


def drawn(choose: random.Random, longest: float) -> ProcessSurroundings:
    """Draw what a command finds: a few things of many, and a signal within so many seconds."""
    few = (0, 0, 1, 1, 2, 3)
    names = choose.sample(list(VARIABLES), choose.choice(few))
    limits = choose.sample(list(LIMITS), choose.choice((0, 0, 0, 1, 1, 2)))
    streams = {n: choose.choice((PIPE, PIPE, PIPE, *STREAMS)) for n in range(3)}
    ended = choose.choice((None, None, None, *SIGNALS))
    return ProcessSurroundings(
        {name: choose.choice(VARIABLES[name]) for name in names},
        {name: choose.choice(LIMITS[name][1]) for name in limits},
        choose.choice((None, None, None, *MASKS)),
        choose.sample(IGNORED, choose.choice((0, 0, 0, 1, 2))),
        {n: how for n, how in streams.items() if how != PIPE},
        choose.choice(("here", "here", "here", *FOLDERS)),
        None if ended is None else (ended, choose.uniform(0.05, longest)),
    )


def begun(
    command: Sequence[str], found: ProcessSurroundings, here: Path, mark: str
) -> subprocess.Popen[bytes]:
    """Start a command in what it finds, with all three streams as pipes but for those that are something else."""
    variables = {**os.environ, MARK: mark, **found.variables}

    def prepare() -> None:
        FOLDERS[found.folder](here)
        for usual in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(usual, signal.SIG_DFL)
        for name in found.ignored:
            signal.signal(signal.Signals[name], signal.SIG_IGN)
        if found.mask is not None:
            os.umask(found.mask)
        for number, how in found.streams.items():
            STREAMS[how](number)
        for name, most in found.limits.items():
            resource.setrlimit(LIMITS[name][0], (most, most))

    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in variables.items() if value is not None},
        restore_signals=False,
        preexec_fn=prepare,
    )


def of_draw(mark: str) -> list[int]:
    """The processes that have the mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def left_of(mark: str, seconds: float) -> list[bytes]:
    """The commands of the processes that have the mark and are not gone after so many seconds."""
    until = time.monotonic() + seconds
    while (left := of_draw(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    said = []
    for pid in left:
        with contextlib.suppress(OSError):
            said.append(Path(f"/proc/{pid}/cmdline").read_bytes())
    return said


def files_of(folder: Path) -> list[Path]:
    """All that is in a folder, as far as its paths can be named."""
    paths = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return [Path(path) for path in paths if os.path.lexists(path)]


def half_files(folder: Path) -> list[str]:
    """What is wrong with the files: a name that is no draft's stands for a whole file."""
    wrong = []
    for path in files_of(folder):
        if path.name.startswith(".") or path.name in fuzz_commands.FILES or not path.is_file():
            continue
        if path.suffix not in (".html", ".json"):
            continue
        text = path.read_bytes()
        if path.suffix == ".html" and not text.rstrip().endswith(b"</html>"):
            wrong.append(f"{path.name} is half a page")
        if path.suffix == ".json":
            try:
                json.loads(text)
            except ValueError as error:
                wrong.append(f"{path.name}: {error}")
    return wrong


class ProcessEnd(NamedTuple):
    """How a process ended: its code as a shell sees it, what it said, and whether that was in time."""

    code: int
    said: str
    errors: str
    in_time: bool


def ended(
    command: Sequence[str], found: ProcessSurroundings, here: Path, mark: str, within: float
) -> ProcessEnd:
    """Run a command to its end, with the signal that comes."""
    with begun(command, found, here, mark) as process:
        in_time = True
        try:
            if found.ended:
                number, after = found.ended
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.communicate(b"", timeout=after)
                if process.returncode is None:
                    process.send_signal(number)
                    if number.name not in found.ignored:
                        within = ENDING
            said, errors = process.communicate(b"", timeout=within)
        except subprocess.TimeoutExpired:
            in_time = False
            process.kill()
            said, errors = process.communicate()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return ProcessEnd(
        code, said.decode("utf-8", "replace"), errors.decode("utf-8", "replace"), in_time
    )


def fault(process: ProcessEnd, found: ProcessSurroundings, usual: int | None) -> str:
    """What is wrong with how a command ended that has a usual exit code; empty if nothing is."""
    if not process.in_time:
        return f"did not end: {process.errors[-2000:]}"
    signals = {SIGNALS[found.ended[0]]} if found.ended else set[int]()
    declared = {0, 1, 2, 3} if usual is None else {usual, 2}
    if process.code not in declared | signals:
        return f"exit code {process.code}: {process.errors[-2000:]}"
    if "Traceback" in process.errors + process.said:
        return f"a traceback: {(process.said + process.errors)[-2000:]}"
    heard = 2 not in found.streams and {"size", "files", "memory", "data"}.isdisjoint(found.limits)
    sentence = "seriatim: " in process.errors or process.errors.startswith("[")
    if process.code == 2 and heard and 1 not in found.streams and not sentence:
        return f"exit code 2 without a sentence: {process.errors[-2000:]}"
    return ""


def begins(found: ProcessSurroundings, folder: Path) -> bool:
    """Whether Python itself begins in such surroundings, with the modules that any program has."""
    here = folder / "begins"
    here.mkdir()
    without = found._replace(ended=None)
    script = "import random, threading, subprocess, os; os._exit(0)"
    return ended([sys.executable, "-c", script], without, here, "begins", 60).code == 0


def chosen(choose: random.Random, folder: Path) -> tuple[str, list[str]]:
    """A command line and, of one that works, its name."""
    draw = choose.random()
    if draw < 0.5:
        name = choose.choice(list(WORKING))
        return name, list(WORKING[name])
    if draw < 0.55:
        name = choose.choice(list(SPARK))
        return name, list(SPARK[name])
    made = sorted(os.listdir(folder))
    some = fuzz_commands.OF_ITS_OWN if draw < 0.6 else fuzz_commands.COMMANDS
    return "", fuzz_commands.command_line(choose, made, some)


def tried(number: int, usual: dict[str, int]) -> str:
    """What is wrong with how the command of a case ends; empty if nothing is.

    `usual` holds the exit codes of those that work, and is filled as they are needed.
    """
    choose = random.Random(number)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        here = folder / "here"
        here.mkdir()
        fuzz_commands.made_files(here)
        what, line = chosen(choose, here)
        command = [sys.executable, "-c", BEGIN, *line]
        found = drawn(choose, 30 if what in SPARK else 4)
        if what and what not in usual:
            plain = ProcessSurroundings({}, {}, None, (), {}, "here", None)
            (folder / "usual").mkdir()
            usual[what] = ended(command, plain, folder / "usual", "usual", IN_TIME).code
        mark = f"{os.getpid()}-{number:012x}"
        try:
            process = ended(command, found, here, mark, IN_TIME)
        except (subprocess.SubprocessError, ValueError):
            return ""  # no process begins with it, as with a NUL in a word
        why = fault(process, found, usual.get(what)) or "; ".join(half_files(here))
        if left := left_of(f"{MARK}={mark}", 10):
            why = f"{why} is left: {left}"
        if drafts := [path.name for path in files_of(here) if path.match(DRAFT)]:
            why = f"{why} drafts are left: {drafts}"
        if why and not begins(found, folder):
            return ""
    shown = " ".join(word[:80] for word in line)
    return f"{shown} in {found}: {why}" if why else ""


def fuzz(seconds: float, seed: int, most: int | None = None) -> list[str]:
    """Try cases for so long, or so many of them; the faults in words."""
    faults = []
    count = 0
    usual: dict[str, int] = {}
    until = time.monotonic() + seconds
    for number in cases(seed):
        if time.monotonic() > until or count == most:
            break
        count += 1
        if why := tried(number, usual):
            faults.append(f"case {number:012x}: {why}")
            print(faults[-1], file=sys.stderr, flush=True)
    print(f"{count} cases from seed {seed}, {len(faults)} faults", file=sys.stderr)
    return faults


def main() -> None:
    """Fuzz from the command line; exit code 1 if anything failed."""
    parser = fuzzer_options(__doc__)
    parser.add_argument("--case", type=lambda text: int(text, 16), help="try this one only")
    given = parser.parse_args()
    if given.case is not None:
        why = tried(given.case, {})
        print(why)
        sys.exit(bool(why))
    sys.exit(bool(fuzz(given.seconds, seed_of(given.seed))))


if __name__ == "__main__":
    main()
