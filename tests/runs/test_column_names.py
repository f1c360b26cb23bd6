"""Columns have names: points that follow are matched by them, whatever they come in, or refused."""

import json
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from sklearn.base import clone

import scalemani as sm
from scalemani.errors import CorruptChunkError, DataError
from scalemani.io.sources import open_points
from scalemani.io.sources.columns import in_order_of, names_of
from scalemani.runs.opened import open_run

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N, NEW = 400, 60
NAMES, ORDER = ["a", "b", "c", "d"], [2, 0, 3, 1]
POINTS = np.random.default_rng(0).normal(size=(N + NEW, 4)) * [5.0, 2.0, 1.0, 0.5]
TRAINING, FOLLOWING = POINTS[:N], POINTS[N:]


def frame(points, order=(0, 1, 2, 3), names=NAMES):
    return pandas.DataFrame(points, columns=names)[[names[place] for place in order]]


def in_file(given, place):
    given.to_parquet(place)
    return str(place)


def of_dask(given, _):
    return pytest.importorskip("dask.dataframe").from_pandas(given, npartitions=3)


def of_arrow(given, _):
    return pytest.importorskip("pyarrow").Table.from_pandas(given)


def of_polars(given, _):
    return pytest.importorskip("polars").from_pandas(given)


def sparse_columns(given, _):
    return given.astype(pandas.SparseDtype(float, 0.0))


class AnnData:
    """What AnnData is to whoever looks at it: names of rows and columns, a matrix, and representations."""

    def __init__(self, matrix, names):
        self.X, self.obsm, self.layers = matrix, {}, {}
        self.obs_names, self.var_names = pandas.RangeIndex(len(matrix)).astype(str), pandas.Index(names)


def in_anndata(given, _):
    return AnnData(given.to_numpy(), given.columns)


def fill_anndata(root, given):
    """Write what AnnData does of X and of the names of its columns, as a group of zarr or HDF5."""
    root.attrs["encoding-type"] = "anndata"
    root.create_array("X", data=given.to_numpy()) if isinstance(root, zarr.Group) else root.create_dataset(
        "X", data=given.to_numpy()
    )
    var = root.create_group("var")
    var.attrs["_index"] = "gene"
    write_texts(var, "gene", given.columns)


def write_texts(group, name, texts):
    if isinstance(group, zarr.Group):
        group.create_array(name, shape=len(texts), dtype="str")[...] = np.array(texts, object)
    else:
        group[name] = list(texts)


def in_h5ad(given, place):
    with h5py.File(place.with_suffix(".h5ad"), "w") as file:
        fill_anndata(file, given)
    return str(place.with_suffix(".h5ad"))


def dataset(given, place):
    return h5py.File(in_h5ad(given, place))["X"]


def backed(given, place):
    return AnnData(dataset(given, place), given.columns)


def in_zarr(given, place):
    fill_anndata(zarr.open_group(place.with_suffix(".zarr"), mode="w"), given)
    return str(place.with_suffix(".zarr"))


def labelled(given, _):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(given.to_numpy(), dims=("cell", "gene"), coords={"gene": list(given.columns)}, name="v")


def labelled_store(given, place):
    labelled(given, place).to_dataset().to_zarr(place.with_suffix(".cube"), mode="w", zarr_format=2)
    return f"{place.with_suffix('.cube')}::v"


IN_MEMORY = {"pandas": lambda given, _: given, "Arrow": of_arrow, "polars": of_polars, "sparse": sparse_columns}
ANNOTATED = {"AnnData": in_anndata, "backed": backed, "h5ad": in_h5ad, "dataset": dataset, "zarr": in_zarr}
LABELLED = {"DataArray": labelled, "stored DataArray": labelled_store}
STORED = {"Parquet": in_file, "Dask": of_dask, **ANNOTATED, **LABELLED}  # which estimators put in order as well
KINDS = {**IN_MEMORY, **STORED}
OTHER = ["a", "b", "c", "e"]
REFUSAL = r"1 missing \(d\); 1 not among these \(e\)"


