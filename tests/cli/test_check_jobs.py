"""One program split between processes: the same traces, and the same sums of what its properties tested."""

from __future__ import annotations

from seriatim_models.programs import MUTANTS, PROGRAMS, check_program


def test_a_split_program_is_judged_as_a_whole() -> None:
    program = PROGRAMS["enqueue-enqueue"]
    alone, split = check_program(program), check_program(program, jobs=2)
    assert split.explored.split is not None
    assert split.explored.split.parts > 1
    assert (split.explored.split.repeated, split.explored.split.blocked) == (0, 0)
    assert split.explored.traces == alone.explored.traces == program.traces
    assert split.findings == alone.findings
    assert min(f.n_tested for f in split.findings) >= program.traces


def test_a_split_search_reports_the_right_property() -> None:
    mutant = next(m for m in MUTANTS.values() if m.program == "enqueue-enqueue")
    found = check_program(PROGRAMS[mutant.program], mutant, jobs=2, keep_going=True)
    assert found.explored.split is not None
    assert [f.property for f in found.findings if f.verdict == "violated"] == [mutant.killed_by]
    alone = check_program(PROGRAMS[mutant.program], mutant, keep_going=True)
    assert found.explored.violations == alone.explored.violations
    assert found.findings[0].n_tested == alone.findings[0].n_tested
