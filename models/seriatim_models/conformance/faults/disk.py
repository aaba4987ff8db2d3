"""A small disk of its own for a server, which can be filled up.

It is mounted in a mount namespace that nobody else sees and that ends with the last process in it: nothing has to be
unmounted, also if the driver is killed. That takes Linux and root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from seriatim_models.conformance.faults.namespace import NamespaceHolder
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.supervisor import SUPERVISED

SIZE = 64
"""Megabytes of the disk."""


class SmallDisk:
    """A tmpfs at `folder`, seen by commands that begin with `prefix` only. A context manager."""

    def __init__(self, folder: Path, megabytes: int = SIZE) -> None:
        """Raises `Fault` where this cannot be done."""
        if not SUPERVISED or os.geteuid() != 0:
            raise ProtocolFault("start", "a full disk needs Linux and root, for a disk of its own")
        if shutil.which("unshare") is None or shutil.which("nsenter") is None:
            raise ProtocolFault("start", "a full disk needs unshare and nsenter (util-linux)")
        self.folder, self.megabytes = folder, megabytes

    def __enter__(self) -> SmallDisk:
        mount = f'mount -t tmpfs -o size={self.megabytes}m tmpfs "$0"'
        self._holder = NamespaceHolder("--mount", mount, str(self.folder)).__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.__exit__()

    @property
    def prefix(self) -> list[str]:
        """What a command begins with that shall see the disk."""
        return self._holder.prefix

    @property
    def seen(self) -> Path:
        """The disk as the driver reaches it."""
        return Path(f"/proc/{self._holder.pid}/root{self.folder}")

    def fill(self) -> int:
        """Write until nothing more goes in; returns how many bytes that were."""
        written = 0
        block = bytes(2**20)
        with (
            (self.seen / "filler").open("ab", buffering=0) as file,
            contextlib.suppress(OSError),
        ):
            while len(block):
                done = file.write(block)
                written += done
                block = block[:done]
        return written

    def free(self) -> None:
        """Take away what `fill` wrote."""
        (self.seen / "filler").unlink(missing_ok=True)

    def full(self) -> bool:
        """Whether less than a page is left."""
        left = os.statvfs(self.seen)
        return left.f_bavail * left.f_frsize < 2**12
