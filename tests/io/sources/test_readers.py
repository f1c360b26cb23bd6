import errno
import functools
import http.server
import pickle
import sys
import threading
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from scalemani.config.validation import check_finite_block
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, MemoryBudgetError, ScalemaniError, StoreError, UnsafeStoreError
from scalemani.io.sources import PointsSource, array_files, open_labels, open_lists, open_points
from scalemani.io.sources.base import as_store_errors
from scalemani.io.sources.tables import point_columns
from scalemani.runs.survey import survey

POINTS = np.random.default_rng(0).normal(size=(5000, 7)).astype(np.float32)
SPARSE = np.where(np.abs(POINTS) > 1.5, POINTS, 0)


def write_parquet(path, rows, **options):
    columns = {f"x{column}": values for column, values in enumerate(rows.T)}
    pyarrow.parquet.write_table(pa.table(columns), path, **options)


def parquet_folder(tmp_path):
    folder = tmp_path / "parts"
    (folder / "_metadata").mkdir(parents=True)
    for part, start in enumerate(range(0, 5000, 400)):  # part 10 sorts before part 2 as text
        write_parquet(folder / f"part.{part}.parquet", POINTS[start : start + 400], row_group_size=150)
    return folder


def h5ad(tmp_path):
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = SPARSE
        file.create_dataset("obsm/X_pca", data=POINTS, chunks=(600, 7))
        store_rows(file.create_group("layers/counts"), sparse.csr_array(SPARSE))
        store_rows(file.create_group("layers/columns"), sparse.csc_array(SPARSE), "csc_matrix")
    return path


def store_rows(group, matrix, encoding="csr_matrix"):
    for name in ("data", "indices", "indptr"):
        values = getattr(matrix, name)
        group.create_dataset(name, data=values) if isinstance(group, h5py.Group) else group.create_array(
            name, data=values
        )
    group.attrs.update({"encoding-type": encoding, "shape": list(matrix.shape)})


