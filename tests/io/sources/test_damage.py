"""One byte of each format flipped, and one piece of each gone: noticed where the format has a checksum, told, or known.

`HAS_NONE` lists what stores values without a checksum: there, a flipped byte is another value, and nobody can tell.
"""

import io
import itertools
import json
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr
from numcodecs import CRC32, GZip, Zlib
from scipy import sparse
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec
from zarr.storage import MemoryStore, ZipStore

from scalemani.errors import DataError, ScalemaniError, StoreError
from scalemani.io.sources import open_points
from scalemani.io.sources.array_files import read_array
from scalemani.io.sources.labels import open_labels
from scalemani.io.sources.stores import UrlStore
from scalemani.runs.new_points.transforming import earlier_result

ROWS = np.random.default_rng(0).random((400, 3)) + 1
SPARSE = sparse.csr_array(np.where(ROWS > 1.3, ROWS, 0))
TABLE = pa.table({f"x{column}": values for column, values in enumerate(ROWS.T)})
PLAIN = {"use_dictionary": False, "compression": "none"}
INNER = ShardingCodec(chunk_shape=(50, 3), codecs=[BytesCodec()])
IN_SHARDS = {"chunks": (50, 3), "shards": (100, 3)}


def npz(path, array, **options):
    content = io.BytesIO()
    np.save(content, array)
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.writestr("X.npy", content.getvalue())


def zarr_array(path, rows=ROWS, **options):
    array = zarr.create_array(path, shape=rows.shape, dtype="f8", **{"chunks": (50, 3), "fill_value": 0, **options})
    array[:] = rows
    return array


def hdf5(path, rows=ROWS, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=rows, **options)


def cells(path, values, **options):
    """Write the X of an AnnData: dense, or its compressed rows."""
    in_zarr = path.suffix == ".zarr"
    root = zarr.create_group(path) if in_zarr else h5py.File(path, "w")
    root.attrs["encoding-type"] = "anndata"
    parts = {"X": values} if isinstance(values, np.ndarray) else compressed_parts(values)
    for name, part in parts.items():
        (root.create_array if in_zarr else root.create_dataset)(name, data=part, **options)
    if len(parts) > 1:
        root["X"].attrs.update({"encoding-type": "csr_matrix", "shape": values.shape})
    if not in_zarr:
        root.close()


def compressed_parts(rows):
    return {f"X/{name}": getattr(rows, name) for name in ("data", "indices", "indptr")}


CHECKED = {
    "npz, stored": ("p.npz", lambda path: npz(path, ROWS)),
    "npz, stored, by columns": ("p.npz", lambda path: npz(path, np.asfortranarray(ROWS))),
    "npz, deflated": ("p.npz", lambda path: npz(path, ROWS, compression=zipfile.ZIP_DEFLATED)),
    "sparse npz, stored": ("p.npz", lambda path: sparse.save_npz(path, SPARSE, compressed=False)),
    "sparse npz, deflated": ("p.npz", lambda path: sparse.save_npz(path, SPARSE)),
    "zarr 2, zlib": ("p.zarr", lambda path: zarr_array(path, zarr_format=2, compressors=Zlib())),
    "zarr 2, gzip": ("p.zarr", lambda path: zarr_array(path, zarr_format=2, compressors=GZip())),
    "zarr 2, crc32": ("p.zarr", lambda path: zarr_array(path, zarr_format=2, compressors=None, filters=[CRC32()])),
    "zarr 3, crc32c": ("p.zarr", lambda path: zarr_array(path, compressors=Crc32cCodec())),
    "zarr 3, gzip": ("p.zarr", lambda path: zarr_array(path, compressors=GzipCodec())),
    "zarr 3, zstd with checksum": ("p.zarr", lambda path: zarr_array(path, compressors=ZstdCodec(checksum=True))),
    "zarr 3, shards, crc32c": ("p.zarr", lambda path: zarr_array(path, compressors=Crc32cCodec(), **IN_SHARDS)),
    "hdf5, fletcher32": ("p.h5", lambda path: hdf5(path, chunks=(50, 3), fletcher32=True)),
    "hdf5, gzip": ("p.h5", lambda path: hdf5(path, chunks=(50, 3), compression="gzip")),
    "parquet, checksums": (
        "p.parquet",
        lambda path: pa.parquet.write_table(TABLE, path, write_page_checksum=True, **PLAIN),
    ),
    "anndata, h5ad, gzip": ("p.h5ad", lambda path: cells(path, SPARSE, compression="gzip")),
}
HAS_NONE = {
    "npy": ("p.npy", lambda path: np.save(path, ROWS)),
    "zarr 2": ("p.zarr", lambda path: zarr_array(path, zarr_format=2, compressors=None)),
    "zarr 3": ("p.zarr", lambda path: zarr_array(path, compressors=None)),
    "zarr 3, shards": ("p.zarr", lambda path: zarr_array(path, compressors=None, **IN_SHARDS)),
    "hdf5": ("p.h5", lambda path: hdf5(path)),
    "parquet": ("p.parquet", lambda path: pa.parquet.write_table(TABLE, path, **PLAIN)),
    "arrow": ("p.arrow", lambda path: pa.feather.write_feather(TABLE, str(path), compression="uncompressed")),
    "anndata, h5ad": ("p.h5ad", lambda path: cells(path, ROWS)),
    "anndata, h5ad, sparse": ("p.h5ad", lambda path: cells(path, SPARSE)),
}


