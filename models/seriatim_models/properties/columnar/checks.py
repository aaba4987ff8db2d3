"""What a property names as ``module:name``, imported when it is wanted: a row-based form needs no numpy."""

from __future__ import annotations

from importlib import import_module
from typing import Any


# Any: the caller knows what the name stands for
def loaded(name: str) -> Any:
    """What ``module:name`` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
