"""Results in the checkpoint log of a campaign by somebody who knows the format: a sentence or a claim, no crash."""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import console as borders
from seriatim_models.files import sealed
from seriatim_models.pipeline import PipelineError
from seriatim_models.pipeline.campaign import distributed
from seriatim_models.pipeline.campaign.checkpoint import VERSION, CheckpointLog, log_folder
from seriatim_models.pipeline.campaign.items import ItemResult
from seriatim_models.pipeline.campaign.run import CampaignBounds
from seriatim_models.pipeline.campaign.subtree import run_item
from seriatim_workshop import fuzz_formats
from seriatim_workshop.fuzz import VALUES

FORGED = 400


def _first(
    executions: int,
) -> tuple[distributed.DistributedSearch, distributed.Leaf, ItemResult]:
    """A search, the leaf that it begins with, and what the search below that returns."""
    search = distributed.DistributedSearch("two-takers", executions=executions)
    [(leaf, item)] = search.deal(CampaignBounds())
    return search, leaf, run_item(item)


def test_a_forged_subtree_is_a_sentence() -> None:
    """Whatever is changed in what a search returns; it was a traceback (70) of many kinds."""
    search, leaf, result = _first(2)
    honest = result.returned
    search.take(leaf, result)
    said = []
    for number in range(FORGED):
        choose = random.Random(number)
        tree: list[Any] = [json.loads(honest)]
        for _ in range(choose.randrange(1, 3)):
            fuzz_formats.changed(choose, tree, VALUES)
        search, leaf, result = _first(1)
        result.returned = json.dumps(tree[0] if tree else None)
        try:
            search.take(leaf, result)
        except PipelineError as error:
            said.append(str(error))
    assert len(said) > FORGED / 2
    assert all(each.startswith(f"the result {result.id} is of no subtree") for each in said)


@pytest.mark.parametrize(
    "claim",
    [
        {"complete": -1}, {"steps": 2**63}, {"seconds": -1.0}, {"names": "no base64!"}, {"reached": -1},
        {"traces": 10**30}, {"bugs": [["P1", "t"]]}, {"verdict": 1},
    ],
)  # fmt: skip
def test_a_result_of_other_types_is_none(claim: dict[str, Any], tmp_path: Path) -> None:
    """Its item is done again; a number beyond 64 bits or names that are no base64 were a traceback at the end."""
    _, _, result = _first(1)
    log = CheckpointLog(tmp_path)
    line = json.loads(sealed(result))["result"]
    (log_folder(tmp_path) / f"{VERSION}-a.jsonl").write_bytes(sealed(line | claim) + sealed(line))
    assert [r.id for r in log.new_results()] == [result.id]


def test_a_forged_bug_is_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its token stands in a command to be pasted, which a shell must not take for two."""
    token = "x:1; touch /tmp/owned #"
    shown = importlib.import_module("seriatim_models.cli.campaign")._show_bugs
    monkeypatch.setenv("COLUMNS", "200")
    shown(
        borders.terminal(stderr=False), {("p", "", "[red]P1[/nope]\x1b[31m", "t\x1b[2J"): [token]}
    )
    said = capsys.readouterr().out
    assert f"--replay '{token}'" in said
    assert "\x1b" not in said
    assert "[red]P1[/nope]" in said
