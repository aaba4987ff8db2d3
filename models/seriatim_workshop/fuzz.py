"""Mutates what is read, and runs the commands that read it in this process: nothing but declared ends.

    python -m seriatim_workshop.fuzz [--seconds S] [--seed N] [--corpus DIR]

A case is made of a valid recording: some of its lines, with fields dropped, swapped, of other types, at the ends of
their ranges, nested, or of names that would do harm; lines cut, doubled and reordered; and now and then the whole
compressed, with a byte of it changed. Or it is of another format (`fuzz_formats`): Jepsen (EDN, JSON), OpenTelemetry,
Parquet, a replay token, a profile, or any document that is kept between commands. Every fourth is a command line
(`fuzz_commands`), which must end by a declared code, too, and soon.
Of recordings both engines must give the same account, line by line;
that of Spark is run as its tasks, without Spark. A case is named by one number, which makes it again. What fails is
kept in the corpus, which every run begins with.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

from seriatim_models.cli import run
from seriatim_workshop import fuzz_commands, fuzz_formats

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
CORPUS = ROOT / "tests" / "cli" / "fuzz_corpus"
RECORDING = "valid.jsonl"
"""A recording of the corpus that every command reads to the end."""
SEEDS = ("rabbit-classic-competing", "rabbit-classic-lockstep")
LINES_MAX = 60
"""Of a case: enough for several messages, few enough for some cases a second."""
ENDS = frozenset({0, 1, 2, 3})
"""Exit codes that a command may have."""
COMMANDS = ("audit", "lint", "show")

_NAMES = (
    "",
    "q",
    "\x00\x1b[2J\u202e",
    "<b>&]]>",
    "x" * 10_000,
    "\ud7ff\ufffe",
    "a\nb\tc",
    "../../x",
    "%s{0}",
    "'\"",
)
_NUMBERS = (0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**200, 0.5, 1e308)
VALUES: tuple[Any, ...] = (
    *_NAMES, *_NUMBERS, None, True, False, [], {}, [[]], {"a": {"a": 1}}, ["m", 3, None], {"": ""},
)  # fmt: skip
_EVENTS = (
    "publish", "deliver", "ack", "nack", "reject", "get", "consume", "cancel", "qos", "recover", "expire", "commit",
    "ch_open", "ch_close", "conn_close", "conn_drop", "declare", "delete", "purge", "return", "note", "gap",
    "entry_cas", "snapshot", "link", "enqueue", "notify", "srv_push", "pool_block", "append", "log_rest", "turn",
)  # fmt: skip


def recordings() -> list[list[dict[str, Any]]]:
    """Valid recordings as decoded lines, the header first."""
    out = []
    for name in SEEDS:
        text = gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes())
        out.append([json.loads(line) for line in text.splitlines()[:2000]])
    return out


def _changed(choose: random.Random, event: dict[str, Any], known: list[str]) -> None:
    """One change of one event, in place."""
    field = choose.choice(known)
    match choose.randrange(7):
        case 0:
            event.pop(field, None)
        case 1:
            event[field] = choose.choice(VALUES)
        case 2:
            event["ev"] = choose.choice(_EVENTS)
        case 3:
            event["lvl"] = choose.choice(("model", "broker", "wire", "api", "", "moon"))
        case 4:
            other = choose.choice(known)
            event[field], event[other] = event.get(other), event.get(field)
        case 5:
            event["args"] = {
                choose.choice(("ok", "now", "place", "q", "sub")): choose.choice(VALUES)
            }
        case _:
            event["t"] = choose.choice(_NUMBERS)


def case(number: int, valid: list[list[dict[str, Any]]]) -> tuple[str, bytes]:
    """The suffix and the bytes of a case."""
    choose = random.Random(number)
    if choose.random() < 0.5:
        return fuzz_formats.case(choose, VALUES, DATA / f"{SEEDS[1]}.jsonl.gz")
    header, *events = choose.choice(valid)
    begin = choose.randrange(max(len(events) - LINES_MAX, 1))
    chosen = [dict(e) for e in events[begin : begin + choose.randrange(1, LINES_MAX)]]
    known = sorted(
        {name for e in chosen for name in e} | {"op", "ph", "dtag", "ms", "multiple", "gen", "pos"}
    )
    for _ in range(choose.randrange(1, 8)):
        _changed(choose, choose.choice(chosen), known)
    head = dict(header)
    if choose.random() < 0.3:
        _changed(choose, head, ["schema", "run", "rec", "lvl", "clk", "params"])
    if choose.random() < 0.2:
        choose.shuffle(chosen)
    if choose.random() < 0.5:  # so that most cases are not thrown away for their indices
        chosen = [e | {"i": n} for n, e in enumerate(chosen, 1)]
    lines = [json.dumps(line).encode() for line in (head, *chosen)]
    if choose.random() < 0.3:
        at = choose.randrange(len(lines))
        line = lines[at]
        cut = choose.randrange(len(line) + 1)
        depth = choose.choice((10, 70, 2000))
        lines[at] = choose.choice((
            line[:cut], line[:cut] + b"\xff" + line[cut:], line + line, line[:cut] + b"[" * depth + line[cut:],
            b'{"i":1,"ev":"note","args":{"a":' + b"[" * depth + b"]" * depth + b"}}",
        ))  # fmt: skip
    raw = b"\n".join(lines) + b"\n"
    suffix = choose.choice(("jsonl", "jsonl", "jsonl", "jsonl.gz", "jsonl.zst"))
    packed = raw
    if suffix != "jsonl":
        packed = gzip.compress(raw, mtime=0) if suffix == "jsonl.gz" else zstandard.compress(raw)
    if suffix != "jsonl" and choose.random() < 0.5:
        at = choose.randrange(len(packed))
        packed = packed[:at] + bytes([packed[at] ^ 1 << choose.randrange(8)]) + packed[at + 1 :]
    return suffix, packed


def commands(path: Path) -> list[list[str]]:
    """The commands that read a file, by its name."""
    if path.suffix == ".token":
        token = path.read_bytes().decode("utf-8", "replace").replace("\0", "")
        return [["check", "--replay", token], ["show", token]]
    if path.suffix == ".toml":
        return [["audit", str(CORPUS / RECORDING), "--profile", str(path)]]
    return [[command, str(path)] for command in COMMANDS]


def _ran(command: list[str]) -> tuple[int, str]:
    """The exit code of a command in this process, and what it said on standard error."""
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = run(command)
    return code, errors.getvalue()


def ended(path: Path) -> str:
    """What is wrong with how the commands end on a file, or with its accounts; empty if nothing is."""
    if path.name.partition(".")[2] in fuzz_formats.DOCUMENTS:
        return fuzz_formats.document_fault(path)
    for command in commands(path):
        code, errors = _ran(command)
        if code not in ENDS:
            return f"{command[0]}: exit code {code}: {errors[-2000:]}"
    if path.suffix in (".token", ".toml"):
        return ""
    differs = fuzz_formats.engines_differ(path)
    return f"the engines' accounts: {differs}" if differs else ""


def kept_cases(corpus: Path) -> list[Path]:
    """The files of a corpus."""
    return sorted(p for p in corpus.glob("*.*") if p.suffix != ".md") if corpus.is_dir() else []


def cases(seed: int) -> Iterator[int]:
    """Numbers of cases without end; each run of another seed has others."""
    choose = random.Random(seed)
    while True:
        yield choose.getrandbits(48)


def fuzz(seconds: float, seed: int, corpus: Path, most: int | None = None) -> list[str]:
    """Try cases for so long, or so many of them; what fails is kept in the corpus and returned in words."""
    valid = recordings()
    faults = [f"{path}: {why}" for path in kept_cases(corpus) if (why := ended(path))]
    until = time.monotonic() + seconds
    tried = 0
    corpus = corpus.resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        files = fuzz_commands.in_folder(Path(folder) / "odd")
        for number in cases(seed):
            if time.monotonic() > until or tried == most:
                break
            tried += 1
            if tried % 4 == 0:
                line = fuzz_commands.command_line(random.Random(number), files)
                code, errors = _ran(line)
                if why := fuzz_commands.fault(line, code, errors):
                    faults.append(f"case {number:012x}: {why}")
                continue
            suffix, raw = case(number, valid)
            path = Path(folder) / f"case.{suffix}"
            path.write_bytes(raw)
            if why := ended(path):
                corpus.mkdir(parents=True, exist_ok=True)
                kept = corpus / f"{number:012x}.{suffix}"
                kept.write_bytes(raw)
                faults.append(f"{kept}: {why}")
            path.unlink()
    print(f"{tried} cases from seed {seed}, {len(faults)} faults", file=sys.stderr)
    return faults


def fuzzer_options(description: str | None) -> argparse.ArgumentParser:
    """The options that every fuzzer has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=None)
    return parser


def seed_of(asked: int | None) -> int:
    """The seed that was asked for, or a fresh one; it is printed."""
    seed = random.SystemRandom().getrandbits(32) if asked is None else asked
    print(f"seed {seed}", file=sys.stderr, flush=True)
    return seed


def main() -> None:
    """Fuzz from the command line; exit code 1 if anything failed."""
    parser = fuzzer_options(__doc__)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    given = parser.parse_args()
    faults = fuzz(given.seconds, seed_of(given.seed), given.corpus)
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
