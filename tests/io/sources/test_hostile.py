"""Points that would crash compiled code, or lose something without a word: told of, or refused with a reason."""

import subprocess
import sys

import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from scipy import sparse

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, ScalemaniWarning
from scalemani.io.sources import map_points, open_labels, open_points
from scalemani.io.sources.side_data import with_labels
from scalemani.runs.walk import plan_run
from scalemani.store.places import open_objects

ROWS = np.random.default_rng(0).random((400, 3))
FAR = 10**9


def damaged(matrix):
    """Return a matrix one of whose indices leads out of it."""
    if matrix.format == "coo":
        matrix.row[5] = FAR
    else:
        matrix.indices[5] = FAR
    return matrix


def saved(folder, matrix):
    """Save a matrix as `save_npz` would, without its checks."""
    parts = {"format": np.array(matrix.format.encode()), "shape": np.array(matrix.shape), "data": matrix.data}
    names = ("row", "col") if matrix.format == "coo" else ("indices", "indptr")
    np.savez(folder / "m.npz", **parts, **{name: getattr(matrix, name) for name in names})
    return folder / "m.npz"


IN_MEMORY = """
import sys
import numpy as np
from scipy import sparse
from scalemani.errors import (ConfigError, DataError)
from scalemani.io.sources import open_points
for format in ("csr", "csc", "bsr", "coo"):
    matrix = sparse.random_array((400, 3), density=0.9, format=format)
    (matrix.row if format == "coo" else matrix.indices)[5] = 10**9
    try:
        open_points(matrix).read(0, 400)
    except DataError as error:
        assert "sparse" in str(error) or "leave [0, 3)" in str(error), error
        continue
    sys.exit(f"{format} was taken")
"""


