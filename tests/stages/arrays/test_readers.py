"""Every typed reader gives what is stored, of a run that zarr alone reads beside it; sums are formed anew."""

import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from scalemani.engine.memory.process import PROCESS
from scalemani.engine.reading import Whole
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredClustering, StoredCoarseGraphs, StoredEmbedding, StoredLayout
from scalemani.stages.arrays.graph import StoredGraph, StoredNeighbors
from scalemani.stages.arrays.landmarks import StoredLandmarks, StoredLandmarkWeights, StoredReduced
from scalemani.stages.arrays.points import StoredPartition, StoredPoints, StoredWorkPoints
from tests.stages.arrays.specification import stored_stages

READERS = [
    (stored, name)
    for stored in stored_stages()
    for name in dir(stored)
    if isinstance(inspect.getattr_static(stored, name), Whole)  # row arrays too
]
N_POINTS = 2500


@pytest.fixture
def reader_of(group_of):
    yield lambda stored: stored(group_of(stored.STAGE))
    PROCESS.free()


def raw(reader):
    """Return a stored array by zarr alone, None where it was not written."""
    folder = Path(reader.group.objects.root) / "arrays" / reader.path
    return zarr.open_array(folder, mode="r")[...] if folder.exists() else None


@pytest.mark.parametrize(("stored", "name"), READERS, ids=lambda part: getattr(part, "STAGE", part))
def test_a_reader_gives_the_array_that_is_described_in_every_way_to_read(stored, name, finished, wide):
    holding = [one for one in (*finished.values(), wide) if stored.STAGE in one.keys]
    found = [(getattr(stored(one.group(stored.STAGE)), name), one) for one in holding]
    reader = next((reader for reader, _ in found if raw(reader) is not None), None)
    if reader is None:
        pytest.skip("none of these runs stores it")
    expected, described = raw(reader), getattr(stored, name)
    assert (expected.ndim, reader.path) == (len(described.dims), described.name)
    assert expected.dtype.name in described.dtypes
    np.testing.assert_array_equal(reader.read(), expected)
    np.testing.assert_array_equal(reader.read_once(), expected)
    np.testing.assert_array_equal(reader.zarr()[...], expected)
    if expected.ndim and len(expected) == N_POINTS:
        rows = np.random.default_rng(0).integers(0, N_POINTS, 50)
        np.testing.assert_array_equal(reader.gather(rows), expected[rows])
        np.testing.assert_array_equal(reader.read_block(1), expected[1024:2048])
        out = np.empty((50, *expected.shape[1:]), expected.dtype)
        reader.gather_into(out, rows)
        np.testing.assert_array_equal(out, expected[rows])
    PROCESS.free()


def test_work_points_are_the_points_in_the_order_of_their_cells(reader_of):
    points, work, partition = reader_of(StoredPoints), reader_of(StoredWorkPoints), reader_of(StoredPartition)
    order, offsets = work.input_rows.read(), work.cell_ranges.offsets
    assert sorted(order) == list(range(N_POINTS))
    np.testing.assert_array_equal(work.points.read(), points.points.read()[order])
    sizes = np.bincount(partition.cells.read(), minlength=len(offsets) - 1)
    assert sorted(np.diff(offsets)) == sorted(sizes)


def test_the_basis_gives_the_sketches_that_are_stored(reader_of):
    work, basis = reader_of(StoredWorkPoints), reader_of(StoredPartition).basis
    expected = (work.points.read() - basis.mean) / basis.scale @ basis.axes
    np.testing.assert_allclose(work.sketch.read(), expected, atol=1e-4)


def test_the_graph_is_the_last_round_in_input_order(reader_of):
    neighbors, graph, order = (
        reader_of(StoredNeighbors),
        reader_of(StoredGraph),
        reader_of(StoredWorkPoints).input_rows.read(),
    )
    blocks = [neighbors.read_graph_block(block) for block in range(3)]
    indices, distances = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    np.testing.assert_array_equal(graph.indices.read()[order], order[indices])
    np.testing.assert_array_equal(graph.distances.read()[order], distances)


