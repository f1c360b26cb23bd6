"""Outputs get their name when they are whole and on the disk; what nobody writes any more goes, all else stays."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from scalemani.errors import StoreError
from scalemani.io.export import write_rows, writers
from scalemani.io.export.anndata import Annotations, write_anndata
from scalemani.io.export.atomic import leftovers, replaced_file, temporary_name
from scalemani.io.export.writers import write_csv, write_map
from scalemani.io.figures import embedding_picture, grid_figure, label_picture, line_figure
from scalemani.io.sources.lazy import LazyRows, lazy_rows

ROWS = np.random.default_rng(0).normal(size=(3000, 2))


class Matrix:
    """A sparse matrix that is read by rows."""

    def __init__(self, rows):
        self.matrix, self.shape, self.dtype, self.indptr = sp.csr_matrix(rows), rows.shape, rows.dtype, None
        self.indptr = self.matrix.indptr.astype(np.int64)

    def rows(self, start, stop):
        return self.matrix[start:stop]


def lazy(rows, before):
    """Return rows that `by_rows` reads in three blocks, others in one; `before` is called when the last is read."""

    def read(start, stop):
        if stop == len(rows):
            before()
        return rows[start:stop]

    return LazyRows(rows.shape, rows.dtype, read, "rows", 1024)


def nothing():
    """Do nothing."""


def by_rows(rows, target, before=nothing):
    given = lazy(rows, before)
    write_rows(given.read, given.shape, given.dtype, target, 1024, workers=1)


OUTPUTS = {
    "rows.npy": by_rows,
    "rows.parquet": by_rows,
    "rows.zarr": by_rows,
    "table.csv": lambda rows, target, before=nothing: write_csv({"x": lazy(rows, before)}, str(target)),
    "arrays.npz": lambda rows, target, before=nothing: writers.write_npz({"x": lazy(rows, before)}, str(target)),
    "arrays.parquet": lambda rows, target, before=nothing: writers.write_parquet(
        {"x": lazy(rows, before)}, str(target)
    ),
    "arrays.zarr": lambda rows, target, before=nothing: writers.write_zarr({"x": lazy(rows, before)}, str(target)),
    "map.parquet": lambda rows, target, before=nothing: write_map(lazy(rows, before), {}, None, str(target)),
    "cells.h5ad": lambda rows, target, before=nothing: write_anndata(
        Annotations(len(rows), {"obsm/X_map": lazy(rows, before)}), str(target)
    ),
    "cells.zarr": lambda rows, target, before=nothing: write_anndata(
        Annotations(len(rows), {"obsm/X_map": lazy(rows, before)}), str(target)
    ),
}
AT_ONCE = {
    "matrix.npz": lambda rows, target: writers.write_sparse_npz(Matrix(rows), str(target)),
    "matrix.zarr": lambda rows, target: writers.write_sparse_zarr(Matrix(rows), str(target)),
    "lines.png": lambda rows, target: line_figure({"a": ([0, 1], [2, 3])}, target),
    "lines.svg": lambda rows, target: line_figure({"a": ([0, 1], [2, 3])}, target),
    "grid.png": lambda rows, target: grid_figure([{"a": 1}, {"a": 2}], [0.5, 0.6], target),
    "picture.png": lambda rows, target: embedding_picture(rows, target),
    "clusters.png": lambda rows, target: label_picture(np.arange(4), (1, 2, 2), target),
}


def content(path):
    """Return the bytes of a file, or of every file of a folder by its name."""
    if path.is_file():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("name", [name for name in OUTPUTS if not name.endswith(".zarr")])
def test_of_two_writers_of_one_file_each_leaves_all_of_its_own(tmp_path, name):
    OUTPUTS[name](ROWS, tmp_path / f"one-{name}")
    OUTPUTS[name](-ROWS, tmp_path / f"other-{name}")
    seen = []

    def another():
        if not seen:
            OUTPUTS[name](-ROWS, tmp_path / name)
            seen.append(content(tmp_path / name))

    OUTPUTS[name](ROWS, tmp_path / name, another)
    if name != "cells.h5ad":  # HDF5 stamps its objects with the time
        assert seen == [content(tmp_path / f"other-{name}")]
        assert content(tmp_path / name) == content(tmp_path / f"one-{name}")
    assert sorted(os.listdir(tmp_path)) == sorted([name, f"one-{name}", f"other-{name}"])


@pytest.mark.parametrize("name", ["rows.zarr", "arrays.zarr"])
def test_of_two_writers_of_one_zarr_store_the_second_is_refused_unless_it_has_the_same(tmp_path, name):
    seen = []

    def another(rows):
        if not seen:
            seen.append(None)
            OUTPUTS[name](rows, tmp_path / name)
            seen[:] = [content(tmp_path / name)]

    OUTPUTS[name](ROWS, tmp_path / name, lambda: another(ROWS))
    seen.clear()
    with pytest.raises(StoreError, match="already there and is not overwritten"):
        OUTPUTS[name](ROWS, tmp_path / f"b{name}", lambda: another_at(tmp_path / f"b{name}", name, seen))
    assert content(tmp_path / f"b{name}") == seen[0]
    assert sorted(os.listdir(tmp_path)) == sorted([name, f"b{name}"])


def another_at(target, name, seen):
    """Write other rows to a target, once."""
    if not seen:
        seen.append(None)
        OUTPUTS[name](-ROWS, target)
        seen[:] = [content(target)]


@pytest.mark.parametrize("name", [name for name in OUTPUTS if name.endswith(".zarr")])
def test_a_store_that_is_written_again_stays_and_other_rows_are_refused(tmp_path, name):
    OUTPUTS[name](ROWS, tmp_path / name)
    before = content(tmp_path / name)
    OUTPUTS[name](ROWS, tmp_path / name)
    assert content(tmp_path / name) == before
    if name != "cells.zarr":  # into which results are written beside what is there
        for others in (-ROWS, ROWS[:10], ROWS.astype(np.float32)):
            with pytest.raises(StoreError, match="already there and is not overwritten"):
                OUTPUTS[name](others, tmp_path / name)
    assert content(tmp_path / name) == before
    assert os.listdir(tmp_path) == [name]


def test_a_store_of_another_shape_is_refused_before_a_row_is_read(tmp_path):
    write_rows(lambda start, stop: ROWS[start:stop], ROWS.shape, "f8", tmp_path / "a.zarr")
    with pytest.raises(StoreError, match="already there"):
        write_rows(lambda start, stop: 1 / 0, (10, 2), "f8", tmp_path / "a.zarr")
    zarr.open_group(tmp_path / "group.zarr", mode="w")
    with pytest.raises(StoreError, match="already there"):
        write_rows(lambda start, stop: 1 / 0, (10, 2), "f8", tmp_path / "group.zarr")


KILLED = """
import os, sys
from scalemani.io.export.atomic import (new_folder, replaced_file)
kind, target = sys.argv[1:]
with (replaced_file if kind == "file" else new_folder)(target) as own:
    if kind == "file":
        own.write(b"half")
        own.flush()
    else:
        (own / "half").write_text("half")
    os._exit(9)
