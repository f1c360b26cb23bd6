import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates
from sklearn.datasets import load_digits

from scalemani import datasets
from scalemani.datasets.digits import PADDING, InfiniteDigits, deform, field_modes, fill_field, fill_normals
from scalemani.datasets.generator import BLOB_FEATURES
from scalemani.errors import ConfigError, StoreError
from scalemani.io.sources import PointsSource, open_labels, open_points

SURFACES = ("swiss-roll", "fish-bowl", "spiral", "blobs", "planet-pixels")


def random_digits(n_points=3000, seed=0, n_pictures=70, side=28):
    rng = np.random.default_rng(5)
    pictures = np.zeros((n_pictures, side, side), dtype=np.uint8)
    pictures[:, 5:-5, 5:-5] = rng.integers(0, 256, (n_pictures, side - 10, side - 10))
    labels = rng.integers(0, 10, n_pictures)
    return InfiniteDigits(n_points, seed, pictures=pictures.reshape(n_pictures, -1), picture_labels=labels)


def all_generators(n_points):
    yield from (datasets.generator(name, n_points, seed=3) for name in (*SURFACES, "deformed-digits"))
    yield random_digits(n_points, seed=3)


@settings(deadline=None, max_examples=15)
@given(cuts=st.lists(st.integers(0, 2500), max_size=4))
def test_any_blocks_give_the_same_bits(cuts):
    for data in all_generators(2500):
        edges = sorted({0, *cuts, data.n_points})
        parts = [(data.block(a, b), data.labels(a, b)) for a, b in itertools.pairwise(edges)]
        assert np.array_equal(np.concatenate([rows for rows, _ in parts]), data.block(0, data.n_points))
        assert np.array_equal(np.concatenate([labels for _, labels in parts]), data.labels(0, data.n_points))


def test_fewer_points_are_the_first_of_more():
    for few, many in zip(all_generators(500), all_generators(4000), strict=True):
        assert np.array_equal(few.block(0, 500), many.block(0, 500))


def test_seeds_differ_and_repeat():
    for name in (*SURFACES, "deformed-digits"):
        first, again, other = (datasets.generator(name, 4000, seed=seed).block(2000, 4000) for seed in (0, 0, 1))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


def test_generators_are_sources_and_survive_pickling():
    for data in all_generators(100):
        assert isinstance(data, PointsSource)
        assert open_points(data) is data
        rows = data.read(10, 30)
        assert rows.shape == (20, data.shape[1])
        assert rows.dtype == data.dtype
        assert rows.flags.c_contiguous
        assert np.isfinite(rows).all()
        assert np.array_equal(pickle.loads(pickle.dumps(data)).read(10, 30), rows)


def test_swiss_roll_lies_on_its_surface():
    data = datasets.generator("swiss-roll", 5000)
    points, angle = data.block(0, 5000), data.labels(0, 5000)
    assert np.allclose(np.hypot(points[:, 0], points[:, 2]), angle, rtol=1e-5)
    assert points[:, 1].min() >= 0
    assert points[:, 1].max() <= 21
    assert abs(np.corrcoef(angle, points[:, 1])[0, 1]) < 0.05


def test_fish_bowl_is_a_sphere_dense_at_the_rim():
    points = datasets.generator("fish-bowl", 20_000).block(0, 20_000)
    assert np.allclose(np.linalg.norm(points, axis=1), 1, atol=1e-6)
    assert points[:, 2].max() <= 0.8
    # Equal heights have equal areas on a sphere.
    assert np.mean(points[:, 2] > 0.6) > 4 * np.mean(points[:, 2] < -0.8)


def test_spiral_is_even_along_its_length():
    data = datasets.generator("spiral", 50_000)
    angle = np.sort(data.labels(0, 50_000))
    assert np.allclose(np.hypot(*data.block(0, 50_000).T), data.labels(0, 50_000), rtol=1e-5)
    halves = np.searchsorted(angle**2, np.mean([np.pi**2, (6 * np.pi) ** 2])) / len(angle)
    assert abs(halves - 0.5) < 0.01


def test_blobs_are_normal_around_their_centres():
    data = datasets.generator("blobs", 30_000)
    noise = data.block(0, 30_000) - data.centres[data.labels(0, 30_000)]
    assert abs(noise.mean()) < 0.01
    assert abs(noise.std() - 1) < 0.01
    assert abs(np.cov(noise[:, :5].T) - np.eye(5)).max() < 0.05
    assert set(data.labels(0, 30_000)) == set(range(10))
    assert data.n_features == BLOB_FEATURES


