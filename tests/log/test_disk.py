"""The disk under the log: what both kinds promise, what files sync and when, and what the made one loses in a crash."""

from __future__ import annotations

import builtins
import os
from pathlib import Path
from typing import Any

import pytest

import seriatim.log as log
from seriatim.log import Files, Storage
from seriatim_models.programs.disk import Crash, MemoryDisk


@pytest.fixture(params=["memory", "files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return MemoryDisk() if request.param == "memory" else Files(tmp_path / "a" / "b")


def test_a_file_that_does_not_exist_is_empty(disk: Storage) -> None:
    assert disk.names() == []
    assert disk.size("f") == 0
    assert disk.read("f", 0, 9) == b""
    disk.truncate("f", 0)
    assert disk.names() == []
    disk.append("f", b"x")
    assert disk.names() == ["f"]


def test_reading_ends_where_the_file_does(disk: Storage) -> None:
    disk.append("f", b"01234")
    disk.append("f", b"56789")
    assert disk.size("f") == 10
    assert disk.read("f", 0, 10) == b"0123456789"
    assert disk.read("f", 3, 4) == b"3456"
    assert disk.read("f", 8, 99) == b"89"
    assert disk.read("f", 10, 1) == b""


def test_truncating_shortens_and_never_lengthens(disk: Storage) -> None:
    disk.append("f", b"01234")
    disk.truncate("f", 3)
    assert disk.read("f", 0, 9) == b"012"
    disk.truncate("f", 3)
    disk.truncate("f", 5)
    assert disk.size("f") == 3
    disk.append("f", b"x")
    assert disk.read("f", 0, 9) == b"012x"


def test_replacing_leaves_nothing_of_what_was_there(disk: Storage) -> None:
    disk.append("f", b"01234")
    disk.replace("f", b"x")
    disk.sync("f")
    assert (disk.read("f", 0, 9), disk.names()) == (b"x", ["f"])


def test_a_folder_may_be_there_already(tmp_path: Path) -> None:
    Files(tmp_path / "a").append("f", b"x")
    assert Files(tmp_path / "a").size("f") == 1


# ---- what files sync


class Watched:
    """The module `os` as the log sees it: writes down what is made durable, and with how many bytes in it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.open_folders = 0

    def fsync(self, fd: int) -> None:
        there = Path(f"/proc/self/fd/{fd}").readlink()
        size = "" if there.is_dir() else f" {os.fstat(fd).st_size}"
        self.said.append(f"sync {there.name}{size}")

    def replace(self, old: Path, new: Path) -> None:
        self.said.append(f"{old.name} -> {new.name}")
        os.replace(old, new)

    def open(self, path: Path, flags: int) -> int:
        self.open_folders += 1
        return os.open(path, flags)

    def close(self, fd: int) -> None:
        self.open_folders -= 1
        os.close(fd)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


# Elsewhere no descriptor says which file it is of.
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks /proc which file is synced")
def test_a_file_is_whole_before_it_is_synced_and_synced_before_it_is_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then the folder, for a name is what a folder holds."""
    watched = Watched()
    monkeypatch.setattr(log, "os", watched)
    files = Files(tmp_path / "folder")
    files.replace("state", b"four")
    assert watched.said == ["sync state.new 4", "state.new -> state", "sync folder"]
    watched.said.clear()
    files.append("log", b"seven b")
    assert watched.said == []
    files.sync("log")
    assert watched.said == ["sync log 7", "sync folder"]
    assert watched.open_folders == 0


def test_a_write_that_takes_a_part_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unbuffered, for `append` must not keep back what `sync` is to make durable."""

    class Slow:
        """A file that takes three bytes at a time."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Slow:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, data: bytes) -> int:
            return int(self.file.write(data[:3]))

    def slow(file: Path, mode: str, buffering: int = -1) -> Slow:
        assert buffering == 0
        return Slow(builtins.open(file, mode, buffering))

    monkeypatch.setattr(log, "open", slow, raising=False)
    files = Files(tmp_path)
    files.append("f", b"0123456789")
    monkeypatch.undo()
    assert files.read("f", 0, 99) == b"0123456789"


# ---- what a crash leaves of the made disk


def half_synced() -> MemoryDisk:
    disk = MemoryDisk()
    disk.append("f", b"safe")
    disk.sync("f")
    disk.append("f", b"late")
    return disk


@pytest.mark.parametrize(
    ("kept", "zeros", "there"),
    [
        (None, False, b"safelate"),
        (None, True, b"safelate"),
        (0, False, b"safe"),
        (0, True, b"safe\0\0\0\0"),
        (3, False, b"safelat"),
        (3, True, b"safelat\0"),
        (9, False, b"safelate"),
        (9, True, b"safelate"),
    ],
)
def test_a_crash_leaves_what_was_synced_and_some_of_the_rest(
    kept: int | None, zeros: bool, there: bytes
) -> None:
    assert half_synced().survivors(kept, zeros) == {"f": there}


def test_a_crash_leaves_what_was_replaced_and_of_what_was_cut_off_nothing() -> None:
    disk = half_synced()
    disk.replace("g", b"whole")
    disk.truncate("f", 2)
    disk.append("f", b"xyz")
    assert disk.survivors(0) == {"f": b"sa", "g": b"whole"}
    assert MemoryDisk(disk.survivors(0)).survivors(0) == {"f": b"sa", "g": b"whole"}


def test_each_byte_and_each_other_change_is_a_place_to_crash() -> None:
    """A change that is not paid for is not made; of an append the bytes that are."""

    def life(disk: MemoryDisk) -> None:
        disk.append("f", b"234")
        disk.sync("f")
        disk.truncate("f", 1)
        disk.truncate("f", 1)  # which changes nothing, and costs nothing
        disk.replace("f", b"new")
        disk.append("f", b"++")

    spent = []
    for budget in range(8):
        disk = MemoryDisk({"f": b"01"}, budget)
        with pytest.raises(Crash):
            life(disk)
        spent.append((disk.spent, bytes(disk.files["f"]), disk.synced["f"]))
    assert spent == [
        (0, b"01", b"01"),
        (1, b"012", b"01"),
        (2, b"0123", b"01"),
        (3, b"01234", b"01"),
        (4, b"01234", b"01234"),
        (5, b"0", b"0"),
        (6, b"new", b"new"),
        (7, b"new+", b"new"),
    ]
