"""A file that cannot be opened for now may be opened later; one that is damaged, missing or forbidden may not."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

from scalemani.errors import DataError, StoreError, UnreachableStoreError
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


AS_NOBODY = """
import json, os, sys
from pathlib import Path
import h5py, PIL.Image, pyarrow.feather, pyarrow.parquet, zarr
import scalemani as sm
from scalemani.errors import StoreError
from scalemani.io.sources import open_labels, open_pixels, open_points

folder, told = Path(sys.argv[1]), {}
opened = {"p": lambda path: open_points(path).read(0, 20), "y": open_labels, "i": open_pixels, "r": sm.open_run}
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
for name in json.loads(sys.argv[2]):
    try:
        opened[Path(name).name[0]](folder / name)
    except StoreError as error:
        told[name] = [str(error), error.exit_status]
print(json.dumps(told))
"""


def test_what_may_not_be_read_is_said_in_one_message_whatever_it_is():
    written = {**POINTS, **LABELS}
    written |= {name: lambda path: np.save(path, ROWS) for name in ("p.npy", "i.npy", "p/a.npy", "closed/p.npy")}
    written |= {name: lambda path: path.write_text("1\n2\n") for name in ("y.csv", "y.txt")}
    written |= {"p-c.npz": lambda path: np.savez_compressed(path, X=ROWS), "i.png": Path.touch}
    written |= {name: lambda path: zarr.save(str(path), ROWS) for name in ("p-all.zarr", "p-chunks.zarr")}
    written |= {"r/scalemani.json": Path.touch}
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = Path(name)
        for file, write in written.items():
            (folder / file).parent.mkdir(exist_ok=True)
            write(folder / file)
            (folder / file).chmod(0)
        (folder / "p-chunks.zarr").chmod(0o755)
        (folder / "p-chunks.zarr" / "c").chmod(0)
        (folder / "closed").chmod(0)
        folder.chmod(0o755)
        names = [{"p/a.npy": "p", "r/scalemani.json": "r"}.get(file, file) for file in written]
        program = [sys.executable, "-c", AS_NOBODY, name, json.dumps(names)]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        for closed in ("closed", "p-chunks.zarr/c"):
            (folder / closed).chmod(0o755)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("this environment cannot be read without the rights of root")
    told = json.loads(done.stdout)
    assert sorted(told) == sorted(names)
    for file, (text, status) in told.items():
        assert str(folder / file) in text
        assert "Permission denied" in text
        assert "can" in text.partition("; ")[2]  # what to do
        assert "damaged" not in text
        assert status == 2


def test_a_name_that_is_too_long_is_refused(tmp_path):
    for opened in (open_points, open_labels):
        with pytest.raises(StoreError, match="File name too long"):
            opened(tmp_path / f"{'p' * 300}.npy")


def test_a_file_that_goes_while_it_is_read_is_no_error_of_the_system(tmp_path):
    np.save(tmp_path / "p.npy", ROWS)
    points = open_points(tmp_path / "p.npy")
    (tmp_path / "p.npy").unlink()
    with pytest.raises(StoreError, match=r"cannot read rows \[0, 20\) of"):
        points.read(0, 20)


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