def test_normals_are_normal():
    normals = np.empty(200_000, dtype=np.float32)
    fill_normals(np.uint64(12345), normals)
    assert abs(normals.mean()) < 0.01
    assert abs(normals.std() - 1) < 0.01
    assert abs((normals**4).mean() - 3) < 0.1
    assert abs(np.corrcoef(normals[::2], normals[1::2])[0, 1]) < 0.01


def test_fields_have_the_covariance_of_smoothed_noise():
    side, smoothness, draws = 12, 3.0, 4000
    modes = field_modes(side, smoothness)
    fields = np.empty((draws, side, side), dtype=np.float32)
    rng = np.random.default_rng(0)
    for field in fields:
        normals = rng.standard_normal(modes.shape[1] ** 2).astype(np.float32)
        fill_field(normals, modes, 0.5, 100.0, field)
    assert np.allclose(fields.std(axis=0), 0.5, atol=0.03)
    # Noise smoothed by a Gaussian of standard deviation s is correlated as exp(-distance^2 / 4 s^2).
    for apart in (1, 3, 6):
        found = np.mean(fields[:, 3, 2] * fields[:, 3, 2 + apart]) / 0.25
        assert abs(found - np.exp(-(apart**2) / (4 * smoothness**2))) < 0.08


def test_deformation_matches_direct_interpolation():
    data = random_digits()
    n = len(data.pictures)
    modes = field_modes(28, 4.0)
    words = np.arange(n, dtype=np.uint64) * np.uint64(7919)
    out = np.empty_like(data.pictures)
    deform(data.pictures, np.arange(n), words, modes, 0.8, 2.0, out)
    for i in (0, 3, n - 1):
        normals = np.empty(2 * modes.shape[1] ** 2, dtype=np.float32)
        fill_normals(words[i], normals)
        fields = normals.reshape(2, modes.shape[1], modes.shape[1]).astype(np.float64)
        down, right = (np.clip(0.8 * modes @ field @ modes.T, -2, 2) for field in fields)
        rows, columns = np.mgrid[:28, :28]
        expected = keys_interpolation(data.pictures[i].reshape(28, 28), rows + down, columns + right)
        assert np.abs(out[i].reshape(28, 28) - np.clip(expected, 0, 255)).max() <= 0.51


def keys_interpolation(picture, rows, columns):
    padded = np.pad(picture.astype(np.float64), PADDING)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    value = np.zeros(rows.shape)
    for i in range(-1, 3):
        for j in range(-1, 3):
            weight = keys_kernel(rows - top - i) * keys_kernel(columns - left - j)
            value += weight * padded[top + i + PADDING, left + j + PADDING]
    return value


def keys_kernel(x):
    x = np.abs(x)
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def test_keys_oracle_reproduces_a_smooth_picture():
    rows, columns = np.mgrid[:28, :28]
    picture = 100 + 50 * np.sin(rows / 5) * np.cos(columns / 6)
    at = (rows[8:20, 8:20] + 0.3, columns[8:20, 8:20] - 0.4)
    assert np.allclose(keys_interpolation(picture, *at), map_coordinates(picture, at, order=3), atol=0.1)


def test_no_displacement_leaves_pictures_alone():
    data = random_digits()
    out = np.empty_like(data.pictures)
    deform(data.pictures, np.arange(70), np.arange(70, dtype=np.uint64), field_modes(28, 4.0), 0.0, 2.0, out)
    assert np.array_equal(out, data.pictures)


def test_digit_rows_are_originals_then_variants():
    data = random_digits(n_points=70 * 17)
    rows = data.block(0, data.n_points).reshape(17, 70, -1)
    assert np.array_equal(rows[0], data.pictures)
    for variant in range(1, 17):
        assert (rows[variant] != data.pictures).any(axis=1).all()
        assert (rows[variant] != rows[variant - 1]).any(axis=1).all()
    assert np.array_equal(data.labels(0, data.n_points).reshape(17, 70), np.tile(data.picture_labels, (17, 1)))


