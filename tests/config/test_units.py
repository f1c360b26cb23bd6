"""Sizes are said in units that options read back."""

import pytest
from dask.utils import parse_bytes

from scalemani.config.units import format_bytes


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (812, "812 B"),
        (950, "0.95 kB"),
        (958_120_000, "0.96 GB"),
        (17_180_000, "17.18 MB"),
        (3e12, "3000.00 GB"),
    ],
)
def test_sizes_are_decimal_and_are_read_back(n_bytes, text):
    assert format_bytes(n_bytes) == text
    assert parse_bytes(text) == pytest.approx(n_bytes, rel=6e-3)
