"""`make corpus`: fetch, run and tabulate the known bugs.

`--table FILE` writes the table into a page, `--only NAME` runs one.

Sources come through `pip download --no-deps` into the cache folder (`XDG_CACHE_HOME`/seriatim-corpus), pinned.
Each version is run by a process of its own, so that no two versions of a library meet.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 20.0
"""How long the search on one version may take."""
BEGIN, END = "<!-- corpus: generated -->", "<!-- corpus: end -->"


class KnownBug(NamedTuple):
    """A bug of a released library: what is wrong, where it was reported, in which version it is and is not."""

    driver: str
    package: str
    buggy: str
    fixed: str
    modules: tuple[str, ...]
    what: str
    source: str
    also: tuple[str, ...] = ()
    """What the library needs besides."""


BUGS = (
    KnownBug("futures_wait", "futures", "2.1.2", "2.1.3", ("concurrent",),
             "wait() hangs: `num_pending_calls -= 1` without a lock", "bpo-14406"),
    KnownBug("redis_limit", "redis", "2.10.6", "3.5.3", ("redis.connection",),
             "more connections than max_connections: check, then act", "ConnectionPool got a lock in 3.x"),
    KnownBug("redis_count", "redis", "2.10.6", "3.5.3", ("redis.connection",),
             "the count of connections is too low: `+= 1` without a lock", "ConnectionPool got a lock in 3.x"),
    KnownBug("pyee_once", "pyee", "7.0.2", "13.0.0", ("pyee",),
             "a once() handler called twice, or emit() raises", "handlers got a lock later"),
    KnownBug("zict_lru", "zict", "2.2.0", "3.0.0", ("zict",),
             "two insertions: KeyError, or a weight that is not that of what is inside",
             "3.0.0 is the first that is thread-safe",
             ("heapdict==1.0.1",)),
    KnownBug("urllib3_two_pools", "urllib3", "1.6", "1.7", ("urllib3",),
             "two pools for one host: check, then act", "urllib3 PR 204"),
)  # fmt: skip

NOT_HAD = (
    ("Jinja2 2.5.5, LRUCache", "its setup.py is Python 2: pip cannot fetch it"),
    (
        "urllib3 1.6, a connection put back into a pool that is being closed",
        "1.7 does the same, so there is no repaired version to compare with",
    ),
)
"""Bugs that are known and were not run, with the reason."""


def cache() -> Path:
    """The folder in which fetched sources lie."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "seriatim-corpus"


def fetched(requirement: str) -> Path:
    """The folder of the sources of ``name==version``. Raises `CalledProcessError` if they cannot be had."""
    folder = cache() / requirement
    if folder.is_dir() and any(folder.iterdir()):
        return folder
    archives = cache() / "archives" / requirement
    archives.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(archives), requirement],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    [archive] = [path for path in archives.iterdir() if path.is_file()]
    unpacked = cache() / f"{requirement}.unpacked"
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(unpacked)
    else:
        with tarfile.open(archive) as sdist:
            sdist.extractall(unpacked, filter="data")
    inner = [path for path in unpacked.iterdir() if path.is_dir()]
    (inner[0] if len(inner) == 1 and archive.suffix == ".gz" else unpacked).rename(folder)
    return folder


def one(driver: str, modules: list[str]) -> dict[str, Any]:
    """The result of a driver with what can be imported in this process."""
    import collections
    import collections.abc
    import logging

    logging.disable()  # a message would ask for the real time
    logging.StreamHandler = logging.NullHandler  # type: ignore[misc,assignment]  # which has no lock
    for name in ("MutableMapping", "Mapping", "Callable", "Iterable"):
        if not hasattr(collections, name):  # libraries from before Python 3.10
            setattr(collections, name, getattr(collections.abc, name))
    from seriatim_models.explorer import ExplorerError
    from seriatim_models.explorer.python import check
    from seriatim_workshop.corpus import drivers

    try:
        result = check(getattr(drivers, driver), modules=modules, seconds=SECONDS)
    except ExplorerError as error:
        return {"verdict": "refused", "why": str(error), "executions": 0, "seconds": 0.0}
    return {
        "verdict": result.verdict,
        "why": result.why,
        "executions": result.executions,
        "seconds": round(result.seconds, 2),
    }


def judged(bug: KnownBug, version: str) -> dict[str, Any]:
    """The result of a driver on one version, in a process of its own."""
    try:
        folders = [fetched(f"{bug.package}=={version}"), *map(fetched, bug.also)]
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        return {"verdict": "not had", "why": str(error), "executions": 0, "seconds": 0.0}
    paths = [*map(str, folders), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    ended = subprocess.run(
        [sys.executable, "-m", "seriatim_workshop.corpus.run", "--one", bug.driver, *bug.modules],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=3 * SECONDS, check=False,
    )  # fmt: skip
    for line in reversed(ended.stdout.splitlines()):
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    why = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return {"verdict": "failed", "why": why, "executions": 0, "seconds": 0.0}


def row(bug: KnownBug, buggy: dict[str, Any], fixed: dict[str, Any]) -> str:
    """A line of the table."""
    found = "found" if buggy["verdict"] == "violated" else f"missed ({buggy['verdict']})"
    quiet = (
        "quiet" if fixed["verdict"] in ("ok", "inconclusive") else f"not quiet ({fixed['verdict']})"
    )
    if fixed["verdict"] == "inconclusive":
        quiet = "quiet, verdict withheld"
    return (
        f"| {bug.package} {bug.buggy} -> {bug.fixed} | {bug.what} ({bug.source}) | {found} | {buggy['executions']} | "
        f"{buggy['seconds']} | {quiet} | {fixed['executions']} |"
    )


def table(rows: list[str]) -> str:
    """The table with its head, and what was not run."""
    head = "| library | bug | with the bug | executions | seconds | repaired | executions |"
    lines = [head, "|---|---|---|---|---|---|---|", *rows, "", "Not run:", ""]
    lines += [f"- {name}: {why}." for name, why in NOT_HAD]
    return "\n".join(lines)


def main() -> int:
    """Run the corpus; 1 if a bug was missed or a repaired version was not quiet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs="+", metavar="DRIVER", help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="NAME", help="only the drivers whose name begins so")
    parser.add_argument("--table", metavar="FILE", help="write the table into this page")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(asked.one[0], asked.one[1:])))
        return 0
    rows, wrong = [], 0
    for bug in BUGS:
        if asked.only and not bug.driver.startswith(asked.only):
            continue
        buggy, fixed = judged(bug, bug.buggy), judged(bug, bug.fixed)
        rows.append(row(bug, buggy, fixed))
        print(rows[-1], flush=True)
        missed = buggy["verdict"] != "violated"
        noisy = fixed["verdict"] not in ("ok", "inconclusive")
        wrong += missed or noisy
        for what, result in (("missed", buggy),) * missed + (("not quiet", fixed),) * noisy:
            print(f"  {what}: {result['why'][:400]}", flush=True)
    if asked.table:
        page = Path(asked.table)
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        page.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", encoding="utf-8")
    print(f"{len(rows) - wrong} passed, {wrong} failed")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
