"""A namespace of Linux that ends with the processes in it, also if the driver is killed."""

from __future__ import annotations

import os
import subprocess
import uuid

from seriatim_models.conformance.child import reap
from seriatim_models.conformance.faults.node import descendants
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.supervisor import MARK, supervised


class NamespaceHolder:
    """A process in a namespace of its own, which does nothing. A context manager."""

    def __init__(self, kind: str, prepare: str = "", *arguments: str) -> None:
        """`kind`: the option of `unshare`. `prepare`: commands of the shell that are run in it first."""
        self._kind, self._prepare, self._arguments = kind, prepare, arguments
        self._mark = f"namespace-{uuid.uuid4().hex}"
        self.pid = 0

    def __enter__(self) -> NamespaceHolder:
        """Raises `Fault` if that is not permitted here."""
        script = f"{self._prepare or ':'} && echo made && exec sleep infinity"
        self._process = subprocess.Popen(
            supervised(["unshare", self._kind, "sh", "-c", script, *self._arguments]),
            env={**os.environ, MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        with self._process.stdout as output:
            said = output.readline().decode("utf-8", "replace").strip()
        if said != "made":
            reap(self._process, self._mark)
            raise ProtocolFault("start", f"unshare {self._kind}: {said or 'not permitted'}")
        (self.pid,) = descendants(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        reap(self._process, self._mark)

    @property
    def prefix(self) -> list[str]:
        """What a command begins with that shall run in it."""
        return ["nsenter", "--target", str(self.pid), self._kind, "--"]
