"""The disk: what stages say they write, and a run that is refused where it would not fit."""

import contextlib
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.memory_model import Disk, Memory
from scalemani.engine.sizes import Sizes
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DiskSpaceError
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.plan import Fit, check_disk, mapped_bytes, yet_to_write
from scalemani.runs.survey import survey
from scalemani.runs.walk import plan_run, run
from scalemani.stages.table import STAGES
from scalemani.store.objects import LocalObjects

SMALL = {
    "neighbors": {"n_neighbors": 12, "method": "partition"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "partition": {"cell_points": 200, "sample_points": 2000},
}
MOST_OF_WHAT_IS_WRITTEN = 3.0


def embed(points, folder, method="laplacian-eigenmaps", values=SMALL):
    return run(open_points(points), folder, method, Parameters().with_values(values), Executor(), 1024)


def on_disk(folder: Path) -> int:
    """Return the bytes that a folder takes of its disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int):
    """Mount a file system in memory of a given size."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk can be mounted by root alone")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("method", ["spectral-clustering", "t-sne"])
def test_stages_write_no_more_than_they_say_and_not_much_less(tmp_path, method):
    points = np.random.default_rng(0).normal(size=(5000, 64)).astype(np.float32)
    few = {"neighbors": {"n_neighbors": 12}, "layout": {"max_iterations": 20, "snapshots": 5}}
    finished = embed(points, tmp_path / "run", method, {**SMALL, **few})
    found = survey(open_points(points), Executor(), 1024)
    written = {stage: on_disk(finished.group(stage).objects.root) for stage in finished.keys}
    sizes = Sizes(finished.dimensions, finished.params, encoded_row_bytes=found.stored_row_bytes)
    said = {stage: yet_to_write(STAGES[stage].disk(sizes), finished.dimensions, 0).total for stage in finished.keys}
    for stage, taken in written.items():
        assert taken <= said[stage], stage
    assert sum(said.values()) <= MOST_OF_WHAT_IS_WRITTEN * sum(written.values())
    params = Parameters().with_values({**SMALL, **few})
    plan = plan_run(open_points(points), tmp_path / "other", method, params, Executor(), 1024)
    for planned in plan.stages:  # noise compresses least
        assert written[planned.stage.name] <= sum(planned.projected.stored.values()), planned.stage.name
    assert plan.projected_disk < plan.disk
    replace(plan, free_bytes=plan.projected_disk).check()
    with pytest.raises(DiskSpaceError, match=rf"about .* \({plan.projected_disk} bytes\).*if nothing were compressed"):
        replace(plan, free_bytes=plan.projected_disk - 1).check()


def test_points_that_compress_are_expected_to(tmp_path):
    rng = np.random.default_rng(0)
    dense, sparse = rng.normal(size=(3000, 50)), rng.normal(size=(3000, 50))
    sparse[rng.random(sparse.shape) < 0.95] = 0
    expected = [survey(open_points(points), Executor(), 1024).stored_row_bytes for points in (dense, sparse)]
    assert 400 < expected[0] < 1.15 * 400
    assert expected[1] < 0.4 * expected[0]


def test_a_disk_too_small_is_refused_before_any_work(roll, tmp_path, scalemani):
    np.save(tmp_path / "roll.npy", roll)
    with small_disk(tmp_path / "disk", 2) as disk:
        for command in ("plan", "embed"):
            status, _, errors = scalemani(command, tmp_path / "roll.npy", disk / "run", "--block-rows", 1024)
            assert status == 1
            line = errors.splitlines()[-1]
            for words in ("error: the run has about", "2097152 bytes) are free", "the most:", "on a larger disk"):
                assert words in line
        assert not list(disk.iterdir())


def test_what_is_done_does_not_count_again(roll, tmp_path):
    params = Parameters().with_values(SMALL)
    fresh = plan_run(open_points(roll), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    embed(roll, tmp_path / "run")
    done = plan_run(open_points(roll), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    assert fresh.disk > 10**6
    assert done.disk == 0
    affinities = open_run(tmp_path / "run").group("affinities")
    affinities.forget(["block-000002"])
    half = plan_run(open_points(roll), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    uses = {planned.stage.name: planned.disk.total for planned in half.stages}
    assert {stage for stage, use in uses.items() if use} == {"affinities"}
    assert uses["affinities"] < fresh.planned("affinities").disk.total


def test_a_run_that_was_refused_goes_on_where_there_is_room(roll, tmp_path, scalemani):
    np.save(tmp_path / "roll.npy", roll)
    small = [f"--set={stage}.{name}={value}" for stage, group in SMALL.items() for name, value in group.items()]
    with small_disk(tmp_path / "disk", 16) as disk:
        arguments = (tmp_path / "roll.npy", disk / "run", "--block-rows", 1024, *small)
        (disk / "ballast").write_bytes(bytes(12 * 2**20))
        assert scalemani("stage", "points", *arguments)[0] == 0  # of one stage only that one counts
        assert scalemani("embed", *arguments)[0] == 1
        (disk / "ballast").unlink()
        assert scalemani("embed", *arguments)[0] == 0
        assert open_run(disk / "run").embedding.shape == (5000, 2)


def test_a_bucket_has_no_end(bucket, roll):
    params = Parameters().with_values(SMALL)
    plan = plan_run(open_points(roll), f"{bucket}/run", "laplacian-eigenmaps", params, Executor(), 1024)
    assert plan.free_bytes is None
    assert plan.disk > 10**6


def test_what_passes_counts_with_what_stays_of_the_stages_before():
    first, second = Disk({"a": 100}, {"b": 50}), Disk({"a": 30}, {"b": 60})
    check_disk("here", 180, {"two": second, "one": first})  # 30 + 60, then 30 + 100 + 50
    uses = {"one": first, "two": second}
    check_disk("here", 190, uses)
    check_disk("here", None, uses)
    with pytest.raises(DiskSpaceError, match=r"\(190 bytes\) to write below here .*\(189 bytes\) are free"):
        check_disk("here", 189, uses)


@pytest.mark.parametrize(
    ("in_memory", "cache", "expected"), [(True, 500, 0), (True, 499, 3 * 500), (False, 500, 3 * 1500)]
)
def test_files_that_processes_map_count_for_each_of_them(in_memory, cache, expected):
    memory, disk = Memory(points={"rows": 1000}), Disk(mapped={"points": 500})
    assert mapped_bytes(memory, disk, Fit(2, 2, memory, cache, in_memory), 3) == expected


def test_a_disk_that_fills_up_on_the_way_says_how_much_was_wanted_and_free(tmp_path):
    with small_disk(tmp_path / "disk", 1) as disk:
        with pytest.raises(DiskSpaceError, match=r"write 3000000 bytes of .*one, \d+ bytes are free"):
            LocalObjects(disk).set("one", bytes(3_000_000))
        assert not list(disk.iterdir())
