"""The same module through spark-submit, on Spark's standalone master and two workers of this machine.

Minutes long: `make test-cluster`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

import seriatim_models
from seriatim_models.conformance.profiles import PROFILES, SYSTEMS
from seriatim_models.conformance.standing import forms
from seriatim_models.pipeline import audit_paths, java, tables
from seriatim_models.pipeline.generate import generate

from .conftest import DATA

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]

SUBMIT = Path(seriatim_models.__file__).parent / "pipeline" / "submit.py"


def free() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    assert isinstance(port, int)
    return port


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master that has two workers of one core each."""
    java.use()
    home = tmp_path_factory.mktemp("cluster")
    environment = os.environ | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(home),
        "SPARK_WORKER_DIR": str(home / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }
    port, page = free(), free()
    master = f"spark://127.0.0.1:{port}"
    classes = [
        ("Master", ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)]),
        *[
            ("Worker", [master, "--host", "127.0.0.1", "--cores", "1", "--memory", "2g", "--webui-port", str(free())])
            for _ in range(2)
        ],
    ]  # fmt: skip
    running = []
    try:
        for kind, arguments in classes:
            name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
            with (home / f"{kind}-{len(running)}.log").open("wb") as log:
                running.append(
                    subprocess.Popen(
                        [spark_home() / "bin" / "spark-class", name, *arguments],
                        env=environment, stdout=log, stderr=log, start_new_session=True,
                    )
                )  # fmt: skip
        until = time.monotonic() + 120
        while True:
            try:
                with urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
                    if json.load(answer)["aliveworkers"] == 2:
                        break
            except OSError:
                pass
            assert time.monotonic() < until, (home / "Master-0.log").read_text()
            time.sleep(0.5)
        yield master
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            process.wait(30)


def submit(cluster: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
    }
    flags = [word for k, v in conf.items() for word in ("--conf", f"{k}={v}")]
    return subprocess.run(
        [spark_home() / "bin" / "spark-submit", "--master", cluster, *flags, SUBMIT, *map(str, arguments)],
        env=os.environ | {
            "SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip


def test_an_audit_through_spark_submit_says_what_the_local_engine_says(
    cluster: str, tmp_path: Path
) -> None:
    generate(tmp_path / "in" / "made", 20_000, queues=5)
    for path in DATA.glob("*.gz"):
        (tmp_path / "in" / path.name).write_bytes(path.read_bytes())
    said = submit(cluster, "audit", tmp_path / "in", "--engine", "spark", "--out", tmp_path / "out")
    assert said.returncode == 1, said.stderr
    # What the command judges: what it was asked for, and the promises of the systems that it compares with.
    judges = forms((PROFILES["any"], *SYSTEMS.values()))
    local = audit_paths([tmp_path / "in"], properties=judges)
    verdicts = tables.read(tmp_path / "out")["verdicts"].to_pylist()
    assert [(v["run"], v["property"], v["n_tested"], v["n_violations"]) for v in verdicts] == [
        (f.subject, f.property, f.n_tested, f.n_violations) for f in local.findings
    ]


def test_a_campaign_and_a_stream_with_master(cluster: str, tmp_path: Path) -> None:
    out = tmp_path / "campaign"
    command = (
        "campaign",
        "immediate",
        "--out",
        out,
        "--mutant",
        "published-immediate",
        "--seeds",
        4,
    )
    said = submit(cluster, *command, "--executions", 100)
    assert said.returncode == 1, said.stderr
    assert "1 distinct bugs" in said.stdout
    (tmp_path / "in").mkdir()
    for path in DATA.glob("*.gz"):
        (tmp_path / "in" / path.name).write_bytes(path.read_bytes())
    said = submit(cluster, "stream", tmp_path / "in", "--out", tmp_path / "out", "--once")
    assert said.returncode == 0, said.stderr
    assert len(tables.read(tmp_path / "out")["files"]) == 2