"""


@pytest.mark.parametrize(("kind", "name"), [("file", "rows.npy"), ("folder", "rows.zarr"), ("folder", "arrays.zarr")])
def test_what_a_killed_writer_left_goes_with_the_next_one_and_nothing_else_does(tmp_path, kind, name):
    target = tmp_path / name
    for number in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, kind, target], check=False)
        assert killed.returncode == 9
        assert not target.exists()
        assert len(os.listdir(tmp_path)) == 1, f"after {number + 1} kills"
    kept = {f"{name}.partial", f".{name}.unfinished", ".scalemani-own.unfinished", f"{name}.old"}
    for own in kept:
        (tmp_path / own).write_text("of the user")
    with replaced_file(tmp_path / "other.npy"), replaced_file(tmp_path / "another.npy"):  # at work
        OUTPUTS[name](ROWS, target)
        assert len(os.listdir(tmp_path)) == len(kept) + 3
    assert set(os.listdir(tmp_path)) >= kept | {name, "other.npy"}
    assert all((tmp_path / own).read_text() == "of the user" for own in kept)
    assert not list(leftovers(target))
    assert not list(tmp_path.glob(".scalemani-*-*.unfinished"))


def test_a_writer_at_work_keeps_its_file_from_all_others(tmp_path):
    with replaced_file(tmp_path / "a.npy") as one, replaced_file(tmp_path / "a.npy") as other:
        assert one.name != other.name
        with replaced_file(tmp_path / "a.npy") as third:
            third.write(b"third")
        one.write(b"one")
        other.write(b"other")
    assert (tmp_path / "a.npy").read_bytes() == b"one"


@pytest.mark.parametrize("name", [*OUTPUTS, *AT_ONCE])
def test_all_of_an_output_is_on_the_disk_before_it_has_its_name_and_its_folder_after(tmp_path, spy, name):
    events = []

    def synced(descriptor):
        events.append(("sync", os.fstat(descriptor).st_ino))

    def named(source, target):
        inodes = {path.stat().st_ino for path in (Path(source), *Path(source).rglob("*"))}
        done = {event[1] for event in events if event[0] == "sync"}
        events.append(("named", Path(target), inodes <= done))

    for owner, function, seen in ((os, "fsync", synced), (os, "replace", named), (Path, "rename", named)):
        spy(owner, function, seen)
    {**OUTPUTS, **AT_ONCE}[name](ROWS, tmp_path / name)
    mine = [event for event in events if event[:2] == ("named", tmp_path / name)]
    assert mine == [("named", tmp_path / name, True)]
    assert ("sync", tmp_path.stat().st_ino) in events[events.index(mine[0]) :]


def test_names_as_long_as_a_folder_takes_are_written(tmp_path):
    name = "n" * 251 + ".npy"
    by_rows(ROWS, tmp_path / name)
    np.testing.assert_array_equal(np.load(tmp_path / name), ROWS)


def test_elements_that_a_killed_command_took_out_of_a_store_come_back(tmp_path):
    target = tmp_path / "cells.zarr"
    OUTPUTS["cells.zarr"](ROWS, target)
    left = temporary_name(target)
    (left / "replaced" / "obsm").mkdir(parents=True)
    (target / "obsm" / "X_map").rename(left / "replaced" / "obsm" / "X_map")
    other = Annotations(len(ROWS), {"obsm/X_other": lazy_rows(ROWS, "rows")})
    write_anndata(other, str(target))
    group = zarr.open_group(target, mode="r")
    np.testing.assert_array_equal(group["obsm/X_map"][...], ROWS)
    np.testing.assert_array_equal(group["obsm/X_other"][...], ROWS)
    assert os.listdir(tmp_path) == ["cells.zarr"]


@pytest.mark.parametrize("most", [0, 2000, 20_000])
def test_an_h5ad_that_cannot_be_written_whole_is_one_error_of_the_system(tmp_path, most):
    OUTPUTS["cells.h5ad"](ROWS, tmp_path / "whole.h5ad")
    assert (tmp_path / "whole.h5ad").stat().st_size > most
    program = """
