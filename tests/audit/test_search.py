"""The audit's own search for true neighbours equals double sums over all pairs, however points lie."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.audit.neighbors import STAGE, Search, lists_of
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredRun

N_POINTS, N_NEIGHBORS, ROWS = 1500, 10, 200
RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(N_POINTS, 12))
NEAR_EACH_OTHER = 1 + 1e-6 * RNG.normal(size=(N_POINTS, 300))  # whose distances float32 products do not tell apart

KINDS = {
    "float32": NORMAL.astype(np.float32),
    "tiny": NORMAL * 1e-140,
    "huge": NORMAL * 1e140,
    "far off": NORMAL + 1e8,
    "bytes": RNG.integers(0, 255, NORMAL.shape).astype(np.uint8),
    "large integers": RNG.integers(-(2**30), 2**30, NORMAL.shape).astype(np.int32),
    "copies": NORMAL[RNG.integers(0, 40, N_POINTS)],
    "one far off": np.vstack([NORMAL[:-1], np.full((1, 12), 1e100)]),
    "near each other": NEAR_EACH_OTHER,
    "wide": RNG.normal(size=(N_POINTS, 900)).astype(np.float32),
}


@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
@pytest.mark.parametrize("too_low", [False, True], ids=["claims as stored", "claims too low"])
@pytest.mark.parametrize("kind", KINDS)
def test_nearest_points_and_listed_distances_are_those_of_double_sums(kind, too_low, tmp_path):
    sm.knn_graph(KINDS[kind], N_NEIGHBORS, "partition", 0.7, store=tmp_path / "run", random_state=1)
    audit = Audit(StoredRun(tmp_path / "run"), ROWS, 7, 4 * 10**9)
    group, points = audit.run.groups[STAGE], audit.points.gather(np.arange(N_POINTS))
    indices, distances = (audit.rows_of(group, name, audit.sample) for name in lists_of(group))
    search = Search(audit, indices, distances * (0.5 if too_low else 1))
    search.run()
    scale = 2.0 ** np.frexp(np.abs(points).max())[1]  # exact; squares of the largest kind leave float64 otherwise
    squares = np.array([np.square(points / scale - points[row] / scale).sum(axis=1) for row in audit.sample])
    listed = np.take_along_axis(squares, indices.astype(np.int64), 1)
    squares[np.arange(ROWS), audit.sample] = np.inf
    np.testing.assert_allclose(search.listed / scale / scale, listed, rtol=1e-12, atol=1e-30)
    np.testing.assert_allclose(
        search.reach / scale / scale, np.sort(squares)[:, N_NEIGHBORS - 1], rtol=1e-12, atol=1e-30
    )
