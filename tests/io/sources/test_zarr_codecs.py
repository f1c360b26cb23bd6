"""Zarr arrays of both formats are read whatever compresses them."""

import pickle

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec
from zarr.codecs import numcodecs as others

from scalemani.io.sources import open_points
from scalemani.io.sources.stores import COMPRESSION_CODECS

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


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("name", OF_FORMAT_3)
@pytest.mark.parametrize("shards", [None, (400, 3)])
def test_arrays_of_format_3_are_read_also_where_they_were_sent(tmp_path, name, shards):
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
def test_arrays_of_format_2_are_read(tmp_path, name, filters):
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
