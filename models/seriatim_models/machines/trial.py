"""What runs in a process that judges one mutant, and all that such a process needs but the references.

The server that those processes are forked from loads this module, so that none of them has to load the rest.
"""

from __future__ import annotations

import os
import sys
import types

import hypothesis.stateful  # noqa: F401
import pytest  # noqa: F401

import seriatim_models.explorer
import seriatim_models.properties  # noqa: F401


def judged(file: str, source: str, said: str) -> None:
    """In the process that judges: put the mutant in the reference's place and run what judges it."""
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    import seriatim

    name = f"seriatim.{file}"
    module = types.ModuleType(name)
    module.__file__ = f"<mutant of {name}>"
    sys.modules[name] = module
    try:
        exec(compile(source, module.__file__, "exec"), module.__dict__)
        setattr(seriatim, file, module)
        from seriatim_models.machines import quick  # and with it all that knows the references
    except Exception as error:
        print(f"does not load: {type(error).__name__}: {error}", flush=True)
        os._exit(1)
    code = quick.main([file])
    sys.stdout.flush()
    os._exit(code)
