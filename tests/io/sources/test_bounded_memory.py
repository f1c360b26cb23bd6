"""Points that are larger than the memory a run may use are taken in by parts, whatever holds them."""

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

N, D = 200_000, 160  # 128 MB, twice what readers of Parquet and HDF5 hold whatever the number of rows
PARTS = 16
MOST = 4 * N * D  # bytes that ingestion may add to those of a process that has loaded everything: the points
PROGRAM = """
import json, os, re, sys
import dask.array as da, distributed, h5py, numpy as np, pyarrow.dataset, pyarrow.parquet, pyarrow.ipc, zarr
from scalemani.config.params import Parameters
from scalemani.runs.walk import run
from scalemani.io.sources import open_points
from scalemani.engine.workers.executor import Executor

def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

def stored(given, folder):
    return run(open_points(given), folder, "knn-graph", Parameters(), Executor(workers=1), 1024, only="points")

def measured(given, folder):
    if given.startswith("dask "):
        given = da.from_zarr(given.removeprefix("dask "))
    elif given.startswith("h5py "):
        given = h5py.File(given.removeprefix("h5py "))["X"]
    stored(np.random.default_rng(0).normal(size=(21_000, 8)), folder + "-warm")  # what it loads and compiles is so then
    open("/proc/self/clear_refs", "w").write("5")  # the peak so far is forgotten
    before = kilobytes("VmRSS")
    finished = stored(given, folder)
    return 1000 * (kilobytes("VmHWM") - before), finished.keys["points"]

for number, given in enumerate(json.loads(sys.argv[1])):
    child = os.fork()  # before there are threads
    if child == 0:
        print(json.dumps([given, *measured(given, f"{sys.argv[2]}/{number}")]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, given
"""


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    rows = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    np.save(folder / "a.npy", rows)
    np.save(folder / "columns.npy", np.asfortranarray(rows))
    np.savez(folder / "a.npz", X=rows)
    (folder / "parts").mkdir()
    (folder / "data").mkdir()
    parts = np.array_split(rows, PARTS)
    lists = [pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), D)}) for part in parts]
    for number, (part, table) in enumerate(zip(parts, lists, strict=True)):
        np.save(folder / "parts" / f"part-{number}.npy", part)
        with pa.ipc.new_stream(str(folder / "data" / f"{number}.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
    table = pa.concat_tables(lists)
    pq.write_table(table, folder / "lists.parquet", row_group_size=N)  # one row group of everything
    wide = pa.table({f"x{column}": values for column, values in enumerate(rows.T)})
    pq.write_table(wide, folder / "wide.parquet", row_group_size=10_000)
    with pa.ipc.new_file(str(folder / "a.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=2000)
    zarr.create_array(folder / "second.zarr", data=rows, chunks=(2000, D), zarr_format=2)
    zarr.create_array(folder / "sharded.zarr", data=rows, chunks=(1000, D), shards=(N // 2, D))
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("X", data=rows, chunks=(1000, D), compression="lzf")
    names = ["a.npy", "columns.npy", "a.npz", "parts", "data", "lists.parquet", "wide.parquet", "a.arrow"]
    names += ["second.zarr", "sharded.zarr", "a.h5"]
    return [*(str(folder / name) for name in names), f"dask {folder}/second.zarr", f"h5py {folder}/a.h5"]


def test_ingestion_of_every_form_takes_less_memory_than_the_points(forms, tmp_path):
    arguments = [sys.executable, "-c", PROGRAM, json.dumps(forms), str(tmp_path)]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, found
    assert [given for given, _, _ in found] == forms
    assert {given: took for given, took, _ in found if took > MOST} == {}
    assert len({key for _, _, key in found}) == 1
