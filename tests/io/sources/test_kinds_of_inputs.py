"""Inputs by kind, as libraries hold them: the values that they stand for, or a refusal that says what they are.

Masked values, packed arrays and labels have modules of their own.
"""

import datetime
import functools
import itertools
from decimal import Decimal

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.errors import DataError, DisconnectedGraphError, ScalemaniError
from scalemani.io.sources import open_labels, open_lists, open_points
from scalemani.io.sources.precomputed_affinities import open_affinities

ROWS, COLUMNS = 120, 4
VALUES = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)) * 100
NAMES = list("abcd")


def values_of(dtype):
    return np.abs(VALUES).astype(dtype)


def read_by_parts(given, **options):
    source = open_points(given, **options)
    n_rows = source.shape[0]
    return np.concatenate([source.read(row, min(row + 50, n_rows)) for row in range(0, n_rows, 50)])


# (a) A table of numbers is one, whatever other protocols its library speaks.


class Table:
    """A table of numbers with two axes, read by slices."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, 2

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return type(self)(self.values[rows])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def never(self, *given, **options):
    raise AssertionError("a protocol was asked before the table")


def long_table(self, requested_schema=None):
    return pa.table({"value": self.values.ravel()}).__arrow_c_stream__(requested_schema)


PROTOCOLS = {
    "__arrow_c_stream__": long_table,
    "__arrow_c_array__": never,
    "__dataframe__": never,
    "__dlpack__": never,
    "__cuda_array_interface__": property(never),
    "__iter__": lambda self: iter(self.values.ravel()),
    "__call__": never,
    "to_dask_array": never,
    "to_numpy": never,
    "to_pandas": never,
    "compute": never,
    "collect": never,
    "result": never,
    "read": never,
    "columns": property(lambda self: never),
    "obsm": {},
    "obsp": {},
}


@pytest.mark.parametrize("dtype", ["f8", "f2", "i4"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_table_is_read_as_one_whatever_protocols_it_speaks(protocol, dtype):
    given = type("Labelled", (Table,), {protocol: PROTOCOLS[protocol]})(values_of(dtype))
    np.testing.assert_array_equal(read_by_parts(given), given.values)


# (b) Blocks are looked at, whatever their container says of them.


def dask_of(block, chunks, dtype="f4", meta=None):
    array = da.from_array(values_of(dtype), chunks=chunks)
    return array.map_blocks(block, dtype=dtype, meta=np.empty((0, 0), dtype) if meta is None else meta)


BLOCKS = {
    "csr": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "some sparse": lambda block: sp.csr_matrix(block) if block[0, 0] > 60 else block,
    "wider floats": lambda block: block.astype("f8"),
    "columns first": np.asfortranarray,
    "read-only": lambda block: np.broadcast_to(block, block.shape),
    "matrix": lambda block: np.asmatrix(block),
    "big-endian": lambda block: block.astype(">f4"),
}


@functools.cache
def neighbors_of_values():
    """Return the nearest three of each row, by all distances."""
    away = cdist(values_of("f4"), values_of("f4"))
    np.fill_diagonal(away, np.inf)
    return np.argsort(away, axis=1)[:, :3]


@pytest.mark.parametrize("chunks", [(50, 4), (50, 3), (120, 4), ((1, 0, 119), 4)], ids=str)
@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_of_any_kind_hold_the_values_that_they_hold(block, chunks):
    given = dask_of(BLOCKS[block], chunks)
    np.testing.assert_array_equal(read_by_parts(given), values_of("f4"))
    np.testing.assert_array_equal(sm.knn_graph(given, 3).indices, neighbors_of_values())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("block", "words"),
    [
        (lambda block: block[:, :2], "shape"),
        (lambda block: block[1:], "shape|rows"),
        (lambda block: block * 0.5, "says that its values are uint8"),
        (lambda block: block.astype("i8") + 2**40, "says that its values are uint8"),
        (lambda block: block + 1j, "omplex"),
        (lambda block: block.astype(str), "numeric|cannot be|does not support"),
    ],
)
def test_blocks_that_are_not_what_was_said_are_refused(block, words, sparse, tmp_path):
    meta, kind = (sp.csr_matrix((0, 0), dtype="u1"), sp.csr_matrix) if sparse else (np.empty((0, 0), "u1"), np.asarray)
    zeros = np.where(np.arange(COLUMNS) < 1, values_of("u1"), 0)  # of which rows stay sparse
    given = da.from_array(zeros, chunks=(60, COLUMNS)).map_blocks(lambda one: kind(block(one)), dtype="u1", meta=meta)
    with pytest.raises((DataError, ValueError), match=words):
        sm.knn_graph(given, 3)


# (c) Zeros by rounding are zeros; what no rounding explains is refused.

AWAY = cdist(VALUES[:60] / 100, VALUES[:60] / 100)
AWAY[1] = AWAY[0]
AWAY[:, 1] = AWAY[:, 0]


def as_lists(distances):
    order = np.argsort(distances, axis=1, kind="stable")[:, :8]
    return order, np.take_along_axis(distances, order, axis=1)


def as_sparse(distances):
    indices, values = as_lists(distances)
    bounds = np.arange(len(indices) + 1) * indices.shape[1]
    return sp.csr_matrix((values.ravel(), indices.ravel(), bounds), (len(indices), len(indices)))


FORMS = {
    "dense": np.asarray,
    "lists": as_lists,
    "sparse": as_sparse,
    "dask": lambda away: da.from_array(away, (20, 60)),
}


def nearest(given):
    lists = open_lists(given)
    return lists.nearest(7) if hasattr(lists, "nearest") else lists


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("slip", [-1.0, 1.0, 0.25])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_distances_that_are_zero_up_to_rounding_are_zeros(form, scale, slip, dtype):
    rounded = AWAY * scale
    rounding = np.finfo("f4").eps * rounded.max()
    rounded[0, 1] = rounded[1, 0] = min(slip, 0.0) * rounding
    np.fill_diagonal(rounded, slip * rounding)
    found = nearest(FORMS[form](rounded.astype(dtype)))
    expected = nearest(as_lists(AWAY))
    np.testing.assert_allclose(found.distances / scale, expected.distances, atol=1e-6)
    assert (found.distances >= 0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_distances_that_no_rounding_makes_negative_are_refused(form, dtype):
    wrong = AWAY.copy()
    wrong[0, 1] = wrong[1, 0] = -0.1
    with pytest.raises(DataError, match="negative"):
        nearest(FORMS[form](wrong.astype(dtype)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda given: da.from_array(given, (20, 60))])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_affinities_below_zero_by_rounding_are_zeros(form, scale, dtype):
    weights = np.exp(-AWAY)
    weights[weights < 0.1] = 0
    rounded = scale * np.where(weights == 0, -np.finfo("f4").eps, weights)
    found = open_affinities(form(rounded.astype(dtype))).matrix
    np.fill_diagonal(weights, 0)
    np.testing.assert_allclose(found.toarray() / scale, weights, atol=1e-6)
    assert found.nnz == np.count_nonzero(weights)
    rounded[3, 7] = -0.01 * scale
    with pytest.raises(DataError, match="negative"):
        open_affinities(form(rounded.astype(dtype)))


# (d) A refusal says what the library that made the data means.

LISTS, LIST_DISTANCES = as_lists(cdist(VALUES[:60], VALUES[:60]))


def spoiled(values, change, places):
    found = values.copy()
    found[places] = change
    return found


FEW = (slice(0, 5), slice(3, None))
FIRST = (0, 3)
REFUSED = {
    "not found": ((spoiled(LISTS, -1, FEW), LIST_DISTANCES), "did not find"),
    "not found, cuVS": ((spoiled(LISTS.astype("u4"), 2**32 - 1, FEW), LIST_DISTANCES), "did not find"),
    "not found, pynndescent": ((spoiled(LISTS, -1, FEW), spoiled(LIST_DISTANCES, np.inf, FEW)), "did not find"),
    "beyond the rows": ((spoiled(LISTS, 60, FIRST), LIST_DISTANCES), r"outside \[0, 60\)"),
    "counted from one": ((LISTS + 1, LIST_DISTANCES), r"outside \[0, 60\)"),
    "infinite": ((LISTS, spoiled(LIST_DISTANCES, np.inf, FIRST)), "not finite"),
    "NaN": ((LISTS, spoiled(LIST_DISTANCES, np.nan, FIRST)), "not finite"),
    "similarities": ((LISTS, np.sort(LIST_DISTANCES)[:, ::-1] + 3), "similarities"),
    "negated": ((LISTS, -LIST_DISTANCES), "negative|similarities"),
    "twice": ((spoiled(LISTS, LISTS[0, 2], FIRST), LIST_DISTANCES), "twice"),
    "texts": ((LISTS.astype(str), LIST_DISTANCES), "integers"),
    "texts for distances": ((LISTS, LIST_DISTANCES.astype(str)), "numbers"),
    "lists of texts": ((LISTS.tolist(), [*LIST_DISTANCES[1:].astype(str).tolist(), ["a"]]), "numbers"),
    "fractions": ((LISTS + 0.5, LIST_DISTANCES), "integers"),
    "one table": ((LISTS,), "indices, distances"),
    "other shapes": ((LISTS, LIST_DISTANCES[:, 1:]), "one shape"),
    "no rows": ((LISTS[:0], LIST_DISTANCES[:0]), "one shape|two tables"),
    "themselves alone": ((LISTS[:, :1], LIST_DISTANCES[:, :1]), "no other point"),
    "a name": ({"indices": LISTS, "distances": LIST_DISTANCES}, "takes a matrix of distances"),
    "not square": (LIST_DISTANCES, "square"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_lists_that_cannot_be_are_refused_in_the_words_of_searches(case):
    given, words = REFUSED[case]
    with pytest.raises(DataError, match=words):
        nearest(given)


POINTS_REFUSED = {
    "generator": (lambda: (row for row in VALUES), "generator"),
    "iterator": (lambda: iter(VALUES.tolist()), "list_?iterator|iterator"),
    "map": (lambda: map(list, VALUES), "map"),
    "mapping": (lambda: {"a": [1, 2]}, "dict"),
    "a set": (lambda: {1, 2}, "set"),
    "None": (lambda: None, "NoneType|None"),
    "a number": (lambda: 3.0, "float|0D"),
    "bytes": (lambda: b"abc", "bytes"),
    "a vector": (lambda: VALUES[:, 0], r"reshape\(-1, 1\)"),
    "a cube": (lambda: VALUES.reshape(ROWS, 2, 2), "3D"),
    "complex": (lambda: VALUES * 1j, "real and imaginary"),
    "texts": (lambda: VALUES.astype(str), "numeric"),
    "dates": (lambda: VALUES.astype("i8").astype("M8[s]"), "numeric"),
    "spans": (lambda: VALUES.astype("i8").astype("m8[s]"), "numeric"),
    "a record": (lambda: np.zeros(5, [("a", "f8"), ("b", "f8")]), "numeric|2D"),
    "objects": (lambda: np.full((5, 2), object()), "numeric"),
    "ragged": (lambda: [[1, 2], [3]], "differ in length"),
    "wide integers": (lambda: np.full((5, 2), 2**60), r"2\*\*53"),
    "wide Python integers": (lambda: [[2**70, 1], [3, 4]], r"2\*\*53|numeric"),
    "lazy": (lambda: da.from_array(VALUES, (50, 4))[da.from_array(VALUES[:, 0] > 0, 50)], "compute_chunk_sizes"),
    "a series": (lambda: pd.Series(VALUES[:, 0]), r"reshape\(-1, 1\)"),
    "a column of Arrow": (lambda: pa.chunked_array([VALUES[:, 0]]), "column|2D|table"),
    "sparse with a wrong index": (lambda: wrong_index(), "no sparse matrix"),
    "empty columns": (lambda: np.empty((5, 0)), "0 feature"),
}


def wrong_index():
    matrix = sp.csr_matrix(np.eye(3))
    matrix.indices[1] = 9
    return matrix


@pytest.mark.parametrize("case", POINTS_REFUSED)
def test_what_is_no_table_is_refused_with_what_it_is(case):
    given, words = POINTS_REFUSED[case]
    with pytest.raises(ScalemaniError, match=words):
        sm.knn_graph(given(), 2)


# (e) What needs no points takes lists, distances and affinities.

GIVEN = {
    "lists": ({"metric": "precomputed", "perplexity": 3}, lambda: as_lists(cdist(VALUES, VALUES))),
    "sparse": ({"metric": "precomputed", "perplexity": 2}, lambda: as_sparse(cdist(VALUES, VALUES))),
    "distances": ({"metric": "precomputed", "perplexity": 3}, lambda: cdist(VALUES, VALUES)),
    "affinities": ({"affinity": "precomputed"}, lambda: np.exp(-cdist(VALUES, VALUES) / 100)),
}
START = np.random.default_rng(1).normal(size=(ROWS, 2))
WITHOUT_POINTS = {
    "t-sne": lambda **given: sm.TSNE(max_iter=5, **given),
    "t-sne, random": lambda **given: sm.TSNE(max_iter=5, init="random", **given),
    "t-sne, given": lambda **given: sm.TSNE(max_iter=5, init=START, **given),
    "elastic embedding": lambda **given: sm.ElasticEmbedding(max_iter=5, **given),
    "symmetric": lambda **given: sm.SymmetricSNE(max_iter=5, **given),
    "eigenmaps": lambda **given: sm.LaplacianEigenmaps(**given),
    "eigenmaps, exact": lambda **given: sm.LaplacianEigenmaps(solver="exact", **given),
    "diffusion": lambda **given: sm.DiffusionMaps(**given),
    "clusters": lambda **given: sm.SpectralClustering(3, **given),
    "clusters, largest": lambda **given: sm.SpectralClustering(
        3, settings={"components.disconnected": "largest"}, **given
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("model", WITHOUT_POINTS)
def test_methods_that_need_no_points_take_what_is_given_instead(model, given, pieces):
    options, make = GIVEN[given]
    matrix = make()
    if pieces == 2:
        if given == "distances":
            pytest.skip("all distances join all points")
        far = np.arange(ROWS) % 2 * 1e6
        away = cdist(VALUES + far[:, np.newaxis], VALUES + far[:, np.newaxis])
        matrix = np.exp(-away / 100) if given == "affinities" else {"lists": as_lists, "sparse": as_sparse}[given](away)
    if (model, given, pieces) == ("clusters, largest", "affinities", 2):
        with pytest.raises(DisconnectedGraphError, match="give those of the largest alone"):
            WITHOUT_POINTS[model](**options).fit(matrix)
        return
    fitted = WITHOUT_POINTS[model](**options).fit(matrix)
    result = fitted.labels_ if "clusters" in model else fitted.embedding_
    assert len(result) == ROWS
    if "largest" not in model:
        assert np.isfinite(result).all()


# (f) What is promised of files holds of maps of files.


def mapped(values, path, order="C"):
    np.save(path, values if order == "C" else np.asfortranarray(values))
    return np.load(path, mmap_mode="r")


VIEWS = {
    "rows": lambda given: given,
    "columns first": lambda given: given,
    "a slice": lambda given: given[7:99],
    "every other": lambda given: given[::2],
    "backwards": lambda given: given[::-1],
    "columns": lambda given: given[:, 1:3],
    "transposed": lambda given: given.T,
    "one column": lambda given: given[:, :1],
    "reshaped": lambda given: given.reshape(60, 8),
    "copy on write": lambda given: np.memmap(given.filename, given.dtype, "c", given.offset, given.shape),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f4", "i8", "i2", "u4", "?"])
@pytest.mark.parametrize("view", VIEWS)
def test_maps_of_files_hold_what_their_arrays_do(view, dtype, tmp_path):
    given = VIEWS[view](mapped(values_of(dtype), tmp_path / "points.npy", "F" if view == "columns first" else "C"))
    np.testing.assert_array_equal(read_by_parts(given), np.array(given))
    assert open_points(given).dtype == open_points(np.array(given)).dtype


def test_a_map_that_is_written_to_keeps_what_was_written(tmp_path):
    given = VIEWS["copy on write"](mapped(values_of("f4"), tmp_path / "points.npy"))
    given[5] = 17
    for _ in range(2):
        assert (read_by_parts(given)[5] == 17).all()
    assert (given[5] == 17).all()


@pytest.mark.parametrize("dtype", ["f8", "f2", "i4"])
def test_maps_are_side_data_lists_and_affinities(dtype, tmp_path):
    count = itertools.count()

    def as_map(values):
        return mapped(np.asarray(values), tmp_path / f"{next(count)}.npy")

    points, codes = values_of(dtype), np.arange(ROWS) % 3
    for labels in (codes, codes.astype(str), codes.astype("f4")):
        np.testing.assert_array_equal(open_labels(as_map(labels)), labels)
    one = sm.LandmarkLDA()
    np.testing.assert_array_equal(
        one.fit(as_map(points), as_map(codes)).embedding_, sm.LandmarkLDA().fit(points, codes).embedding_
    )
    indices, distances = as_lists(cdist(VALUES, VALUES))
    np.testing.assert_array_equal(
        nearest((as_map(indices), as_map(distances))).indices, nearest((indices, distances)).indices
    )
    away = cdist(VALUES, VALUES)
    np.testing.assert_array_equal(nearest(as_map(away)).indices, nearest(away).indices)
    weights = np.exp(-away / 100)
    assert (open_affinities(as_map(weights)).matrix != open_affinities(weights).matrix).nnz == 0
    start = {"max_iter": 5, "perplexity": 5}
    np.testing.assert_array_equal(
        sm.TSNE(init=as_map(START), **start).fit(points).embedding_, sm.TSNE(init=START, **start).fit(points).embedding_
    )


# (g) Messages name the column, and the row where it is known, whatever library holds the table.

WRONG = {
    "missing": ([1.5] * 70 + [None] + [2.5] * 49, "c"),
    "nullable": ([1] * 70 + [None] + [2] * 49, "c"),
    "text": ([f"p{row}" for row in range(ROWS)], "c"),
    "bytes": ([b"p"] * ROWS, "c"),
    "date": ([datetime.date(2026, 1, 1)] * ROWS, "c"),
    "moment": ([datetime.datetime(2026, 1, 1)] * ROWS, "c"),
    "span": ([datetime.timedelta(1)] * ROWS, "c"),
    "category": (["x", "y", "z"] * 40, "c"),
    "wide": ([1] * 70 + [2**60 + 1] + [2] * 49, "c"),
    "wide decimal": ([Decimal(1)] * 70 + [Decimal(2**60 + 1)] + [Decimal(2)] * 49, "c"),
}


def table_of(values, kind):
    column = pa.array(values)
    if kind == "category":
        column = column.dictionary_encode()
    others = [pa.array(VALUES[:, place]) for place in (0, 1, 3)]
    return pa.table([*others[:2], column, others[2]], NAMES)


def frame_of(table, kind):
    nullable = {pa.int64(): pd.Int64Dtype()} if kind == "nullable" else {}
    return table.to_pandas(types_mapper=nullable.get)


def parquet(table, path):
    pq.write_table(table, path)
    return str(path)


def arrow_file(table, path):
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return str(path)


LIBRARIES = {
    "arrow": lambda table, kind, folder: table,
    "pandas": lambda table, kind, folder: frame_of(table, kind),
    "pandas of Arrow": lambda table, kind, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "dask": lambda table, kind, folder: dd.from_pandas(frame_of(table, kind), npartitions=3),
    "polars": lambda table, kind, folder: pytest.importorskip("polars").from_arrow(table),
    "parquet": lambda table, kind, folder: parquet(table, folder / "t.parquet"),
    "arrow file": lambda table, kind, folder: arrow_file(table, folder / "t.arrow"),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", WRONG)
def test_messages_name_the_column_that_holds_no_number(library, kind, tmp_path):
    values, name = WRONG[kind]
    with pytest.raises(ScalemaniError, match=rf"\b{name}\b") as told:
        sm.knn_graph(LIBRARIES[library](table_of(values, kind), kind, tmp_path), 3)
    if kind in ("missing", "nullable") and library not in ("dask",):
        assert "70" in str(told.value)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("values", [[True, False] * 60, [Decimal("1.5")] * ROWS, [1, 2, 3] * 40], ids=["?", "d", "i"])
def test_columns_that_are_numbers_are_read_as_such_by_every_library(library, values, tmp_path):
    if library == "dask" and isinstance(values[0], Decimal):
        pytest.skip("Dask makes texts of Python objects")
    found = read_by_parts(LIBRARIES[library](table_of(values, "numbers"), "numbers", tmp_path))
    np.testing.assert_array_equal(found[:, 2], np.array(values, float))
    np.testing.assert_array_equal(found[:, [0, 1, 3]], VALUES[:, [0, 1, 3]])


# Forms of arrays: every library holds the same numbers of every type.


def hdf5(values, folder):
    file = h5py.File(folder / "a.h5", "w")
    return file.create_dataset("X", data=values, chunks=(50, 2))


def xarray_of(values):
    return pytest.importorskip("xarray").DataArray(values, dims=("row", "column"))


CONTAINERS = {
    "columns first": lambda values, folder: np.asfortranarray(values),
    "strides": lambda values, folder: np.repeat(np.repeat(values, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda values, folder: values[::-1, ::-1].copy()[::-1, ::-1],
    "lists": lambda values, folder: values.tolist(),
    "list of arrays": lambda values, folder: list(values),
    "objects": lambda values, folder: pd.Series(list(values)),
    "pandas": lambda values, folder: pd.DataFrame(values),
    "polars": lambda values, folder: pytest.importorskip("polars").DataFrame(values, schema=NAMES),
    "dask": lambda values, folder: da.from_array(values, (50, 3)),
    "xarray": lambda values, folder: xarray_of(values),
    "xarray, chunked": lambda values, folder: xarray_of(values).chunk({"row": 50}),
    "xarray, transposed": lambda values, folder: xarray_of(values).T.T,
    "zarr 2": lambda values, folder: zarr.create_array(folder / "2.zarr", data=values, chunks=(50, 2), zarr_format=2),
    "zarr 3": lambda values, folder: zarr.create_array(folder / "3.zarr", data=values, chunks=(50, 2)),
    "h5py": hdf5,
    "map": lambda values, folder: mapped(values, folder / "a.npy"),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f4", "i8", "i2", "u4", "?"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_holds_the_numbers_of_its_array(container, dtype, tmp_path):
    values = values_of(dtype)
    found = read_by_parts(CONTAINERS[container](values, tmp_path))
    np.testing.assert_array_equal(found, values)
    if container not in ("lists",):
        assert found.dtype == open_points(values).dtype


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "i8", "?"])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("interface", ["matrix", "array"])
def test_sparse_matrices_of_every_format_hold_the_numbers_of_their_array(kind, interface, dtype):
    values = np.where(VALUES > 80, values_of(dtype), 0).astype(dtype)
    found = open_points(getattr(sp, f"{kind}_{interface}")(values))
    np.testing.assert_array_equal(found.read(0, ROWS), values)
    np.testing.assert_array_equal(found.read_sparse(7, ROWS).toarray(), values[7:])
