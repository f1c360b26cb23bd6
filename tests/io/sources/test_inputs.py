"""One small matrix in every form in which users hold points: the same points, and larger ones in bounded memory."""

import json
import pickle
from types import SimpleNamespace

import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from scipy import sparse

import scalemani as sm
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError, MemoryBudgetError
from scalemani.io.sources import is_in_memory, is_stored, open_points, points_in_memory
from scalemani.runs.survey import survey

N, D = 3000, 6
POINTS = np.random.default_rng(0).normal(size=(N, D)).astype(np.float16).astype(np.float32)
IDS = [f"doc{row}" for row in range(N)]


class OnlyAnArray:
    """What NumPy asks for all of it at once."""

    def __array__(self, dtype=None, copy=None):
        return POINTS


class Column:
    """A column of a data frame whose elements are vectors, as pandas has it."""

    ndim, dtype, iloc = 1, np.dtype(object), None

    def __init__(self, vectors):
        self.vectors = vectors

    def __len__(self):
        return len(self.vectors)

    def __array__(self, dtype=None, copy=None):
        column = np.empty(len(self.vectors), object)
        column[:] = self.vectors
        return column


class Sliced:
    """What gives rows, counts how many at once, and refuses to give all."""

    shape, dtype = POINTS.shape, POINTS.dtype

    def __init__(self):
        self.most = 0

    def __getitem__(self, rows):
        self.most = max(self.most, len(POINTS[rows]))
        return POINTS[rows]

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("all rows were asked for at once")