def anndata_zarr(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    group.attrs["encoding-type"] = "anndata"
    group.create_array("obsm/X_pca", data=POINTS)
    store_rows(group.create_group("X"), sparse.csr_array(SPARSE))
    return tmp_path / "a.zarr"


def saved(tmp_path, save, name, *arrays, **named):
    save(tmp_path / name, *arrays, **named)
    return tmp_path / name


def every_source(tmp_path):
    """Return (points as a user passes them, the rows they stand for) of every kind that can be read."""
    npz = saved(tmp_path, np.savez_compressed, "a.npz", X=POINTS, y=np.arange(5000))
    fortran = saved(tmp_path, np.savez, "f.npz", np.asfortranarray(POINTS))
    whole = tmp_path / "one.parquet"
    write_parquet(whole, POINTS, row_group_size=1300)
    zarr.save_array(tmp_path / "plain.zarr", POINTS)
    sharded = zarr.create_array(tmp_path / "s.zarr", shape=POINTS.shape, dtype="f4", chunks=(100, 7), shards=(500, 7))
    sharded[:] = POINTS
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("points", data=POINTS)
    big_endian = saved(tmp_path, np.save, "be.npy", POINTS.astype(">f4"))
    second = zarr.create_array(tmp_path / "v2.zarr", data=POINTS, chunks=(333, 4), zarr_format=2)
    rows = sparse.csr_array(SPARSE)
    scipy_file = saved(tmp_path, sparse.save_npz, "sparse.npz", rows)
    coo_file = saved(tmp_path, sparse.save_npz, "coo.npz", rows.tocoo())
    parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr", "shape")}
    parts_file = saved(tmp_path, np.savez, "parts.npz", y=np.zeros(5000), **parts)
    adata, hdf = anndata_zarr(tmp_path), h5ad(tmp_path)
    dense = [
        *(POINTS, POINTS.tolist(), np.asfortranarray(POINTS), np.ma.masked_array(POINTS)),
        *(saved(tmp_path, np.save, "a.npy", POINTS), saved(tmp_path, np.save, "f.npy", np.asfortranarray(POINTS))),
        *(big_endian, npz, f"{npz}::X", f"{npz}::X.npy", fortran, tmp_path / "plain.zarr", f"{tmp_path}/g.zarr"),
        *(f"{tmp_path}/g.zarr::points", sharded, second, tmp_path / "v2.zarr", da.from_array(POINTS, chunks=(700, 3))),
        *(whole, parquet_folder(tmp_path), f"{hdf}::obsm/X_pca", f"{adata}::obsm/X_pca", hdf, adata),
    ]
    thin = [f"{hdf}::X", f"{hdf}::layers/counts", f"{adata}::X", scipy_file, coo_file, parts_file, rows, rows.tocsc()]
    return [(points, POINTS) for points in dense] + [(points, SPARSE) for points in thin]


def test_every_source_reads_the_same_rows_in_any_order(tmp_path):
    for points, expected in every_source(tmp_path):
        source = open_points(points)
        assert isinstance(source, PointsSource)
        assert source.shape == expected.shape
        assert source.dtype.isnative
        assert source.preferred_rows is None or source.preferred_rows > 0
        for start, stop in ((0, 1000), (1000, 2500), (2600, 2600), (2600, 5000), (0, 5000), (1234, 1235), (5000, 5000)):
            rows = source.read(start, stop)
            assert rows.dtype == source.dtype, source.description
            assert rows.flags.c_contiguous
            assert np.array_equal(rows, expected[start:stop]), source.description


def test_sources_are_read_by_several_threads_and_other_processes(tmp_path):
    starts = list(range(0, 5000, 250))
    with ThreadPoolExecutor(4) as pool:
        for points, expected in every_source(tmp_path):
            source = open_points(points)
            rows = list(pool.map(lambda start, source=source: source.read(start, start + 250), starts))
            assert np.array_equal(np.concatenate(rows), expected)
            if not isinstance(points, da.Array):
                assert np.array_equal(pickle.loads(pickle.dumps(source)).read(40, 90), expected[40:90])


@settings(deadline=None, max_examples=20)
@given(cuts=st.lists(st.integers(0, 5000), max_size=6))
def test_streams_give_the_same_rows_for_any_cuts(tmp_path_factory, cuts):
    folder = tmp_path_factory.getbasetemp() / "streams"
    if not folder.exists():
        folder.mkdir()
        np.savez_compressed(folder / "a.npz", X=POINTS)
        parquet_folder(folder)
    for path in (folder / "a.npz", folder / "parts"):
        source = open_points(path)
        for start, stop in zip(cuts, [max(cut, 2500) for cut in cuts], strict=True):
            stop = max(start, stop)
            assert np.array_equal(source.read(start, stop), POINTS[start:stop])


def test_stored_members_of_archives_are_read_in_bounded_memory(tmp_path):
    rows = np.zeros((200_000, 100), dtype=np.float32)  # 80 MB
    np.savez(tmp_path / "a.npz", X=rows, y=np.zeros(7), Z=np.asfortranarray(rows[:100]))
    del rows
    tracemalloc.start()
    source = open_points(f"{tmp_path}/a.npz::X")
    total = sum(float(source.read(start, start + 10_000).sum()) for start in range(190_000, -1, -10_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 0
    assert peak < 20e6


def test_compressed_members_are_opened_once_for_their_header_and_once_for_their_rows(tmp_path, spy):
    points, opens = np.random.default_rng(0).normal(size=(50, 4)), spy(array_files, "opened_array")
    np.savez_compressed(tmp_path / "p.npz", X=points)
    source = open_points(tmp_path / "p.npz")
    assert len(opens) == 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).read(10, 50), points[10:])
    assert len(opens) == 3  # by the process that got it: header and rows


def test_compressed_members_are_read_whole_and_released_behind_their_last_row(tmp_path):
    rows = np.zeros((20_000, 100), dtype=np.float32)  # 8 MB
    np.savez_compressed(tmp_path / "a.npz", X=rows)
    source = open_points(tmp_path / "a.npz")
    assert source.held_bytes == rows.nbytes
    tracemalloc.start()
    source.read(0, 10_000)
    held = tracemalloc.get_traced_memory()[0]
    source.read(10_000, 20_000)
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held > 0.9 * rows.nbytes
    assert left < 0.1 * rows.nbytes
    with pytest.raises(MemoryBudgetError, match=r"takes 8.00 MB, .* those of a compressed .npz by numpy.savez"):
        survey(source, Executor.from_options("threads", 1, "6MB", None))


# Dtypes and layouts, cases 44 to 53


@pytest.mark.parametrize(
    ("input_dtype", "kept"),
    [("u1", "u1"), ("i1", "i1"), ("i4", "f8"), ("i8", "f8"), ("f2", "f4"), ("?", "u1"), (">f8", "f8"), (">i4", "f8")],
)
def test_dtypes_are_kept_or_cast_alike_everywhere(tmp_path, input_dtype, kept):
    rows = np.arange(12).reshape(4, 3).astype(input_dtype)
    np.save(tmp_path / "a.npy", rows)
    np.savez(tmp_path / "a.npz", rows)
    for points in (rows, tmp_path / "a.npy", tmp_path / "a.npz", da.from_array(rows)):
        source = open_points(points)
        assert source.dtype == np.dtype(kept)
        assert np.array_equal(source.read(0, 4), rows.astype(kept))


def test_strides_and_read_only_maps(tmp_path):
    np.save(tmp_path / "a.npy", POINTS)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for points in (POINTS[::-1], POINTS[:, ::-2], mapped, mapped[::3].T.copy().T):
        rows = open_points(points).read(10, 500)
        assert np.array_equal(rows, np.asarray(points)[10:500])
        assert rows.flags.c_contiguous


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (POINTS.astype(complex), "Complex data not supported"),
        (np.array([["a", "b"]]), "numeric dtype"),
        (np.zeros((3, 2), dtype="M8[s]"), "numeric dtype"),
        (np.zeros((3, 2), dtype=[("x", "f4"), ("y", "f4")]), "numeric dtype"),
        (np.ma.masked_array(POINTS, POINTS > 1), "masked values"),
        (POINTS[0], "Expected 2D array, got 1D"),
        (np.zeros((2, 2, 2)), "Expected 2D array, got 3D"),
        (np.float64(3), "Expected 2D array, got 0D"),
        (np.zeros((3, 0)), "0 feature"),
        ([[1, 2], [3]], "differ in length"),
        (np.array([[70000.0, 1]]).clip(0, None).astype(object), "numeric dtype"),
    ],
)
def test_arrays_that_are_refused(tmp_path, points, message):
    with pytest.raises(DataError, match=message):
        open_points(points)
    if isinstance(points, np.ndarray) and not points.dtype.hasobject and not np.ma.isMaskedArray(points):
        np.save(tmp_path / "a.npy", points)
        with pytest.raises(DataError, match=message):
            open_points(tmp_path / "a.npy")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_read_and_found_with_its_row(tmp_path, value):
    rows = POINTS.copy()
    rows[4321, 2] = value
    np.save(tmp_path / "a.npy", rows)
    source = open_points(tmp_path / "a.npy")
    with pytest.raises(DataError, match="row 4321, column 2"):
        check_finite_block(source.read(4000, 5000), 4000)


