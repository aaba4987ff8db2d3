"""`make corpus`: fetch, run and tabulate the known bugs.

`--table FILE` writes the table into a page, `--only NAME` runs one, `--peers` asks other explorers of Python instead.

Sources come through `pip download --no-deps` into the cache folder (`XDG_CACHE_HOME`/seriatim-corpus), pinned.
Each version is run by a process of its own, so that no two versions of a library meet. Its search may take 20 seconds
of the processor, and 120 by the clock.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from seriatim_models.supervisor import supervised
from seriatim_workshop.bench.explorers import EXPLORERS, PythonPeer
from seriatim_workshop.corpus import drivers, fourth_aside, kept_aside, second_aside, third_aside

RAISED = tuple(
    f"raised {name}"
    for name in ("IndexError", "KeyError", "NotFound", "ClosedPoolError", "AssertionError")
)
"""What the bugs raise; frontrun lets it out. Other exceptions are of a driver that could not be run."""
PEER_SECONDS = 10.0
BY_PEERS = Path(__file__).with_name("by_peers.py")
SECONDS = 20.0
"""How long the search on one version may take, in seconds of the processor, so that a busy machine finds as much."""
BY_THE_CLOCK = 6 * SECONDS
"""How long its process may take by the clock."""
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
    """What the library needs besides; `{version}` is the version of the library."""


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
    KnownBug("urllib3_lru", "urllib3", "1.4", "1.7", ("urllib3",),
             "the container of pools evicts twice: its lock guards single operations",
             "RecentlyUsedContainer was written anew"),
    KnownBug("urllib3_closed_pool", "urllib3", "1.26.15", "1.26.16", ("urllib3",),
             "ClosedPoolError: a pool is evicted and closed while a thread uses it", "urllib3 PR 2954"),
    KnownBug("jinja2_setdefault", "Jinja2", "2.10.3", "3.1.4", ("jinja2.utils",),
             "LRUCache.setdefault takes its lock twice", "3.x takes no lock there", ("MarkupSafe==2.0.1",)),
    KnownBug("requests_digest", "requests", "2.7.0", "2.8.0", ("requests.auth",),
             "one nonce for the requests of two threads", "HTTPDigestAuth got a state for each thread"),
    KnownBug("paho_mid", "paho-mqtt", "1.3.1", "1.6.1", ("paho.mqtt.client",),
             "two messages with one identifier: `+= 1` without a lock", "_mid_generate_mutex came later"),
    KnownBug("pykka_get", "pykka", "1.2.1", "4.5.0", ("pykka",),
             "the second get() of a future waits for ever", "ThreadingFuture waits for a condition since"),
    KnownBug("aiorwlock_both", "aiorwlock", "1.0.0", "1.5.0", ("aiorwlock",),
             "a writer enters beside a reader that was woken and has not run", "the state is set by the waker since"),
    KnownBug("anyio_lock", "anyio", "4.12.1", "4.14.1", ("anyio", "sniffio"),
             "Lock: a waiter is stranded behind a cancelled one", "anyio PR 1145", ("sniffio==1.3.1", "idna==3.10")),
    KnownBug("anyio_condition", "anyio", "4.12.1", "4.16.0", ("anyio", "sniffio"),
             "Condition: a notification of a cancelled waiter is lost", "passed on in a later 4.x",
             ("sniffio==1.3.1", "idna==3.10")),
    KnownBug("peewee_pool", "peewee", "3.14.10", "3.18.2", ("peewee", "playhouse"),
             "more connections than max_connections: check, then act", "PooledDatabase got a lock"),
    KnownBug("limits_count", "limits", "3.13.0", "5.8.0", ("limits",),
             "a hit is not counted: `+=` without a lock", "MemoryStorage got a lock for each key",
             ("Deprecated==1.2.14", "packaging==24.2", "importlib_resources==6.4.5", "wrapt==1.17.0")),
    KnownBug("django_locmem", "Django", "1.11.29", "2.1.15", ("django.core.cache.backends", "django.utils"),
             "get() of an expired key deletes the value that was set meanwhile", "one lock for all of it since 2.1",
             ("pytz==2024.1",)),
    KnownBug("boltons_lri", "boltons", "16.0.0", "26.2.0", ("boltons",),
             "LRI: two insertions raise, or too much stays", "LRI got the lock of LRU"),
    KnownBug("prometheus_timer", "prometheus_client", "0.3.0", "0.3.1", ("prometheus_client",),
             "calls of one timed function share the start of their timer", "client_python issue 287"),
    KnownBug("cachetools_cached", "cachetools", "4.1.1", "4.2.0", ("cachetools",),
             "@cached with a lock: a value that was returned is replaced",
             "4.2.0: behavior of decorators in case of race conditions"),
    KnownBug("repoze_lru", "repoze.lru", "0.4", "0.5", ("repoze",),
             "an entry is evicted though there is room: the slot is chosen before the lock is taken",
             "put() holds the lock all the time since 0.5"),
    KnownBug("werkzeug_map", "Werkzeug", "0.9.6", "0.10.4", ("werkzeug.routing",),
             "NotFound: a thread matches while another sorts the rules", "Map.update() got a lock in 0.10"),
    KnownBug("anyio_limiter", "anyio", "4.9.0", "4.10.0", ("anyio", "sniffio"),
             "CapacityLimiter: the token of a waiter that is cancelled is lost", "anyio issue 947",
             ("sniffio==1.3.1", "idna==3.10")),
    KnownBug("anyio_semaphore", "anyio", "4.12.1", "4.14.1", ("anyio", "sniffio"),
             "Semaphore: a waiter is stranded behind a cancelled one", "anyio PR 1145",
             ("sniffio==1.3.1", "idna==3.10")),
    KnownBug("ratelimit_calls", "ratelimit", "1.3.0", "1.4.1", ("ratelimit",),
             "two calls in one period: the time of the last one is looked at, then set", "1.4 has a lock around both"),
    KnownBug("tenacity_statistics", "tenacity", "8.3.0", "8.4.2", ("tenacity",),
             "calls of one coroutine function share their statistics", "each call has a copy of its own since 8.4.2"),
)  # fmt: skip

ASIDE = (
    KnownBug("filelock_singleton", "filelock", "3.29.0", "4.3.1", ("filelock",),
             "two locks that are one: the table of singletons has no lock", "filelock PR 581"),
    KnownBug("limits_expiry", "limits", "5.2.0", "5.3.0", ("limits",),
             "async MemoryStorage: a hit is lost, for where to cut is found outside the lock", "limits issue 277",
             ("Deprecated==1.2.14", "packaging==24.2", "wrapt==1.17.0")),
    KnownBug("watchdog_start", "watchdog", "0.9.0", "0.10.2", ("watchdog",),
             "start() goes through the set of emitters, which schedule() changes", "watchdog issue 544",
             ("pathtools==0.1.2",)),
    KnownBug("watchdog_unscheduled", "watchdog", "6.0.0", "7.1.0", ("watchdog",),
             "a path that was taken away stays among the handlers", "watchdog PR 1261"),
    KnownBug("httpcore_closed", "httpcore", "0.14.2", "0.14.3", ("httpcore",),
             "a closed connection is removed twice", "httpcore 0.14.3",
             ("h11==0.12.0", "anyio==3.7.1", "sniffio==1.3.1", "idna==3.10", "certifi==2024.2.2")),
    KnownBug("repoze_clear", "repoze.lru", "0.4", "0.5", ("repoze",),
             "clear() while a thread puts: IndexError", "repoze.lru issue 6"),
    KnownBug("async_cache_twice", "async-cache", "1.1.1", "2.0.3", ("cache",),
             "two calls at once both compute", "2.0.0 shares the first one"),
    KnownBug("socketio_leaves", "python-socketio", "1.5.0", "4.6.1", ("socketio.base_manager",),
             "disconnect() goes through the rooms, which enter_room() changes", "a copy is gone through later",
             ("six==1.16.0", "python-engineio==3.14.2")),
    KnownBug("pybrake_modules", "pybrake", "0.4.4", "0.4.6", ("pybrake",),
             "a notice goes through sys.modules while a thread imports", "pybrake PR 116"),
)  # fmt: skip
"""Bugs whose drivers were written before the explorer was run on them (`kept_aside`)."""

FLASK = (
    "Flask==1.1.4", "Werkzeug==1.0.1", "Jinja2==2.11.3", "MarkupSafe==2.0.1", "itsdangerous==1.1.0", "click==7.1.2",
)  # fmt: skip

SECOND_ASIDE = (
    KnownBug("kafka_callback", "kafka-python", "2.0.2", "2.2.0", ("kafka.future",),
             "a callback that is added while the future succeeds is never called: check, then act",
             "kafka-python issue 2291, a lock in PR 2549"),
    KnownBug("janus_join", "janus", "1.1.0", "1.2.0", ("janus",),
             "AsyncQueue.join() goes round without letting the loop run: an event is set after it was cleared",
             "janus 1.2.0, PR 716: hang in AsyncQueue.join()"),
    KnownBug("aiojobs_pending", "aiojobs", "1.0.0", "1.1.0", ("aiojobs", "async_timeout"),
             "spawn() waits for ever when the limit of pending jobs is reached: who waits is counted as active",
             "aiojobs 1.1.0, PR 135", ("async-timeout==4.0.3",)),
    KnownBug("loguru_remove", "loguru", "0.7.2", "0.7.3", ("loguru",),
             "RuntimeError: remove() takes handlers out of the dict that a thread goes through to log",
             "loguru issue 1183"),
    KnownBug("loguru_complete", "loguru", "0.7.0", "0.7.1", ("loguru",),
             "complete() awaits with a lock of threads held: another task cannot log", "loguru issue 906, PR 972"),
    KnownBug("redis_cancelled", "redis", "4.5.1", "4.5.5", ("redis", "async_timeout"),
             "the answer to a command that was cancelled is given to the next one", "redis-py issues 2624 and 2665",
             ("async-timeout==4.0.3",)),
    KnownBug("zeroconf_alias", "zeroconf", "0.29.0", "0.31.0", ("zeroconf",),
             "a lookup misses a record, for it goes through the list that is being changed", "python-zeroconf PR 340",
             ("ifaddr==0.2.0",)),
    KnownBug("cachelib_prune", "cachelib", "0.13.0", "0.15.4", ("cachelib",),
             "RuntimeError: set() goes through the dict that another thread changes",
             "cachelib issue 446, flask-caching issue 572"),
    KnownBug("pyparsing_packrat", "pyparsing", "3.2.3", "3.2.5", ("pyparsing",),
             "the cache is emptied outside its lock while a thread takes the oldest element", "pyparsing issue 604"),
    KnownBug("asgiref_task", "asgiref", "3.7.2", "3.8.1", ("asgiref",),
             "sync_to_async in a task of a view gives its work to the thread that waits for it", "asgiref issue 348"),
    KnownBug("asynciolimiter_idle", "asynciolimiter", "1.1.1", "1.1.2", ("asynciolimiter",),
             "a waiter is never woken after the limiter was idle: a timer that has rung counts as set",
             "asynciolimiter issue 17"),
    KnownBug("tqdm_instances", "tqdm", "4.32.1", "4.32.2", ("tqdm",),
             "two bars are made at once: one goes through the set that the other changes", "tqdm PRs 700 and 754"),
    KnownBug("aiocache_timer", "aiocache", "0.10.0", "0.10.1", ("aiocache",),
             "the timer of an old value deletes the new one", "aiocache PR 424"),
    KnownBug("flask_caching_none", "Flask-Caching", "1.7.2", "1.8.0", ("flask_caching",),
             "None is returned for a value that comes between get() and has()", "flask-caching issue 135", FLASK),
)  # fmt: skip
"""A second set of such bugs, from trackers and changelogs; the drivers were committed before any was explored."""

THIRD_ASIDE = (
    KnownBug("pyrate_leak", "pyrate-limiter", "4.3.1", "4.4.0", ("pyrate_limiter",),
             "an item that is put while the old ones leak is thrown away with them", "pyrate-limiter issue 300"),
    KnownBug("rich_live", "rich", "9.8.1", "9.8.2", ("rich",),
             "Live.stop() joins the thread that refreshes, with the lock held that it wants", "rich issue 927",
             ("colorama==0.4.6", "commonmark==0.9.1", "Pygments==2.7.4", "typing_extensions==4.12.2")),
    KnownBug("otel_instrument", "opentelemetry-sdk", "1.39.1", "1.43.0", ("opentelemetry",),
             "KeyError: an instrument is registered before it is made", "opentelemetry-python issue 4892, PR 4913",
             ("opentelemetry-api=={version}", "opentelemetry-semantic-conventions==0.60b1",
              "typing_extensions==4.12.2", "importlib-metadata==8.5.0", "zipp==3.20.2")),
    KnownBug("otel_reservoir", "opentelemetry-sdk", "1.44.0", "1.45.2", ("opentelemetry",),
             "ValueError: the count of measurements is reset between its increment and its use",
             "opentelemetry-python issue 5431",
             ("opentelemetry-api=={version}", "opentelemetry-semantic-conventions==0.66b2",
              "typing_extensions==4.12.2")),
    KnownBug("async_lru_evicted", "async-lru", "2.0.2", "2.0.3", ("async_lru",),
             "KeyError in a callback: a result whose key was evicted is never handed out", "async-lru issue 480",
             ("typing_extensions==4.12.2",)),
    KnownBug("rx_zip", "Rx", "3.0.1", "3.1.1", ("rx",),
             "zip: two sources that give at once take the same pair", "zip got a lock in 3.1"),
    KnownBug("apscheduler_start", "APScheduler", "3.1.0", "3.3.1", ("apscheduler",),
             "a job is added between the start and the making of the event that wakes the scheduler",
             "the event is made first in 3.3", ("pytz==2024.1", "tzlocal==2.1", "six==1.16.0")),
    KnownBug("watchdog_repeats", "watchdog", "6.0.0", "7.1.0", ("watchdog",),
             "SkipRepeatsQueue takes a repeat: compared outside the lock", "put() got a lock in 7.x"),
    KnownBug("anyio_closed_stream", "anyio", "4.15.0", "4.16.0", ("anyio", "sniffio"),
             "who waits for an item of a stream that is closed waits for ever", "close() wakes the waiters since 4.16",
             ("sniffio==1.3.1", "idna==3.10", "typing_extensions==4.16.0")),
    KnownBug("anyio_lost_item", "anyio", "4.2.0", "4.4.0", ("anyio", "sniffio"),
             "an item that is sent to a receiver that is being cancelled is lost",
             "4.4 looks whether the receiver has a pending cancellation", ("sniffio==1.3.1", "idna==3.10")),
    KnownBug("aiologic_notify_all", "aiologic", "0.7.0", "0.7.1", ("aiologic",),
             "Condition.notify_all() never ends: it removes another object than the waiter", "aiologic 0.7.1"),
    KnownBug("fasteners_overtaken", "fasteners", "0.15", "0.17.3", ("fasteners",),
             "a reader is let in while a writer waits", "a reader waits for pending writers since 0.16",
             ("monotonic==1.6", "six==1.16.0")),
)  # fmt: skip
"""A third set, committed before any was explored."""

FOURTH_ASIDE = (
    KnownBug("anyio_portal", "anyio", "4.11.0", "4.12.0", ("anyio", "sniffio"),
             "BlockingPortal: a future is cancelled between a look whether it is and the callback for it",
             "anyio issue 1011, PR 1012", ("sniffio==1.3.1", "idna==3.10")),
    KnownBug("injector_singleton", "injector", "0.20.1", "0.21.0", ("injector",),
             "two objects of a singleton: get() makes the scope without a lock", "injector PR 215",
             ("typing_extensions==4.12.2",)),
    KnownBug("loguru_finalizer", "loguru", "0.6.0", "0.7.0", ("loguru",),
             "a finalizer that logs while a message is written waits for its own thread's lock", "loguru PR 720"),
    KnownBug("apipkg_attribute", "apipkg", "1.5", "2.0.1", ("apipkg",),
             "AttributeError: a lazy attribute is taken out of the table by another thread", "apipkg PR 25"),
    KnownBug("apipkg_replaced", "apipkg", "2.0.1", "2.1.1", ("apipkg",),
             "a module that is imported while it replaces itself has no attributes", "apipkg 2.1: updated in place"),
    KnownBug("httpcore_cancelled", "httpcore", "0.12.3", "0.13.0", ("httpcore", "h11", "sniffio"),
             "a request that is cancelled while it connects keeps its place in the pool", "httpcore issue 149, PR 305",
             ("h11==0.12.0", "sniffio==1.3.1")),
    KnownBug("waitress_closing", "waitress", "3.0.0", "3.0.1", ("waitress",),
             "a request is queued on a connection that is being closed for an error", "CVE-2024-49768"),
    KnownBug("fifolock_cancelled", "fifolock", "0.0.17", "0.0.20", ("fifolock",),
             "a task that is cancelled after it was let in holds the lock for ever", "fifolock PR 7"),
    KnownBug("more_executors_shutdown", "more-executors", "1.14.0", "1.15.0", ("more_executors", "monotonic"),
             "CancelOnShutdownExecutor waits for its jobs with the lock held that submit() takes",
             "more-executors issue 98", ("monotonic==1.6", "six==1.16.0")),
    KnownBug("more_executors_dropped", "more-executors", "1.17.1", "1.18.0", ("more_executors", "monotonic"),
             "a future waits for ever, for its executor is only held by a weak reference",
             "more-executors issue 114", ("monotonic==1.6", "six==1.16.0")),
    KnownBug("asgiref_local", "asgiref", "3.8.1", "3.9.1", ("asgiref",),
             "tasks share the dict of a Local, for only the context variable that holds it is copied",
             "asgiref issue 473"),
    KnownBug("lazy_loader_twice", "lazy-loader", "0.3", "0.4", ("lazy_loader",),
             "two threads load a module: each puts one of its own into sys.modules", "lazy-loader PR 90"),
)  # fmt: skip
"""A fourth set, committed before any was explored."""

SETS = (
    (drivers, BUGS),
    (kept_aside, ASIDE),
    (second_aside, SECOND_ASIDE),
    (third_aside, THIRD_ASIDE),
    (fourth_aside, FOURTH_ASIDE),
)
"""Each module of drivers with its bugs; the first is the corpus, the others are kept aside."""

NOT_HAD = (
    (
        "Jinja2 2.5.5, LRUCache.__getitem__",
        "its setup.py is Python 2: pip cannot fetch it; 2.7, the next that it can, has the lock",
    ),
    ("unitree BQueue.Interrupt", "on no package registry"),
    (
        "asyncio.Semaphore of Python 3.9 (gh-90155)",
        "part of an interpreter: no registry of packages has it",
    ),
    (
        "asyncio.Condition of Python 3.11 and 3.12 (gh-112202)",
        "part of the interpreter: found with the one that runs, see above",
    ),
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
        supervised([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(archives), requirement]),
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


class HandlerWithoutLock(logging.NullHandler):
    """What a library makes in the place of a `logging.StreamHandler`: it has no lock, and writes nothing."""

    def __init__(self, stream: object = None) -> None:
        super().__init__()


def driver_of(name: str) -> Any:
    """The driver of this name."""
    return next(getattr(module, name) for module, _ in SETS if hasattr(module, name))


def one(driver: str, modules: list[str]) -> dict[str, Any]:
    """The result of a driver with what can be imported in this process."""
    import collections
    import collections.abc
    import socket
    import time

    time.perf_counter = time.process_time  # what the search counts its seconds by
    socket.has_ipv6 = False  # urllib3 would open a socket to see
    logging.disable()  # a message would ask for the real time
    logging.StreamHandler = HandlerWithoutLock  # type: ignore[misc,assignment]
    for name in ("MutableMapping", "Mapping", "Callable", "Iterable", "MutableSet", "Sequence"):
        if not hasattr(collections, name):  # libraries from before Python 3.10
            setattr(collections, name, getattr(collections.abc, name))
    from seriatim_models.explorer import ExplorerError
    from seriatim_models.explorer.python import check

    try:
        result = check(driver_of(driver), modules=[*modules, drivers.__name__], seconds=SECONDS)
    except ExplorerError as error:
        return {"verdict": "refused", "why": str(error), "executions": 0, "seconds": 0.0}
    return {
        "verdict": result.verdict,
        "why": result.why,
        "executions": result.executions,
        "seconds": round(result.seconds, 2),
        "processor": round(time.process_time(), 2),
    }


def judged(bug: KnownBug, version: str, peer: PythonPeer | None = None) -> dict[str, Any]:
    """The result of a driver on one version, in a process of its own; by another explorer if one is named."""
    try:
        folders = [
            fetched(f"{bug.package}=={version}"),
            *(fetched(need.format(version=version)) for need in bug.also),
        ]
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        return {"verdict": "not had", "why": str(error), "executions": 0, "seconds": 0.0}
    folders += [folder / "src" for folder in folders if (folder / "src").is_dir()]
    paths = list(map(str, folders))
    command = [
        sys.executable,
        "-m",
        "seriatim_workshop.corpus.run",
        "--one",
        bug.driver,
        *bug.modules,
    ]
    if peer is None:
        paths += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    else:
        command = [*peer.command(), str(BY_PEERS), peer.name, bug.driver, str(PEER_SECONDS)]
    try:
        ended = subprocess.run(
            supervised(command),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, text=True, timeout=BY_THE_CLOCK, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"verdict": "out of time", "why": "", "executions": 0, "seconds": BY_THE_CLOCK}
    for line in reversed(ended.stdout.splitlines()):
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    why = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return {"verdict": "failed", "why": why, "executions": 0, "seconds": 0.0}


def found_it(result: dict[str, Any]) -> bool:
    """Whether a result shows the bug: an error before the first step is one of the driver, or of what it imports."""
    return result["verdict"] == "violated" and " in step 0" not in result["why"]


def row(bug: KnownBug, buggy: dict[str, Any], fixed: dict[str, Any]) -> str:
    """A line of the table."""
    found = "found" if found_it(buggy) else f"missed ({buggy['verdict']})"
    quiet = (
        "quiet" if fixed["verdict"] in ("ok", "inconclusive") else f"not quiet ({fixed['verdict']})"
    )
    if fixed["verdict"] == "inconclusive":
        quiet = "quiet, verdict withheld"
    return (
        f"| {bug.package} {bug.buggy} -> {bug.fixed} | {bug.what} ({bug.source}) | {found} | {buggy['executions']} | "
        f"{buggy['seconds']} | {quiet} | {fixed['executions']} |"
    )


def by_peer(bug: KnownBug, peer: PythonPeer) -> str:
    """What another explorer says of the version with the bug and of the repaired one: verdict, executions, seconds."""
    if inspect.iscoroutinefunction(getattr(drivers, bug.driver)):
        return "a test of asyncio"
    said = []
    for version in (bug.buggy, bug.fixed):
        result = judged(bug, version, peer)
        verdict = result["verdict"]
        what = (
            "violated" if verdict.startswith(("violated", *RAISED)) else verdict.partition(":")[0]
        )
        said.append(f"{what}, {result['executions']}, {result['seconds']}")
    return "; ".join(said)


def peers_table(bugs: list[KnownBug]) -> str:
    """The same drivers under other explorers, each as it is by default. Raises `Absent` if one cannot be had."""
    peers = [peer for peer in EXPLORERS if isinstance(peer, PythonPeer)]
    heads = [f"{peer.name} {peer.prepare()}" for peer in peers]
    lines = [f"| driver | {' | '.join(heads)} |", "|---" * (1 + len(peers)) + "|"]
    for bug in bugs:
        lines.append(f"| {bug.driver} | {' | '.join(by_peer(bug, peer) for peer in peers)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


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
    parser.add_argument(
        "--aside", type=int, nargs="?", const=1, default=0, choices=range(len(SETS)), metavar="SET",
        help="a set that is kept aside: the first, or that of this number",
    )  # fmt: skip
    parser.add_argument(
        "--peers", action="store_true", help="frontrun and interleave-test on the same drivers"
    )
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(asked.one[0], asked.one[1:])))
        return 0
    bugs = [
        bug for bug in SETS[asked.aside][1] if not asked.only or bug.driver.startswith(asked.only)
    ]
    if asked.peers:
        peers_table(bugs)
        return 0
    rows, wrong = [], 0
    for bug in bugs:
        buggy, fixed = judged(bug, bug.buggy), judged(bug, bug.fixed)
        rows.append(row(bug, buggy, fixed))
        print(rows[-1], flush=True)
        for what, result in (("with the bug", buggy), ("repaired", fixed)) * bool(asked.aside):
            print(f"  {what}: {result['verdict']}, {result.get('processor', 0)} s of the processor")
            print(f"    {result['why'][:600]}".replace("\n", "\n    "), flush=True)
        missed = not found_it(buggy)
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
