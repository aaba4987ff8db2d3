"""Ordinary Python under every schedule: a plain test with `threading`, `queue`, `concurrent.futures`, `asyncio`.

```python
import threading
import seriatim

@seriatim.explore(seconds=10)
def test_counter():
    ...                    # threads, locks, queues, asserts; the body is the main thread
```

Read `places` for what a step is and why the schedules that are run are enough, `front` for how the search goes on,
`rewrite` and `hooks` for how accesses are seen: `accesses` announces them, `containers` and `calls` do what the source
said, `called_back` is where C code calls Python back. `sandbox` is what an execution begins with,
`lifetimes` when objects die,
`primitives` and `threads` for what stands in for the library, `event_loop` and `asyncio_state` for asyncio.
"""

from seriatim_models.explorer.python.front import PythonResult, check, explore

__all__ = ["PythonResult", "check", "explore"]
