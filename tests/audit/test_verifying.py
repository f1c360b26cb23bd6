"""Right runs of all routes pass an audit, wrong ones do not, whatever their digests say."""

import pytest

import scalemani as sm
from tests.audit.forging import Forged, read_json
from tests.audit.runs import RUNS
from tests.audit.wrong import WRONG
from tests.audit.wrong_methods import CLAIMS, UNDIVIDED

ROWS, SEED = 300, 5
# Wrong runs that an audit of few rows does not find.
NOT_FOUND: set[str] = set()


@pytest.mark.parametrize("name", RUNS)
def test_all_that_a_right_run_claims_holds(right, name):
    found = sm.open_run(right(name)).verify(ROWS, seed=SEED, write=False)
    assert [(one.stage, one.claim, one.value, one.found, one.note) for one in found.failed] == []
    assert found.count("holds") > 8


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_run_is_found_by_its_numbers(right, tmp_path, name):
    source, change, claim = WRONG[name]
    forged = Forged(right(source), tmp_path / "run")
    change(forged)
    found = sm.open_run(forged.seal()).verify(ROWS, seed=SEED, write=False)
    of_store = [one for one in found.failed if one.stage == "store"]
    assert of_store == []  # digests fit
    assert found.ok == (name in NOT_FOUND)
    assert not claim or any(claim in one.claim for one in found.failed)


def test_a_copy_that_is_not_changed_stays_right(right, tmp_path):
    forged = Forged(right("refine"), tmp_path / "run")
    forged.change("affinities", "beta", lambda beta: beta)
    assert sm.open_run(forged.seal()).verify(ROWS, seed=SEED, write=False).ok


@pytest.mark.parametrize("place", CLAIMS)
def test_every_claim_of_methods_with_an_eigenproblem_is_forged(right, tmp_path, place):
    forged = Forged(right(place[0]), tmp_path / "run")
    said = read_json(forged.group(place[1]) / "complete.json")["certificates"]
    numbers = {name for name, value in said.items() if isinstance(value, float) and abs(value) > 1e-9}
    assert numbers == set(CLAIMS[place]) | (numbers & UNDIVIDED.get(place, set()))


def test_rows_that_are_drawn_stand_for_all_where_no_grid_is_fine_enough(right, monkeypatch):
    monkeypatch.setattr("scalemani.audit.layout.all_sums", lambda *_: None)
    found = {one.claim: one for one in sm.open_run(right("t-sne")).verify(ROWS, seed=SEED, write=False).findings}
    assert found["objective"].verdict == found["gradient_norm"].verdict == "holds"
    assert found["objective"].error > 1e-3
