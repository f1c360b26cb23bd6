"""Everything that a run has computed can be had, in input order, as properties and as files of other programs."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, StoreError
from scalemani.io.sources import open_points
from scalemani.runs.exporting import FORMATS, export_result
from scalemani.runs.input_order import graph_in_input_order
from scalemani.runs.walk import run
from scalemani.stages.arrays.graph import StoredNeighbors

K, PERPLEXITY = 12, 4.0
VALUES = {
    "neighbors": {"n_neighbors": K, "method": "exact"},
    "affinities": {"perplexity": PERPLEXITY},
    "landmarks": {"n_landmarks": 100},
    "clustering": {"n_clusters": 4},
    "layout": {"max_iterations": 12, "direction": "spectral", "converged": 0, "snapshots": 6, "repulsion": "exact"},
}
METHODS = ("spectral-clustering", "knn-graph", "t-sne")


@pytest.fixture(scope="module")
def points(roll):
    return roll[:2500].astype(np.float64)


@pytest.fixture(scope="module")
def runs(points, tmp_path_factory):
    """Runs of 2,500 points in three blocks, by method."""
    folder, params = tmp_path_factory.mktemp("exporting"), Parameters().with_values(VALUES)
    made = {method: run(open_points(points), folder / method, method, params, Executor(), 1024) for method in METHODS}
    assert made["t-sne"].certificates["components"]["components"] == 1  # the oracle of W knows no bridges
    return made


@pytest.fixture(scope="module")
def neighbors(points):
    """The true neighbours and their distances, by brute force."""
    away = np.sqrt(((points[:, np.newaxis] - points) ** 2).sum(axis=2))
    np.fill_diagonal(away, np.inf)
    indices = np.argsort(away, axis=1, kind="stable")[:, :K]
    return indices, np.take_along_axis(away, indices, axis=1)


@pytest.fixture(scope="module")
def affinities(neighbors):
    """W of the true neighbours, by the functions on arrays in memory."""
    return sm.symmetric_affinities(neighbors[0], sm.entropic_affinities(neighbors[1], PERPLEXITY).values)


@pytest.mark.parametrize("rows_of_a_pass", [1, 700, 10**6])
def test_a_graph_in_work_order_is_read_in_input_order_some_rows_at_a_time(runs, neighbors, rows_of_a_pass):
    stored = StoredNeighbors(runs["t-sne"].group("neighbors"))
    graph = graph_in_input_order(stored, runs["t-sne"].order, "euclidean", 8 * K * rows_of_a_pass)
    assert graph.indices.preferred_rows == rows_of_a_pass
    np.testing.assert_array_equal(np.asarray(graph.indices), neighbors[0])
    np.testing.assert_allclose(graph.distances[...], neighbors[1], rtol=1e-12)


@pytest.mark.parametrize("method", ["knn-graph", "t-sne"])
def test_the_graph_is_that_of_the_points_as_they_came(runs, neighbors, method):
    graph = runs[method].graph
    assert graph.indices.dtype == np.int64
    np.testing.assert_array_equal(np.asarray(graph.indices), neighbors[0])
    np.testing.assert_allclose(graph.distances[...], neighbors[1], rtol=1e-12)
    np.testing.assert_array_equal(graph.indices[1000:1100], neighbors[0][1000:1100])
    np.testing.assert_array_equal(graph.tocsr()[7, neighbors[0][7]].toarray()[0], graph.distances[7:8][0])


def test_affinities_are_symmetric_in_input_order(runs, affinities):
    found = runs["t-sne"].affinities
    assert found.shape == (2500, 2500)
    matrix = found.tocsr()
    assert (matrix != matrix.T).nnz == 0
    assert matrix.has_sorted_indices
    np.testing.assert_allclose(matrix.toarray(), affinities.toarray(), rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(found.rows(900, 1300).toarray(), matrix[900:1300].toarray())


def test_landmarks_are_points_among_the_points(runs, points):
    landmarks = runs["t-sne"].landmarks
    assert len(np.unique(landmarks.rows)) == 100
    np.testing.assert_array_equal(landmarks.points, points[landmarks.rows])


def test_the_curve_tells_the_objective_of_the_snapshots(runs, affinities):
    one = runs["t-sne"]
    kept = one.snapshots
    assert kept.iteration.tolist() == [6, 12]
    assert kept.positions.shape == (2, 2500, 2)
    np.testing.assert_array_equal(kept.positions[1:2][0], one.embedding[...])
    shares = affinities.data / affinities.sum()
    entropy = np.sum(shares * np.log(shares))  # with it the objective is a divergence, as runs tell it
    assert set(kept.iteration) <= set(one.curve.iteration)
    for iteration, positions in zip(kept.iteration, kept.positions[...], strict=True):
        value, gradient = sm.objective(positions, affinities, method="t-sne", repulsion="exact")
        row, following = (one.curve.iteration == iteration), (one.curve.iteration == iteration + 1)
        np.testing.assert_allclose(one.curve.objective[row], value + entropy, rtol=1e-4)
        np.testing.assert_allclose(one.curve.gradient_norm[following], np.linalg.norm(gradient), rtol=1e-3)
    assert (np.diff(one.curve.iteration) > 0).all()
    assert one.curve.objective[-1] == pytest.approx(one.certificates["layout"]["objective"], rel=1e-3)


def test_graph_and_affinities_are_files_of_scipy(runs, neighbors, tmp_path):
    assert export_result(runs["knn-graph"], tmp_path / "graph.npz") == "graph"
    graph = sp.load_npz(tmp_path / "graph.npz")
    np.testing.assert_array_equal(graph.indices.reshape(-1, K), neighbors[0])
    np.testing.assert_allclose(graph.data.reshape(-1, K), neighbors[1], rtol=1e-12)
    export_result(runs["t-sne"], tmp_path / "w.npz", "affinities")
    matrix, expected = sp.load_npz(tmp_path / "w.npz"), runs["t-sne"].affinities.tocsr()
    assert matrix.indices.dtype == np.int32
    assert (matrix != expected).nnz == 0
    export_result(runs["t-sne"], tmp_path / "w.zarr", "affinities")
    group = zarr.open_group(tmp_path / "w.zarr", mode="r")
    assert group.attrs["encoding-type"] == "csr_matrix"
    stored = sp.csr_matrix((group["data"][...], group["indices"][...], group["indptr"][...]), group.attrs["shape"])
    assert (stored != expected).nnz == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.npz", "w.npz", "w.zarr"]


@pytest.mark.parametrize("what", ["embedding", "labels", "eigenvalues"])
def test_single_arrays_are_what_the_run_gives(runs, tmp_path, what):
    expected = np.asarray(getattr(runs["spectral-clustering"], what)[...])
    for suffix in (".npy", ".zarr", ".parquet"):
        export_result(runs["spectral-clustering"], tmp_path / f"a{suffix}", what)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a.zarr", mode="r")[...], expected)
    table = pq.read_table(tmp_path / "a.parquet")
    np.testing.assert_array_equal(np.squeeze(np.column_stack(table.columns)), expected)
    assert table.column_names[0] == {"embedding": "component_1", "labels": "label"}.get(what, "eigenvalue")


@pytest.mark.parametrize("what", ["embedding", "labels"])
def test_a_csv_has_the_row_of_every_point_and_all_digits(runs, tmp_path, what):
    expected = np.asarray(getattr(runs["spectral-clustering"], what)[...])
    export_result(runs["spectral-clustering"], tmp_path / "a.csv", what)
    names, *lines = (line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines())
    columns = [f"component_{number + 1}" for number in range(expected.shape[1])] if what == "embedding" else ["label"]
    assert names == ["row", *columns]
    assert [int(line[0]) for line in lines] == list(range(2500))
    np.testing.assert_array_equal(np.array([line[1:] for line in lines], expected.dtype), expected.reshape(2500, -1))


@pytest.mark.parametrize("what", ["graph", "landmarks", "curve", "snapshots"])
def test_several_arrays_go_together_by_their_names(runs, tmp_path, what):
    result = getattr(runs["t-sne"], what)
    expected = vars(result) if what == "graph" else result._asdict()
    for suffix in FORMATS[what].suffixes:
        export_result(runs["t-sne"], tmp_path / f"a{suffix}", what)
    files = [zarr.open_group(tmp_path / "a.zarr", mode="r")]
    if what != "graph":
        files.append(np.load(tmp_path / "a.npz"))
    for name, values in expected.items():
        for file in files:
            np.testing.assert_array_equal(file[name][...], np.asarray(values))
    if what != "snapshots":
        table = np.column_stack(pq.read_table(tmp_path / "a.parquet").columns)
        np.testing.assert_array_equal(table, np.column_stack([np.asarray(one) for one in expected.values()]))


@pytest.mark.parametrize("what", list(FORMATS))
def test_a_file_that_cannot_hold_it_is_refused_before_anything_is_read(runs, tmp_path, what):
    for suffix in {".npy", ".npz", ".parquet", ".zarr", ".csv"} - set(FORMATS[what].suffixes):
        with pytest.raises(ConfigError, match=f"ends in {suffix}.*allowed: .*zarr"):
            export_result(runs["knn-graph"], tmp_path / f"a{suffix}", what)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("method", "what", "words"),
    [
        ("t-sne", "labels", "has no labels: .*--method spectral-clustering.* reuses the same graph"),
        ("knn-graph", "affinities", "has no affinities: .*laplacian-eigenmaps"),
        ("knn-graph", "landmarks", "has no landmarks"),
        ("knn-graph", "eigenvalues", "has no eigenvalues"),
        ("knn-graph", "embedding", "has no embedding"),
        ("spectral-clustering", "curve", "has no curve: .*t-sne"),
        ("spectral-clustering", "snapshots", "has no snapshots"),
    ],
)
def test_what_a_run_lacks_is_refused_with_what_to_do(runs, tmp_path, method, what, words):
    with pytest.raises(StoreError, match=words):
        export_result(runs[method], tmp_path / "a.zarr", what)
    with pytest.raises(StoreError, match=words):
        getattr(runs[method], what)
    assert not list(tmp_path.iterdir())


def test_a_descent_that_kept_no_snapshots_says_how_to_keep_them(points, tmp_path):
    values = {**VALUES, "layout": {"max_iterations": 2}}
    made = run(open_points(points[:300]), tmp_path / "run", "t-sne", Parameters().with_values(values), Executor())
    with pytest.raises(StoreError, match=r"layout\.snapshots=N"):
        made.snapshots  # noqa: B018


def test_the_command_writes_what_is_asked_for(scalemani, runs, tmp_path):
    root = runs["spectral-clustering"].store.root
    assert scalemani("export", root, tmp_path / "labels.npy", "--what", "labels")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), runs["spectral-clustering"].labels[...])
    status, _, errors = scalemani("export", root, tmp_path / "x.npy", "--what", "label")
    assert (status, "did you mean 'labels'?" in errors) == (2, True)
    status, _, errors = scalemani("export", root, tmp_path / "x.npy", "--what", "graph")
    assert status == 2
    assert "a graph has indices and distances; allowed: .npz, .parquet, .zarr" in errors


def test_a_run_exports_itself_as_the_command_does(scalemani, runs, neighbors, tmp_path):
    made = sm.open_run(runs["t-sne"].store.root)
    assert made.export(tmp_path / "x.npy") == tmp_path / "x.npy"
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), made.embedding[...])
    made.export(tmp_path / "graph.npz", "graph")
    assert sp.load_npz(tmp_path / "graph.npz").nnz == 2500 * K
    classes = np.arange(2500) % 3
    np.save(tmp_path / "kind.npy", classes)
    made.export(tmp_path / "map.parquet", labels={"kind.npy": classes}, neighbors=True)
    command = ("export", made.store.root, tmp_path / "other.parquet", "--labels", tmp_path / "kind.npy", "--neighbors")
    assert scalemani(*command)[0] == 0
    found = pq.read_table(tmp_path / "map.parquet")
    assert found.equals(pq.read_table(tmp_path / "other.parquet"))
    np.testing.assert_array_equal(found["kind.npy"], classes)
    np.testing.assert_array_equal([row["ids"] for row in found["neighbors"].to_pylist()], neighbors[0])
    with pytest.raises(ConfigError, match=r"^labels and neighbors write a map, which what graph is not: leave it out"):
        made.export(tmp_path / "x.npz", "graph", neighbors=True)
    made.export(tmp_path / "kept.csv")
    source = f"{tmp_path / 'kept.csv'}::row"
    for labels in (source, [source], {"row": source}):
        with pytest.raises(ConfigError, match=r"kept.csv is the input .*kept.csv::row or lies in it"):
            made.export(tmp_path / "kept.csv", labels=labels)


def test_a_map_has_coordinates_clusters_and_other_columns_of_each_point(scalemani, runs, points, tmp_path):
    made = sm.open_run(runs["spectral-clustering"].store.root)
    np.savetxt(tmp_path / "scan.csv", points, delimiter=",", header="x,y,z", comments="")
    made.export(tmp_path / "map.csv", "map")
    command = ("export", made.store.root, tmp_path / "map.parquet", "--what", "map", "--labels", tmp_path / "scan.csv")
    assert scalemani(*command)[0] == 0
    coordinates = [f"component_{number}" for number in range(1, 5)]
    text = np.genfromtxt(tmp_path / "map.csv", delimiter=",", names=True, deletechars="", replace_space=" ")
    assert list(text.dtype.names) == ["row", *coordinates, "clusters of the run"]
    table = pq.read_table(tmp_path / "map.parquet")
    assert table.column_names == [*coordinates, "x", "y", "z", "clusters of the run"]
    for found in (text, table):
        np.testing.assert_array_equal(np.asarray(found["clusters of the run"]), made.labels[...])
        np.testing.assert_array_equal(np.column_stack([found[name] for name in coordinates]), made.embedding[...])
    np.testing.assert_allclose(np.column_stack([table[name] for name in "xyz"]), points)
    made.export(tmp_path / "map.parquet", "map", labels="run")
    assert pq.read_table(tmp_path / "map.parquet").column_names == [*coordinates, "clusters of the run"]


def test_landmarks_off_the_data_have_no_rows(points, tmp_path):
    landmarks = {"n_landmarks": 40, "method": "kmeans", "snap": False}
    params = Parameters().with_values({**VALUES, "landmarks": landmarks})
    made = run(open_points(points[:1500]), tmp_path / "run", "laplacian-eigenmaps", params, Executor())
    assert made.landmarks.rows is None
    export_result(made, tmp_path / "a.npz", "landmarks")
    found = np.load(tmp_path / "a.npz")
    assert list(found) == ["points"]
    np.testing.assert_array_equal(found["points"], made.landmarks.points)


def test_a_picture_by_the_clusters_of_the_run_is_that_by_the_same_labels(scalemani, runs, tmp_path):
    root = runs["spectral-clustering"].store.root
    file = tmp_path / "labels.csv"
    heading = "clusters of the run"  # a legend is headed by the name of its labels
    np.savetxt(file, runs["spectral-clustering"].labels[...], "%d", header=heading, comments="")
    for name in ("run", root):
        assert scalemani("plot", root, tmp_path / "own.png", "--labels", name)[0] == 0
    assert scalemani("plot", root, tmp_path / "given.png", "--labels", f"{file}::{heading}")[0] == 0
    assert scalemani("plot", root, tmp_path / "none.png")[0] == 0
    other, heading = runs["t-sne"].store.root, f"clusters of {root.name}"
    assert scalemani("export", other, tmp_path / "map.parquet", "--labels", root)[0] == 0
    exported = pq.read_table(tmp_path / "map.parquet").column(heading).to_numpy()
    np.testing.assert_array_equal(exported, runs["spectral-clustering"].labels[...])
    pictures = [sm.open_run(other).plot(labels, size=300) for labels in (root, {heading: exported})]
    assert np.array_equal(*map(np.asarray, pictures))
    own, given, plain = ((tmp_path / f"{name}.png").read_bytes() for name in ("own", "given", "none"))
    assert own == given != plain
    status, _, errors = scalemani("plot", runs["t-sne"].store.root, tmp_path / "x.png", "--labels", "run")
    assert status == 2
    assert "has no labels" in errors


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_points_of_a_run_are_not_replaced_by_what_it_has_computed(tmp_path, metric, gaps):
    points = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)
    if gaps:
        points[0, 1] = points[9, 0] = np.nan
    np.save(tmp_path / "points.npy", points)
    (tmp_path / "link.npy").symlink_to(tmp_path / "points.npy")
    options = {"metric": metric, "perplexity": 5, "missing": "leave-out" if gaps else "refuse"}
    sm.LaplacianEigenmaps(store=tmp_path / "run", **options).fit(tmp_path / "points.npy")
    opened = sm.open_run(tmp_path / "run")
    for name in ("points.npy", "link.npy"):
        with pytest.raises(ConfigError, match=f"{name} holds the points of .*run, which would be lost"):
            export_result(opened, tmp_path / name)
    np.testing.assert_array_equal(np.load(tmp_path / "points.npy"), points)
    for _ in range(2):  # an earlier result of the same shape is replaced
        export_result(opened, tmp_path / "map.npy")
    (tmp_path / "text.csv").write_text("no points\n")
    export_result(opened, tmp_path / "text.csv")
