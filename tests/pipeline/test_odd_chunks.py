"""What is no file under the name of a Parquet file that an ingest or a stream keeps: a sentence, and nothing waits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seriatim_models.history import write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline.audit import chunks, tables
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.stream import streaming
from seriatim_models.pipeline.stream.run_state import RunState, RunSummary
from seriatim_models.pipeline.stream.settled import SavedSettled, SettledMessages
from seriatim_models.properties.blackbox import BLACKBOX

from .conftest import first_events

EVENTS = [
    msgspec.structs.replace(e, run="", rec="", clk="")
    for e in first_events("rabbit-classic-lockstep", 100)
]
ODD: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


def _ingested(folder: Path) -> chunks.Manifest:
    return ingest(Inline(), plan([folder / "in"]), folder / "out", 50)


def _made(folder: Path) -> list[Path]:
    """A chunk, and a file of rejected lines."""
    (folder / "in").mkdir(exist_ok=True)
    write_history(folder / "in/a.jsonl", EVENTS, Header(run="r"))
    with (folder / "in/a.jsonl").open("a") as file:
        file.write("no event\n")
    manifest = _ingested(folder)
    (chunk, *_), (rejected,) = manifest.runs()["r"], manifest.quarantine()
    return [folder / "out" / chunk.path, folder / "out" / rejected]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_file_in_the_place_of_a_chunk_is_a_sentence(
    odd: str, which: int, tmp_path: Path
) -> None:
    """A pipe under the name of a chunk was waited for by a worker of Spark, for ever."""
    path = _made(tmp_path)[which]
    path.unlink()
    ODD[odd](path)
    with pytest.raises(OSError, match="what is there is no file; remove it") as error:
        _ingested(tmp_path)
    assert error.value.filename == str(path)
    with pytest.raises(PipelineError, match=f"{path.name}: is a"):
        chunks.read_chunk(str(path))
    with pytest.raises(PipelineError, match=f"{path.name}: is a"):
        list(tables.quarantine(path.parent, [path.name], []))
    path.rmdir() if odd == "folder" else path.unlink()
    assert _ingested(tmp_path).quarantine()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_file_in_the_place_of_what_a_stream_keeps_is_a_sentence(
    odd: str, tmp_path: Path
) -> None:
    summary = RunSummary("r", state="batch/0.state", settled=["batch/0.parquet"])
    state = streaming.StreamState(runs={"r": summary})
    (tmp_path / "batch").mkdir()
    streaming.check_kept(tmp_path, state)
    ODD[odd](tmp_path / "batch" / "0.parquet")
    with pytest.raises(OSError, match="what is there is no file; remove it"):
        streaming.check_kept(tmp_path, state)


OUTSIDE = (
    "../outside",
    "{folder}/outside",
    "link/outside",
    "to_file",
    "a\0b",
    "",
    "./to_file",
    "x/../../outside",
)
"""Names that a forged file of a folder may have for one of its others."""


def _forger(folder: Path) -> Path:
    """A folder of ours with links that lead out of it, beside a file of somebody else."""
    ours = folder / "ours"
    ours.mkdir()
    (folder / "outside").write_bytes(b"mine")
    (ours / "link").symlink_to("..")
    (ours / "to_file").symlink_to("../outside")
    return ours


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_out_of_the_folder_is_a_sentence(name: str, tmp_path: Path) -> None:
    """A manifest or a state that fits its checksum could name any file of the machine, which was read."""
    ours, name = _forger(tmp_path), name.format(folder=tmp_path)
    unit = chunks.Unit("r", [], {"r": [chunks.Chunk(name, 1, {})]}, [], [], [])
    chunks.write_manifest(ours, chunks.Manifest([unit]))
    with pytest.raises(PipelineError, match=r"file of.* delete the output folder"):
        chunks.read_manifest(ours)
    for summary in (RunSummary("r", quarantine=[name]), RunSummary("r", settled=[name])):
        if name:
            with pytest.raises(PipelineError, match=r"file of.* delete the stream's output folder"):
                streaming.check_kept(ours, streaming.StreamState(runs={"r": summary}))
    with pytest.raises(PipelineError, match=r"file of"):
        list(tables.quarantine(ours, [name], []))
    with pytest.raises(PipelineError, match=r"file of.* delete the stream's output folder"):
        RunState.load(ours, name, BLACKBOX)
    for suffix in ("names", "settled"):
        (ours / f"to_file.{suffix}").symlink_to("../outside")
    aside = SettledMessages(BLACKBOX, ours, "", "", SavedSettled([name]))
    with pytest.raises(PipelineError, match=r"file of|No such file"):
        aside.recall([], EVENTS)


def test_nothing_outside_the_folder_is_deleted(tmp_path: Path) -> None:
    """What a folder of ours holds and no manifest names is left over, and is deleted: also through a link, it was."""
    _made(tmp_path)
    mine = tmp_path / "somebody's" / "file"
    mine.parent.mkdir()
    mine.write_text("mine")
    for name in ("work-link", "batch-link"):
        (tmp_path / "out" / name).symlink_to(mine.parent)
        (tmp_path / "out" / f"{name}-file").write_text("no folder")
    with (tmp_path / "in/a.jsonl").open("a") as file:
        file.write("nor this\n")
    assert _ingested(tmp_path).quarantine()
    streaming.sweep(tmp_path / "out", streaming.StreamState())
    assert mine.read_text() == "mine"


def test_another_table_in_the_place_of_one_is_a_sentence(tmp_path: Path) -> None:
    """Columns of another table were an error without a sentence."""
    kept = _made(tmp_path)
    for table in (
        pa.table({"a": [1]}),
        pa.table({"n": [1], "bucket": pa.array([["q"]])}),
        pa.table({name: [b"\xff"] for name in ("n", "bucket", *chunks.QUARANTINE.names)}),
    ):
        for path in kept:
            pq.write_table(table, path)
            with pytest.raises(PipelineError, match=path.name):
                list(tables.quarantine(path.parent, [path.name], []))
            with pytest.raises(PipelineError, match=path.name):
                chunks.read_chunk(str(path))