def test_half_precision_overflow_is_found():
    with np.errstate(over="ignore"), pytest.raises(DataError, match="finite"):
        open_points(np.array([[70000.0, 1.0]]).astype(np.float16))


def test_one_row_one_column_and_uneven_last_block():
    assert open_points([[1.0]]).shape == (1, 1)
    source = open_points(zarr.array(POINTS, chunks=(512, 7)))
    assert source.preferred_rows == 512
    assert np.array_equal(source.read(4608, 5000), POINTS[4608:])
    with pytest.raises(DataError, match="rows \\[4608, 5120\\) requested"):
        source.read(4608, 5120)


# Files that are damaged, unsafe, or not what was meant: cases 35, 51, 60 to 63, 83 to 90


@pytest.mark.parametrize("keep", [0, 5, 60, 130, 70_000])
def test_truncated_npy(tmp_path, keep):
    np.save(tmp_path / "a.npy", POINTS)
    content = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(content[:keep])
    with pytest.raises(DataError, match="truncated"):
        open_points(tmp_path / "a.npy")


def test_npy_that_shrinks_while_it_is_read(tmp_path):
    for rows in (POINTS, np.asfortranarray(POINTS)):
        np.save(tmp_path / "a.npy", rows)
        source = open_points(tmp_path / "a.npy")
        (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:1000])
        with pytest.raises(DataError, match="truncated"):
            source.read(4000, 5000)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_archives_and_tables(tmp_path, share):
    paths = [saved(tmp_path, np.savez_compressed, "a.npz", X=POINTS), h5ad(tmp_path), tmp_path / "a.parquet"]
    paths.append(saved(tmp_path, sparse.save_npz, "s.npz", sparse.csr_array(SPARSE)))
    write_parquet(paths[2], POINTS)
    for path in paths:
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(DataError, match="truncated"):
            open_points(path).read(0, 5000)


