"""Runs that start from affinities: the embedding is that of the same affinities from points; bad ones are refused."""

from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse
from scipy.sparse.csgraph import laplacian
from sklearn import cluster
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

import scalemani as sm
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError, ScalemaniWarning
from scalemani.io.sources import open_affinities

N, K = 1200, 30
GIVEN = {"affinity": "precomputed"}
OWN = {"perplexity": 10, "n_neighbors": K}


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(N, 5)) * [1, 1.5, 2, 2.5, 4]


@pytest.fixture(scope="module")
def own(points, tmp_path_factory):
    """An embedding of the points, whose run holds W."""
    store = tmp_path_factory.mktemp("own") / "run"
    return sm.LaplacianEigenmaps(**OWN, solver="exact", store=store).fit(points)


@pytest.fixture(scope="module")
def affinities(own):
    return own.run_.affinities.tocsr()


def connectivities(points, k=15):
    """Affinities as scanpy keeps them: symmetric, in [0, 1], without a diagonal."""
    near = kneighbors_graph(points, k, mode="distance")
    near.data = np.exp(-near.data / near.data.mean())
    return (near + near.T - near.multiply(near.T)).tocsr()


def test_eigenmaps_are_those_of_the_same_affinities_from_points(affinities, own):
    ways = {
        "rows": affinities,
        "columns": affinities.tocsc(),
        "triples": affinities.tocoo(),
        "a run's own": own.run_.affinities,
        "dense": affinities.toarray(),
        "an AnnData": SimpleNamespace(obs_names=[], obsm={}, obsp={"distances": None, "connectivities": affinities}),
    }
    expected = open_affinities(affinities)
    np.testing.assert_array_equal(expected.matrix.toarray(), affinities.toarray())
    for way, given in ways.items():
        assert (open_affinities(given).matrix != expected.matrix).nnz == 0, way
    found = sm.LaplacianEigenmaps(**GIVEN, solver="exact").fit(affinities)
    np.testing.assert_allclose(found.embedding_, own.embedding_, atol=1e-6)
    np.testing.assert_allclose(found.eigenvalues_, own.eigenvalues_, atol=1e-8)
    assert found.n_features_in_ == N


@pytest.mark.parametrize("method", ["diffusion-maps", "elastic-embedding", "t-sne"])
def test_other_methods_are_those_of_the_same_affinities_from_points(points, affinities, method):
    """Rows are in another order than those of cells, so that sums of many steps differ in their last digits."""
    make = {
        "diffusion-maps": lambda **given: sm.DiffusionMaps(solver="exact", **given),
        "elastic-embedding": lambda **given: sm.ElasticEmbedding(
            max_iter=10, settings={"layout.repulsion": "exact"}, **given
        ),
        "t-sne": lambda **given: sm.TSNE(max_iter=10, settings={"layout.repulsion": "exact"}, **given),
    }[method]
    start = {} if method == "diffusion-maps" else {"init": points[:, :2]}
    found = make(**GIVEN, **start).fit(affinities)
    expected = make(**OWN, **start).fit(points)
    np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-6 * np.abs(expected.embedding_).max())


def test_eigenmaps_of_scanpys_connectivities_solve_their_laplacian(points):
    given = connectivities(points)
    model = sm.LaplacianEigenmaps(3, **GIVEN, residual=1e-6).fit(given)
    matrix, degrees = laplacian(given, normed=False), np.asarray(given.sum(axis=1)).ravel()
    left = matrix @ model.embedding_ - degrees[:, None] * model.embedding_ * model.eigenvalues_
    assert np.abs(left / np.sqrt(degrees)[:, None]).max() < 1e-4


def test_clusters_of_affinities_are_those_of_a_peer():
    groups = np.repeat(np.arange(4), 100)
    points = np.random.default_rng(1).normal(size=(400, 3)) + 6.0 * np.eye(4, 3)[groups]
    given, asked = rbf_kernel(points, gamma=0.2), {"n_clusters": 4, "n_components": 3, "solver": "exact", **GIVEN}
    peer = cluster.SpectralClustering(4, affinity="precomputed", random_state=0).fit(given)
    model = sm.SpectralClustering(**asked).fit(given)
    assert adjusted_rand_score(model.labels_, peer.labels_) > 0.95
    np.testing.assert_array_equal(model.labels_, sm.SpectralClustering(**asked).fit(given).labels_)
    with pytest.raises(ConfigError, match="placing new points needs the points"):
        model.predict(points)


