"""Neighbour lists as approximate indexes return them: what is a matter of form is taken, what is wrong is refused."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import NearestNeighbors, kneighbors_graph, radius_neighbors_graph

import scalemani as sm
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import DistanceMatrix, open_lists

N, K = 300, 12


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(N, 6))


@pytest.fixture(scope="module")
def exact(points):
    """(indices, distances) with the point itself first."""
    return NearestNeighbors(n_neighbors=K + 1).fit(points).kneighbors(points)[::-1]


def without(exact, missing):
    """The lists of fewer entries, a row each."""
    indices, distances = exact
    rows = [[int(j) for j, gone in zip(*pair, strict=True) if not gone] for pair in zip(indices, missing, strict=True)]
    away = [
        [float(d) for d, gone in zip(*pair, strict=True) if not gone] for pair in zip(distances, missing, strict=True)
    ]
    return rows, away


def marked(exact, missing, dtype, mark, distance):
    indices, distances = exact
    return np.where(missing, mark, indices).astype(dtype), np.where(missing, distance, distances).astype(np.float32)


FORMS = {
    "FAISS": lambda *given: marked(*given, np.int64, -1, np.finfo(np.float32).max),
    "FAISS, inner products": lambda *given: marked(*given, np.int64, -1, -np.finfo(np.float32).max),
    "pynndescent": lambda *given: marked(*given, np.int32, -1, np.inf),
    "cuVS, unsigned": lambda *given: marked(*given, np.uint32, np.iinfo(np.uint32).max, np.nan),
    "cuVS": lambda *given: marked(*given, np.int64, np.iinfo(np.int64).max, np.inf),
    "annoy, lists of lists": without,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("swapped", [False, True])
def test_neighbours_that_were_not_found_shorten_all_lists_with_a_remark(exact, form, swapped):
    missing = np.zeros((N, K + 1), bool)
    missing[7, [2, 5, 9]] = missing[20, -2:] = True
    given = FORMS[form](exact, missing)
    lists = open_lists(given[::-1] if swapped else given)
    assert lists.n_neighbors == K - 3
    kept_rows, kept_distances = without(exact, missing)
    for row in range(N):
        assert lists.indices[row].tolist() == kept_rows[row][1 : K - 2]
        np.testing.assert_allclose(lists.distances[row], kept_distances[row][1 : K - 2], rtol=1e-6)
    assert "2 rows" in lists.remark
    assert "(-1), up to 3 in a row: of every list the nearest 9" in lists.remark
    assert lists.nearest(4).remark == lists.remark


def test_lists_half_of_which_was_not_found_are_refused_with_what_to_do(exact):
    indices, distances = exact[0].copy(), exact[1]
    indices[7, 5:] = indices[30, 1:] = -1
    with pytest.raises(DataError, match=r"2 rows .* \(-1\), up to 12 in a row, .* first rows 7, 30\. .*nprobe.*graph="):
        open_lists((indices, distances))


@pytest.mark.parametrize(("dtype", "below"), [(np.float64, 5e-7), (np.float32, 1e-6), (np.float16, 1.5e-3)])
def test_distances_below_zero_by_rounding_are_zeros_and_others_are_refused(dtype, below):
    angles = 2 * np.pi * np.arange(60) / 60 + 0.01 * np.random.default_rng(1).random(60)
    angles[1] = angles[0]
    distances = (1 - np.cos(angles - angles[:, None])).astype(dtype)
    distances[0, 1] = distances[1, 0] = -below
    distances[np.diag_indices(60)] = np.where(np.arange(60) % 2, below, -below)
    lists = open_lists(distances)
    assert isinstance(lists, DistanceMatrix)
    before = distances.copy()
    found = lists.nearest(8)
    np.testing.assert_array_equal(distances, before)  # what was given is not written to
    assert (found.indices[0, 0], found.distances[0, 0]) == (1, 0.0)
    assert (found.distances >= 0).all()
    assert not (found.indices == np.arange(60)[:, None]).any()
    order = np.argsort(distances, axis=1)[:, :9]
    of_lists = open_lists((order, np.take_along_axis(distances, order, axis=1)))
    np.testing.assert_array_equal(of_lists.distances, found.distances)
    distances[0, 1] = distances[1, 0] = -0.1
    for wrong in (distances, (order, np.take_along_axis(distances, order, axis=1))):
        with pytest.raises(DataError, match="negative"):
            open_lists(wrong).nearest(8)


def test_points_that_list_themselves_at_a_small_distance_are_taken_out(exact):
    indices, distances = exact[0], exact[1].copy()
    distances[:, 0] = np.where(np.arange(N) % 2, 0.5 * distances[:, 1], 1e-4)  # by codes, and by rounding
    lists = open_lists((indices, distances))
    np.testing.assert_array_equal(lists.indices, indices[:, 1:])
    distances[5, 0] = 0.5 * (distances[5, 1] + distances[5, 2])
    with pytest.raises(DataError, match=r"1 rows .* list themselves at a distance above zero: first rows 5"):
        open_lists((indices, distances))


def test_integer_distances_of_bits_are_no_indices_in_either_order():
    bits = np.random.default_rng(2).integers(0, 2, (N, 64))
    distances, indices = NearestNeighbors(n_neighbors=K, metric="manhattan").fit(bits).kneighbors(bits)
    for dtype in (np.int32, np.int64, np.float32):
        pair = distances.astype(dtype), indices.astype(np.int64)
        for given in (pair, pair[::-1], (pair[0], pair[1].astype(np.float64))):
            found = open_lists(given)
            expected = np.lexsort((indices[:, 1:], distances[:, 1:]), axis=1)
            np.testing.assert_array_equal(found.indices, np.take_along_axis(indices[:, 1:], expected, axis=1))
            np.testing.assert_array_equal(found.distances, distances[:, 1:])


def test_integers_that_could_both_be_indices_are_told_apart_by_which_ascend():
    # A round of games between eight: each row has the distances 1 to 7, once each.
    distances = (np.arange(8) + np.arange(8)[:, None]) % 7 + 1
    distances[7, :7] = distances[:7, 7] = 2 * np.arange(7) % 7 + 1
    distances[np.diag_indices(8)] = 0
    indices = np.argsort(distances, axis=1)[:, 1:6]
    near = np.take_along_axis(distances, indices, axis=1)
    for given in ((indices, near), (near, indices)):
        np.testing.assert_array_equal(open_lists(given).indices, indices)


def quantised(points, step):
    """Distances from points to codes of others, as an index of codes returns them."""
    codes = np.rint(points / step) * step
    away = np.linalg.norm(points[:, None] - codes, axis=2)
    order = np.argsort(away, axis=1)[:, : K + 1]
    return order, np.take_along_axis(away, order, axis=1), away


@pytest.mark.parametrize(("step", "scale"), [(0.05, 1), (0.3, 1), (0.05, 1e-14), (0.3, 1e14)])
def test_distances_to_codes_are_averaged_over_both_directions_and_the_largest_difference_is_reported(
    points, step, scale
):
    order, near, away = (
        table * factor for table, factor in zip(quantised(points, step), (1, scale, scale), strict=True)
    )
    lists = open_lists((order, near))
    mutual = {(i, j) for i in range(N) for j in order[i] if i != j and i in order[j]}
    for i in range(N):
        kept = [j for j in order[i] if j != i][: lists.n_neighbors]
        means = {j: (away[i, j] + away[j, i]) / 2 if (i, j) in mutual else away[i, j] for j in kept}
        assert lists.indices[i].tolist() == sorted(means, key=lambda j: (means[j], j))
        np.testing.assert_allclose(lists.distances[i], sorted(means.values()), rtol=1e-12)
    largest = max(abs(away[i, j] - away[j, i]) for i, j in mutual)
    assert f"by up to {largest:.3g}: the means" in lists.remark


def test_a_single_distance_that_differs_is_an_error_among_quantised_ones_too(points):
    order, near, _ = quantised(points, 0.05)
    mutual = next(j for j in order[3, 1:] if 3 in order[j])
    near[3, order[3] == mutual] *= 3
    with pytest.raises(DataError, match="another distance from a neighbour than it is from them: first rows"):
        open_lists((order, near))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", ["lists", "sparse", "dense"])
def test_squares_and_inner_products_become_the_distances_of_the_points(points, dtype, given):
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    for rows, form in ((points, "squared"), (unit, "inner-product")):
        away, indices = NearestNeighbors(n_neighbors=K + 1).fit(rows).kneighbors()
        values = (away**2 if form == "squared" else 1 - away**2 / 2).astype(dtype)
        if given == "lists":
            handed = indices, values
        elif given == "sparse":
            owners = np.repeat(np.arange(N), K + 1)
            handed = csr_array((values.ravel(), (owners, indices.ravel())), shape=(N, N))
        else:
            handed = (cdist(rows, rows, "sqeuclidean") if form == "squared" else rows @ rows.T).astype(dtype)
        found = open_lists(handed, form).nearest(K)
        # Cosines of near rows have lost digits: order and distances are those of what is left of them.
        np.testing.assert_allclose(found.distances, away[:, :K], atol=2e-4 if dtype == np.float32 else 1e-8)
        assert np.mean(found.indices == indices[:, :K]) > 0.99
        assert not found.remark


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_integers_between_all_points_are_squares_and_inner_products_too(dtype):
    corners = np.random.default_rng(3).integers(0, 7, (40, 3))
    squares = cdist(corners, corners, "sqeuclidean")
    found = open_lists(squares.astype(dtype), "squared").nearest(5)
    np.testing.assert_array_equal(found.distances, np.sqrt(np.sort(squares, axis=1)[:, 1:6]))
    axes = open_lists(np.eye(9, dtype=dtype), "inner-product").nearest(3)
    np.testing.assert_array_equal(axes.distances, np.full((9, 3), np.sqrt(2)))


def test_squares_are_recognised_and_not_distances_nor_what_is_declared(points, exact):
    indices, distances = exact
    told = open_lists((indices, distances**2)).remark
    assert "triangles of neighbours" in told
    assert "points.distances=squared" in told
    assert not open_lists((indices, distances)).remark
    assert not open_lists((indices, distances**2), "distances").remark
    near = open_lists(cdist(points, points, "sqeuclidean")).nearest(K)
    assert near.remark == told.replace("tuple in memory", "ndarray in memory")


def test_values_that_descend_from_one_are_cosines_and_others_are_refused_until_they_are_declared(points, exact):
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    away, indices = NearestNeighbors(n_neighbors=K + 1).fit(unit).kneighbors(unit)
    cosines = 1 - away**2 / 2
    found = open_lists((cosines, indices))
    np.testing.assert_allclose(found.distances, away[:, 1:], rtol=1e-7)
    assert "inner products of rows at unit length" in found.remark
    with pytest.raises(DataError, match=r"descend .* points\.distances=inner-product .* points\.distances=distances"):
        open_lists((cosines[:, 1:], indices[:, 1:]))
    backwards = exact[0][:, ::-1], exact[1][:, ::-1]
    np.testing.assert_array_equal(open_lists(backwards, "distances").distances, exact[1][:, 1:])
    products = np.take_along_axis(points @ points.T, indices, axis=1)
    for wrong in (products, np.rint(3 * products).astype(np.int32)):
        with pytest.raises(DataError, match=r"unit length, .* Divide rows .*graph="):
            open_lists((wrong, indices), "inner-product")


def test_estimators_and_the_command_line_take_what_lists_hold(exact, tmp_path, scalemani):
    indices, distances = exact
    asked = {"perplexity": 3, "metric": "precomputed", "random_state": 0}
    expected = sm.LaplacianEigenmaps(**asked).fit((indices, distances)).embedding_
    squared = {"points.distances": "squared"}
    found = sm.LaplacianEigenmaps(**asked, settings=squared).fit((indices, distances**2)).embedding_
    np.testing.assert_allclose(found, expected, atol=1e-5)
    with pytest.raises(ConfigError, match=r"points\.distances"):
        sm.LaplacianEigenmaps(**asked, settings={"points.distances": "square"}).fit((indices, distances))
    np.savez(tmp_path / "lists.npz", indices=indices, distances=distances**2)
    told = ("--metric", "precomputed", "--set", "points.distances=squared", "--set", "affinities.perplexity=3")
    status, _, error = scalemani("embed", tmp_path / "lists.npz", tmp_path / "run", *told)
    assert status == 0, error
    np.testing.assert_allclose(sm.open_run(tmp_path / "run").embedding[...], expected, atol=1e-5)


def uneven_matrices():
    """Distances of points to more or fewer neighbours, sparse, with the form of their values."""
    points = np.random.default_rng(3).normal(size=(120, 4))
    nearest = kneighbors_graph(points, 9, mode="distance")
    union = nearest.maximum(nearest.T).tocsr()
    own = union.tolil()
    own[np.arange(0, 120, 3), np.arange(0, 120, 3)] = 1e-9  # some list themselves
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosines = csr_array(np.where(cdist(units, units) < 0.9, units @ units.T, 0))
    return {
        "union": (union, "distances"),
        "some list themselves": (own.tocsr(), "distances"),
        "squares": (union.multiply(union), "squared"),
        "radius": (radius_neighbors_graph(points, 2.2, mode="distance"), "auto"),
        "inner products": (cosines, "inner-product"),
    }


@pytest.mark.parametrize("name", uneven_matrices())
def test_of_sparse_rows_of_different_lengths_the_nearest_of_each_are_used_with_a_remark(name):
    given, form = uneven_matrices()[name]
    before = given.copy()
    dense = np.where(given.toarray() == 0, np.inf, given.toarray())
    if form == "inner-product":
        dense = np.sqrt(np.maximum(2 - 2 * np.where(np.isinf(dense), -np.inf, dense), 0))
    elif form == "squared":
        dense = np.sqrt(dense)
    np.fill_diagonal(dense, np.inf)
    lengths = np.isfinite(dense).sum(axis=1)
    least, most = lengths.min(), lengths.max()
    assert 1 <= least < most
    lists = open_lists(given, form)
    assert lists.n_neighbors == least
    np.testing.assert_allclose(lists.distances, np.sort(dense, axis=1)[:, :least], atol=1e-7)
    np.testing.assert_allclose(np.take_along_axis(dense, lists.indices, axis=1), lists.distances, atol=1e-7)
    assert re.search(rf"list from {least} \(row \d+\) to {most} neighbours .*nearest {least} are used", lists.remark)
    assert (given != before).nnz == 0


def test_uneven_sparse_rows_with_a_row_of_none_or_a_value_that_is_no_distance_are_refused():
    union, _ = uneven_matrices()["union"]
    alone = union.tolil()
    alone[7] = 0
    with pytest.raises(DataError, match=r"1 rows of the neighbour lists in .* list no other point: first rows 7"):
        open_lists(alone.tocsr())
    for wrong in (np.nan, -1.0, np.inf):
        faulty = union.copy()
        longest = np.diff(faulty.indptr).argmax()
        faulty.data[faulty.indptr[longest] + 2] = wrong
        with pytest.raises(DataError, match=f"1 rows .* negative or not finite: first rows {longest}"):
            open_lists(faulty)


def test_an_uneven_graph_beside_points_is_shortened_with_a_warning():
    points = np.random.default_rng(3).normal(size=(120, 4))
    union, _ = uneven_matrices()["union"]
    with pytest.warns(UserWarning, match="of every row the nearest 9 are used"):
        found = sm.LaplacianEigenmaps(perplexity=3).fit(points, graph=union)
    expected = sm.LaplacianEigenmaps(perplexity=3).fit(points, graph=kneighbors_graph(points, 9, mode="distance"))
    np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_keys_of_an_index_are_told_of_and_the_line_that_maps_them_to_rows_does(points, exact, dtype):
    indices, distances = exact
    keys = (np.random.default_rng(5).permutation(N) * 7 + 100_000).astype(dtype)
    for given in ((keys[indices], distances), (distances, keys[indices])):
        with pytest.raises(DataError, match=r"keys .*hnswlib.*usearch.*IndexIDMap of FAISS") as refused:
            open_lists(given)
        with pytest.raises(DataError, match="IndexIDMap of FAISS"):
            sm.TSNE(perplexity=4).fit(points, graph=given)
    line = str(refused.value).partition(" rows: order")[2]
    line = f"order{line}"
    names = {"keys": keys, "indices": keys[indices], "numpy": np}
    exec(line, names)
    assert np.array_equal(names["indices"], indices)


@pytest.mark.parametrize("what", ["metric", "affinity"])
def test_values_of_pairs_one_after_another_are_refused_with_what_makes_a_matrix_of_them(points, exact, tmp_path, what):
    model = sm.SpectralClustering(2, **{what: "precomputed"})
    np.save(tmp_path / "pairs.npy", pdist(points))
    for given in (pdist(points), tmp_path / "pairs.npy", np.stack(exact)):
        with pytest.raises(
            DataError, match=r"must be a matrix \(N, N\).*squareform.*\(indices, distances\)"
        ) as refused:
            model.fit(given)
        assert "reshape" not in str(refused.value)
    with pytest.raises(DataError, match="squareform"):
        sm.TSNE(perplexity=4).fit(points, graph=pdist(points))
