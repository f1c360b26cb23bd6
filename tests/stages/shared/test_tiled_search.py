"""Searching tile by tile, in memory or in mapped files, finds what one call on whole arrays finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from scalemani.engine.memory.files import RowsInFile
from scalemani.engine.memory.process import PROCESS
from scalemani.kernels.neighbors.nn_descent import NeighborLists, propose_neighbors
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors
from scalemani.kernels.rows.reduced import COORDINATES, ComparedTable
from scalemani.stages.shared import tiled_search
from scalemani.stages.shared.tiled_search import PROPOSED_BYTES, propose_by_tiles, refine_by_tiles

N_POINTS, K, START, STOP = 500, 6, 120, 330


@pytest.fixture(autouse=True)
def nothing_shared():
    yield
    PROCESS.free()


def mapped(folder, values):
    rows = RowsInFile(folder, values.shape, values.dtype)
    rows[slice(0, len(values))] = values
    return rows


def graph_of(seed=1):
    draws = np.random.default_rng(seed)
    indices = np.array([draws.choice(np.delete(np.arange(N_POINTS), i), K, replace=False) for i in range(N_POINTS)])
    return NeighborLists(indices.astype(np.int32), draws.random((N_POINTS, K)) < 0.5)


@pytest.mark.parametrize(("dtype", "width"), [(np.float32, 8), (np.int8, 8), (np.float32, 50_000)])
def test_proposals_from_files_are_those_of_whole_arrays_for_any_tiles(tmp_path, dtype, width):
    """Half of what tiles may take is room for 167 rows of 50,000 coordinates: fewer than the queries look at."""
    sketches = np.random.default_rng(0).normal(size=(N_POINTS, width)) * 31
    sketches = sketches.clip(-127, 127).astype(dtype)
    assert ((STOP - START) * sketches[0].nbytes > PROPOSED_BYTES // 2) == (width > 8)
    graph, limits = graph_of(), np.full(STOP - START, 5000 * width, np.float32)
    own = NeighborLists(graph.indices[START:STOP], graph.fresh[START:STOP])
    visited = NeighborLists(np.ascontiguousarray(own.indices[:, :4]), np.ascontiguousarray(own.fresh[:, :4]))
    whole = propose_neighbors(ComparedTable(COORDINATES, sketches), START, own.indices, visited, graph, limits, 10)
    lists = mapped(tmp_path, graph.indices), mapped(tmp_path, graph.fresh)
    found = propose_by_tiles(
        ComparedTable(COORDINATES, mapped(tmp_path, sketches)), START, own.indices, visited, lists, limits, 10
    )
    assert (whole >= 0).any()
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("row_bytes", [20, 2**18, 2**26])
@pytest.mark.parametrize("in_file", [False, True])
def test_refined_lists_are_the_nearest_of_all_candidates(tmp_path, row_bytes, in_file):
    """Tiles are as long as there is room for rows of so many bytes."""
    points = np.random.default_rng(2).normal(size=(N_POINTS, 5)).astype(np.float32)
    candidates = graph_of(3).indices[START:STOP]
    table = mapped(tmp_path, points) if in_file else points
    found, fresh = refine_by_tiles(table, START, candidates, no_neighbors(STOP - START, 4), row_bytes)
    away = cdist(points[START:STOP], points)
    expected = np.sort(np.take_along_axis(away, candidates.astype(np.int64), axis=1), axis=1)[:, :4]
    np.testing.assert_allclose(found.distances, expected, rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(away, found.indices.astype(np.int64), axis=1), expected, rtol=1e-5)
    assert fresh.all()


def test_what_is_known_stays_where_no_candidate_is_nearer():
    points = np.arange(N_POINTS, dtype=np.float32)[:, np.newaxis]
    rows = np.arange(START, STOP, dtype=np.int32)[:, np.newaxis]
    known = Neighbors(np.hstack([rows + 1, rows + 2]), np.tile(np.array([1.0, 2.0], np.float32), (len(rows), 1)))
    found, fresh = refine_by_tiles(points, START, rows + 9, known, 4)
    np.testing.assert_array_equal(found.indices, known.indices)
    assert not fresh.any()
    found, fresh = refine_by_tiles(points, START, np.where(rows % 2 == 0, rows - 1, -1), known, 4)
    even = START % 2 == 0
    assert even
    np.testing.assert_array_equal(np.sort(found.indices[::2]), np.hstack([rows - 1, rows + 1])[::2])
    np.testing.assert_array_equal(found.indices[1::2], known.indices[1::2])
    np.testing.assert_array_equal(fresh.sum(axis=1), np.tile([1, 0], len(rows) // 2))


@given(
    looked_at=st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=40),
    row_bytes=st.integers(1, 400),
    most_bytes=st.integers(1, 20_000),
)
def test_tiles_follow_each_other_and_copy_no_more_rows_than_there_is_room_for(looked_at, row_bytes, most_bytes):
    rows = np.array(looked_at)

    def copied(tile, most_rows):
        seen = np.unique(rows[tile])
        return None if len(seen) > most_rows else seen

    tiles = list(tiled_search.tiles_with_room(len(rows), 3, row_bytes, most_bytes, copied))
    assert [tile.start for tile, _ in tiles] == [0, *(tile.stop for tile, _ in tiles[:-1])]
    assert tiles[-1][0].stop == len(rows)
    for tile, seen in tiles:
        np.testing.assert_array_equal(seen, np.unique(rows[tile]))
        assert len(seen) <= 3 or len(seen) * row_bytes <= most_bytes / 2


def test_queries_that_look_at_the_same_rows_share_a_tile():
    same = np.tile(np.arange(10), (5000, 1))
    room = 5000 * 10 * tiled_search.NUMBER_BYTES * 2
    ((tile, seen),) = tiled_search.tiles_with_room(5000, 10, 1000, room, lambda tile, _: np.unique(same[tile]))
    assert tile == slice(0, 5000)
    assert len(seen) == 10
