"""`--system`, `--setting` and `--faults`: a system of which a file says how to start it, and what is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import get_args

import rich_click as click

from seriatim_models.cli.implementations import Implementation, SeveralClients
from seriatim_models.cli.options import F
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.concurrent.search import SmallFaults
from seriatim_models.conformance.concurrent.workload import FaultKind, kinds_of
from seriatim_models.conformance.faults.described import DescribedSystem, started
from seriatim_models.conformance.faults.description import DescriptionError, read_description
from seriatim_models.conformance.faults.nemesis import NETWORK
from seriatim_models.conformance.protocol import Fault

TARGET, SETTING = "SERIATIM_TARGET", "SERIATIM_SETTING"
"""Variables of the adapter: what its clients connect to, as the description says it, and the setting."""
DISK = 32
"""Megabytes of the disk that is filled up."""


def system_options(command: F) -> F:
    """`--system`, `--setting` and `--faults`."""
    for name, key, metavar, what in (
        ("--faults", "faults", "KINDS", f"With --system: {', '.join(get_args(FaultKind))}."),
        ("--setting", "setting", "NAME", "With --system: how it is run, and what is promised then."),
        ("--system", "description", "FILE", "Start this system (TOML); without --exec or --python a broker of AMQP."),
    ):  # fmt: skip
        command = click.option(name, key, metavar=metavar, help=what)(command)
    return command


@contextmanager
def opened(
    implementation: Implementation,
    description: str | None,
    setting: str | None,
    faults: str | None,
) -> Iterator[tuple[SeveralClients, SmallFaults | None]]:
    """What the options name, to be used by several clients, and the faults that are done to it.

    Raises `UsageError` if it cannot be started or described.
    """
    named = str(implementation)
    if description is None and (setting or faults):
        raise UsageError("--setting and --faults are for --system, which says what is started")
    kinds = _kinds(faults or "")
    with ExitStack() as stack:
        small: SmallFaults | None = None
        environment: dict[str, str] = {}
        system: DescribedSystem | None = None
        try:
            if description is not None:
                named = description
                path = Path(description)
                read = read_description(path)
                if "partition" in kinds and read.nodes == 1:
                    raise UsageError(f"--faults: {path}: a partition needs several nodes (`nodes`)")
                system = stack.enter_context(
                    started(
                        read,
                        path.resolve().parent,
                        setting=setting or "",
                        relayed=not set(NETWORK).isdisjoint(kinds),
                        disk=DISK if "disk-full" in kinds else 0,
                    )
                )
                chosen = system.setting
                promised = {"survives": [*chosen.survives], "settled": [*chosen.settled]}
                small = SmallFaults(system.faults, kinds, len(system.faults.nodes), promised)
                environment = {TARGET: system.reach, SETTING: setting or ""}
                named = str(implementation)
            driven = implementation.open_concurrent(environment, system)
        except (DescriptionError, Fault) as error:
            where = "" if isinstance(error, DescriptionError) else f"{named}: "
            raise UsageError(f"{where}{error}") from error
        stack.callback(driven.end)
        yield driven, small


def _kinds(text: str) -> list[FaultKind]:
    try:
        return kinds_of(text)
    except ValueError as error:
        raise UsageError(f"--faults: {error}") from error