def fixed_lists(rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def lists(rows, kind=pa.list_):
    return pa.array(list(rows), kind(pa.from_numpy_dtype(rows.dtype)))


def columns(rows):
    return {f"x{column}": values for column, values in enumerate(rows.T)}


def write_stream(path, table, rows):
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


def write_data_set(folder, rows):
    """Write what `datasets.Dataset.save_to_disk` writes: streams whose order a state tells."""
    folder.mkdir()
    names = [f"data-{part:05d}-of-00002.arrow" for part in (1, 0)]  # in the order of the state, not of the names
    for name, part in zip(names, np.array_split(rows, 2), strict=True):
        table = pa.table({"text": ["a text"] * len(part), "vector": lists(part)})
        write_stream(folder / name, table, 400)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def write_parts(folder, rows):
    folder.mkdir()
    for part, start in enumerate(range(0, len(rows), len(rows) // 12)):  # part 10 comes before part 2 as text
        np.save(folder / f"part-{part}.npy", rows[start : start + len(rows) // 12])
    return folder


def arrays(folder):
    mapped = np.lib.format.open_memmap(folder / "mapped.npy", "w+", POINTS.dtype, POINTS.shape)
    mapped[:] = POINTS
    yield from {
        "an array": POINTS,
        "columns first": np.asfortranarray(POINTS),
        "half precision": POINTS.astype(np.float16),
        "the other byte order": POINTS.astype(">f4"),
        "a memory map": mapped,
        "only __array__": OnlyAnArray(),
        "slices": Sliced(),
        "a column of vectors": Column(list(POINTS)),
        "objects that are vectors": np.asarray(Column(list(POINTS))),
        "a list of vectors": list(POINTS),
    }.items()


def files(folder):
    for name, rows in (("a.npy", POINTS), ("f.npy", np.asfortranarray(POINTS)), ("half.npy", POINTS.astype("f2"))):
        np.save(folder / name, rows)
        yield name, folder / name
    np.savez_compressed(folder / "a.npz", X=POINTS, y=np.arange(N))
    yield "a member of an archive", f"{folder}/a.npz::X"
    yield "a folder of parts", write_parts(folder / "parts", POINTS)


def stores(folder):
    for name, options in (
        ("second", {"zarr_format": 2, "chunks": (333, 4)}),
        ("third", {"chunks": (1000, 6)}),
        ("sharded", {"chunks": (100, 6), "shards": (600, 6)}),
        ("half", {"chunks": (700, 6)}),
    ):
        rows = POINTS.astype("f2") if name == "half" else POINTS
        yield f"zarr {name}", zarr.create_array(folder / f"{name}.zarr", data=rows, **options)
        yield f"zarr {name} by its path", folder / f"{name}.zarr"
    if "rectilinear_chunks" in zarr.config.get("array"):  # from zarr 3.2 on
        with zarr.config.set({"array.rectilinear_chunks": True}):
            cuts = {"uneven": {"chunks": ((1, 1700, 1299), (4, 2))}}
            cuts["shards"] = {"chunks": (1, 2), "shards": ((1, 1700, 1299), (6,))}
            made = {name: zarr.create_array(folder / f"{name}.zarr", data=POINTS, **cut) for name, cut in cuts.items()}
        for name, array in made.items():
            yield f"zarr rectilinear {name}", array
            yield f"zarr rectilinear {name} by its path", folder / f"{name}.zarr"
    group = zarr.open_group(folder / "cells.zarr", mode="w")
    group.attrs["encoding-type"] = "anndata"
    group.create_array("X", data=POINTS[:, :2])
    group.create_array("obsm/X_pca", data=POINTS)
    yield "an AnnData store", folder / "cells.zarr"
    with h5py.File(folder / "cells.h5ad", "w") as file:
        file["X"] = POINTS[:, :2]
        file.create_dataset("obsm/X_pca", data=POINTS, chunks=(500, D), compression="gzip")
    yield "an AnnData file", folder / "cells.h5ad"
    yield "a data set of HDF5", h5py.File(folder / "cells.h5ad")["obsm/X_pca"]
    yield "an AnnData", SimpleNamespace(obs_names=IDS, X=POINTS[:, :2], obsm={"X_pca": POINTS})
    yield "an AnnData without components", SimpleNamespace(obs_names=IDS, X=POINTS, obsm={})


def chunked(folder):
    for name, chunks in (("rows", (700, D)), ("both", (700, 4)), ("odd", ((1, 2998, 1), D)), ("one", -1)):
        yield f"dask chunks: {name}", da.from_array(POINTS, chunks=chunks)


def tables(folder):
    wide, with_ids = pa.table(columns(POINTS)), {"id": IDS, "rank": np.arange(N)}
    vectors = {
        "lists": lists(POINTS),
        "fixed": fixed_lists(POINTS),
        "large": lists(POINTS, pa.large_list),
        "half": fixed_lists(POINTS.astype(np.float16)),
        "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(POINTS),
    }
    yield "a table of Arrow", wide
    yield "a batch of Arrow", wide.to_batches()[0]
    pq.write_table(wide, folder / "wide.parquet", row_group_size=700)
    yield "parquet columns", folder / "wide.parquet"
    for name, column in vectors.items():
        table = pa.table({**with_ids, "vector": column})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=1300)
        yield f"parquet {name}", folder / f"{name}.parquet"
        yield f"a table of {name}", table
        yield f"a column of {name}", column
    two = pa.table({"other": lists(POINTS[:, :2]), "vector": lists(POINTS)})
    pq.write_table(two, folder / "two.parquet")
    yield "one of two list columns", f"{folder}/two.parquet::vector"
    (folder / "folder").mkdir()
    for part in range(12):
        pq.write_table(
            pa.table({"vector": vectors["fixed"][part * 250 : (part + 1) * 250]}),
            folder / f"folder/part.{part}.parquet",
        )
    yield "a folder of parquet", folder / "folder"
    with pa.ipc.new_file(str(folder / "a.arrow"), wide.schema) as writer:
        writer.write_table(wide, max_chunksize=900)
    yield "an Arrow file", folder / "a.arrow"
    write_stream(folder / "stream.arrow", pa.table({**with_ids, "vector": vectors["lists"]}), 700)
    yield "an Arrow stream", folder / "stream.arrow"
    yield "a data set of Hugging Face", write_data_set(folder / "data", POINTS)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    return {name: given for make in (arrays, files, stores, chunked, tables) for name, given in make(folder)}


def test_all_forms_of_one_matrix_are_the_same_points(inputs):
    expected = survey(open_points(POINTS), Executor(), 1024).content
    assert len(inputs) >= 45
    assert {
        name for name, given in inputs.items() if survey(open_points(given), Executor(), 1024).content != expected
    } == set()


def write_rows(group, matrix):
    """Write what AnnData does of a matrix of SciPy by compressed rows."""
    for name in ("data", "indices", "indptr"):
        write = group.create_dataset if isinstance(group, h5py.Group) else group.create_array
        write(name, data=getattr(matrix, name))
    group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(matrix.shape)})


def sparse_forms(folder):
    rows = sparse.random_array((N, 40), density=0.05, format="csr", dtype=np.float32, rng=np.random.default_rng(1))
    yield "csr", rows
    for kind in ("csc", "coo", "bsr", "lil", "dok"):
        yield kind, rows.asformat(kind)
    for kind in ("csr", "csc", "coo", "bsr"):
        sparse.save_npz(folder / f"{kind}.npz", rows.asformat(kind))
        yield f"{kind} in a file", folder / f"{kind}.npz"
    np.savez(folder / "parts.npz", data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=rows.shape)
    yield "parts in an archive", folder / "parts.npz"
    with h5py.File(folder / "cells.h5ad", "w") as file:
        write_rows(file.create_group("X"), rows)
        write_rows(file.create_group("layers/counts"), rows)
    write_rows(zarr.open_group(folder / "cells.zarr", mode="w").create_group("X"), rows)
    yield "X of an AnnData file", folder / "cells.h5ad"
    yield "a layer of an AnnData file", f"{folder}/cells.h5ad::layers/counts"
    yield "X of an AnnData store", f"{folder}/cells.zarr::X"
    yield "an AnnData", SimpleNamespace(obs_names=IDS, X=rows, obsm={})


def test_all_forms_of_one_sparse_matrix_are_the_same_points(tmp_path):
    forms = dict(sparse_forms(tmp_path))
    expected = survey(open_points(forms["csr"]), Executor(), 1024)
    assert expected.dimensions.nonzeros == forms["csr"].nnz
    assert {
        name
        for name, given in forms.items()
        if survey(open_points(given), Executor(), 1024).content != expected.content
    } == set()


def test_all_forms_are_read_in_any_order(inputs):
    for name, given in inputs.items():
        source = open_points(given)
        assert source.shape == (N, D), name
        for start, stop in ((2000, 2900), (100, 1300), (0, 0), (N, N), (0, N)):
            np.testing.assert_array_equal(source.read(start, stop), POINTS[start:stop], name)


def test_functions_and_estimators_take_all_forms(inputs):
    expected = sm.knn_graph(POINTS, 3).indices
    for name in (
        *("slices", "a data set of HDF5", "a table of Arrow", "a column of fixed", "a data set of Hugging Face"),
        "a column of vectors",
    ):
        given = inputs[name]
        np.testing.assert_array_equal(points_in_memory(given) if name != "slices" else POINTS, POINTS)
        np.testing.assert_array_equal(sm.knn_graph(given, 3).indices[...], expected)
        model = sm.LandmarkPCA(n_landmarks=50).fit(given)
        assert (model.n_features_in_, model.transform(given).shape) == (D, (N, 2))
    assert sm.LandmarkPCA(n_landmarks=50).fit(inputs["a table of Arrow"]).feature_names_in_.tolist() == [
        f"x{column}" for column in range(D)
    ]
    assert isinstance(sm.knn_graph(inputs["a table of Arrow"], 3).indices, np.ndarray)
    assert isinstance(sm.knn_graph(inputs["a data set of HDF5"], 3).indices, zarr.Array)
    assert [is_in_memory(inputs[name]) for name in ("an array", "a table of Arrow", "slices")] == [True, True, False]
    assert not is_stored(inputs["only __array__"])
    sliced = Sliced()
    survey(open_points(sliced), Executor(), 1024)
    assert sliced.most == 1024


def test_chunks_of_dask_are_computed_once_a_pass():
    computed = []

    def chunk(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        computed.append(start)
        return POINTS[start:stop]

    for chunks in ((N,), (1, 1500, 1499), (500,) * 6):
        computed.clear()
        source = open_points(da.map_blocks(chunk, chunks=(chunks, D), dtype=POINTS.dtype, meta=POINTS[:0]))
        found = survey(source, Executor(), 1024)
        assert found.content == survey(open_points(POINTS), Executor(), 1024).content
        assert len(computed) == len(chunks)


@pytest.mark.parametrize("kept", [0, 3])
def test_chunks_of_dask_with_fewer_rows_than_it_says_are_refused(kept):
    lying = da.from_array(POINTS[:20], (5, D)).map_blocks(lambda rows: rows[:kept], dtype=POINTS.dtype, meta=POINTS[:0])
    with pytest.raises(DataError, match=r"gave an array of shape .* for rows \[2, 20\)"):
        open_points(lying).read(2, 20)


def test_chunks_of_dask_in_any_order_are_those_of_the_array():
    source = open_points(da.from_array(POINTS, (700, D)))
    for start, stop in ((0, 0), (10, 20), (650, 1500), (1400, 1500), (1390, N), (0, N), (5, 5), (2100, 2200)):
        np.testing.assert_array_equal(source.read(start, stop), POINTS[start:stop])


def test_frames_of_other_libraries_are_the_same_points():
    expected = survey(open_points(POINTS), Executor(), 1024).content
    forms = {}
    if pandas := optional("pandas"):
        frame = pandas.DataFrame(POINTS, columns=list(columns(POINTS)))
        forms |= {"pandas": frame, "vectors": pandas.Series(list(POINTS))}
        if frames := optional("dask.dataframe"):
            forms["dask"] = frames.from_pandas(frame, npartitions=5)
    if polars := optional("polars"):
        forms |= {"polars": polars.DataFrame(columns(POINTS)), "array": polars.Series(POINTS)}
        forms["list"] = polars.DataFrame({"id": IDS, "vector": polars.Series(POINTS).arr.to_list()})
    if not forms:
        pytest.skip("neither pandas nor polars is here")
    assert {
        name for name, given in forms.items() if survey(open_points(given), Executor(), 1024).content != expected
    } == set()


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([np.zeros(3), [0.0, 1.0, 2.0], np.zeros(2)], "3 numbers in row 0, 2 in row 2"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], "form no table"),
        ([np.ma.masked_array([1.0, 2.0], [True, False])], "1 masked values"),
        ([[1.0, 2.0], 3.0], "numeric dtype, got object"),
        ([["a", "b"], ["c", "d"]], "numeric dtype, got <U1"),
    ],
)
def test_vectors_that_form_no_table_are_refused_with_the_row(vectors, words):
    for given in (Column(vectors), np.asarray(Column(vectors))):
        with pytest.raises(DataError, match=words):
            open_points(given)


