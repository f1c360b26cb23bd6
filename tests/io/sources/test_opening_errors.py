"""A file that cannot be opened for now may be opened later; one that is damaged, missing or forbidden may not."""

import os
import resource
from contextlib import contextmanager

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

from scalemani.errors import DataError, UnreachableStoreError
from scalemani.io.sources import open_labels, open_points

ROWS = np.random.default_rng(0).random((20, 3))
TABLE = pa.table({f"x{column}": values for column, values in enumerate(ROWS.T)})
DEEP = "[" * 100_000


def write_h5ad(path):
    with h5py.File(path, "w") as file:
        file["X"] = ROWS


POINTS = {
    "p.npz": lambda path: np.savez(path, X=ROWS),
    "p.parquet": lambda path: pyarrow.parquet.write_table(TABLE, path),
    "p.arrow": lambda path: pyarrow.feather.write_feather(TABLE, str(path)),
    "p.h5ad": write_h5ad,
}
LABELS = {
    "y.npy": lambda path: np.save(path, np.arange(20)),
    "y.npz": lambda path: np.savez(path, y=np.arange(20)),
    "y.parquet": lambda path: pyarrow.parquet.write_table(pa.table({"y": np.arange(20)}), path),
}


@contextmanager
def no_more_files():
    """Leave no file to open to this process."""
    free = os.dup(0)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("name", "write", "opened"),
    [(*one, open_points) for one in POINTS.items()] + [(*one, open_labels) for one in LABELS.items()],
    ids=[*POINTS, *LABELS],
)
def test_a_file_that_cannot_be_opened_for_now_is_a_failure_that_may_pass(tmp_path, name, write, opened):
    write(tmp_path / name)
    opened(tmp_path / name)  # what reads it is loaded
    with (
        no_more_files(),
        pytest.raises((UnreachableStoreError, OSError), match=r"Too many open files|Errno 24") as told,
    ):
        opened(tmp_path / name)
    assert getattr(told.value, "exit_status", 1) == 1
    opened(tmp_path / name)


@pytest.mark.parametrize("name", POINTS)
def test_a_file_that_is_damaged_is_wrong_input(tmp_path, name):
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(DataError) as told:
        open_points(tmp_path / name)
    assert told.value.exit_status == 2


def test_descriptions_that_are_nested_without_end(tmp_path):
    zarr.create_array(str(tmp_path / "p.zarr"), shape=(20, 3), dtype="f4", chunks=(10, 3))
    (tmp_path / "p.zarr" / "zarr.json").write_text(DEEP)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "state.json").write_text(DEEP)
    for name in ("p.zarr", "set"):
        with pytest.raises(DataError, match="nested too deeply"):
            open_points(tmp_path / name)
