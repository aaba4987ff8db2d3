"""The list of pure functions: what is pure, and that each has a contract, a claim or a reason."""

from pathlib import Path

import pytest

from seriatim_workshop.formal import SPEC, manifest
from seriatim_workshop.proofs import contracts_page
from seriatim_workshop.proofs.contracts_page import MODELS, OWN, claimed, page, takes_numbers
from seriatim_workshop.proofs.pure import pure
from seriatim_workshop.proofs.run import REFERENCE

MODULE = """
import functools
from dataclasses import dataclass
from math import ceil

SEEN = []

def half(n: int) -> int:
    return ceil(n / 2)

def quarter(n: int) -> int:
    return half(half(n))

def evens(numbers: list[int]) -> list[int]:
    found = []
    for n in numbers:
        if n % 2 == 0:
            found.append(n)
    return found

def adds_to_its_argument(numbers: list[int]) -> None:
    numbers.append(1)

def takes_the_place(numbers: list[int]) -> None:
    numbers[0] = 1

def remembers(n: int) -> None:
    SEEN.append(n)

def prints(n: int) -> None:
    print(n)

def by_way_of_another(n: int) -> None:
    prints(n)

def reads_a_cell(cell: object) -> int:
    return cell.get()

def calls(f: object) -> int:
    return f()

def yields(n: int):
    yield n

def assigns(cell: object) -> None:
    cell.value = 1

@dataclass(frozen=True)
class Point:
    x: int

    def moved(self, by: int) -> "Point":
        return Point(self.x + by)

@dataclass
class Counter:
    n: int

    def more(self) -> int:
        return self.n + 1
"""


def test_what_only_computes_is_pure(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODULE, encoding="utf-8")
    assert {f.name for f in pure(tmp_path)} == {"m.half", "m.quarter", "m.evens", "m.Point.moved"}


def test_the_page_is_up_to_date() -> None:
    assert (SPEC / "CONTRACTS.md").read_text(encoding="utf-8") == page()


def test_each_that_takes_numbers_has_a_contract_or_a_reason() -> None:
    """And no reason stands there for what is not pure, or is not there any more."""
    every = {f.name: f for root in (REFERENCE, MODELS) for f in pure(root)}
    contracts = {run.function for run in manifest.read().contracts} | set(claimed())
    without = {name for name, f in every.items() if takes_numbers(f) and name not in contracts}
    assert without <= set(OWN)
    assert set(OWN) <= set(every) - contracts


def test_each_pure_function_of_the_reference_has_a_contract_or_a_reason_of_its_own() -> None:
    contracts = {run.function for run in manifest.read().contracts}
    assert {f.name for f in pure(REFERENCE)} <= contracts | set(OWN)


def test_a_function_without_a_reason_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(contracts_page.OWN, "seriatim_models.report.timeline._x")
    with pytest.raises(KeyError):
        page()
