"""Points in files of a bucket, on a server that speaks S3: the rows of the same files on a disk, read by pieces."""

import pickle
import re
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from scalemani.errors import ConfigError, DataError, StoreError, UnsafeStoreError
from scalemani.io.sources import open_points
from scalemani.io.sources.bucket_files import BUFFER_BYTES, BucketFile
from scalemani.store.buckets import open_bucket

POINTS = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
SPARSE = np.where(np.abs(POINTS) > 1.5, POINTS, 0)
PROXY = Path(__file__).parents[3] / "pipelines" / "benchmarks" / "faulty_proxy.py"


@pytest.fixture
def upload(bucket):
    """A function that puts a file of this machine into the bucket and returns its URL."""

    def put(path, name=None):
        open_bucket(bucket).put(name or path.name, path.read_bytes())
        return f"{bucket}/{name or path.name}"

    return put


def saved(path, array):
    np.save(path, array)
    return path


def parquet_file(folder):
    table = pa.table({f"x{column}": values for column, values in enumerate(POINTS.T)})
    pyarrow.parquet.write_table(table, folder / "points.parquet", row_group_size=700)
    return folder / "points.parquet"


def vectors_file(folder):
    table = pa.table({"id": np.arange(len(POINTS)), "vector": pa.array(POINTS.tolist(), pa.list_(pa.float32()))})
    pyarrow.parquet.write_table(table, folder / "vectors.pq", row_group_size=1100)
    return folder / "vectors.pq"


def annotated_file(folder):
    with h5py.File(folder / "cells.h5ad", "w") as file:
        file.create_dataset("obsm/X_pca", data=POINTS, chunks=(400, 6), compression="gzip")
        group = file.create_group("X")
        rows = sparse.csr_array(SPARSE)
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(rows, name)
        group.attrs.update({"encoding-type": "csr_matrix", "shape": SPARSE.shape})
    return folder / "cells.h5ad"


FILES = {
    "rows": (lambda folder: saved(folder / "points.npy", POINTS), "", POINTS),
    "columns": (lambda folder: saved(folder / "columns.npy", np.asfortranarray(POINTS)), "", POINTS),
    "big-endian": (lambda folder: saved(folder / "big.npy", POINTS.astype(">f8")), "", POINTS),
    "parquet": (parquet_file, "", POINTS),
    "two columns": (parquet_file, "::x4,x1", POINTS[:, [4, 1]]),
    "vectors": (vectors_file, "::vector", POINTS),
    "components": (annotated_file, "", POINTS),
    "sparse": (annotated_file, "::X", SPARSE),
}


@pytest.mark.parametrize("kind", FILES)
def test_rows_are_those_of_the_file_on_a_disk_in_any_order_and_in_other_processes(kind, upload, tmp_path):
    make, member, expected = FILES[kind]
    source = open_points(upload(make(tmp_path)) + member)
    assert source.remote
    assert source.shape == expected.shape
    for start, stop in ((0, 1000), (1000, 2500), (2600, 2600), (2500, 3000), (0, 3000), (1234, 1235)):
        np.testing.assert_array_equal(source.read(start, stop), expected[start:stop])
    again = pickle.loads(pickle.dumps(source))
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda start: again.read(start, start + 250), range(0, 3000, 250)))
    np.testing.assert_array_equal(np.concatenate(rows), expected)


def test_a_column_by_column_file_says_what_it_costs(upload, tmp_path):
    assert "takes 6 requests" in open_points(upload(FILES["columns"][0](tmp_path))).remark
    assert open_points(upload(FILES["rows"][0](tmp_path))).remark == ""


@pytest.mark.parametrize("name", ["a b/c+d %41.npy", "größe/données.npy", "..npy"])
def test_names_are_taken_as_they_are(name, upload, tmp_path):
    url = upload(saved(tmp_path / "points.npy", POINTS), name)
    np.testing.assert_array_equal(open_points(url).read(5, 9), POINTS[5:9])


