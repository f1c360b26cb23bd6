"""No clock and no file time decides anything: runs in 1970, in 2038 and of a clock that jumps back are the same."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run

VALUES = {"neighbors": {"n_neighbors": 8}, "affinities": {"perplexity": 3}, "landmarks": {"n_landmarks": 60}}
OPTIONS = [f"--set={stage}.{name}={value}" for stage, group in VALUES.items() for name, value in group.items()]
YEARS = {"1970": 0.0, "2038": 2.0**31}
LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


def embed(points, folder):
    params = Parameters().with_values(VALUES)
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(), 1024)


@pytest.fixture(scope="module")
def points(roll):
    return roll[:1500]


@pytest.fixture(scope="module")
def finished(points, tmp_path_factory):
    return embed(points, tmp_path_factory.mktemp("clocks") / "run")


def same(one, other):
    assert one.keys == other.keys
    for stage in one.keys:
        assert one.group(stage).content_digest == other.group(stage).content_digest, stage


@pytest.fixture
def clock(monkeypatch):
    """Return what sets the clock of this process to what a function says of the true one."""
    true, true_gm = time.time, time.gmtime

    def set_to(told):
        monkeypatch.setattr(time, "time", lambda: told(true()))
        monkeypatch.setattr(time, "gmtime", lambda seconds=None: true_gm(told(true()) if seconds is None else seconds))

    return set_to


@pytest.mark.parametrize("year", YEARS)
def test_any_year_gives_the_same_run(points, finished, tmp_path, clock, year):
    begun = time.time()
    clock(lambda now: YEARS[year] + (now - begun))
    same(finished, embed(points, tmp_path / "run"))


def test_a_clock_that_jumps_back_gives_the_same_run(points, finished, tmp_path, clock):
    begun = time.time()
    clock(lambda now: begun - 1000 * (now - begun))
    again = embed(points, tmp_path / "run")
    same(finished, again)
    assert all(record["seconds"] >= 0 for record in again.records().values())


@pytest.mark.parametrize("stamp", [0, 2**31 + 10])
def test_times_of_files_decide_nothing(points, finished, tmp_path, monkeypatch, stamp):
    folder = Path(shutil.copytree(finished.store.root, tmp_path / "run"))
    for number, path in enumerate(sorted(folder.rglob("*"))):
        os.utime(path, (stamp, stamp + number % 3))
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    same(finished, embed(points, folder))
    assert not (tmp_path / "ledger").exists()


def test_points_that_change_while_their_file_keeps_its_time_are_other_points(points, finished, tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, points)
    stamp = path.stat().st_mtime_ns
    folder = shutil.copytree(finished.store.root, tmp_path / "run")
    assert embed(str(path), folder).keys == finished.keys
    moved = points.copy()
    moved[3] += 0.25
    np.save(path, moved)
    os.utime(path, ns=(stamp, stamp))
    assert embed(str(path), folder).keys["points"] != finished.keys["points"]


@pytest.mark.skipif(not LIBRARIES, reason="Debian's faketime is not installed")
@pytest.mark.parametrize("when", ["2038-01-19 03:14:06"])
def test_a_command_in_another_year(points, finished, tmp_path, when):
    np.save(tmp_path / "points.npy", points)
    command = [sys.executable, "-m", "scalemani", "embed", str(tmp_path / "points.npy"), str(tmp_path / "run")]
    faked = {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": f"@{when}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    faked["NO_FAKE_STAT"] = "1"  # Python knows what it compiled by the times of the sources
    program = [*command, "--block-rows", "1024", *OPTIONS]
    subprocess.run(program, check=True, capture_output=True, env={**os.environ, **faked})
    same(finished, open_run(tmp_path / "run"))
    assert abs((tmp_path / "run" / "plan.json").stat().st_mtime - time.time()) < 3600  # the disk has its own clock
