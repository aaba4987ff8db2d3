"""The manifest of the Promela models: what is pinned, and that nothing in it could not fail."""

from collections import defaultdict

from seriatim_models.formal import SPEC, manifest
from seriatim_models.properties import PROPERTIES

RUNS = manifest.read()


def test_every_run_is_of_a_known_property_and_a_model_that_exists() -> None:
    for run in RUNS:
        assert run.property in PROPERTIES, f"{run.name}: {run.property} is not in the register"
        assert (SPEC / "promela" / run.file).is_file(), f"{run.name}: no model {run.file}"


def test_every_run_has_its_states_and_depth_pinned() -> None:
    for run in RUNS:
        assert run.states > 0, f"{run.name}: run python -m seriatim_models.formal.spin --pin"
        assert run.depth > 0 or run.kind != "holds"


def test_every_model_has_a_broken_twin_and_something_that_must_be_reached() -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for run in RUNS:
        kinds[run.file].add(run.kind)
    for file, has in kinds.items():
        assert has == set(manifest.KINDS), f"{file} has only {has}"


def test_names_are_unique() -> None:
    assert len({run.name for run in RUNS}) == len(RUNS)
