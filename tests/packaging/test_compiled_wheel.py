"""The wheel whose search is compiled (`HATCH_BUILD_HOOK_ENABLE_MYPYC=1`): what it explores is what pure Python does.

Needs a package registry and a C compiler. See spec/decisions/compiled-search.md.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seriatim_workshop.bench.compiled import printed, unpacked

pytestmark = [pytest.mark.slow, pytest.mark.scale, pytest.mark.timeout(900)]

EXPLORED = """
import hashlib, json
from seriatim_models.explorer.search import dpor
from seriatim_models.programs import MUTANTS, PROGRAMS, check_program

def of(result):
    found = result.explored
    forms = sorted(map(repr, found.trace_set or ()))
    return [
        result.verdict, found.executions, found.traces, found.steps, found.depth, found.redundant, found.blocked,
        sorted((repr(o), n) for o, n in found.outcomes.items()), sorted(found.ends.items()),
        hashlib.sha256(repr(forms).encode()).hexdigest(),
        [(f.property, f.verdict, f.n_tested, f.n_untestable) for f in result.findings],
        found.counterexample and found.counterexample.token,
    ]

def line(name, *of_it, **more):
    print(json.dumps([name, *of(check_program(*of_it, max_executions=40, **more))]))

print(json.dumps([dpor.__file__]))
for program in PROGRAMS.values():
    line(program.id, program, trace_set=True)
for mutant in list(MUTANTS.values())[::10]:
    line(mutant.id, PROGRAMS[mutant.program], mutant)
"""
"""A line with all that a search says, for each program and for every tenth mutant, each up to 40 executions."""

AGREEING = """
from seriatim_workshop.crosscheck.generated_programs import generate, with_identical_threads
from seriatim_workshop.crosscheck.run import compare_generated

programs = [generate(n) for n in range(150)]
programs += map(with_identical_threads, programs[::3])
found = [compare_generated(program) for program in programs]
print([f.wrong for f in found if f.wrong], sum(not f.too_large for f in found))
"""
"""What is wrong with the search beside brute force, and how many generated programs were compared."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled wheel, unpacked."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here: the compiled wheel cannot be built")
    return unpacked(tmp_path_factory.mktemp("compiled"))


def test_the_compiled_search_says_of_every_program_what_the_pure_one_says(compiled: Path) -> None:
    [pure_file, *pure] = printed(["-c", EXPLORED])
    [compiled_file, *fast] = printed(["-c", EXPLORED], compiled)
    assert pure_file.endswith('.py"]')
    assert compiled_file.endswith('.so"]')
    assert str(compiled) in compiled_file
    assert len(pure) > 300
    assert fast == pure


def test_the_compiled_search_agrees_with_brute_force(compiled: Path) -> None:
    [said] = printed(["-c", AGREEING], compiled)
    wrong, compared = said.rsplit(maxsplit=1)
    assert wrong == "[]"
    assert int(compared) > 30
