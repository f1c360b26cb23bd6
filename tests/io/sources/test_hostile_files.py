"""Files made to run code, or to take up memory: refused by what they say of themselves, before they are read."""

import json
import os
import tracemalloc
import zipfile

import numcodecs
import numpy as np
import pytest
import zarr

from scalemani.errors import ConfigError, DataError, StoreError, UnsafeStoreError
from scalemani.io.sources import open_labels, open_points

ROWS = np.random.default_rng(0).random((1000, 3))
DESCRIBED = {3: "zarr.json", 2: ".zarray"}


class Canary:
    """Leaves a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def stored(folder, zarr_format):
    array = zarr.create_array(folder, shape=ROWS.shape, dtype="f8", chunks=(100, 3), zarr_format=zarr_format)
    array[:] = ROWS
    return folder / DESCRIBED[zarr_format]


def described_again(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
PICKLE = {"name": "numcodecs.pickle", "configuration": {"protocol": 5}}
ZSTD = {"name": "zstd", "configuration": {"level": 0, "checksum": False}}


def shard_of(*codecs, index=BYTES):
    configuration = {"chunk_shape": [10, 3], "codecs": [*codecs], "index_codecs": [index], "index_location": "end"}
    return {"name": "sharding_indexed", "configuration": configuration}


@pytest.mark.parametrize(
    ("name", "codecs"),
    [
        ("pickle", [PICKLE]),
        ("pickle", [BYTES, ZSTD, PICKLE]),
        ("pickle", ["bytes", "numcodecs.pickle"]),
        ("pickle", [shard_of(PICKLE)]),
        ("pickle", [shard_of(shard_of(BYTES, PICKLE))]),
        ("pickle", [shard_of(BYTES, index=PICKLE)]),
        ("pickle", [{"name": "sharding_indexed", "configuration": {"codecs": "numcodecs.pickle"}}]),
        ("vlen-utf8", [{"name": "vlen-utf8"}, PICKLE]),
        ("json2", [{"name": "numcodecs.json2"}]),
        ("canary", [BYTES, {"name": "canary", "configuration": {}}]),
        ("os.system", [BYTES, {"name": "os.system", "configuration": {"command": "touch canary"}}]),
    ],
)
def test_codecs_of_format_3_that_could_run_code_are_refused_behind_whatever_else(tmp_path, name, codecs):
    path = stored(tmp_path / "p.zarr", 3)
    described_again(path, codecs=codecs)
    with pytest.raises(UnsafeStoreError, match=f"uses the codec '(pickle|{name})'; allowed: .*zstd"):
        open_points(tmp_path / "p.zarr")


@pytest.mark.parametrize("where", ["compressor", "filters", "behind another"])
def test_a_pickle_of_format_2_is_never_loaded(tmp_path, where):
    path, canary = stored(tmp_path / "p.zarr", 2), tmp_path / "canary"
    pickled = {"id": "pickle", "protocol": 5}
    filters = {"filters": [pickled], "behind another": [{"id": "vlen-utf8"}, pickled]}.get(where)
    described_again(path, filters=filters, compressor=pickled if where == "compressor" else None)
    content = numcodecs.Pickle().encode(np.array([Canary(canary)], dtype=object))
    for chunk in range(10):
        (tmp_path / "p.zarr" / f"{chunk}.0").write_bytes(content)
    with pytest.raises(UnsafeStoreError, match="uses the codec"):
        open_points(tmp_path / "p.zarr")
    assert not canary.exists()


def test_arrays_of_objects_are_refused_with_every_filter(tmp_path):
    path = stored(tmp_path / "p.zarr", 2)
    described_again(path, dtype="|O", compressor=None, filters=[{"id": "delta", "dtype": "f8"}])
    with pytest.raises(UnsafeStoreError, match=r"Python objects \(dtype \|O\): store numbers"):
        open_points(tmp_path / "p.zarr")


@pytest.mark.parametrize("name", ["zarr.json", ".zattrs"])
def test_a_description_that_is_far_too_long_is_refused_unread(tmp_path, name):
    stored(tmp_path / "p.zarr", 3 if name == "zarr.json" else 2)
    (tmp_path / "p.zarr" / name).touch()
    with (tmp_path / "p.zarr" / name).open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(StoreError, match=f"{name} (has|holds) {2**40} bytes, at most 16777216"):
        open_points(tmp_path / "p.zarr")


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_archive_that_holds_more_than_its_header_says_is_read_no_further(tmp_path, order):
    rows = np.asarray(ROWS, order=order)
    with zipfile.ZipFile(tmp_path / "p.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as file:
        np.lib.format.write_array(file, rows)
        for _ in range(64):
            file.write(bytes(2**20))
    tracemalloc.start()
    try:
        np.testing.assert_array_equal(open_points(tmp_path / "p.npz").read(0, 1000), rows)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [[0, 3], [10, 0], [0, 0]])
def test_chunks_that_hold_no_value_are_refused(tmp_path, shape):
    path = stored(tmp_path / "p.zarr", 3)
    described = json.loads(path.read_text())
    described["chunk_grid"]["configuration"]["chunk_shape"] = shape
    path.write_text(json.dumps(described))
    with pytest.raises((DataError, StoreError), match=r"hold no value|cannot open"):
        open_points(path.parent)


@pytest.mark.parametrize("name", ["points.npz", "points.npz::X", "labels"])
def test_an_encrypted_archive_is_refused(tmp_path, name):
    np.savez(tmp_path / "points.npz", X=np.ones((20, 3)), y=np.arange(20))
    content = bytearray((tmp_path / "points.npz").read_bytes())
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.find(signature)
        while start >= 0:
            content[start + place] |= 1  # the flag of encryption, of a member and in the directory
            start = content.find(signature, start + 1)
    (tmp_path / "points.npz").write_bytes(content)
    with pytest.raises(DataError, match="encrypted"):
        open_labels(f"{tmp_path}/points.npz::y") if name == "labels" else open_points(f"{tmp_path}/{name}")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_description_of_a_gigabyte_is_points_that_cannot_be_used(tmp_path, zarr_format):
    described = stored(tmp_path / "points.zarr", zarr_format)
    os.truncate(described, 2**30)
    with pytest.raises(StoreError, match=rf"{described.name} has {2**30} bytes") as refused:
        open_points(tmp_path / "points.zarr")
    assert refused.value.exit_status == 2


@pytest.mark.parametrize("linked", ["group", "description", "chunk"])
def test_links_out_of_a_zarr_folder_are_not_followed_and_links_within_it_are(tmp_path, linked):
    secret = tmp_path / "secret.zarr"
    stored(secret, 3)
    folder = tmp_path / "points.zarr"
    zarr.open_group(folder, mode="w")
    stored(folder / "own", 3)
    (folder / "within").symlink_to("own")
    np.testing.assert_array_equal(open_points(f"{folder}::within").read(0, 1000), ROWS)
    if linked == "group":
        (folder / "out").symlink_to(secret)
    else:
        stored(folder / "out", 3)
        name = "zarr.json" if linked == "description" else "c/3/0"
        (folder / "out" / name).unlink()
        (folder / "out" / name).symlink_to(secret / name)
    with pytest.raises(UnsafeStoreError, match=r"leads out of .* through a symbolic link: copy"):
        open_points(f"{folder}::out").read(0, 1000)


@pytest.mark.parametrize(
    "chain", ["simplecache::file://{}", "zip://points.zarr::file://{}", "zip://x::https://me:pw@h/{}"]
)
def test_chains_of_urls_are_not_read(tmp_path, chain):
    stored(tmp_path / "points.zarr", 3)
    with pytest.raises(ConfigError, match=r"chain of URLs|user or password") as refused:
        open_points(chain.format(tmp_path / "points.zarr"))
    assert "me:pw" not in str(refused.value)
