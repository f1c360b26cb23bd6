"""The doubt of finished runs: scores beside an oracle of their own, the same by either way, and what is refused."""

import json

import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse
from scipy.spatial.distance import cdist
from typer.testing import CliRunner

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, StoreError
from scalemani.interfaces.cli.commands import app
from scalemani.interfaces.report.reading import read_map
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_weights
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.runs.doubting import measure_doubt
from scalemani.runs.exporting import export_result
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.arrays.embeddings import StoredDoubt, StoredEmbedding
from scalemani.stages.doubt import believable_bound

N, K = 1500, 30
VALUES = {
    "affinities": {"perplexity": 10},
    "layout": {"max_iterations": 250},
}
FEW = {"doubt.null_points": 400, "doubt.halves": 1}


@pytest.fixture(scope="module")
def points():
    """Return two clusters in six dimensions, and behind them a hundred points of noise about both."""
    draws = np.random.default_rng(0)
    clusters = draws.normal(size=(N - 100, 6)) + np.where(np.arange(N - 100) % 2, 4.0, -4.0)[:, np.newaxis]
    return np.concatenate([clusters, draws.normal(scale=8.0, size=(100, 6))])


@pytest.mark.parametrize("method", ["t-sne", "elastic-embedding"])
def test_points_are_placed_under_the_pull_of_the_run(points, method, tmp_path):
    """Places are minima of the whole objective, with the pull; some points have no reference."""
    few, weight = points[::8], 20.0
    reference = np.where(np.arange(len(few))[:, np.newaxis] < 40, np.nan, few[:, 2:4])
    strength, late = (1.0, 3.0) if method == "t-sne" else (0.1, 1.0)
    model = {"t-sne": sm.TSNE, "elastic-embedding": sm.ElasticEmbedding}[method]
    pulled = {"strength": strength, "exaggeration": late, "global_weight": weight, "reference": reference}
    model(perplexity=10, max_iter=150, store=tmp_path, **pulled).fit(few)
    doubted = measure_doubt(open_run(tmp_path), Executor(workers=1), {"doubt.null_points": 0})
    doubt, positions = doubted.doubt, np.asarray(doubted.embedding[...])
    affinities = doubted.affinities.tocsr().toarray().astype(np.float64)
    known = ~np.isnan(reference[:, 0])
    goal = reference[known] - reference[known].mean(axis=0)
    goal /= np.sqrt((goal**2).sum() / len(goal))

    def loss(moved, weight):
        squares = cdist(moved, moved, "sqeuclidean")
        pulled = moved[known] - moved[known].mean(axis=0)
        size = np.sqrt((pulled**2).sum() / len(pulled))
        term = weight * ((pulled - size * goal) ** 2).sum() / len(pulled) / (1 + size**2)
        if method == "t-sne":
            p, kernel = affinities / affinities.sum(), 1 / (1 + squares)
            return late * (p * np.log1p(squares)).sum() + np.log(kernel.sum() - len(kernel)) + term
        total = affinities.sum()
        return (affinities * squares).sum() + strength * (np.exp(-squares).sum() - len(squares)) + total * term

    def slope(row, weight):
        """Return the length of the gradient at the better place of a point, over what its neighbours pull."""
        differences = []
        for step in 1e-4 * np.eye(2):
            ends = [positions.copy(), positions.copy()]
            ends[0][row], ends[1][row] = doubt.places[row] + step, doubt.places[row] - step
            differences.append((loss(ends[0], weight) - loss(ends[1], weight)) / 2e-4)
        scale = affinities[row].sum() / (affinities.sum() if method == "t-sne" else 1.0)
        return np.linalg.norm(differences) / scale

    rows = [*range(0, 40, 8), *range(40, len(few), 10)]
    own, other = (np.array([slope(row, one) for row in rows]) for one in (weight, 0.0))
    assert np.median(own[:5]) < 0.01  # of points without a reference
    assert np.median(own) < 0.01
    assert np.median(other) > 10 * np.median(own)


@pytest.fixture(scope="module")
def doubted(points, tmp_path_factory):
    """Return the run of the points with its doubt, which was measured after it had ended."""
    folder = tmp_path_factory.mktemp("doubt") / "run"
    run(open_points(points), folder, "t-sne", Parameters().with_values(VALUES), Executor(workers=1), 1024)
    assert "doubt" not in open_run(folder).keys
    return measure_doubt(open_run(folder), Executor(workers=2), FEW)