def flip(path):
    """Flip the lowest byte of a value in the middle of the points; where it is compressed, the middle of its file."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    value = ROWS[200, 0] if ROWS[200, 0] > 1.3 else ROWS[200].max()
    for file in files:
        content = bytearray(file.read_bytes())
        if (at := content.find(value.tobytes())) >= 0:
            break
    else:
        file = max(files, key=lambda file: file.stat().st_size)
        content = bytearray(file.read_bytes())
        at = len(content) // 2
    content[at] ^= 255
    file.write_bytes(content)


def rows_of(path):
    source = open_points(path)
    return np.concatenate([source.read(start, start + 50) for start in range(0, 400, 50)])


@pytest.mark.parametrize("kind", CHECKED)
def test_a_flipped_byte_is_noticed_where_a_format_has_a_checksum(tmp_path, kind):
    name, write = CHECKED[kind]
    write(tmp_path / name)
    np.testing.assert_array_equal(
        rows_of(tmp_path / name), SPARSE.toarray() if "h5ad" in kind or "sparse" in kind else ROWS
    )
    flip(tmp_path / name)
    with pytest.raises((DataError, StoreError), match=r"damaged"):
        rows_of(tmp_path / name)


@pytest.mark.parametrize("kind", HAS_NONE)
def test_a_flipped_byte_is_one_other_value_where_a_format_has_no_checksum(tmp_path, kind):
    name, write = HAS_NONE[kind]
    write(tmp_path / name)
    before = rows_of(tmp_path / name)
    flip(tmp_path / name)
    assert np.sum(rows_of(tmp_path / name) != before) == 1


@pytest.mark.parametrize("at", [0, 1])  # the member that is read to its end, and labels
def test_labels_and_other_arrays_of_an_archive_are_read_with_their_checksum(tmp_path, at):
    npz(tmp_path / "y.npz", np.arange(2000.0), compression=zipfile.ZIP_DEFLATED if at else zipfile.ZIP_STORED)
    content = bytearray((tmp_path / "y.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "y.npz").write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        read_array(tmp_path / "y.npz", None)


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_damaged_index_of_a_shard_is_noticed(tmp_path, location):
    shards = {"shape": (100, 3), "index_location": location}
    zarr_array(tmp_path / "p.zarr", compressors=None, shards=shards)
    file = tmp_path / "p.zarr/c/2/0"
    content = bytearray(file.read_bytes())
    content[8 if location == "start" else -12] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"rows \[200, 250\).*damaged"):
        rows_of(tmp_path / "p.zarr")


GRIDS = {
    "format 2": {"zarr_format": 2},
    "format 2, nested": {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "format 2, no fill value": {"zarr_format": 2, "fill_value": None},
    "format 3": {},
    "format 3, flat": {"chunk_key_encoding": {"name": "default", "separator": "."}},
    "format 3, keys of 2": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    "format 3, keys of 2, nested": {"chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "several columns": {"chunks": (50, 2)},
}
SHARDS = {
    "index at the end": {"shards": (100, 3)},
    "index at the start": {"shards": {"shape": (100, 3), "index_location": "start"}},
    "flat": {"shards": (100, 3), "chunk_key_encoding": {"name": "default", "separator": "."}},
    "beyond the last row": {"shards": (250, 3)},
    "beyond the last column": {"chunks": (50, 2), "shards": (100, 4)},
    "no checksum of the index": {
        "chunks": (100, 3),
        "serializer": ShardingCodec(chunk_shape=(50, 3), index_codecs=[BytesCodec()]),
        "compressors": None,
    },
    "big-endian index": {
        "chunks": (100, 3),
        "serializer": ShardingCodec(chunk_shape=(50, 3), index_codecs=[BytesCodec(endian="big"), Crc32cCodec()]),
        "compressors": None,
    },
}


def told(location):
    return open_points(location).remark


def stored_objects(path):
    return [file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith((".z", "zarr"))]


@pytest.mark.parametrize("kind", [*GRIDS, *SHARDS])
def test_rows_of_zarr_that_were_never_written_are_told_with_the_number_of_their_chunks(tmp_path, kind):
    options = {**GRIDS, **SHARDS}[kind]
    columns = -(-3 // options["chunks"][1]) if "column" in kind else 1
    whole = zarr_array(tmp_path / "whole.zarr", **options)
    assert told(tmp_path / "whole.zarr") == ""
    array = zarr.create_array(
        tmp_path / "p.zarr", shape=(400, 3), dtype="f8", **{"chunks": (50, 3), "fill_value": 0, **options}
    )
    array[:150], array[200:] = ROWS[:150], ROWS[200:]
    wanted, missing = 8 * columns, columns
    assert told(tmp_path / "p.zarr").startswith(f"{missing} of {wanted} chunks of {tmp_path / 'p.zarr'} are missing")
    assert f"read as 0{'' if whole.fill_value is None else '.0'}:" in told(tmp_path / "p.zarr")
    np.testing.assert_array_equal(rows_of(tmp_path / "p.zarr")[150:200], np.zeros((50, 3)))


@pytest.mark.parametrize("kind", [*GRIDS, *SHARDS])
def test_an_object_of_zarr_that_is_gone_is_told(tmp_path, kind):
    options = {**GRIDS, **SHARDS}[kind]
    zarr_array(tmp_path / "p.zarr", **options)
    columns = -(-3 // options["chunks"][1]) if "column" in kind else 1
    file = stored_objects(tmp_path / "p.zarr")[-1]
    within = {"beyond the last row": 3, "beyond the last column": 4}.get(kind, 2) if kind in SHARDS else 1
    file.unlink()
    assert told(tmp_path / "p.zarr").startswith(f"{within} of {8 * columns} chunks")


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec disables partial reads")
@pytest.mark.parametrize(
    "options",
    [
        {"chunks": (100, 3), "shards": (200, 3), "serializer": INNER, "compressors": None},
        {"chunks": (200, 3), "serializer": INNER, "compressors": GzipCodec()},
    ],
    ids=["within shards", "encoded further"],
)
def test_gaps_in_shards_that_no_index_of_the_store_has_are_said_to_be_uncounted(tmp_path, options):
    array = zarr.create_array(tmp_path / "p.zarr", shape=(400, 3), dtype="f8", fill_value=0, **options)
    array[:100], array[150:] = ROWS[:100], ROWS[150:]
    assert told(tmp_path / "p.zarr").startswith(
        f"chunks that nested or encoded shards of {tmp_path / 'p.zarr'} lack are not counted, and read as 0.0: look"
    )
    np.testing.assert_array_equal(rows_of(tmp_path / "p.zarr")[100:150], np.zeros((50, 3)))
    stored_objects(tmp_path / "p.zarr")[-1].unlink()
    assert " chunks of " in told(tmp_path / "p.zarr")
    zarr_array(tmp_path / "one.zarr", chunks=(200, 3), serializer=INNER, compressors=None)
    assert told(tmp_path / "one.zarr") == ""


@pytest.mark.parametrize("kind", GRIDS)
def test_what_lies_beside_a_gap_and_is_no_chunk_of_the_array_does_not_hide_it(tmp_path, kind):
    zarr_array(tmp_path / "p.zarr", **GRIDS[kind])
    first, *_, last = stored_objects(tmp_path / "p.zarr")
    content, key = first.read_bytes(), str(last.relative_to(tmp_path / "p.zarr"))
    digits = ["7", "70", "07"]
    strangers = {key.replace(*pair) for pair in itertools.permutations(digits, 2)}
    strangers |= {f"{key}/0", f"{key}.0", key.replace("/", "#").replace(".", "/").replace("#", "."), "0", "x/0/0"}
    last.unlink()
    for name in strangers - {key}:
        (tmp_path / "p.zarr" / name).parent.mkdir(parents=True, exist_ok=True)
        if not (tmp_path / "p.zarr" / name).exists():
            (tmp_path / "p.zarr" / name).write_bytes(content)
    assert told(tmp_path / "p.zarr").startswith("1 of ")


def test_chunks_of_fill_values_that_were_left_out_are_told_and_read(tmp_path):
    rows = ROWS.copy()
    rows[100:200] = 0
    for name, options in {"chunks": {}, "shards": {"shards": (100, 3)}, "inner": {"shards": (200, 3)}}.items():
        zarr_array(tmp_path / f"{name}.zarr", rows, **options)
        assert told(tmp_path / f"{name}.zarr").startswith("2 of 8 chunks")
        np.testing.assert_array_equal(rows_of(tmp_path / f"{name}.zarr"), rows)


@pytest.mark.parametrize("options", [{}, {"shards": (100, 3)}])
def test_gaps_are_told_in_memory_in_archives_in_groups_and_in_buckets(tmp_path, bucket, options):
    with ZipStore(tmp_path / "p.zip", mode="w") as archive:
        stores = {"memory": MemoryStore(), "archive": archive, "bucket": UrlStore(f"{bucket}/p.zarr", read_only=False)}
        for store in stores.values():
            group = zarr.create_group(store)
            other = group.create_array("Xother", shape=(400, 3), dtype="f8", chunks=(50, 3))
            array = group.create_array("X", shape=(400, 3), dtype="f8", chunks=(50, 3), **options)
            other[:] = ROWS
            array[:350] = ROWS[:350]
            assert told(array).startswith("1 of 8 chunks")
            assert told(other) == ""
    assert told(f"{bucket}/p.zarr::X").startswith("1 of 8 chunks")


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_a_missing_chunk_of_sparse_rows_in_zarr_is_told(tmp_path, part):
    cells(tmp_path / "p.zarr", SPARSE)
    group = zarr.open_group(tmp_path / "p.zarr/X", mode="r+")
    values = group[part][:]
    del group[part]
    array = group.create_array(part, shape=values.shape, dtype=values.dtype, chunks=(50,), shards=(100,))
    array[:] = values
    array[50:100] = 0
    if part == "indptr":  # which no longer ascend
        with pytest.raises(DataError, match="row pointers do not fit"):
            told(tmp_path / "p.zarr")
    else:
        assert f"1 of {-(-len(values) // 50)} chunks" in told(tmp_path / "p.zarr")


SINGLE_FILES = [kind for kind, (name, _) in (CHECKED | HAS_NONE).items() if not name.endswith(".zarr")]


@pytest.mark.parametrize("kind", SINGLE_FILES)
def test_a_file_that_lacks_its_end_is_refused(tmp_path, kind):
    name, write = (CHECKED | HAS_NONE)[kind]
    write(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(ScalemaniError, match=r"damaged|truncated"):
        rows_of(tmp_path / name)


@pytest.mark.parametrize("read", [open_points, open_labels, earlier_result], ids=["points", "labels", "transform"])
def test_attributes_of_zarr_that_are_no_object_are_refused(tmp_path, read):
    zarr.create_array(tmp_path / "p.zarr", data=ROWS)
    metadata = tmp_path / "p.zarr" / "zarr.json"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"attributes": [1]}))
    with pytest.raises(StoreError, match=r"no JSON object|is already there"):
        read(str(tmp_path / "p.zarr"))
