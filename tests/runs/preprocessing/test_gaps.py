"""Rows with a gap that are left out: the run of the other rows, and NaN in the place of these in all results."""

import shutil

import numpy as np
import pytest
import scipy.sparse as sp

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_points
from scalemani.io.sources.array_files import ArrayPoints
from scalemani.io.sources.side_data import with_weights
from scalemani.runs.walk import run

POINTS = np.random.default_rng(0).normal(size=(1300, 4)) * [4.0, 2.0, 1.0, 0.5]
GAPS = POINTS.copy()
GAPS[7, 1] = GAPS[200, 0] = GAPS[200, 1] = GAPS[1299, 3] = np.nan
KEPT = np.setdiff1d(np.arange(1300), [7, 200, 1299])
LEAVE_OUT = {"points.missing": "leave-out"}
COUNTS = "{} (1), {} (2), {} (1)"


def fit(points, **given):
    return sm.LaplacianEigenmaps(perplexity=10, n_neighbors=30, missing="leave-out", **given).fit(points)


@pytest.fixture(scope="module")
def expected():
    found = np.full((1300, 2), np.nan)
    found[KEPT] = sm.LaplacianEigenmaps(perplexity=10, n_neighbors=30).fit(POINTS[KEPT]).embedding_
    return found


def nullable(pandas):
    frame = pandas.DataFrame(GAPS, columns=list("abcd")).astype("Float64")
    return frame.mask(frame.isna())


def listed(values):
    return [None if np.isnan(value) else value for value in values]


def forms():
    yield "array", lambda: GAPS, "013"
    yield "masked array", lambda: np.ma.masked_array(POINTS, np.isnan(GAPS)), "013"
    yield "lists with None", lambda: [listed(row) for row in GAPS.tolist()], "013"
    yield "pandas", lambda: nullable(pytest.importorskip("pandas")), "abd"
    yield "dask frame", lambda: dask_frame(), "abd"
    yield "dask array", lambda: pytest.importorskip("dask.array").from_array(GAPS, chunks=(400, 4)), "013"
    yield "polars", lambda: polars_frame(), "abd"


def dask_frame():
    frame = nullable(pytest.importorskip("pandas"))
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


def polars_frame():
    return pytest.importorskip("polars").DataFrame(dict(zip("abcd", map(listed, GAPS.T), strict=True)))