def test_scores_are_those_of_their_definitions(doubted, points):
    """The map is judged by dense arrays of NumPy: its part of the objective, lists, and agreements of every point."""
    doubt, positions = doubted.doubt, np.asarray(doubted.embedding[...])
    affinities = doubted.affinities.tocsr().toarray().astype(np.float64)
    squares = cdist(positions, positions, "sqeuclidean")
    kernel = 1.0 / (1.0 + squares)
    np.fill_diagonal(kernel, 0.0)

    def ranked(distances):
        np.fill_diagonal(distances, np.inf)
        return np.argsort(distances, axis=1)

    in_data, in_map = ranked(cdist(points, points)), ranked(squares.copy())

    def common(one, other):
        return np.array([len({*a} & {*b}) / len(a) for a, b in zip(one.tolist(), other.tolist(), strict=True)])

    np.testing.assert_allclose(doubt.preservation, common(in_data[:, :15], in_map[:, :15]))
    np.testing.assert_allclose(doubt.trusted, common(in_map[:, :15], in_data[:, :K]))
    np.testing.assert_allclose(doubt.continued, common(in_data[:, :15], in_map[:, :K]))
    unit = np.sqrt(np.take_along_axis(squares, in_map[:, :15], axis=1)).mean(axis=1)
    np.testing.assert_allclose(
        doubt.perturbation, np.linalg.norm(doubt.places - positions, axis=1) / unit, rtol=1e-9, atol=1e-12
    )
    p, total = affinities / affinities.sum(), kernel.sum()

    def loss(row, place):
        away = ((place - np.delete(positions, row, axis=0)) ** 2).sum(axis=1)
        weights = np.delete(p[row], row)
        return 2 * weights @ np.log1p(away) + np.log(total - 2 * kernel[row].sum() + 2 * (1 / (1 + away)).sum())

    chosen = doubted.order.input_rows[sample_rows(0, "doubt/references", N, 300)]
    for row in range(0, N, 100):
        nearest = np.argsort(((points[chosen] - points[row]) ** 2).sum(axis=1))[:150]
        away = np.sqrt(squares[row, chosen])
        correlation = np.corrcoef(away[nearest], np.sort(away)[:150])[0, 1]
        np.testing.assert_allclose(doubt.agreement[row], correlation, atol=1e-6)
    steps = 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    for row in (*range(0, N, 150), *np.argsort(doubt.perturbation)[-5:]):
        best = loss(row, doubt.places[row])
        assert best <= loss(row, positions[row]) + 1e-12
        slopes = [(loss(row, doubt.places[row] + step) - best) / 1e-3 for step in steps]
        assert np.abs(slopes).max() < 0.05 * p[row].sum() * 4


def test_places_are_minima_of_the_descent_s_own_objective(points, tmp_path):
    """Late exaggeration divides repulsion, and the kernel has its degrees of freedom: other factors give no minima."""
    few, late, dof = points[::5], 3.0, 2.0
    descent = {"max_iterations": 200, "late_exaggeration": late, "dof": dof}
    values = {"affinities": {"perplexity": 10}, "layout": descent}
    run(open_points(few), tmp_path, "t-sne", Parameters().with_values(values), Executor(workers=1), 1024)
    doubted = measure_doubt(open_run(tmp_path), Executor(workers=1), {"doubt.null_points": 0})
    positions, affinities = np.asarray(doubted.embedding[...]), doubted.affinities.tocsr().toarray().astype(np.float64)
    p, kernel = affinities / affinities.sum(), (1 + cdist(positions, positions, "sqeuclidean") / dof) ** -dof
    np.fill_diagonal(kernel, 0.0)

    def slope(row, strength):
        """Return the length of the gradient at the better place of a point, by differences."""

        def loss(place):
            away = ((place - np.delete(positions, row, axis=0)) ** 2).sum(axis=1)
            pull = 2 * dof * np.delete(p[row], row) @ np.log1p(away / dof)
            others = kernel.sum() - 2 * kernel[row].sum()
            return pull + strength * np.log(others + 2 * ((1 + away / dof) ** -dof).sum())

        place, steps = doubted.doubt.places[row], 1e-4 * np.eye(2)
        assert loss(place) <= loss(positions[row]) + 1e-12 or strength != 1 / late
        return np.linalg.norm([(loss(place + step) - loss(place - step)) / 2e-4 for step in steps]) / p[row].sum()

    rows = range(0, len(few), 20)
    own, other = (np.median([slope(row, strength) for row in rows]) for strength in (1 / late, 1.0))
    assert own < 0.01
    assert other > 10 * own


