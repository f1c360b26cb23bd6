import numpy as np
import pyarrow.parquet
import pytest
import zarr

from scalemani.errors import ConfigError, StoreError
from scalemani.io.export import export, rows_per_block, write_rows
from scalemani.io.sources import open_points

EMBEDDING = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
@pytest.mark.parametrize("block_rows", [1, 999, 1024, 5000, 10**6])
def test_rows_come_back_in_order_for_any_block(tmp_path, suffix, block_rows):
    rows = EMBEDDING[: 50 if block_rows == 1 else None]
    path = tmp_path / f"out{suffix}"
    write_rows(lambda a, b: rows[a:b], rows.shape, rows.dtype, path, block_rows)
    source = open_points(path)
    assert source.dtype == np.float32
    assert np.array_equal(source.read(0, len(rows)), rows)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_npy_is_what_numpy_saves(tmp_path):
    export(EMBEDDING, tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", EMBEDDING)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_other_programs_read_what_was_written(tmp_path):
    export(EMBEDDING, tmp_path / "a.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["component_1", "component_2", "component_3"]
    assert np.array_equal(table["component_2"].to_numpy(), EMBEDDING[:, 1])
    export(zarr.array(EMBEDDING, chunks=(700, 2)), tmp_path / "a.zarr")
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr", mode="r")[:], EMBEDDING)


def test_all_zero_blocks_are_written(tmp_path):
    zeros = np.zeros((4096, 2))
    write_rows(lambda a, b: zeros[a:b], zeros.shape, zeros.dtype, tmp_path / "a.zarr", 1024)
    assert len([path for path in (tmp_path / "a.zarr" / "c").rglob("*") if path.is_file()]) == 4


def test_progress_counts_every_row(tmp_path):
    seen = []
    write_rows(lambda a, b: EMBEDDING[a:b], EMBEDDING.shape, "f4", tmp_path / "a.npy", 512, seen.append)
    assert sum(seen) == 5000
    assert len(seen) == 10


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_failure_leaves_nothing_and_keeps_what_was_there(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    if suffix != ".zarr":
        path.write_text("earlier")

    def broken(start, stop):
        if start >= 2048:
            raise ValueError("no more")
        return EMBEDDING[start:stop]

    with pytest.raises(ValueError, match="no more"):
        write_rows(broken, EMBEDDING.shape, "f4", path, 1024)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ([] if suffix == ".zarr" else [path.name])
    assert suffix == ".zarr" or path.read_text() == "earlier"


def test_what_is_there_is_never_removed(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "mine.txt").write_text("keep")
    with pytest.raises(StoreError, match="already there"):
        export(EMBEDDING, tmp_path / "a.zarr")
    assert (tmp_path / "a.zarr" / "mine.txt").read_text() == "keep"
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        export(EMBEDDING, tmp_path / "folder.npy")
    assert [entry.name for entry in (tmp_path / "folder.npy").iterdir()] == []


def test_unknown_suffix_and_missing_folder(tmp_path):
    with pytest.raises(ConfigError, match=r"allowed: \.npy, \.parquet, \.zarr"):
        export(EMBEDDING, tmp_path / "a.csv")
    with pytest.raises(ConfigError, match="no suffix"):
        export(EMBEDDING, tmp_path / "a")
    with pytest.raises(StoreError, match="cannot write"):
        export(EMBEDDING, tmp_path / "missing" / "a.npy")


def test_blocks_follow_the_chunks_of_the_source():
    assert rows_per_block(8) % 1024 == 0
    assert rows_per_block(8, preferred=700) % 700 == 0
    assert rows_per_block(2**26, preferred=700) == 700
