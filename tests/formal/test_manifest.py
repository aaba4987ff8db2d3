"""The manifest of the Promela models: what is pinned, and that nothing in it could not fail."""

from collections import defaultdict

from seriatim_models.properties import PROPERTIES
from seriatim_workshop.formal import SPEC, coverage, manifest, page
from seriatim_workshop.formal.assumptions import ASSUMPTIONS
from seriatim_workshop.formal.induction import lemmas
from seriatim_workshop.formal.theory import load

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


def test_each_rule_of_the_reference_has_a_broken_variant_that_a_claim_refutes() -> None:
    rows = page.rules().splitlines()[2:]
    assert {int(row.split("|")[1]) for row in rows} == set(range(1, 9))
    for row in rows:
        assert "`" in row.split("|")[-2], f"no claim refutes it: {row}"


def test_each_broken_variant_and_each_bound_is_explained_in_the_head_of_its_model() -> None:
    for model in page.models():
        assert model.bounds, f"{model.file} does not argue its bounds"
        assert all(": " in bound for bound in model.bounds), model.bounds
        for run in RUNS:
            if run.file == model.file and run.kind == "fails":
                flags = {flag.removeprefix("-D").partition("=")[0] for flag in run.flags}
                assert flags <= set(model.flags), f"{run.name}: {flags} not in {set(model.flags)}"


def test_each_promise_of_the_queue_is_proved_or_says_what_of_it_is_not() -> None:
    rows = [line.split(" | ") for line in coverage.table().splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == [*coverage.promises()]
    assert set(coverage.NOT_IN_Z3) == {*coverage.promises()}
    for row in rows:
        claims = row[1] not in ("none", "") and "invariant" not in row[1]
        assert claims or not row[4].startswith("nothing"), f"{row[0]}: z3 proves nothing of it"
        assert row[3].split()[0] != "0"


def test_the_tables_of_the_page_are_up_to_date() -> None:
    text = (SPEC / "README.md").read_text("utf-8")
    assert page.renewed(text) == text, "python -m seriatim_workshop.formal.page spec/README.md"


def test_what_one_system_assumes_and_another_proves_is_a_claim_there() -> None:
    """Each lemma is assumed somewhere, and its row names the claims from which z3 derives it (`test_induction.py`)."""
    borrowed = {assumed.lemma: assumed for assumed in ASSUMPTIONS if assumed.lemma}
    assert borrowed.keys() == lemmas().keys()
    for name, lemma in lemmas().items():
        assert lemma.borrower in borrowed[name].systems
        for lender in lemma.lenders:
            system, _, claim = lender.partition("/")
            assert claim in {**load(system).safety, **load(system).steps}, lender
            assert system not in borrowed[name].systems
            assert f"`{system}`" in borrowed[name].shown_by
            assert f"`{claim}`" in borrowed[name].shown_by