def test_flipped_bits_in_an_archive(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=POINTS)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 2] ^= 8
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        open_points(tmp_path / "a.npz").read(0, 5000)


class Canary:
    def __reduce__(self):
        return open, ("canary", "w")


def test_pickled_content_is_never_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    objects = np.array([[Canary(), 1]], dtype=object)
    np.save("a.npy", objects, allow_pickle=True)
    np.savez("a.npz", allow_pickle=True, X=objects)
    for opener in (open_points, open_labels):
        for name in ("a.npy", "a.npz::X"):
            with pytest.raises(UnsafeStoreError, match="pickle"):
                opener(name)
    with pytest.raises(ConfigError, match="no arrays of numbers"):
        open_points("a.npz")
    (tmp_path / "plain.npy").write_bytes(pickle.dumps(Canary()))
    with pytest.raises(DataError, match=r"no \.npy file"):
        open_points("plain.npy")
    assert not (tmp_path / "canary").exists()


def test_zarr_with_a_codec_that_runs_code(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=POINTS, zarr_format=2)
    metadata = (tmp_path / "a.zarr" / ".zarray").read_text()
    (tmp_path / "a.zarr" / ".zarray").write_text(metadata.replace('"filters": null', '"filters": [{"id": "pickle"}]'))
    with pytest.raises(UnsafeStoreError, match="pickle"):
        open_points(tmp_path / "a.zarr")


def test_archive_members(tmp_path):
    np.savez(tmp_path / "a.npz", first=POINTS, second=POINTS, y=np.zeros(5000))
    with pytest.raises(ConfigError, match=r"say which array.*::NAME; it has first \(5000, 7\) float32, second"):
        open_points(tmp_path / "a.npz")
    with pytest.raises(ConfigError, match="no array 'third'"):
        open_points(f"{tmp_path}/a.npz::third")
    with pytest.raises(DataError, match="Expected 2D"):
        open_points(f"{tmp_path}/a.npz::y")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    with pytest.raises(ConfigError, match="no arrays of numbers"):
        open_points(tmp_path / "b.npz")


