"""The reference: what is right. See `seriatim.queue`.

Two more names are looked up where they are asked for, for whoever tests code of his own:
`seriatim.explore` makes a test of all schedules of a plain test, `seriatim.check` runs them and returns what was found
(`seriatim_models.explorer.python`). The reference itself uses neither.
"""

from typing import Any

FRONT = ("check", "explore")
"""What the installed package offers as names of this module: entry points of the group `seriatim.front`."""


# Any: a name has the type that it has where it is defined
def __getattr__(name: str) -> Any:
    from importlib.metadata import entry_points  # only who asks for such a name waits for it

    for found in entry_points(group="seriatim.front", name=name) if name in FRONT else ():
        value = globals()[name] = found.load()
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
