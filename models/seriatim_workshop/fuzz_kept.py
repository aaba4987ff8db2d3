"""Folders that commands keep between two runs, each with a file of it damaged; the same command is run again.

    python -m seriatim_workshop.fuzz_kept [--seconds S] [--seed N] [--only NAME ...]

What `stream`, `campaign`, `matrix`, `audit --out` and `vectors` keep is made once. A case copies one of them,
damages one or two files (as data where it is JSON, as bytes, by another version, by another kind of file in its place)
and runs the command that goes on: a declared end, no traceback, no draft left, and in time. A case is named by one
number, which makes it again. Spark is started once, in this process.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from seriatim_models.cli import run
from seriatim_models.files import sealed
from seriatim_workshop import fuzz_commands, fuzz_formats
from seriatim_workshop.fuzz import CORPUS, RECORDING, VALUES, cases, fuzzer_options, seed_of

IN_TIME = 600
"""Seconds for one case, of which Spark takes half a minute beside other work."""
DRAFT = ".*.new"
_SPARK = ("--master", "local[1]")


class Kept(NamedTuple):
    """A folder that a command keeps."""

    made: Sequence[str]
    """The command that makes `kept`, in a folder with `recordings`."""
    again: Sequence[str] = ()
    """The command that goes on with it; the same, unless it is said."""
    spark: bool = True


KEPT: Mapping[str, Kept] = {
    "stream": Kept(["stream", "recordings", "--out", "kept", "--once", *_SPARK]),
    "campaign": Kept(
        ["campaign", "immediate", "--out", "kept", "--seeds", "2", "--executions", "5", *_SPARK],
        ["campaign", "immediate", "--out", "kept", "--seeds", "3", "--executions", "5", *_SPARK],
    ),
    "exhaustive": Kept(["campaign", "immediate", "--out", "kept", "--exhaustive", *_SPARK]),
    "matrix": Kept(["matrix", "fair", "--depth", "0", "--jobs", "1", "--campaign", "kept", *_SPARK]),
    "tables": Kept(["audit", "recordings", "--engine", "spark", "--out", "kept", *_SPARK]),
    "journal": Kept(
        ["matrix", "fair", "--depth", "0", "--jobs", "1", "--journal", "kept/j.jsonl"], spark=False
    ),
    "vectors": Kept(
        ["vectors", "fill", "--folder", "kept"],
        ["vectors", "consume", "--folder", "kept", "--python", "queue:Queue"],
        spark=False,
    ),
    "filled": Kept(
        ["vectors", "fill", "--folder", "kept", "--as", "python-queue", "--python", "queue:Queue"],
        ["vectors", "fill", "--folder", "kept"],
        spark=False,
    ),
}  # fmt: skip


class _Late(BaseException):
    """A case did not end in time."""


def _late(_number: int, _frame: FrameType | None) -> None:
    raise _Late


def recordings(folder: Path, first: int, last: int) -> None:
    """Write some parts of a valid recording, each a file with the header of the run."""
    header, *lines = (CORPUS / RECORDING).read_text(encoding="utf-8").splitlines(keepends=True)
    folder.mkdir(exist_ok=True)
    size = -(-len(lines) // 3)
    for part in range(first, last):
        text = "".join([header, *lines[part * size : (part + 1) * size]])
        (folder / f"part{part}.jsonl").write_text(text, encoding="utf-8")


def made(folder: Path, names: Sequence[str]) -> None:
    """Make what each of these commands keeps, in a folder of its name."""
    for name in names:
        (folder / name).mkdir()
        recordings(folder / name / "recordings", 0, 2)
        with contextlib.chdir(folder / name):
            code, errors = _ran(KEPT[name].made)
        assert code in (0, 1, 3), f"{name}: {code}: {errors}"


def _ran(command: Sequence[str]) -> tuple[int, str]:
    """The exit code of a command in this process, and what it said on standard error."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = run(list(command))
    return code, errors.getvalue()


