"""Two checks of the audit over columns: as they are (numpy and pyarrow), in DuckDB's SQL, and in Polars.

    python -m seriatim_workshop.bench.engines [EVENTS]

Needs duckdb and polars, which no extra brings (spec/decisions/columns-without-an-engine.md). Processor time of one
thread, the best of three, over generated events that are in memory: as one batch, and one bucket of queues after the
other. The two engines' forms do less: no unknown flags, no copies, no ends of sessions, nothing kept between batches.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder
from seriatim_models.properties.columnar import batches, lines
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.prefilter import Prefilter

os.environ["POLARS_MAX_THREADS"] = "1"
EVENTS = 300_000
KEYS = "q, pub, conn, ch, gen, ev"
ORDER = f"""
    with a as (
        select q, pseq, max(pseq) over (partition by {KEYS} order by n
          rows between unbounded preceding and 1 preceding) as top
        from batch where ev = 'deliver' and not redelivered and pseq is not null and pub is not null
    )
    select count(top), count(distinct case when pseq < top then q end) from a
"""
_BEGINS = "coalesce(ph, '') in ('', 'invoke')"
LIFE = f"""
    with r as (
        select n, q, unnest(coalesce(ms, [m])) as m, conn, ch, gen, case when ev = 'deliver' then 2
            when ev = 'publish' and {_BEGINS} then 1 when ev = 'ack' and {_BEGINS} then 4
            when ev in ('nack', 'reject') and {_BEGINS} then if(coalesce(requeue, true), 3, 4) end as k
        from batch where q is not null
    ), l as (
        select m, k, lag(k) over w as before, (conn, ch, gen) = lag((conn, ch, gen)) over w as same
        from r where k is not null and m is not null window w as (partition by q, m order by n)
    )
    select count(distinct m), count(distinct case when not coalesce((k = 1 and before is null)
        or (k = 2 and before in (1, 3)) or (k > 2 and before = 2 and same), false) then m end) from l
"""
Check = Callable[[pa.RecordBatch], object]


def our_order(batch: pa.RecordBatch) -> object:
    """P4 as the audit has it."""
    check = lines.RegularLines([FirstDeliveryOrder()])
    check.take(EventBatch(batch))
    return check.finish(None)


def our_lifecycles(batch: pa.RecordBatch) -> object:
    """The pre-filter of P1 to P3."""
    check = Prefilter()
    check.take(*batches.rows_of_batch(EventBatch(batch), check.holders))
    return check.finish()


def engines() -> list[tuple[str, Check]]:
    """The two checks by each engine."""
    duckdb, pl = import_module("duckdb"), import_module("polars")
    db = duckdb.connect()
    db.execute("set threads = 1")

    def sql(query: str) -> Check:
        def run(batch: pa.RecordBatch) -> object:
            db.register("batch", pa.Table.from_batches([batch]))
            return db.execute(query).fetchall()

        return run

    def polars_order(batch: pa.RecordBatch) -> object:
        col, keys = pl.col, KEYS.split(", ")
        rows = pl.from_arrow(batch).lazy().filter(col("ev").cast(pl.String) == "deliver")
        rows = rows.filter(
            ~col("redelivered") & col("pseq").is_not_null() & col("pub").is_not_null()
        )
        top = col("pseq").cum_max().shift(1).over(keys)
        rows = rows.select([*keys, "n", "pseq"]).sort("n").with_columns(top=top)
        wrong = col("q").filter(col("pseq") < col("top")).n_unique().alias("wrong")
        return rows.select(col("top").count(), wrong).collect().row(0)

    def polars_lifecycles(batch: pa.RecordBatch) -> object:
        col = pl.col
        ev, begins = col("ev").cast(pl.String), col("ph").cast(pl.String).fill_null("")
        begins = begins.is_in(["", "invoke"])
        back = pl.when(col("requeue").fill_null(True)).then(3).otherwise(4)
        k = pl.when((ev == "publish") & begins).then(1).when(ev == "deliver").then(2)
        k = k.when((ev == "ack") & begins).then(4).when(ev.is_in(["nack", "reject"]) & begins)
        named = pl.coalesce("ms", pl.concat_list("m")).alias("m")
        rows = pl.from_arrow(batch).lazy().filter(col("q").is_not_null())
        rows = rows.select("n", "q", named, "conn", "ch", "gen", k=k.then(back))
        rows = rows.filter(col("k").is_not_null()).explode("m").drop_nulls("m").sort("n")

        def before(name: str) -> object:
            return col(name).shift(1).over(["q", "m"])

        same = (col("conn") == before("conn")) & (col("ch") == before("ch"))
        rows = rows.with_columns(before=before("k"), same=same & (col("gen") == before("gen")))
        legal = ((col("k") == 1) & col("before").is_null()) | (
            (col("k") == 2) & col("before").is_in([1, 3])
        )
        legal |= (col("k") > 2) & (col("before") == 2) & col("same")
        wrong = col("m").filter(~legal.fill_null(False)).n_unique().alias("wrong")
        return rows.select(col("m").n_unique(), wrong).collect().row(0)

    return [
        ("order, DuckDB", sql(ORDER)),
        ("order, Polars", polars_order),
        ("lifecycles, DuckDB", sql(LIFE)),
        ("lifecycles, Polars", polars_lifecycles),
    ]


def measured(check: Check, of: Sequence[pa.RecordBatch]) -> float:
    """Microseconds an event, the best of three."""
    taken = []
    for _ in range(3):
        begun = time.process_time()
        for batch in of:
            check(batch)
        taken.append(time.process_time() - begun)
    return 1e6 * min(taken) / sum(map(len, of))


def main(events: int) -> None:
    """Print a line for each check and engine."""
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        made = generate(Path(folder) / "made", events)
        table = pa.concat_tables(pq.read_table(Path(folder) / "made" / f) for f in made.files)
    wanted = {*lines.RegularLines.columns, *batches.COLUMNS} - {"n", "bucket", "lvl"}
    table = table.combine_chunks().select([c for c in table.schema.names if c in wanted])
    table = table.append_column("n", pa.array(np.arange(len(table))))
    table = table.append_column(
        "lvl", pa.array(["broker"]).take(pa.array(np.zeros(len(table), int)))
    )
    buckets = np.array([chunks.bucket(q or "") for q in table["q"].to_pylist()])
    for name in {*table.CODED} & {*table.schema.names}:
        at = table.schema.names.index(name)
        table = table.set_column(at, name, table[name].combine_chunks().dictionary_encode())
    one = table.combine_chunks().to_batches()
    apart = [
        table.filter(pa.array(buckets == b)).combine_chunks().to_batches()[0]
        for b in np.unique(buckets)
    ]
    ours = [("order, as it is", our_order), ("lifecycles, as they are", our_lifecycles)]
    print(f"{'us an event':24} {'one batch':>10} {f'{len(apart)} buckets':>12}")
    for name, check in [*ours, *engines()]:
        print(f"{name:24} {measured(check, one):10.2f} {measured(check, apart):12.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
