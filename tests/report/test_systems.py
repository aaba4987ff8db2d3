"""The tables beside the steps say of client, log and fair consumer what these say of themselves at rest."""

from __future__ import annotations

from typing import Any

import pytest

from seriatim_models.explorer import Pct, World, explore
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.check import runnable
from seriatim_models.report.reconstruct import Reconstruction


def at_rest(program: str, ev: str) -> list[tuple[Reconstruction, dict[str, Any]]]:
    """What is known at the end of some executions, and what the system then records of itself."""
    found = []

    def look(world: World) -> None:
        now = Reconstruction()
        for record in world.records:
            now.record(record)
        found.append((now, next(dict(r.args) for r in world.records if r.ev == ev)))

    explore(runnable(PROGRAMS[program], None), Pct(seed=1), max_executions=20, on_execution=look)
    assert len(found) >= 20
    return found


@pytest.mark.parametrize("program", ["pool-one-channel", "pool-two-channels", "pool-raises"])
def test_the_work_pool(program: str) -> None:
    for now, recorded in at_rest(program, "cli_rest"):
        pool = now.client.work
        assert {k: w.queued for k, w in pool.items()} == recorded["queued"]
        assert not any(w.taken or w.running for w in pool.values())


@pytest.mark.parametrize("program", ["settle", "consume"])
def test_the_server(program: str) -> None:
    for now, recorded in at_rest(program, "srv_rest"):
        unacked = {c: sorted(u) for c, u in now.client.unacked.items() if u}
        assert unacked == {c: sorted(_tags(u)) for c, u in recorded["unacked"].items() if u}


def _tags(unacked: Any) -> list[int]:
    """They are recorded as tags, or as lists that begin with one."""
    return [u[0] if isinstance(u, list | tuple) else u for u in unacked]


@pytest.mark.parametrize("program", ["log-rest", "log-two-messages", "log-poison"])
def test_the_log(program: str) -> None:
    for now, recorded in at_rest(program, "log_rest"):
        for name, state in recorded["channels"].items():
            assert now.log.channels[name].place == state["place"]
            assert now.log.channels[name].parked == len(state["parked"])


@pytest.mark.parametrize("program", ["fair-park", "fair-rounds", "fair-heavy"])
def test_the_fair_consumer(program: str) -> None:
    for now, recorded in at_rest(program, "fair_rest"):
        assert sum(len(s.waiting) for s in now.fair.slots.values()) == recorded["waiting"]


def test_records_of_somebody_else_under_these_names_do_no_harm() -> None:
    from seriatim_models.explorer.model.world import Record

    now = Reconstruction()
    for ev in ("pool_put", "work_end", "srv_push", "cli_call", "append", "handle", "take", "visit"):
        for args in ({}, {"k": 1, "channel": None, "slot": "x", "w": 3, "place": 7, "ph": "ok"}):
            now.record(Record(1, "a", ev, dict(args)))
    assert now.state() is not None
