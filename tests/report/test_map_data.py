"""What the map is made of: what a page unpacks is what was packed, and stays small."""

import base64
import gzip
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scalemani.report import map_data as module
from scalemani.report.map_data import encoded_column, map_data, packed


def unpacked(text: str, dtype: str, count: int) -> np.ndarray:
    """Return columns of integers (count, columns) from their planes of bytes, as the page does."""
    size = np.dtype(dtype).itemsize
    planes = np.frombuffer(gzip.decompress(base64.b64decode(text)), np.uint8).reshape(-1, size, count)
    return sum(planes[:, plane].astype(np.int64) << (8 * plane) for plane in range(size)).T


@given(arrays.arrays(st.sampled_from(["u1", "u2", "u4"]), st.tuples(st.integers(1, 20), st.integers(1, 3))))
def test_integers_survive_packing(values):
    np.testing.assert_array_equal(unpacked(packed(values), values.dtype.str, len(values)), values)


def test_positions_are_within_a_step_of_the_embedding(runs):
    found = map_data(runs["t-sne"], {})
    steps = unpacked(found.arrays["positions"], "u2", found.description["points"])
    low, high = (np.array([axis[end] for axis in found.description["axes"]]) for end in ("low", "high"))
    embedding = np.asarray(runs["t-sne"].embedding[...])
    assert found.description["outside"] == 0
    np.testing.assert_allclose(low + steps / 65535 * (high - low), embedding, atol=(high - low).max() / 65535)


def test_a_graph_has_no_map_and_clusters_are_a_column(runs):
    assert map_data(runs["knn-graph"], {}) is None
    found = map_data(runs["spectral-clustering"], {})
    codes = unpacked(found.arrays["column-0"], "u1", 1500)[:, 0]
    np.testing.assert_array_equal(codes, runs["spectral-clustering"].labels[...])
    assert found.description["columns"][0]["name"] == "clusters of the run"
    assert [axis["name"] for axis in found.description["axes"]] == [f"component {n}" for n in (1, 2, 3)]


def test_of_many_points_a_sample_lies_on_the_density_of_all(runs, monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 200)
    run = runs["t-sne"]
    values = np.arange(1500)
    found = map_data(run, {"row": values % 5})
    rows = np.cumsum(unpacked(found.arrays["rows"], "u4", 200)[:, 0])
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(unpacked(found.arrays["column-0"], "u1", 200)[:, 0], rows % 5)
    assert found.description["columns"][0]["counts"] == [300] * 5  # of all points
    side = found.description["density"]
    levels = unpacked(found.arrays["density"], "u1", side**2).reshape(side, side)
    axes = found.description["axes"]
    edges = [np.linspace(axis["low"], axis["high"], side + 1) for axis in axes]
    counts = np.histogram2d(*np.asarray(run.embedding[...]).T, bins=edges)[0].T
    assert np.mean((counts > 0) == (levels > 0)) > 0.9999  # rounding puts points at an edge into the next cell


def test_rows_are_those_of_the_points_that_were_given(runs):
    kept = np.flatnonzero(np.arange(2000) % 4)
    run = runs["t-sne"]
    largest = SimpleNamespace(
        embeds=True,
        last_stage=run.last_stage,
        group=run.group,
        keys=run.keys,
        params=run.params,
        embedding=run.embedding,
        input_rows=kept,
        n_input_points=2000,
        of_results=lambda values: values[kept],
    )
    found = map_data(largest, {"row": np.arange(2000) % 7})
    np.testing.assert_array_equal(np.cumsum(unpacked(found.arrays["rows"], "u4", 1500)[:, 0]), kept)
    np.testing.assert_array_equal(unpacked(found.arrays["column-0"], "u1", 1500)[:, 0], kept % 7)


@pytest.mark.parametrize("n_classes", [3, 256, 300])
def test_codes_of_classes_are_as_wide_as_they_have_to_be(n_classes):
    described, codes = encoded_column("c", np.array([f"class {n % n_classes}" for n in range(1000)]))
    assert codes.dtype.itemsize == (1 if n_classes <= 256 else 2)
    assert [described["classes"][code] for code in codes[:500]] == [f"class {n % n_classes}" for n in range(500)]


def test_values_are_levels_and_a_missing_one_is_none_of_them():
    described, codes = encoded_column("v", np.array([np.nan, *np.linspace(0.1, 0.9, 5000)]))
    assert described["classes"] is None
    assert codes[0] == described["missing"] == 255
    assert (np.diff(codes[1:].astype(int)) >= 0).all()
    assert codes[1:].max() == 254
    assert len(described["colours"]) == 256
