"""Images and videos: W is that of a window around each pixel, made as it is read; what does not fit is refused."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_pixels, open_points
from scalemani.io.sources.side_data import with_weights
from scalemani.runs.walk import plan_run, run

SIGMA, WINDOW = 40.0, 7
WINDOW_SETTINGS = {"neighbors.method": "window", "neighbors.window": WINDOW, "affinities.sigma": SIGMA}
WINDOWED = {"affinity": "gaussian", "settings": WINDOW_SETTINGS}


@pytest.fixture(scope="module")
def image():
    """Two halves of 40 x 50 noisy pixels, the left one dark."""
    pixels = np.random.default_rng(0).integers(0, 255, (40, 50)).astype(np.uint8)
    pixels[:, :25] //= 4
    return pixels


@pytest.fixture(scope="module")
def exact(image, tmp_path_factory):
    store = tmp_path_factory.mktemp("exact") / "run"
    return sm.SpectralClustering(2, **WINDOWED, n_landmarks=200, solver="exact", store=store).fit(image)


def affinities_of(features, image_shape):
    """The affinities (N, N) of a window, from all pairs."""
    row, column = np.unravel_index(np.arange(len(features)), image_shape)
    near = (abs(row[:, None] - row) <= WINDOW // 2) & (abs(column[:, None] - column) <= WINDOW // 2)
    np.fill_diagonal(near, False)
    return np.where(near, np.exp(-((features[:, None] - features) ** 2).sum(axis=2) / (2 * SIGMA**2)), 0)


def test_w_is_that_of_all_pairs_within_a_window(image, exact):
    row, column = np.unravel_index(np.arange(image.size), image.shape)
    features = np.stack([row, column, image.ravel()], axis=1).astype(float)
    expected = affinities_of(features, image.shape)
    found = exact.run_.affinities
    np.testing.assert_allclose(found.tocsr().toarray(), expected, rtol=1e-6)
    np.testing.assert_array_equal(found.rows(1000, 1010).toarray(), found.tocsr()[1000:1010].toarray())
    degrees = expected.sum(axis=1)
    certified = exact.certificates_["symmetric_affinities"]
    assert certified["nonzeros"] == np.count_nonzero(expected)
    np.testing.assert_allclose([certified["least_degree"], certified["largest_degree"]], [degrees.min(), degrees.max()])
    roots = 1 / np.sqrt(degrees)
    values = np.linalg.eigvalsh(expected * roots[:, None] * roots)
    np.testing.assert_allclose(exact.eigenvalues_, 1 - values[::-1][1:3], atol=1e-6)


def test_no_list_of_neighbours_is_stored_and_no_row_of_w(exact):
    there = {path.name for path in Path(exact.run_.store.root).glob("stages/*")}
    assert "symmetric_affinities" in there
    assert not there & {"neighbors", "affinities", "components", "partition"}
    group = exact.run_.group("symmetric_affinities")
    assert group.committed_bytes < 16 * 2000 + 4096  # W has 44 nonzeros a pixel


@pytest.mark.parametrize("solver", ["refine", "lll", "lll+refine"])
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_every_solver_finds_the_halves(image, exact, solver):
    model = sm.SpectralClustering(2, **WINDOWED, n_landmarks=200, solver=solver).fit(image)
    assert sm.measures.clustering_error(model.labels_, exact.labels_) < 0.02
    truth = (np.arange(image.size) % 50 >= 25).astype(int)
    assert sm.measures.clustering_error(model.labels_, truth) < 0.05
    if solver != "lll":
        np.testing.assert_allclose(model.eigenvalues_, exact.eigenvalues_, atol=1e-6)


def test_a_table_of_pixels_may_have_features_of_its_own(image, exact, tmp_path):
    table = open_pixels(image).read(0, image.size) * np.float32(2)
    values = {"method": "window", "window": WINDOW, "image_rows": 40, "image_columns": 50}
    asked = {"neighbors": values, "affinities": {"sigma": 2 * SIGMA}, "embedding": {"solver": "exact"}}
    params = Parameters().with_values(asked)
    found = run(open_points(table), tmp_path / "run", "laplacian-eigenmaps", params, Executor())
    np.testing.assert_allclose(found.affinities.tocsr().toarray(), exact.run_.affinities.tocsr().toarray(), rtol=1e-6)
    with pytest.raises(DataError, match="2000 pixels, which are no frames of 39 x 50"):
        plan_run(
            open_points(table),
            tmp_path / "other",
            "laplacian-eigenmaps",
            params.with_values({"neighbors": {"image_rows": 39}}),
            Executor(),
        )


def test_the_command_line_takes_pictures(image, exact, tmp_path, scalemani):
    np.save(tmp_path / "image.npy", image)
    asked = ("--method", "spectral-clustering", "--set", "neighbors.method=window", "--set", "neighbors.window=7")
    asked += ("--set", "affinities.sigma=40.0", "--set", "embedding.solver=exact", "--set", "landmarks.n_landmarks=200")
    given = (tmp_path / "image.npy", tmp_path / "run", *asked, "--set", "clustering.n_clusters=2")
    assert scalemani("embed", *given)[0] == 0
    np.testing.assert_array_equal(sm.open_run(tmp_path / "run").labels[...], exact.labels_)
    assert scalemani("export", tmp_path / "run", tmp_path / "clusters.png", "--what", "labels")[0] == 0
    shown = np.asarray(Image.open(tmp_path / "clusters.png")).reshape(image.size, 3)
    assert len(np.unique(np.column_stack([shown, exact.labels_]), axis=0)) == 2  # a colour a cluster
    status, output, _ = scalemani("stage", "components", *given)
    assert status == 0
    assert "nothing to do, a run with these parameters does not need it" in output
    assert (
        "pixels that W is made of"
        in scalemani("plan", *given, "--explain", "reduced", "--set", "embedding.solver=lll")[1]
    )


def test_an_ensemble_of_trees_is_the_same_for_a_seed_and_finds_the_halves(image, exact):
    settings = {"neighbors.method": "window", "neighbors.window": 5}
    asked = {"affinity": "ensemble", "solver": "exact", "n_landmarks": 200, "settings": settings}
    one, same, other = (sm.SpectralClustering(2, **asked, random_state=seed).fit(image) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.embedding_, same.embedding_)
    assert np.abs(one.embedding_ - other.embedding_).max() > 1e-3
    certified = one.certificates_["symmetric_affinities"]
    assert certified["trees"] == 10
    assert 2 * (image.size - 1) < certified["nonzeros"] < 20 * (image.size - 1)
    twice = sm.LaplacianEigenmaps(2, **asked | {"settings": settings | {"affinities.trees": 2}}).fit(image)
    assert twice.certificates_["symmetric_affinities"]["nonzeros"] <= 4 * (image.size - 1)
    with pytest.raises(ConfigError, match=r"affinity='ensemble' is of the pixels of images"):
        sm.LaplacianEigenmaps(affinity="ensemble").fit(np.random.default_rng(0).normal(size=(200, 3)))


@pytest.mark.parametrize(
    ("pixels", "settings", "words"),
    [
        (np.zeros((6, 30)), {}, "an image of 6 x 30 pixels is smaller than its window of 7 x 7"),
        (
            np.zeros((3, 30, 30)),
            {"settings": WINDOW_SETTINGS | {"neighbors.frames": 3}},
            "must be below the 3 frames of the video, got 3",
        ),
        (np.zeros((30, 30)), {"settings": WINDOW_SETTINGS | {"neighbors.window": 8}}, "neighbors.window must be odd"),
        (
            np.zeros((30, 30)),
            {"settings": WINDOW_SETTINGS | {"neighbors.window": 1}},
            "neighbors.window must be >= 3, got 1",
        ),
        (
            np.zeros((30, 30)),
            {"affinity": "entropic"},
            "affinity='gaussian' or ensemble, got euclidean and entropic",
        ),
        (np.zeros((30, 30)), {"metric": "cosine"}, "metric='euclidean'"),
        (np.full((30, 30), np.nan), {}, "900 pixels of ndarray in memory are NaN"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(pixels, settings, words, tmp_path):
    model = sm.LaplacianEigenmaps(**{**WINDOWED, **settings}, store=tmp_path / "run")
    with pytest.raises((ConfigError, DataError), match=words):
        model.fit(pixels)
    assert not (tmp_path / "run").exists()


def test_clusters_of_other_points_are_no_picture(tmp_path, roll, scalemani):
    sm.SpectralClustering(2, n_landmarks=50, perplexity=5, store=tmp_path / "run").fit(roll[:300])
    status, _, error = scalemani("export", tmp_path / "run", tmp_path / "clusters.png", "--what", "labels")
    assert status == 2
    assert "labels go into .png where they are those of an image" in error


def test_other_methods_and_points_that_are_no_image_are_refused(tmp_path):
    params = Parameters().with_values({"neighbors": {"method": "window"}})
    with pytest.raises(
        ConfigError, match=r"neighbors\.method=window is for laplacian-eigenmaps and spectral-clustering"
    ):
        params.route("t-sne")
    weighted = with_weights(open_pixels(np.eye(20)), np.full(400, 2.0))
    with pytest.raises(ConfigError, match="pixels have no weights"):
        plan_run(weighted, tmp_path / "run", "laplacian-eigenmaps", params, Executor())
    with pytest.raises(ConfigError, match=r"takes an image, got ndarray in memory"):
        plan_run(open_points(np.zeros((300, 4))), tmp_path / "run", "laplacian-eigenmaps", params, Executor())