import resource, signal, sys, numpy as np
from scalemani.errors import ScalemaniError
from scalemani.io.export.anndata import Annotations, write_anndata
from scalemani.io.sources.lazy import LazyRows
rows, most = np.random.default_rng(0).normal(size=(3000, 2)), int(sys.argv[2])
given = LazyRows(rows.shape, rows.dtype, lambda start, stop: rows[start:stop], "rows", 1024)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    write_anndata(Annotations(len(rows), {"obsm/X_map": given}), sys.argv[1])
except ScalemaniError as error:
    print(error)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "out.h5ad"), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "out.h5ad" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["whole.h5ad"]


def test_a_link_that_is_named_stays_and_the_file_that_it_leads_to_is_replaced_whole(tmp_path):
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "map.npy", tmp_path / "map.npy"
    target.write_bytes(b"before")
    link.symlink_to(target)
    hard = tmp_path / "hard"
    os.link(target, hard)
    write_rows(lambda start, stop: ROWS[start:stop], ROWS.shape, ROWS.dtype, link, 1024)
    assert link.is_symlink()
    np.testing.assert_array_equal(np.load(target), ROWS)
    assert hard.read_bytes() == b"before"  # replaced, and not written into
    assert sorted(path.name for path in target.parent.iterdir()) == ["map.npy"]
    nowhere = tmp_path / "nowhere.npy"
    nowhere.symlink_to(tmp_path / "disk" / "new.npy")
    write_rows(lambda start, stop: ROWS[start:stop], ROWS.shape, ROWS.dtype, nowhere, 1024)
    np.testing.assert_array_equal(np.load(tmp_path / "disk" / "new.npy"), ROWS)


def test_a_link_in_the_place_of_a_name_that_nobody_gave_is_replaced_itself(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"of somebody else")
    (tmp_path / "report.html").symlink_to(other)
    with replaced_file(tmp_path / "report.html", through_links=False) as file:
        file.write(b"report")
    assert other.read_bytes() == b"of somebody else"
    assert not (tmp_path / "report.html").is_symlink()
