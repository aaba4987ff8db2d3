"""States on disk are data: what is damaged, foreign or meant to be run is refused in one sentence, and nothing runs."""

from __future__ import annotations

import json
import pickle
import re
import zlib
from collections import deque
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from seriatim_models.cli import run
from seriatim_models.explorer.search import frontier
from seriatim_models.history import read_history
from seriatim_models.history.complete import Completion
from seriatim_models.matrix import work
from seriatim_models.pipeline import state_file
from seriatim_models.pipeline.audit import chunks, decoding
from seriatim_models.pipeline.audit.decoding import DecodeTask, RecorderState
from seriatim_models.pipeline.audit.metrics import MeasuresState
from seriatim_models.pipeline.audit.runs import Source
from seriatim_models.pipeline.campaign import checkpoint
from seriatim_models.pipeline.campaign.distributed import _Returned
from seriatim_models.pipeline.campaign.items import ItemResult
from seriatim_models.pipeline.campaign.subtree import Subtree
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.state_file import read_state, write_state
from seriatim_models.pipeline.stream import settled, streaming
from seriatim_models.pipeline.stream.run_state import ArrivedFile, RunState, SavedRun
from seriatim_models.programs import check
from seriatim_models.properties.base import Property
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.connections import ConnectionsState
from seriatim_models.properties.columnar.lines import LinesState
from seriatim_models.properties.columnar.queues import QueuesState
from seriatim_models.properties.whitebox.composites import COMPOSITES

from .conftest import DATA

RECORDING = DATA / "rabbit-classic-competing.jsonl.gz"


