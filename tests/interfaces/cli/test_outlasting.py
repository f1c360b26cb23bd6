"""A command outlives its standard error, and hears that its terminal is gone; files of the folder are no modules."""

import signal
import subprocess
import sys

import numpy as np
import pytest

SMALL = ("--set=neighbors.n_neighbors=8", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    path = tmp_path_factory.mktemp("outlasting") / "points.npy"
    np.save(path, np.random.default_rng(0).random((400, 3)))
    return path


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&1 | true", ">&- 2>&- <&-"])
def test_a_run_outlasts_its_standard_error(points, tmp_path, redirection):
    command = " ".join([sys.executable, "-m", "scalemani", "embed", str(points), str(tmp_path / "run"), *SMALL])
    shell = f"set -o pipefail; {command} >{tmp_path}/out {redirection}"
    done = subprocess.run(["bash", "-c", shell], check=False)
    assert done.returncode == 0
    assert list((tmp_path / "run" / "stages" / "embedding").glob("*/complete.json"))


def test_a_terminal_that_goes_stops_a_run_as_other_signals_do():
    program = """
import os, signal, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a process started by nohup ignores it
from scalemani.interfaces.cli.process import ending_in_time
with ending_in_time():
    os.kill(os.getpid(), signal.SIGHUP)
    time.sleep(3600)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGHUP
    assert "stopped by SIGHUP" in done.stderr


def test_files_of_the_working_folder_are_no_modules(tmp_path):
    np.save(tmp_path / "points.npy", np.random.default_rng(0).random((200, 3)))
    for name in ("dask", "distributed", "click", "struct"):
        (tmp_path / f"{name}.py").write_text("open('canary', 'w')")
    # As the installed command starts: its own folder is first among the places of modules, not the working folder.
    command = "from scalemani.interfaces.cli import main; main()"
    program = [sys.executable, "-P", "-c", command, "embed", "points.npy", "run"]
    options = ["--method", "knn-graph", "--scheduler", "processes", "--workers", "1"]
    assert subprocess.run([*program, *options], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert not (tmp_path / "canary").exists()


def test_an_error_is_no_longer_than_people_read(scalemani, tmp_path):
    status, _, errors = scalemani("info", tmp_path / "/".join(["a" * 200] * 50))
    assert status == 2
    assert len(errors) < 4100


def test_sigusr1_shows_what_threads_do_and_the_command_goes_on():
    program = """
import os, signal, time
from scalemani.interfaces.cli.process import ending_in_time
def at_work():
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.2)
with ending_in_time():
    at_work()
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
    assert "in at_work" in done.stderr
