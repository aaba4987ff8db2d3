"""The same module through spark-submit, on Spark's standalone master and two workers of this machine.

The executors' Python has the package because it is the driver's; or because it was shipped, in the two ways that
spec/PIPELINE.md describes, to executors that had none.
Minutes long, and wants a network for `pip`: `make test-cluster`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import seriatim_models
from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import PROFILES, SYSTEMS
from seriatim_models.pipeline import audit_paths, java
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.synthetic.generate import generate

from .conftest import DATA

pytestmark = [pytest.mark.slow, pytest.mark.scale, pytest.mark.spark, pytest.mark.timeout(900)]

SUBMIT = Path(seriatim_models.__file__).parent / "cli" / "submit.py"


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
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(home),
        "SPARK_WORKER_DIR": str(home / "work"),
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
    running: list[subprocess.Popen[bytes]] = []
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


def submit(
    cluster: str,
    *arguments: object,
    shipped: tuple[object, ...] = (),
    python: object = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """Run the command there. `python` is that of the executors, `shipped` are options of spark-submit."""
    conf = {
        "spark.pyspark.python": str(python),
        "spark.pyspark.driver.python": sys.executable,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
    }
    # A path in the environment would help executors to the package.
    unset = {
        k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_") and k != "PYTHONPATH"
    }
    flags = [word for k, v in conf.items() for word in ("--conf", f"{k}={v}")]
    return subprocess.run(
        [
            spark_home() / "bin" / "spark-submit", "--master", cluster, *flags, *map(str, shipped),
            SUBMIT, *map(str, arguments),
        ],
        env=unset | {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"},
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


ROOT = Path(__file__).parents[2]
LOCK = ROOT / ".lock" / "requirements.txt"
NEEDED = ("numpy", "pyarrow", "msgspec", "zstandard", "greenlet", "typing_extensions")
"""What executors need beside this package: what it imports there. PySpark comes with Spark."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This package, built."""
    folder = tmp_path_factory.mktemp("dist")
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


def pip(python: str | Path, *arguments: object) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *map(str, arguments)], check=True, timeout=600)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has what this package needs, by links to what is installed here, and not the package."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, symlinks=True)
    (inside,) = home.glob("lib/python3*/site-packages")
    for name in NEEDED:
        held = distribution(name)
        for top in {path.parts[0] for path in held.files or () if path.parts[0] != ".."}:
            if not (inside / top).exists():
                (inside / top).symlink_to(Path(str(held.locate_file(top))))
    return home / "bin" / "python"


def audits(cluster: str, tmp_path: Path, **how: Any) -> subprocess.CompletedProcess[str]:
    """An audit that makes workers decode, judge, and read and write chunks."""
    generate(tmp_path / "in" / "made", 5_000, queues=5)
    (tmp_path / "in" / "recorded.jsonl.gz").write_bytes(
        (DATA / "rabbit-classic-competing.jsonl.gz").read_bytes()
    )
    out = tmp_path / "out"
    return submit(cluster, "audit", tmp_path / "in", "--engine", "spark", "--out", out, **how)


def judged(out: Path) -> set[tuple[object, ...]]:
    columns = ("run", "property", "form", "verdict", "n_tested", "n_violations")
    return {tuple(row[c] for c in columns) for row in tables.read(out)["verdicts"].to_pylist()}


def here(tmp_path: Path) -> set[tuple[object, ...]]:
    """What the local engine says of the same, as rows of the table."""
    judges = forms((PROFILES["any"], *SYSTEMS.values()))
    report = audit_paths([tmp_path / "in"], properties=judges)
    rows = tables.rows_of(report, judges)["verdicts"].to_pylist()
    columns = ("run", "property", "form", "verdict", "n_tested", "n_violations")
    return {tuple(row[c] for c in columns) for row in rows}


def test_executors_without_the_package_say_so(cluster: str, bare: Path, tmp_path: Path) -> None:
    """Otherwise the two tests below would show nothing."""
    once = ("--conf", "spark.task.maxFailures=1")  # there is nothing to gain by trying again
    said = audits(cluster, tmp_path, python=bare, shipped=once)
    assert said.returncode not in (0, 1, 3)
    assert "No module named 'seriatim_models'" in said.stderr


def test_a_wheel_is_shipped_to_executors(
    cluster: str, bare: Path, wheel: Path, tmp_path: Path
) -> None:
    """Spark takes only what is called a zip; a wheel is one."""
    package = tmp_path / "seriatim.zip"
    package.write_bytes(wheel.read_bytes())
    said = audits(cluster, tmp_path, python=bare, shipped=("--py-files", package))
    assert said.returncode == 1, said.stderr
    assert judged(tmp_path / "out") == here(tmp_path)


def test_an_environment_is_shipped_to_executors(cluster: str, wheel: Path, tmp_path: Path) -> None:
    """To machines that have nothing but the Python that the environment was made of."""
    venv.create(tmp_path / "env", with_pip=True, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    versions = tmp_path / "constraints.txt"
    versions.write_text(re.sub(r" \\\n +--hash=\S+", "", LOCK.read_text()))
    pip(python, "install", "--constraint", versions, f"{wheel}[audit]", "pyarrow", "venv-pack2")
    packed = tmp_path / "seriatim.tar.gz"
    pack = (tmp_path / "env" / "bin" / "venv-pack", "--quiet", "--compress-level", "1")
    subprocess.run([*pack, "--prefix", tmp_path / "env", "--output", packed], check=True)
    shutil.rmtree(tmp_path / "env")
    shipped = ("--archives", f"{packed}#seriatim")
    said = audits(cluster, tmp_path, python="./seriatim/bin/python", shipped=shipped)
    assert said.returncode == 1, said.stderr
    assert judged(tmp_path / "out") == here(tmp_path)
