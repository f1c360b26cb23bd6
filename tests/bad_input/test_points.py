"""Points in arrays and files that cannot be used."""

import json
from pathlib import Path

import numpy as np
import pytest
import zarr

NAN_COLUMN = np.column_stack([np.arange(2000.0), np.full(2000, np.nan)])


def spiked(value, dtype=np.float64):
    table = np.linspace(0, 1, 6000).reshape(2000, 3).astype(dtype)
    table[1500, 1] = value
    table[1700, 2] = value
    return table


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (spiked(np.nan), ["2 values", "2 NaN", "row 1500, column 1", "1500, 1700", "Remove these rows or fill in"]),
        (spiked(np.inf), ["2 inf", "row 1500, column 1"]),
        (spiked(-np.inf), ["2 inf", "row 1500, column 1"]),
        (spiked(np.inf, np.float16), ["2 inf"]),
        (NAN_COLUMN, ["nothing but NaN in column(s) 1"]),
        (np.ones((2000, 3)), ["zero variance", "float64"]),
        (np.zeros((2000, 3), np.uint8), ["zero variance"]),
        ((1e8 + np.linspace(0, 1, 2000))[:, None].astype(np.float32), ["zero variance", "pass float64"]),
        (np.linspace(0, 1e-310, 2000)[:, None], ["underflow", "multiply"]),
        (np.linspace(0, 1e200, 2000)[:, None], ["overflow", "divide"]),
        (np.ones((2000, 3), complex), ["Complex data not supported", "real and imaginary parts as columns"]),
        (np.array([["a", "b"]] * 2000), ["numeric dtype, got <U1", "Convert it"]),
        (np.array([[b"a", b"b"]] * 2000), ["numeric dtype"]),
        (np.zeros((2000, 2), "M8[s]"), ["numeric dtype, got datetime64"]),
        (np.zeros(2000, [("x", "f4"), ("y", "f4")]), ["numeric dtype"]),
        (np.ones((2000, 2)).astype(object), ["Python objects", "pickle", "save numbers"]),
        (np.arange(2000.0), ["Expected 2D array, got 1D array", "Reshape"]),
        (np.zeros((20, 20, 20)), ["Expected 2D array, got 3D array"]),
        (np.array(3.0), ["Expected 2D array, got 0D array"]),
        (np.zeros((0, 3)), ["0 sample(s)", "minimum of 3"]),
        (np.zeros((2000, 0)), ["0 feature(s)", "minimum of 1"]),
        (np.arange(3.0)[None], ["1 sample(s)", "minimum of 3"]),
        (np.arange(6.0).reshape(2, 3), ["2 sample(s)", "minimum of 3"]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")) or None,
)
def test_arrays(refused, tmp_path, table, words):
    np.save(tmp_path / "points.npy", table)
    refused(tmp_path / "points.npy", words)


def truncated(path):
    np.save(path, np.ones((2000, 3)))
    path.write_bytes(path.read_bytes()[:-100])


def text_as(path):
    path.write_text("x,y\n1,2\n")


def empty_zarr(path):
    zarr.open_group(path, mode="w")


def two_arrays(path):
    np.savez(path, X=np.ones((5, 2)), Z=np.ones((5, 2)))


def pickle_codec(path):
    zarr.create_array(path, shape=(2000, 3), dtype="f4", zarr_format=2)
    metadata = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps({**metadata, "filters": [{"id": "pickle", "protocol": 5}]}))


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("nowhere.npy", None, ["no file or directory", "points are .npy"]),
        ("points.npy", truncated, ["truncated", "copy or save it again"]),
        ("points.npy", text_as, ["no .npy file"]),
        ("points.npz", text_as, ["no .npz archive"]),
        ("points.npz", two_arrays, ["say which array", "X (5, 2)"]),
        ("points.xlsx", text_as, [".xlsx is not among"]),
        ("points", text_as, ["no suffix"]),
        ("folder", Path.mkdir, ["neither a zarr store nor Parquet"]),
        ("points.zarr", Path.mkdir, ["not a complete zarr store"]),
        ("points.zarr", empty_zarr, ["zarr group", "holds nothing"]),
        ("points.zarr", pickle_codec, ["codec 'pickle'", "allowed:"]),
        ("points.zarr::../../x", empty_zarr, ["error:"]),
    ],
)
def test_files(refused, tmp_path, name, make, words):
    if make:
        make(tmp_path / name.partition("::")[0])
    refused(tmp_path / name, words)


@pytest.mark.parametrize(
    ("module", "name"), [("pyarrow", "points.parquet"), ("h5py", "points.h5ad"), ("h5py", "points.h5")]
)
def test_damaged_files_of_other_libraries(refused, tmp_path, module, name):
    pytest.importorskip(module)
    (tmp_path / name).write_bytes(b"PAR1 nothing of the kind")
    refused(tmp_path / name, [name, "truncated or damaged"])


@pytest.mark.parametrize("other", [{"x": [1.0], "z": [2.0]}, {"x": [1.0]}, {"x": [1], "y": [2]}])
def test_tables_that_do_not_match(refused, tmp_path, other):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "table").mkdir()
    for number, content in enumerate(({"x": [1.0], "y": [2.0]}, other)):
        parquet.write_table(pyarrow.table(content), tmp_path / "table" / f"part.{number}.parquet")
    refused(tmp_path / "table", ["all files must have the same columns", "part.1.parquet", "part.0.parquet"])
