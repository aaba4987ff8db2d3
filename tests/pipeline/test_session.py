"""The JVM and its Python processes keep off the terminal, and a JVM that does not start is one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim_models.pipeline import session

from .test_java import fake_java

pytest.importorskip("pyspark")

pytestmark = pytest.mark.timeout(300)  # these start a JVM, maybe on a busy machine

NOISY = """
import os, signal, time, warnings

warnings.simplefilter("ignore")
from seriatim_models.pipeline.session import session

spark = session("local[1]")
spark.sparkContext.setLogLevel("INFO")


def noisy(batches):
    os.write(1, b"a worker's standard output")
    os.write(2, b"BrokenPipeError: of a worker")
    yield from batches


assert spark.range(1).mapInArrow(noisy, "id long").count() == 1
spark.stop()
"""

INTERRUPTED = """
import gc, signal, socket
from py4j.clientserver import ClientServerConnection
from seriatim_models.ending import interruption
from seriatim_models.pipeline.session import session

spark = session("local[1]")


def interrupt(*_):
    for connection in gc.get_objects():
        if isinstance(connection, ClientServerConnection):
            connection.socket.shutdown(socket.SHUT_RDWR)
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, interrupt)
signal.alarm(1)
try:
    spark._jvm.Thread.sleep(60000)
except BaseException as error:
    print("interrupted" if interruption(error) else repr(error))
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=280, env=os.environ | environment,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.spark
def test_what_the_jvm_and_its_workers_write_is_in_the_log_only(tmp_path: Path) -> None:
    """A worker's BrokenPipeError at the end of the JVM is one such text."""
    log = tmp_path / "spark.log"
    done = run(NOISY, SERIATIM_SPARK_LOG=str(log))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = log.read_text()
    assert "a worker's standard output" in written
    assert "BrokenPipeError: of a worker" in written
    assert "INFO SparkContext" in written


@pytest.mark.slow
@pytest.mark.spark
def test_an_interrupt_while_the_jvm_goes_away_is_no_traceback() -> None:
    """As when a signal reaches both; py4j may fail at closing the connection, and log that."""
    done = run(INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_rejects_a_java_that_ends_at_once_with_its_last_lines(tmp_path: Path) -> None:
    """It is new enough by what it calls itself, and runs nothing."""
    home = fake_java(tmp_path / "java", "21.0.1")
    with (home / "bin" / "java").open("a") as java:
        java.write('[ "$1" = -version ] || { echo no memory for a heap >&2; exit 1; }\n')
    done = run(
        "from seriatim_models.pipeline.session import session; session()", JAVA_HOME=str(home)
    )
    assert done.returncode == 1
    assert "PipelineError: Spark did not start: " in done.stderr
    assert "(its last lines: " in done.stderr
    assert "no memory for a heap; " in done.stderr


def test_rejects_a_log_that_cannot_be_opened(tmp_path: Path) -> None:
    done = run(
        "from seriatim_models.pipeline.session import session; session()",
        SERIATIM_SPARK_LOG=str(tmp_path),
    )
    assert "PipelineError: SERIATIM_SPARK_LOG: " in done.stderr


@pytest.mark.parametrize(
    ("master", "attempting"),
    [
        ("local", "local[1,4]"), ("local[*]", "local[*,4]"), ("local[3]", "local[3,4]"),
        ("local[2,1]", "local[2,1]"), ("spark://host:7077", "spark://host:7077"), ("local-cluster[2,1,512]",) * 2,
    ],
)  # fmt: skip
def test_a_task_is_attempted_as_often_as_in_a_cluster(master: str, attempting: str) -> None:
    assert session.attempting(master) == attempting
