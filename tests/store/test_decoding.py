"""Chunks that decode to more than their shape takes are refused by every codec before they take the memory."""

import bz2
import lzma
import os
import pickle
import subprocess
import sys
import zlib

import numcodecs
import numpy as np
import pyarrow as pa
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec
from zarr.codecs import numcodecs as others

from scalemani.errors import StoreError
from scalemani.sources import open_points
from scalemani.store.arrays import create_array, open_array
from scalemani.store.decoding import BESIDE_BYTES, COMPRESSION_CODECS
from scalemani.store.objects import LocalObjects, digest
from scalemani.store.verified import VerifiedStore
from scalemani.store.zstd_frames import frames_bytes

ROWS = np.random.default_rng(0).random((1000, 3)).round(2)
OF_FORMAT_3 = {
    "zstd": ZstdCodec,
    "gzip": GzipCodec,
    "blosc": lambda: BloscCodec(cname="zstd"),
    "zlib": lambda: others.Zlib(level=1),
    "bz2": lambda: others.BZ2(level=1),
    "lzma": others.LZMA,
    "lz4": others.LZ4,
    "crc32c": Crc32cCodec,
}
OF_FORMAT_2 = [*sorted(COMPRESSION_CODECS), None]
MIB = 2**20
BOMB_MIB = 192
FREE_MIB = 96  # of address space for a child beside what it has when it starts to read


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("name", OF_FORMAT_3)
@pytest.mark.parametrize("shards", [None, (400, 3)])
def test_arrays_of_format_3_are_read_as_before_also_where_they_were_sent(tmp_path, name, shards):
    codec = OF_FORMAT_3[name]()
    array = zarr.create_array(
        tmp_path / "p.zarr", shape=ROWS.shape, dtype="f8", chunks=(100, 3), shards=shards, compressors=codec
    )
    array[:] = ROWS
    source = open_points(tmp_path / "p.zarr")
    np.testing.assert_array_equal(source.read(0, 1000), ROWS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).read(50, 1000), ROWS[50:])
    assert dict(source.array.metadata.to_dict()) == dict(array.metadata.to_dict())


@pytest.mark.parametrize("name", OF_FORMAT_2)
@pytest.mark.parametrize("filters", [None, [numcodecs.Delta("f8")], [numcodecs.Shuffle(8), numcodecs.Zlib()]])
def test_arrays_of_format_2_are_read_as_before(tmp_path, name, filters):
    array = zarr.create_array(
        tmp_path / "p.zarr",
        shape=ROWS.shape,
        dtype="f8",
        chunks=(100, 3),
        zarr_format=2,
        compressors=name and numcodecs.get_codec({"id": name}),
        filters=filters,
        order="F",
    )
    array[:] = ROWS
    source = open_points(tmp_path / "p.zarr")
    np.testing.assert_allclose(source.read(0, 1000), ROWS, atol=1e-12)
    assert dict(source.array.metadata.to_dict()) == dict(array.metadata.to_dict())