def test_missing_and_unknown_files(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.xlsx").write_text("1,2\n")
    for path, kind, message in (
        ("missing.npy", StoreError, "no file or directory"),
        ("empty", ConfigError, "neither a zarr store nor Parquet"),
        ("a.xlsx", ConfigError, r"\.xlsx is not among \.npy"),
        ("missing.zarr::X", StoreError, "no file or directory"),
        ("a.xlsx::X", ConfigError, "not among"),
    ):
        with pytest.raises(kind, match=message) as caught:
            open_points(tmp_path / path)
        assert caught.value.exit_status == 2
        assert "\n" not in str(caught.value)
    np.save(tmp_path / "a.npy", POINTS)
    with pytest.raises(ConfigError, match="leave out ::X"):
        open_points(f"{tmp_path}/a.npy::X")


def test_zarr_groups_and_members(tmp_path):
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    with pytest.raises(StoreError, match="say which array"):
        open_points(tmp_path / "g.zarr")
    group.create_array("one", data=POINTS)
    group.create_array("two", data=POINTS)
    with pytest.raises(StoreError, match=r"holds one, two"):
        open_points(tmp_path / "g.zarr")
    with pytest.raises(StoreError, match=r"no zarr array at .*three; it holds one, two"):
        open_points(f"{tmp_path}/g.zarr::three")
    (tmp_path / "broken.zarr").mkdir()
    with pytest.raises(StoreError, match="not a complete zarr store"):
        open_points(tmp_path / "broken.zarr")
    (tmp_path / "broken.zarr" / "zarr.json").write_text("{")
    with pytest.raises(StoreError, match="cannot open"):
        open_points(tmp_path / "broken.zarr")


def test_damaged_zarr_chunk(tmp_path):
    zarr.save_array(tmp_path / "a.zarr", POINTS)
    chunk = next(path for path in (tmp_path / "a.zarr" / "c").rglob("*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:100])
    with pytest.raises(StoreError, match="cannot read rows"):
        open_points(tmp_path / "a.zarr").read(0, 5000)


def test_h5ad_members(tmp_path):
    path = h5ad(tmp_path)
    with pytest.raises(ConfigError, match="next to it there is X_pca"):
        open_points(f"{path}::obsm/X_umap")
    with pytest.raises(DataError, match="csr_matrix only"):
        open_points(f"{path}::layers/columns")
    with pytest.raises(DataError, match="no matrix"):
        open_points(f"{path}::layers")


def columns_in(tmp_path, kind, matrix):
    """Where a matrix is stored by columns, as AnnData does in HDF5 and zarr."""
    if kind == "zarr":
        store_rows(zarr.open_group(tmp_path / "c.zarr", mode="w").create_group("obsp/c"), matrix, "csc_matrix")
        return f"{tmp_path}/c.zarr::obsp/c"
    with h5py.File(tmp_path / "c.h5ad", "w") as file:
        store_rows(file.create_group("obsp/c"), matrix, "csc_matrix")
    return f"{tmp_path}/c.h5ad::obsp/c"


@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
def test_matrices_between_points_are_read_by_rows_from_columns_too(tmp_path, kind):
    """Neighbours at distance zero are entries that are stored, and lists are of rows: the transpose has others."""
    indices = np.array([[1, 2], [0, 3], [0, 1], [1, 2]])
    distances = np.array([[0.0, 2.0], [0.0, 3.0], [2.0, 5.0], [3.0, 4.0]])
    rows = sparse.csr_array((distances.ravel(), indices.ravel(), np.arange(0, 9, 2)), (4, 4))
    place = columns_in(tmp_path, kind, rows.tocsc())
    source = open_points(place)
    np.testing.assert_array_equal(source.read(1, 4), rows.toarray()[1:])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).read(0, 4), rows.toarray())
    lists = open_lists(place)
    np.testing.assert_array_equal(lists.indices, indices)
    np.testing.assert_array_equal(lists.distances, distances)


@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
def test_columns_that_no_matrix_has_are_refused(tmp_path, kind):
    matrix = sparse.csc_array(np.eye(5))
    matrix.indices[2] = 7
    with pytest.raises((DataError, StoreError), match=r"indices|index"):
        open_points(columns_in(tmp_path, kind, matrix))
    short = SimpleNamespace(data=np.ones(5), indices=np.arange(5), indptr=np.arange(5), shape=(5, 5))
    with pytest.raises((DataError, StoreError), match="damaged"):
        open_points(columns_in(tmp_path, kind, short))


def test_parquet_columns(tmp_path):
    mixed = pa.table({"x": [1.0, 2.0], "name": ["a", "b"], "y": [1, 2], "__index_level_0__": [7, 9]})
    pyarrow.parquet.write_table(mixed, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"name \(string\)"):
        open_points(tmp_path / "a.parquet")
    assert open_points(f"{tmp_path}/a.parquet::y,x").read(0, 2).tolist() == [[1, 1], [2, 2]]
    with pytest.raises(ConfigError, match="no column z"):
        open_points(f"{tmp_path}/a.parquet::x,z")
    several = pa.table({"f1": [1], "f10": [2], "g": [3], "f2": [4], "f*": [5], "ff.": ["text"]})
    pyarrow.parquet.write_table(several, tmp_path / "s.parquet")
    for asked, taken in (("f1*", [1, 2]), ("g,f1*,f1", [3, 1, 2, 1]), ("f*", [5]), ("*2", [4]), ("g*,*1,*g", [3, 1])):
        assert open_points(f"{tmp_path}/s.parquet::{asked}").read(0, 1).tolist() == [taken]
    with pytest.raises(ConfigError, match=r"no column h\*; it has f1, f10"):
        open_points(f"{tmp_path}/s.parquet::g,h*")
    pyarrow.parquet.write_table(mixed.drop_columns("name"), tmp_path / "b.parquet")
    assert open_points(tmp_path / "b.parquet").shape == (2, 2)
    pyarrow.parquet.write_table(pa.table({"x": pa.array([1, None], pa.int16())}), tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"missing values in x \(1\)"):
        open_points(tmp_path / "c.parquet").read(0, 2)


@pytest.mark.parametrize("second", [POINTS[:10, :6], POINTS[:10].astype(np.float64)])
def test_parquet_files_that_do_not_fit_together(tmp_path, second):
    write_parquet(tmp_path / "a.parquet", POINTS)
    write_parquet(tmp_path / "b.parquet", second)
    with pytest.raises(DataError, match=r"same columns: .*b\.parquet has .*a\.parquet has 7 that read as float32"):
        open_points(tmp_path)


class CountedSchema:
    """A schema of Arrow that counts how often the list of its names is built."""

    def __init__(self, n_columns):
        self.schema, self.lists = pa.schema([(f"c{number}", pa.float32()) for number in range(n_columns)]), 0

    @property
    def names(self):
        self.lists += 1
        return self.schema.names

    @property
    def metadata(self):
        return self.schema.metadata

    def field(self, name):
        return self.schema.field(name)


@pytest.mark.parametrize("asked", [None, ("c*", "c3")])
def test_the_work_to_open_a_wide_table_grows_with_its_columns_and_not_with_their_square(asked):
    lists = []
    for n_columns in (10, 1000):
        schema = CountedSchema(n_columns)
        assert len(point_columns(schema, asked, "wide").names) == n_columns + (asked is not None)
        lists.append(schema.lists)
    assert lists[0] == lists[1] <= 3


def test_dask_arrays_of_unknown_length():
    rows = da.from_array(POINTS, chunks=1000)
    with pytest.raises(DataError, match="compute_chunk_sizes"):
        open_points(rows[rows[:, 0] > 0])


def test_sparse_rows_with_damaged_parts(tmp_path):
    rows = sparse.csr_array(SPARSE)
    parts = {name: getattr(rows, name).copy() for name in ("data", "indices", "indptr")} | {"shape": rows.shape}
    parts["indices"][17] = 7
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(DataError, match="column indices"):
        open_points(tmp_path / "a.npz").read(0, 5000)
    parts["indptr"] = parts["indptr"][:-1]
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(DataError, match="row pointers"):
        open_points(tmp_path / "a.npz")


@pytest.mark.parametrize(("module", "name"), [("pyarrow.parquet", "a.parquet"), ("h5py", "a.h5ad")])
def test_missing_extras_are_named(tmp_path, monkeypatch, module, name):
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"needs (\w+): pip install '{module.partition('.')[0]}>=\S+'$"):
        open_points(tmp_path / name)


