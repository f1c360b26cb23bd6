"""Labels that differ stay different, by every way in which they come; those that are missing are no class."""

from decimal import Decimal

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scalemani as sm
from scalemani.errors import DataError
from scalemani.io.sources import open_columns, open_labels
from scalemani.io.sources.label_values import values_of_texts
from scalemani.io.sources.side_data import Labels

WIDE = 2**53


def partition(labels):
    """Return which labels are equal, as the first row of each; -1 for those that are missing."""
    coded = Labels.of(labels, partial=True).codes.tolist()
    return [coded.index(code) if code >= 0 else -1 for code in coded]


def text_file(folder, texts):
    (folder / "labels.txt").write_text("".join(f"{text}\n" for text in texts))
    return open_labels(folder / "labels.txt")


def csv_file(folder, texts):
    (folder / "labels.csv").write_text("row,label\n" + "".join(f"{row},{text}\n" for row, text in enumerate(texts)))
    return open_labels(f"{folder}/labels.csv::label")


@pytest.mark.parametrize("read", [text_file, csv_file])
@pytest.mark.parametrize(
    "texts",
    [
        ["001", "01", "1"],
        ["1_0", "10"],
        ["00.5", "0.5"],
        [str(WIDE + 1), str(WIDE), "0.5"],
        [f"{WIDE + 1}.0", f"{WIDE}.0"],
        [str(2**63), str(2**63 + 1), "-1"],
        [str(2**70), str(2**70 + 1), "3"],
        ["1e400", "inf", "2"],
        ["٣", "3"],
        ["1e3x", "1000"],
        ["e5", "5"],
        [".", "0"],
    ],
)
def test_texts_that_differ_are_different_labels(tmp_path, read, texts):
    found = read(tmp_path, texts)
    assert found.dtype.kind == "U"
    assert found.tolist() == texts


@pytest.mark.parametrize("read", [text_file, csv_file])
def test_texts_that_are_numbers_are_numbers_and_nan_is_missing(tmp_path, read):
    for texts, kind, expected in (
        (["+1", "-1", "0"], "i", [1, -1, 0]),
        ([str(2**64 - 1), "0"], "u", [2**64 - 1, 0]),
        (["1.", ".5", "-2e3", "1E5"], "f", [1, 0.5, -2000, 1e5]),
        (["nan", "inf", "-inf", "1"], "f", [np.nan, np.inf, -np.inf, 1]),
    ):
        found = read(tmp_path, texts)
        assert found.dtype.kind == kind
        np.testing.assert_array_equal(found, np.array(expected, found.dtype))
    assert read(tmp_path, ["a", "nan", "inf", "NaN"]).tolist() == ["a", "", "inf", ""]


@given(st.lists(st.floats() | st.integers(-(2**53), 2**53), min_size=1))
def test_numbers_are_the_same_after_they_were_written_as_text(numbers):
    found = values_of_texts([repr(number) for number in numbers])
    np.testing.assert_array_equal(found, np.array(numbers))


