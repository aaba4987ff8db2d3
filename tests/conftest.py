"""What concerns the tests of every folder."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# A shell without job control starts what it puts into the background with Ctrl-C ignored, and so all that that starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Of a developer's shell, or xdist's: a test that needs a width says which.
os.environ.pop("COLUMNS", None)

SHARED = {
    "spark": re.compile(r"tests/pipeline/test_(bad_input|ingest|spark|stream)\.py|::TestOnSpark::"),
    "browser": re.compile(r"tests/report/test_\w+_in_a_browser\.py"),
    "queue_histories": re.compile(r"tests/properties/test_(whitebox|definitions)\.py"),
    "stories": re.compile(r"tests/lessons/"),
    "syntax_trees": re.compile(r"tests/test_(house|style)\.py"),
}
"""What is costly to make, most of it a fixture, and the addresses of the tests that share it in one process, first."""

LONG = (
    "tests/programs/test_mutants.py",
    "tests/pipeline/test_session.py",
    "tests/pipeline/test_stream_shown.py",
    "tests/machines/",
    "tests/properties/test_prefilter.py",
    "tests/stress/",
    "tests/explorer/",
)
"""Where the longest tests are. They begin first, so that no process is left with a long one at the end."""

SAMPLED = {
    "tests/cli/test_files_that_change.py::test_what_is_said_of_a_file_that_changes_is_true": 5,
    "tests/explorer/test_repetition.py::test_a_history_judged_once_counts_for_each_execution": 4,
    "tests/explorer/test_repetition.py::test_histories_of_the_programs_are_those_of_their_schedules": 4,
    "tests/formal/test_refactorings.py::test_a_right_refactoring_is_accepted": 4,
    "tests/log/test_crash.py::test_a_disk_that_drops_and_reorders_what_was_not_synced_loses_nothing": 3,
    "tests/machines/test_concurrent.py::test_reference_passes_where_it_failed_before": 2,
    "tests/machines/test_matrix_scenes.py::test_hand_over_is_right_in_its_states": 3,
    "tests/machines/test_order_programs.py::test_a_mistake_of_order_is_caught_by_name": 4,
    "tests/own_code/test_asyncio.py::test_right_code_is_exhausted": 3,
    "tests/own_code/test_library.py::test_the_verdict_is_that_of_its_name": 3,
    "tests/programs/test_data_races.py::test_program_has_no_data_race": 4,
    "tests/programs/test_mutants.py::test_mutant_is_killed_by_its_property_and_the_others_it_names": 2,
    "tests/properties/test_blackbox_cuts.py::test_cut_anywhere_and_combined_equals_the_whole": 3,
    "tests/properties/test_case_events.py::test_without_case_events_there_is_no_case": 4,
    "tests/properties/test_planted_faults.py::test_a_fault_is_found": 3,
    "tests/properties/test_prefilter.py::test_a_brokers_faults_are_found_and_most_messages_are_regular": 3,
    "tests/properties/test_seen_otherwise.py::test_who_sees_otherwise_reports_nothing_new": 2,
    "tests/properties/test_whitebox.py::test_cut_anywhere_and_combined_is_the_whole": 3,
    "tests/report/test_interleaving_text.py::test_no_line_is_wider_than_the_terminal": 3,
}
"""Tests that make one claim of many programs, mutants or seeds: `make test` runs one case in so many, from the first
one on, and `make test-slow` the others."""


class ByFixture(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives a process one test at a time, or all tests that share a costly fixture.

    It goes by addresses: the process that distributes tests knows nothing else of them. (The marks of
    ``--dist loadgroup`` are without effect: pytest 9.2 no longer reads what xdist 3.8 writes them to.)
    """

    def _split_scope(self, nodeid: str) -> str:
        return shared(nodeid) or nodeid


def shared(nodeid: str) -> str | None:
    """The costly fixture that a test shares, by its address."""
    return next((name for name, of in SHARED.items() if of.search(nodeid)), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFixture:
    """The scheduler, which keeps the order below.

    With it a run would wait for ever once a process has died and another has come in its place, so
    pyproject.toml forbids that: the run ends, and the test that was under way has failed.
    """
    config.option.loadscopereorder = False
    return ByFixture(config, log)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is sampled, and put those that share a fixture first, then long ones.

    Raises `UsageError` if a test uses a costly fixture and its address is not in `SHARED`.
    """
    groups = [*SHARED, None]
    cases = Counter[str]()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if cases[test] % SAMPLED.get(test, 1) or item.get_closest_marker("night"):
            item.add_marker(pytest.mark.slow)
        cases[test] += 1
        for fixture in set(SHARED) & set(getattr(item, "fixturenames", ())):
            if shared(item.nodeid) != fixture:
                raise pytest.UsageError(
                    f"{item.nodeid} uses {fixture}, and SHARED in {__file__} leaves it out"
                )
    items.sort(
        key=lambda item: (groups.index(shared(item.nodeid)), not item.nodeid.startswith(LONG))
    )
