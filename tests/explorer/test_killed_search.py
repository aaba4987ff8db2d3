"""A search in several processes whose first process is killed: the others end, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

SEARCH = """
import os
from seriatim_models.explorer import World, explore

def program(world: World) -> None:
    cell = world.cell(0)
    def work() -> None:
        for n in range(6):
            cell.set(n)
    for _ in range(3):
        world.spawn(work)

explore(program, on_execution=lambda world: os.write(1, f"{os.getpid()}\\n".encode()) and None, jobs=2)
"""
"""A search that takes far longer than a test; each execution says which process made it."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_process_of_a_search_ends_when_the_first_one_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SEARCH], stdout=subprocess.PIPE, start_new_session=True
    ) as search:
        assert search.stdout is not None
        for line in search.stdout:
            if int(line) != search.pid:
                break
        search.kill()
        # Whoever lives on has the other end of the pipe.
        try:
            search.communicate(timeout=40)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(search.pid, signal.SIGKILL)
