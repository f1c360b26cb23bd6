"""Frames of labels: each column is what it is alone, with the order of its categories and its gaps."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import scalemani as sm
from scalemani.errors import DataError
from scalemani.io.sources.label_values import categories_of
from scalemani.io.sources.labels import chosen_labels, named_labels

SIZES = ("small", "large", "medium")  # in an order that no sorting gives
ROWS = [0, 1, 2, 1, 0, 2]
COLUMNS = {
    "size": [SIZES[row] for row in ROWS],
    "gap": ["a", None, "b", "a", "", "b"],
    "count": [1, 2, 3, 4, 5, 6],
    "age": [1.5, np.nan, 2.5, 3.5, 4.5, 5.5],
    "true": [True, False, True, True, False, False],
}
EXPECTED = {**COLUMNS, "gap": ["a", "", "b", "a", "", "b"]}


def pandas_frame():
    return pd.DataFrame(
        {**COLUMNS, "size": pd.Categorical(COLUMNS["size"], categories=SIZES, ordered=True)}, index=list("fedcba")
    )


def polars_frame():
    return pl.DataFrame(COLUMNS, schema_overrides={"size": pl.Enum(SIZES)})


def arrow_table():
    return pa.table({**COLUMNS, "size": pa.DictionaryArray.from_arrays(ROWS, SIZES, ordered=True)})


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame, arrow_table])
def test_a_frame_has_a_set_of_labels_a_column(frame):
    named = named_labels(frame(), len(ROWS))
    assert list(named) == list(COLUMNS)
    for name, values in named.items():
        np.testing.assert_array_equal(np.asarray(values), EXPECTED[name])
    assert categories_of(named["size"]) == SIZES
    chosen = chosen_labels(frame(), len(ROWS), lambda values: values[:3])
    np.testing.assert_array_equal(np.asarray(chosen["size"]), EXPECTED["size"][:3])


def test_a_frame_among_others_has_the_names_of_its_columns():
    named = named_labels([np.arange(6), pandas_frame()[["size"]], {"size": COLUMNS["size"]}], 6)
    assert list(named) == ["labels 1", "size", "size (3)"]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": [1, 2]}), "column a has 2 labels for 6 points"),
        (pd.DataFrame(np.zeros((6, 2)), columns=["a", "a"]), "more than one column a"),
        (pd.DataFrame(index=range(6)), "no column of numbers or texts"),
        (pa.table({"lists": [[1]] * 6}), "no column of numbers or texts"),
    ],
)
def test_frames_that_are_no_labels_are_refused(frame, words):
    with pytest.raises(DataError, match=words):
        named_labels(frame, 6)


def test_pictures_and_pages_take_frames(tmp_path):
    points = np.random.default_rng(0).normal(size=(40, 3))
    classes, values = np.arange(40) % 3, points[:, 0]
    model = sm.LandmarkPCA(store=tmp_path / "run").fit(points)
    frame = pd.DataFrame({"kind": classes, "height": values})
    by_name = {"kind": classes, "height": values}
    assert np.array_equal(np.asarray(model.plot(frame)), np.asarray(model.plot(by_name)))
    pages = [model.report(tmp_path / f"{place}.html", labels) for place, labels in enumerate((frame, by_name))]
    assert pages[0].read_text() == pages[1].read_text()
