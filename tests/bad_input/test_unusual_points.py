"""Points that are unusual and can be used all the same."""

import re

import numpy as np
import pytest
import scipy.sparse

from scalemani.runs.opened import open_run

SMALL = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")


def rows_of(folder):
    return open_run(folder).embedding[...]


LAYOUTS = {
    "big-endian": lambda table: table.astype(">f4"),
    "columns first": np.asfortranarray,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_a_file_changes_nothing(scalemani, points, finished, tmp_path, layout):
    np.save(tmp_path / "points.npy", LAYOUTS[layout](np.load(points)))
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)[0] == 0
    assert open_run(tmp_path / "run").keys == open_run(finished).keys
    np.testing.assert_array_equal(rows_of(tmp_path / "run"), rows_of(finished))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16"])
def test_other_numbers_run(scalemani, tmp_path, dtype):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2 if dtype == "bool" else 120, (1500, 16)) - (60 if dtype == "int8" else 0)
    np.save(tmp_path / "points.npy", bits.astype(dtype))
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)[0] == 0
    assert np.isfinite(rows_of(tmp_path / "run")).all()


def test_sparse_points_columns_and_the_fewest_points_run(scalemani, points, tmp_path):
    table = np.load(points)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csr_array(np.maximum(table, 0)))
    np.save(tmp_path / "column.npy", table[:, :1])
    np.save(tmp_path / "least.npy", table[:11])
    few = (*SMALL, "--set=landmarks.n_landmarks=6")
    for name, values in (("sparse.npz", SMALL), ("column.npy", SMALL), ("least.npy", few)):
        assert scalemani("embed", tmp_path / name, tmp_path / f"{name}.run", *values)[0] == 0, name
        assert np.isfinite(rows_of(tmp_path / f"{name}.run")).all()


def test_constant_columns_run_and_are_named(scalemani, points, tmp_path):
    table = np.load(points)
    np.save(tmp_path / "points.npy", np.column_stack([table, np.ones(len(table)), np.zeros(len(table))]))
    status, output, errors = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)
    assert status == 0
    assert "2 of 5 features are constant" in errors
    assert "constant_features 2" in output


@pytest.mark.parametrize("times", [2, 10])
def test_duplicated_points_run_and_are_counted(scalemani, points, tmp_path, times):
    table = np.repeat(np.load(points)[: 2000 // times], times, axis=0)
    np.save(tmp_path / "points.npy", table)
    status, output, errors = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)
    assert status == 0
    assert "duplicated_points 2000" in output
    assert f"saturated_points {0 if times == 2 else 2000}" in output
    told = "2000 of 2000 points" in errors and "merge duplicated points, or raise affinities.perplexity" in errors
    assert told == (times == 10)
    assert np.isfinite(rows_of(tmp_path / "run")).all()
    if times == 10:
        values = open_run(tmp_path / "run").group("affinities").read("values")
        np.testing.assert_allclose(np.sort(values, axis=1)[:, 1:], 1 / 9, rtol=1e-6)


def test_one_far_point_runs_and_is_named(scalemani, points, tmp_path):
    table = np.load(points).astype(np.float64)
    table[1503] = 1e12
    np.save(tmp_path / "points.npy", table)
    status, _, errors = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)
    assert status == 0
    assert re.search(r"row 1503 is 1e\+12 in column \d, \de\+\d\d times as far from the median", errors)
    assert np.isfinite(rows_of(tmp_path / "run")).all()
