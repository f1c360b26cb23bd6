"""Lists of what stages hold and write: an array of one name is the same array in all that hold it."""

from collections import defaultdict

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.config.params.by_stage import ComponentsParams
from scalemani.engine.needs import disk_need
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.kernels.graph.components import CELLS_AT_ONCE, PAIRS_AT_ONCE
from scalemani.kernels.rows.sketches import gram_rows
from scalemani.stages.reduced import REPEATED, WITH_SUMS
from scalemani.stages.shared.tiled_search import NUMBER_BYTES, PROPOSED_BYTES, SETTLED_BYTES
from scalemani.stages.table import STAGES

DIMENSIONS = Dimensions(n_points=5000, n_features=7, dtype="int16", block_rows=1024)
# Names that say another thing in another stage: in another precision there, or of another Z.
AMBIGUOUS = {
    *("a tile of points, centred", "weights of a block", "distances", "landmarks"),
    *("columns of a block of W", "values of a block of W", "columns of Z"),
    *("landmarks of each point", "weights of these landmarks"),
}
VALUES = [
    {},
    {"neighbors": {"method": "exact"}},
    {"neighbors": {"method": "partition"}},
    {"points": {"metric": "precomputed"}},
    {"points": {"metric": "precomputed"}, "affinities": {"kind": "precomputed"}},
    {"embedding": {"solver": "lll+refine"}},
    {"embedding": {"solver": "exact"}},
    {"embedding": {"solver": "variational-nystrom"}},
]


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_an_array_has_the_same_columns_and_dtype_wherever_it_is_listed(values):
    sizes, found, users = (
        Sizes(DIMENSIONS, Parameters().with_values(values).resolved("laplacian-eigenmaps")),
        defaultdict(set),
        defaultdict(set),
    )
    for name, stage in STAGES.items():
        for record in stage.memory(sizes):
            found[record.name].add((record.columns, np.dtype(record.dtype).name))
            users[record.name].add(name)
    assert {name: shapes for name, shapes in found.items() if len(shapes) > 1 and name not in AMBIGUOUS} == {}
    assert sum(len(stages) > 1 for stages in users.values()) > 20


def test_rows_are_numbered_by_eight_bytes_whatever_is_stored_of_the_points():
    for values in ({}, {"points": {"metric": "precomputed"}}, {"neighbors": {"method": "window", "window": 3}}):
        sizes = Sizes(DIMENSIONS, Parameters().with_values(values).resolved("laplacian-eigenmaps"))
        (numbers,) = [record for record in STAGES["work_points"].memory(sizes) if record.name == "row numbers"]
        (order,) = [record for record in STAGES["work_points"].disk(sizes) if record.name == "input_rows"]
        assert numbers.bytes == numbers.copies * order.bytes == numbers.copies * np.arange(5000).nbytes
    (order,) = [record for record in STAGES["components"].memory(sizes) if record.name.startswith("order of the")]
    assert order.bytes == np.arange(5000).nbytes


@pytest.mark.parametrize("values", [{}, {"neighbors": {"method": "window", "window": 3}}], ids=str)
def test_sketches_are_held_where_they_are_stored_and_nowhere_else(values):
    sizes = Sizes(DIMENSIONS, Parameters().with_values(values).resolved("laplacian-eigenmaps"))
    held = [record for record in STAGES["work_points"].memory(sizes) if "sketches" in record.name]
    stored = [record for record in STAGES["work_points"].disk(sizes) if record.name == "sketch"]
    assert bool(held) == bool(stored) == (not values)


def test_a_block_of_w_has_as_many_values_as_columns_and_as_many_again_once_it_is_normalised():
    listed = STAGES["normalized_affinities"].memory(Sizes(DIMENSIONS, Parameters().resolved("laplacian-eigenmaps")))
    columns, values = (
        next(record.bytes for record in listed if record.name.startswith(f"{name} of a block of W"))
        for name in ("columns", "values")
    )
    assert values == 2 * columns


@pytest.mark.parametrize("n_blocks", [4, 4000])
def test_sums_over_few_landmarks_have_no_more_entries_than_these_have_pairs(n_blocks):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 10}}).resolved("laplacian-eigenmaps")
    sizes = Sizes(Dimensions(1024 * n_blocks, 7, "int16", 1024), params)
    n_pairs = 2 * n_blocks * 10**2  # of both matrices, in each block
    assert disk_need(STAGES["reduced"].disk(sizes)).stored <= WITH_SUMS * REPEATED * n_pairs * (8 + 4)


@pytest.mark.parametrize(("n_points", "is_all"), [(40, True), (4_000_000, False)])
def test_a_tile_of_the_search_looks_at_no_more_than_all_points(n_points, is_all):
    values = {"neighbors": {"method": "partition", "n_neighbors": 5}}
    sizes = Sizes(
        Dimensions(n_points, 7, "int16", 1024), Parameters().with_values(values).resolved("laplacian-eigenmaps")
    )
    listed = STAGES["neighbors"].memory(sizes)
    (seen,) = [record.bytes for record in listed if record.name == "rows that a tile looks at"]
    sketches = next(record.bytes for record in listed if record.name == "sketches of all points")
    everything = n_points * np.zeros(7, "int16").nbytes + sketches + n_points * NUMBER_BYTES
    assert (seen == everything) is is_all
    assert max(PROPOSED_BYTES, SETTLED_BYTES) <= seen or is_all
    assert seen <= everything


@pytest.mark.parametrize(("n_landmarks", "n_features"), [(50, 400), (400, 50), (3000, 4000)])
def test_sketches_of_landmarks_take_the_matrix_that_they_are_fitted_by(n_landmarks, n_features):
    params = Parameters().with_values({"landmarks": {"n_landmarks": n_landmarks}}).resolved("laplacian-eigenmaps")
    listed = STAGES["landmark_weights"].memory(Sizes(Dimensions(9000, n_features, "float32", 1024), params))
    (gram,) = [record for record in listed if record.name == "Gram matrix and its eigenvectors"]
    side = min(len(gram_rows(n_landmarks, n_features)), n_features)
    assert gram.bytes == 2 * np.empty((side, side)).nbytes


@pytest.mark.parametrize(("cell_points", "queries"), [(64, 3), (64, 4000), (4096, 2000)])
def test_a_search_for_bridges_has_room_for_a_query_and_all_cells_and_for_all_queries_and_some_cells(
    cell_points, queries, monkeypatch
):
    monkeypatch.setattr(ComponentsParams, "most_queries", queries)
    values = {"partition": {"cell_points": cell_points}}
    sizes = Sizes(
        Dimensions(400_000, 7, "float32", 1024), Parameters().with_values(values).resolved("laplacian-eigenmaps")
    )
    listed = STAGES["components"].memory(sizes)
    (held,) = [record for record in listed if record.name == "distances of queries to cells"]
    at_once = max(1, PAIRS_AT_ONCE // sizes.n_cells)  # queries against all cells
    pairs = max(min(at_once, queries) * sizes.n_cells, queries * CELLS_AT_ONCE)
    assert held.bytes >= np.zeros(pairs).nbytes
