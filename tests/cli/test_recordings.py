"""The command over the recordings of a real broker, nothing faked."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
LOCKSTEP = str(DATA / "rabbit-classic-lockstep.jsonl.gz")


def verdicts(out: str) -> dict[str, str]:
    return {result["property"]: result["verdict"] for result in json.loads(out)["results"]}


def test_the_broker_kept_the_promise_of_its_own_profile(run: Any) -> None:
    ran = run("audit", LOCKSTEP, "--profile", "rabbit-classic", "--json", "-")
    assert ran.code == 0
    assert set(verdicts(ran.out).values()) == {"ok", "inconclusive"}


def test_the_broker_broke_the_stricter_promise(run: Any) -> None:
    ran = run("audit", LOCKSTEP, "--profile", "strict-qpid", "--json", "-")
    assert ran.code == 1
    assert [id for id, verdict in verdicts(ran.out).items() if verdict == "violated"] == ["P6"]


def test_a_file_with_half_its_lines_broken_still_gets_a_verdict(run: Any, tmp_path: Path) -> None:
    lines = gzip.decompress(Path(LOCKSTEP).read_bytes()).decode().splitlines()
    broken = [line if n % 2 == 0 else line[: len(line) // 2] for n, line in enumerate(lines)]
    file = tmp_path / "half.jsonl"
    file.write_text("\n".join(broken))
    ran = run("audit", str(file), "--json", "-")
    found = json.loads(ran.out)
    assert ran.code == found["exit_code"] != 2
    assert found["quarantined"] == len(lines) // 2
    assert found["audits"][0]["events"] == len(lines) - len(lines) // 2 - 1


def test_rejects_a_file_that_is_no_recording(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("dear diary\n")
    ran = run("audit", str(file))
    assert ran.code == 2
    assert f"{file}: line 1" in ran.err


def test_rejects_another_schema(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "h.jsonl"
    file.write_text('{"schema": "qh/7"}\n')
    ran = run("audit", str(file))
    assert ran.code == 2
    assert f"{file}: line 1: field schema" in ran.err


def test_a_recording_is_shown(run: Any) -> None:
    ran = run("show", LOCKSTEP)
    assert ran.code == 0
    assert "deliver" in ran.out


def test_the_page_of_an_audit_has_what_had_a_case_and_folds_the_rest(
    run: Any, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert run("audit", LOCKSTEP, "--html", str(page)).code == 0
    shown = page.read_text()
    assert "No message is lost, none comes from nowhere" in shown.partition("<details>")[0]
    assert "properties without a case in this recording" in shown
