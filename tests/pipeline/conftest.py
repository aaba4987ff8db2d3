"""Histories in files, and the one Spark session of the test run."""

from __future__ import annotations

import gzip
import random
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.history import Event, iter_history
from seriatim_models.pipeline import AuditReport, audit_paths
from seriatim_models.pipeline.audit import local as engine
from seriatim_models.pipeline.audit.findings import JudgedRun
from seriatim_models.properties.base import AnyProperty

DATA = Path(__file__).parent.parent / "data"


@cache
def _first(name: str, count: int) -> tuple[Event, ...]:
    read = islice(iter_history(DATA / f"{name}.jsonl.gz"), count)
    return tuple(e for e in read if isinstance(e, Event))


def first_events(name: str, count: int) -> list[Event]:
    """The first events of a recording: no more of the file is read."""
    return list(_first(name, count))


def spoiled(name: str, rate: float, seed: int = 0) -> bytes:
    """A recording with some of its lines, but not the header, cut in half."""
    choose = random.Random(seed)
    header, *lines = gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).split(b"\n")
    cut = [line[: len(line) // 2] if choose.random() < rate else line for line in lines]
    return b"\n".join([header, *cut])


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which much is wrong, and something is right."""
    out = tmp_path_factory.mktemp("histories")
    (out / "whole.jsonl").write_bytes(
        gzip.decompress((DATA / "rabbit-classic-lockstep.jsonl.gz").read_bytes())
    )
    (out / "spoiled.jsonl").write_bytes(spoiled("rabbit-classic-competing", 0.02))
    (out / "binary.jsonl").write_bytes(bytes(range(256)) * 9)
    (out / "future.jsonl").write_text('{"schema":"qh/7"}\n')
    (out / "cut.jsonl.gz").write_bytes(
        (DATA / "rabbit-classic-competing.jsonl.gz").read_bytes()[:100_000]
    )
    inner = out / "deep"
    inner.mkdir()
    wrong = [
        '{"schema":"qh/1","run":"wrong order","lvl":"api"}',
        *(
            f'{{"i":{i},"t":{i},"ev":"deliver","m":"m{9 - i}","q":"q{i % 2}","pub":"p",'
            f'"pseq":{9 - i},"conn":"c","ch":1,"ctag":"t","dtag":{i + 1},"redelivered":false}}'
            for i in range(8)
        ),
    ]
    (inner / "wrong.jsonl").write_text("\n".join(wrong) + "\n")
    (inner / "notes.txt").write_text("no history")
    return out


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the JVM of the test run and its Python workers write."""
    return tmp_path_factory.mktemp("jvm") / "spark.log"


@pytest.fixture(scope="session")
def spark(spark_log: Path) -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from seriatim_models.pipeline.session import session

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # PySpark's own, at start-up
        patch.setenv("SERIATIM_SPARK_LOG", str(spark_log))
        # No skip: PySpark comes with the means to start it, so not starting is a failure.
        running = session()
    yield running
    running.stop()


def by_rows(
    paths: Sequence[Path], properties: Sequence[AnyProperty | str] | None = None
) -> AuditReport:
    """The report of the local engine without any columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "find_spec", lambda _: None)
        return audit_paths(paths, properties=properties)


def in_one_pass(
    paths: Sequence[Path], properties: Sequence[AnyProperty | str] | None = None
) -> AuditReport | None:
    """The report of the local engine if all runs are judged in one pass, and None if one is not."""
    judged, all_of = engine._of_parquet, [True]

    def noted(*given: Any) -> JudgedRun | None:
        one = judged(*given)
        all_of.append(one is not None)
        return one

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_of_parquet", noted)
        report = audit_paths(paths, properties=properties)
    return report if all(all_of) else None
