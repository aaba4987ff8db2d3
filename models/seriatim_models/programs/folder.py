"""A folder in memory, as an operating system shows one, for `seriatim.log.Files`: with crashes and failing calls.

What a crash leaves is decided by two things that `MemoryDisk` takes for one: what was synced of a file, and what was
synced of the folder, that is which name stands for which file. The order in which `Files` asks for them is judged so.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Self, cast

from seriatim.log import Storage
from seriatim_models.programs.disk import Crash

MOST = 7
"""How many bytes an unbuffered write takes at most."""


class StoredFile:
    """A file without a name: what is in it, and what of that would survive a crash."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = data


class Folder:
    """The one folder, and the calls of the operating system on it.

    Each call that changes or syncs something is counted. When `crash_at` of them were made the next raises `Crash`, and
    so does every one behind it, without effect; the call with the number `fail_at` raises `OSError`, without effect.
    """

    O_RDONLY = 0

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.names = {name: StoredFile(data) for name, data in (files or {}).items()}
        self.durable = dict(self.names)
        self.calls = 0
        self.crash_at: int | None = None
        self.fail_at: int | None = None
        self.opened: list[OpenFile | Folder] = []
        """What was opened and not closed."""

    def call(self) -> None:
        """Count a call that changes or syncs something."""
        if self.calls == self.crash_at:
            raise Crash
        self.calls += 1
        if self.calls - 1 == self.fail_at:
            raise OSError("input/output error")

    def survivors(self, names_synced: bool, data_synced: bool) -> dict[str, bytes]:
        """Return the files after a crash: by the names that were synced or as they were, and so for what is in them."""
        names = self.durable if names_synced else self.names
        return {n: f.synced if data_synced else bytes(f.data) for n, f in names.items()}

    # ---- the functions of `os`, and `open`

    def open(self, path: FolderPath, flags: object, buffering: int = -1) -> OpenFile | Folder:
        """Open the folder itself, as ``os.open`` does, or a file of it, as the built-in function does."""
        found: OpenFile | Folder = OpenFile(self, path.name, str(flags), buffering == 0)
        if not path.name:
            found = self
        self.opened.append(found)
        return found

    def close(self, opened: OpenFile | Folder) -> None:
        """Close what was opened."""
        self.opened.remove(opened)

    def fsync(self, opened: OpenFile | Folder) -> None:
        """Have what is in a file, or which names the folder has, survive a crash. Raises `OSError` if it is closed."""
        if opened not in self.opened:
            raise OSError("bad file descriptor")
        self.call()
        if isinstance(opened, Folder):
            self.durable = dict(self.names)
        else:
            opened.file.synced = bytes(opened.file.data)

    def truncate(self, path: FolderPath, size: int) -> None:
        """Make a file as long as this: cut it off, or add zeros."""
        if path.name not in self.names:
            raise FileNotFoundError(path.name)
        self.call()
        file = self.names[path.name]
        file.data = file.data[:size].ljust(size, b"\0")
        file.synced = file.synced[:size]

    def replace(self, old: FolderPath, new: FolderPath) -> None:
        """Have another name stand for a file."""
        if old.name not in self.names:
            raise FileNotFoundError(old.name)
        self.call()
        self.names[new.name] = self.names.pop(old.name)


class OpenFile:
    """An open file, with a buffer unless it is unbuffered."""

    def __init__(self, folder: Folder, name: str, mode: str, unbuffered: bool) -> None:
        self.folder = folder
        self.unbuffered = unbuffered
        self.buffer = b""
        self.at = 0
        if not name:
            return
        if name not in folder.names:
            if mode.startswith("r"):
                raise FileNotFoundError(name)
            folder.call()
            folder.names[name] = StoredFile()
        self.file = folder.names[name]
        if mode.startswith("w"):
            self.file.data.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close(self)
        self.flush()

    def seek(self, offset: int) -> None:
        """Go to a place."""
        self.at = offset

    def read(self, length: int) -> bytes:
        """Return at most so many bytes."""
        self.at += length
        return bytes(self.file.data[self.at - length : self.at])

    def write(self, data: bytes) -> int:
        """Keep the bytes until they are flushed; unbuffered, write some of them. Returns how many were taken."""
        taken = data[:MOST] if self.unbuffered else data
        self.buffer += taken
        if self.unbuffered:
            self.flush()
        return len(taken)

    def flush(self) -> None:
        """Write what was kept."""
        if self.buffer:
            self.folder.call()
            self.file.data += self.buffer
            self.buffer = b""

    def fileno(self) -> OpenFile:
        """Return what `Folder.fsync` takes for the file."""
        return self


class FolderPath:
    """The path of a folder, or of a file in it."""

    def __init__(self, folder: Folder, name: str = "") -> None:
        self.folder, self.name = folder, name
        self.st_size = len(folder.names[name].data) if name in folder.names else 0

    def __truediv__(self, name: str) -> FolderPath:
        return FolderPath(self.folder, name)

    def mkdir(self, parents: bool, exist_ok: bool) -> None:
        """Do nothing: the folder is there."""

    def iterdir(self) -> list[FolderPath]:
        """Return the paths of all files."""
        return [self / name for name in self.folder.names]

    def is_file(self) -> bool:
        """Return that it is: the folder holds nothing else."""
        return True

    def exists(self) -> bool:
        """Return whether the file is there."""
        return self.name in self.folder.names

    def stat(self) -> FolderPath:
        """Return what knows the length of the file."""
        return self


def files_on(folder: Folder, lib: ModuleType) -> Storage:
    """Return `Files` of a module, or of a mutant of it, on this folder: its very code, with other names around it."""
    own = {
        name: f
        for name, f in vars(lib.Files).items()
        if isinstance(f, FunctionType) and f.__qualname__ == f"Files.{name}"
    }
    around = {"os": folder, "open": folder.open, "Path": FolderPath}
    made = {
        name: FunctionType(f.__code__, {**f.__globals__, **around}, name, f.__defaults__)
        for name, f in own.items()
    }
    return cast(Storage, type("Files", (), made)(folder))
