"""Runs of rows of a file, read and written as by single calls of the system."""

import os
import tempfile

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.machine.file_rows import move_runs, reference_move_runs


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=12), st.integers(1, 9), st.integers(0, 99))
def test_runs_are_read_and_written_as_they_are_one_by_one(runs, row_bytes, seed):
    starts, lengths = (np.array([run[part] for run in runs], np.int64) for part in (0, 1))
    size, draws = 50 * row_bytes, np.random.default_rng(seed)
    content, values = (draws.integers(0, 255, n).astype(np.uint8) for n in (size, int(lengths.sum()) * row_bytes))
    for move in (move_runs, reference_move_runs):
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(content)
            found, expected = np.empty_like(values), content.copy()
            assert move(False, file.fileno(), row_bytes, starts, lengths, found)
            rows = [np.arange(start, start + length) for start, length in runs]
            taken = expected.reshape(50, row_bytes)[np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64)]
            np.testing.assert_array_equal(found, taken.ravel())
            assert move(True, file.fileno(), row_bytes, starts, lengths, values)
            place = 0
            for start, length in runs:
                expected[start * row_bytes : (start + length) * row_bytes] = values[place : place + length * row_bytes]
                place += length * row_bytes
            assert os.pread(file.fileno(), size, 0) == expected.tobytes()


def test_what_lies_behind_the_end_cannot_be_read():
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(bytes(10))
        one = np.ones(1, np.int64)
        for move in (move_runs, reference_move_runs):
            assert not move(False, file.fileno(), 10, one, one, np.empty(10, np.uint8))
