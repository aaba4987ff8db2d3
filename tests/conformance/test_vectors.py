"""The vectors: what is committed is what the reference does now, and a consumer notices what differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.reference import Reference
from seriatim_models.conformance.vectors import (
    PUBLISHED,
    REFERENCE,
    VectorError,
    consume,
    encode,
    fill,
    read_vectors,
)

from .conftest import ROOT, example, faulty

FOLDER = ROOT / "spec" / "vectors"


@pytest.mark.slow
def test_the_committed_vectors_are_what_the_reference_does() -> None:
    made = {f"{vector.id}.json": encode(vector) for vector in fill(FOLDER / "observed")}
    committed = {path.name: path.read_bytes() for path in FOLDER.glob("*.json")}
    assert sorted(made) == sorted(committed)
    differ = [name for name in made if made[name] != committed[name]]
    assert not differ, f"{', '.join(differ)}: make them again with `seriatim vectors fill`"


def test_all_rows_and_both_tables_are_there() -> None:
    ids = {vector.id[:2] for vector in read_vectors(FOLDER) if vector.id[0].isdigit()}
    # Rows 19 and 20 ask what row 16 asks, of other queues.
    assert ids == {f"{n:02}" for n in range(1, 23)} - {"19", "20"}
    sixteen = next(v for v in read_vectors(FOLDER) if v.id.startswith("16"))
    assert {"rabbitmq-quorum", "rabbitmq-quorum-limited"} <= {
        by for a in sixteen.accepted for by in a.by
    }
    tables = [v for v in read_vectors(FOLDER) if "table" in v.id]
    assert [{by for a in v.accepted for by in a.by} for v in tables] == [{REFERENCE, PUBLISHED}] * 2


def test_everything_is_answered_by_somebody() -> None:
    assert [v.id for v in read_vectors(FOLDER) if not v.accepted] == []


def test_the_reference_agrees_with_itself_and_with_the_published_tables() -> None:
    judged = {j.id: j for j in consume(Local(Reference), read_vectors(FOLDER))}
    ran = {id: j for id, j in judged.items() if not j.skipped}
    assert len(ran) >= 23
    assert all(REFERENCE in j.agrees for j in ran.values())
    assert all(PUBLISHED in j.agrees for id, j in ran.items() if "table" in id)


def test_a_consumer_says_whose_behaviour_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--folder", str(FOLDER)]
    assert run(["vectors", "consume", "--exec", example(), *folder]) == 0
    wrong = ["vectors", "consume", "--exec", faulty("requeues-to-the-tail"), *folder]
    assert run(wrong) == 1
    output = capsys.readouterr().out
    assert "rabbitmq-quorum" in output  # which does the same with what is requeued,
    assert "17-close: request" in output  # but not with what a channel held
    assert run([*wrong, "--by", "reference"]) == 1
    assert "16-requeue: request" in capsys.readouterr().out


def test_filling_writes_the_folder(tmp_path: Path) -> None:
    keep = ["--exec", example(), "--as", "example"]
    assert run(["vectors", "fill", "--folder", str(tmp_path), *keep]) == 0
    vectors = read_vectors(tmp_path)
    assert any("example" in a.by for v in vectors for a in v.accepted)


def test_rejects_what_others_did_with_another_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "observed").mkdir()
    (tmp_path / "observed" / "x.json").write_text('{"06a-exclusive-then-another": [{}]}')
    assert run(["vectors", "fill", "--folder", str(tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "x.json: field 06a-exclusive-then-another: one outcome for each request is needed" in said
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no vector"),
        (
            '{"schema": "x/1", "id": "a", "title": "", "needs": [], "requests": [], "accepted": []}',
            "schema",
        ),
        (
            '{"schema": "seriatim-vectors/1", "id": "a", "title": "", "needs": [], "requests": [{"op": "get"}], '
            '"accepted": [{"by": ["x"], "see": []}]}',
            "one outcome for each request",
        ),
    ],
)
def test_rejects_what_is_no_vector(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "v.json").write_text(text, encoding="utf-8")
    with pytest.raises(VectorError, match=message):
        read_vectors(tmp_path)
    assert run(["vectors", "consume", "--exec", example(), "--folder", str(tmp_path)]) == 2


def test_rejects_a_folder_without_vectors(tmp_path: Path) -> None:
    assert run(["vectors", "consume", "--exec", example(), "--folder", str(tmp_path)]) == 2


def test_rejects_a_name_that_is_a_path(tmp_path: Path) -> None:
    escape = ["--exec", example(), "--as", "../escaped"]
    assert run(["vectors", "fill", "--folder", str(tmp_path), *escape]) == 2


class SharedQueue(Reference):
    """The reference, but for consumers that ask to be alone and are not."""

    def consume(
        self,
        ch: int,
        q: str,
        ctag: str,
        deliver: Callable[..., None],
        autoack: bool = False,
        exclusive: bool = False,
        nolocal: bool = False,
    ) -> None:
        """Let in whoever asks."""
        super().consume(ch, q, ctag, deliver, autoack, False, nolocal)


def test_a_consumer_that_is_not_alone_is_no_other_behaviour() -> None:
    judged = {j.id: j for j in consume(Local(SharedQueue), read_vectors(FOLDER))}
    for id in ("06a-exclusive-then-another", "06b-another-then-exclusive"):
        assert not judged[id].agrees
        assert '"op":"consume"' in judged[id].why
