"""W whose rows are made when they are read, and what edges into a block range take in memory."""

import shutil
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.graph.symmetric import incoming_edges, join_edges
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.shared.edges import incoming

N_SOURCES, N_TARGETS, BLOCK_ROWS, K = 2000, 20, 8, 5


def test_edges_that_come_scattered_take_no_more_than_is_planned_for_them():
    draws, gathered = np.random.default_rng(0), [[] for _ in range(N_TARGETS)]
    values = np.ones((BLOCK_ROWS, K), np.float32)
    incoming_edges(np.zeros((BLOCK_ROWS, K), np.int32), values, 0, BLOCK_ROWS, range(N_TARGETS))  # loads its kernels
    tracemalloc.start()
    try:
        for source in range(N_SOURCES):
            indices = draws.integers(0, N_TARGETS * BLOCK_ROWS, (BLOCK_ROWS, K), dtype=np.int32)
            found = incoming_edges(indices, values, BLOCK_ROWS * source, BLOCK_ROWS, range(N_TARGETS))
            for of_block, edges in zip(gathered, found, strict=True):
                of_block.append(edges)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    rows = BLOCK_ROWS * N_SOURCES // N_TARGETS  # a block of the plan has as many edges as end in one here
    params = Parameters().with_values({"neighbors": {"n_neighbors": K}}).resolved("laplacian-eigenmaps")
    planned = incoming(Sizes(Dimensions(N_SOURCES * rows, 3, "float32", rows), params), N_TARGETS)
    assert held <= planned
    assert sum(len(join_edges(of_block).targets) for of_block in gathered) == N_SOURCES * BLOCK_ROWS * K


def embedded(points, folder, stored=False, solver="lll"):
    values = {
        "neighbors": {"n_neighbors": 9, "method": "exact"},
        "affinities": {"perplexity": 3},
        "landmarks": {"n_landmarks": 100},
        "embedding": {"solver": solver, "residual": 0.5},
        "symmetric_affinities": {"stored": stored},
    }
    params = Parameters().with_values(values)
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(workers=1), block_rows=1024)


@pytest.fixture(scope="module")
def clouds(roll):
    """Two clouds, so far from each other that one bridge joins them."""
    return np.concatenate([roll[:2600], roll[2600:3000] + 1000])


@pytest.fixture(scope="module")
def finished(clouds, tmp_path_factory):
    return embedded(clouds, tmp_path_factory.mktemp("made") / "run")


def w_of(one):
    return affinity_graph({stage: one.group(stage) for stage in one.keys})


def whole(one, **cache):
    graph = affinity_graph({stage: one.group(stage) for stage in one.keys}, **cache)
    return sp.vstack([graph.read_matrix(block, 3000) for block in range(3)], format="csr")


def test_rows_that_are_not_stored_are_the_mean_of_both_directions_and_bridges(finished):
    group, lists = finished.group("symmetric_affinities"), finished.group("neighbors")
    assert not any(group.holds(f"block-000000/{name}") for name in ("indices", "values"))
    indices, bounds = lists.read(f"round_{lists.read('last_round')}/indices"), np.arange(0, 27001, 9)
    affinities = finished.group("affinities").read("values").astype(np.float64)
    p = sp.csr_matrix((affinities.ravel(), indices.ravel(), bounds), (3000, 3000))
    ends, values = (finished.group("components").read(f"bridge_{name}") for name in ("rows", "weights"))
    assert len(ends) == 1
    bridges = sp.csr_matrix((values.astype(np.float32), ends.T), (3000, 3000), np.float64)
    expected = ((p + p.T) / 2 + bridges + bridges.T).astype(np.float32).toarray()
    found = whole(finished).toarray()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(whole(finished, cache_bytes=0).toarray(), expected)
    np.testing.assert_allclose(w_of(finished).read_degrees(3000), expected.sum(axis=1, dtype=np.float64), rtol=1e-14)
    order = finished.group("work_points").read("input_rows")
    np.testing.assert_array_equal(finished.affinities.tocsr().toarray()[order][:, order], expected)
    rows, columns = (places // 1024 for places in p.nonzero())
    for block in range(3):
        np.testing.assert_array_equal(group.read_part("sources", block), np.unique(rows[columns == block]))


def test_rows_that_are_stored_have_the_same_bits_and_so_has_the_embedding(finished, clouds, tmp_path):
    shutil.copytree(finished.store.root, tmp_path / "run")
    stored = embedded(clouds, tmp_path / "run", stored=True)
    assert stored.keys["affinities"] == finished.keys["affinities"]
    assert stored.keys["symmetric_affinities"] != finished.keys["symmetric_affinities"]
    np.testing.assert_array_equal(stored.embedding[...], finished.embedding[...])
    one, other = whole(stored), whole(finished)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


@pytest.mark.parametrize("stage", ["symmetric_affinities", "reduced", "embedding"])
def test_a_stage_that_was_stopped_resumes_to_the_same_content(finished, clouds, tmp_path, stage):
    shutil.copytree(finished.store.root, tmp_path / "run")
    group = open_run(tmp_path / "run").group(stage)
    content, units = group.content_digest, group.units
    group.forget([unit for unit in units if unit not in ("block-000000", "block-000002")])
    resumed = embedded(clouds, tmp_path / "run")
    assert resumed.group(stage).content_digest == content
    assert resumed.group(stage).units == units
    assert resumed.certificates == finished.certificates