def test_object_store_without_its_extra_and_without_telling_secrets(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ScalemaniError) as caught:
        open_points("s3://user:hunter2@bucket/points.zarr?token=hunter2")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"pip install 'obstore>=\S+'"):
        open_points("s3://bucket/points.zarr")


def test_a_store_of_a_web_server(tmp_path):
    zarr.create_array(tmp_path / "points.zarr", data=POINTS, chunks=(20, POINTS.shape[1]))
    zarr.create_group(tmp_path / "group.zarr").create_array("X", data=POINTS)
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for source in (open_points(f"{url}/points.zarr"), open_points(f"{url}/group.zarr::X")):
            assert source.remote
            for copy in (source, pickle.loads(pickle.dumps(source))):
                assert np.array_equal(copy.read(5, 50), POINTS[5:50])
        with pytest.raises(StoreError, match="say which array"):
            open_points(f"{url}/group.zarr")
        with pytest.raises(StoreError, match=r"no zarr array at .*none\.zarr"):
            open_points(f"{url}/none.zarr")
        server.shutdown()


def test_url_of_a_store():
    zarr.create_array("memory://test_url_of_a_store.zarr", data=POINTS)
    assert np.array_equal(open_points("memory://test_url_of_a_store.zarr").read(5, 50), POINTS[5:50])