def reordered(kind, tmp_path, points=FOLLOWING):
    return KINDS[kind](frame(points, ORDER), tmp_path / "reordered.parquet")


def renamed(kind, tmp_path):
    return KINDS[kind](frame(FOLLOWING, names=OTHER), tmp_path / "renamed.parquet")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Runs of the same points in a file, a frame and an array without names."""
    place = tmp_path_factory.mktemp("names")
    given = {"file": in_file(frame(TRAINING), place / "points.parquet"), "frame": frame(TRAINING), "array": TRAINING}
    for kind, points in given.items():
        sm.LaplacianEigenmaps(perplexity=10, store=place / kind).fit(points)
    return place


@pytest.fixture(scope="module")
def placed(stores):
    """What new points in the order of the run are placed at."""
    sm.transform(stores / "array", FOLLOWING, stores / "expected.npy")
    return np.load(stores / "expected.npy")


@pytest.mark.parametrize("model", ["file", "frame"])
@pytest.mark.parametrize("kind", KINDS)
def test_new_points_of_a_run_are_matched_by_name(stores, placed, model, kind, tmp_path):
    sm.transform(stores / model, reordered(kind, tmp_path), tmp_path / "placed.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "placed.npy"), placed)
    with pytest.raises(DataError, match=REFUSAL):
        sm.transform(stores / model, renamed(kind, tmp_path), tmp_path / "renamed.npy")


@pytest.mark.parametrize(("scheduler", "kind"), [(None, "Parquet"), ("processes", "Parquet"), ("processes", "h5ad")])
def test_workers_that_open_a_file_match_it_too(stores, placed, scheduler, kind, tmp_path):
    """A metric's rows are of the columns in the order of the run; a folder of files is read by each process."""
    sm.transform(stores / "file", reordered(kind, tmp_path), tmp_path / "placed.npy", scheduler=scheduler, workers=2)
    np.testing.assert_array_equal(np.load(tmp_path / "placed.npy"), placed)