def optional(name):
    try:
        return __import__(name, fromlist=["x"])
    except ImportError:
        return None


def test_the_largest_of_uneven_chunks_is_what_is_held_and_missing_ones_are_counted(tmp_path):
    if "rectilinear_chunks" not in zarr.config.get("array"):
        pytest.skip("this zarr has no rectilinear chunks: it is older than 3.2")
    with zarr.config.set({"array.rectilinear_chunks": True}):
        zarr.create_array(tmp_path / "a.zarr", data=POINTS, chunks=((1, 1700, 1299), (4, 2)))
    source = open_points(tmp_path / "a.zarr")
    assert (source.held_bytes, source.preferred_rows, source.remark) == (1700 * D * 4, None, "")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).read(5, 1900), POINTS[5:1900])
    next(path for path in (tmp_path / "a.zarr" / "c").rglob("*") if path.is_file()).unlink()
    assert "1 of 6 chunks" in open_points(tmp_path / "a.zarr").remark


@pytest.mark.parametrize("made", ["zarr", "dask", "hdf5", "arrow"])
def test_chunks_that_are_larger_than_the_budget_are_refused_before_they_are_read(tmp_path, made):
    rows = np.zeros((40_000, 64), np.float32)  # 10 MB
    if made == "zarr":
        given = zarr.create_array(tmp_path / "a.zarr", data=rows, chunks=rows.shape)
    elif made == "dask":
        given = da.from_array(rows, chunks=-1)
    elif made == "arrow":
        given = tmp_path / "a.arrow"
        write_stream(given, pa.table({"vector": fixed_lists(rows)}), len(rows))
    else:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("X", data=rows, chunks=rows.shape, compression="lzf")
        given = f"{tmp_path}/a.h5::X"
    with pytest.raises(MemoryBudgetError, match=r"largest chunk, which is read whole and takes 10.24 MB"):
        survey(open_points(given), Executor.from_options("threads", 1, "8MB", None))


def test_sparse_rows_of_an_open_file_are_points_by_themselves(tmp_path):
    """What an AnnData has as X while its file is open has a group, and a method that reads all of it."""
    rows = sparse.random_array((50, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        for name in ("data", "indices", "indptr"):
            file[f"X/{name}"] = getattr(rows, name)
        file["X"].attrs.update({"encoding-type": "csr_matrix", "shape": rows.shape})
    with h5py.File(tmp_path / "cells.h5ad") as file:
        source = open_points(SimpleNamespace(group=file["X"], to_memory=None))
        np.testing.assert_array_equal(source.read(10, 40), rows[10:40].toarray())
