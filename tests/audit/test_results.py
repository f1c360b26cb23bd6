"""What an audit returns, prints, writes and refuses, and that it shares nothing with what it judges."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import scalemani as sm
from scalemani.audit.findings import Finding, Verification, at_most, equal, measured, none_wrong
from scalemani.audit.invariants import AuditedArrays, blocks_of, count
from scalemani.audit.neighbors import distinct_true
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredRun
from scalemani.errors import ConfigError, StoreError
from scalemani.stages.arrays.graph import StoredGraph
from scalemani.store.invariants import total_is_count
from tests.audit.forging import Forged

FOREIGN = ("dask", "numba", "sklearn", "scalemani.kernels", "scalemani.stages", "scalemani.engine", "scalemani.runs")


def of(*verdicts):
    findings = tuple(Finding("neighbors", f"claim {place}", 1.0, 0.5, 0.1, one) for place, one in enumerate(verdicts))
    return Verification(findings, "t-sne", {"neighbors": "0"}, 7, 100)


def test_an_audit_is_right_where_no_claim_fails():
    assert of("holds", "not checked").ok
    assert not of("holds", "fails").ok
    assert "claim 1" in str(of("holds", "fails"))
    assert "1 claims hold, 1 fail, 0 were not checked; 100 rows drawn by seed 7" in str(of("holds", "fails"))


def test_a_claim_may_be_off_by_three_standard_errors():
    assert measured("a", "b", 1.0, 0.71, 0.1).verdict == "holds"
    assert measured("a", "b", 1.0, 0.69, 0.1).verdict == "fails"
    assert measured("a", "b", None, 0.69, 0.1).verdict == "not checked"
    assert at_most("a", "b", 1.0, 1.1, 0.2).verdict == "holds"
    assert at_most("a", "b", 1.0, 1.3, 0.2).verdict == "fails"
    assert equal("a", "b", True, 1).verdict == "holds"
    assert equal("a", "b", "[1, 2]", "[1, 3]").verdict == "fails"
    assert none_wrong("a", "b", 2, "note", [4, 5]).note == "note; first: 4, 5"


def test_numbers_that_json_has_not_are_texts():
    found = Verification((Finding("a", "b", 1.0, float("inf"), float("nan"), "fails"),), "t-sne", {}, 7, 100)
    assert (
        json.loads(found.as_json())["findings"][0] | {"found": "inf", "error": "nan"}
        == json.loads(found.as_json())["findings"][0]
    )


def test_a_neighbour_counts_once_and_never_for_itself():
    indices = np.array([[1, 1, 2, 3], [5, 6, 7, 8], [2, 0, 1, 9]])
    true = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0]], bool)
    assert distinct_true(indices, true, np.array([0, 1, 2])).tolist() == [2, 4, 1]


def test_an_audit_loads_nothing_of_what_it_judges():
    told = "import sys, scalemani.audit.verifying; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    assert [one for one in loaded if one.startswith(FOREIGN)] == []


def test_the_command_prints_and_writes_what_it_found(right, scalemani, tmp_path):
    run = Forged(right("graph"), tmp_path / "run").root
    status, told, progress = scalemani("verify", run, "--rows", "50", "--seed", "3")
    assert status == 0
    assert re.search(r"verify: \d+ checks to do\n", progress)
    assert scalemani("verify", run, "--rows", "50", "--seed", "3", "--quiet") == (0, told, "")
    assert "recall, distinct true neighbours of 50 rows" in told
    found = json.loads((run / "verification.json").read_text())
    assert (found["ok"], found["seed"], found["rows"]) == (True, 3, 50)
    assert (run / "verification.txt").read_text() == told
    assert json.loads(scalemani("verify", run, "--rows", "50", "--seed", "3", "--json")[1]) == found


def test_a_claim_that_does_not_hold_ends_the_command_with_status_1(right, scalemani, tmp_path):
    forged = Forged(right("graph"), tmp_path / "run")
    forged.change("graph", "distances", lambda distances: 1.1 * distances)
    status, told, _ = scalemani("verify", forged.seal(), "--rows", "50")
    assert status == 1
    assert "fails" in told


def test_seeds_are_new_each_time_and_repeat_an_audit(right):
    run = sm.open_run(right("graph"))
    one, other = (run.verify(50, write=False) for _ in range(2))
    assert one.seed != other.seed
    assert run.verify(50, seed=one.seed, write=False) == one


def test_damaged_objects_are_found(right, tmp_path):
    forged = Forged(right("graph"), tmp_path / "run")
    chunk = next(forged.path("work_points", "points").rglob("c/1/0"))
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    found = sm.open_run(forged.root).verify(50, write=False)
    (damaged,) = (one for one in found.failed if one.claim.startswith("digests of"))
    assert "points/c/1/0" in damaged.note


def test_results_of_other_inputs_are_found(right, tmp_path):
    forged = Forged(right("refine"), tmp_path / "run")
    inputs = forged.group("affinities") / "inputs.json"
    from tests.audit.forging import read_json, write_json

    write_json(inputs, read_json(inputs) | {"neighbors": "0" * 32})
    found = sm.open_run(forged.root).verify(50, write=False)
    assert [one.claim for one in found.failed] == ["results were made of these inputs"]


def test_an_unfinished_stage_is_told(right, tmp_path):
    forged = Forged(right("graph"), tmp_path / "run")
    (forged.group("graph") / "complete.json").unlink()
    found = sm.open_run(forged.root).verify(50, write=False)
    assert [one.claim for one in found.failed] == ["stages are finished"]


def test_the_report_shows_the_last_audit(right, tmp_path):
    run = sm.open_run(Forged(right("graph"), tmp_path / "run").root)
    before = run.report(tmp_path / "before.html", n_sampled=0)
    run.verify(50, seed=3)
    after = run.report(tmp_path / "after.html", n_sampled=0)
    pages = [Path(page).read_text() for page in (before, after)]
    assert ["recall, distinct true neighbours of 50 rows" in page for page in pages] == [False, True]
    found = run.store.root / "verification.json"
    found.write_text(json.dumps(json.loads(found.read_text()) | {"keys": {}}))  # of another run in the store
    assert "distinct true neighbours" not in Path(run.report(tmp_path / "other.html", n_sampled=0)).read_text()


def test_what_an_audit_cannot_use_is_refused(right, tmp_path):
    run = sm.open_run(right("graph"))
    for arguments, words in (((3,), "rows must be >= 10"), ((50, "1MB"), "memory must be at least")):
        with pytest.raises(ConfigError, match=words):
            run.verify(*arguments)
    forged = Forged(right("graph"), tmp_path / "run")
    opened = sm.open_run(forged.root)
    (forged.root / "plan.json").write_text("{}")
    with pytest.raises(StoreError, match="missing or damaged"):
        opened.verify(50)


def test_little_memory_finds_the_same(right):
    run = sm.open_run(right("refine"))
    one, other = (run.verify(50, memory=memory, seed=3, write=False) for memory in ("4GB", "300MB"))
    assert [(a.claim, a.verdict) for a in one.findings] == [(b.claim, b.verdict) for b in other.findings]


def test_a_run_in_a_bucket_is_audited_where_it_is(bucket):
    points = np.random.default_rng(0).normal(size=(1200, 5)).astype(np.float32)
    sm.knn_graph(points, 8, "exact", store=f"{bucket}/run", random_state=0)
    run = sm.open_run(f"{bucket}/run")
    assert run.verify(50, seed=3).ok
    found = json.loads(run.store.objects.get("verification.json"))
    assert found["ok"]
    assert found["rows"] == 50


def test_what_reads_points_all_over_a_large_run_looks_at_blocks_that_are_drawn(right):
    audit, description = Audit(StoredRun(right("graph")), 50, 3, 4 * 10**9), StoredGraph.distances
    arrays = AuditedArrays(audit)
    places = blocks_of(audit, arrays, description, ["distances"])
    assert len(places) == 3
    by_rows = [one for one in description.invariants if one.broken is total_is_count]
    assert all(count(audit, arrays, description, one, places) == (0, 3) for one in by_rows)
    assert (0, 1) in [count(audit, arrays, description, one, places, most_read=1.0) for one in by_rows]


def test_a_neighbour_that_is_listed_twice_counts_once_and_the_point_itself_never():
    indices, own = np.array([[5, 8, 8, 5], [1, 0, 2, 3]]), np.array([9, 1])
    assert distinct_true(indices, np.ones(indices.shape, bool), own).tolist() == [2, 3]


def test_certificates_that_nothing_computes_are_named(right, tmp_path):
    forged = Forged(right("clusters"), tmp_path / "run")
    forged.claim("clustering", goodness=1.0, label=2)
    found = sm.open_run(forged.seal()).verify(300, seed=5, write=False)
    left = {one.stage: one for one in found.findings if "other certificates" in one.claim}
    assert left["clustering"].verdict == "not checked"
    assert "goodness, label" in left["clustering"].note
    assert "sizes" not in left["clustering"].note
