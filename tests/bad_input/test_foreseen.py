"""Files and settings that are wrong in ways a library trips over: each is foreseen, and told of in its own words."""

import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr


def columns_of_one_name(path):
    pq.write_table(pa.table([pa.array([1.0, 2.0]), pa.array([2.0, 1.0])], names=["x", "x"]), path)


def a_table_without_values(path):
    with h5py.File(path, "w") as file:
        file["X"] = h5py.Empty("f4")


def a_link_to_a_file_that_is_gone(path):
    with h5py.File(path, "w") as file:
        file["X"] = h5py.ExternalLink("gone.h5", "X")


def a_link_that_leads_nowhere(path):
    with h5py.File(path, "w") as file:
        file["X"] = h5py.SoftLink("/nowhere")


def a_shape_in_words(path):
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": "two by three"})
        group["data"], group["indices"], group["indptr"] = np.ones(2), np.array([0, 1]), np.array([0, 1, 2])


def a_format_that_is_a_number(path):
    sparse = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 3])}
    np.savez(path, format=np.array(7), **sparse)


def a_codec_with_a_list_for_its_settings(path):
    zarr.create_array(path, shape=(20, 3), chunks=(10, 3), dtype="float32")[...] = 1
    description = json.loads((path / "zarr.json").read_text())
    description["codecs"][-1]["configuration"] = [1, 2]
    (path / "zarr.json").write_text(json.dumps(description))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("points.parquet", columns_of_one_name),
        ("points.h5ad", a_table_without_values),
        ("points.h5ad", a_link_to_a_file_that_is_gone),
        ("points.h5ad", a_link_that_leads_nowhere),
        ("points.h5ad", a_shape_in_words),
        ("points.npz", a_format_that_is_a_number),
        ("points.zarr", a_codec_with_a_list_for_its_settings),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_files_that_readers_trip_over(scalemani, one_error, tmp_path, name, write):
    write(tmp_path / name)
    status, _, errors = scalemani("embed", tmp_path / name, tmp_path / "run")
    one_error(errors, [name])
    assert "should not happen" not in errors
    assert status == 2
    assert not (tmp_path / "run").exists()


def test_settings_of_dask_that_cannot_be_read(points, tmp_path):
    (tmp_path / "broken.yaml").write_text("distributed: [1, 2\n  worker: {")
    command = [sys.executable, "-m", "scalemani", "plan", str(points), str(tmp_path / "run")]
    environment = {**os.environ, "DASK_CONFIG": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "broken.yaml" in done.stderr
    assert "should not happen" not in done.stderr
