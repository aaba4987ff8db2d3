"""Command lines of the fuzz target: any option of any command that ends soon, with values of other kinds.

A command line has a command, its arguments and some of its options, each with a number, a word or the name of a file
that is odd for most of them. What would search or drive for long is bounded by what is appended.
"""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import rich_click as click

from seriatim_models.cli import app

BOUNDED: dict[str, tuple[str, ...]] = {
    "audit": (), "lint": (), "show": (), "list": (), "explain": (), "help": (), "learn": (),
    "generate": ("--events", "10", "--each", "1"),
    "check": ("immediate", "--budget", "1", "--jobs", "1"),
    "conform": ("--seconds", "1"),
    "record": ("--seconds", "1"),
    "matrix": ("--depth", "0", "--jobs", "1", "--budget", "1"),
    "demo": ("--total", "1000"),
    "vectors": (),
}  # fmt: skip
"""The commands, and what bounds each: of an option that stands twice the last counts."""
_SPARK = ("--master", "local[1]")
BOUNDED_OF_ITS_OWN: dict[str, tuple[str, ...]] = {
    "bugs": (),
    "campaign": ("--seeds", "1", "--executions", "5", "--timeout", "30", *_SPARK),
    "stream": ("--once", *_SPARK),
    "tour": ("--no-mutants", "--budget", "0.01", "--engine", "local"),
}
"""Those that start Java or take half a minute: drawn where each command is a process (`fuzz_surroundings`)."""
LONG = frozenset({"--jobs", "--browser", "--listen", "--master", "spark"})
"""Words that start processes, or wait for somebody."""
NUMBERS = (
    "0", "-1", "1", "nan", "inf", "-inf", "1e999", "9" * 5000, "1_000", "\u0663", "0x10", "", "1e-300", "2**3",
    "18446744073709551616", "-0", "+1", " 1", "1.5",
)  # fmt: skip
WORDS = (
    "", "x", "two-takers", "P1", "ES-2", "any", "rabbit-classic", "queue:Queue", "queue:nothing", ":", "a:b:c",
    "__class__", "programs", "sr1.5c7c395b.n1-0.cgEIAR8BUg.550f", "\x1b[2J", "x" * 10_000, "/bin/true", "cat",
    "sh -c 'exec >&-'", "'", "sys:exit", "--", "-", "a\0b", "\udc80",
)  # fmt: skip
EVENT = b'{"i":0,"ev":"publish","m":"a","q":"q"}'
FILES: dict[str, bytes] = {
    "empty.jsonl": b"",
    "picture.jsonl": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "archive.jsonl": b"PK\x03\x04" + bytes(100),
    "mark.jsonl": b"\xef\xbb\xbf",
    "lines.jsonl": (EVENT + b"\r\n") * 3,
    "nul.jsonl": EVENT.replace(b"sh", b"\0"),
    "twice.jsonl": b'{"i":0,"i":1,"ev":"publish","ev":"ack","m":"a"}\n',
    "digits.jsonl": b'{"i":%b,"ev":"publish","t":1e999,"args":{"__class__":{"__init__":1}}}\n'
    % (b"9" * 5000),
    "half.jsonl": EVENT.replace(b'"a"', b'"\\ud800"'),
    "zeros.jsonl.gz": gzip.compress(bytes(2**22), mtime=0),
    "deep.json": b"[" * 5000,
    "none.json": b'{"a":NaN,"b":Infinity}',
    "verdicts.json": b'{"schema":"seriatim-verdicts/1","command":"x","exit_code":0,"results":[]}',
    "sound.jsonl": EVENT + b"\n",
    "short.toml": b'id="x"\n',
    "twice.toml": b"a=1\na=2\n",
    "cut.parquet": b"PAR1" + bytes(50) + b"PAR1",
    "log.edn": b"{:type :invoke",
    "raises.py": b"raise ValueError('no')\n",
    "exits.py": b"raise SystemExit(1)\n",
    "wrong.py": b"def (:\n",
    "endless.py": b"def f(): f()\nf()\n",
    "two\nlines.jsonl": EVENT + b"\n",
    "\x1b[2J\u202e.jsonl": EVENT + b"\n",
    "half \udcff.jsonl": EVENT + b"\n",
    "-v": EVENT + b"\n",
    "x" * 249 + ".jsonl": EVENT + b"\n",
}


def made_files(folder: Path) -> list[str]:
    """Write the odd files; their names, and others that are no files."""
    for name, raw in FILES.items():
        (folder / name).write_bytes(raw)
    with (folder / "sparse.jsonl").open("wb") as file:
        file.truncate(2**27)
    (folder / "loop").symlink_to("loop")
    (folder / "within").mkdir()
    return [
        *sorted(path.name for path in folder.iterdir()),
        "nothing", ".", "/dev/null", "/dev/full", "sound.jsonl/x", "*", "~", "@sound.jsonl",
        "./" * 2100 + "sound.jsonl",
    ]  # fmt: skip


Leaf = tuple[tuple[str, ...], click.Command]
"""A command that has no commands of its own, and the words before its options."""


def _leaves(command: click.Command, before: tuple[str, ...] = ()) -> Iterator[Leaf]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _leaves(inner, (*before, name))
    else:
        yield before, command


COMMANDS = [(words, command) for words, command in _leaves(app) if words[0] in BOUNDED]
OF_ITS_OWN = [(words, command) for words, command in _leaves(app) if words[0] in BOUNDED_OF_ITS_OWN]


def command_line(
    choose: random.Random, files: list[str], commands: Sequence[Leaf] = COMMANDS
) -> list[str]:
    """One command line, of one of these commands, which works in the current folder only."""

    def value() -> str:
        return choose.choice(choose.choice((NUMBERS, WORDS, files, files)))

    while True:
        words, command = choose.choice(commands)
        line = list(words)
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                line += [value() for _ in range(choose.choice((0, 1, 1, 1, 2)))]
        options = [p for p in command.params if isinstance(p, click.Option)]
        for option in choose.sample(options, min(len(options), choose.choice((0, 1, 1, 2, 3)))):
            line.append(choose.choice(option.opts))
            if not option.is_flag:
                known = list(getattr(option.type, "choices", ()))
                line.append(choose.choice(known) if known and choose.random() < 0.6 else value())
        if not LONG & set(line):
            return [*line, *(BOUNDED | BOUNDED_OF_ITS_OWN)[words[0]]]


def fault(line: list[str], code: int, errors: str) -> str:
    """What is wrong with how a command line ended; empty if nothing is."""
    shown = " ".join(word[:80] for word in line)
    if code not in (0, 1, 2, 3):
        return f"{shown}: exit code {code}: {errors[-2000:]}"
    if "Traceback" in errors:
        return f"{shown}: a traceback: {errors[-2000:]}"
    if code == 2 and not errors.startswith(("seriatim: ", "[")):
        return f"{shown}: exit code 2 without a sentence: {errors[-2000:]}"
    return ""


def in_folder(folder: Path) -> list[str]:
    """Make a folder of odd files the current one; the names that command lines choose of."""
    folder.mkdir()
    os.chdir(folder)
    return made_files(folder)
