"""Tables in files hold what was written, give rows as arrays do, and keep none of them in memory."""

import gc
import mmap
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.engine.memory.files import RowsInFile
from scalemani.errors import StoreError
from tests.engine.memory.descriptors import open_files_in


@given(st.integers(0, 2**32 - 1), st.integers(1, 20_000), st.sampled_from([(), (3,), (5, 2)]))
@settings(deadline=None, max_examples=30)
def test_rows_are_those_of_an_array(seed, n_rows, columns):
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        rows, expected = RowsInFile(Path(folder), (n_rows, *columns), np.int64), np.zeros((n_rows, *columns), np.int64)
        start, stop = np.sort(rng.integers(0, n_rows + 1, 2))
        scattered = rng.permutation(n_rows)[: n_rows // 2]
        for chosen in (slice(start, stop), scattered, slice(stop, start)):
            values = rng.integers(0, 10**6, expected[chosen].shape)
            rows[chosen], expected[chosen] = values, values
        ascending = np.sort(rng.integers(0, n_rows, 2 * n_rows))
        for chosen in (
            slice(None),
            slice(start, stop),
            ascending,
            ascending[:0],
            ascending.astype(np.int32),
            scattered,
        ):
            np.testing.assert_array_equal(rows[chosen], expected[chosen])
        starts = np.sort(rng.integers(0, n_rows, 9))
        lengths = rng.integers(0, n_rows + 1 - starts)
        runs = [expected[first : first + length] for first, length in zip(starts, lengths, strict=True)]
        np.testing.assert_array_equal(rows.take_runs(starts, lengths), np.concatenate(runs))
        assert len(rows) == n_rows


@pytest.mark.parametrize("chosen", [np.array([3, 10]), np.array([-1, 2])])
def test_a_row_that_is_none_is_an_error(tmp_path, chosen):
    rows = RowsInFile(tmp_path, (10, 2), np.float32)
    with pytest.raises(IndexError, match="of a table of 10"):
        rows[chosen]
    with pytest.raises(IndexError, match="of a table of 10"):
        rows[chosen] = np.zeros((2, 2), np.float32)


def test_values_that_do_not_fit_are_an_error(tmp_path):
    with pytest.raises(ValueError, match="shape"):
        RowsInFile(tmp_path, (10, 2), np.float32)[:3] = np.zeros((2, 2), np.float32)


def kilobytes_of_maps(folder):
    """Return how much of the files in a folder is in the memory of this process."""
    total, counts = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line.split()[0].endswith(":"):  # the first line of a map names its file
            counts = str(folder) in line
        elif counts and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total


def test_rows_from_here_and_there_bring_no_pages_in(tmp_path):
    rows = RowsInFile(tmp_path, (100_000, 1024), np.uint8)
    for start in range(0, len(rows), 20_000):
        rows[start : start + 20_000] = np.full((20_000, 1024), start // 20_000, np.uint8)
    for seed in range(5):
        chosen = np.sort(np.random.default_rng(seed).choice(len(rows), 5_000, replace=False))
        np.testing.assert_array_equal(rows[chosen][:, 0], chosen // 20_000)
    assert kilobytes_of_maps(tmp_path) == 0
    with mmap.mmap(rows._file.fileno(), 0) as whole:
        assert len(whole[: 2**20]) == 2**20
        assert kilobytes_of_maps(tmp_path) >= 1024


def test_threads_read_side_by_side(tmp_path):
    expected = np.random.default_rng(0).integers(0, 255, (20_000, 30)).astype(np.uint8)
    rows, wrong = RowsInFile(tmp_path, expected.shape, expected.dtype), []
    rows[:] = expected

    def read(seed):
        looked_up = np.sort(np.random.default_rng(seed).integers(0, len(expected), (20, 3_000)), axis=1)
        wrong.extend(seed for chosen in looked_up if not np.array_equal(rows[chosen], expected[chosen]))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_file_has_no_name_and_ends_with_its_table(tmp_path):
    rows = RowsInFile(tmp_path, (1000, 10), np.float64)
    assert list(tmp_path.iterdir()) == []
    assert not rows[:].any()
    assert len(open_files_in(tmp_path)) == 1
    del rows
    gc.collect()
    assert open_files_in(tmp_path) == []


def test_a_folder_that_is_not_there_is_told_of(tmp_path):
    with pytest.raises(StoreError, match="cannot write"):
        RowsInFile(tmp_path / "no", (10, 2), np.float64)


def test_a_file_that_cannot_be_read_is_told_of(tmp_path):
    rows = RowsInFile(tmp_path, (10, 2), np.float64)
    os.ftruncate(rows._file.fileno(), 0)
    with pytest.raises(StoreError, match="could not be read"):
        rows[:]
