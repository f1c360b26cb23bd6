"""Tiles: whole numbers that sum up to the points, and on each grid what a loop over the points finds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scalemani.interfaces.report.map_data import LEVELS, RESOLUTIONS, tile_codes, tile_counts

SIDE = 16
N_CODES = 3  # one more stands for no label
POINTS = arrays.arrays(np.uint16, st.tuples(st.integers(1, 200), st.just(2)))


CLASSES, VALUES = {"classes": list("abc"), "missing": N_CODES}, {"classes": None, "missing": LEVELS}


def counted(places, codes, n_codes, steps):
    """Return tiles with the points given in blocks of some steps."""
    blocks = [slice(start, start + steps) for start in range(0, len(places), steps)]
    return sum(tile_counts(places[block], codes[block], n_codes, SIDE) for block in blocks)


def points_of_tiles(places, side) -> dict[int, np.ndarray]:
    """Return the points in each tile of a grid."""
    tiles = [int(y) * side // 65536 * side + int(x) * side // 65536 for x, y in places]
    return {tile: np.flatnonzero(np.array(tiles) == tile) for tile in set(tiles)}


@given(POINTS, st.integers(0, 2**32 - 1), st.integers(1, 70))
def test_tiles_show_what_their_points_are_however_these_are_cut_into_blocks(places, seed, steps):
    codes = np.random.default_rng(seed).integers(0, N_CODES + 1, len(places)).astype(np.uint8)
    places = places // 64 * 64
    counts = counted(places, np.zeros_like(codes), 1, steps).toarray()
    assert counts.sum() == len(places)
    levels = np.where(codes < N_CODES, codes, LEVELS).astype(np.uint8)
    classes = tile_codes(counted(places, codes, N_CODES, steps), CLASSES, np.uint8)
    values = tile_codes(counted(places, levels, LEVELS, steps), VALUES, np.uint8)
    assert len(classes) == len(values) == sum((SIDE >> resolution) ** 2 for resolution in range(RESOLUTIONS))
    start = 0
    for resolution in range(RESOLUTIONS):
        side = SIDE >> resolution
        expected_class, expected_value = np.full(side**2, N_CODES), np.full(side**2, LEVELS)
        for tile, rows in points_of_tiles(places, side).items():
            if not resolution:
                assert counts[tile] == len(rows)
            labelled = [int(code) for code in codes[rows] if code < N_CODES]
            if labelled:
                often = Counter(labelled)
                expected_class[tile] = min(often, key=lambda code: (-often[code], code))
                expected_value[tile] = round(sum(labelled) / len(labelled))
        np.testing.assert_array_equal(classes[start : start + side**2], expected_class)
        np.testing.assert_array_equal(values[start : start + side**2], expected_value)
        start += side**2


def test_the_corners_of_the_map_are_in_the_corner_tiles():
    places = np.array([[0, 0], [65535, 0], [65535, 0], [0, 65535]], np.uint16)
    counts = tile_counts(places, np.zeros(4, np.uint8), 1, SIDE).toarray().ravel()
    assert dict(zip(np.flatnonzero(counts), counts[counts > 0], strict=True)) == {
        0: 1,
        SIDE - 1: 2,
        SIDE * (SIDE - 1): 1,
    }


@pytest.mark.parametrize("column", [CLASSES, VALUES])
def test_points_without_labels_give_tiles_without_one(column):
    missing = column["missing"]
    counts = tile_counts(np.zeros((5, 2), np.uint16), np.full(5, missing), missing, SIDE)
    assert set(tile_codes(counts, column, np.uint8)) == {missing}
