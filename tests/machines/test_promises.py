"""What the tables of the client, the log and the fair consumer say of each call holds in every state that is reached.

A call that must be refused raises one of the system's own errors and changes nothing; one that is without effect
returns and changes nothing. A request that the server refuses closes its channel with the code that AMQP has for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seriatim_models.machines.calls import ApiCall, CallStanding
from seriatim_models.machines.client.calls import (
    CLIENT,
    POOL,
    ClientHarness,
    PoolHarness,
    reply_code,
)
from seriatim_models.machines.client.state import pool_state_text
from seriatim_models.machines.client.state import state_text as client_state
from seriatim_models.machines.fair.calls import FAIR, FairHarness
from seriatim_models.machines.log.calls import LOG, LogHarness
from seriatim_models.machines.log.state import state_text as log_state
from seriatim_models.programs import MUTANTS, Mutant
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.machines.at_rest import BrokenPromise, Walker, walk
from seriatim_workshop.machines.fair.state import state_text as fair_state

WALKS = {"client": 40, "pool": 15, "log": 30, "fair": 8}
LENGTH = 12


CODES: set[int] = set()
"""The codes with which channels were closed."""


def expect_code(
    harness: ClientHarness, call: ApiCall, arguments: dict[str, Any]
) -> Callable[[Exception | None], object]:
    """A channel error closes the channel, with its code, and no other."""
    code = reply_code(harness, call.name, arguments) if harness.executor._open else 0
    open_before = [c for c in harness.channels if c.closed is None]

    def check(error: Exception | None) -> None:
        if not code:
            return
        CODES.add(code)
        closed = {c.key: c.closed.code for c in open_before if c.closed is not None}
        if closed != {arguments["channel"].key: code}:
            raise BrokenPromise(f"{call.name} {arguments} closed {closed}, {code} was due")

    return check


def client_walker(lib: Any, seed: int) -> Walker[ClientHarness]:
    return Walker(
        lambda world: ClientHarness(world, lib, 1, 2, (None, 1)[seed % 2], 1 + seed % 3 % 2),
        CLIENT,
        client_state,
        (lib.Closed, lib.CallTimeout, lib.Misuse),
        expect_code,
        frozenset({"close_connection", "fail", "disconnect", "shutdown", "close"}),
    )


def pool_walker(lib: Any, seed: int) -> Walker[PoolHarness]:
    return Walker(
        lambda world: PoolHarness(world, lib, 1, 1),
        POOL,
        pool_state_text,
        (lib.Misuse, lib.NotPut, lib.Rejected),
        rare=frozenset({"unregister", "unregister_all", "shutdown"}),
    )


def log_walker(lib: Any, seed: int) -> Walker[LogHarness]:
    calls = {name: c for name, c in LOG.items() if name != "consume"}  # it waits; `begin` does not
    return Walker(
        lambda world: LogHarness(world, lib, 1 + seed % 2),
        calls,
        log_state,
        (lib.Misuse, lib.PastTheEnd),
        rare=frozenset({"close_topic", "move", "commit"}),
    )


def fair_walker(lib: Any, seed: int) -> Walker[FairHarness]:
    return Walker(
        lambda world: FairHarness(world, lib, (2, 3), 2, lambda weight: weight == 5),
        FAIR,
        fair_state,
        (ValueError, lib.Overrun),
    )


WALKERS: dict[str, tuple[str, Any]] = {
    "client": ("client", client_walker),
    "pool": ("client", pool_walker),
    "log": ("log", log_walker),
    "fair": ("fair", fair_walker),
}


@pytest.mark.parametrize("name", WALKERS)
def test_what_a_table_promises_holds(name: str) -> None:
    system, walker = WALKERS[name]
    lib = load(system)
    made: set[tuple[str, CallStanding]] = set()
    for seed in range(WALKS[name]):
        made |= walk(walker(lib, seed), seed, LENGTH)
    calls = walker(lib, 0).calls.values()
    assert made == {(c.name, standing) for c in calls for standing in c.standings}
    if name == "client":
        assert {403, 404, 405, 406, 530} >= CODES >= {404, 405, 406}


WRONG = {
    "client": (
        """        if not tag:
            raise Misuse("a consumer has a tag: without one it is a get's delivery")
""",
        "",
    ),
    "pool": (
        '                raise Misuse(f"{key} is not in progress")\n',
        "                return False\n",
    ),
    "log": (
        """        if parked.place not in [p.place for p in self.parked()]:
            raise Misuse(f"channel {self.name} has nothing parked from {tuple(parked.place)}")
""",
        "",
    ),
    "fair": MUTANTS["stop-each-time"].edits[0],
}
"""What a reference would be without one of its refusals, or with a second effect of what has one."""


@pytest.mark.parametrize("name", WRONG)
def test_reference_that_breaks_a_promise_is_caught(name: str) -> None:
    system, walker = WALKERS[name]
    lib = load(system, Mutant(f"promise-{name}", "", "", system, (WRONG[name],), "", "", 0))

    def walks() -> None:
        for seed in range(WALKS[name]):
            walk(walker(lib, seed), seed, LENGTH)

    with pytest.raises(BrokenPromise):
        walks()
