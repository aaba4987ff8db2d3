"""The table of spec/MATRIX.md: what can be counted in seconds is counted again; the rest is for `.ci/run`."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.matrix.plan import plan
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import Matrix, add_up
from seriatim_models.matrix.work import Waves, perform_here, run_waves
from seriatim_workshop import matrix_table, page_tables

PAGE = (Path(__file__).resolve().parents[2] / "spec" / "MATRIX.md").read_text(encoding="utf-8")
ROWS = matrix_table.rows_of(PAGE)
AGAIN = "run python -m seriatim_workshop.matrix_table spec/MATRIX.md and look at the difference"


def test_every_system_has_a_row_at_its_depth() -> None:
    assert {name: row[0] for name, row in ROWS.items()} == matrix_table.DEPTHS


@pytest.mark.parametrize("system", SYSTEMS)
def test_cells_states_calls_and_programs_are_those_there_are(system: str) -> None:
    planned = plan(system, matrix_table.DEPTHS[system])
    cells = len(add_up(planned.programs, ()))
    found = (cells, planned.states, planned.edges, len(planned.programs))
    assert ROWS[system][2:6] == found, AGAIN
    assert planned.problems == []


@pytest.mark.parametrize("system", ["log", "fair"])
def test_the_executions_are_those_of_a_run(system: str) -> None:
    planned = plan(system, matrix_table.DEPTHS[system])
    waves = Waves(system, planned.programs)
    assert run_waves(waves, perform_here)
    cells = add_up(planned.programs, waves.results.values())
    made = Matrix(system, matrix_table.DEPTHS[system], planned.states, planned.edges, (), cells, [])
    assert ROWS[system] == matrix_table.numbers(made), AGAIN


def test_a_table_can_be_read_back() -> None:
    first, *others = SYSTEMS
    made = [Matrix(name, 1, 1000, 7, (), [], []) for name in others]
    made.append(Matrix(first, 0, 1000, 7, (), [], []))
    text = page_tables.replaced(
        PAGE, matrix_table.BEGIN, matrix_table.END, matrix_table.table(made)
    )
    rows = matrix_table.rows_of(text)
    assert rows[first] == matrix_table.numbers(made[-1])
    assert matrix_table.sentence(text) == (
        f"0 of 0 cells proved at depth 1 (`seriatim matrix {' '.join(others)} --depth 1`), "
        f"0 of 0 cells proved at depth 0 (`seriatim matrix {first} --depth 0`): "
        f"{len(SYSTEMS)},000 states, 0 programs, 0 executions."
    )
