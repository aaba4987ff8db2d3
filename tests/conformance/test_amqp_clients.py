"""Several clients of a broker of AMQP, started as its description says: what they see, and that they can find."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from seriatim_models.cli import run as run_command
from seriatim_models.history import read_history
from seriatim_models.properties.blackbox.callbacks import CallbackOrder, CallReply
from seriatim_workshop.systems import servers

SHORT = """
[setting.short]
arguments = { x-max-length = 1 }
"""
"""Not a mistake of RabbitMQ: it confirms, and drops the oldest. But nobody said so, and so it is a loss."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/usr/lib/rabbitmq/bin/rabbitmq-server").exists(),
        reason="RabbitMQ is not installed: apt-get install rabbitmq-server",
    ),
]


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """RabbitMQ's description, with one more setting."""
    path = tmp_path / "rabbitmq.toml"
    with servers.described() as here:
        path.write_text((here / "rabbitmq.toml").read_text() + SHORT)
    return path


def test_clients_of_a_broker_are_killed_beside_it_and_find_nothing(
    broker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.jsonl"
    asked = [
        "--system",
        str(broker),
        "--setting",
        "persistent",
        "--faults",
        "kill",
        "--patience",
        "30",
    ]
    load = ["--seconds", "4", "--rate", "300", "--seed", "2", "--out", str(out)]
    assert run_command(["record", *asked, *load]) == 0, capsys.readouterr()
    assert "not seen empty" not in capsys.readouterr().out
    assert run_command(["audit", str(out), "--engine", "local", "--profile", "rabbit-classic"]) == 0
    events = list(read_history(out).events)
    happened = Counter(e.ev for e in events)
    assert {"fault", "deliver", "get", "consume", "rpc", "cb_begin", "cb_end"} <= happened.keys()
    assert CallbackOrder().check(events).n_tested == happened["cb_begin"]
    assert CallReply().check(events).n_tested > 0
    assert all(e.key for e in events if e.ev == "rpc" and e.ph == "ok")


def test_a_loss_is_found_and_made_small(
    broker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--system", str(broker), "--setting", "short", "--seconds", "20", "--seed", "1"]
    asked += ["--clients", "3", "--profile", "rabbit-classic"]
    assert run_command(["conform", *asked, "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "The smallest clients that violate P1" in shown
    assert (tmp_path / "clients-P1.jsonl").exists()