@given(st.lists(st.text("0123456789.e+-_an", min_size=1, max_size=6), min_size=2, max_size=6))
def test_whole_texts_become_equal_labels_only_where_they_are_written_alike_or_are_one_number(texts):
    found = values_of_texts(texts)
    if found.dtype.kind == "U":
        assert found.tolist() == ["" if text.lower() == "nan" else text for text in texts]
    else:  # as Python reads them, without what it takes for a number beside
        assert not any("_" in text or text.lstrip("+-")[:2] in {f"0{digit}" for digit in range(10)} for text in texts)
        np.testing.assert_array_equal(found, np.array(list(map(float, texts))).astype(found.dtype))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a", np.nan, "b", None, "a"], [0, -1, 2, -1, 0]),
        ([2**63, 2**63 + 1, -2, 2**63], [0, 1, 2, 0]),
        ([WIDE + 1, WIDE, 0.5], [0, 1, 2]),
        ([1, True, 0, False], [0, 1, 2, 3]),
        ([0.5, "a", 0.5, "b"], [0, 1, 0, 3]),
        ([np.int64(1), 1.0, "a", 2, np.float32(2), Decimal(1), True], [0, 0, 2, 3, 3, 0, 6]),
        ([["a"], [np.nan], ["b"]], [0, -1, 2]),
        (np.array(["a", None, np.nan, "b"], object), [0, -1, -1, 3]),
        (np.array([b"\xe9", b"\xe8", b"\xe9"]), [0, 1, 0]),
        (pa.chunked_array([[WIDE + 1, None, WIDE]]), [0, -1, 2]),
        (np.array([WIDE + 1, WIDE]), [0, 1]),
        (np.ma.masked_array([7, 1, 7, 7], [0, 0, 1, 0]), [0, 1, -1, 0]),
        (np.ma.masked_array([WIDE + 1, WIDE, 5], [0, 0, 1]), [0, 1, -1]),
        (np.ma.masked_array(["b", "a", "b"], [0, 0, 1]), [0, 1, -1]),
        (np.array(["001", "1", "01", "1"], np.dtypes.StringDType()), [0, 1, 2, 1]),
        (np.array(["1_0", None, "10"], np.dtypes.StringDType(na_object=None)), [0, -1, 2]),
        (pd.Series(["001", np.nan, "1", "01", "1"]), [0, -1, 2, 3, 2]),
        (pd.Series(["1_0", None, "10"], dtype="string"), [0, -1, 2]),
        (pd.Series([1, None, 2], dtype="Int64"), [0, -1, 2]),
        (pd.Categorical(["01", None, "1"]), [0, -1, 2]),
        (pd.DataFrame({"y": ["01", "1", "01"]}), [0, 1, 0]),
        (pa.array(["001", "1", None, "01"]).dictionary_encode(), [0, 1, -1, 3]),
    ],
)
def test_labels_in_memory_are_equal_only_where_they_were(labels, expected):
    assert partition(open_labels(labels)) == expected


@pytest.mark.parametrize(
    "labels", [[1, "1", True], [True, "True"], [0.5, "0.5", "a"], np.array([2, "2"], object), pd.Categorical([1, "1"])]
)
def test_labels_of_several_types_with_the_same_text_are_refused(labels):
    with pytest.raises(DataError, match=r"labels has .* have the same text: give all labels in one type"):
        open_labels(labels)


@pytest.mark.parametrize(("labels", "kind"), [([1, 2], "i"), ([1, 2.5], "f"), ([True, False], "b"), (["1", "2"], "U")])
def test_lists_of_one_type_keep_it(labels, kind):
    assert open_labels(labels).dtype.kind == kind
    assert open_labels(labels).tolist() == labels


def test_labels_that_are_tables_are_refused():
    for labels in ([[1, 2], [3, 4]], [[1], [2, 3]], [{"a": 1}, {"b": 2}]):
        with pytest.raises(DataError, match="labels"):
            open_labels(labels)


def test_integers_of_tables_keep_their_digits_beside_missing_ones(tmp_path):
    pq.write_table(pa.table({"y": [WIDE + 1, None, WIDE]}), tmp_path / "y.parquet")
    assert partition(open_labels(f"{tmp_path}/y.parquet::y")) == [0, -1, 2]
    with h5py.File(tmp_path / "y.h5ad", "w") as file:
        file["obs/y/values"], file["obs/y/mask"] = [WIDE + 1, 3, WIDE], [False, True, False]
    assert partition(open_labels(f"{tmp_path}/y.h5ad::obs/y")) == [0, -1, 2]


def test_a_table_with_a_name_twice_is_refused(tmp_path):
    (tmp_path / "twice.csv").write_text("y,y\n1,2\n3,4\n")
    pq.write_table(pa.table([[1, 2], [3, 4]], names=["y", "y"]), tmp_path / "twice.parquet")
    for name in ("twice.csv", "twice.parquet"):
        with pytest.raises(DataError, match="more than one column y"):
            open_columns(tmp_path / name)


