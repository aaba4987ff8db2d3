"""Modules from files that a user is still writing."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class _Uncached(SourceFileLoader):
    """Compiles the file each time it is loaded.

    Python's caches know a file by its size and the second of its last change, so of two versions
    that were saved within one second the first may be run instead of the second.
    """

    def get_code(self, fullname: str) -> CodeType:
        """The compiled text of the file as it is now. Raises `SyntaxError` and `OSError`."""
        return self.source_to_code(self.get_data(self.path), self.path)


def unloaded_module(path: Path, name: str) -> tuple[ModuleType, SourceFileLoader]:
    """An empty module for a file of Python, and the loader whose `exec_module` runs the file in it."""
    loader = _Uncached(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    return importlib.util.module_from_spec(spec), loader
