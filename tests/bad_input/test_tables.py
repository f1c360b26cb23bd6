"""Tables, data sets and folders of parts that cannot be used."""

import json

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from scalemani.errors import DataError  # noqa: E402
from scalemani.io.sources import open_points  # noqa: E402

ROWS = [[float(row), 1.0] for row in range(20)]


def table(path, **columns):
    pq.write_table(pa.table(columns), path)


def uneven(path):
    table(path, v=[*ROWS, [1.0], *ROWS])


def missing_list(path):
    table(path, v=[*ROWS, None])


def first_list_missing(path):
    table(path, v=[None, *ROWS])


def missing_number(path):
    table(path, v=[*ROWS, [None, 1.0]])


def two_lists(path):
    table(path, v=ROWS, w=ROWS)


def texts(path):
    table(path, v=[["a", "b"]] * 20)


def no_stream(path):
    path.write_bytes(b"ARROW1 nothing of the kind")


def state(path, content):
    path.mkdir()
    (path / "state.json").write_text(content)


def splits(path):
    (path / "train").mkdir(parents=True)
    (path / "dataset_dict.json").write_text("{}")


def parts(path):
    path.mkdir()
    np.save(path / "part-0.npy", np.ones((5, 3), np.float32))
    np.save(path / "part-1.npy", np.ones((5, 2), np.float32))


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("a.parquet", uneven, ["column v", "2 numbers in every row", "row 20"]),
        ("a.parquet", missing_list, ["2 numbers in every row", "row 20"]),
        ("a.parquet", first_list_missing, ["as many numbers in every row", "row 0"]),
        ("a.parquet", missing_number, ["missing values in v (1), the first in row 20"]),
        ("a.parquet", two_lists, ["columns of lists v, w", "FILE::v"]),
        ("a.parquet", texts, ["columns that are no numbers: v (list<"]),
        ("a.arrow", no_stream, ["no Arrow IPC file, or is truncated or damaged"]),
        ("data", lambda path: state(path, "{"), ["state.json is damaged"]),
        ("data", lambda path: state(path, json.dumps({"_data_files": [{"filename": "x.arrow"}]})), ["has no x.arrow"]),
        ("data", lambda path: state(path, json.dumps({"_data_files": [{"filename": "../x"}]})), ["has no ../x"]),
        (
            "data",
            lambda path: state(path, json.dumps({"_data_files": [{"filename": "x"}], "_indices_files": ["y"]})),
            ["rows in another order", "flatten_indices"],
        ),
        ("data", splits, ["holds several data sets, train", "data/train"]),
        ("parts", parts, ["all files must have the same columns", "part-1.npy has 2 of float32"]),
    ],
)
def test_tables(refused, tmp_path, name, make, words):
    make(tmp_path / name)
    refused(tmp_path / name, words)


@pytest.mark.parametrize("given", [pa.array([1.0, 2.0]), pa.chunked_array([[1, 2]])])
def test_a_column_of_numbers_is_no_table(given):
    with pytest.raises(DataError, match="Expected 2D array, got 1D"):
        open_points(given)
