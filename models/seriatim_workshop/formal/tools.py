"""Spin and a C compiler: found, installed if that is allowed, or named."""

from __future__ import annotations

import os
import shutil
import subprocess

NEEDED = ("spin", "gcc")


class Missing(Exception):
    """A tool is not there; the message names the package."""


def ensure() -> None:
    """Return when Spin and gcc can be run. Raises `Missing`."""
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        print(f"Installing {' and '.join(missing)} (Debian packages)", flush=True)
        needs = [] if "gcc" not in missing else ["libc6-dev"]
        for command in (["update"], ["install", "-y", *missing, *needs]):
            subprocess.run(["apt-get", "-qq", *command], check=False, capture_output=True)
        missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        raise Missing(
            f"{' and '.join(missing)} not found: install with `apt-get install spin gcc libc6-dev`, "
            "or from https://spinroot.com"
        )


def version() -> str:
    """The version that Spin prints."""
    output = subprocess.run(["spin", "-V"], capture_output=True, text=True, check=False).stdout
    return output.strip()