def test_indices_that_leave_a_matrix_in_memory_are_refused_before_compiled_code_follows_them():
    done = subprocess.run([sys.executable, "-c", IN_MEMORY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", [sparse.csc_array, sparse.coo_array, sparse.bsr_array, sparse.csr_array])
def test_indices_that_leave_a_matrix_in_a_file_are_refused_with_status_2(tmp_path, kind):
    path = saved(tmp_path, damaged(kind(ROWS)))
    command = [sys.executable, "-m", "scalemani", "plan", str(path), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("part", ["format", "shape", "data", "indptr"])
def test_parts_of_a_sparse_file_of_another_kind_are_refused(tmp_path, part):
    matrix = sparse.csc_array(ROWS)
    parts = {"format": np.array(b"csc"), "shape": np.array(matrix.shape)}
    parts |= {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    np.savez(tmp_path / "m.npz", **{**parts, part: np.array(7)})
    with pytest.raises(DataError):
        open_points(tmp_path / "m.npz")


def test_true_written_twice_is_true():
    matrix = sparse.csr_array((np.ones(3, bool), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(open_points(matrix).read(0, 2), matrix.toarray())


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("given", [np.asarray, lambda rows: da.from_array(rows, chunks=(100, 3)), sparse.csr_array])
def test_integers_that_lose_digits_are_refused_with_their_row(dtype, given):
    rows = np.arange(1200).reshape(400, 3).astype(dtype)
    np.testing.assert_array_equal(open_points(given(rows)).read(0, 400), rows)
    rows[317, 1] = 2**60 + 1
    with pytest.raises(DataError, match="first at row 317, column 1: subtract the least value"):
        open_points(given(rows)).read(0, 400)


def test_integers_of_a_file_that_lose_digits_are_refused_with_their_row(tmp_path):
    rows = -np.arange(1200).reshape(400, 3)
    rows[250] -= 2**61
    np.save(tmp_path / "points.npy", rows)
    with pytest.raises(DataError, match=r"1 of rows \[200, 400\), the first at row 250"):
        open_points(tmp_path / "points.npy").read(200, 400)


class Frame:
    """Columns of several types that NumPy makes one table of, as frames of pandas are."""

    def __init__(self, table):
        self.columns, self.iloc = list(table), Columns(list(table.values()))

    def __array__(self, dtype=None, copy=None):
        return np.column_stack(self.iloc.arrays)


class Columns:
    """Columns by their numbers."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __getitem__(self, place):
        return self.arrays[place[1]]


def written(table, path):
    pq.write_table(pa.table(table), path)
    return path


MIXED = {
    "parquet": lambda table, folder: written(table, folder / "mixed.parquet"),
    "arrow": lambda table, folder: pa.table(table),
    "frame": lambda table, folder: Frame(table),
    "rows": lambda table, folder: rows_of(table),
    "vectors": lambda table, folder: column_of_vectors(table),
    "lists": lambda table, folder: pa.table({"vector": pa.array([[0, 7, value] for value in table["stamp"].tolist()])}),
}


def rows_of(table):
    return list(zip(*(values.tolist() for values in table.values()), strict=True))


def column_of_vectors(table):
    rows = np.empty(len(table["stamp"]), object)
    rows[:] = rows_of(table)
    return rows


@pytest.mark.parametrize("form", MIXED)
@pytest.mark.parametrize(
    ("kind", "other"), [(np.int64, np.linspace(0, 1, 500)), (np.uint64, np.arange(-250, 250)), (np.int64, None)]
)
def test_integers_beside_columns_of_another_type_are_refused_with_their_column_and_row(tmp_path, form, kind, other):
    stamps = np.arange(500).astype(kind)
    others = {} if other is None else {"other": other}
    taken = open_points(MIXED[form]({"small": np.arange(500, dtype=np.int8), **others, "stamp": stamps}, tmp_path))
    np.testing.assert_array_equal(taken.read(0, 500)[:, -1], stamps)
    stamps[490] = 2**53 + 1
    column = "stamp" if form in ("parquet", "arrow", "frame") else str(1 + len(others))
    column = "2" if form == "lists" else column
    with pytest.raises(DataError, match=rf"first at row 490, column {column}: subtract the least value"):
        open_points(MIXED[form]({"small": np.arange(500, dtype=np.int8), **others, "stamp": stamps}, tmp_path)).read(
            0, 500
        )


def test_large_floats_beside_integers_are_taken():
    rows = [[2.0**60, 1], [1e300, 2], [2**53, 3]]
    np.testing.assert_array_equal(open_points(rows).read(0, 3), np.array(rows, np.float64))


def test_integers_that_lose_digits_are_refused_in_the_parts_of_a_dask_frame():
    frames = pytest.importorskip("dask.dataframe")
    table = {"a": [1, 2, 3, 4], "b": [0.5, 1.5, 2.5, 3.5]}
    np.testing.assert_array_equal(
        open_points(frames.from_dict(table, 2)).read(0, 4), np.column_stack(list(table.values()))
    )
    table["a"][3] = 2**60 + 1
    with pytest.raises(DataError, match="column a"):
        open_points(frames.from_dict(table, 2))


def test_masks_of_dask_arrays_and_of_lists_are_seen():
    masked = np.ma.masked_less(ROWS, 0.1)
    n_masked = int(masked.mask.sum())
    with pytest.raises(DataError, match=f"{n_masked} masked values"):
        open_points(list(masked))
    with pytest.raises(DataError, match=f"{n_masked} masked values"):
        open_points(da.from_array(masked, chunks=(400, 3))).read(0, 400)
    with pytest.raises(DataError, match="masked values"):
        sm.LaplacianEigenmaps(perplexity=5).fit(da.from_array(masked, chunks=(100, 3)))


def test_a_dask_array_that_gives_other_numbers_than_it_says_is_refused():
    def wrong(block):
        return block * (1 + 1j)

    array = da.from_array(ROWS, chunks=(100, 3)).map_blocks(wrong, dtype=np.float64, meta=np.empty((0, 0)))
    with pytest.raises(DataError, match="Complex data not supported"):
        open_points(array).read(0, 100)


@pytest.mark.parametrize("options", [{"zarr_format": 3}, {"zarr_format": 2}, {"shards": (200, 3)}])
def test_missing_chunks_are_counted_and_told_of_with_every_face(tmp_path, options, listening):
    array = zarr.create_array(tmp_path / "points.zarr", shape=(400, 3), dtype="f8", chunks=(100, 3), **options)
    array[:] = ROWS
    assert open_points(tmp_path / "points.zarr").remark == ""
    chunks = [path for path in (tmp_path / "points.zarr").rglob("*") if path.name[0].isdigit() or path.name == "0"]
    next(path for path in chunks if path.is_file()).unlink()
    source = open_points(tmp_path / "points.zarr")
    missing = 2 if "shards" in options else 1
    assert f"{missing} of 4 chunks of {tmp_path / 'points.zarr'} are missing and read as 0.0" in source.remark
    given = with_labels(map_points("cosine", source), np.arange(400) % 2)
    assert given.remark == source.remark
    executor = Executor(workers=1, progress=listening)
    plan_run(source, tmp_path / "run", "laplacian-eigenmaps", Parameters(), executor)
    assert source.remark in listening.warned


def test_chunks_that_are_missing_in_new_points_are_told_of(tmp_path):
    model = sm.LaplacianEigenmaps(n_landmarks=50, perplexity=5, random_state=0).fit(ROWS)
    array = zarr.create_array(tmp_path / "new.zarr", shape=(20, 3), dtype="f8", chunks=(10, 3))
    array[:10] = ROWS[:10]
    with pytest.warns(sm.errors.ScalemaniWarning, match="1 of 2 chunks"):
        model.transform(tmp_path / "new.zarr")


def damaged_cells(path, left, **options):
    """Write an AnnData of which `left`, the path of a dataset, lacks its last chunk, as a writer that was killed."""
    counts = sparse.random_array((400, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    values = {
        "X": ROWS,
        "obsm/X_pca": ROWS[:, :2],
        "layers/counts/data": counts.data,
        "layers/counts/indices": counts.indices,
        "layers/counts/indptr": counts.indptr,
        "obs/size": np.arange(400.0),
        "obs/kind/codes": np.arange(400) % 2,
        "obs/kind/categories": np.array([b"a", b"b"]),
    }
    with h5py.File(path, "w") as file:
        for name, given in values.items():
            chunks = (min(50, len(given)), *given.shape[1:])
            dataset = file.create_dataset(
                name, given.shape, given.dtype, chunks=chunks, **(options if name == left else {})
            )
            dataset[: -chunks[0] if name == left else None] = given[: -chunks[0] if name == left else None]
        file["layers/counts"].attrs.update({"shape": counts.shape, "encoding-type": "csr_matrix"})
    return path


@pytest.mark.parametrize(
    ("left", "read"),
    [
        ("X", lambda path: open_points(f"{path}::X")),
        ("X", lambda path: open_points(h5py.File(path)["X"])),
        ("obsm/X_pca", open_points),
        ("layers/counts/data", lambda path: open_points(f"{path}::layers/counts")),
        ("layers/counts/indices", lambda path: open_points(f"{path}::layers/counts")),
        ("layers/counts/indptr", lambda path: open_points(f"{path}::layers/counts")),
        ("obs/size", lambda path: open_labels(f"{path}::obs/size")),
        ("obs/kind/codes", lambda path: open_labels(f"{path}::obs/kind")),
        ("obs/kind/categories", lambda path: open_labels(f"{path}::obs/kind")),
    ],
)
def test_chunks_of_hdf5_that_were_never_written_are_refused_with_their_number(tmp_path, left, read):
    read(damaged_cells(tmp_path / "whole.h5ad", ""))
    path = damaged_cells(tmp_path / "cells.h5ad", left)
    with h5py.File(path) as file:
        there = file[left].id.get_num_chunks()
    with pytest.raises(DataError, match=rf"1 of {there + 1} chunks of .* never written.* write it again"):
        read(path)


def test_a_file_of_hdf5_that_promises_rows_and_holds_none_is_refused_when_it_is_opened(tmp_path):
    for number, chunks in enumerate([(4096, 3), None]):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("X", (10**9, 3), "f4", chunks=chunks)
        assert (tmp_path / f"{number}.h5").stat().st_size < 10_000
        with pytest.raises(DataError, match="never written"):
            open_points(f"{tmp_path}/{number}.h5::X")


def test_chunks_of_hdf5_with_a_declared_fill_value_are_read_as_it_and_told_of(tmp_path):
    path = damaged_cells(tmp_path / "cells.h5ad", "X", fillvalue=7)
    source = open_points(f"{path}::X")
    np.testing.assert_array_equal(source.read(350, 400), np.full((50, 3), 7.0))
    assert source.remark.startswith("1 of 8 chunks")
    assert "read as 7.0" in source.remark
    with pytest.warns(ScalemaniWarning, match="1 of 8 chunks"):
        open_labels(f"{damaged_cells(tmp_path / 'sizes.h5ad', 'obs/size', fillvalue=0)}::obs/size")


@pytest.mark.parametrize("part", ["data", "indices"])
def test_chunks_of_sparse_rows_of_zarr_that_are_missing_are_told_of(tmp_path, part):
    counts = sparse.random_array((400, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    group = zarr.open_group(tmp_path / "counts.zarr", mode="w")
    group.attrs.update({"shape": counts.shape, "encoding-type": "csr_matrix"})
    for name in ("data", "indices", "indptr"):
        given = getattr(counts, name)
        array = group.create_array(name, shape=given.shape, dtype=given.dtype, chunks=(600,))
        array[:] = given
    assert open_points(tmp_path / "counts.zarr").remark == ""
    (tmp_path / "counts.zarr" / part / "c" / "1").unlink()
    assert f"1 of 4 chunks of {tmp_path}/counts.zarr/{part} are missing" in open_points(tmp_path / "counts.zarr").remark


@pytest.mark.parametrize("target", ["/nowhere", "/X"], ids=["that leads nowhere", "in a circle"])
def test_a_link_to_nothing_is_refused_with_its_place(tmp_path, target):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "points.h5ad", "w") as file:
        file["X"] = h5py.SoftLink(target)
    with pytest.raises(DataError, match=r"points\.h5ad::X is a link to nothing"):
        open_points(tmp_path / "points.h5ad")


def test_a_path_with_a_nul_is_refused_where_points_and_runs_are_opened():
    for opened in (open_points, open_objects):
        with pytest.raises(ConfigError, match=r"a path holds no NUL, got 'a\\x00b'"):
            opened("a\0b")