def test_affinities_in_files_are_read(affinities, own, tmp_path, scalemani):
    sparse.save_npz(tmp_path / "w.npz", affinities)
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        group = file.create_group("obsp/connectivities")
        write_sparse(group, affinities, lambda part, values: group.create_dataset(part, data=values))
        columns = file.create_group("obsp/columns")
        write_sparse(columns, affinities.tocsc(), lambda part, values: columns.create_dataset(part, data=values))
    cells = zarr.open_group(tmp_path / "cells.zarr", mode="w", attributes={"encoding-type": "anndata"})
    cells.create_array("obsm/X_pca", data=np.zeros((N, 2)))
    member = cells.create_group("obsp/connectivities")
    write_sparse(member, affinities, lambda part, values: member.create_array(part, data=values))
    for name in ("w.npz", "cells.h5ad", "cells.zarr", "cells.h5ad::obsp/columns"):
        assert (open_affinities(f"{tmp_path}/{name}").matrix != open_affinities(affinities).matrix).nnz == 0
    run = tmp_path / "run"
    given = ("embed", tmp_path / "cells.zarr", run, "--set", "affinities.kind=precomputed")
    assert scalemani(*given, "--set", "embedding.solver=exact")[0] == 0
    found = sm.open_run(run)
    np.testing.assert_allclose(found.embedding[...], own.embedding_, atol=1e-6)
    assert (found.affinities.tocsr() != affinities).nnz == 0
    status, _, error = scalemani("transform", run, tmp_path / "w.npz", tmp_path / "out.npy")
    assert status == 2
    assert "placing new points needs the points that were embedded" in error
    status, _, error = scalemani(*given, "--method", "pca")
    assert status == 2
    assert "needs points, and affinities.kind=precomputed gives affinities alone" in error
    assert scalemani("report", run)[0] == 0


def write_sparse(group, matrix, write):
    for part in ("data", "indices", "indptr"):
        write(part, getattr(matrix, part))
    group.attrs.update({"encoding-type": f"{matrix.format}_matrix", "shape": list(matrix.shape)})


def test_the_mean_with_the_transpose_is_taken_of_what_is_not_symmetric(points):
    directed = kneighbors_graph(points, 20, mode="connectivity")
    found = open_affinities(directed)
    np.testing.assert_array_equal(found.matrix.toarray(), (directed + directed.T).toarray() / 2)
    with pytest.warns(ScalemaniWarning, match="is not symmetric, .* differ by up to 1: the mean"):
        sm.LaplacianEigenmaps(**GIVEN).fit(directed)
    rounded = connectivities(points)
    rounded.data *= 1 + 1e-7 * np.random.default_rng(0).normal(size=rounded.nnz)
    assert open_affinities(rounded).remark == ""


def test_a_diagonal_is_left_out(affinities):
    given = affinities + sparse.diags(np.full(N, 5.0))
    assert (open_affinities(given).matrix != open_affinities(affinities).matrix).nnz == 0
    assert open_affinities(given).matrix.diagonal().max() == 0


def changed(affinities, change):
    given = affinities.astype(np.float64).tolil()
    change(given)
    return given.tocsr()


def between_following(rows, value):
    def change(matrix):
        for row in rows:
            matrix[row, row + 1] = matrix[row + 1, row] = value

    return change


def clear_rows(matrix):
    matrix[[4, 9]] = 0
    matrix[:, [4, 9]] = 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            between_following([3, 9], -0.5),
            "4 rows of the affinities in .* hold affinities that are negative: first rows 3, 4, 9",
        ),
        (between_following([3], np.nan), "got 1 values that are not .*the first at row 3"),
        (between_following([3], 1e39), "2 rows .* hold affinities that are too large for float32: first rows 3, 4"),
        (clear_rows, "2 rows .* have no affinity to another point: first rows 4, 9"),
    ],
)
def test_affinities_that_cannot_be_are_refused_before_anything_is_written(affinities, tmp_path, change, words):
    with pytest.raises(DataError, match=words):
        sm.TSNE(**GIVEN, store=tmp_path / "run").fit(changed(affinities, change))
    assert not (tmp_path / "run").exists()


def test_shapes_and_kinds_that_are_no_affinities_are_refused(affinities):
    with pytest.raises(DataError, match=r"must be a square matrix \(N, N\), got \(700, 1200\)"):
        open_affinities(affinities[:700])
    with pytest.raises(DataError, match=r"affinity='precomputed' takes a matrix of affinities .*; got tuple"):
        open_affinities((affinities, affinities))
    with pytest.raises(DataError, match=r"has no obsp\['connectivities'\], got distances"):
        open_affinities(SimpleNamespace(obs_names=[], obsm={}, obsp={"distances": None}))
    with pytest.raises(DataError, match="labels"):
        sm.TSNE(**GIVEN, settings={"symmetric_affinities.target_weight": 0.5}).fit(affinities, np.zeros(N - 1, int))
    with pytest.raises(DataError, match="init has 1201 rows for 1200 points"):
        sm.TSNE(**GIVEN, init=np.zeros((N + 1, 2))).fit(affinities)


