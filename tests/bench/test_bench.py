"""The bench: what is compared is the same, what is missing is said, what is computed is right."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from seriatim_models.history import read_history
from seriatim_models.matrix.cells import PairProgram
from seriatim_models.matrix.plan import plan_universe
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import plan
from seriatim_workshop.bench import (
    exploring,
    growing,
    histories,
    matrix_time,
    oracle,
    pipelines,
    profile,
    show,
    whole_audit,
)
from seriatim_workshop.bench.explorers import (
    HERE,
    SPIN,
    Absent,
    ExplorerOutcome,
    explore_here,
    outcome,
    run,
)
from seriatim_workshop.bench.growth import fit
from seriatim_workshop.bench.measure import BenchRow, Measured, Series
from seriatim_workshop.bench.programs import MISTAKES, SPEED

NAMES = set(SPEED) | set(MISTAKES)


def test_every_language_has_the_same_programs() -> None:
    spec = importlib.util.spec_from_file_location("plain", HERE / "python" / "plain.py")
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    rust = set(re.findall(r'"([^"]+)" => ', (HERE / "rust/src/programs.rs").read_text()))
    java = (HERE / "jvm/src/main/java/Side.java").read_text()
    jvm = set(re.findall(r'Map\.entry\("([^"]+)"', java))
    flags = {f[2:].split("=")[0] for found in SPIN.values() for f in found} - {"PAIRS"}
    promela = set(re.findall(r"defined\((\w+)\)", (HERE / "promela/programs.pml").read_text()))
    assert len(MISTAKES) == 12
    assert set(plain.SPEED) | set(plain.MISTAKES) == rust == jvm == set(SPIN) == NAMES
    assert flags == promela


@pytest.mark.parametrize("name", MISTAKES)
def test_we_find_every_mistake(name: str) -> None:
    assert explore_here(name, 10.0).verdict.startswith("violated")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["racy counter, 3 threads", "condition buffer, 3 items"])
def test_we_find_nothing_where_nothing_is_wrong(name: str) -> None:
    found = explore_here(name, 2.0)
    assert found.verdict == "ok"
    assert found.seconds is not None


def test_a_growth_is_the_slope_on_logarithms() -> None:
    growth = fit([10, 100, 1000], [3 * s**1.5 for s in (10, 100, 1000)])
    assert growth.exponent == pytest.approx(1.5)
    assert growth.factor == pytest.approx(3)
    assert growth.error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("sizes", "costs"), [([5, 5], [1, 2]), ([1, 2], [0, 1])])
def test_rejects_growth_without_two_sizes_or_costs(sizes: list[float], costs: list[float]) -> None:
    with pytest.raises(ValueError, match="a growth needs"):
        fit(sizes, costs)


def test_a_series_that_scatters_is_called_disturbed() -> None:
    assert not Series([1.0, 1.1, 1.2]).disturbed
    assert Series([1.0, 1.1, 2.2]).disturbed
    assert Series([2.0, 6.0]).over(Series([1.0, 2.0])).values == [2.0, 3.0]


def test_rejects_what_a_side_says_if_it_cannot_be_read() -> None:
    with pytest.raises(Absent, match="cannot be read"):
        outcome("Segmentation fault")


class Fake:
    name = "fake"
    unit = "executions"

    def prepare(self) -> str:
        return "1.0"

    def explore(self, program: str, seconds: float) -> ExplorerOutcome:
        return ExplorerOutcome(7, 100.0, 0.07, "ok")


class Gone(Fake):
    name = "gone"

    def prepare(self) -> str:
        raise Absent("no toolchain")


def test_a_missing_peer_is_skipped_with_its_reason_and_a_missed_mistake_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    part = exploring.measure(2, 0.1, lambda _: None, explorers=(Fake(), Gone()))
    assert part.skipped == {"gone": "no toolchain"}
    row = part.row("racy counter, 3 threads", "fake")
    assert row is not None
    assert len(row.rate) == 2
    missed = part.row("ABA", "fake")
    assert missed is not None
    assert missed.verdict.startswith("missed")
    show.text(part, Console(width=160))
    said = capsys.readouterr().out
    assert "skipped gone: no toolchain" in said
    assert "missed" in said


def test_the_page_has_ratios_growth_and_a_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        BenchRow(task=f"{n} events", who=who, verdict="ok", seconds=[cost * n], size=n)
        for n in (10, 100, 1000)
        for who, cost in (("seriatim", 0.1), ("peer", 0.2))
    ]
    part = Measured(
        part="x", title="X", command="make x", rounds=1, rows=rows, versions={"peer": "2"}
    )
    page = show.page([part]).read_text()
    assert "<svg" in page
    assert "time of peer: size^1.00" in page
    assert "<td>2</td>" in page


@pytest.mark.parametrize("clients", [2, 8, 64])
def test_the_histories_are_what_they_claim(clients: int, tmp_path: Path) -> None:
    for fault, verdict in ((False, "ok"), (True, "violated")):
        oracle.write(oracle.Task(400, clients, fault), tmp_path)
        assert oracle.check_here("linearizable", tmp_path).verdict == verdict
        assert oracle.check_here("scan", tmp_path).verdict == "ok"


def test_a_scan_sees_what_is_doubled_and_invented(tmp_path: Path) -> None:
    made = histories.operations(100, 2)
    taken = next(o for o in made if not o.enqueue and o.value != histories.EMPTY)
    histories.write_lines([*made, taken], tmp_path / "operations.txt")
    assert oracle.check_here("scan", tmp_path).verdict == "violated"
    invented = [o for o in made if not (o.enqueue and o.value == taken.value)]
    histories.write_lines(invented, tmp_path / "operations.txt")
    assert oracle.check_here("scan", tmp_path).verdict == "violated"


class Slow:
    name = "slow"

    def prepare(self) -> str:
        return ""

    def check(self, folder: Path, seconds: float) -> oracle.CheckerVerdict:
        return oracle.CheckerVerdict("unfinished", seconds, 0)


def test_who_gave_up_on_a_small_history_is_not_asked_about_a_larger_one() -> None:
    part = oracle.measure(1, 1.0, lambda _: None, 10_000, (Slow(),))
    assert {r.verdict for r in part.rows} == {"unfinished"}
    assert not any(r.seconds for r in part.rows)


def test_a_profile_names_what_costs_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow_part() -> int:
        total = 0
        for n in range(300_000):
            total += n
        return total

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(
        profile.PATHS, "mine", lambda: lambda: [slow_part() for _ in range(3)] and None
    )
    assert profile.main(["mine", "--top", "3"]) == 0
    assert "slow_part" in capsys.readouterr().out
    assert (tmp_path / "build/bench/mine.pstats").exists()
    with pytest.raises(SystemExit):
        profile.main(["theirs"])


@pytest.mark.parametrize(("name", "size"), [*zip(growing.COSTS, (20, 10, 2000), strict=True)])
def test_a_point_of_growth_is_measured_in_a_process_of_its_own(name: str, size: int) -> None:
    said = run([sys.executable, "-m", growing.MODULE, name, str(size)], seconds=60)
    point = msgspec.json.decode(said, type=growing.Point)
    assert point.seconds > 0
    assert point.memory > 0


def test_what_a_matrix_costs_is_divided_once() -> None:
    usual = {
        name: vars(PairProgram)[name] for names in matrix_time.PARTS.values() for name in names
    }
    programs = plan_universe("two", "push", 0).programs
    found = matrix_time.measure("push", programs, 100)
    assert (found.programs, found.executions > len(programs)) == (len(programs), True)
    assert all(share > 0 for share in found.shares.values())
    assert sum(found.shares.values()) < 1, "no time is counted twice"
    assert str(found).startswith(f"{len(programs)} programs, {found.executions} executions, ")
    assert usual == {name: vars(PairProgram)[name] for name in usual}, "what was there is back"


def test_a_copied_recording_is_one_clean_history(tmp_path: Path) -> None:
    """Each copy has messages, connections, queues and a time of its own: what one copy was found to be, all are."""
    file = tmp_path / "recorded.jsonl"
    whole_audit.write_recorded(32_000, file)
    history = read_history(file)
    assert not history.quarantine
    assert len(history.events) == 32_000
    assert len({e.q for e in history.events if e.q}) == 3
    stamps = [e.t for e in history.events if e.t is not None]
    assert stamps == sorted(stamps)
    assert len({e.m for e in history.events if e.ev == "publish"}) > 3000 + 4000


@pytest.mark.slow
@pytest.mark.parametrize("kind", whole_audit.KINDS)
def test_whole_audits_are_measured(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole_audit.main(2000, [kind])
    assert re.fullmatch(
        rf"{kind}, 2,000 events: .* us .*, peak \d+ MB; .* ok.*\n", capsys.readouterr().out
    )


def test_the_peers_count_what_the_pipeline_counts(tmp_path: Path) -> None:
    """The bench ends in an error if they do not, as it did once priorities were in the history."""
    files = pipelines.history(tmp_path / "history", 20_000)
    ingest(Inline(), plan([tmp_path / "history"]), tmp_path / "kept")
    _, _, counted = pipelines.apart(sys.executable, pipelines.PLAIN, files)
    assert counted[1] == 3
    assert counted == pipelines.one_process(tmp_path / "kept", ["P4"])
