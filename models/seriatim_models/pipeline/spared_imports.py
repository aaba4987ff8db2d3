"""Keeping others from importing what an audit does not use."""

from __future__ import annotations

import sys
from importlib.util import find_spec


class _NoPandas:
    """As if pandas were not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not wanted now", name=name)


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas in this process.

    At its first array, and at the first that it hands to numpy, pyarrow tries to import pandas, so as to know one of
    its series when it is given one. No
    audit has any, and the import takes as long as judging some 100,000 events. Afterwards a series that is given to
    pyarrow is taken for any other sequence, so this is for processes that do nothing but an audit. Where pandas was
    imported already, or is not there, nothing changes; what asks pyarrow for something of pandas still gets it.
    """
    if "pandas" in sys.modules or find_spec("pyarrow") is None:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([1], pa.int64()).to_numpy()  # each of the two looks for it once
    finally:
        sys.meta_path.remove(finder)