def _as_data(choose: random.Random, raw: bytes) -> bytes:
    """JSON, or lines of it, with values changed; other bytes as they are."""
    try:
        lines: list[Any] = [json.loads(line) for line in raw.splitlines() if line]
    except (ValueError, RecursionError):  # not JSON any more, or damaged before
        return raw
    for _ in range(choose.randrange(1, 4)):
        fuzz_formats.changed(choose, lines, VALUES)
    return b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"


def _forged(choose: random.Random, raw: bytes) -> bytes:
    """Values changed by somebody who knows the format: checksums fit. What has none, and no known form, as it is."""
    try:
        if raw.startswith(b"PAR1"):
            return _forged_table(choose, raw)
        if b'"sha256"' in raw.partition(b"\n")[0]:
            return _forged_state(choose, raw)
        return b"".join(
            _forged_line(choose, line) if choose.random() < 0.5 else line
            for line in raw.splitlines(keepends=True)
        )
    except (ValueError, LookupError, TypeError, OverflowError, pa.ArrowException):
        return raw  # what was drawn cannot be written there


def _forged_line(choose: random.Random, line: bytes) -> bytes:
    """A line with a checksum; what it returns to a search is JSON in a text."""
    whole = json.loads(line)
    if "crc32" not in whole:
        return line
    result = whole["result"]
    inner = json.loads(result["returned"]) if result.get("returned") else None
    tree = [inner if inner is not None and choose.random() < 0.7 else result]
    for _ in range(choose.randrange(1, 3)):
        fuzz_formats.changed(choose, tree, VALUES)
    if tree[0] is not result:
        result["returned"] = json.dumps(inner)
    return sealed(result)


def _forged_state(choose: random.Random, raw: bytes) -> bytes:
    line, _, small = raw.partition(b"\n")
    head = json.loads(line)
    body = bytes(pa.decompress(small, decompressed_size=head["bytes"], codec="zstd", asbytes=True))
    tree = [msgspec.msgpack.decode(body)]
    for _ in range(choose.randrange(1, 3)):
        fuzz_formats.changed(choose, tree, VALUES)
    body = msgspec.msgpack.encode(tree[0])
    small = pa.compress(body, codec="zstd", asbytes=True)
    head |= {"bytes": len(body), "sha256": hashlib.sha256(small).hexdigest()}
    return json.dumps(head).encode() + b"\n" + bytes(small)


def _forged_table(choose: random.Random, raw: bytes) -> bytes:
    """A table of the same columns: one of them without values, with those of a row in all, or its rows in another
    order.
    """
    table = pq.read_table(io.BytesIO(raw))
    at, row = choose.randrange(table.num_columns), choose.randrange(max(table.num_rows, 1))
    column = table.column(at)
    match choose.randrange(4):
        case 0:
            column = pa.nulls(len(column), column.type)
        case 1:
            column = pa.array([column[row].as_py()] * len(column), column.type)
        case 2 if pa.types.is_integer(column.type):
            column = pa.array([choose.choice((-(2**63), -1, 0, 2**63 - 1))] * len(column))
        case _:
            column = column.take(choose.sample(range(len(column)), len(column)))
    out = io.BytesIO()
    pq.write_table(table.set_column(at, table.schema.field(at), column), out)
    return out.getvalue()


def _of_another_version(choose: random.Random, raw: bytes) -> bytes:
    """The number of a schema, or any other number, one more."""
    found = list(re.finditer(rb"/(\d{1,6})\b", raw)) or list(re.finditer(rb"\d{1,9}", raw))
    if not found:
        return raw + b"\0"
    at = choose.choice(found[:20])
    digits = at[0].lstrip(b"/")
    return raw[: at.end() - len(digits)] + b"%d" % (int(digits) + 1) + raw[at.end() :]


def _bytes(change: Callable[[random.Random, bytes], bytes]) -> Callable[..., None]:
    def replace(choose: random.Random, path: Path, _others: Sequence[Path]) -> None:
        path.write_bytes(change(choose, path.read_bytes()))

    return replace


def _exchanged(choose: random.Random, path: Path, others: Sequence[Path]) -> None:
    other = choose.choice(others)
    mine, his = path.read_bytes(), other.read_bytes()
    path.write_bytes(his)
    other.write_bytes(mine)


