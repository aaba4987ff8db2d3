"""The Spark session: one per process, begun late, and only when the Spark engine is asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from seriatim_models.pipeline import java
from seriatim_models.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SHUFFLE_PARTITIONS = 4  # the default of 200 is for clusters; on one machine each costs 30 to 45 ms
_FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Flags that halve the time to the first result. They cost the JVM's peak speed, but here Python does the work."""

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
                f"the Spark engine needs {package}: pip install 'seriatim[spark]'; --engine local does without"
            )


def session(master: str | None = None) -> SparkSession:
    """The session of this process, begun if there is none.

    Its master is `master`, else that of the environment variable SERIATIM_SPARK_MASTER, else ``local[*]``;
    under spark-submit it is the submitter's.

    Raises `PipelineError` if PySpark or a Java for it is missing.
    """
    require()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    java.use()
    builder = SparkSession.builder.appName("seriatim")
    # Under spark-submit the master and these settings are the submitter's business.
    if "SPARK_ENV_LOADED" not in os.environ:
        chosen = master or os.environ.get("SERIATIM_SPARK_MASTER", "local[*]")
        builder = builder.master(chosen)
        # Not at the top: executors import this module, maybe from a zip, in which no file has an address.
        quiet = Path(__file__).resolve().with_name("log4j2.properties").as_uri()
        conf = _CONF | {
            "spark.driver.extraJavaOptions": f"{_FAST_START} -Dlog4j2.configurationFile={quiet}"
        }
        if chosen.startswith("local"):
            conf |= _LOOPBACK
            # Otherwise Spark warns where the host's name is that of the loopback.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        for key, value in conf.items():
            builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # PySpark has its own error class for each way a JVM fails to start
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise PipelineError(f"Spark did not start: {said}") from error


def frame(
    spark: SparkSession, rows: Sequence[tuple[object, ...]], schema: StructType, partitions: int
) -> DataFrame:
    """Rows that the driver has, in so many partitions and in their order."""
    return spark.createDataFrame(
        spark.sparkContext.parallelize(rows, max(1, min(partitions, len(rows)))), schema
    )