@pytest.mark.parametrize("kind", ["npy", "h5ad", "parquet"])
def test_memory_follows_the_rows_that_are_asked_for_and_not_the_file(kind, upload, tmp_path):
    table = np.random.default_rng(1).normal(size=(60_000, 64))  # 31 MB
    if kind == "npy":
        path = saved(tmp_path / "large.npy", table)
    elif kind == "h5ad":
        path = tmp_path / "large.h5ad"
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=table, chunks=(1000, 64))
    else:
        path = tmp_path / "large.parquet"
        columns = {f"x{column}": values for column, values in enumerate(table.T)}
        pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=60_000, data_page_size=2**16)
    url = upload(path)
    open_bucket(url.rpartition("/")[0]).head(path.name)  # what the first request loads is not of the file
    tracemalloc.start()
    try:
        found = open_points(url).read(1000, 1500)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found, table[1000:1500])
    assert peak < 8 * BUFFER_BYTES


def test_a_file_that_is_replaced_while_it_is_read_is_no_mixture_of_two(upload, tmp_path):
    url = upload(saved(tmp_path / "points.npy", POINTS))
    source = open_points(url)
    source.read(0, 10)
    upload(saved(tmp_path / "points.npy", POINTS + 1))
    for one in (source, pickle.loads(pickle.dumps(source))):
        with pytest.raises(StoreError, match=r"points\.npy was replaced while it was read: run again"):
            one.read(10, 20)
    np.testing.assert_array_equal(open_points(url).read(10, 20), POINTS[10:20] + 1)


def test_what_cannot_be_read_is_refused(upload, bucket, tmp_path):
    with pytest.raises(StoreError, match=r"no file s3://.*/none\.npy: give one that is there"):
        open_points(f"{bucket}/none.npy?token=hunter2")
    with pytest.raises(StoreError, match=r"no file s3://.*-none/points\.npy"):
        open_points(f"{bucket}-none/points.npy")
    for location in ("s3://bucket", "s3:///points.npy"):
        with pytest.raises(ConfigError, match="is at s3://bucket/name"):
            BucketFile(location)
    with pytest.raises(ConfigError, match="user or password"):
        open_points("s3://user:hunter2@bucket/points.npy")
    path = saved(tmp_path / "points.npy", POINTS)
    with pytest.raises(ConfigError, match="leave out ::X"):
        open_points(upload(path) + "::X")
    whole = path.read_bytes()
    for length, words in ((30, "truncated or damaged"), (len(whole) - 1, "its header promises"), (0, "no .npy file")):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=words):
            open_points(upload(path))
    for name in ("points.h5ad", "points.parquet"):
        path.write_bytes(whole[:5000])
        with pytest.raises(DataError, match="truncated or damaged"):
            open_points(upload(path, name))
    np.save(path, np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(UnsafeStoreError, match="pickle"):
        open_points(upload(path))


def test_a_server_that_fails_at_random_is_asked_again(upload, s3_server, tmp_path, monkeypatch):
    urls = [upload(FILES[kind][0](tmp_path)) for kind in ("rows", "parquet", "components")]
    command = [sys.executable, str(PROXY), s3_server, "--failing", "0.3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.stdout.readline().strip())
            open_bucket.cache_clear()
            for url in urls:
                source = open_points(url)
                rows = [source.read(start, start + 500) for start in range(0, 3000, 500)]
                np.testing.assert_array_equal(np.concatenate(rows), POINTS)
        finally:
            proxy.kill()


def test_a_run_of_them_has_the_keys_of_a_run_of_the_file_on_a_disk(upload, scalemani, tmp_path):
    path = saved(tmp_path / "points.npy", POINTS)
    plans = [scalemani("plan", points, tmp_path / "run", "--method", "pca") for points in (path, upload(path))]
    keys = [re.findall(r"^(\w+) +([0-9a-f]{16}) ", output, re.MULTILINE) for _, output, _ in plans]
    assert [status for status, *_ in plans] == [0, 0]
    assert keys[0] == keys[1]
    assert "points" in dict(keys[0])
    assert len(keys[0]) > 1