@pytest.mark.parametrize(("given", "names"), [pytest.param(make, names, id=kind) for kind, make, names in forms()])
def test_results_are_those_of_the_other_rows_and_nan(given, names, expected):
    found = fit(given())
    assert np.array_equal(found.embedding_, expected, equal_nan=True)
    certificates = found.certificates_["duplicates"]
    assert certificates["rows_left_out"] == 3
    assert certificates["columns_with_gaps"] == COUNTS.format(*names)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_integers_in_files(tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    whole = np.rint(POINTS * 100).astype(np.int64)
    columns = [arrow.array(column, mask=np.isnan(gaps)) for column, gaps in zip(whole.T, GAPS.T, strict=True)]
    table = arrow.table(columns, names=list("abcd"))
    path = tmp_path / f"points.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=500)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, path)
    found = fit(str(path)).embedding_
    assert np.array_equal(np.flatnonzero(~np.isnan(found[:, 0])), KEPT)
    wanted = sm.LaplacianEigenmaps(perplexity=10, n_neighbors=30).fit(whole[KEPT].astype(np.float64))
    assert np.array_equal(found[KEPT], wanted.embedding_)
    with pytest.raises(DataError, match=r"missing values in a \(1\), the first in row 200"):
        sm.LaplacianEigenmaps().fit(str(path))


@pytest.mark.parametrize("scaled", [True, False])
def test_packed_zarr(tmp_path, scaled):
    xarray = pytest.importorskip("xarray")
    encoding = {"dtype": "int16", "_FillValue": -32768} | ({"scale_factor": 0.001, "add_offset": 1.0} if scaled else {})
    given = xarray.Dataset({"v": (("cell", "band"), GAPS * (1 if scaled else 1000))})
    given.to_zarr(f"{tmp_path}/cube.zarr", encoding={"v": encoding}, zarr_format=2)
    decoded = xarray.open_zarr(f"{tmp_path}/cube.zarr").v.values
    found = fit(f"{tmp_path}/cube.zarr::v").embedding_
    wanted = sm.LaplacianEigenmaps(perplexity=10, n_neighbors=30).fit(decoded[KEPT]).embedding_
    assert np.array_equal(found[KEPT], wanted)
    assert np.isnan(np.delete(found, KEPT, axis=0)).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_without_a_direction_have_a_gap(sparse):
    counts = sp.random(400, 60, density=0.2, format="csr", random_state=0)
    counts.data[3] = np.nan
    counts = counts.tolil()
    counts[5] = 0
    gap = int(np.flatnonzero(np.isnan(counts.toarray()).any(axis=1))[0])
    given = counts.tocsr() if sparse else counts.toarray()
    found = fit(given, metric="cosine")
    assert np.array_equal(np.flatnonzero(np.isnan(found.embedding_[:, 0])), sorted([gap, 5]))
    assert "rows without a direction by cosine (1)" in found.certificates_["duplicates"]["columns_with_gaps"]


def test_equal_rows_are_merged_among_those_that_are_left():
    given = np.concatenate([GAPS, GAPS[:300]])
    found = fit(given, settings={"duplicates.tolerance": 0.0}).embedding_
    gaps = np.flatnonzero(np.isnan(found[:, 0]))
    assert np.array_equal(gaps, np.flatnonzero(np.isnan(given).any(axis=1)))
    assert np.array_equal(found[1300:], found[:300], equal_nan=True)


def test_weights_labels_and_blocks_belong_to_the_rows_that_are_left(tmp_path):
    weights = np.random.default_rng(1).integers(1, 4, 1300)
    params = Parameters().with_values({"affinities": {"perplexity": 10.0}})
    values = params.with_values({"points": {"missing": "leave-out"}})
    runs = [
        run(
            with_weights(open_points(GAPS, gaps=True), weights),
            tmp_path / f"{rows}",
            "laplacian-eigenmaps",
            values,
            Executor(workers=2),
            rows,
        )
        for rows in (1024, None)
    ]
    given = with_weights(open_points(POINTS[KEPT]), weights[KEPT])
    plain = run(given, tmp_path / "plain", "laplacian-eigenmaps", params, Executor(workers=1))
    for found in runs:
        assert found.n_input_points == 1300
        assert found.input_rows is None
        assert np.array_equal(np.asarray(found.retained_embedding[...]), np.asarray(plain.embedding[...]))
        filled = np.full((1300, 2), np.nan)
        filled[KEPT] = plain.embedding[...]
        assert np.array_equal(np.asarray(found.embedding[...]), filled, equal_nan=True)
        assert np.array_equal(np.asarray(found.embedding[1200:1300]), filled[1200:], equal_nan=True)
        assert np.array_equal(found.landmarks.points, POINTS[found.landmarks.rows])


def test_infinity_is_no_gap():
    given = GAPS.copy()
    given[1100, 2] = np.inf
    with pytest.raises(DataError, match=r"1 inf.*row 1100, column 2"):
        fit(given)


def test_what_cannot_leave_out_rows_is_refused():
    with pytest.raises(DataError, match="0 of 50 rows"):
        fit(np.full((50, 3), np.nan))
    with pytest.raises(ConfigError, match="missing='leave-out'"):
        fit(sm.knn_graph(POINTS, 40), metric="precomputed")


def test_clusters_of_rows_left_out_are_none():
    found = sm.SpectralClustering(3, missing="leave-out").fit(GAPS)
    assert np.array_equal(np.flatnonzero(found.labels_ == -1), [7, 200, 1299])


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    """The folder of a run with clusters and gaps."""
    folder = tmp_path_factory.mktemp("clustered") / "run"
    settings = {"perplexity": 10, "n_neighbors": 30, "random_state": 0}
    sm.SpectralClustering(3, missing="leave-out", store=folder, **settings).fit(GAPS)
    return folder


def test_exports_have_all_rows_in_their_places(clustered, tmp_path, scalemani):
    opened, rows = sm.open_run(clustered), np.delete(np.arange(1300), KEPT)
    embedding, labels = np.asarray(opened.embedding[...]), np.asarray(opened.labels[...])
    assert np.array_equal(np.flatnonzero(np.isnan(embedding).all(axis=1)), rows)
    assert np.array_equal(np.flatnonzero(labels == -1), rows)
    exported = {}
    for what, suffix in (("embedding", ".npy"), ("labels", ".npy"), ("labels", ".csv"), ("graph", ".npz")):
        out = tmp_path / f"{what}{suffix}"
        status, _, errors = scalemani("export", clustered, out, "--what", what)
        assert (status, errors) == (0, "")
        exported[what + suffix] = out
    assert scalemani("export", clustered, tmp_path / "affinities.npz", "--what", "affinities")[0] == 0
    assert not list(tmp_path.glob("*input_rows*"))
    assert np.array_equal(np.load(exported["embedding.npy"]), embedding, equal_nan=True)
    assert np.array_equal(np.load(exported["labels.npy"]), labels)
    table = np.loadtxt(exported["labels.csv"], delimiter=",", skiprows=1)
    assert np.array_equal(table, np.stack([np.arange(1300), labels], axis=1))
    away = np.linalg.norm(GAPS[KEPT, np.newaxis] - GAPS[KEPT], axis=2)
    nearest = KEPT[np.argsort(away, axis=1)[:, 1]]
    graph = sp.load_npz(exported["graph.npz"])
    for matrix in (graph, opened.graph.tocsr()):
        assert matrix.shape == (1300, 1300)
        assert np.array_equal(np.flatnonzero(np.diff(matrix.indptr)), KEPT)
        assert np.array_equal(matrix.indices[matrix.indptr[KEPT]], nearest)
    assert np.array_equal(np.asarray(opened.graph.indices[...])[rows], np.full((3, graph[0].nnz), -1))
    affinities = sp.load_npz(tmp_path / "affinities.npz")
    assert np.array_equal(np.flatnonzero(np.diff(affinities.indptr)), KEPT)
    assert abs(affinities - opened.affinities.tocsr()).max() == 0


def test_maps_with_labels_by_position_have_all_rows(clustered, tmp_path, scalemani):
    pandas = pytest.importorskip("pandas")
    labels = tmp_path / "place.npy"
    np.save(labels, np.arange(1300) % 7)
    for suffix in (".csv", ".parquet"):
        out = tmp_path / f"map{suffix}"
        assert scalemani("export", clustered, out, "--labels", labels)[::2] == (0, "")
        table = pandas.read_csv(out) if suffix == ".csv" else pandas.read_parquet(out)
        assert table["place.npy"].tolist() == (np.arange(1300) % 7).tolist()
        assert "input_row" not in table
        assert np.array_equal(np.flatnonzero(table["x"].isna()), np.delete(np.arange(1300), KEPT))


def test_other_commands_take_such_a_run(clustered, tmp_path, scalemani):
    np.save(tmp_path / "place.npy", np.arange(1300) % 7)
    for command in (
        ("plot", clustered, tmp_path / "map.png", "--labels", tmp_path / "place.npy"),
        ("measure", clustered, "--labels", tmp_path / "place.npy"),
        ("align", clustered, clustered),
        ("report", clustered, tmp_path / "report.html", "--labels", tmp_path / "place.npy"),
    ):
        assert scalemani(*command)[0] == 0, command
    told = scalemani("info", clustered)[1]
    assert "3 of 1300 rows have gaps, and NaN or no cluster in results" in told


def test_new_points_with_a_gap_are_nan():
    model = sm.LaplacianEigenmaps(perplexity=10, n_landmarks=100, settings=LEAVE_OUT).fit(GAPS)
    placed = model.transform(GAPS[:300])
    assert np.array_equal(np.flatnonzero(np.isnan(placed[:, 0])), [7, 200])
    kept = np.setdiff1d(np.arange(300), [7, 200])
    assert np.array_equal(placed[kept], model.transform(POINTS[kept]))
    assert np.isnan(model.transform(GAPS[[7, 200]])).all()
    clusters = sm.SpectralClustering(3, settings=LEAVE_OUT).fit(GAPS).predict(GAPS[:300])
    assert np.array_equal(np.flatnonzero(clusters == -1), [7, 200])


def test_new_points_with_gaps_are_read_twice(stored, tmp_path, spy):
    read = spy(ArrayPoints, "rows", lambda _, *bounds: bounds)
    sm.transform(stored / "laplacian-eigenmaps", GAPS[:300], tmp_path / "placed.npy")
    assert read == [(0, 300)] * 2


NEW = np.concatenate([np.full((1024, 4), np.nan), GAPS[:300], POINTS[:50]])  # the first block has nothing but gaps
WITHOUT = np.flatnonzero(~np.isnan(NEW).any(axis=1))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Finished runs of points with gaps by method, in folders that tests copy."""
    folder = tmp_path_factory.mktemp("runs")
    values = {"points": {"missing": "leave-out"}, "affinities": {"perplexity": 10.0}, "layout": {"max_iterations": 60}}
    params = Parameters().with_values(values).with_values({"landmarks": {"n_landmarks": 100}})
    for method in ("laplacian-eigenmaps", "t-sne"):
        run(open_points(GAPS, gaps=True), folder / method, method, params, Executor(workers=2), 1024)
    return folder


@pytest.mark.parametrize("method", ["laplacian-eigenmaps", "t-sne"])
@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_transform_of_the_command_line_leaves_rows_out(stored, method, suffix, tmp_path, scalemani):
    arrow = pytest.importorskip("pyarrow")
    given = tmp_path / f"new.{suffix}"
    if suffix == "npy":
        np.save(given, NEW)
    else:
        table = arrow.table(
            {name: arrow.array(column, from_pandas=True) for name, column in zip("abcd", NEW.T, strict=True)}
        )
        pytest.importorskip("pyarrow.parquet").write_table(table, given)
    np.save(tmp_path / "whole.npy", NEW[WITHOUT])
    status, told, error = scalemani("transform", stored / method, given, tmp_path / "placed.npy")
    assert status == 0, error
    scalemani("transform", stored / method, tmp_path / "whole.npy", tmp_path / "expected.npy")
    placed = np.load(tmp_path / "placed.npy")
    assert np.array_equal(np.flatnonzero(~np.isnan(placed).any(axis=1)), WITHOUT)
    assert np.array_equal(placed[WITHOUT], np.load(tmp_path / "expected.npy"))
    counts = ", ".join(
        f"{name} ({count})"
        for name, count in zip("0123" if suffix == "npy" else "abcd", [1025, 1026, 1024, 1024], strict=True)
    )
    assert "rows_left_out 1026" in told
    assert f"columns_with_gaps {counts}" in told


@pytest.mark.parametrize("method", ["laplacian-eigenmaps", "t-sne"])
def test_appended_rows_with_a_gap_are_left_out(stored, method, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(stored / method, folder)
    new = GAPS[:300] + 1e-3
    appended = sm.append(folder, new)
    expected = sm.append(shutil.copytree(stored / method, tmp_path / "other"), np.delete(new, [7, 200], axis=0))
    assert appended.appended == expected.appended == 298
    found = np.asarray(appended.run.embedding[...])
    wanted = np.asarray(expected.run.retained_embedding[...])
    kept = np.concatenate([KEPT, 1300 + np.setdiff1d(np.arange(300), [7, 200])])
    assert found.shape == (1600, 2)
    assert np.array_equal(np.flatnonzero(~np.isnan(found[:, 0])), kept)
    assert np.array_equal(found[kept], wanted)
    assert appended.moved == expected.moved
    certificates = appended.run.certificates["duplicates"]
    assert certificates["rows_left_out"] == 5
    assert certificates["columns_with_gaps"] == COUNTS.format(*"013") + "; appended: 0 (1), 1 (2)"
    assert sm.append(folder, new).appended == 0
    with pytest.raises(DataError, match="each of the 2 rows has a gap"):
        sm.append(folder, GAPS[[7, 200]])


@pytest.mark.parametrize("stored", [False, True])
def test_the_graph_has_no_lists_of_rows_left_out(stored, tmp_path):
    np.save(tmp_path / "points.npy", GAPS)
    given = tmp_path / "points.npy" if stored else GAPS
    found = sm.knn_graph(given, 5, settings=LEAVE_OUT, store=tmp_path / "graph")
    wanted = sm.knn_graph(POINTS[KEPT], 5)
    indices, distances = np.asarray(found.indices[...]), np.asarray(found.distances[...])
    assert np.array_equal(indices[KEPT], KEPT[wanted.indices])
    assert np.array_equal(distances[KEPT], wanted.distances)
    assert (np.delete(indices, KEPT, axis=0) == -1).all()
    assert np.isnan(np.delete(distances, KEPT, axis=0)).all()
    assert found.recall == wanted.recall
    near = found.query(GAPS[:250], 1)
    assert np.array_equal(near.indices.ravel(), np.where(np.isin(np.arange(250), KEPT), np.arange(250), -1))
    assert near.recall == 1.0
    matrix = sm.KNeighborsTransformer(5, settings=LEAVE_OUT).fit_transform(GAPS)
    assert np.array_equal(np.flatnonzero(np.diff(matrix.indptr)), KEPT)
    assert np.array_equal(
        matrix[KEPT][:, KEPT].toarray(), sm.KNeighborsTransformer(5).fit_transform(POINTS[KEPT]).toarray()
    )
