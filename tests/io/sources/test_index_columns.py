"""Columns of Parquet and Arrow in which pandas and Dask keep the index of a frame: no coordinates."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import scalemani as sm
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.mixed import open_categories
from scalemani.io.sources import open_columns, open_labels, open_points

pandas = pytest.importorskip("pandas")
N = 60
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 3))
KEYS = RNG.permutation(N) * 10
PLAIN = pandas.DataFrame(POINTS, columns=["a", "b", "c1"])
TWO = pandas.MultiIndex.from_arrays([np.arange(N) // 24, KEYS], names=["day", "c2"])
FRAMES = {
    "a range": PLAIN,
    "numbers without a name": PLAIN.set_index(pandas.Index(KEYS)),
    "a name": PLAIN.set_index(pandas.Index(KEYS, name="c2")),
    "two": PLAIN.set_index(TWO),
    "texts": PLAIN.set_index(pandas.Index([f"p{key}" for key in KEYS], name="c2")),
}


def in_parquet(frame, folder):
    frame.to_parquet(folder / "frame.parquet")
    return folder / "frame.parquet"


def in_arrow(writer):
    def stored(frame, folder):
        table = pa.Table.from_pandas(frame)
        with writer(folder / "frame.arrow", table.schema) as file:
            file.write_table(table)
        return folder / "frame.arrow"

    return stored


CONTAINERS = {
    "Parquet": in_parquet,
    "an Arrow file": in_arrow(pa.ipc.new_file),
    "an Arrow stream": in_arrow(pa.ipc.new_stream),
    "a table": lambda frame, _: pa.Table.from_pandas(frame),
    "a record batch": lambda frame, _: pa.RecordBatch.from_pandas(frame),
    "a frame": lambda frame, _: frame,
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("index", FRAMES)
def test_an_index_is_no_coordinate(container, index, tmp_path):
    given = CONTAINERS[container](FRAMES[index], tmp_path)
    source = open_points(given)
    np.testing.assert_array_equal(source.read(0, N), POINTS)
    model = sm.LandmarkPCA(2).fit(given)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["a", "b", "c1"]
    np.testing.assert_array_equal(model.transform(given), model.transform(PLAIN))


def test_the_index_of_dask_is_no_coordinate(tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    frames.from_pandas(PLAIN, npartitions=3).to_parquet(tmp_path / "frames")
    np.testing.assert_array_equal(open_points(tmp_path / "frames").read(0, N), POINTS)
    part = pq.read_table(tmp_path / "frames" / "part.0.parquet")
    bare = part.replace_schema_metadata(None)  # as readers give it that drop what pandas says
    assert bare.column_names[-1] == "__null_dask_index__"
    np.testing.assert_array_equal(open_points(bare).read(0, 20), POINTS[:20])


def test_an_index_that_is_named_is_taken_and_patterns_leave_it_out(tmp_path):
    file = in_parquet(FRAMES["a name"], tmp_path)
    np.testing.assert_array_equal(open_points(f"{file}::a,c2").read(0, N), np.column_stack([POINTS[:, 0], KEYS]))
    np.testing.assert_array_equal(open_points(f"{file}::c*").read(0, N), POINTS[:, 2:])
    np.testing.assert_array_equal(open_points(f"{file}::*2").read(0, N), KEYS[:, None])
    with pytest.raises(ConfigError, match="has no column d"):
        open_points(f"{file}::d")


def test_a_column_of_vectors_is_found_beside_an_index(tmp_path):
    frame = pandas.DataFrame({"vector": list(POINTS)}, index=pandas.Index(KEYS, name="id"))
    np.testing.assert_array_equal(open_points(in_parquet(frame, tmp_path)).read(0, N), POINTS)


def test_a_table_of_nothing_but_an_index_is_refused(tmp_path):
    file = in_parquet(FRAMES["two"][[]], tmp_path)
    with pytest.raises(DataError, match="no columns but an index, day, c2: reset the index"):
        open_points(file)


@pytest.mark.parametrize(
    "metadata",
    [b"{", b"\xff", b"[]", b"{}", b'{"index_columns": 3}', b'{"index_columns": [["a"], null]}', b"[" * 10**5],
)
def test_metadata_of_no_index_leave_all_columns(metadata):
    table = pa.table({"a": POINTS[:, 0], "b": POINTS[:, 1]}).replace_schema_metadata({b"pandas": metadata})
    np.testing.assert_array_equal(open_points(table).read(0, N), POINTS[:, :2])


def test_labels_keep_an_index_with_a_name_and_give_any_that_is_asked_for(tmp_path):
    file = in_parquet(FRAMES["a name"], tmp_path)
    assert list(open_columns(file, N)) == ["a", "b", "c1", "c2"]
    np.testing.assert_array_equal(open_labels(f"{file}::c2"), KEYS)
    file = in_parquet(FRAMES["numbers without a name"], tmp_path)
    assert list(open_columns(file, N)) == ["a", "b", "c1"]
    np.testing.assert_array_equal(open_labels(f"{file}::__index_level_0__"), KEYS)


def test_an_index_is_no_category(tmp_path):
    """Of ten jobs in a table with row numbers, which would part all points."""
    jobs = [f"job {number}" for number in np.arange(N) % 10]
    frame = pandas.DataFrame({"job": jobs}, index=pandas.Index(KEYS, name="id"))
    file = in_parquet(frame, tmp_path)
    assert json.loads(pq.read_schema(file).metadata[b"pandas"])["index_columns"] == ["id"]
    for given in (file, pa.Table.from_pandas(frame), frame):
        np.testing.assert_array_equal(open_categories(given).indices, np.arange(N) % 10)
    assert open_categories(f"{file}::job,id").shape == (N, 10 + N)
