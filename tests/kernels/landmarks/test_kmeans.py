import os
import subprocess
import sys

import numpy as np
import pytest

from scalemani.errors import DataError
from scalemani.kernels.landmarks.kmeans import LloydPart, assign, kmeans, lloyd_part, moved_centers


def blobs(n_points=600, n_columns=3, n_blobs=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_blobs, n_points)
    return 20 * rng.normal(size=(n_blobs, n_columns))[truth] + rng.normal(size=(n_points, n_columns)), truth


def brute_assign(points, centers):
    distances = ((points[:, np.newaxis] - centers) ** 2).sum(axis=2)
    return distances.argmin(axis=1), distances.min(axis=1)


def test_finds_separated_blobs():
    points, truth = blobs()
    clusters = kmeans(points, 4, 0)
    assert len({(a, b) for a, b in zip(truth, clusters.labels, strict=True)}) == 4
    means = np.stack([points[clusters.labels == k].mean(axis=0) for k in range(4)])
    np.testing.assert_allclose(clusters.centers, means, rtol=1e-9)
    np.testing.assert_allclose(clusters.inertia, ((points - means[clusters.labels]) ** 2).sum())


def test_is_a_fixed_point_of_lloyd():
    points = np.random.default_rng(3).normal(size=(400, 5))
    clusters = kmeans(points, 7, 1)
    labels, distances = assign(points, clusters.centers)
    assert (labels == clusters.labels).mean() > 0.98
    np.testing.assert_allclose(distances.sum(), clusters.inertia, rtol=1e-3)


def test_same_seed_same_bits_whatever_the_threads():
    program = (
        "import numpy as np, hashlib\n"
        "from scalemani.kernels.landmarks.kmeans import kmeans\n"
        "points = np.random.default_rng(0).normal(size=(5000, 8))\n"
        "found = kmeans(points, 12, 3, n_restarts=2)\n"
        "print(hashlib.sha256(found.labels.tobytes() + found.centers.tobytes()).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(digests) == 1


def test_too_few_points():
    with pytest.raises(DataError, match=r"5 clusters .* 3 points"):
        kmeans(np.eye(3), 5, 0)
    with pytest.raises(DataError, match="only 2 distinct"):
        kmeans(np.repeat(np.eye(2), 10, axis=0), 3, 0)


def test_assignment_against_brute_force_and_ties():
    points, centers = np.random.default_rng(0).normal(size=(300, 6)), np.random.default_rng(1).normal(size=(9, 6))
    labels, distances = assign(points, centers)
    expected, expected_distances = brute_assign(points, centers)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-12)
    assert assign(np.zeros((1, 2)), np.array([[1.0, 0], [0, 1], [-1, 0]]))[0] == 0


def test_parts_of_blocks_add_up_to_an_iteration():
    points, centers = np.random.default_rng(0).normal(size=(300, 4)), np.random.default_rng(1).normal(size=(5, 4))
    centers[4] = 100.0
    parts = [lloyd_part(points[a:b], centers) for a, b in ((0, 100), (100, 300))]
    added = LloydPart(*(one + other for one, other in zip(*parts, strict=True)))
    labels, distances = brute_assign(points, centers)
    moved = moved_centers(centers, added)
    np.testing.assert_allclose(moved[:4], [points[labels == k].mean(axis=0) for k in range(4)], rtol=1e-12)
    np.testing.assert_array_equal(moved[4], centers[4])
    np.testing.assert_allclose(added.inertia, distances.sum())
