"""Generic mutants: each is another program, and judging tells right from wrong."""

import ast
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim_models.programs import PROGRAMS
from seriatim_workshop.mutation import run
from seriatim_workshop.mutation.equivalent import EQUIVALENT
from seriatim_workshop.mutation.operators import FILES, ROOT, mutations
from seriatim_workshop.mutation.run import judge
from seriatim_workshop.reach import EXPLAINED, Reach


def test_each_mutation_is_another_module_that_compiles() -> None:
    every = list(mutations("host"))
    right = ast.unparse(every[0].tree)
    for m in every:
        compile(m.source, "mutant", "exec")
        assert m.source != right
    assert len({m.key for m in every}) == len(every)


def test_what_is_said_to_be_equivalent_is_a_mutation_still() -> None:
    gone = set(EQUIVALENT) - {m.name for file in FILES for m in mutations(file)}
    assert not gone, f"the reference has changed: read again, or take out of EQUIVALENT, {gone}"


def test_what_only_tells_is_left_alone() -> None:
    assert not [m for m in mutations("queue") if "record(" in m.what]


@pytest.mark.parametrize(
    "what",
    [
        "dropped: self._announce(entry)",
        "self.host.now() >= entry.message.not_before -> self.host.now() < entry.message.not_before",
    ],
)
def test_a_wrong_reference_is_caught(what: str) -> None:
    found = [m for m in mutations("queue") if m.what == what]
    assert found
    assert judge("queue", found[0].source).outcome == "caught"


def test_what_does_not_load_is_caught() -> None:
    assert judge("queue", "raise ValueError('no')").outcome == "caught"


def test_a_test_that_runs_out_of_time_is_not_caught(tmp_path: Path) -> None:
    """A busy machine makes tests slow, which violates no property."""
    (tmp_path / "test_slow.py").write_text("import time\ndef test(): time.sleep(60)\n", "utf-8")
    script = (
        "import pathlib\n"
        "from functools import partial\n"
        "from seriatim_workshop.mutation import kill_suite\n"
        f"kill_suite.TESTS = pathlib.Path({str(tmp_path)!r})\n"
        "kill_suite.TEST_SECONDS = 1\n"
        "kill_suite.judges = lambda file: [(60, partial(kill_suite.tests, '.'))]\n"
        "kill_suite.main(['fair'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -signal.SIGXCPU, done.stdout + done.stderr
    assert "Timeout" in done.stdout.splitlines()[-1]


@pytest.mark.slow  # every check of one reference
@pytest.mark.timeout(400)
def test_the_reference_in_other_words_survives() -> None:
    """Nothing that judges it hangs on its text: the known mutants, whose text this has not, are left out."""
    text = (ROOT / "reference" / "seriatim" / "fair.py").read_text(encoding="utf-8")
    assert judge("fair", ast.unparse(ast.parse(text))).outcome == "survived"


@pytest.mark.slow
def test_processes_that_a_test_starts_see_the_mutant() -> None:
    """Wrong only where pytest is not loaded: in the process that a test kills at every change of real files."""
    right = (ROOT / "reference" / "seriatim" / "log.py").read_text(encoding="utf-8")
    text = f"{right}\nimport sys\nif 'pytest' not in sys.modules:\n    del Files.append\n"
    assert "killed_at_every_change" in judge("log", text).by


@pytest.mark.slow
def test_going_round_in_circles_is_caught() -> None:
    assert judge("queue", "while True: pass", limit=2).outcome == "out of time"


def test_who_sleeps_is_in_nobodys_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first sleeps until the second is judged, so this would wait for ever if it were in the way."""
    monkeypatch.setattr(run, "NAP", 1)
    judged = tmp_path / "judged"
    wrong = "raise ValueError('no')"
    sleeps = (
        "import pathlib, time\n"
        f"while not pathlib.Path({str(judged)!r}).exists(): time.sleep(0.2)\n{wrong}"
    )
    outcomes = run.judge_all([("queue", sleeps), ("queue", wrong)], jobs=1)
    assert next(outcomes)[0] == 1
    judged.touch()
    assert [n for n, _ in outcomes] == [0]


def test_probes_see_what_is_run_and_only_that() -> None:
    reach = Reach()
    before = len(reach.missed())
    reach.explore(PROGRAMS["two-takers"].build, None, 10_000)
    missed = {name for _, name in reach.missed()}
    assert len(missed) < before
    assert "Queue._take: entry.change(seen, consumer.acquired) -> False" not in missed
    assert "Queue.close: called" in missed


def test_what_is_explained_stands_in_the_reference() -> None:
    assert set(EXPLAINED) <= {name for _, name in Reach().missed()}