def test_what_may_be_believed_follows_from_the_map_without_structure(doubted):
    doubt, stored = doubted.doubt, doubted.stored(StoredDoubt)
    null = stored.null.read()
    assert len(null) == 400
    expected = [(1 + (null >= value).sum()) / 401 for value in doubt.agreement]
    np.testing.assert_allclose(doubt.p_value, expected)
    ordered = np.sort(doubt.p_value)
    passed = [rank for rank, p in enumerate(ordered, 1) if p <= 0.05 * rank / N]
    assert doubt.believable.sum() == (np.count_nonzero(ordered <= ordered[passed[-1] - 1]) if passed else 0)


def test_a_rule_that_finds_nothing_believes_nothing():
    assert believable_bound(np.array([0.2, 0.9, 0.6]), 0.05) == 0.0
    assert believable_bound(np.array([0.9, 0.01, 0.03, 0.02]), 0.05) == 0.03


def test_the_same_bits_whichever_way_it_is_requested_and_however_work_is_cut(doubted, points, tmp_path):
    values = {**VALUES, "doubt": {"null_points": 400, "halves": 1, "measured": True}}
    with pytest.raises(ConfigError, match=r"doubt\.NAME, got layout"):
        measure_doubt(doubted, Executor(workers=2), {"layout.max_iterations": 5})
    other = run(open_points(points), tmp_path, "t-sne", Parameters().with_values(values), Executor(workers=2), 2048)
    assert other.keys == doubted.keys
    for one, expected in zip(other.doubt, doubted.doubt, strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("reference", ["pca", "spectral", None])
def test_noise_is_not_believed(reference):
    """Nor is it where a pull brings out its leading columns: the map of noise is under the same pull."""
    noise = np.random.default_rng(1).normal(size=(800, 8)) * [5, 4, 1, 1, 1, 1, 1, 1]
    settings = {"doubt.measured": True, "doubt.null_points": 800}
    pulled = {"global_weight": 10.0, "reference": reference} if reference else {}
    model = sm.TSNE(perplexity=10, max_iter=150, settings=settings, **pulled).fit(noise)
    assert model.doubt_.believable.mean() < 0.01


def test_moves_that_no_map_shows_count_for_nothing():
    centres = 20.0 * np.eye(4, 5)[np.arange(200) % 4]
    points = centres + np.random.default_rng(0).normal(scale=0.5, size=(200, 5))
    settings = {"doubt.measured": True, "doubt.null_points": 0}
    model = sm.StudentElasticEmbedding(perplexity=10, settings=settings)
    assert model.fit(points).doubt_.doubtful.mean() < 0.02
    cells = np.random.default_rng(1).integers(0, 2, size=(300, 3)).astype(float)  # eight places, each of many points
    maps = sm.LaplacianEigenmaps(perplexity=8, solver="exact", settings=settings).fit(cells)
    away = np.linalg.norm(maps.doubt_.places - maps.embedding_, axis=1)
    assert away[maps.doubt_.doubtful].min(initial=np.inf) > 2e-3 * np.sqrt(np.mean(maps.embedding_**2))


def test_coordinates_that_were_passed_have_no_map_without_structure():
    """They may hold what the columns say together: noise under a pull to its own components would be believed."""
    noise = np.random.default_rng(1).normal(size=(150, 5))
    settings = {"doubt.measured": True, "doubt.null_points": 150}
    pulled = {"global_weight": 3.0, "reference": noise[:, :2]}
    model = sm.TSNE(perplexity=5, max_iter=20, settings=settings, **pulled).fit(noise)
    assert (model.doubt_.p_value == 1).all()
    assert not model.doubt_.believable.any()


def test_the_reading_says_how_many_neighbours_were_compared_and_that_a_descent_goes_on(tmp_path):
    points = np.random.default_rng(2).normal(size=(100, 4))
    settings = {"doubt.measured": True, "doubt.null_points": 0}
    sm.TSNE(perplexity=3, n_neighbors=9, max_iter=20, settings=settings, store=tmp_path).fit(points)
    said = " ".join(read_map(sm.open_run(tmp_path), {}).sentences)
    assert "of the 9 nearest points in the data" in said
    assert "chance would leave 9.1 %" in said
    assert "The descent had not converged" in said


@pytest.mark.parametrize(("solver", "apart"), [("refine", 0.0), ("lll", 0.0), ("refine", 300.0)])
def test_points_of_spectral_maps_are_where_their_neighbours_put_them_or_all_but_one(points, solver, apart, tmp_path):
    """By sums over dense rows of W, of one graph and of one in pieces; bits do not depend on blocks."""
    few = points if solver == "refine" and not apart else points[::4]
    if apart:
        few = few + np.where(np.arange(len(few)) < 100, apart, 0.0)[:, np.newaxis]
    values = Parameters().with_values(
        {
            "affinities": {"perplexity": 6},
            "landmarks": {"n_landmarks": 60},
            "embedding": {"solver": solver},
            "components": {"disconnected": "separate" if apart else "connect"},
            "doubt": {"measured": True, "null_points": 200},
        }
    )
    made = run(open_points(few), tmp_path / "run", "laplacian-eigenmaps", values, Executor(workers=2))
    doubt, positions = made.doubt, np.asarray(made.embedding[...])
    affinities = made.affinities.tocsr().toarray().astype(np.float64)
    stored = made.stored(StoredEmbedding)
    eigenvalues = stored.piece_eigenvalues.read()[stored.pieces.read()] if apart else made.eigenvalues
    walked = np.broadcast_to(1.0 - eigenvalues, positions.shape)
    farthest = np.empty_like(positions)
    for row, weights in enumerate(affinities):
        kept = [weights, *(np.where(np.arange(len(few)) == one, 0.0, weights) for one in np.flatnonzero(weights))]
        places = [one @ positions / one.sum() / walked[row] for one in kept]
        farthest[row] = max(places, key=lambda place: np.linalg.norm(place - positions[row]))
    np.testing.assert_allclose(doubt.places, farthest, atol=1e-6 * np.abs(positions).max())
    unit = np.sort(cdist(positions, positions), axis=1)[:, 1:16].mean(axis=1)
    away = np.linalg.norm(farthest - positions, axis=1)
    np.testing.assert_allclose(doubt.perturbation, away / unit, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(doubt.singularity, walked.min(axis=1) / walked.max(axis=1), rtol=1e-12)
    assert 0 < len(np.unique(doubt.p_value)) <= 201
    if few is points:
        again = run(open_points(few), tmp_path / "again", "laplacian-eigenmaps", values, Executor(workers=1), 1024)
        for name, column in doubt.measured().items():
            np.testing.assert_array_equal(again.doubt.measured()[name], column)


def test_what_has_no_place_of_its_own_is_refused(points, tmp_path):
    values = Parameters().with_values({**VALUES, "doubt": {"measured": True}})
    for method in ("sne", "diffusion-maps"):
        with pytest.raises(ConfigError, match=f"{method} has no place for each point"):
            run(open_points(points), tmp_path / method, method, values, Executor(workers=1))
    for others, match in (
        ({"embedding": {"solver": "nystrom"}}, "no graph of all points"),
        ({"doubt": {"measured": True, "halves": 1}}, "halves are mapped by a descent"),
    ):
        asked = values.with_values(others)
        with pytest.raises(ConfigError, match=match):
            run(open_points(points), tmp_path / "refused", "laplacian-eigenmaps", asked, Executor(workers=1))
    weighted = with_weights(open_points(points), np.full(N, 2.0))
    with pytest.raises(ConfigError, match="points with weights"):
        run(weighted, tmp_path / "weights", "t-sne", values, Executor(workers=1))


def test_a_run_without_it_says_how_to_have_it(points, tmp_path):
    model = sm.LaplacianEigenmaps(store=tmp_path / "run", perplexity=5, n_landmarks=20).fit(points[:60])
    with pytest.raises(StoreError, match="scalemani doubt RUN"):
        _ = model.run_.doubt
    assert np.array_equal(
        measure_doubt(model.run_, Executor(workers=1)).doubt.places,
        sm.LaplacianEigenmaps(perplexity=5, n_landmarks=20, settings={"doubt.measured": True})
        .fit(points[:60])
        .doubt_.places,
    )


def test_the_command_says_how_to_read_the_map_and_what_it_measured_is_written(doubted, tmp_path):
    root, labels = str(doubted.store.root), tmp_path / "labels.npy"
    np.save(labels, np.arange(N) % 2)
    said = CliRunner().invoke(app, ["doubt", root, "--labels", str(labels), "--json", "--quiet"])
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert told["certificates"] == doubted.certificates["doubt"]
    text = " ".join(told["sentences"])
    assert f"{100 * doubted.doubt.preservation.mean():.0f} %" in text
    export_result(doubted, tmp_path / "doubt.npz", "doubt")
    with np.load(tmp_path / "doubt.npz") as written:
        np.testing.assert_array_equal(written["perturbation"], doubted.doubt.perturbation)
    sm.open_run(root).export(tmp_path / "map.csv", "map")
    table = np.genfromtxt(tmp_path / "map.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    np.testing.assert_array_equal(np.column_stack([table["x"], table["y"]]), doubted.embedding[...])
    for name in ("perturbation", "agreement", "doubtful"):
        np.testing.assert_array_equal(table[f"doubt_{name}"], getattr(doubted.doubt, name))
    report = sm.open_run(root).report(tmp_path / "report.html", labels, n_sampled=0).read_text()
    assert "How to read this map" in report
    assert set(doubted.doubt.verdicts) <= {"could lie elsewhere", "believable", "not told from noise"}
    assert (doubted.doubt.verdicts == "could lie elsewhere").sum() == doubted.doubt.doubtful.sum()
    assert all(verdict in report for verdict in set(doubted.doubt.verdicts))
    assert told["sentences"][1].split(":")[0] in report


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_scores_are_columns_of_numbers_in_an_anndata(doubted, tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    export_result(doubted, path, "anndata")
    obs = (h5py.File(path) if suffix == ".h5ad" else zarr.open_group(path, mode="r"))["obs"]
    expected = {f"doubt_{name}": of for name, of in doubted.doubt.measured().items() if name != "places"}
    assert len(expected) == 11
    assert set(expected) == set(obs.attrs["column-order"])
    for name, scores in expected.items():
        assert obs[name].attrs["encoding-type"] == "array"
        assert obs[name].dtype == (bool if name in ("doubt_believable", "doubt_doubtful") else np.float64)
        np.testing.assert_array_equal(obs[name][...], scores)


def test_anndata_reads_scores_as_they_are(doubted, tmp_path):
    anndata = pytest.importorskip("anndata")
    for name, read in (("map.h5ad", anndata.read_h5ad), ("map.zarr", anndata.read_zarr)):
        export_result(doubted, tmp_path / name, "anndata")
        columns = read(tmp_path / name).obs
        for score in ("stable", "perturbation", "doubtful"):
            expected = getattr(doubted.doubt, score)
            assert columns[f"doubt_{score}"].dtype == expected.dtype
            np.testing.assert_array_equal(columns[f"doubt_{score}"], expected)


def test_repulsion_of_some_pairs_is_refused_as_points_are_placed_by_all(points, tmp_path):
    sparse.save_npz(tmp_path / "pairs.npz", sparse.csr_matrix(1.0 - np.eye(60)))
    settings = {"layout.pair_weights": str(tmp_path / "pairs.npz"), "layout.repulsion": "exact"}
    model = sm.ElasticEmbedding(perplexity=5, max_iter=5, settings=settings, store=tmp_path / "run").fit(points[:60])
    with pytest.raises(ConfigError, match=r"layout\.pair_weights=.* does not go with doubt"):
        measure_doubt(model.run_, Executor(workers=1))


def test_estimators_have_it_where_it_was_requested(points):
    settings = {"doubt.measured": True, "doubt.null_points": 0}
    model = sm.TSNE(perplexity=5, max_iter=20, settings=settings).fit(points[:80])
    assert model.doubt_.perturbation.shape == (80,)
    assert not model.doubt_.believable.any()
    assert not hasattr(sm.TSNE(perplexity=5, max_iter=5).fit(points[:40]), "doubt_")


@pytest.mark.parametrize(("kind", "missing", "null"), [("sparse", 0, 60), ("lists", 0, 0), ("gaps", 17, 60)])
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_points_of_every_kind_have_it_and_rows_that_were_left_out_have_none(points, kind, missing, null):
    rows, options = points[:150], {"perplexity": 5, "max_iter": 10}
    if kind == "lists":
        options["metric"], rows = "precomputed", sm.knn_graph(rows, 15)
    elif kind == "gaps":
        options["missing"], rows = "leave-out", np.where(np.arange(150)[:, np.newaxis] % 9 == 0, np.nan, rows)
    else:
        rows = sparse.csr_matrix(np.where(rows > 0, rows, 0.0))
    model = sm.TSNE(settings={"doubt.measured": True, "doubt.null_points": 60}, **options).fit(rows)
    assert model.certificates_["doubt"]["null_points"] == null
    assert np.isnan(model.doubt_.perturbation).sum() == np.isnan(model.doubt_.places[:, 0]).sum() == missing
    assert np.count_nonzero(model.doubt_.verdicts == "left out") == missing
    assert (np.isnan(model.doubt_.agreement) == np.isnan(model.embedding_[:, 0])).all()
