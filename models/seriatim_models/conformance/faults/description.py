"""How a system is started, recognised as ready, disturbed and stopped: one TOML file, format ``seriatim-system/1``.

| key | meaning |
|---|---|
| format | ``"seriatim-system/1"`` |
| id, title | the name, and the system in a few words |
| origin | where the program comes from |
| nodes | how many there are of it, 1 if not said; the nodes of a cluster have a network of their own |
| version | the command that prints the version, or the version itself |
| ports | names of the free ports that it is given; the first is what its clients reach |
| reach | what its clients are told |
| start | the command, which stays in the foreground |
| ready | the port by whose listening it is ready; the first, if not said |
| stop | the signal that asks it to end, ``TERM`` if not said |
| prepare | commands that are run once before the first start |
| files | files of its folder by name, with their text |
| environment | variables of its processes |
| user | who it runs as where the driver is root |
| search | folders of its programs, as patterns; the last match counts |
| [[needs]] | what must be installed, see `SystemNeed` |
| [setting.NAME] | a way to run it, and what is promised then, see `SystemSetting` |

In `start`, `prepare`, `reach`, `files`, `environment` and `options` names in braces stand for values: each port,
``{home}`` (a folder of its own, of each node), ``{data}`` (a folder in it that may be a small disk), ``{here}`` (the
folder of the description), ``{pid}`` (the driver's), ``{jars}`` and ``{go}`` (of what it needs). Of a cluster there are
also ``{node}`` (1, 2 and so on), ``{address}`` by which the other nodes reach this one, ``{listen}`` by which clients
do, and ``{address1}``, ``{listen1}`` and so on of each node; `reach` is filled for each node, and joined with commas.
A brace itself is written twice.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from seriatim_models.conformance.concurrent.workload import FaultKind
from seriatim_models.files import read_text

FORMAT = "seriatim-system/1"
NODES_MAX = 9
RUN = ""
"""The setting of a system that is run as its description says and promises nothing of faults."""


class DescriptionError(ValueError):
    """A description that cannot be used; names the file and the key."""


class SystemNeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must be installed before a system can be started."""

    program: str = ""
    debian: str = ""
    jars: str = ""
    """A file for Maven beside the description that lists them."""
    chief: str = ""
    """How the name of the one begins that shows that they are there."""
    go: str = ""
    """A Go program: a source file beside the description, or a module's package with its version."""
    modules: list[str] = []
    """Modules that the source file requires."""


class SystemSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to run a system, and what confirmed messages survive then by its documentation."""

    options: list[str] = []
    environment: dict[str, str] = {}
    arguments: dict[str, str | int | bool] = {}
    """Of the queues that are declared."""
    persistent: bool = True
    """Whether messages are published as persistent, where the system tells them apart."""
    survives: list[FaultKind] = []
    settled: list[FaultKind] = []
    """Faults after which no message comes again whose settlement had been answered."""
    says: str = ""
    """The promise in a sentence."""
    source: str = ""


class SystemDescription(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One system as its file describes it."""

    format: str
    id: str
    title: str
    origin: str
    start: list[str]
    reach: str
    nodes: int = 1
    ports: list[str] = msgspec.field(default_factory=lambda: ["port"])
    version: list[str] | str = ""
    ready: str = ""
    stop: str = "TERM"
    prepare: list[list[str]] = []
    files: dict[str, str] = {}
    environment: dict[str, str] = {}
    user: str = ""
    search: list[str] = []
    needs: list[SystemNeed] = []
    setting: dict[str, SystemSetting] = {}

    @property
    def lacks(self) -> list[str]:
        """The names whose values only who installs what it needs can give; a program is found by its own name."""
        needs = [need for need in self.needs if not need.program]
        return [name for name in ("jars", "go") if any(getattr(need, name) for need in needs)]

    def setting_of(self, name: str) -> SystemSetting:
        """The setting of a name. Raises `DescriptionError`."""
        if name == RUN:
            return SystemSetting()
        if name not in self.setting:
            known = ", ".join(self.setting) or "none"
            raise DescriptionError(f"{self.id} has no setting {name!r}; there are {known}")
        return self.setting[name]


