"""Small files of every kind that is read, and what is done with one: all that a plan of a run reads of it."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import zarr
from numcodecs import LZ4
from scipy import sparse
from zarr.codecs import GzipCodec, ZstdCodec

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_labels, open_points
from scalemani.runs.new_points import NewPoints, read_placement
from scalemani.runs.opened import open_run
from scalemani.runs.walk import INPUTS, plan_run, run
from scalemani.store.objects import digest, sealed, unsealed
from tests.fuzz.damage import damaged, damaged_json

ROWS = np.random.default_rng(0).random((400, 3))
SPARSE = sparse.random_array((400, 50), density=0.1, format="csr", rng=np.random.default_rng(1))
VALUES = {"neighbors": {"n_neighbors": 6}, "affinities": {"perplexity": 2}, "landmarks": {"n_landmarks": 20}}
MEMORY = 10**9
MOST_ROWS = 10**6
RUN = "run"
DESCRIPTIONS = ("plan.json", "complete.json", "scalemani.json", "dimensions.json", INPUTS, "zarr.json")


def write_zarr(path: Path, **options) -> None:
    zarr.create_array(path, shape=ROWS.shape, dtype="f8", chunks=(100, 3), **options)[:] = ROWS


def write_h5ad(path: Path, **options) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=ROWS, **options)


def write_sparse_h5ad(path: Path) -> None:
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": SPARSE.shape})
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(SPARSE, name)


def table() -> pa.Table:
    return pa.table({f"x{column}": values for column, values in enumerate(ROWS.T)})


POINTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "npy": ("p.npy", lambda path: np.save(path, ROWS)),
    "npy by columns": ("p.npy", lambda path: np.save(path, np.asfortranarray(ROWS))),
    "npz": ("p.npz", lambda path: np.savez_compressed(path, X=ROWS)),
    "npz by columns": ("p.npz", lambda path: np.savez(path, X=np.asfortranarray(ROWS))),
    "sparse npz": ("p.npz", lambda path: sparse.save_npz(path, SPARSE)),
    "sparse npz by columns": ("p.npz", lambda path: sparse.save_npz(path, SPARSE.tocsc())),
    "zarr 3": ("p.zarr", lambda path: write_zarr(path, compressors=ZstdCodec())),
    "zarr 3 in shards": ("p.zarr", lambda path: write_zarr(path, compressors=GzipCodec(), shards=(200, 3))),
    "zarr 2": ("p.zarr", lambda path: write_zarr(path, zarr_format=2, compressors=LZ4())),
    "parquet": ("p.parquet", lambda path: pyarrow.parquet.write_table(table(), path, row_group_size=100)),
    "arrow": ("p.arrow", lambda path: pyarrow.feather.write_feather(table(), str(path), compression="lz4")),
    "h5ad": ("p.h5ad", lambda path: write_h5ad(path, chunks=(100, 3), compression="gzip")),
    "sparse h5ad": ("p.h5ad", write_sparse_h5ad),
}
LABELS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "labels npy": ("y.npy", lambda path: np.save(path, np.arange(400) % 7)),
    "labels text": ("y.txt", lambda path: path.write_text("\n".join(f"class {row % 7}" for row in range(400)))),
}
KINDS = (*POINTS, *LABELS, *DESCRIPTIONS)


def write_whole(kind: str, folder: Path) -> None:
    """Write what is to be damaged: a file, an array of zarr, or a run."""
    if kind in DESCRIPTIONS:
        run(open_points(ROWS), folder / RUN, "laplacian-eigenmaps", Parameters().with_values(VALUES), Executor())
    else:
        name, write = {**POINTS, **LABELS}[kind]
        write(folder / name)


def write_damaged(kind: str, folder: Path, copy: Path, draws: random.Random) -> None:
    """Write a copy of a folder in which one file is damaged; its own digests fit."""
    shutil.copytree(folder, copy)
    if kind in DESCRIPTIONS:
        files = (path for path in (copy / RUN).rglob(kind) if b'"group"' not in path.read_bytes())  # nobody reads those
        damage_description(draws.choice(sorted(files)), draws)
        return
    path = draws.choice(sorted(path for path in copy.rglob("*") if path.is_file()))
    if path.name in ("zarr.json", ".zarray") and draws.random() < 0.7:
        path.write_text(json.dumps(damaged_json(json.loads(path.read_text()), draws)))
    else:
        path.write_bytes(damaged(path.read_bytes(), draws))


def damage_description(path: Path, draws: random.Random) -> None:
    """Change a description of a run, and every digest of it: whoever can write a store can write these as well."""
    if path.name != "zarr.json":
        path.write_bytes(sealed(damaged_json(unsealed(path.read_bytes()), draws)))
        return
    content = json.dumps(damaged_json(json.loads(path.read_bytes()), draws)).encode()
    path.write_bytes(content)
    record = next(folder / "complete.json" for folder in path.parents if (folder / "complete.json").exists())
    key, complete = str(path.relative_to(record.parent / "arrays")), unsealed(record.read_bytes())
    for unit in complete["units"].values():
        if key in unit:
            unit[key] = [len(content), digest(content), ""]
    record.write_bytes(sealed(complete))


def use(kind: str, folder: Path) -> None:
    """Read what was damaged, as a command would."""
    params, executor = Parameters().with_values(VALUES), Executor(workers=1, memory=MEMORY)
    if kind in LABELS:
        open_labels(folder / LABELS[kind][0], 400)
    elif kind in POINTS:
        points = open_points(folder / POINTS[kind][0])
        if points.shape[0] <= MOST_ROWS:
            plan_run(points, folder / RUN, "laplacian-eigenmaps", params, executor)
        else:  # of fill values alone, which is not forbidden: all of them take as long as they take
            points.read(points.shape[0] - 1000, points.shape[0])
    else:
        opened = open_run(folder / RUN)
        opened.certificates  # noqa: B018
        np.asarray(opened.embedding[...])
        NewPoints(read_placement(opened), open_points(ROWS[:3])).read(0, 3)
        plan_run(open_points(ROWS), folder / RUN, "laplacian-eigenmaps", params, executor)
