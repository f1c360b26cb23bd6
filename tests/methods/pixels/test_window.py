"""W of pixels as the stage keeps it: degrees in any cut, a sigma from windows, and what is told of a small one."""

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_pixels
from scalemani.runs.walk import run


def test_rows_a_block_leave_no_trace(tmp_path):
    video = np.random.default_rng(1).normal(size=(5, 20, 24, 3)).astype(np.float32)
    asked = {
        "neighbors": {"method": "window", "window": 5, "frames": 2},
        "landmarks": {"n_landmarks": 100},
        "embedding": {"solver": "lll"},
    }
    params, found = Parameters().with_values(asked), []
    for rows in (1024, 2048):
        made = run(open_pixels(video), tmp_path / str(rows), "laplacian-eigenmaps", params, Executor(), rows)
        found.append((made.affinities.tocsr(), made.certificates["symmetric_affinities"]))
    assert (found[0][0] != found[1][0]).nnz == 0
    assert found[0][1] == found[1][1]
    middle = 2 * 480 + 10 * 24 + 12
    assert found[0][0].indptr[middle + 1] - found[0][0].indptr[middle] == 5 * 5 - 1 + 4
    assert found[0][1]["sigma"] > 0


def test_a_sigma_that_tells_no_pixels_apart_is_told_of(tmp_path, listening):
    image = np.random.default_rng(0).normal(size=(20, 30), scale=1e4)
    asked = {"neighbors": {"method": "window", "window": 3}, "embedding": {"solver": "exact"}}
    for sigma, told in ((1.0, True), (None, False)):
        params = Parameters().with_values({**asked, "affinities": {"sigma": sigma}})
        listening.warned.clear()
        folder = tmp_path / str(sigma)
        made = run(open_pixels(image), folder, "laplacian-eigenmaps", params, Executor(progress=listening))
        share = made.certificates["symmetric_affinities"]["floor_share"]
        assert any("have the least weight there is" in text for text in listening.warned) == told
        assert (share > 0.9) == told
    row, column = np.unravel_index(np.arange(600), image.shape)
    near = np.maximum(abs(row[:, None] - row), abs(column[:, None] - column)) == 1
    distances = np.sqrt(
        (row[:, None] - row) ** 2 + (column[:, None] - column) ** 2 + (np.subtract.outer(*[image.ravel()] * 2)) ** 2
    )
    seventh = [np.sort(distances[pixel][near[pixel]])[:7][-1] for pixel in range(600)]
    np.testing.assert_allclose(made.certificates["symmetric_affinities"]["sigma"], np.median(seventh))
