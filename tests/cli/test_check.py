"""`seriatim check`: which programs run, what is printed, and the exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from seriatim_models.cli.console import ProgressDisplay
from seriatim_models.cli.report_builder import edit


def test_all_programs_are_checked_and_well(world: Any, run: Any) -> None:
    ran = run("check")
    assert ran.code == 0
    assert [asked["program"] for asked in world.asked] == ["enqueue-enqueue", "enqueue-consume"]
    assert "enqueue-consume" in ran.out
    assert "every schedule" in ran.out


def test_the_named_programs_run_in_their_order(world: Any, run: Any) -> None:
    run("check", "enqueue-consume", "enqueue-enqueue", "enqueue-consume")
    assert [asked["program"] for asked in world.asked] == ["enqueue-consume", "enqueue-enqueue"]


def test_a_violation_leaves_with_1_and_shows_the_interleaving(world: Any, run: Any) -> None:
    world.violated.add("enqueue-consume")
    ran = run("check")
    assert ran.code == 1
    assert "| x.set(<b>1</b>)" in ran.out
    assert "seriatim show s1-abc" in ran.out


def test_an_open_search_leaves_with_3(world: Any, run: Any) -> None:
    world.inconclusive.add("enqueue-consume")
    assert run("check").code == 3


def test_a_violation_outweighs_an_open_search(world: Any, run: Any) -> None:
    world.inconclusive.add("enqueue-enqueue")
    world.violated.add("enqueue-consume")
    assert run("check").code == 1


def test_json_on_standard_output_has_it_to_itself(world: Any, run: Any) -> None:
    ran = run("check", "--json", "-")
    found = json.loads(ran.out)
    assert found["schema"] == "seriatim-verdicts/1"
    assert (found["verdict"], found["exit_code"], found["traces"]) == ("ok", 0, 24)
    assert found["results"][0] == {
        "property": "SO-1",
        "verdict": "ok",
        "n_tested": 4,
        "n_untestable": 0,
        "n_violations": 0,
        "subject": "enqueue-enqueue",
        "witness": [],
        "explanation": "",
        "sentence": "What SO-1 says.",
        "kind": "program",
    }
    assert "enqueue-consume" in ran.err


def test_json_carries_the_witness(world: Any, run: Any, tmp_path: Path) -> None:
    world.violated.add("enqueue-enqueue")
    file = tmp_path / "deep" / "verdicts.json"
    run("check", "--json", str(file))
    found = json.loads(file.read_text())
    assert found["results"][0]["witness"] == [{"i": 1, "ev": "deliver", "m": "x"}]
    assert found["programs"][0]["counterexample"]["token"] == "s1-abc"


def test_junit_counts_failures_and_skips(world: Any, run: Any, tmp_path: Path) -> None:
    world.violated.add("enqueue-consume")
    run("check", "--junit", str(tmp_path / "j.xml"))
    suites = ET.parse(tmp_path / "j.xml").getroot().findall("testsuite")
    assert [(s.get("name"), s.get("failures")) for s in suites] == [
        ("enqueue-enqueue", "0"),
        ("enqueue-consume", "1"),
    ]


def test_a_mutant_runs_with_its_own_program(world: Any, run: Any) -> None:
    world.violated.add("skip-lock")
    ran = run("check", "--mutant", "skip-lock")
    assert ran.code == 1
    assert world.asked[0] | {"program": "enqueue-consume", "mutant": "skip-lock"} == world.asked[0]


def test_mutants_that_die_as_they_must_are_well(world: Any, run: Any) -> None:
    world.violated |= {"skip-lock", "published-immediate"}
    ran = run("check", "--mutants")
    assert ran.code == 0
    assert "2 of 2 mutants killed as expected" in ran.out


def test_a_mutant_that_survives_leaves_with_1(world: Any, run: Any) -> None:
    world.violated.add("skip-lock")
    ran = run("check", "--mutants")
    assert ran.code == 1
    assert "it survives" in " ".join(ran.out.split())


def test_processes_to_spare_split_a_program(world: Any, run: Any) -> None:
    ran = run("check", "enqueue-enqueue", "--jobs", "2")
    assert world.asked[0]["jobs"] == 2
    assert "enqueue-enqueue: 2 processes shared the search" in ran.out
    ran = run("check", "enqueue-enqueue", "--jobs", "2", "--strategy", "pct")
    assert world.asked[1]["jobs"] == 1


def test_an_edit_shows_only_what_differs() -> None:
    found = edit(
        "    one()\n    two()\n\n    # after", "    one()\n    if a:\n        two()\n\n    # after"
    )
    assert (found.reference, found.mutant) == ("two()", "if a:\n    two()")


def test_a_mutant_not_found_in_time_leaves_with_3(world: Any, run: Any) -> None:
    world.violated.add("skip-lock")
    world.inconclusive.add("enqueue-enqueue")
    ran = run("check", "--mutants")
    assert ran.code == 3
    assert "the search was cut short" in " ".join(ran.out.split())


def test_the_mutants_verdicts_say_what_they_must_be(world: Any, run: Any) -> None:
    world.violated |= {"skip-lock", "published-immediate"}
    found = json.loads(run("check", "--mutants", "--json", "-").out)
    assert [(r["verdict"], r["expected"]) for r in found["results"]] == [
        ("violated", "violated")
    ] * 2
    assert found["mutants"][0]["killed_by"] == ["SO-1"]
    assert found["mutants"][0]["as_expected"] is True


def test_sampling_ends_by_itself_and_can_be_repeated(world: Any, run: Any) -> None:
    found = json.loads(
        run("check", "enqueue-enqueue", "--strategy", "pct", "--seed", "7", "--json", "-").out
    )
    assert world.asked[0]["seconds"] == 10
    assert (
        found["programs"][0]["command"] == "seriatim check enqueue-enqueue --strategy pct --seed 7"
    )


def test_a_token_is_replayed(world: Any, run: Any) -> None:
    ran = run("check", "--replay", "s1-abc")
    assert ran.code == 1
    assert "| x.set(<b>1</b>)" in ran.out


def test_a_pipe_gets_no_colours(world: Any, run: Any) -> None:
    ran = run("check")
    assert "\x1b" not in ran.out + ran.err


def test_progress_in_a_pipe_is_one_line_per_program(world: Any, run: Any) -> None:
    lines = run("check").err.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "[1/2] enqueue-enqueue",
        "[2/2] enqueue-consume",
    ]


def test_progress_of_many_items_in_a_pipe_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`make run` in a pipe had a line for each of 290 mutants."""
    with ProgressDisplay(290, "mutants").running() as work:
        for n in range(1, 291):
            work.finished(f"mutant {n}", 0.0)
    assert capsys.readouterr().err.splitlines() == ["[290/290] mutant 290: 0.0 s"]