def test_deformed_digits_start_with_those_of_scikit_learn():
    data = datasets.generator("deformed-digits", 20_000)
    grey, labels = load_digits(return_X_y=True)
    assert np.array_equal(data.block(0, 1797), np.rint(grey * 255 / 16))
    assert np.array_equal(data.labels(1797, 3594), labels)
    moved = np.linalg.norm(data.block(1797, 3594).astype(float) - data.block(0, 1797), axis=1)
    between = np.linalg.norm(grey[:-1] - grey[1:], axis=1) * 255 / 16
    assert 0 < np.median(moved) < 0.5 * np.median(between)


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_write_equals_the_generator_for_any_number_of_threads(tmp_path, suffix):
    data = datasets.generator("blobs", 100_000)
    written = []
    for workers in (1, 3):
        path = tmp_path / f"points{workers}{suffix}"
        datasets.write(data, path, progress=written.append, workers=workers)
        source = open_points(path)
        assert source.shape == (100_000, 50)
        assert np.array_equal(source.read(0, 100_000), data.block(0, 100_000))
        assert np.array_equal(open_labels(tmp_path / f"points{workers}.labels.npy"), data.labels(0, 100_000))
    assert sum(written) == 200_000
    assert not list(tmp_path.glob("*.partial"))


def test_infinite_digits_of_a_file(tmp_path):
    data = random_digits()
    np.savez_compressed(tmp_path / "digits.npz", X=data.pictures, y=data.picture_labels)
    read = datasets.generator("infinite-digits", 500, source=tmp_path / "digits.npz")
    assert np.array_equal(read.block(0, 500), data.block(0, 500))


@pytest.mark.skipif("SCALEMANI_DATA" not in os.environ, reason="SCALEMANI_DATA names no folder with mnist.npz")
def test_mnist_has_sixteen_deformations_of_each_training_digit():
    source = Path(os.environ["SCALEMANI_DATA"]) / "mnist.npz"
    data = datasets.generator("infinite-digits", source=source)
    assert data.shape == (1_020_000, 784)
    originals = open_points(f"{source}::X").read(0, 60_000)
    assert np.array_equal(data.block(59_990, 60_000), originals[-10:])
    moved = np.linalg.norm(data.block(1_000_000, 1_000_200).astype(float) - originals[40_000:40_200], axis=1)
    ink = np.linalg.norm(originals[40_000:40_200].astype(float), axis=1)
    assert (moved > 0.1 * ink).all()
    assert np.median(moved / ink) < 0.6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "swiss-rol"}, "did you mean 'swiss-roll'"),
        ({"name": "spiral", "n_points": 0}, "n_points of spiral must be >= 1, got 0"),
        ({"name": "spiral", "n_points": 10.5}, "integer"),
        ({"name": "spiral", "n_points": True}, "integer"),
        ({"name": "spiral", "seed": -1}, "seed"),
        ({"name": "spiral", "source": "a.npz"}, "needs no source"),
        ({"name": "infinite-digits"}, "--source FILE"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ConfigError, match=message):
        datasets.generator(**arguments)


def test_sources_that_are_no_pictures(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.zeros((3, 10), dtype=np.uint8), y=np.zeros(3))
    np.savez(tmp_path / "b.npz", X=np.zeros((3, 16)), y=np.zeros(3))
    np.savez(tmp_path / "c.npz", X=np.zeros((3, 16), dtype=np.uint8), y=np.zeros(2))
    for name, message in (("a", "square uint8"), ("b", "float64"), ("c", "3 pictures X but 2 labels")):
        with pytest.raises(ConfigError, match=message):
            datasets.generator("infinite-digits", 10, source=tmp_path / f"{name}.npz")
    with pytest.raises(StoreError, match="no file"):
        datasets.generator("infinite-digits", 10, source=tmp_path / "missing.npz")


def test_pixels_of_neighbouring_places_are_alike_and_tiles_under_clouds_are_missing():
    data = datasets.generator("planet-pixels", 400_000)
    rows, places = data.block(0, 40_960).astype(float), data.places(0, 40_960)
    assert rows.shape[1] == data.n_features == 64
    assert data.dtype == np.int8
    order = np.random.default_rng(0).permutation(len(rows))
    following = np.flatnonzero(np.abs(np.diff(places, axis=0)).sum(axis=1) == 1)
    beside = np.linalg.norm(rows[following] - rows[following + 1], axis=1)
    anywhere = np.linalg.norm(rows - rows[order], axis=1)
    noise = np.sqrt(2 * 64) * 6.0  # of two rows of equal fields
    assert abs(beside.mean() - noise) < 0.05 * noise
    assert anywhere.mean() > 1.5 * beside.mean()
    tiles = data.places(0, 400_000)[::4096] // 64
    assert len(np.unique(tiles, axis=0)) == len(tiles) == len(np.unique(data.labels(0, 400_000)))
    side = tiles.max() + 1
    assert side**2 > len(tiles)  # clouds hide the others
