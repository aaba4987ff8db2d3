"""Jepsen operations and OpenTelemetry spans: what they become, what they leave open, and what is refused."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seriatim_models.history import Event, HistoryError, read_history
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP
from seriatim_models.history.importers import edn
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX

BY_ID = {p.id: p for p in BLACKBOX}


def judged(path: Path) -> dict[str, Finding]:
    events = list(complete(read_history(path).events))
    return {id: p.check(events) for id, p in BY_ID.items()}


def short(e: Event) -> tuple[object, ...]:
    return e.ev, e.ph, e.m, e.t


# EDN


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{:a 1, :b [nil true -2N 1.5 \\c sym]}", {"a": 1, "b": [None, True, -2, 1.5, "c", "sym"]}),
        ('#jepsen.history.Op{:value "a\\n\\"b" ; a comment\n}', {"value": 'a\n"b'}),
        ("(1 #_ 2 #{3})", [1, [3]]),
        ("{[1 2] 3}", {"[1, 2]": 3}),
        ("{:a 1} ; the end", {"a": 1}),
        ("[a;b\n c]", ["a", "c"]),
        ("#_ #_ 1 2 [#_ #a #_ 3 4 5]", [5]),
        (r"[\( \] \; \newline \u0041 1/2]", ["(", "]", ";", "newline", "A", "1/2"]),
        (r'["\u0041\b\f\ud83d\ude00" "u0041"]', ["A\b\f\U0001f600", "u0041"]),
        ("[##Inf ##-Inf 9N]", [float("inf"), float("-inf"), 9]),
    ],
)
def test_edn(text: str, value: object) -> None:
    assert edn.loads(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "{:a", "{:a 1 :b}", "]", '"open', "1 2", "[" * 100 + "]" * 100, "#", "; only", ";" * 100,
        "1;\n;\n2", "#_ 1",
        "9" * 5000, "-" + "9" * 5000 + "N", r'"\ud800"', r"\udc00", "#_" * 100_000, "#a " * 100_000, "; " * 100_000,
    ],
)  # fmt: skip
def test_rejects_what_is_no_edn(text: str) -> None:
    with pytest.raises(edn.BadEdn, match=r"character \d+: "):
        edn.loads(text)


@given(st.text(max_size=40))
def test_any_text_is_edn_or_refused(text: str) -> None:
    with contextlib.suppress(edn.BadEdn):
        edn.loads(text)


# Jepsen

GOOD = """\
{:type :invoke, :f :enqueue, :value 1, :process 0, :time 10, :index 0}
{:type :info, :f :start-partition, :process :nemesis, :time 11, :index 1}
{:type :ok, :f :enqueue, :value 1, :process 0, :time 20, :index 2}
{:type :invoke, :f :enqueue, :value 2, :process 0, :time 30, :index 3}
{:type :ok, :f :enqueue, :value 2, :process 0, :time 40, :index 4}
{:type :invoke, :f :dequeue, :value nil, :process 1, :time 50, :index 5}
{:type :ok, :f :dequeue, :value 1, :process 1, :time 60, :index 6}
{:type :invoke, :f :drain, :process 1, :time 70, :index 7}
{:type :ok, :f :drain, :value [2], :process 1, :time 80, :index 8}
{:type :invoke, :f :dequeue, :process 1, :time 90, :index 9}
{:type :fail, :f :dequeue, :error :empty, :process 1, :time 95, :index 10}
"""


def test_jepsen_edn(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(GOOD)
    history = read_history(path)
    assert history.quarantine == []
    assert history.header.rec == "jepsen"
    assert history.header.params["lint"]
    assert [short(e) for e in history.events] == [
        ("publish", "invoke", "1", 10), ("publish", "ok", "1", 20),
        ("publish", "invoke", "2", 30), ("publish", "ok", "2", 40),
        ("get", "invoke", "", 50), ("get", "ok", "1", 60),
        ("get", "invoke", "", 70), ("get", "ok", "2", 80), ("get", "ok", "", 80), ("note", "info", "", 80),
        ("get", "invoke", "", 90), ("get", "ok", "", 95), ("note", "info", "", 95),
    ]  # fmt: skip
    assert history.n_lines == history.n_blank + len(history.events)
    found = judged(path)
    assert (found["P20"].verdict, found["P20"].n_tested) == (
        Verdict.OK,
        3,
    )  # 2 was alone when taken
    assert found["P1"].verdict is Verdict.OK


def test_jepsen_json_and_vectors_are_the_same(tmp_path: Path) -> None:
    keep = [line for line in GOOD.splitlines() if "nemesis" not in line]
    ops = [edn.loads(line) for line in keep]
    as_json = tmp_path / "a.json"
    as_json.write_text("\n".join(json.dumps(op) for op in ops))
    vector = tmp_path / "b.edn"
    vector.write_text("[" + "\n ".join(keep) + "]\n")
    lines = tmp_path / "c.edn"
    lines.write_text(GOOD)
    events = [[short(e) for e in read_history(p).events] for p in (as_json, vector, lines)]
    assert events[0] == events[1] == events[2]


@pytest.mark.parametrize(
    ("old", "new", "id", "why"),
    [
        (
            "[2]",
            "[]",
            "P1",
            "2 was confirmed for jepsen, which was drained, but nobody ever got it",
        ),
        (":value 1, :process 1", ":value 2, :process 1", "P20", "1 was enqueued by 20, before 2"),
        ("[2]", "[2 9]", "P1", "9 was given to 1 at event 8, but nobody sent it"),
        ("[2]", "[2 1]", "P20", "1 was taken at event 8, but it was not there"),
    ],
)
def test_a_fault_in_a_jepsen_history_is_a_violation(
    old: str, new: str, id: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    text = GOOD.replace(old, new)
    if id == "P20" and "process 1" in old:
        text = text.replace("[2]", "[1]")
    path.write_text(text)
    found = judged(path)[id]
    assert found.verdict is Verdict.VIOLATED
    assert why in found.explanation


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{:type :ok", "not EDN: character 10: { is not closed"),
        ("{:type :odd, :f :enqueue, :process 3}", "field type: 'odd' is none of"),
        (
            "{:type :invoke, :f :cas, :process 3}",
            "field f: 'cas' is none of enqueue, dequeue, drain",
        ),
        ("{:type :invoke, :f :txn, :process 3}", "field value: a txn is a list of [:send k v]"),
        ("{:type :ok, :f :poll, :process 3, :value [[:poll 7]]}", "a poll gives a map"),
        ("{:type :ok, :f :poll, :process 3, :value [[:poll {1 [7]}]]}", "7 is no pair"),
        (
            "{:type :ok, :f :poll, :process 3, :value [[:poll {1 7}]]}",
            "7 is no list of offset and value",
        ),
        (
            "{:type :ok, :f :poll, :process 3, :value [[:poll {1 true}]]}",
            "True is no list of offset and value",
        ),
        ("{:type :ok, :f :send, :process 3, :value [[:send 1]]}", "is no [:send k v]"),
        ("{:type :invoke, :f :dequeue}", "field process: missing"),
        ("{:type :invoke, :f :enqueue, :process 3}", "field value: missing from enqueue"),
        (
            "{:type :invoke, :f :dequeue, :process 3, :time 1.5}",
            "field time: 1.5 is no whole number",
        ),
        ("{:type :ok, :f :drain, :process 3, :value 7}", "field value: a drain gives a list"),
        ('{"type": "ok", "f": }', "not JSON"),
    ],
)
def test_rejects_a_line_that_is_no_operation_and_reads_on(
    line: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    path.write_text(GOOD + line + "\n")
    history = read_history(path)
    assert len(history.events) == 12
    [rejected] = history.quarantine
    assert rejected.line == 12
    assert why in rejected.reason


EMPTY_AT_LAST = """\
{:type :invoke, :f :enqueue, :value 1, :process 0, :time 10}
{:type :ok, :f :enqueue, :value 1, :process 0, :time 20}
{:type :invoke, :f :dequeue, :process 1, :time 30}
{:type :fail, :f :dequeue, :error [:empty "nothing there"], :process 1, :time 40}
"""


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("", "", Verdict.VIOLATED),
        (':fail, :f :dequeue, :error [:empty "nothing there"]', ":ok, :f :dequeue, :value nil", Verdict.VIOLATED),
        (':fail, :f :dequeue, :error [:empty "nothing there"]', ":ok, :f :dequeue, :value 1", Verdict.INCONCLUSIVE),
        (":error [:empty", ":error [:timeout", Verdict.INCONCLUSIVE),
        (":ok, :f :enqueue", ":info, :f :enqueue", Verdict.INCONCLUSIVE),
    ],
)  # fmt: skip
def test_the_last_empty_dequeue_saw_the_queue_empty(
    old: str, new: str, verdict: Verdict, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    path.write_text(EMPTY_AT_LAST.replace(old, new) if old else EMPTY_AT_LAST)
    found = judged(path)["P1"]
    assert found.verdict is verdict or (
        verdict is not Verdict.VIOLATED and found.verdict is Verdict.OK
    )


def test_an_enqueue_that_overlaps_an_empty_dequeue_may_come_after_it(tmp_path: Path) -> None:
    lines = EMPTY_AT_LAST.splitlines()
    path = tmp_path / "history.edn"
    for order in ([0, 2, 1, 3], [0, 2, 3, 1], [2, 0, 1, 3], [2, 3, 0, 1]):
        path.write_text("\n".join(lines[k] for k in order))
        assert "note" not in {e.ev for e in read_history(path).events}


LOG = """\
{:type :invoke, :f :send, :value [[:send 5 1] [:send 6 1]], :process 0, :time 10}
{:type :ok, :f :send, :value [[:send 5 [0 1]] [:send 6 [nil 1]]], :process 0, :time 20}
{:type :invoke, :f :assign, :value [5 6], :process 1, :time 25}
{:type :ok, :f :assign, :value [5 6], :process 1, :time 26}
{:type :invoke, :f :txn, :value [[:poll] [:send 5 2]], :process 1, :time 30}
{:type :ok, :f :txn, :value [[:poll {5 [[0 1]], 6 [[3 1]]}] [:send 5 [1 2]]], :process 1, :time 40}
{:type :invoke, :f :poll, :value [[:poll]], :process 1, :time 50}
{:type :ok, :f :poll, :value [[:poll {5 [[1 2]]}]], :process 1, :time 60}
{:type :invoke, :f :send, :value [[:send 5 3]], :process 0, :time 70}
{:type :info, :f :send, :value [[:send 5 3]], :error :timeout, :process 0, :time 80}
{:type :invoke, :f :crash, :process 2, :time 81}
{:type :info, :f :crash, :process 2, :time 82}
{:type :invoke, :f :debug-topic-partitions, :value [5], :process 3, :time 83}
"""


def test_jepsen_sends_and_polls_that_name_no_log(tmp_path: Path) -> None:
    def polls(*values: str) -> Path:
        path = tmp_path / "bare.edn"
        begun = [
            f"{{:type {ph}, :f :send, :value {m}, :process 0}}"
            for m in "12"
            for ph in (":invoke", ":ok")
        ]
        begun += [
            f"{{:type {ph}, :f :poll, :value {given}, :process {n % 2 + 1}}}"
            for n, value in enumerate(values)
            for ph, given in ((":invoke", "nil"), (":ok", value))
        ]
        path.write_text("\n".join(begun))
        return path

    well = polls("[1 2]", "1", "nil", "2", "1")  # two readers may each read all, and go back
    assert len([e for e in read_history(well).events if e.ev == "deliver"]) == 5
    found = judged(well)
    assert found["P1"].verdict is Verdict.OK
    assert Verdict.VIOLATED not in {f.verdict for f in found.values()}
    assert judged(polls("3"))["P1"].verdict is Verdict.VIOLATED


def test_jepsen_sends_and_polls(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(LOG)
    history = read_history(path)
    assert history.quarantine == []
    assert [(e.ev, e.ph, e.q, e.m, e.pos) for e in history.events if e.ev != "seek"] == [
        ("publish", "invoke", "5", "5/1", None), ("publish", "invoke", "6", "6/1", None),
        ("publish", "ok", "5", "5/1", 0), ("publish", "ok", "6", "6/1", None),
        ("publish", "invoke", "5", "5/2", None), ("publish", "ok", "5", "5/2", 1),
        ("deliver", "", "5", "5/1", 0), ("deliver", "", "6", "6/1", 3),
        ("deliver", "", "5", "5/2", 1),
        ("publish", "invoke", "5", "5/3", None), ("publish", "info", "5", "5/3", None),
    ]  # fmt: skip
    found = judged(path)
    assert found["P15"].verdict is Verdict.OK
    assert {f.verdict for f in found.values()} <= {Verdict.OK, Verdict.INCONCLUSIVE}


def test_values_of_a_log_may_be_collections_and_offsets_of_any_size(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(
        LOG
        + "{:type :ok, :f :poll, :process 7, :value [[:poll {jepsen [[nil [1]] [nil {:a 1}]]}]]}\n"
        + f"{{:type :ok, :f :poll, :process 8, :value [[:poll {{9 [[{2**70} 1]]}}]]}}\n"
    )
    history = read_history(path)
    assert not history.quarantine
    assert [(e.m, e.pos) for e in history.events if e.proc in ("7", "8") and e.m] == [
        ("jepsen/[1]", None),
        ("jepsen/{'a': 1}", None),
        ("9/1", None),
    ]


def test_a_log_that_skips_what_was_sent_is_a_violation(tmp_path: Path) -> None:
    """Offset 1 was confirmed, and an assigned reader goes from 0 to 2; one that has subscribed may."""
    path = tmp_path / "history.edn"
    skips = LOG.replace("[[1 2]]", "[[2 9]]")
    path.write_text(skips)
    assert judged(path)["P15"].verdict is Verdict.VIOLATED
    path.write_text(skips.replace(":assign", ":subscribe"))
    assert judged(path)["P15"].verdict is not Verdict.VIOLATED


# OpenTelemetry


def span(kind: str, m: str, start: int, end: int, name: str = "", **more: Any) -> dict[str, Any]:
    has = {
        "messaging.system": "rabbitmq",
        "messaging.destination.name": "q",
        "messaging.operation.type": kind,
        "messaging.operation.name": name or kind,
        "messaging.message.id": m,
        **{k.replace("_", "."): v for k, v in more.items()},
    }
    return {
        "spanId": "ab",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": [
            {"key": k, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
            for k, v in has.items()
        ],
    }


def otlp(*spans: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    about = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [{"spans": list(spans)}]}]}


def test_spans_become_events_in_the_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    consumer = otlp(
        span("receive", "m1", 15, 30), span("process", "m1", 31, 40), span("settle", "m1", 41, 42, "ack"),
        span("process", "m2", 50, 60),
        service="worker",
    )  # fmt: skip
    producer = otlp(span("send", "m1", 10, 20), span("send", "m2", 21, 25))
    path.write_text(json.dumps(consumer) + "\n" + json.dumps(producer) + "\n")
    history = read_history(path)
    assert history.header.rec == "otel"
    assert [(e.ev, e.ph, e.m or e.ms, e.t, e.t_lo) for e in history.events] == [
        (GAP, "", None, 10, None),
        ("publish", "invoke", "m1", 10, None), ("publish", "ok", "m1", 20, None),
        ("publish", "invoke", "m2", 21, None), ("publish", "ok", "m2", 25, None),
        ("deliver", "", "m1", 30, 15), ("ack", "invoke", ["m1"], 41, None),
        ("deliver", "", "m2", 50, None),
    ]  # fmt: skip
    assert {e.proc for e in history.events if e.ev == "deliver"} == {"worker"}
    pretty = tmp_path / "traces.otlp.json"
    pretty.write_text(json.dumps(otlp(span("send", "m1", 10, 20)), indent=2))
    assert [e.ev for e in read_history(pretty).events] == [GAP, "publish", "publish"]


def test_what_spans_do_not_say_is_no_violation(tmp_path: Path) -> None:
    """A publish that was not sampled, a holder whose end left no span, a message that came again after its ack."""
    path = tmp_path / "traces.jsonl"
    spans = [
        span("send", "m1", 1, 2), span("process", "m0", 3, 4), span("process", "m1", 5, 6),
        span("settle", "m0", 7, 8, "ack"), span("process", "m0", 9, 10),
    ]  # fmt: skip
    other = otlp(span("process", "m1", 20, 30), service="second")
    path.write_text(json.dumps(otlp(*spans)) + "\n" + json.dumps(other) + "\n")
    found = judged(path)
    assert {f.verdict for f in found.values()} <= {Verdict.OK, Verdict.INCONCLUSIVE}
    assert found["P2"].n_untestable == 2
    assert found["P1"].n_untestable > 0


def raw(
    name: str, kind: int, id: str, start: int, parent: str = "", trace: str = "t", **more: Any
) -> dict[str, Any]:
    """A span as an instrumentation writes it; `more` are its attributes, with dots as double underscores."""
    return {
        "traceId": trace, "spanId": id, "parentSpanId": parent, "name": name, "kind": kind,
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 1),
        "attributes": [
            {"key": k.replace("__", "."), "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
            for k, v in more.items()
        ],
    }  # fmt: skip


def of_scope(scope: str, *spans: dict[str, Any]) -> dict[str, Any]:
    """A line of the file exporter."""
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def pika(n: int, ids: bool) -> dict[str, Any]:
    """As opentelemetry-instrumentation-pika writes: no operation at a publish, the callback within the receive."""
    made = []
    for k in range(n):
        named = {"messaging__message_id": f"m{k}"} if ids else {}
        about = {"messaging__system": "rabbitmq", "messaging__destination": "(temporary)", **named}
        made += [
            raw("(temporary) send", 4 if k % 2 else 2, f"p{k}", 10 * k, trace=f"t{k}",
                messaging__temp_destination=1, **about),
            raw("q receive", 5, f"c{k}", 10 * k + 5, f"p{k}", f"t{k}",
                **{**about, "messaging__destination": "q", "messaging__operation": "receive"}),
        ]  # fmt: skip
    return of_scope("opentelemetry.instrumentation.pika.utils", *made)


@pytest.mark.parametrize("ids", [True, False])
def test_each_span_of_pika_is_used(ids: bool, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(pika(20, ids)))
    history = read_history(path)
    assert history.quarantine == []
    assert Counter((e.ev, e.ph) for e in history.events) == {
        (GAP, ""): 1, ("publish", "invoke"): 20, ("publish", "ok"): 20, ("deliver", ""): 20,
    }  # fmt: skip
    sent = {e.m for e in history.events if e.ev == "publish"}
    assert sent == {e.m for e in history.events if e.ev == "deliver"}
    assert ("m0" in sent) is ids
    found = judged(path)
    assert found["P2"].verdict is Verdict.OK
    assert Verdict.VIOLATED not in {f.verdict for f in found.values()}


KAFKA = {"messaging__system": "kafka", "messaging__destination": "t"}


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        # kafka-python: no operation, no message id, one trace
        (raw("t send", 4, "p", 1, messaging__kafka__partition=0, **KAFKA),
         raw("t receive", 5, "c", 5, "p", messaging__kafka__partition=0, **KAFKA)),
        # confluent-kafka: a send is called receive; the consumer links to it and has an id of its own
        (raw("t send", 4, "p", 1, messaging__operation="receive", **KAFKA),
         raw("t process", 5, "c", 5, trace="u", messaging__operation="process",
             messaging__message_id="t.0.7", **KAFKA) | {"links": [{"traceId": "t", "spanId": "p"}]}),
        # aiokafka: new names
        (raw("t send", 4, "p", 1, messaging__operation__type="publish", messaging__operation__name="send",
             messaging__destination__name="t"),
         raw("t receive", 5, "c", 5, "p", messaging__operation__type="receive", messaging__operation__name="receive",
             messaging__destination__name="t", messaging__message__id="t.0.7", messaging__kafka__message__offset=7)),
        # celery
        (raw("apply_async/add", 4, "p", 1, celery__action="apply_async", messaging__message__id="task"),
         raw("run/add", 5, "c", 5, "p", celery__action="run")),
        # a consumer whose parent is in another process, through a span of its own
        (raw("t publish", 4, "p", 1, **KAFKA),
         raw("t process", 5, "c", 5, "b", **KAFKA)),
    ],
    ids=["kafka-python", "confluent-kafka", "aiokafka", "celery", "through a batch"],
)  # fmt: skip
def test_instrumentations_as_they_write(
    sent: dict[str, Any], got: dict[str, Any], tmp_path: Path
) -> None:
    between = raw("t receive", 5, "b", 3, "p", messaging__system="kafka")
    spans = [sent, got, *([between] if got["parentSpanId"] == "b" else [])]
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(of_scope("any", *spans)))
    history = read_history(path)
    assert history.quarantine == []
    evs = [(e.ev, e.ph) for e in history.events]
    assert evs == [(GAP, ""), ("publish", "invoke"), ("publish", "ok"), ("deliver", "")]
    assert len({e.m for e in history.events if e.m}) == 1


def test_a_record_of_a_log_is_named_by_its_place(tmp_path: Path) -> None:
    """Without an id, a link or a parent, topic, partition and offset say which record a span is of."""
    path = tmp_path / "traces.jsonl"
    place: dict[str, Any] = {
        "messaging__destination__partition__id": "0",
        "messaging__kafka__offset": 7,
        **KAFKA,
    }
    sent = raw("t send", 4, "p", 1, **place)
    got = raw("t process", 5, "c", 5, trace="u", **place)
    unplaced = raw("t process", 5, "d", 9, trace="v", messaging__kafka__offset=7, **KAFKA)
    path.write_text(json.dumps(of_scope("any", sent, got, unplaced)))
    history = read_history(path)
    assert len(history.quarantine) == 1
    assert {e.ev for e in history.events if e.m == "t/0/7"} == {"publish", "deliver"}


def test_spans_that_cannot_be_used_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    lonely = [raw("t process", 5, f"c{k}", 10 * k, **KAFKA) for k in range(3)]
    other = raw("queue.declare", 3, "d", 50, messaging__system="rabbitmq")
    path.write_text(json.dumps(of_scope("any", *lonely, other)))
    history = read_history(path)
    assert {e.ev for e in history.events} == {GAP}
    assert [r.reason.partition(";")[0][:70] for r in history.quarantine] == [
        "3 of 4 messaging spans left out: process: its message is not named",
        "1 of 4 messaging spans left out: neither its kind nor an operation nor",
    ]
    assert {f.verdict for f in judged(path).values()} == {Verdict.INCONCLUSIVE}


def test_a_span_that_was_left_out_may_explain_everything(tmp_path: Path) -> None:
    """The publish of what is delivered, or the settling of it, may be among them."""
    path = tmp_path / "traces.jsonl"
    whole = pika(4, True)
    spans = whole["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans += [raw("x", 3, f"x{k}", 10 * k + 7, messaging__system="rabbitmq") for k in range(4)]
    path.write_text(json.dumps(whole))
    assert len(read_history(path).quarantine) == 1
    assert Verdict.VIOLATED not in {f.verdict for f in judged(path).values()}


def test_rejects_a_line_that_is_no_otlp_and_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    bad = otlp(span("send", "m2", 1, 2))
    bad["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["startTimeUnixNano"] = "soon"
    path.write_text(json.dumps(otlp(span("send", "m1", 1, 2))) + "\n" + json.dumps(bad) + "\n{}\n")
    history = read_history(path)
    assert [e.ev for e in history.events] == [GAP, "publish", "publish"]
    assert [(r.line, r.reason) for r in history.quarantine] == [
        (2, "no OTLP: field startTimeUnixNano: 'soon' is no number of nanoseconds"),
        (3, "no OTLP: field resourceSpans: missing"),
    ]


def test_rejects_a_file_of_which_nothing_can_be_made(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text("what is this\n")
    with pytest.raises(HistoryError, match=r"history\.edn: line 1: not a history"):
        read_history(path)


# What spec/HISTORY.md shows of each format

PAGE = Path(__file__).parents[2] / "spec" / "HISTORY.md"


def examples() -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """By name of the file: its text, and the events that it is read as."""
    _, _, shown = PAGE.read_text().partition("## Examples of other formats")
    found = re.findall(
        r"`([\w.]+)`[^`]*(?:`gap`[^`]*)?```\w+\n(.*?)```\s*```json\n(.*?)```", shown, re.S
    )
    return {
        name: (text, [json.loads(line) for line in events.splitlines()])
        for name, text, events in found
    }


def test_each_importer_has_an_example() -> None:
    assert set(examples()) == {"history.edn", "spans.otlp.json", "old.jsonl"}


@pytest.mark.parametrize("name", examples())
def test_an_example_is_read_as_the_page_says(name: str, tmp_path: Path) -> None:
    text, events = examples()[name]
    path = tmp_path / name
    path.write_text(text)
    history = read_history(path)
    assert history.quarantine == []
    of_header = {"run", "rec", "lvl", "clk"}
    read = [msgspec.to_builtins(event) for event in history.events]
    assert [{k: v for k, v in e.items() if k not in of_header} for e in read] == events
    assert Verdict.VIOLATED not in {f.verdict for f in judged(path).values()}