class Bomb:
    """Its pickle creates a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


class Sample(msgspec.Struct):
    """A state with what states hold."""

    at: int
    settled: deque[int]
    names: dict[tuple[str, int | None], set[str]] = {}
    rest: dict[str, object] = {}


def reheaded(raw: bytes, **changes: object) -> bytes:
    """A state under another header."""
    line, _, body = raw.partition(b"\n")
    return json.dumps(json.loads(line) | changes).encode() + b"\n" + body


def carry_refused(folder: Path, path: Path) -> str:
    """What a decode says that should go on from a state."""
    source = Source(str(RECORDING), named=False)
    work = DecodeTask(0, "r", [[source]], str(folder), ".", 1000, path.name)
    return decoding.do(work).damaged


def state_refused(folder: Path, path: Path) -> str:
    """What a stream says that should go on from a state."""
    try:
        RunState.load(folder, path.name, BLACKBOX)
    except PipelineError as error:
        return str(error)
    return ""


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    sample = Sample(3, deque([1, 2]), {("q", None): {"a"}}, {"ms": ["x"], "n": None})
    write_state(tmp_path / "x", "sample", sample)
    again = read_state(tmp_path / "x", "sample", Sample, "delete it")
    assert again == sample
    again.settled.popleft()


def test_a_completion_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    events = read_history(RECORDING).events
    whole, parted = Completion(), Completion()
    for n, event in enumerate(events):
        if n % 1500 == 700:
            write_state(tmp_path / "x", "completion", parted)
            parted = read_state(tmp_path / "x", "completion", Completion, "")
        assert parted(event) == whole(event), n
    assert parted == whole


def test_every_property_declares_the_type_of_its_summary() -> None:
    def below(cls: type) -> set[type]:
        under: list[type] = cls.__subclasses__()
        return {cls}.union(*map(below, under))

    assert [p.id for p in COMPOSITES if p.summary_type is None] == []
    own = {c for c in below(Property) if c.__module__.startswith("seriatim_models.properties.")}
    named = {c for c in own if isinstance(vars(c).get("id"), str)}
    assert len(named) > 30
    assert [c for c in named if c.summary_type is None] == []  # type: ignore[attr-defined]  # all are properties


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "refused"), [("recorder", carry_refused), ("run", state_refused)])
def test_what_is_no_state_of_this_version_is_refused(
    kind: str, refused: Callable[[Path, Path], str], tmp_path: Path
) -> None:
    path = tmp_path / "000000.state"
    if kind == "run":
        state = RunState("r", BLACKBOX)
        state.take([ArrivedFile(str(RECORDING), "", 0, 0)], 0, 0, True)
        state.save(tmp_path, "000000")
    else:
        source = Source(str(RECORDING), named=False)
        made = decoding.do(DecodeTask(0, "r", [[source]], str(tmp_path), ".", 10**6))
        path = tmp_path / made.carry
        assert read_state(path, "recorder", RecorderState, "").counts
    sound = path.read_bytes()
    ran = tmp_path / "ran"
    nested = msgspec.msgpack.encode(None)
    for _ in range(5000):
        nested = b"\x91" + nested
    write_state(tmp_path / "other", kind, {"run": 3})
    write_state(tmp_path / "pickled", kind, msgspec.Raw(pickle.dumps(Bomb(ran))))
    write_state(tmp_path / "nested", kind, msgspec.Raw(nested))
    many = max(2**28, 1000 * len(sound)) + 1
    spoiled = {
        "a pickle": pickle.dumps(Bomb(ran)),
        "a pickle under a header": (tmp_path / "pickled").read_bytes(),
        "nothing": b"",
        "cut": sound[:-7],
        "longer": sound + b"\0",
        "one bit": sound[:-100] + bytes([sound[-100] ^ 4]) + sound[-99:],
        "another version": reheaded(sound, schema="seriatim-state/0"),
        "another kind": reheaded(sound, kind="completion"),
        "longer than any memory": reheaded(sound, bytes=2**62),
        "packed thousands of times": reheaded(sound, bytes=many),
        "less than nothing": reheaded(sound, bytes=-1),
        "another shape": (tmp_path / "other").read_bytes(),
        "deeper than any value": (tmp_path / "nested").read_bytes(),
    }
    for what, raw in spoiled.items():
        path.write_bytes(raw)
        said = refused(tmp_path, path)
        assert said.startswith(f"{path}: "), (what, said)
        assert re.fullmatch("[^\n]*delete[^\n]*anew[^\n]*", said), (what, said)
        if "thousands" in what:
            assert f"packed bytes become {many:,}" in said
    path.unlink()
    assert "No such file" in refused(tmp_path, path)
    assert not ran.exists()
    pickle.loads(spoiled["a pickle"])
    assert ran.exists(), "the pickle of this test would have run"


def shape(type_: Any, seen: set[object]) -> str:
    """The fields of a type and of all in it, in words; of what is in itself, its name."""
    origin, of = get_origin(type_), get_args(type_)
    plain = origin or type_
    name = str(getattr(plain, "__name__", plain))
    if origin is Annotated:
        return shape(of[0], seen)
    if origin in (Union, UnionType):
        return "|".join(sorted(shape(t, seen) for t in of))
    words = [shape(t, seen) for t in of]
    if type_ in seen or not isinstance(plain, type):
        return name
    if issubclass(plain, msgspec.Struct):
        seen.add(type_)
        words += [f"{f.encode_name}:{shape(f.type, seen)}" for f in msgspec.structs.fields(type_)]
    elif issubclass(plain, tuple) and hasattr(plain, "_fields"):
        seen.add(type_)
        words += [f"{n}:{shape(t, seen)}" for n, t in get_type_hints(plain).items()]
    elif issubclass(plain, Enum):
        words += [str(member.value) for member in plain]
    return f"{name}({','.join(words)})" if words else name


SHAPES = {
    "STATES": ("seriatim-state/5", "7345793b"),
    "STREAM": ("seriatim-stream/13", "3c57febb"),
    "CHUNKS": ("seriatim-chunks/11", "3e887a21"),
    "CAMPAIGN": ("campaign 5", "0a255181"),
    "JOURNAL": ("seriatim-matrix-journal/1", "05eef601"),
    "SEARCH": ("search 4", "aa1d5eac"),
}
KEPT: dict[str, tuple[str, list[Any]]] = {
    state_file.SCHEMA: ("STATES", [
        SavedRun, RecorderState, settled._Names, settled._Blocks, list[settled._Kept], LinesState, QueuesState,
        ConnectionsState, dict[str, MeasuresState], *(p.summary_type for p in (*BLACKBOX, *COMPOSITES)),
    ]),
    streaming.SCHEMA: ("STREAM", [streaming.StreamState]),
    chunks.SCHEMA: ("CHUNKS", [chunks.Manifest]),
    f"campaign {checkpoint.VERSION}": ("CAMPAIGN", [ItemResult, work.Done, _Returned, Subtree]),
    work.SCHEMA: ("JOURNAL", [work.JournalHeader, work.Done]),
    f"search {frontier.VERSION}": ("SEARCH", [frontier.BranchData, frontier._CheckpointData, check._JudgeCounts]),
}  # fmt: skip
"""By version, what is kept between two runs of a command that read it in that version alone."""


@pytest.mark.parametrize("version", KEPT)
def test_what_is_kept_has_another_version_when_it_changes(version: str) -> None:
    """A state of before has a field less: what it does not say would be taken for empty, and a verdict rest on that.

    Where this fails, raise the version of what changed, and write the sum of its shape here.
    """
    name, types = KEPT[version]
    words = "\n".join(shape(t, set()) for t in types)
    assert {name: (version, f"{zlib.crc32(words.encode()):08x}")} == {name: SHAPES[name]}


def lists_of(value: object, deep: int) -> list[list[object]]:
    """All lists in a value that are not empty, so deep inside of others."""
    found: list[list[object]] = []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner if deep else ():
        found += lists_of(each, deep - 1)
    return [*found, value] if isinstance(value, list) and value else found


@pytest.mark.parametrize("forge", [list.pop, lambda one: one.append(one[0])])
def test_a_state_whose_lists_have_other_lengths_is_a_sentence(
    forge: Callable[[list[object]], object], tmp_path: Path
) -> None:
    state = RunState("r", BLACKBOX)
    state.take([ArrivedFile(str(RECORDING), "", 0, 0)], 0, 0, True)
    state.save(tmp_path, "x")
    saved = state_file.encoded(read_state(tmp_path / "x.state", "run", SavedRun, ""))
    refused = 0
    for n in range(len(lists_of(msgspec.msgpack.decode(saved), 3))):
        plain = msgspec.msgpack.decode(saved)
        forge(lists_of(plain, 3)[n])
        write_state(tmp_path / "x.state", "run", plain)
        refused += "is not what this version writes (zip()" in state_refused(
            tmp_path, tmp_path / "x.state"
        )
    assert refused == 1  # the summaries of the properties


def test_a_state_of_other_properties_is_refused(tmp_path: Path) -> None:
    RunState("r", BLACKBOX[:2]).save(tmp_path, "x")
    RunState.load(tmp_path, "x.state", BLACKBOX[:2])
    with pytest.raises(PipelineError, match="ask for the same properties, or delete"):
        RunState.load(tmp_path, "x.state", BLACKBOX[1:3])


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_chunk_that_was_damaged_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task of Spark finds it, whose error has the sentence in a traceback."""
    arguments = ["audit", str(RECORDING), "--engine", "spark", "--out", str(tmp_path / "out")]
    assert run(arguments) in (0, 1, 3)
    (chunk,) = (tmp_path / "out").glob("work-*/*.parquet")
    raw = bytearray(chunk.read_bytes())
    raw[len(raw) // 2] ^= 255
    chunk.write_bytes(raw)
    capsys.readouterr()
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert f"seriatim: {chunk}: not readable as Parquet: " in said
    assert "Traceback" not in said
