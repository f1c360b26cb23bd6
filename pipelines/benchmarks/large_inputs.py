"""Points that other libraries hold and that are larger than a budget: peak memory of storing them, and their content.

    python pipelines/benchmarks/large_inputs.py WORK_FOLDER [--bytes 2e9] [--memory 1GB] [--forms half dask xarray]

`half` is a memory map of float16, `dask` a Dask array of sparse blocks (as many bytes of nonzeros and of their
columns), `xarray` a labelled array of packed int16 in zarr. Each is read into the `points` stage of a run in a process
of its own; "beyond" is its peak memory above that of a process that has loaded everything, and "blocks" are the rows
that the budget lets threads work on. The same content is read from its file as well, by its path: the keys of the stage
have to be equal. Ends with status 1 where a form takes more than 200 MB beyond its blocks, or has another key.
"""

import argparse
import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import h5py
import numpy as np
import scipy.sparse as sp
import xarray
import zarr
from commanding import fresh
from measuring import show

from scalemani.config.params import Parameters
from scalemani.engine.sizes import Sizes
from scalemani.engine.workers.executor import Executor, bytes_of
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from scalemani.stages.table import STAGES

COLUMNS, WIDE, FILLED, CHUNK = 256, 20_000, 400, 10_000
ALLOWED = 200e6
NONZERO_BYTES = 8  # a float32 and its column
PACKED = {"scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -32768}


def write_half(path: Path, size: float) -> None:
    """Write a file of float16."""
    draws, n_rows = np.random.default_rng(0), int(size / 2 / COLUMNS)
    file = np.lib.format.open_memmap(path, "w+", np.float16, (n_rows, COLUMNS))
    for start in range(0, n_rows, CHUNK):
        file[start : start + CHUNK] = draws.random(file[start : start + CHUNK].shape, np.float32)


def write_sparse(path: Path, size: float) -> None:
    """Write an .h5ad of sparse rows, FILLED nonzeros each."""
    draws, n_rows = np.random.default_rng(0), int(size / NONZERO_BYTES / FILLED)
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": (n_rows, WIDE)})
        group["indptr"] = np.arange(n_rows + 1) * FILLED
        data = group.create_dataset("data", (n_rows * FILLED,), np.float32, chunks=(2**20,))
        indices = group.create_dataset("indices", (n_rows * FILLED,), np.int32, chunks=(2**20,))
        for start in range(0, n_rows, CHUNK):
            rows = min(CHUNK, n_rows - start)
            columns = draws.integers(0, WIDE // FILLED, (rows, FILLED)) + np.arange(FILLED) * (WIDE // FILLED)
            here = slice(start * FILLED, (start + rows) * FILLED)
            data[here], indices[here] = draws.random(rows * FILLED, np.float32) + 1, columns.ravel()


def write_packed(path: Path, size: float) -> None:
    """Write zarr as xarray packs it."""
    draws, n_rows = np.random.default_rng(0), int(size / 2 / COLUMNS)
    array = zarr.open_group(path, mode="w").create_array(
        "v", shape=(n_rows, COLUMNS), chunks=(CHUNK, COLUMNS), dtype="int16", dimension_names=("row", "band")
    )
    array.attrs.update(PACKED)
    for start in range(0, n_rows, CHUNK):
        array[start : start + CHUNK] = draws.integers(-9999, 9999, (min(CHUNK, n_rows - start), COLUMNS), np.int16)


def block_of(path: Path, start: int, stop: int) -> sp.csr_matrix:
    """Return rows of an .h5ad of sparse rows."""
    with h5py.File(path) as file:
        group, shape = file["X"], tuple(file["X"].attrs["shape"])
        bounds = group["indptr"][start : stop + 1]
        here = slice(bounds[0], bounds[-1])
        parts = group["data"][here], group["indices"][here], bounds - bounds[0]
    return sp.csr_matrix(parts, shape=(stop - start, shape[1]))


def sparse_blocks(path: Path) -> Any:
    """Return a Dask array of sparse blocks."""
    with h5py.File(path) as file:
        n_rows = int(file["X"].attrs["shape"][0])
    meta, blocks = sp.csr_matrix((0, 0), dtype=np.float32), []
    for start in range(0, n_rows, CHUNK):
        stop = min(start + CHUNK, n_rows)
        block = dask.delayed(functools.partial(block_of, path, start, stop))()
        blocks.append(da.from_delayed(block, (stop - start, WIDE), meta=meta))
    return da.concatenate(blocks)


FORMS = {
    "half": (write_half, "half.npy", "", lambda path: np.load(path, mmap_mode="r")),
    "dask": (write_sparse, "sparse.h5ad", "::X", sparse_blocks),
    "xarray": (write_packed, "packed.zarr", "::v", lambda path: xarray.open_zarr(path, consolidated=False).v),
}


def kilobytes(name: str) -> int:
    """Return what the system counts of this process."""
    found = re.search(name + r":\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def measure(form: str, folder: Path, memory: str) -> None:
    """Store points in this process and print how much that took; `form` with a dot at its end is the file's path."""
    name = form.removesuffix(".")
    _, file, member, opened = FORMS[name]
    # What is imported and compiled at the first run is so before it is measured.
    warm = np.random.default_rng(0).normal(size=(21_000, 8))
    executor = Executor(memory=bytes_of(memory))
    for points in (warm, sp.csr_matrix(warm), da.from_array(warm, chunks=(2500, 8))):
        run(open_points(points), fresh(folder / "warm"), "knn-graph", Parameters(), executor, only="points")
    given = opened(folder / file) if name == form else f"{folder / file}{member}"
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = kilobytes("VmRSS")
    finished = run(open_points(given), fresh(folder / "run"), "knn-graph", Parameters(), executor, only="points")
    beyond = 1000 * (kilobytes("VmHWM") - before)
    memory = STAGES["points"].memory(Sizes(finished.dimensions, finished.params))
    arrays = memory.total(executor.workers)
    print(json.dumps([beyond, arrays, finished.keys["points"]]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bytes", type=float, default=2e9)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.measure, asked.folder, asked.memory)
        return 0
    asked.folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for form in asked.forms:
        write, file, _, _ = FORMS[form]
        if not (asked.folder / file).exists():
            write(asked.folder / file, asked.bytes)
        found = []
        for measured in (form, f"{form}."):
            command = [sys.executable, __file__, str(asked.folder), "--memory", asked.memory, "--measure", measured]
            output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            found.append(json.loads(output.splitlines()[-1]))
        (beyond, arrays, key), (of_file, _, key_of_file) = found
        row = {"form": form, "beyond MB": beyond / 1e6, "blocks MB": arrays / 1e6, "of its file MB": of_file / 1e6}
        rows.append({**row, "same": key == key_of_file})
    show(rows)
    amiss = [row for row in rows if not row["same"] or 1e6 * (row["beyond MB"] - row["blocks MB"]) > ALLOWED]
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main())
