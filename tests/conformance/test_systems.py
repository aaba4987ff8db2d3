"""The list of real systems; those that need no server are driven here, the others by `make conform`."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.conformance.search import SearchBounds
from seriatim_workshop.systems import run, servers
from seriatim_workshop.systems.registry import SYSTEMS, Listed

from .conftest import ROOT

FEW = SearchBounds(seconds=20.0, scripts=20)


@pytest.mark.slow
@pytest.mark.parametrize(
    "id",
    [
        "queue.Queue",
        "asyncio.Queue",
        "litequeue",
        "persist-queue",
        "diskcache",
        "queuelib-fifo",
        "huey-sqlite",
    ],
)
def test_queues_in_process_violate_nothing_that_they_promise(id: str) -> None:
    row = run.run_system(SYSTEMS[id], FEW)
    assert not row.not_run, "the extra `peers` brings it, and `make test` installs that"
    assert row.violates == []
    assert "fifo-adt" in row.keeps


def test_a_stack_is_no_queue() -> None:
    row = run.run_system(SYSTEMS["queuelib-lifo"], FEW)
    assert {"P4", "P20"} <= set(row.violates) <= SYSTEMS["queuelib-lifo"].known
    assert "fifo-adt" not in row.keeps


@pytest.mark.slow
def test_kombu_in_memory_loses_what_a_closed_channel_held() -> None:
    row = run.run_system(SYSTEMS["kombu-memory"], FEW)
    assert not row.not_run, "the extra `peers` brings it, and `make test` installs that"
    lost = next(s for s in row.shortest if s.property == "P1")
    # Published, and got by or pushed to a channel that closes at the end; which of the two is found first is chance.
    assert len(lost.steps) == 2
    assert "publish q=q m=m0" in lost.steps


def test_what_cannot_be_run_is_said_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = Listed("absent", "An absent system", "", "nothing", "no.such.module:x")
    row = run.run_system(absent, FEW)
    assert "no.such.module" in row.not_run
    assert "NOT RUN" in run.summary(row, 0.0)
    assert "not run: " in run.table([row])


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(servers.NotHere, match="apt-get install no-such-package"):
        servers.needed("no-such-package", "no-such-program")


@pytest.mark.parametrize(
    ("system", "lacks"), [("nats-cluster", []), ("kafka", ["jars"]), ("nsq", ["go"])]
)
def test_a_description_lacks_the_paths_of_what_is_built_for_it(
    system: str, lacks: list[str]
) -> None:
    assert servers.description_of(system).lacks == lacks


def test_rejects_an_unknown_system() -> None:
    with pytest.raises(SystemExit) as caught:
        run.main(["no-such-system"])
    assert caught.value.code == 2


@pytest.mark.parametrize(("asked", "code"), [(["rabbitmq-classic"], 3), ([], 0)])
def test_what_was_asked_for_by_name_and_not_run_is_no_success(
    asked: list[str], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def not_here(listed: Listed, bounds: SearchBounds) -> run.SystemRow:
        return run.SystemRow(
            id=listed.id, title=listed.title, promise=listed.promise, not_run="no server"
        )

    monkeypatch.setattr(run, "run_system", not_here)
    assert run.main([*asked, "--out", str(tmp_path)]) == code


def test_a_name_stands_for_all_that_begin_with_it() -> None:
    assert [s.id for s in run.chosen(["rabbitmq"])] == [
        "rabbitmq-classic",
        "rabbitmq-priority",
        "rabbitmq-quorum",
    ]
    assert len(run.chosen([])) == len(SYSTEMS)


def test_the_page_has_a_row_for_each_system() -> None:
    page = (ROOT / "spec" / "SYSTEMS.md").read_text(encoding="utf-8")
    assert [id for id in SYSTEMS if f"`make conform SYSTEM={id}`" not in page] == []
