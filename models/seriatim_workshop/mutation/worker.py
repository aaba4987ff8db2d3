"""What runs in a process that judges one mutant, and all that such a process needs but the references.

The server that those processes are forked from loads this module, so that none of them has to load the rest.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import hypothesis.stateful  # noqa: F401
import pytest  # noqa: F401

import seriatim_models.explorer
import seriatim_models.properties  # noqa: F401


def judged(file: str, source: str, output: str) -> None:
    """Put the mutant in the reference's place, run the kill suite with its output in a file, and end this process."""
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    put_in_place(file, source, Path(f"{output}.tree"))
    try:
        importlib.import_module(f"seriatim.{file}")
        from seriatim_workshop.mutation import (
            kill_suite,  # and with it all that knows the references
        )
    except Exception as error:
        print(f"does not load: {type(error).__name__}: {error}", flush=True)
        os._exit(1)
    code = kill_suite.main([file])
    sys.stdout.flush()
    os._exit(code)


def put_in_place(file: str, source: str, tree: Path) -> None:
    """The package as a folder in which one file is the mutant: for this process, and for those that a test starts."""
    import seriatim

    (package,) = seriatim.__path__
    mine = tree / "seriatim"
    mine.mkdir(parents=True)
    for there in Path(package).glob("*.py"):
        if there.stem != file:
            (mine / there.name).symlink_to(there)
    (mine / f"{file}.py").write_text(source, encoding="utf-8")
    seriatim.__path__ = [str(mine)]
    sys.modules.pop(f"seriatim.{file}", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(tree), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
