"""The servers that are described in ``described/*.toml``, and the installation of what they need.

What is missing is installed if that can be done without a question: Debian packages by root, classes from Maven
Central, programs from Go modules. Else `NotHere` names what is missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path

from seriatim_models.conformance.faults.described import (
    DescribedSystem,
    folder,
    found,
    run_to_end,
    started,
)
from seriatim_models.conformance.faults.description import (
    RUN,
    SystemDescription,
    SystemNeed,
    read_description,
)
from seriatim_models.conformance.protocol import Fault

CACHE = Path("build/conform/installed")
DESCRIBED = "described"


class NotHere(Exception):
    """The system cannot be run on this machine; the message gives the reason."""


@contextmanager
def described() -> Iterator[Path]:
    """The folder of the descriptions."""
    with resources.as_file(resources.files(__package__) / DESCRIBED) as here:
        yield here


def description_of(name: str) -> SystemDescription:
    """The description of a system of this repository. Raises `DescriptionError`."""
    with described() as here:
        return read_description(here / f"{name}.toml")


@contextmanager
def server(
    name: str, *, setting: str = RUN, relayed: bool = False, disk: int = 0
) -> Iterator[DescribedSystem]:
    """A described system that runs, installed before if need be; the arguments are those of `started`.

    Raises `NotHere`.
    """
    with described() as here:
        description = read_description(here / f"{name}.toml")
        installed: dict[str, str] = {}
        for need in description.needs:
            installed |= install_need(need, here, description.search)
        with ExitStack() as stack:
            try:
                system = stack.enter_context(
                    started(
                        description,
                        here,
                        setting=setting,
                        installed=installed,
                        relayed=relayed,
                        disk=disk,
                    )
                )
            except Fault as why:
                raise NotHere(str(why)) from None
            yield system


@contextmanager
def reached(name: str) -> Iterator[str]:
    """What the clients of a system are told, while it runs; nothing for a queue in the process that tests it."""
    if not name:
        yield ""
        return
    with server(name) as system:
        yield system.reach


def install_need(need: SystemNeed, here: Path, search: list[str]) -> dict[str, str]:
    """See that something is there; returns the values of ``{jars}`` and ``{go}`` if it is that. Raises `NotHere`."""
    if need.jars:
        return {"jars": str(jars(here / need.jars, need.chief))}
    if need.program:
        path = os.pathsep.join([*found(search), os.environ["PATH"], str(_go())])
        if not shutil.which(need.program, path=path):
            try:
                needed(need.debian, need.program, search)
            except NotHere:
                if not need.go or shutil.which("go") is None:
                    raise
                install(["go", "install", need.go], {"GOBIN": str(_go())})
        return {}
    built = _go() / Path(need.go).stem
    if not built.exists():
        needed("golang-go", "go")
        with folder("go-source") as source:
            shutil.copy(here / need.go, source / "main.go")
            for step in (
                ["mod", "init", built.name],
                *(["get", module] for module in need.modules),
                ["build", "-o", str(built), "."],
            ):
                install(["go", "-C", str(source), *step])
    return {"go": str(_go())}


LOCKED = "DPkg::Lock::Timeout=300"
"""How many seconds to wait for another installation."""


def needed(package: str, program: str, search: list[str] | None = None) -> None:
    """See that a program is there, installing its Debian package if that can be done. Raises `NotHere`."""
    if _which(program, search):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise NotHere(f"{program} is not installed (Debian: apt-get install {package})")
    # As if in single-user mode, so that the package does not start a service of its own.
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = ["apt-get", "-qq", "-o", LOCKED]
    asked = [*apt, "install", "-y", "--no-install-recommends", package]
    try:
        install(asked, quiet)
    except NotHere:
        install([*apt, "update"], quiet)
        install(asked, quiet)
    if not _which(program, search):
        raise NotHere(f"{package} is installed and has no {program}")


def _which(program: str, search: list[str] | None) -> str | None:
    return shutil.which(program, path=os.pathsep.join([*found(search or []), os.environ["PATH"]]))


def _go() -> Path:
    return (CACHE / "go").absolute()


def jars(pom: Path, chief: str) -> Path:
    """The folder with the classes that a file for Maven lists and all that they need; fetched if `chief` is missing."""
    needed("default-jdk-headless", "javac")
    needed("maven", "mvn")
    classes = (CACHE / pom.stem).absolute()
    if not list(classes.glob(f"{chief}*.jar")):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={classes}"]
        install(["mvn", "-q", "-B", "-f", str(pom), *goal])
    return classes


def install(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    """Raises `NotHere` with the last line that the command printed."""
    try:
        run_to_end(command, environment or {})
    except Fault as why:
        raise NotHere(str(why)) from None