SPELLED = ["001", "01", "1", "10", "1_0"]  # five classes, in the order of texts


@pytest.mark.parametrize("form", ["list", "objects", "frame", "text", "csv", "parquet"])
def test_estimators_learn_from_classes_as_they_are_spelled(tmp_path, form):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, 200)
    points, texts = rng.normal(size=(200, 4)) + 3 * rng.normal(size=(5, 4))[codes], [SPELLED[code] for code in codes]
    given = {"list": texts, "objects": np.array(texts, object), "frame": pd.Series(texts)}.get(form)
    if form == "text":
        text_file(tmp_path, texts)
        given = tmp_path / "labels.txt"
    elif form == "csv":
        csv_file(tmp_path, texts)
        given = f"{tmp_path}/labels.csv::label"
    elif form == "parquet":
        pq.write_table(pa.table({"y": texts}), tmp_path / "y.parquet")
        given = f"{tmp_path}/y.parquet::y"
    found = sm.LandmarkLDA().fit(points, given).embedding_
    assert np.array_equal(found, sm.LandmarkLDA().fit(points, [f"class {code}" for code in codes]).embedding_)


def test_the_command_line_tells_classes_apart_as_they_are_spelled(tmp_path, scalemani):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(3), 70)
    np.save(tmp_path / "points.npy", rng.normal(size=(210, 3)) + 20 * np.eye(3)[codes])
    (tmp_path / "labels.txt").write_text("".join(f"{SPELLED[code]}\n" for code in codes))
    command = ("embed", tmp_path / "points.npy", tmp_path / "run", "--method", "lda")
    (tmp_path / "same.txt").write_text("1\n" * 210)
    status, _, error = scalemani(*command, "--labels", tmp_path / "labels.txt")
    assert status == 0, error
    status, _, error = scalemani(*command, "--labels", tmp_path / "same.txt")
    assert status != 0
    assert "two classes" in error


MOMENTS = pd.Series(pd.date_range("2020-01-01", periods=4, freq="36h")).where([True, False, True, True])
SPANS = MOMENTS - MOMENTS[0]
TIMES = {
    "numpy": MOMENTS.to_numpy(),
    "pandas": MOMENTS,
    "pandas, with a zone": MOMENTS.dt.tz_localize("UTC"),
    "arrow": pa.array(MOMENTS),
    "arrow, with a zone": pa.array(MOMENTS.dt.tz_localize("UTC")),
    "python": [None if pd.isna(one) else one.to_pydatetime() for one in MOMENTS],
    "spans": SPANS.to_numpy(),
    "spans of pandas": SPANS,
    "spans of python": [None if pd.isna(one) else one.to_pytimedelta() for one in SPANS],
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_are_refused_at_every_door_with_the_lines_that_make_numbers_of_them(tmp_path, kind):
    times = TIMES[kind]
    pq.write_table(pa.table({"when": pa.array(times, from_pandas=True)}), tmp_path / "times.parquet")
    for labels in (times, f"{tmp_path}/times.parquet::when"):
        with pytest.raises(DataError, match="must be numbers or strings, got times") as refused:
            open_labels(labels)
    with pytest.raises(DataError, match="got times"):
        sm.LandmarkLDA().fit(np.eye(4), times)
    lines = str(refused.value).partition("seconds, ")[2].partition(", for classes")[0].split("; ")
    names = {"times": MOMENTS.to_numpy() if kind in ("arrow", "arrow, with a zone") else times, "numpy": np}
    exec(f"{lines[0]}\nseconds = {lines[1]}", names)
    seconds = names["seconds"]
    started = 0 if "spans" in kind else 1577836800
    np.testing.assert_array_equal(seconds, [started, np.nan, started + 2 * 129600, started + 3 * 129600])
    assert open_labels(seconds).dtype.kind == "f"
