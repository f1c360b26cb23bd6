"""Points in .csv and .tsv files: the values that NumPy and pandas read, by blocks; columns that are left out."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import scalemani as sm
from scalemani.errors import ConfigError, DataError, ScalemaniWarning
from scalemani.io.sources import open_points
from scalemani.io.sources.csv_files import BLOCK_BYTES

N_POINTS = 700


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    columns = {f"m{place}": rng.normal(size=N_POINTS) for place in range(4)}
    return pd.DataFrame({**columns, "patient": rng.integers(0, 3, N_POINTS), "kind": rng.choice(["a", "b"], N_POINTS)})


@pytest.fixture
def written(frame, tmp_path):
    """The frame in each format, by its suffix."""
    frame.to_csv(tmp_path / "cells.csv", index=False)
    frame.to_csv(tmp_path / "cells.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "cells.parquet")
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("!kind", ["m0", "m1", "m2", "m3", "patient"]),
        ("!kind,!patient", ["m0", "m1", "m2", "m3"]),
        ("m*,!m2", ["m0", "m1", "m3"]),
        ("m3,m0", ["m3", "m0"]),
        ("!m*,!kind", ["patient"]),
    ],
)
def test_columns_of_tables_are_chosen_or_left_out(written, frame, suffix, columns, names):
    source = open_points(f"{written}/cells.{suffix}::{columns}")
    assert list(source.column_names) == names
    np.testing.assert_array_equal(source.read(0, N_POINTS), frame[names].to_numpy())
    np.testing.assert_array_equal(source.read(600, 700), frame[names].to_numpy()[600:700])
    np.testing.assert_array_equal(source.read(5, 9), frame[names].to_numpy()[5:9])  # back


def test_a_file_of_many_blocks_has_all_rows(tmp_path):
    rows = np.random.default_rng(1).normal(size=(40_000, 3))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", fmt="%.17g")
    assert (tmp_path / "rows.csv").stat().st_size > 2 * BLOCK_BYTES
    source = open_points(tmp_path / "rows.csv")  # without a header
    assert source.shape == rows.shape
    blocks = [source.read(start, min(start + 1024, len(rows))) for start in range(0, len(rows), 1024)]
    np.testing.assert_array_equal(np.concatenate(blocks), rows)


def test_integers_that_become_fractions_after_the_first_block_are_numbers(tmp_path):
    lines = ["1,2\n"] * (BLOCK_BYTES // 4 + 10) + ["1.5,3\n"]
    (tmp_path / "late.csv").write_text("x,y\n" + "".join(lines))
    source = open_points(tmp_path / "late.csv")
    assert source.dtype == np.float64
    np.testing.assert_array_equal(source.read(len(lines) - 2, len(lines)), [[1, 2], [1.5, 3]])


def test_gaps_are_refused_with_their_row_or_left_out(tmp_path):
    (tmp_path / "gaps.csv").write_text("x,y\n1.5,2\n2.5,NA\n,4\n")
    with pytest.raises(DataError, match=r"missing values in x \(1\), the first in row 2"):
        open_points(tmp_path / "gaps.csv").read(0, 3)
    gaps = open_points(tmp_path / "gaps.csv", gaps=True)
    np.testing.assert_array_equal(gaps.read(0, 3), [[1.5, 2], [2.5, np.nan], [np.nan, 4]])


@pytest.mark.parametrize("index", ["pandas", "byte order mark"])
def test_what_programs_write_around_the_columns_is_none(tmp_path, index):
    text = ",x,y\n0,1.5,2\n1,2.5,3\n" if index == "pandas" else "\ufeffx,y\r\n1.5,2\r\n2.5,3\r\n"
    (tmp_path / "a.csv").write_bytes(text.encode())
    source = open_points(tmp_path / "a.csv")
    assert list(source.column_names) == ["x", "y"]
    np.testing.assert_array_equal(source.read(0, 2), [[1.5, 2], [2.5, 3]])


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("x;y\n1;2\n", DataError, "semicolons between its values: write it with commas"),
        ("", DataError, "no first line"),
        (
            "x,kind\n1,a\n",
            DataError,
            r"no numbers: kind \(string\); leave these out, with --exclude kind or as '.*a.csv::!kind'",
        ),
        ("x,y\n1,2\n1,2,3\n", DataError, "Expected 2 columns, got 3"),
    ],
)
def test_other_text_is_refused(tmp_path, text, kind, words):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(kind, match=words):
        open_points(tmp_path / "a.csv").read(0, 1)


@pytest.mark.parametrize(("columns", "words"), [("!z", "has no column z"), ("!*", "no columns but those")])
def test_columns_that_cannot_be_left_out_are_refused(written, columns, words):
    with pytest.raises(ConfigError, match=words):
        open_points(f"{written}/cells.csv::{columns}")


def test_a_name_that_begins_with_the_sign_is_itself(tmp_path):
    pq.write_table(pa.table({"!x": [1.5, 2.5], "x": [3.5, 4.5]}), tmp_path / "a.parquet")
    np.testing.assert_array_equal(open_points(f"{tmp_path}/a.parquet::!x").read(0, 2), [[1.5], [2.5]])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_whole_numbers_of_few_values_beside_measured_columns_are_told(written, suffix):
    told = f"cells.{suffix} has few different whole numbers in patient, next to measured columns.*::!patient"
    with pytest.warns(ScalemaniWarning, match=told):
        sm.LandmarkPCA(n_landmarks=20).fit(f"{written}/cells.{suffix}::!kind")
    assert not open_points(f"{written}/cells.{suffix}::m*").remark


def test_commands_leave_columns_out(scalemani, written, frame):
    run, names = written / "run", ["m0", "m1", "m2", "m3"]
    status, _, errors = scalemani("plan", written / "cells.csv", run, "--exclude=kind")
    assert status == 0
    assert "few different whole numbers in patient" in errors
    status, _, errors = scalemani("plan", written / "cells.csv", run)
    assert status == 2
    assert "--exclude kind or" in errors
    status, _, errors = scalemani("embed", written / "cells.csv", run, "--method=pca", "--exclude", "kind, patient")
    assert status == 0, errors
    expected = sm.LandmarkPCA().fit(frame[names])
    np.testing.assert_allclose(sm.open_run(run).embedding[...], expected.embedding_, atol=1e-8)
    placed = "transform", run, written / "cells.tsv", written / "new.npy", "--exclude=kind,patient"
    assert scalemani(*placed)[0] == 0
    np.testing.assert_allclose(np.load(written / "new.npy"), expected.transform(frame[names]), atol=1e-8)