def bomb(name):
    """Return bytes that a codec decodes to BOMB_MIB; some by hand, since they say how much they hold."""
    zeros = bytes(MIB)
    if name == "zstd":  # one frame of blocks that repeat a byte 2**17 times, which does not say its size
        block = (2**17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
        last = (2**17 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
        return bytes.fromhex("28b52ffd0058") + block * (8 * BOMB_MIB - 1) + last
    if name == "blosc":
        return bytes(numcodecs.Blosc("zstd", 1).encode(np.zeros(BOMB_MIB * MIB // 8)))
    if name == "lz4":
        return (BOMB_MIB * MIB).to_bytes(4, "little") + bytes(100)
    if name == "lzma":
        machine = lzma.LZMACompressor(preset=0)
    elif name == "bz2":
        return bz2.compress(zeros * 16) * (BOMB_MIB // 16)
    else:
        machine = zlib.compressobj(1, wbits=31 if name == "gzip" else 15)
    return b"".join(machine.compress(zeros) for _ in range(BOMB_MIB)) + machine.flush()


CHILD = f"""
import resource, sys, warnings
from pathlib import Path
from scalemani.errors import StoreError
from scalemani.sources import open_points
warnings.simplefilter("ignore")
whole, *paths = sys.argv[1:]
open_points(whole).read(0, 1000)  # threads are there from now on
sources = [open_points(path) for path in paths]
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + {FREE_MIB * MIB}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for source in sources:
    try:
        source.read(0, 1000)
    except StoreError as error:
        print(error)
"""


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_bombs_of_every_codec_are_refused_in_little_memory(tmp_path):
    whole = zarr.create_array(tmp_path / "whole.zarr", shape=ROWS.shape, dtype="f8", chunks=(100, 3))
    whole[:] = ROWS
    bombs = {name: bomb(name) for name in COMPRESSION_CODECS}
    paths = []
    for name, content in bombs.items():
        codecs = {3: OF_FORMAT_3[name](), 2: numcodecs.get_codec({"id": name})}
        for zarr_format, chunk in ((3, "c/0/0"), (2, "0.0")):
            paths.append(tmp_path / f"{name}{zarr_format}.zarr")
            options = {"chunks": (1000, 3), "zarr_format": zarr_format, "compressors": codecs[zarr_format]}
            zarr.create_array(paths[-1], shape=ROWS.shape, dtype="f8", **options)[:] = ROWS
            (paths[-1] / chunk).write_bytes(content)
    command = [sys.executable, "-c", CHILD, tmp_path / "whole.zarr", *paths]
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}  # else each thread asks for 128 MiB of addresses
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = done.stdout.splitlines()
    assert len(found) == len(paths), done.stdout
    assert all(f"to more than the {16 * 3000 + BESIDE_BYTES} bytes" in line for line in found), done.stdout


def test_a_sealed_chunk_of_a_run_that_decodes_to_more_is_refused(tmp_path):
    store = VerifiedStore(LocalObjects(tmp_path), {}, {})
    create_array(store, "x", (40, 2), np.float32, (16, 2), {"dimensions": ("row", "column")})[...] = ROWS[:40, :2]
    content = bomb("blosc")
    (tmp_path / "x" / "c" / "1" / "0").write_bytes(content)
    store.expected |= {**store.written, "x/c/1/0": (len(content), digest(content), "")}
    array = open_array(store, "x")
    np.testing.assert_array_equal(array[:16], ROWS[:16, :2].astype(np.float32))
    with pytest.raises(StoreError, match=r"x decodes by blosc to more than the \d+ bytes that its shape can take"):
        array[16:32]


@given(st.lists(st.tuples(st.integers(0, 300_000), st.booleans(), st.integers(-5, 5)), min_size=1, max_size=3))
def test_frames_of_zstd_hold_what_they_say(frames):
    words = np.random.default_rng(0).integers(0, 7, 300_000).astype(np.uint8)
    content = b"".join(numcodecs.Zstd(level, checksum).encode(words[:size]) for size, checksum, level in frames)
    skipped = bytes.fromhex("50 2a 4d 18 03 00 00 00 00 00 00")
    total = sum(size for size, _, _ in frames)
    assert frames_bytes(content) == frames_bytes(skipped + content + skipped) == total


@pytest.mark.parametrize("size", [0, 1, 200, 70_000, 131_072, 131_073, 3_000_000])
def test_frames_that_do_not_say_it_hold_no_more_than_their_blocks_can(size):
    words = np.random.default_rng(0).integers(0, 7, size).astype(np.uint8).tobytes()
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "zstd") as stream:
        for start in range(0, size, 10_000):
            stream.write(words[start : start + 10_000])
    found = frames_bytes(target.getvalue().to_pybytes())
    assert size <= found <= size + 2**17


@pytest.mark.parametrize("cut", [1, 5, 8, 50])
def test_frames_that_end_early_or_are_none_are_refused(cut):
    content = numcodecs.Zstd().encode(np.random.default_rng(0).integers(0, 7, 1000).astype(np.uint8))
    for damaged in (content[:-cut], content + bytes(cut)):
        with pytest.raises(ValueError, match="zstd"):
            frames_bytes(damaged)