def test_what_needs_points_is_refused_in_one_message(points, affinities):
    for model in (sm.LaplacianEigenmaps(**GIVEN, solver="lll"), sm.LaplacianEigenmaps(**GIVEN, solver="nystrom")):
        with pytest.raises(ConfigError, match=r"points, and affinity='precomputed' gives affinities"):
            model.fit(affinities)
    with pytest.raises(ConfigError, match=r"needs points, and affinity='precomputed' gives affinities alone"):
        sm.LandmarkKernelPCA(**GIVEN).fit(affinities)
    with pytest.raises(ConfigError, match=r"init='pca' needs points"):
        sm.TSNE(**GIVEN, init="pca").fit(affinities)
    with pytest.raises(ConfigError, match="metric='cosine' compares points"):
        sm.TSNE(**GIVEN, metric="cosine").fit(affinities)
    with pytest.raises(ConfigError, match="leave out sample_weight="):
        sm.TSNE(**GIVEN).fit(affinities, sample_weight=np.full(N, 2.0))
    with pytest.raises(ConfigError, match="leave out deduplicate"):
        sm.TSNE(**GIVEN, deduplicate=True).fit(affinities)
    with pytest.raises(ConfigError, match="landmarks stand among points"):
        sm.LaplacianEigenmaps(**GIVEN, landmarks=points[:9]).fit(affinities)
    with pytest.raises(ConfigError, match="placing new points needs the points"):
        sm.TSNE(**GIVEN, max_iter=2).fit(affinities).transform(points)


@pytest.mark.parametrize("wanted", ["error", "largest"])
def test_affinities_that_fall_apart_are_refused_where_they_are_to_be_one_piece(points, wanted, tmp_path):
    apart = sparse.block_diag([connectivities(points[:400]), connectivities(points[400:])]).tocsr()
    with pytest.raises(DisconnectedGraphError, match=r"have 2 components \(largest: \[800, 400\]\)"):
        sm.LaplacianEigenmaps(**GIVEN, disconnected=wanted, store=tmp_path / "run").fit(apart)
    assert not (tmp_path / "run").exists()
    model = sm.TSNE(**GIVEN, init="random", max_iter=5).fit(apart)
    assert np.isfinite(model.embedding_).all()


def test_classes_lower_affinities_that_are_given(affinities, tmp_path):
    classes = np.arange(N) % 3
    model = sm.LaplacianEigenmaps(
        **GIVEN, settings={"symmetric_affinities.target_weight": 0.5}, solver="exact", store=tmp_path / "run"
    )
    found = model.fit(affinities, classes).run_.affinities.tocsr().tocoo()
    same = classes[found.row] == classes[found.col]
    expected = affinities.tocoo()
    np.testing.assert_allclose(found.data, np.where(same, 1.0, 0.5) * expected.data, rtol=1e-6)


def test_numbers_of_the_graph_have_no_effect_and_are_told_of(affinities, tmp_path, scalemani):
    sparse.save_npz(tmp_path / "w.npz", affinities)
    settings = (
        "affinities.kind=precomputed",
        "neighbors.n_neighbors=7",
        "affinities.n_neighbors=5",
        "landmarks.n_landmarks=9",
    )
    given = ("plan", tmp_path / "w.npz", tmp_path / "run", *(part for one in settings for part in ("--set", one)))
    status, out, error = scalemani(*given)
    assert status == 0
    for name in ("neighbors.n_neighbors=7", "affinities.n_neighbors=5", "landmarks.n_landmarks=9"):
        assert f"{name} has no effect" in out + error


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(("joint", "connected"), [(1e-9, False), (1e-5, True)])
def test_an_edge_that_rounding_loses_beside_those_of_its_ends_joins_nothing_whatever_the_scale(scale, joint, connected):
    ring = sparse.diags_array([np.ones(39), np.ones(39)], offsets=[-1, 1], format="lil")
    both = sparse.block_diag([ring, ring]).tolil()
    both[0, 40] = both[40, 0] = joint
    given = scale * both.tocsr()
    model = sm.LaplacianEigenmaps(1, affinity="precomputed")
    halves = np.repeat([1, -1], 40)
    if not connected:
        with pytest.warns(ScalemaniWarning, match="2 pieces"):
            assert model.fit(given).certificates_["embedding"]["near_zero_eigenvalues"] == 2
        np.testing.assert_allclose(model.eigenvalues_, 1 - np.cos(np.pi / 39), rtol=1e-6)  # of a path of 40
        return
    model.fit(given)
    assert abs(np.corrcoef(model.embedding_[:, 0], halves)[0, 1]) > 0.99
    assert model.certificates_["embedding"]["near_zero_eigenvalues"] == 1
