"""What the map is made of: what a page unpacks is what was packed, and stays small."""

import base64
import gzip
import json
from types import SimpleNamespace

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scalemani.interfaces.report.map_data import encoded_column, map_data, map_of, packed
from scalemani.interfaces.report.opened import DrawnEmbedding
from scalemani.io.sources import named_labels, open_points
from scalemani.runs.exporting import export_map


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


def test_of_many_points_a_sample_lies_on_tiles_that_count_all(runs):
    run, values = runs["t-sne"], np.arange(1500)
    columns = {"row": values % 5, "far": np.where(values < 100, np.nan, values / 7)}
    whole = map_data(run, columns)
    assert whole.description["tiles"] is None
    found = map_data(run, columns, most_points=1499, sampled_points=200)
    assert (found.description["points"], found.description["of"]) == (200, 1500)
    rows = np.cumsum(unpacked(found.arrays["rows"], "u4", 200)[:, 0])
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(unpacked(found.arrays["column-0"], "u1", 200)[:, 0], rows % 5)
    assert found.description["columns"][0]["counts"] == [300] * 5  # of all points
    side, resolutions = found.description["tiles"]["side"], found.description["tiles"]["resolutions"]
    counts = unpacked(found.arrays["counts"], "u4", side**2)[:, 0]
    assert counts.sum() == 1500
    positions = unpacked(whole.arrays["positions"], "u2", 1500)
    np.testing.assert_array_equal(unpacked(found.arrays["positions"], "u2", 200), positions[rows])
    tiles = positions[:, 1] * side // 65536 * side + positions[:, 0] * side // 65536
    np.testing.assert_array_equal(counts, np.bincount(tiles, minlength=side**2))
    total = sum((side >> resolution) ** 2 for resolution in range(resolutions))
    lone = counts[tiles] == 1
    assert lone.sum() > 500
    for number in (0, 1):
        codes = unpacked(whole.arrays[f"column-{number}"], "u1", 1500)[:, 0]
        shown = unpacked(found.arrays[f"tiles-{number}"], "u1", total)[:, 0]
        np.testing.assert_array_equal(shown[tiles[lone]], codes[lone])


def test_maps_are_the_same_however_many_rows_are_read_at_once():
    positions = np.random.default_rng(0).normal(size=(2**20 + 500, 2))  # 16 MB and some rows
    drawn = np.arange(0, len(positions), 1000)
    source = open_points(positions)
    found = map_of(source, {}, drawn, side=64)
    limits = np.array([[axis["low"], axis["high"]] for axis in found.description["axes"]])
    inside = (positions - limits[:, 0]) / (limits[:, 1] - limits[:, 0])
    tiles = (inside.clip(0, 1 - 1e-9) * 64).astype(int) @ [1, 64]
    counts = unpacked(found.arrays["counts"], "u4", 64**2)[:, 0]
    assert counts.sum() == len(positions)
    assert abs(counts - np.bincount(tiles, minlength=64**2)).sum() < 1e-3 * len(positions)  # some lie on a border


def test_the_nearest_neighbors_of_each_point_are_those_of_the_graph(runs):
    found = map_data(runs["t-sne"], {})
    assert found.description["neighbors"] == 6
    nearest = unpacked(found.arrays["neighbors"], "u2", 1500)
    np.testing.assert_array_equal(nearest, np.asarray(runs["t-sne"].graph.indices[...])[:, :6])
    sampled = map_data(runs["t-sne"], {}, most_points=1499, sampled_points=200)
    assert "neighbors" not in sampled.arrays


def test_rows_are_those_of_the_points_that_were_given(runs):
    kept = np.flatnonzero(np.arange(2000) % 4)
    run = runs["t-sne"]
    drawn = DrawnEmbedding(run.embedding, 2000, lambda values: values[kept], kept, {})
    largest = SimpleNamespace(params=run.params, n_input_points=2000, _n_drawn=1500, _drawn=lambda: drawn)
    found = map_data(largest, {"row": np.arange(2000) % 7})
    np.testing.assert_array_equal(np.cumsum(unpacked(found.arrays["rows"], "u4", 1500)[:, 0]), kept)
    np.testing.assert_array_equal(unpacked(found.arrays["column-0"], "u1", 1500)[:, 0], kept % 7)


def test_identifiers_are_no_colours():
    embedding = np.random.default_rng(0).normal(size=(9000, 2))
    for n_points, n_kinds, left_out in ((9000, 4097, True), (9000, 4096, False), (1000, 501, True), (100, 100, False)):
        rows = np.arange(n_points)
        columns = {"name": np.array([f"kind {n % n_kinds}" for n in rows]), "side": rows % 2}
        found = map_of(open_points(embedding[:n_points]), columns, rows).description
        assert [column["name"] for column in found["columns"]] == (["side"] if left_out else ["name", "side"])
        assert found["texts"] == (["name"] if left_out else [])
        assert found["left_out"] == []


def test_identifiers_are_told_of_the_points_drawn_unless_they_are_too_long():
    embedding, names = np.random.default_rng(0).normal(size=(1000, 2)), np.arange(1000).astype("U4")
    names[1] = ""
    letters = np.random.default_rng(1).integers(0x4E00, 0x9FA5, (1000, 200))
    columns = {"id": names, "text": np.array([f"<b>{''.join(map(chr, line))}" for line in letters])}
    drawn = np.arange(0, 1000, 7)
    found = map_of(open_points(embedding), columns, drawn)
    assert found.description["texts"] == ["id", "text"]
    told = [json.loads(gzip.decompress(base64.b64decode(found.arrays[f"texts-{number}"]))) for number in (0, 1)]
    assert told[0] == names[drawn].tolist()
    assert {len(text) for text in told[1]} == {120}
    assert told[1][1] == columns["text"][7][:119] + "…"
    short = map_of(open_points(embedding), columns, drawn, text_bytes=10_000)
    assert (short.description["texts"], short.description["left_out"]) == (["id"], ["text"])
    assert "texts-1" not in short.arrays


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


def test_colours_of_anndata_are_those_of_the_map_and_of_an_export(runs, classes, tmp_path):
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        column = file.create_group("obs/kind")
        column["categories"], column["codes"] = ["late", "early"], classes.astype(np.int8)
        file["uns/kind_colors"] = ["#010203", "#fefdfc"]
    location = f"{tmp_path}/cells.h5ad::obs/kind"
    (column,) = map_data(runs["t-sne"], named_labels(location, 1500)).description["columns"]
    assert (column["classes"], column["colours"]) == (["late", "early"], ["#010203", "#fefdfc"])
    export_map(runs["t-sne"], tmp_path / "map.parquet", [location])
    table = pq.read_table(tmp_path / "map.parquet")
    assert table["kind_color"].to_pylist() == [["#010203", "#fefdfc"][number] for number in classes]
    assert table["kind"].to_pylist() == [["late", "early"][number] for number in classes]
    assert table.schema.field("kind").type.ordered
    assert table["kind"].chunk(0).dictionary.to_pylist() == ["late", "early"]
