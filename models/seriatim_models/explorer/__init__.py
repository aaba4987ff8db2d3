"""The explorer: a small concurrent program under every schedule that matters.

```python
from seriatim_models.explorer import explore

def program(world):
    counter = world.cell(0, name="counter")
    def work():
        counter.set(counter.get() + 1)
    world.spawn(work, name="a")
    world.spawn(work, name="b")
    world.at_end(lambda: None if counter.get() == 2 else f"counter is {counter.get()}")

print(explore(program).counterexample)
```

A program is a function of a `World`. It is run once per execution: it builds shared state and spawns threads.
Read `operations` for what a step is, `dpor` for which schedules are run and why these are enough.

The parts, each of which imports only those before it: `model` (what a program is), `trace` (one schedule),
`search` (many schedules), then `result`, `search.explore`, and for tests `linearize`, `testing` and `pytest_plugin`.
"""

from seriatim_models.explorer.errors import (
    BadCheckpoint,
    BadToken,
    ExplorerError,
    Misuse,
    ModelBug,
    NondeterministicProgram,
    OutsideModel,
)
from seriatim_models.explorer.model.world import Handle, Record, World
from seriatim_models.explorer.result import Result
from seriatim_models.explorer.search.dpor import Dpor
from seriatim_models.explorer.search.estimate import Estimate, Progress, Watch, estimate
from seriatim_models.explorer.search.explore import Replay, Strategy, checked, explore
from seriatim_models.explorer.search.sampling import Pct, Pos, Random
from seriatim_models.explorer.trace.counterexample import Counterexample, Step, Violation

__all__ = [
    "BadCheckpoint",
    "BadToken",
    "Counterexample",
    "Dpor",
    "Estimate",
    "ExplorerError",
    "Handle",
    "Misuse",
    "ModelBug",
    "NondeterministicProgram",
    "OutsideModel",
    "Pct",
    "Pos",
    "Progress",
    "Random",
    "Record",
    "Replay",
    "Result",
    "Step",
    "Strategy",
    "Violation",
    "Watch",
    "World",
    "checked",
    "estimate",
    "explore",
]
