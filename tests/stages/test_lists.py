"""What stages say that they take of memory and of the disk, compared with arrays."""

from dataclasses import replace

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.config.params.by_stage import ComponentsParams
from scalemani.engine.memory_model import array
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.kernels.graph.components import CELLS_AT_ONCE, PAIRS_AT_ONCE
from scalemani.kernels.rows.sketches import gram_rows
from scalemani.stages.reduced import REPEATED, WITH_SUMS
from scalemani.stages.shared.tiled_search import NUMBER_BYTES, PROPOSED_BYTES, SETTLED_BYTES
from scalemani.stages.table import STAGES

DIMENSIONS = Dimensions(n_points=5000, n_features=7, dtype="int16", block_rows=1024)


def terms_of(listed):
    """Return the bytes of memory or disk by name."""
    return {name: n_bytes for name, n_bytes, _ in listed.listed()}


def test_rows_are_numbered_by_eight_bytes_whatever_is_stored_of_the_points():
    for values in ({}, {"points": {"metric": "precomputed"}}, {"neighbors": {"method": "window", "window": 3}}):
        sizes = Sizes(DIMENSIONS, Parameters().with_values(values).resolved("laplacian-eigenmaps"))
        numbers = terms_of(STAGES["work_points"].memory(sizes))["row numbers"]
        assert numbers == terms_of(STAGES["work_points"].disk(sizes))["input_rows"] == np.arange(5000).nbytes


@pytest.mark.parametrize(
    ("values", "dtype", "stored"),
    [({}, "float32", True), ({}, "int16", False), ({"neighbors": {"method": "window", "window": 3}}, "float32", False)],
    ids=str,
)
def test_sketches_are_held_where_they_are_stored_and_nowhere_else(values, dtype, stored):
    sizes = Sizes(replace(DIMENSIONS, dtype=dtype), Parameters().with_values(values).resolved("laplacian-eigenmaps"))
    held = any("sketches" in name for name in terms_of(STAGES["work_points"].memory(sizes)))
    assert held == ("sketch" in terms_of(STAGES["work_points"].disk(sizes))) == stored


def test_a_block_of_w_has_as_many_values_as_columns_and_as_many_again_once_it_is_normalised():
    sizes = Sizes(DIMENSIONS, Parameters().resolved("laplacian-eigenmaps"))
    block = terms_of(STAGES["normalized_affinities"].memory(sizes))["a block of W, before and after"]
    assert block == 3 * (array("int32", sizes.block_nonzeros) + 2 * array("float32", sizes.block_nonzeros))


@pytest.mark.parametrize("n_blocks", [4, 4000])
def test_sums_over_few_landmarks_have_no_more_entries_than_these_have_pairs(n_blocks):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 10}}).resolved("laplacian-eigenmaps")
    sizes = Sizes(Dimensions(1024 * n_blocks, 7, "int16", 1024), params)
    n_pairs = 2 * n_blocks * 10**2  # of both matrices, in each block
    assert STAGES["reduced"].disk(sizes).total <= WITH_SUMS * REPEATED * n_pairs * (8 + 4)


@pytest.mark.parametrize(("n_points", "is_all"), [(40, True), (4_000_000, False)])
def test_a_tile_of_the_search_looks_at_no_more_than_all_points(n_points, is_all):
    values = {"neighbors": {"method": "partition", "n_neighbors": 5}}
    sizes = Sizes(
        Dimensions(n_points, 7, "float32", 1024), Parameters().with_values(values).resolved("laplacian-eigenmaps")
    )
    listed = terms_of(STAGES["neighbors"].memory(sizes))
    seen, sketches = listed["rows that a tile looks at"], listed["sketches of all points"]
    everything = n_points * np.zeros(7, "float32").nbytes + sketches + n_points * NUMBER_BYTES
    assert (seen == everything) is is_all
    assert max(PROPOSED_BYTES, SETTLED_BYTES) <= seen or is_all
    assert seen <= everything


@pytest.mark.parametrize(("n_landmarks", "n_features"), [(50, 400), (400, 50), (3000, 4000)])
def test_sketches_of_landmarks_take_the_matrix_that_they_are_fitted_by(n_landmarks, n_features):
    params = Parameters().with_values({"landmarks": {"n_landmarks": n_landmarks}}).resolved("laplacian-eigenmaps")
    listed = STAGES["landmark_weights"].memory(Sizes(Dimensions(9000, n_features, "float32", 1024), params))
    side = min(len(gram_rows(n_landmarks, n_features)), n_features)
    assert terms_of(listed)["Gram matrix and its eigenvectors"] == 2 * np.empty((side, side)).nbytes


@pytest.mark.parametrize(("cell_points", "n_points"), [(64, 400_000), (4096, 400_000), (16, 200_000_000)])
def test_a_search_for_bridges_has_room_for_a_query_and_all_cells_and_for_all_queries_and_some_cells(
    cell_points, n_points
):
    values, queries = {"partition": {"cell_points": cell_points}}, ComponentsParams.most_queries
    sizes = Sizes(
        Dimensions(n_points, 7, "float32", 1024), Parameters().with_values(values).resolved("laplacian-eigenmaps")
    )
    listed = STAGES["components"].memory(sizes)
    held = terms_of(listed)["radii of cells, and distances of queries to them"] - array("float64", sizes.n_cells)
    at_once = max(1, PAIRS_AT_ONCE // sizes.n_cells)  # queries against all cells
    pairs = max(min(at_once, queries) * sizes.n_cells, queries * CELLS_AT_ONCE)
    assert held >= np.zeros(pairs).nbytes