@pytest.mark.parametrize(
    "url",
    [
        *("https://server/points.npy", "ftp://bucket/cells.h5ad::obsm/X_pca", "s3://bucket/a.npz::X"),
        *("https://server/part.PARQUET", "s3://bucket/a.arrow", "https://server/a.npy?token=hunter2"),
    ],
)
def test_a_file_behind_a_url_is_refused_with_what_to_do(url):
    for opener in (open_points, open_lists):
        with pytest.raises(
            ConfigError, match=r"://\w+/\w+\.\w+ is a file behind a URL.*copy it to this machine"
        ) as caught:
            opener(url)
        assert "hunter2" not in str(caught.value)


# Labels


def test_labels_of_every_kind(tmp_path):
    numbers, words = np.arange(9) % 4, np.array(["a", "b", "c"])
    np.save(tmp_path / "a.npy", numbers)
    np.savez(tmp_path / "a.npz", X=POINTS[:9], y=numbers)
    np.savez(tmp_path / "words.npz", y=words)
    (tmp_path / "a.txt").write_text("3\n1\n2\n")
    (tmp_path / "b.csv").write_bytes("0.5\r\n1\r\n".encode("utf-8-sig"))
    (tmp_path / "c.txt").write_text("one\ntwo\n")
    assert np.array_equal(open_labels(tmp_path / "a.npy", 9), numbers)
    assert np.array_equal(open_labels(tmp_path / "a.npz"), numbers)
    assert np.array_equal(open_labels(f"{tmp_path}/a.npz::y"), numbers)
    assert np.array_equal(open_labels(tmp_path / "words.npz"), words)
    assert open_labels(tmp_path / "a.txt").tolist() == [3, 1, 2]
    assert open_labels(tmp_path / "b.csv").tolist() == [0.5, 1.0]
    assert open_labels(tmp_path / "c.txt").tolist() == ["one", "two"]
    assert open_labels(np.array([["x"], ["y"]], dtype=object)).tolist() == ["x", "y"]
    assert open_labels(np.array([b"x"])).tolist() == ["x"]


def test_labels_that_are_refused(tmp_path):
    (tmp_path / "blank.txt").write_text("1\n\n2\n")
    (tmp_path / "table.csv").write_text("1\n2,3\n")
    (tmp_path / "latin.txt").write_bytes(b"\xe9t\xe9\n")
    (tmp_path / "folder.npy").mkdir()
    np.save(tmp_path / "cut.npy", np.arange(900))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:500])
    for name, kind, message in (
        ("blank.txt", DataError, "line 2"),
        ("table.csv", DataError, "line 2"),
        ("latin.txt", DataError, "UTF-8"),
        ("cut.npy", DataError, "truncated"),
        ("missing.npy", StoreError, "no file"),
        ("folder.npy", StoreError, "directory"),
        ("a.xlsx", ConfigError, "allowed"),
    ):
        with pytest.raises(kind, match=message):
            open_labels(tmp_path / name)
    with pytest.raises(DataError, match="3 labels for 4 points"):
        open_labels([1, 2, 3], 4)
    with pytest.raises(DataError, match="shape"):
        open_labels(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.EIO, "Input/output error"), 1),
        (OSError(errno.ESTALE, "Stale file handle"), 1),
        (OSError("truncated file"), 2),
        (ValueError("damaged"), 2),
        (FileNotFoundError(errno.ENOENT, "no file"), 2),
    ],
)
def test_rows_that_cannot_be_read_now_have_the_status_of_what_may_pass(error, status):
    with pytest.raises(StoreError, match=r"cannot read rows \[3, 5\) of p") as told, as_store_errors("points", 3, 5):
        raise error
    assert told.value.exit_status == status
    assert ("same command again" in str(told.value)) == (status == 1)
