"""Tiles count and hold every point: compared with histograms and loops by NumPy over the embedding itself."""

from collections import Counter

import numpy as np
import pytest

import scalemani as sm
from scalemani.errors import ConfigError, StoreError
from scalemani.interfaces.tiles.tree import TreeWriter
from scalemani.interfaces.tiles.writing import BLOCK_ROWS, NOWHERE, Plane, write_index, write_tiles, write_tree
from tests.interfaces.tiles.conftest import INNER, LEAF, N_CLASSES, N_POINTS, Tiles

LEVELS = 255  # of values; the code 255 stands for none


@pytest.fixture(scope="module")
def shares(run, tiles):
    """Return the places (N, 2) of all points from 0 to 1 along each axis, by the limits that the page states."""
    axes = tiles.described["axes"]
    low, extent = (np.array([axis[name] for axis in axes]) for name in ("low", "extent"))
    return (np.asarray(run.embedding[...])[:, :2].astype(np.float64) - low) / extent


def inside(shares, place):
    level, x, y = place
    return np.flatnonzero((np.floor(np.clip(shares, 0, 1 - 1e-12) * 2**level) == [x, y]).all(axis=1))


def test_the_map_has_the_limits_of_the_points_and_one_scale(run, tiles, shares):
    assert tiles.described["axes"][0]["extent"] == tiles.described["axes"][1]["extent"]
    assert np.count_nonzero((shares < 0) | (shares > 1)) == tiles.described["outside"] == 0
    assert np.ptp(shares, axis=0).max() > 0.9


def test_counts_of_every_tile_are_those_of_a_histogram(tiles, shares):
    inner = [place for place, kind in tiles.kinds.items() if kind == INNER]
    assert max(level for level, _, _ in inner) > 4
    for place in inner:
        level, x, y = place
        edges = [(np.arange(257) / 256 + corner) / 2**level for corner in (x, y)]
        expected, _, _ = np.histogram2d(*shares[inside(shares, place)].T, bins=edges)
        np.testing.assert_array_equal(tiles.counts(place)[0], expected.T)


def test_pixels_show_the_most_frequent_class_and_the_mean_value(tiles, shares, columns):
    low, high = tiles.described["columns"][1]["limits"]
    height = np.clip((columns["height"] - low) / (high - low), 0, 1)
    levels = np.rint(height * 255) * 254 // 255
    for place in [(0, 0, 0), *[one for one, kind in tiles.kinds.items() if kind == INNER and one[0] == 3]]:
        level, x, y = place
        _, kinds, heights = tiles.counts(place)
        rows = inside(shares, place)
        pixels = np.floor(np.clip(shares[rows], 0, 1 - 1e-12) * 256 * 2**level).astype(int) - 256 * np.array([x, y])
        members: dict[tuple[int, int], list[int]] = {}
        for row, (across, up) in zip(rows, pixels.tolist(), strict=True):
            members.setdefault((up, across), []).append(row)
        for pixel, points in members.items():
            often = Counter(columns["kind"][points].tolist())
            assert kinds[pixel] == min(often, key=lambda code: (-often[code], code))
            known = levels[points][~np.isnan(levels[points])]
            assert heights[pixel] == (round(known.mean()) if len(known) else LEVELS)


def test_every_point_is_once_in_a_tile_at_its_place(tiles, shares, columns):
    rows, seen = np.arange(N_POINTS), np.zeros(N_POINTS, int)
    for place in tiles.leaves:
        places, found, codes = tiles.points(place)
        assert 0 < len(found) <= 300
        seen[found] += 1
        error = np.abs(places - shares[found]).max()
        assert error <= 0.5 * 2.0 ** -(16 + place[0]) * (1 + 1e-6)
        np.testing.assert_array_equal(codes[0], columns["kind"][found])
        np.testing.assert_array_equal(codes[1] == LEVELS, np.isnan(columns["height"][found]))
    np.testing.assert_array_equal(seen[rows], 1)


def test_files_are_those_of_the_tree_and_no_others(tiles):
    expected = {"index.html", "rows/0.bin"}
    for (level, x, y), kind in tiles.kinds.items():
        if kind:
            expected.add(f"{'points' if kind == LEAF else 'counts'}/{level}/{x}-{y}.bin")
    assert {file.relative_to(tiles.folder).as_posix() for file in tiles.folder.rglob("*") if file.is_file()} == expected


def test_the_index_has_the_tile_of_each_row(tiles):
    (numbers,) = tiles.read("rows/0.bin", [4])
    assert len(numbers) == BLOCK_ROWS
    for number, place in enumerate(tiles.leaves):
        np.testing.assert_array_equal(np.sort(tiles.points(place)[1]), np.flatnonzero(numbers == number))
    np.testing.assert_array_equal(numbers[N_POINTS:], NOWHERE)


def test_texts_that_are_all_different_are_named_and_left_out(tiles):
    assert [column["name"] for column in tiles.described["columns"]] == ["kind", "height"]
    assert tiles.described["left_out"] == ["name"]
    assert len(tiles.described["columns"][0]["classes"]) == N_CLASSES


