"""The manifest of the Promela models: what is pinned, and that nothing in it could not fail."""

from collections import defaultdict

from seriatim_models.properties import PROPERTIES
from seriatim_workshop.formal import SPEC, manifest

RUNS = manifest.read().runs


def test_every_run_is_of_a_known_property_and_a_model_that_exists() -> None:
    for run in RUNS:
        assert run.property in PROPERTIES, f"{run.name}: {run.property} is not in the register"
        assert (SPEC / "promela" / run.file).is_file(), f"{run.name}: no model {run.file}"


def test_every_run_has_its_states_and_depth_pinned() -> None:
    for run in RUNS:
        assert run.states > 0, f"{run.name}: run python -m seriatim_workshop.formal.spin --pin"
        assert run.depth > 0 or run.kind != "holds"


def test_every_model_has_a_broken_twin_and_something_that_must_be_reached() -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for run in RUNS:
        kinds[run.file].add(run.kind)
    for file, has in kinds.items():
        assert has == set(manifest.KINDS), f"{file} has only {has}"


def test_every_claim_that_holds_has_a_broken_twin_and_a_probe_of_its_own_property() -> None:
    kinds: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in RUNS:
        kinds[run.file, run.property].add(run.kind)
    for run in RUNS:
        if run.kind == "holds" and run.claim is not None:
            lacks = set(manifest.KINDS) - kinds[run.file, run.property]
            assert not lacks, f"{run.name} holds, and of {run.property} {run.file} has no {lacks}"


def test_a_claim_is_named_after_its_property() -> None:
    for run in RUNS:
        if run.claim is not None:
            assert run.claim.startswith(run.property.lower().replace("-", "_")), run.name


def test_names_are_unique() -> None:
    assert len({run.name for run in RUNS}) == len(RUNS)