def read_description(path: Path) -> SystemDescription:
    """The description in a file. Raises `DescriptionError`."""
    return parse_description(read_text(path, DescriptionError), str(path))


def parse_description(text: str, where: str) -> SystemDescription:
    """The description in a text; `where` is named in what is wrong. Raises `DescriptionError`."""
    try:
        found = msgspec.convert(tomllib.loads(text), SystemDescription)
    except (ValueError, RecursionError) as error:
        raise DescriptionError(f"{where}: {error}") from None
    for fault in (*_faults(found), *_faults_of_patterns(found)):
        raise DescriptionError(f"{where}: {fault}")
    return found


def _faults(found: SystemDescription) -> Iterator[str]:
    """What is wrong with a description: the key, and why."""
    if found.format != FORMAT:
        yield f"format: {found.format!r} cannot be read; known is {FORMAT}"
    if not re.fullmatch(r"\w[\w.-]*", found.id):
        yield f"id: {found.id!r} is not letters, digits, _, - and points"
    if not found.start:
        yield "start: the command is empty"
    if [] in found.prepare:
        yield "prepare: a command is empty"
    if not found.ports:
        yield "ports: a system needs one at least"
    if not 1 <= found.nodes <= NODES_MAX:
        yield f"nodes: {found.nodes} is not between 1 and {NODES_MAX}"
    if found.ready and found.ready not in found.ports:
        yield f"ready: {found.ready!r} is none of its ports"
    for name in found.files:
        parts = Path(name).parts
        if not parts or Path(name).is_absolute() or ".." in parts:
            yield f"files: {name!r} is not in the folder of the system"
    for name in {*found.environment, *(n for s in found.setting.values() for n in s.environment)}:
        if not name or "=" in name or "\0" in name:
            yield f"environment: {name!r} is no name of a variable"


def _faults_of_patterns(found: SystemDescription) -> Iterator[str]:
    """What is wrong with the texts of a description that have names in braces."""
    known = _any_value(found)
    for key, texts in _patterns(found).items():
        for text in texts:
            if "\0" in text:
                yield f"{key}: {text!r} has a NUL in it"
            try:
                unknown = _not_plain(text, known)
            except ValueError as error:
                yield f"{key}: {text!r}: {error}"
                continue
            if unknown is not None:
                yield f"{key}: {text!r}: no value for {unknown!r}"


def filled(text: str, values: Mapping[str, object]) -> str:
    """A text with the values of the names in braces."""
    return text.format_map(values)


def _not_plain(text: str, values: Mapping[str, object]) -> str | None:
    """What stands in a text's braces and is not just one of the names, such as an attribute of its value."""
    for _, name, spec, how in string.Formatter().parse(text):
        if name is not None and (name not in values or spec or how):
            return name + (f"!{how}" if how else "") + (f":{spec}" if spec else "")
    return None


def _any_value(description: SystemDescription) -> dict[str, str]:
    names = ["home", "data", "here", "pid", *description.ports, *description.lacks]
    if description.nodes > 1:
        numbered = range(1, description.nodes + 1)
        names += ["node", "address", "listen"]
        names += [f"{name}{n}" for name in ("address", "listen") for n in numbered]
    return dict.fromkeys(names, "0")


def _patterns(description: SystemDescription) -> dict[str, list[str]]:
    """The texts of a description with names in braces, by their key."""
    found = {
        "start": description.start,
        "reach": [description.reach],
        "prepare": [each for command in description.prepare for each in command],
        "files": list(description.files.values()),
        "environment": list(description.environment.values()),
    }
    for name, setting in description.setting.items():
        found[f"setting.{name}.options"] = setting.options
        found[f"setting.{name}.environment"] = list(setting.environment.values())
    return found