@pytest.mark.parametrize("held_points", [300, 5000, 2**20])
def test_bytes_do_not_depend_on_what_is_held_in_memory(run, columns, tiles, held_points, tmp_path):
    write_tiles(run, tmp_path / "again", columns, leaf_points=300, held_points=held_points)
    for file in tiles.folder.rglob("*.*"):
        assert (tmp_path / "again" / file.relative_to(tiles.folder)).read_bytes() == file.read_bytes()


def tree_of(folder, points, rows=None, n_rows=None, leaf_points=50):
    """Write the tree and the index of an array without columns; return both."""
    folder.mkdir()
    tree, plane = TreeWriter(folder, [], [], rows, leaf_points), Plane.of(points, (0, 1))
    write_tree(tree, plane, 500)
    write_index(tree, plane, n_rows or len(points))
    return tree, plane


def test_points_of_one_place_are_one_tile_however_many(tmp_path):
    draw = np.random.default_rng(1)
    points = np.concatenate([draw.normal(size=(1000, 2)), np.full((1500, 2), 0.25)])
    tree, _ = tree_of(tmp_path / "tree", points)
    deepest = list((tmp_path / "tree" / "points" / "16").iterdir())
    assert len(deepest) == 1
    assert len(tree.first_keys) == sum(1 for _ in (tmp_path / "tree" / "points").rglob("*.bin"))


def test_rows_that_are_not_in_the_map_are_in_no_tile(tmp_path):
    draw = np.random.default_rng(2)
    n_rows = 2 * BLOCK_ROWS + 77
    rows = np.sort(draw.choice(n_rows, 3000, replace=False))
    rows = rows[(rows < 100) | (rows > BLOCK_ROWS + 5)]  # a whole block but its beginning has none
    tree_of(tmp_path / "tree", draw.normal(size=(len(rows), 2)), rows, n_rows)
    reader = object.__new__(Tiles)
    reader.folder = tmp_path / "tree"
    numbers = np.concatenate([reader.read(f"rows/{block}.bin", [4])[0] for block in range(3)])
    np.testing.assert_array_equal(np.flatnonzero(numbers != NOWHERE), rows)
    assert not (tmp_path / "tree" / "rows" / "3.bin").exists()


def test_a_map_of_one_component_is_spread_over_a_second_axis(tmp_path):
    points = np.random.default_rng(3).normal(size=(400, 1))
    _, plane = tree_of(tmp_path / "tree", points)
    ((_, places),) = plane.shares()
    np.testing.assert_allclose(np.sort(places[:, 1]), (np.arange(400) + 0.5) / 400, atol=0.01)


def test_axes_of_very_different_extent_are_scaled_one_by_one():
    points = np.random.default_rng(4).uniform(size=(500, 3)) * [1, 10, 1]
    plane = Plane.of(points, (2, 1))
    np.testing.assert_allclose(plane.extent, [1, 10], rtol=0.1)
    ((_, places),) = plane.shares()
    np.testing.assert_allclose(places * plane.extent + plane.low, points[:, [2, 1]])


def test_other_columns_of_the_embedding(run, tmp_path):
    assert run.tiles(tmp_path / "tiles", axes=(3, 1)) == tmp_path / "tiles"
    written = Tiles(tmp_path / "tiles")
    assert [axis["name"] for axis in written.described["axes"]] == ["component 3", "component 1"]
    axes = written.described["axes"]
    low, extent = (np.array([axis[name] for axis in axes]) for name in ("low", "extent"))
    embedding = np.asarray(run.embedding[...])[:, [2, 0]]
    for place in written.leaves:
        places, rows, _ = written.points(place)
        np.testing.assert_allclose(places * extent + low, embedding[rows], atol=extent.max() / 60_000)


def test_what_cannot_be_is_refused_before_work(run, tmp_path):
    for axes in ((1, 1), (0, 1), (1, 4), (1, 2, 3)):
        with pytest.raises(ConfigError, match="two different columns of the embedding, from 1 to 3"):
            run.tiles(tmp_path / "tiles", axes=axes)
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreError, match="already there"):
        run.tiles(tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_run_without_a_map_is_refused(clusters, tmp_path):
    sm.knn_graph(clusters[0][:300], n_neighbors=5, store=tmp_path / "graph")
    with pytest.raises(ConfigError, match="no finished embedding"):
        sm.open_run(tmp_path / "graph").tiles(tmp_path / "tiles")


def test_the_command_writes_tiles_and_names_them(run, scalemani, clusters, tmp_path):
    np.save(tmp_path / "labels.npy", clusters[1])
    root, folder = run.store.root, tmp_path / "tiles"
    labels = ("--labels", tmp_path / "labels.npy")
    status, said, _ = scalemani("report", root, "--tiles", folder, *labels, "--axes", 2, 3)
    assert (status, said.strip()) == (0, str(folder))
    assert [axis["name"] for axis in Tiles(folder).described["axes"]] == ["component 2", "component 3"]
    for arguments, message in (
        (("page.html", "--tiles", tmp_path / "other"), "--tiles writes the map alone"),
        (("--tiles", tmp_path / "other", "--sampled", 5), "--tiles writes the map alone"),
        (("--axes", 2, 3), "--axes is for --tiles"),
    ):
        status, _, told = scalemani("report", root, *arguments)
        assert status == 2
        assert message in told