def whole_affinities(reader_of):
    stored = reader_of(StoredSymmetricAffinities)
    return stored, sp.vstack([stored.read_matrix(block, N_POINTS) for block in range(3)]).tocsr()


def test_w_is_symmetric_and_its_degrees_are_its_row_sums(reader_of):
    stored, matrix = whole_affinities(reader_of)
    assert abs(matrix - matrix.T).max() == 0
    np.testing.assert_allclose(stored.read_degrees(N_POINTS), matrix.sum(axis=1).A1, rtol=1e-6)
    with ThreadPoolExecutor(2) as pool:
        both = (stored.read_all_rows(3), stored.read_all_rows(3, pool.map))
    for rows in both:
        np.testing.assert_array_equal(rows.indptr, matrix.indptr)
        np.testing.assert_array_equal(rows.indices, matrix.indices)
        np.testing.assert_array_equal(rows.values, matrix.data)


def test_the_reduced_matrices_are_products_of_z_with_the_laplacian_and_the_degrees(reader_of):
    weights, reduced, (stored, matrix) = (
        reader_of(StoredLandmarkWeights),
        reader_of(StoredReduced),
        whole_affinities(reader_of),
    )
    n_landmarks = len(reader_of(StoredLandmarks).rows.read())
    z = sp.vstack([weights.read_matrix(block, n_landmarks) for block in range(3)]).tocsr()
    np.testing.assert_allclose(z.sum(axis=1).A1, 1.0, atol=1e-10)
    degrees = sp.diags_array(stored.read_degrees(N_POINTS))
    mass, laplacian = z.T @ degrees @ z, z.T @ (degrees - matrix.astype(np.float64)) @ z
    for described, expected in ((StoredReduced.MASS, mass), (StoredReduced.LAPLACIAN, laplacian)):
        found = reduced.read_matrix(described)
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-5 * abs(mass).max())


def test_every_coarse_graph_sums_the_edges_between_its_members(reader_of):
    stored, (symmetric, matrix) = reader_of(StoredCoarseGraphs), whole_affinities(reader_of)
    labels, finer, degrees = stored.labels.read(), matrix.astype(np.float64), symmetric.read_degrees(N_POINTS)
    levels = stored.read_levels()
    assert levels
    for level in levels:
        indptr, indices, values = level.rows
        size = len(indptr) - 1
        members = sp.csr_matrix((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), size))
        coarse = sp.csr_matrix((values.astype(np.float64), indices, indptr), shape=(size, size))
        assert abs(coarse - members.T @ finer @ members).max() < 1e-4 * abs(coarse).max()
        np.testing.assert_allclose(level.degrees, members.T @ degrees, rtol=1e-5)
        labels, finer, degrees = level.labels, coarse, level.degrees


def test_landmarks_are_points_and_lie_in_an_embedding_where_their_rows_do(reader_of):
    landmarks, embedding = reader_of(StoredLandmarks), reader_of(StoredEmbedding).embedding
    rows = landmarks.rows.read()
    np.testing.assert_array_equal(landmarks.points.read(), reader_of(StoredPoints).points.read()[rows])
    np.testing.assert_array_equal(landmarks.coordinates_in(embedding), embedding.read()[rows])


def test_snapshots_are_ascending_and_the_last_state_is_the_embedding_of_the_curve(reader_of):
    layout = reader_of(StoredLayout)
    iterations = layout.snapshot_iterations
    assert iterations == sorted(iterations)
    assert len(iterations) > 1
    for iteration in iterations:
        assert layout.snapshot(iteration).read().shape == layout.embedding.read().shape
    assert (np.diff(layout.curve.read()[:, 0]) > 0).all()


def test_centres_before_the_last_pass_moved_by_what_is_stored(reader_of):
    clustering = reader_of(StoredClustering)
    passes = int(clustering.passes.read())
    assert passes >= 1
    before, after = clustering.centers_before(passes - 1).read(), clustering.centers.read()
    assert before.shape == after.shape
    assert float(clustering.moved.read()) == pytest.approx(np.linalg.norm(after - before, axis=1).max(), rel=1e-6)
