"""The options that name an implementation to be driven, and what opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import rich_click as click

from seriatim_models.cli.options import F
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.child import ChildProcess
from seriatim_models.conformance.concurrent.search import FreshSystem
from seriatim_models.conformance.faults.described import DescribedSystem
from seriatim_models.conformance.protocol import CONCURRENT
from seriatim_models.conformance.python_child import PythonChild, served
from seriatim_models.conformance.system import System
from seriatim_models.history.depth import whole_number


class SeveralClients(FreshSystem, Protocol):
    """What several clients can use at once."""

    @property
    def one_at_a_time(self) -> bool:
        """Whether they take turns all the same."""


@dataclass(frozen=True)
class Implementation:
    """What the options name: one of a command, a factory and a URL."""

    command: str | None
    factory: str | None
    url: str | None
    queue_arguments: tuple[str, ...] = ()
    patience: float = 5.0
    """Seconds that one answer may take."""

    def __str__(self) -> str:
        """What was named, or the option that names nothing."""
        return self.command or self.factory or self.url or " ".join(self.words)

    def open(self) -> System:
        """Connect to it or start it. Raises `Fault` if it cannot be driven."""
        if sum(given is not None for given in (self.command, self.factory, self.url)) != 1:
            raise UsageError("say which implementation: one of --exec, --python and --amqp")
        if self.command is not None:
            return ChildProcess(self.command, patience=self.patience)
        if self.factory is not None:
            # In a process of its own, so that what hangs or floods does not do so here.
            return PythonChild(self.factory, patience=self.patience)
        from seriatim_models.conformance.amqp import AmqpBroker

        assert self.url is not None
        return AmqpBroker(self.url, queue_arguments(self.queue_arguments), patience=self.patience)

    def open_concurrent(
        self, environment: Mapping[str, str] | None = None, started: DescribedSystem | None = None
    ) -> SeveralClients:
        """Start it to be driven by several clients at once; a broker that was `started` needs no adapter.

        Raises `Fault` if it cannot be driven so.
        """
        named = sum(given is not None for given in (self.command, self.factory, self.url))
        broker = started is not None and started.reach.startswith("amqp")
        if named == 0 and started is not None and not broker:
            raise UsageError("name its adapter by --exec or --python: it is no broker of AMQP")
        if named > 1 or (named == 0 and not broker):
            raise UsageError("say which implementation: one of --exec, --python and --amqp")
        if self.url is not None and started is not None:
            raise UsageError("--amqp is for a broker that runs, --system for one that is started")
        if self.url is not None or named == 0:
            return self._clients_of_broker(started)
        # An object is in a process of its own, whose threads call it.
        command = self.command if self.command is not None else served(self.factory or "")
        return ChildProcess(
            command, patience=self.patience, protocol=CONCURRENT, environment=environment
        )

    def _clients_of_broker(self, started: DescribedSystem | None) -> SeveralClients:
        from seriatim_models.conformance.amqp import BrokerQueues
        from seriatim_models.conformance.amqp_clients import AmqpClients

        arguments = {**queue_arguments(self.queue_arguments)}
        if started is None:
            return AmqpClients([self.url or ""], BrokerQueues(arguments), patience=self.patience)
        setting = started.setting
        queues = BrokerQueues(
            {**setting.arguments, **arguments}, durable=True, persistent=setting.persistent
        )
        return AmqpClients(started.reach.split(","), queues, patience=self.patience)

    @property
    def words(self) -> list[str]:
        """The options as they would be typed."""
        named = (("--exec", self.command), ("--python", self.factory), ("--amqp", self.url))
        words = [word for option, value in named if value is not None for word in (option, value)]
        return words + [w for each in self.queue_arguments for w in ("--queue-argument", each)]


def implementation_options(command: F) -> F:
    """`--exec`, `--python` and `--amqp`, which become `command`, `factory` and `url`."""
    for name, key, metavar, what in (
        ("--amqp", "url", "URL", "An AMQP 0-9-1 broker [dim](needs the extra amqp)[/]."),
        ("--python", "factory", "MODULE:FACTORY", "What makes the object to test."),
        ("--exec", "command", "CMD", "A program that speaks seriatim-conform/1 or /2."),
    ):
        command = click.option(name, key, metavar=metavar, help=what)(command)
    return command


def queue_argument_option(what: str) -> Callable[[F], F]:
    """`--queue-argument`, to be given several times; `what` is its help."""
    return click.option(
        "--queue-argument", "arguments", metavar="NAME=VALUE", multiple=True, help=what
    )


def queue_arguments(given: tuple[str, ...]) -> dict[str, str | int]:
    """The arguments of a queue, from texts such as ``x-max-length=3``: what looks like a number is one."""
    arguments: dict[str, str | int] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise UsageError(f"--queue-argument {each!r} is not NAME=VALUE")
        number = whole_number(value)
        arguments[name] = value if number is None else number
    return arguments
