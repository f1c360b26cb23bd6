"""Tall blocks: functions of columns make the same bits of rows in memory and of distant ones."""

import pickle

import numpy as np
import pytest

from scalemani.kernels.arrays import columns
from scalemani.kernels.arrays.columns import column_squares, combine_columns, inner_products, residuals_into
from scalemani.kernels.arrays.tall import DistantRows, as_column, columns_of, whole, written_panel

N_ROWS = 2500


class Copies(DistantRows):
    """Rows that are given out and taken as copies, as those of another process are."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values.copy(), values.shape, values.dtype

    def __getitem__(self, panel):
        return self.values[panel].copy()

    def gather(self, rows):
        return self.values[rows]

    def write(self, panel, rows):
        self.values[panel] = rows


@pytest.fixture(params=[np.float32, np.float64])
def blocks(request, monkeypatch):
    monkeypatch.setattr(columns, "PANEL", 1024)
    draws = np.random.default_rng(0)
    return [draws.normal(size=(N_ROWS, width)).astype(request.param) for width in (6, 6, 4)]


def through_pickle(function, panels):
    """Run panels as on workers: with what the function refers to as it travels."""
    return [pickle.loads(pickle.dumps(function))(panel) for panel in panels]


def test_sums_over_distant_rows_are_those_in_memory_to_the_last_bit(blocks):
    trivial = np.random.default_rng(1).random(N_ROWS)
    found = []
    for basis, images, added, ones in (
        (*blocks, trivial),
        (*map(Copies, blocks), Copies(trivial)),
    ):
        over = map if isinstance(basis, np.ndarray) else through_pickle
        used, column = columns_of(basis, slice(5)), as_column(ones, basis.dtype)
        picked = columns_of(images, np.array([True, False, True, True, False, False]), compact=True)
        found.append(
            [
                column_squares(used, over),
                inner_products((used, column, added), (added, used), over),
                inner_products((used,), (used, picked), over, np.float64),
                residuals_into(None, basis, images, np.arange(5.0), over),
                whole(used),
                whole(column),
                whole(picked),
            ]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_written_to_distant_rows_is_what_is_written_in_memory(blocks):
    coefficients, values = np.random.default_rng(2).normal(size=(10, 7)), np.arange(6.0)
    found = []
    for make in (np.array, Copies):
        basis, images, added = map(make, blocks)
        combined, residuals = make(np.zeros((N_ROWS, 8), basis.dtype)), make(np.zeros((N_ROWS, 3), basis.dtype))
        combine_columns((basis, added), coefficients, combined)
        residuals_into(residuals, basis, images, values, columns=np.array([0, 2, 5]))
        found.append([whole(combined), whole(residuals)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_that_are_derived_cannot_be_written():
    rows = columns_of(Copies(np.zeros((5, 3))), slice(2))
    with pytest.raises(TypeError, match="DerivedRows cannot be written"), written_panel(rows, slice(0, 5)):
        pass