def _instead(put: Callable[[Path], object]) -> Callable[..., None]:
    def replace(_choose: random.Random, path: Path, _others: Sequence[Path]) -> None:
        path.unlink()
        put(path)

    return replace


DAMAGES: Mapping[str, Callable[[random.Random, Path, Sequence[Path]], None]] = {
    "data": _bytes(_as_data),
    "data too": _bytes(_as_data),
    "forged": _bytes(_forged),
    "forged too": _bytes(_forged),
    "bytes": _bytes(fuzz_formats.spoiled),
    "version": _bytes(_of_another_version),
    "empty": _bytes(lambda _choose, _raw: b""),
    "doubled": _bytes(lambda _choose, raw: raw + raw),
    "deep": _bytes(lambda _choose, _raw: b"[" * 100_000),
    "exchanged": _exchanged,
    "gone": _instead(lambda _path: None),
    "folder": _instead(lambda path: path.mkdir()),
    "pipe": _instead(os.mkfifo),
    "loop": _instead(lambda path: path.symlink_to(path.name)),
    "zeros": _instead(lambda path: path.symlink_to("/dev/zero")),
    "nowhere": _instead(lambda path: path.symlink_to("nowhere")),
}


def damaged(choose: random.Random, folder: Path) -> str:
    """Damage one or two files of a folder; what was done, in words."""
    words = []
    for _ in range(choose.choice((1, 1, 2))):
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
        if not files:
            break
        path = choose.choice(files)
        how = choose.choice(list(DAMAGES))
        if "checkpoint" in path.parts and how in ("pipe", "zeros") and "sources" in str(files):
            how = "gone"  # Spark's own checkpoint: it would wait for a pipe, as the page says
        DAMAGES[how](choose, path, files)
        words.append(f"{path.relative_to(folder)} {how}")
    return ", ".join(words)


def tried(number: int, source: Path, names: Sequence[str]) -> str:
    """What is wrong with how the command of a case ends; empty if nothing is."""
    choose = random.Random(number)
    name = choose.choice(names)
    kept = KEPT[name]
    with tempfile.TemporaryDirectory() as copy, contextlib.chdir(copy):
        shutil.copytree(source / name, copy, dirs_exist_ok=True, symlinks=True)
        what = damaged(choose, Path("kept"))
        recordings(Path("recordings"), 2, 3)
        command = list(kept.again or kept.made)
        signal.alarm(IN_TIME)
        try:
            code, errors = _ran(command)
        finally:
            signal.alarm(0)
        drafts = [str(path) for path in Path("kept").rglob(DRAFT)]
        why = fuzz_commands.fault(command, code, errors)
        if not why and drafts:
            why = f"drafts are left: {drafts}"
    return f"{name}: {what}: {why}" if why else ""


def fuzz(seconds: float, seed: int, names: Sequence[str], most: int | None = None) -> list[str]:
    """Try cases for so long, or so many of them; the faults in words."""
    faults = []
    count = 0
    before = signal.signal(signal.SIGALRM, _late)
    try:
        with tempfile.TemporaryDirectory() as folder:
            made(Path(folder), names)
            until = time.monotonic() + seconds
            for number in cases(seed):
                if time.monotonic() > until or count == most:
                    break
                count += 1
                if why := tried(number, Path(folder), names):
                    faults.append(f"case {number:012x}: {why}")
                    print(faults[-1], file=sys.stderr, flush=True)
                if "_Late" in why:  # Spark's connection is in the middle of an answer
                    break
    finally:
        signal.signal(signal.SIGALRM, before)
    print(f"{count} cases from seed {seed}, {len(faults)} faults", file=sys.stderr)
    return faults


def main() -> None:
    """Fuzz from the command line; exit code 1 if anything failed."""
    parser = fuzzer_options(__doc__)
    parser.add_argument("--only", nargs="*", choices=list(KEPT), default=list(KEPT))
    given = parser.parse_args()
    sys.exit(bool(fuzz(given.seconds, seed_of(given.seed), given.only)))


if __name__ == "__main__":
    main()
