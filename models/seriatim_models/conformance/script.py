"""Scripts: sequences of commands, as they are generated, shrunk, saved and replayed.

A script names messages, not delivery tags: which tag an implementation gives is its own affair.
A settling step names one of the outstanding deliveries of its channel, by message (`m`) or, as generated, by
number (`which`, modulo how many there are); with none outstanding the step is left out.

The file form is JSON, ``{"schema": "seriatim-script/1", "steps": [{"op": "publish", "q": "q", "m": "m0"}, ...]}``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from seriatim_models.conformance.protocol import NAME_MAX
from seriatim_models.files import encoded, read_document, write_whole

SCHEMA = "seriatim-script/1"
STEPS_MAX = 10_000
BYTES_MAX = 2**23

STEPS = (
    "open",
    "close",
    "publish",
    "get",
    "qos",
    "consume",
    "cancel",
    "ack",
    "nack",
    "reject",
    "recover",
    "read",
    "seek",
    "commit",
    "tx-begin",
    "tx-commit",
    "tx-rollback",
    "pass",
)
TIME = 200
"""Milliseconds of a delay and of a time to live, and how long `pass` waits at least."""
NUMBERS: dict[str, tuple[int, int]] = {
    "ch": (0, 65_535),
    "which": (-(2**31), 2**31 - 1),
    "prefetch": (0, 65_535),
    "cprio": (-(2**31), 2**31 - 1),
    "prio": (0, 255),
    "delay": (0, 60_000),
    "ttl": (0, 60_000),
    "part": (0, 65_535),
    "pos": (0, 2**63 - 1),
    "n": (0, 65_535),
}
"""The least and the greatest that each number of a script that is read may be.

Those of channels, prefetch and priorities are the widths that AMQP 0-9-1 has for them; a delay or a time to live is
milliseconds that a run waits for, a position a message's in a log.
"""
SETTLING = frozenset({"ack", "nack", "reject"})
PRIORITIES = 3
"""How many priorities a script has, of consumers and of messages, from 0; and how many message groups."""
ONE_GROUP = "g0"
"""Of a message of which a script names no group, where only groups keep an order."""
DEAD = ".dead"
"""What the name of a queue has behind it to which its messages come that were dropped (`dead-letter`)."""


def promised(can: frozenset[str], lease: float) -> dict[str, object]:
    """What a queue is declared with, the `args` of its `declare`, by what the implementation can do.

    `lease`: how long one is, in seconds; 0 if that is not declared.
    """
    args: dict[str, object] = {}
    if "message-priority" in can:
        args["x-max-priority"] = PRIORITIES - 1
    if "held-groups" in can:
        args["groups"] = "held"
    if lease:
        args["lease"] = round(lease * 1000)
    return args


class ScriptError(ValueError):
    """The file is no script; the message names file and field."""


class ScriptStep(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One command. Fields that an operation has no use for stay at their defaults."""

    op: str
    ch: int = 1
    q: str = ""
    m: str = ""
    ctag: str = ""
    which: int | None = None
    multiple: bool = False
    requeue: bool = True
    autoack: bool = False
    prefetch: int = 0
    scope: str = "consumer"
    exclusive: bool = False
    cprio: int | None = None
    """Priority of a consumer."""
    prio: int | None = None
    """Priority of a message."""
    key: str = ""
    """Group of a message."""
    delay: int | None = None
    """Milliseconds for which a message that is published may be given to nobody; and how long `pass` lasts, where it is
    not until no delay and no time to live is left.
    """
    ttl: int | None = None
    """Milliseconds after which a message that is published may be given to nobody."""
    part: int | None = None
    """Partition of a log."""
    pos: int | None = None
    """Position in a log. As generated, `which` stands for it: modulo the end for a seek, so much before what was read
    last for a commit.
    """
    n: int = 1
    """How many messages a get asks for, where several can be got at once."""
    every: bool = False
    """Settle all that the channel holds: tag 0 with multiple."""
    wait: bool = True
    """Whether the drive waits for its effect before it goes on. Without it steps meet inside the implementation."""

    def __str__(self) -> str:
        words = [self.op]
        if self.op != "publish" or self.ch != 1:
            words.append(f"ch={self.ch}")
        words += [
            f"{name}={value}" for name in ("q", "m", "ctag") if (value := getattr(self, name))
        ]
        if self.op == "qos":
            words.append(f"prefetch={self.prefetch} for the {self.scope}")
        if self.every:
            words.append("all of the channel (tag 0)")
        elif self.multiple:
            words.append("multiple")
        if self.op in ("nack", "reject"):
            words.append("requeue" if self.requeue else "drop")
        words += [f"{self.n} at once"] * (self.n > 1)
        words += [name for name in ("autoack", "exclusive") if getattr(self, name)]
        numbers = {"cprio": "priority", "prio": "priority", "part": "part", "pos": "pos"}
        numbers |= {"delay": "delay", "ttl": "ttl"}
        for name, word in numbers.items():
            if (number := getattr(self, name)) is not None:
                words.append(f"{word}={number}")
        if self.key:
            words.append(f"group={self.key}")
        if not self.wait:
            words.append("without waiting")
        return " ".join(words)


class Script(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Steps, and where they come from."""

    schema: str = SCHEMA
    steps: list[ScriptStep] = []
    seed: int | None = None
    profile: str = ""
    violates: str = ""
    """The property, or the kind of fault, that the steps were saved for."""
    why: str = ""


def write_script(path: Path, script: Script) -> None:
    """Save a script."""
    write_whole(path, msgspec.json.format(encoded(script), indent=1) + b"\n", ours=True)


def read_script(path: Path) -> Script:
    """A saved script. Raises `ScriptError`."""
    script = read_document(path, Script, "no script", ScriptError, BYTES_MAX)
    if script.schema != SCHEMA:
        raise ScriptError(f"{path}: field schema: {script.schema!r} is not {SCHEMA!r}")
    if len(script.steps) > STEPS_MAX:
        raise ScriptError(f"{path}: field steps: more than {STEPS_MAX}")
    for n, step in enumerate(script.steps):
        if step.op not in STEPS:
            raise ScriptError(
                f"{path}: field steps[{n}].op: {step.op!r} is none of {', '.join(STEPS)}"
            )
        if step.scope not in ("consumer", "channel"):
            raise ScriptError(
                f"{path}: field steps[{n}].scope: {step.scope!r} is none of consumer, channel"
            )
        if max(len(step.q), len(step.m), len(step.ctag), len(step.key)) > NAME_MAX:
            raise ScriptError(f"{path}: field steps[{n}]: a name longer than {NAME_MAX} characters")
        for field, (least, greatest) in NUMBERS.items():
            if (number := getattr(step, field)) is not None and not least <= number <= greatest:
                raise ScriptError(
                    f"{path}: field steps[{n}].{field}: {number} is not {least} to {greatest}"
                )
    return script
