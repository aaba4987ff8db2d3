"""What was followed is kept, and a run that was killed goes on behind it."""

from pathlib import Path

import pytest

from seriatim_workshop.formal import journal, traces
from seriatim_workshop.formal.followed import Followed
from seriatim_workshop.formal.journal import FollowedJournal


def test_a_run_takes_what_is_kept_and_follows_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new" / "programs.jsonl"
    assert traces.main(["release-at-once", "--journal", str(path)]) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr(traces, "follow", lambda *args, **kwargs: pytest.fail("followed again"))
    assert traces.main(["release-at-once", "--journal", str(path)]) == 0
    assert capsys.readouterr().out == first


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    kept = FollowedJournal(path)
    kept.keep("one", Followed("one", executions=1, steps=3))
    kept.keep("two", Followed("two", executions=1, steps=4))
    path.write_text(path.read_text("utf-8")[:-20], "utf-8")
    again = FollowedJournal(path)
    assert len(again) == 1
    found = again.get("one")
    assert found is not None
    assert found.steps == 3
    again.keep("two", Followed("two", executions=1, steps=4))
    assert len(FollowedJournal(path)) == 2


def test_outcomes_of_another_reference_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.jsonl"
    FollowedJournal(path).keep("one", Followed("one", executions=1, steps=3))
    monkeypatch.setattr(journal, "basis", lambda: "another")
    assert FollowedJournal(path).get("one") is None


def test_what_must_not_be_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    FollowedJournal(path).keep("one", Followed("one", executions=1, steps=3, rejected="step 1"))
    assert len(FollowedJournal(path)) == 0
