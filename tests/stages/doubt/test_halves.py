"""Maps of halves of the points: which points they have, what is compared, and what comes again of lines and noise."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial import procrustes
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.runs.doubting import measure_doubt
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.doubt import halves

BLOCK = 7


class Interrupted(Exception):
    """Raised before a half."""


class InterruptedBefore(Progress):
    """Raises where the note of a half begins, and remembers all notes."""

    def __init__(self, half=""):
        self.half, self.notes = half, []

    def note(self, message):
        self.notes.append(message)
        if self.half and self.half in message:
            raise Interrupted


def rows_of(matrix):
    """Return the rows of a sparse matrix as a stage reads them, in blocks."""

    def read_rows(block):
        part = matrix[BLOCK * block : BLOCK * (block + 1)]
        return part.indptr.astype(np.int64), part.indices.astype(np.uint32), part.data.astype(np.float32)

    n_points = matrix.shape[0]
    dimensions = SimpleNamespace(
        n_blocks=-(-n_points // BLOCK), rows=lambda block: (BLOCK * block, min(BLOCK * (block + 1), n_points))
    )
    return SimpleNamespace(dimensions=dimensions, stored=lambda _: SimpleNamespace(read_rows=read_rows))


def test_a_half_has_the_affinities_between_its_points_and_none_without_any():
    draws = np.random.default_rng(0)
    matrix = sparse.random_array((40, 40), density=0.1, rng=draws, format="csr", dtype=np.float32)
    matrix = sparse.csr_matrix(matrix + matrix.T)
    inside = draws.random(40) < 0.5
    dense = matrix.toarray()[np.ix_(inside, inside)]
    np.fill_diagonal(dense, 0.0)
    joined = dense.sum(axis=1) > 0
    assert 2 < joined.sum() < inside.sum()
    half = halves.half_of(rows_of(matrix), inside)
    np.testing.assert_array_equal(half.own, np.flatnonzero(inside)[joined])
    found = sparse.csr_matrix((half.rows.values, half.rows.indices, half.rows.indptr), (joined.sum(),) * 2)
    np.testing.assert_array_equal(found.toarray(), dense[np.ix_(joined, joined)])


@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0])
def test_places_are_compared_after_the_best_similarity_and_neighbours_by_both_maps(spread):
    draws = np.random.default_rng(1)
    positions, inside = draws.normal(size=(90, 2)) + 5, np.arange(90) % 3 < 2
    own = np.flatnonzero(inside)[:-2]  # two have no neighbour in their half
    turn = np.array([[0.6, 0.8], [0.8, -0.6]])
    anew = 4 * positions[own] @ turn - 7 + spread * draws.normal(size=(len(own), 2))
    squares, kept = halves.compared(positions, inside, own, anew, 10)
    there, here, unexplained = procrustes(positions[own], anew)
    size = ((positions[own] - positions[own].mean(axis=0)) ** 2).sum()
    assert squares[own].sum() == pytest.approx(unexplained * size, abs=1e-9)
    alone = np.setdiff1d(np.flatnonzero(inside), own)
    away = positions[alone] - positions[own].mean(axis=0)
    np.testing.assert_allclose(squares[alone], (away**2).sum(axis=1))
    assert not squares[~inside].any()
    near = [NearestNeighbors(n_neighbors=10).fit(one).kneighbors(return_distance=False) for one in (there, here)]
    shares = [len({*a} & {*b}) / 10 for a, b in zip(near[0].tolist(), near[1].tolist(), strict=True)]
    np.testing.assert_allclose(kept[own], shares)
    assert not kept[~np.isin(np.arange(90), own)].any()


@pytest.fixture(scope="module")
def points():
    """Return three clusters in eight dimensions, each a curved line, and 120 points of noise far from any other."""
    draws = np.random.default_rng(2)
    along = draws.uniform(0, 3, 480)
    lines = np.column_stack([np.cos(along), np.sin(along), along, *np.zeros((5, 480))]) * 3
    lines += 25 * np.eye(8)[np.arange(480) % 3] + 0.05 * draws.normal(size=(480, 8))
    return np.concatenate([lines, draws.normal(size=(120, 8)) * 2 - 40])


def mapped(points, folder, executor, block_rows=1024, init="spectral", n_halves=2):
    values = {"affinities": {"perplexity": 10}, "layout": {"max_iterations": 250, "init": init}}
    if not (folder / "plan.json").exists():
        run(open_points(points), folder, "t-sne", Parameters().with_values(values), Executor(workers=1), block_rows)
    return measure_doubt(open_run(folder), executor, {"doubt.null_points": 0, "doubt.halves": n_halves})


@pytest.fixture(scope="module")
def twice(points, tmp_path_factory):
    return mapped(points, tmp_path_factory.mktemp("halves") / "run", Executor(workers=1))


def test_what_has_structure_comes_again_and_noise_does_not(points, twice):
    """Where a point lies along a line is known from half of the points; among noise it is not."""
    doubt, noise = twice.doubt, np.arange(len(points)) >= 480
    assert roc_auc_score(noise, -doubt.stable) > 0.9
    assert doubt.stable[~noise].mean() > 0.8 > 0.55 > doubt.stable[noise].mean()
    assert (doubt.spread >= 0).all()
    assert twice.certificates["doubt"]["mean_stable"] == pytest.approx(doubt.stable.mean())
    assert twice.certificates["doubt"]["median_spread"] == np.median(doubt.spread)


def test_an_interrupted_one_goes_on_and_however_work_is_cut_the_bits_are_the_same(points, twice, tmp_path):
    stopped, resumed = InterruptedBefore("half 3 of 4"), InterruptedBefore()
    with pytest.raises(Interrupted):
        mapped(points, tmp_path / "run", Executor(workers=2, progress=stopped), 2048)
    other = mapped(points, tmp_path / "run", Executor(workers=2, progress=resumed), 2048)
    told = [note for note in resumed.notes if "half" in note]
    assert told == ["doubt: half 3 of 4", "doubt: half 4 of 4"]
    for one, expected in zip(other.doubt, twice.doubt, strict=True):
        np.testing.assert_array_equal(one, expected)


def test_random_starts_are_drawn_anew_for_each_half_and_others_read_once():
    order = np.random.default_rng(0).permutation(30)

    def task(init):
        params = SimpleNamespace(seed=0, n_components=2, layout=SimpleNamespace(init=init))
        return SimpleNamespace(params=params, dimensions=SimpleNamespace(n_points=30))

    first = halves.starts_of(task("random"), order, 0, None)
    second = halves.starts_of(task("random"), order, 1, first)
    in_order = halves.starts_of(task("random"), np.arange(30), 0, None)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.5
    np.testing.assert_array_equal(first, in_order[order])
    assert halves.starts_of(task("pca"), order, 1, first) is first


def test_random_starts_differ_from_half_to_half_and_given_ones_are_refused(points, twice, tmp_path):
    anew = mapped(points, tmp_path / "run", Executor(workers=1), init="random", n_halves=1)
    assert np.median(anew.doubt.spread) > 1.2 * np.median(twice.doubt.spread)
    start = np.random.default_rng(0).normal(size=(100, 2))
    given = sm.TSNE(perplexity=5, max_iter=5, init=start, store=tmp_path / "given").fit(points[:100])
    with pytest.raises(ConfigError, match=r"doubt\.halves=1 does not go with .*: it acts only where layout\.init"):
        measure_doubt(given.run_, Executor(workers=1), {"doubt.halves": 1})


def test_the_reading_and_the_table_have_it_where_it_was_measured(points, twice, tmp_path):
    without = {"doubt.measured": True, "doubt.null_points": 0}
    model = sm.TSNE(perplexity=5, max_iter=20, settings=without, store=tmp_path / "run").fit(points[:80])
    assert model.doubt_.stable is None
    assert "stable" not in model.doubt_.measured()
    sm.open_run(twice.store.root).report(tmp_path / "with.html", n_sampled=0)
    model.report(tmp_path / "without.html")
    said = f"{100 * twice.doubt.stable.mean():.0f} % are as near in the map of the half"
    assert said in " ".join((tmp_path / "with.html").read_text().split())
    assert "halves of the points were mapped" not in " ".join((tmp_path / "without.html").read_text().split())


def test_a_half_without_any_pair_of_neighbours_says_nothing_for_its_points():
    positions, inside = np.random.default_rng(0).normal(size=(6, 2)), np.arange(6) < 3
    none = np.empty(0, np.int64)
    squares, kept = halves.compared(positions, inside, none, none, 10)
    np.testing.assert_allclose(squares[:3], ((positions - positions.mean(axis=0)) ** 2).sum(axis=1)[:3])
    assert not squares[3:].any()
    assert not kept.any()