def test_the_live_line_always_says_how_many_are_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns the text on the search had pushed the count, the noun and the time off the line."""
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "80")):
        monkeypatch.setenv(name, value)
    with ProgressDisplay(290, "mutants").running() as work:
        work.describe("published-put-in-the-channels-lock")
        work.note(
            "", "11,688 executions, 194/s, about 20,062 in all, going by 58.26% of the search tree"
        )
        plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().err)
    line = plain.split("\r")[-1].split("\n")[-1]
    assert "0/290 mutants 0:00:00 published-put-in-the-channels-lock 11,688" in line
    assert len(line.strip()) <= 80


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["check", "enqueue-consum"],
            "there is no program 'enqueue-consum'; did you mean 'enqueue-consume'?",
        ),
        (
            ["check", "--mutant", "skip-lok"],
            "there is no mutant 'skip-lok'; did you mean 'skip-lock'?",
        ),
        (["check", "zzz"], "there is no program 'zzz'; known are enqueue-enqueue, enqueue-consume"),
        (["chekc"], "No such command 'chekc'. Did you mean 'check'?"),
        (["check", "--mutants", "--mutant", "skip-lock"], "choose one"),
        (["check", "enqueue-enqueue", "--mutants"], "choose one"),
        (["check", "--budget", "0"], "--budget"),
        (["check", "--strategy", "dijkstra"], "'dijkstra' is not one of"),
        (["check", "--replay", "nonsense"], "cannot replay 'nonsense': the token does not begin"),
        (["check", "--json", "-", "--html", "-"], "only one of"),
        (["check", "--json", "/dev/null/no"], "cannot write /dev/null/no"),
    ],
)
def test_rejects_what_cannot_be_meant(
    world: Any, run: Any, arguments: list[str], sentence: str
) -> None:
    assert sentence in run(*arguments).complaint