def test_the_command_matches_by_name(stores, placed, tmp_path, scalemani):
    assert scalemani("transform", stores / "file", reordered("Parquet", tmp_path), tmp_path / "placed.npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "placed.npy"), placed)
    status, _, errors = scalemani("transform", stores / "file", renamed("Parquet", tmp_path), tmp_path / "other.npy")
    assert status == 2
    assert "1 missing (d); 1 not among these (e)" in errors


def test_points_without_names_on_either_side_stay_in_their_places(stores, placed, tmp_path):
    np.save(tmp_path / "new.npy", FOLLOWING)
    sm.transform(stores / "file", tmp_path / "new.npy", tmp_path / "placed.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "placed.npy"), placed)
    sm.transform(stores / "array", renamed("Parquet", tmp_path), tmp_path / "named.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "named.npy"), placed)


def test_runs_without_names_in_their_plan_go_by_place(stores, placed, tmp_path):
    opened = open_run(stores / "file")
    assert opened.column_names == tuple(NAMES)
    assert open_run(stores / "array").column_names == ()
    older = {name: value for name, value in opened.plan.items() if name != "columns"}
    assert type(opened)(stores / "file", older).column_names == ()
    for damage in (["a"], "abcd", [1, 2, 3, 4], None):
        with pytest.raises(CorruptChunkError, match="names of 4 columns"):
            type(opened)(stores / "file", {**older, "columns": damage})


def test_names_change_no_key(stores):
    assert open_run(stores / "file").keys == open_run(stores / "array").keys


@pytest.mark.parametrize("model", ["file", "frame"])
def test_estimators_match_files_and_refuse_tables_as_scikit_learn_does(stores, placed, model, tmp_path):
    given = str(stores / "points.parquet") if model == "file" else frame(TRAINING)
    fitted = sm.LaplacianEigenmaps(perplexity=10).fit(given)
    assert fitted.feature_names_in_.tolist() == NAMES
    for kind in STORED:
        np.testing.assert_array_equal(fitted.transform(reordered(kind, tmp_path)), placed)
        with pytest.raises(DataError, match=REFUSAL):
            fitted.transform(renamed(kind, tmp_path))
    for kind in IN_MEMORY:
        with pytest.raises(ValueError, match="same order as they were in fit"):
            fitted.transform(reordered(kind, tmp_path))
        np.testing.assert_array_equal(fitted.transform(KINDS[kind](frame(FOLLOWING), None)), placed)


@pytest.mark.parametrize("kind", STORED)
def test_transformers_match_files(kind, tmp_path):
    given = KINDS[kind](frame(TRAINING), tmp_path / "points.parquet")
    graph, features = sm.KNeighborsTransformer(5).fit(given), sm.LandmarkFeatures(10, method="random").fit(given)
    assert graph.feature_names_in_.tolist() == features.feature_names_in_.tolist() == NAMES
    new, expected = reordered(kind, tmp_path), sm.KNeighborsTransformer(5).fit(TRAINING).transform(FOLLOWING)
    assert abs(graph.transform(new) - expected).nnz == 0
    expected = sm.LandmarkFeatures(10, method="random").fit(TRAINING).transform(FOLLOWING)
    np.testing.assert_array_equal(features.transform(new), expected)
    with pytest.raises(DataError, match=REFUSAL):
        features.transform(renamed(kind, tmp_path))


@pytest.mark.parametrize("kind", KINDS)
def test_queries_of_a_graph_are_matched_by_name(kind, tmp_path):
    given = KINDS[kind](frame(TRAINING), tmp_path / "points.parquet")
    graph = sm.knn_graph(given, 5, store=tmp_path / "run")
    expected = sm.knn_graph(TRAINING, 5, store=tmp_path / "plain").query(FOLLOWING)
    np.testing.assert_array_equal(graph.query(reordered(kind, tmp_path)).indices, expected.indices)
    with pytest.raises(DataError, match=REFUSAL):
        graph.query(renamed(kind, tmp_path))


@pytest.mark.parametrize("kind", ["pandas", "Parquet", "Dask", "AnnData", "h5ad", "DataArray"])
def test_appended_points_are_matched_by_name(kind, tmp_path, scalemani):
    for name, points, new in (
        ("named", frame(TRAINING), reordered(kind, tmp_path)),
        ("plain", TRAINING, FOLLOWING),
    ):
        sm.LaplacianEigenmaps(perplexity=10, store=tmp_path / name).fit(points)
        if name == "named":
            with pytest.raises(DataError, match=REFUSAL):
                sm.append(tmp_path / name, renamed(kind, tmp_path))
        sm.append(tmp_path / name, new)
    grown, expected = open_run(tmp_path / "named"), open_run(tmp_path / "plain")
    np.testing.assert_array_equal(grown.embedding[...], expected.embedding[...])
    assert grown.column_names == tuple(NAMES)
    if kind == "Parquet":  # once more, from the command line: these are there
        status, _, errors = scalemani("append", tmp_path / "named", reordered(kind, tmp_path))
        assert (status, "nothing to do" in errors) == (0, True)


@pytest.mark.parametrize("kind", ["pandas", "Parquet", "Arrow", *ANNOTATED, *LABELLED])
def test_landmarks_are_matched_by_name(kind, tmp_path):
    given = in_file(frame(TRAINING), tmp_path / "points.parquet")
    landmarks = reordered(kind, tmp_path, FOLLOWING)
    landmarks = Path(landmarks) if isinstance(landmarks, str) else landmarks  # texts are names of rules
    expected = sm.LandmarkPCA(2, landmarks=FOLLOWING).fit(TRAINING).embedding_
    for points in (given, frame(TRAINING)):
        np.testing.assert_array_equal(sm.LandmarkPCA(2, landmarks=landmarks).fit(points).embedding_, expected)
    other = renamed(kind, tmp_path)
    with pytest.raises(DataError, match=REFUSAL):
        sm.LandmarkPCA(2, landmarks=Path(other) if isinstance(other, str) else other).fit(given)


@pytest.mark.parametrize("kind", ["pandas", "polars", "sparse", "Arrow", "Parquet", "AnnData", "h5ad", "DataArray"])
def test_landmarks_of_functions_are_matched_by_name(kind, tmp_path):
    named, landmarks = in_file(frame(TRAINING), tmp_path / "points.parquet"), reordered(kind, tmp_path)
    weights, features = sm.landmark_weights(TRAINING, FOLLOWING), sm.landmark_features(TRAINING, FOLLOWING, 9.0)
    for points in (frame(TRAINING), named):
        assert abs(sm.landmark_weights(points, landmarks) - weights).nnz == 0
        np.testing.assert_array_equal(sm.landmark_features(points, landmarks, 9.0), features)
        for function in (sm.landmark_weights, sm.landmark_features):
            with pytest.raises(DataError, match=REFUSAL):
                function(points, renamed(kind, tmp_path), 9)
    np.testing.assert_array_equal(sm.landmark_features(TRAINING, frame(FOLLOWING), 9.0), features)
    np.testing.assert_array_equal(sm.landmark_features(frame(TRAINING), FOLLOWING, 9.0), features)


def test_landmarks_may_have_a_column_named_points():
    names = ["points", "b", "c", "d"]
    found = sm.landmark_features(frame(TRAINING, names=names), frame(FOLLOWING, names=names), 9.0)
    np.testing.assert_array_equal(found, sm.landmark_features(TRAINING, FOLLOWING, 9.0))


@pytest.mark.parametrize("kind", ANNOTATED)
def test_estimators_keep_the_names_of_genes_and_warn_of_nothing(kind, tmp_path):
    given = KINDS[kind](frame(TRAINING), tmp_path / "points.parquet")
    news = KINDS[kind](frame(FOLLOWING), tmp_path / "new.parquet"), reordered(kind, tmp_path)
    for model in (sm.LandmarkPCA(2, n_landmarks=50), sm.LandmarkFeatures(10, method="random")):
        expected = clone(model).fit(TRAINING).transform(FOLLOWING)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            model.fit(given)
            assert model.feature_names_in_.tolist() == NAMES
            for new in news:
                np.testing.assert_array_equal(model.transform(new), expected)
        assert not hasattr(model.fit(TRAINING), "feature_names_in_")
        np.testing.assert_array_equal(model.transform(in_anndata(frame(FOLLOWING), None)), expected)
        with pytest.raises(ValueError, match="3 features"):
            model.transform(in_anndata(frame(FOLLOWING).drop(columns="a"), None))


def test_a_run_of_many_genes_keeps_their_names_and_shows_few(tmp_path):
    genes = [f"ENSG{number:011d}" for number in range(30_000)]
    points = np.random.default_rng(0).poisson(0.1, (40, 30_000)).astype(np.float32)
    sm.LandmarkPCA(2, n_landmarks=10, store=tmp_path / "run").fit(AnnData(points, genes))
    assert open_run(tmp_path / "run").column_names == tuple(genes)
    assert (tmp_path / "run" / "plan.json").stat().st_size < 2**20
    for others in (genes[:-7] + [f"other{number}" for number in range(7)], [f"x{number}" for number in range(30_000)]):
        with pytest.raises(DataError, match=r"missing \((ENSG\d+, ){5}\.\.\.\); \d+ not among these") as refused:
            sm.transform(tmp_path / "run", AnnData(points, others), tmp_path / "placed.npy")
        assert len(str(refused.value)) < 500
    np.random.default_rng(1).shuffle(order := np.arange(30_000))
    for place, given in (("a", AnnData(points, genes)), ("b", AnnData(points[:, order], np.array(genes)[order]))):
        sm.transform(tmp_path / "run", given, tmp_path / f"{place}.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_names_that_no_plan_can_hold_are_refused_before_the_points_are_read(tmp_path):
    names = [f"{number:0>2100}" for number in range(4000)]
    given = AnnData(np.full((40, 4000), np.nan, np.float32), names)
    given.X = zarr.create_array(tmp_path / "X.zarr", data=given.X)
    with pytest.raises(DataError, match=r"the list of columns of .* has 84.* bytes, at most 8388608 are taken"):
        sm.LandmarkPCA(2, n_landmarks=10).fit(given)


def test_a_file_whose_columns_were_reordered_is_a_run_with_these(tmp_path):
    """The same command on it: results are of its own columns, and so are the names."""
    place, store = tmp_path / "points.parquet", tmp_path / "run"
    model = sm.LaplacianEigenmaps(perplexity=10, store=store)
    first = model.fit(in_file(frame(TRAINING), place)).embedding_
    again = model.fit(in_file(frame(TRAINING, ORDER), place)).embedding_
    assert open_run(store).column_names == tuple(NAMES[place] for place in ORDER)
    assert sm.measures.procrustes_error(again, first) < 1e-3
    sm.transform(store, frame(FOLLOWING), tmp_path / "placed.npy")
    expected = sm.LaplacianEigenmaps(perplexity=10).fit(TRAINING[:, ORDER]).transform(FOLLOWING[:, ORDER])
    np.testing.assert_array_equal(np.load(tmp_path / "placed.npy"), expected)


def test_the_largest_component_and_rows_without_gaps_keep_the_names(tmp_path):
    apart = np.concatenate([TRAINING, 1e3 + TRAINING[:20]])
    settings = {"components.disconnected": "largest"}
    sm.LaplacianEigenmaps(perplexity=5, store=tmp_path / "run", settings=settings).fit(frame(apart))
    assert open_run(tmp_path / "run").is_component
    assert open_run(tmp_path / "run").column_names == tuple(NAMES)
    gapped = TRAINING.copy()
    gapped[7, 1] = np.nan
    sm.LandmarkPCA(2, missing="leave-out", store=tmp_path / "gaps").fit(frame(gapped))
    assert open_run(tmp_path / "gaps").column_names == tuple(NAMES)


def test_sparse_rows_are_put_in_order():
    given = open_points(sparse_columns(frame(np.where(FOLLOWING > 1, FOLLOWING, 0.0), ORDER), None))
    found = in_order_of(given, NAMES, "the points")
    assert names_of(found) == tuple(NAMES)
    rows = found.read_sparse(5, 30)
    assert rows.has_canonical_format
    np.testing.assert_array_equal(rows.toarray(), np.where(FOLLOWING > 1, FOLLOWING, 0.0)[5:30])


@pytest.mark.parametrize("names", [[0, 1, 2, 3], [("x", 1), ("x", 2), ("y", 1), ("y", 2)], ["a", "b", 2, 3]])
def test_columns_whose_names_are_no_texts_have_none(names):
    assert names_of(open_points(pandas.DataFrame(TRAINING, columns=names))) == ()


def test_two_columns_of_one_name_are_refused(tmp_path):
    repeated = pandas.DataFrame(TRAINING, columns=["x", "y", "x", "z"])
    with pytest.raises(DataError, match="more than one column x"):
        sm.LandmarkPCA(2).fit(repeated)
    with pytest.raises(DataError, match="more than one column x"):
        sm.knn_graph(of_dask(repeated, None), 5)
    assert sm.knn_graph(repeated.set_axis([0, 1, 0, 2], axis=1), 5).indices.shape == (N, 5)


def test_the_plan_is_json_with_the_names(stores):
    assert json.loads((stores / "file" / "plan.json").read_text())["columns"] == NAMES
