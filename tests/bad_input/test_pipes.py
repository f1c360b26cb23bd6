"""Pipes, devices and loops of links where files are expected: refused at once, wherever they stand."""

import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
import zarr

from scalemani.errors import ScalemaniError, StoreError, UnsafeStoreError
from scalemani.io.sources import open_points
from scalemani.store.locks import lock_folder
from scalemani.store.objects import LocalObjects

SECONDS = 60  # in which a refusal comes on a busy machine; a hang has no end


def refused(*arguments):
    """Run a command, which must end by itself with status 2 and one line."""
    command = [sys.executable, "-m", "scalemani", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("name", ["p.npy", "p.npz", "p.h5ad", "p.parquet"])
def test_points_in_a_pipe(scalemani, tmp_path, name):
    os.mkfifo(tmp_path / name)
    status, _, errors = scalemani("plan", tmp_path / name, tmp_path / "run")
    assert (status, "no regular file" in errors) == (2, True)


def test_a_configuration_in_a_pipe_and_links_that_loop(scalemani, points, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    status, _, errors = scalemani("plan", points, tmp_path / "run", "--config", tmp_path / "pipe")
    assert (status, "no regular file" in errors) == (2, True)
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    status, _, errors = scalemani("plan", tmp_path / "loop.npy", tmp_path / "run")
    assert (status, "no file or directory" in errors) == (2, True)


@pytest.mark.parametrize("name", ["c/1/0", "zarr.json"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_device_in_a_zarr_array(tmp_path, name, make):
    array = zarr.create_array(tmp_path / "p.zarr", shape=(400, 3), dtype="f8", chunks=(100, 3))
    array[:] = 1
    (tmp_path / "p.zarr" / name).unlink()
    make(tmp_path / "p.zarr" / name)
    with pytest.raises(ScalemaniError, match=r"no regular file|leads out of .* through a symbolic link"):
        open_points(tmp_path / "p.zarr").read(0, 400)


def test_a_pipe_in_a_store(tmp_path):
    objects = LocalObjects(tmp_path)
    os.mkfifo(tmp_path / "plan.json")
    with pytest.raises(UnsafeStoreError, match="no regular file"):
        objects.get_json("plan.json")
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(StoreError, match="it is a pipe or a device"), lock_folder(tmp_path):
        pass


def test_a_pipe_in_a_finished_run(copied):
    for name in ("plan.json", "scalemani.json"):
        folder = shutil.copytree(copied, copied.parent / f"with {name}")
        (folder / name).unlink()
        os.mkfifo(folder / name)
        assert "no regular file" in refused("info", folder)


@pytest.mark.parametrize("kind", ["link", "soft link to a link", "raw storage", "virtual"])
def test_values_of_other_files_in_an_hdf5_file(tmp_path, kind):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = np.random.default_rng(0).random((30, 3))
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        if kind == "raw storage":
            (tmp_path / "raw").write_bytes(bytes(range(90)))
            file.create_dataset("X", (30, 3), "u1", external=[(str(tmp_path / "raw"), 0, 90)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((30, 3), "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "X", (30, 3))
            file.create_virtual_dataset("X", layout)
        elif kind == "link":
            file["X"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "X")
        else:
            file["elsewhere"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/")
            file["X"] = h5py.SoftLink("/elsewhere/X")
    with pytest.raises(UnsafeStoreError, match="another file"):
        open_points(tmp_path / "a.h5ad")


def test_parts_of_sparse_rows_in_other_hdf5_files(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = np.ones(3)
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": [3, 2]})
        group["data"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "data")
        group["indices"], group["indptr"] = np.zeros(3, np.int32), np.arange(4)
    with pytest.raises(UnsafeStoreError, match="X/data takes its values from another file"):
        open_points(tmp_path / "a.h5ad")


def test_what_an_hdf5_file_describes_wrongly(tmp_path):
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = h5py.Empty("f8")
        group = file.create_group("text")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": "three by two"})
        for name in ("data", "indices", "indptr"):
            group[name] = np.zeros(1)
    for member, words in (("X", "empty dataset"), ("text", "two numbers are needed")):
        with pytest.raises(ScalemaniError, match=words):
            open_points(f"{tmp_path / 'a.h5ad'}::{member}")
