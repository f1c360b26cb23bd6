"""Where others may write too: who may read what a run makes, and links that somebody has put there before."""

import os
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest

from scalemani import LaplacianEigenmaps
from scalemani.config.params import Parameters
from scalemani.engine.memory.files import MappedArrays
from scalemani.engine.workers.executor import Executor
from scalemani.errors import StoreError, UnsafeStoreError
from scalemani.io.export import write_rows
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.store.objects import LocalObjects
from scalemani.store.run_store import RunStore

VALUES = {"neighbors": {"n_neighbors": 8}, "affinities": {"perplexity": 3}, "landmarks": {"n_landmarks": 60}}
OTHERS = 0o077


def embed(points, folder, **resources):
    params = Parameters().with_values(VALUES)
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(**resources), 1024)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def open_umask():
    """Let files be made for everybody where nothing says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def treasure(tmp_path):
    """A folder with one file, which links lead to."""
    folder = tmp_path / "treasure"
    folder.mkdir()
    (folder / "file").write_text("mine")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert (folder / "file").read_text() == "mine"


def test_nobody_else_reads_a_lock_or_what_is_half_written(roll, tmp_path, open_umask, spy):

    def mode_of(source, _, src_dir_fd=None, **__):
        return mode(Path(source)) if src_dir_fd is None else 0  # of the cache of machine code

    seen = spy(os, "replace", mode_of)
    embed(roll[:1500], tmp_path / "run")
    assert any(seen)
    assert not any(found & OTHERS for found in seen)
    assert mode(tmp_path / "run" / "lock") == 0o600


def test_scratch_has_a_folder_that_nobody_else_enters(roll, temporary_files, open_umask, spy):
    seen = spy(tempfile.TemporaryDirectory, "__enter__", lambda folder: mode(Path(folder.name)))
    LaplacianEigenmaps(n_landmarks=60, n_neighbors=8, perplexity=3, scheduler="processes", workers=1).fit(roll[:1500])
    assert len(seen) > 2  # the store, what worker processes write, and certificates while they are loaded
    assert set(seen) == {0o700}
    assert not [path for path in temporary_files.rglob("*") if path.is_file()]


def test_mapped_files_have_no_name(temporary_files):
    values = MappedArrays(temporary_files).empty((1000, 1000), np.float64)
    assert not list(temporary_files.iterdir())
    assert values.sum() == 0


def test_links_in_the_temporary_folder_are_not_followed(roll, tmp_path, temporary_files, treasure):
    for name in ("dask-scratch-space", "dask-worker-space", f"dask-scratch-space-{os.getuid()}", "scalemani-"):
        (temporary_files / name).symlink_to(treasure, target_is_directory=True)
    embed(roll[:1500], tmp_path / "run", scheduler="processes", workers=1)


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_links_beside_an_output_are_not_followed(tmp_path, treasure, suffix):
    pytest.importorskip("pyarrow")
    target = tmp_path / f"out{suffix}"
    Path(f"{target}.partial").symlink_to(treasure / "file")
    rows = np.arange(12.0).reshape(6, 2)
    write_rows(lambda start, stop: rows[start:stop], rows.shape, rows.dtype, target)
    np.testing.assert_array_equal(open_points(target).read(0, 6), rows)
    assert not target.is_symlink()


def test_links_beside_a_picture_are_not_followed(roll, tmp_path, treasure):
    pytest.importorskip("matplotlib")
    from scalemani.io.figures import embedding_picture

    (tmp_path / "out.png.partial").symlink_to(treasure / "file")
    embedding_picture(roll[:, :2], tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes()[1:4] == b"PNG"


def test_a_lock_that_is_a_link_is_refused(tmp_path, treasure):
    store = RunStore.create(tmp_path / "run")
    (tmp_path / "run" / "lock").symlink_to(treasure / "file")
    with pytest.raises(StoreError, match="remove it, or use another folder"), store.locked():
        pass


@pytest.mark.parametrize("key", ["../../elsewhere", "/etc", "nul\0", "", "a/../.."])
def test_a_plan_cannot_lead_out_of_its_store(roll, tmp_path, key):
    finished = embed(roll[:1500], tmp_path / "run")
    plan = finished.store.load_plan()
    finished.store.save_plan({**plan, "keys": {**plan["keys"], "embedding": key}})
    with pytest.raises(UnsafeStoreError):
        open_run(tmp_path / "run").embedding  # noqa: B018
    with pytest.raises(UnsafeStoreError):
        LocalObjects(tmp_path / "run").below(f"stages/embedding/{key}")
