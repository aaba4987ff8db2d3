"""The Spark session: one per process, begun late, and only when the Spark engine is asked for.

What the JVM and Spark's Python workers write to their standard streams is kept off the terminal. The JVM copies the
standard error of its Python daemon, and so of every worker, to its own. Its streams are therefore a log file from the
start: a worker whose socket the JVM closes writes a BrokenPipeError traceback there, and not over the verdicts. What
a user must know reaches the driver as an exception.

The JVM runs behind a supervisor: however this process ends, also by SIGKILL or while the JVM begins, the JVM, its
Python daemon and the workers end with it.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from seriatim_models.ending import interruption
from seriatim_models.extras import how_to_install
from seriatim_models.pipeline import java
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.supervisor import supervised

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SHUFFLE_PARTITIONS = 4  # the default of 200 is for clusters; on one machine each costs 30 to 45 ms
_FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Flags that halve the time to the first result. They cost the JVM's peak speed, but here Python does the work."""

_GRACE = 10.0
"""Seconds that the JVM may take to end and to take its temporary files away, once this process has ended."""

START = 600.0
"""Seconds that Spark's Java may take to begin: it takes 4 on a quiet machine; with six times as much other work as
processors, which went first, 180 were not enough. Of a
cluster only its first answer is waited for so long: who allots the rest may take longer.
"""

ATTEMPTS = 4
"""How often a task is attempted, so that a Python worker that is killed costs no more than its task: as often as in a
cluster (spark.task.maxFailures), where Spark in one process gives up after the first.
"""
_LOCAL = re.compile(r"local(?:\[([^\],]+)\])?")

_CONF = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
}


_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For one machine only: the executors of a cluster must reach the driver."""


def require() -> None:
    """Raises `PipelineError` if PySpark or what it needs is not installed; asked before anything imports it."""
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise PipelineError(
                f"{how_to_install(package, 'the Spark engine')}; --engine local does without"
            )


def check_ready() -> None:
    """Raises `PipelineError` if PySpark, what it needs or a Java for it is missing: for who starts Spark late."""
    require()
    if "SPARK_ENV_LOADED" not in os.environ:
        java.java_home()


def session(master: str | None = None) -> SparkSession:
    """The session of this process, begun if there is none.

    Its master is `master`, else that of the environment variable SERIATIM_SPARK_MASTER, else ``local[*]``;
    under spark-submit it is the submitter's.

    The JVM writes to the file that the environment variable SERIATIM_SPARK_LOG names, else to one without a name.

    Raises `PipelineError` if PySpark or a Java for it is missing, or the JVM does not start.
    """
    require()
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    java.use()
    # Under spark-submit the master, these settings and the JVM's streams are the submitter's business.
    if "SPARK_ENV_LOADED" in os.environ:
        return _created(SparkConf().setAppName("seriatim"), None)
    chosen = attempting(master or os.environ.get("SERIATIM_SPARK_MASTER", "local[*]"))
    # Not at the top: executors import this module, maybe from a zip, in which no file has an address.
    quiet = Path(__file__).resolve().with_name("log4j2.properties").as_uri()
    settings = _CONF | {
        "spark.driver.extraJavaOptions": f"{_FAST_START} -Dlog4j2.configurationFile={quiet}"
    }
    if chosen.startswith("local"):
        settings |= _LOOPBACK
        # Otherwise Spark warns where the host's name is that of the loopback.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = SparkConf().setAppName("seriatim").setMaster(chosen).setAll(list(settings.items()))
    with _opened_log() as log:
        return _created(conf, log)


def attempting(master: str) -> str:
    """A master that attempts each task `ATTEMPTS` times: as it is, unless it is one process and says no number."""
    if not (local := _LOCAL.fullmatch(master)):
        return master
    return f"local[{local[1] or 1},{ATTEMPTS}]"


def _opened_log() -> IO[bytes]:
    """The file that the JVM writes to, at its end. Raises `PipelineError` if it cannot be opened."""
    path = os.environ.get("SERIATIM_SPARK_LOG")
    if not path:
        return tempfile.TemporaryFile()
    try:
        return Path(path).open("a+b")
    except OSError as error:
        raise PipelineError(f"SERIATIM_SPARK_LOG: {error}") from error


def _created(conf: SparkConf, log: IO[bytes] | None) -> SparkSession:
    """A session with a JVM that writes to `log`, if there is one and no JVM runs yet.

    Raises `PipelineError` with the JVM's last lines if it does not start.
    """
    from pyspark import SparkContext, java_gateway
    from pyspark.sql import SparkSession

    _silence_py4j()
    start = _Start()
    try:
        if log is not None and SparkContext._gateway is None:
            streams = {"stdout": log, "stderr": log}
            java_gateway.Popen = start.jvm  # type: ignore[attr-defined,assignment]
            with start:
                gateway = java_gateway.launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
                if not str(conf.get("spark.master")).startswith("local"):
                    start.began()
                SparkContext(conf=conf, gateway=gateway)
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:  # PySpark has its own error class for each way a JVM fails to start
        if interruption(error):
            raise
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        if start.late:
            message = f"its Java has not begun within {START:g} s"
        written = [] if log is None else _lines(log)
        last = f" (its last lines: {'; '.join(written[-3:])})" if written else ""
        raise PipelineError(f"Spark did not start: {message}{last}") from error


class _Jvm(subprocess.Popen[bytes]):
    """PySpark's JVM."""

    def poll(self) -> int | None:
        """The exit code; 1 where it is 0: PySpark would wait for ever for the port of a JVM that ended well."""
        code = super().poll()
        return 1 if code == 0 else code


class _Start:
    """While it is entered, and nobody says that the JVM began, it is ended after `START` seconds."""

    def __init__(self) -> None:
        self.late = False
        self._jvms: list[_Jvm] = []
        self._timer = threading.Timer(START, self._end)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self.began()

    def began(self) -> None:
        """Wait no longer."""
        self._timer.cancel()

    # Any: PySpark's keyword arguments of Popen
    def jvm(self, command: list[str], **options: Any) -> _Jvm:
        """PySpark's JVM behind a supervisor, in a group of its own, which Ctrl-C does not reach.

        PySpark's `preexec_fn` does the latter, too, but a Ctrl-C that comes while a `Popen` with one forks is lost:
        Python calls back what other modules want done at a fork, and an exception there is only printed.
        """
        if os.name == "posix":
            del options["preexec_fn"]
            options["process_group"] = 0
        self._jvms.append(_Jvm(supervised(command, _GRACE), **options))
        return self._jvms[-1]

    def _end(self) -> None:
        self.late = True
        for jvm in self._jvms:
            jvm.terminate()


def _silence_py4j() -> None:
    """Let py4j log nothing: it logs a traceback of Ctrl-C, or of a connection that is closed meanwhile, and raises it.

    Some it logs by loggers of its own, some by the root logger.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is not py4j's."""
    return record.module != "java_gateway"


def _lines(log: IO[bytes]) -> list[str]:
    """The lines in a log that are not empty."""
    log.seek(0)
    text = log.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def frame(
    spark: SparkSession, rows: Sequence[tuple[object, ...]], schema: StructType, partitions: int
) -> DataFrame:
    """Rows that the driver has, in so many partitions and in their order."""
    return spark.createDataFrame(
        spark.sparkContext.parallelize(rows, max(1, min(partitions, len(rows)))), schema
    )
