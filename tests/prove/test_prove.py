"""Proofs: a true contract is proved, a false one is refuted."""

from pathlib import Path

import pytest

from seriatim_workshop.formal import manifest
from seriatim_workshop.proofs.run import (
    MODELS,
    OPEN,
    WITHOUT,
    Function,
    ProofResult,
    functions,
    line,
    lint,
    prove,
    without_contract,
)

TRUE = """
import deal

@deal.ensure(lambda n, result: result >= n)
@deal.pure
def next_even(n: int) -> int:
    return n + n % 2
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    (tmp_path / "right.py").write_text(TRUE, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(TRUE.replace("n + n", "n - n"), encoding="utf-8")
    return tmp_path


def test_pure_functions_of_the_reference_are_found() -> None:
    found = {f.target: f for f in functions()}
    assert {"seriatim.message.sub_queue", "seriatim.queue.legal"} <= set(found)
    assert found["seriatim.message.sub_queue"].promises


def test_a_false_contract_is_refuted_and_a_true_one_is_not(written: Path) -> None:
    verdicts = {f.target: prove(f, 10, written).verdict for f in functions(written)}
    assert verdicts["wrong.next_even"] == "refuted"
    assert verdicts["right.next_even"] != "refuted"


def test_a_function_that_promises_nothing_is_not_called_proved() -> None:
    assert prove(Function("seriatim.queue.legal", ("pure",), promises=False)).verdict == "open"


def test_reference_lints_clean() -> None:
    assert lint() == (0, "")


def test_every_function_has_a_contract_or_a_reason() -> None:
    assert {name.rpartition(".")[0] for name in without_contract()} == set(WITHOUT)


def test_the_manifest_has_the_outcome_of_every_contract() -> None:
    pinned = {run.function: run for run in manifest.read().contracts}
    every = [*functions(), *functions(MODELS, "contract_properties.py")]
    assert set(pinned) == {function.target for function in every}
    for run in pinned.values():
        assert run.verdict == ("open" if run.function in OPEN else "proved")
        assert run.says


def test_an_outcome_is_a_line_of_80_columns_and_a_reason_where_it_is_open() -> None:
    for target in (*OPEN, "seriatim.message.sub_queue"):
        verdict = "open" if target in OPEN else "proved"
        shown = line(ProofResult(Function(target, ("pure",), True), verdict, "confirmed"))
        assert max(map(len, shown.splitlines())) <= 80
        assert len(shown.splitlines()) > (verdict == "open")
