"""New points and commands that cannot be used."""

import os
import subprocess
import sys

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.ones((5, 4)), ["4 features", "3 features", "same columns"]),
        (np.ones((5, 3), complex), ["Complex data not supported"]),
        (np.full((5, 3), np.nan), ["finite", "row 0, column 0"]),
    ],
)
def test_new_points(scalemani, finished, tmp_path, table, words, one_error):
    np.save(tmp_path / "new.npy", table)
    status, _, errors = scalemani("transform", finished, tmp_path / "new.npy", tmp_path / "out.npy")
    one_error(errors, words)
    assert status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["new.npy"]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (np.ones((5, 3), np.uint8), ""),
        (np.zeros((0, 3)), ""),
        (np.array([[1.0, 2, 3], [1e6, 0, 0], [0, 0, 0], [0, 1e200, 0]]), "2 of 4 new points lie more than 2 times as"),
    ],
)
def test_new_points_far_away_none_and_of_other_types(scalemani, finished, tmp_path, table, told):
    np.save(tmp_path / "new.npy", table)
    status, _, errors = scalemani("transform", finished, tmp_path / "new.npy", tmp_path / "out.npy")
    assert status == 0
    assert errors.startswith(told) if told else not errors
    assert not told or "first rows 1, 3:" in errors
    placed = np.load(tmp_path / "out.npy")
    assert placed.shape == (len(table), 2)
    assert np.isfinite(placed).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export", "RUN", "out.txt"], ["allowed: .npy, .parquet, .zarr, .csv"]),
        (["plot", "RUN", "out.jpg"], [".png", "out.jpg"]),
        (["plot", "RUN", "out.png", "--size", "letter"], ["paper or slide", "got 'letter'"]),
        (["plot", "RUN", "out.png", "--legend", "no"], ["unknown legend 'no'", "beside"]),
        (["plot", "RUN", "out.png", "--labels", "POINTS"], ["one label a point", "(2000, 3)"]),
        (["stage", "neighbours", "POINTS", "RUN"], ["has no stage 'neighbours'", "neighbors"]),
        (["stage", "../x", "POINTS", "RUN"], ["has no stage '../x'"]),
        (["stage", "clustering", "POINTS", "RUN"], ["has no stage 'clustering'"]),
        (["generate", "swiss-rol", "out.npy"], ["did you mean 'swiss-roll'?", "allowed:"]),
        (["generate", "swiss-roll", "out.txt"], ["allowed: .npy"]),
        (["generate", "swiss-roll", "out.npy", "--n-points", "0"], ["n_points", ">= 1", "got 0"]),
        (["generate", "swiss-roll", "out.npy", "--seed=-1"], ["seed", "got -1"]),
        (["generate", "swiss-roll", "out.npy", f"--seed={2**70}"], ["seed", "63 bits"]),
        (["embed", "POINTS", "x" * 300], ["File name too long"]),
        (["embed", "POINTS", ""], ["a run is a folder or at s3://bucket/name"]),
        (["embed", "gs://bucket/points.zarr", "RUN"], ["no credentials for gs://bucket/points.zarr", "environment"]),
        (["generate", "infinite-digits", "out.npy"], ["source"]),
        (["generate", "swiss-roll", "no/where/out.npy"], ["no/where/out.npy"]),
        (["embd", "POINTS", "RUN"], ["No such command 'embd'", "embed"]),
        (["info"], ["Missing argument 'RUN'"]),
        (["--unknown"], ["No such option"]),
    ],
)
def test_other_commands(scalemani, finished, points, tmp_path, monkeypatch, arguments, words, one_error, tree):
    monkeypatch.chdir(tmp_path)
    before = tree(finished)
    status, _, errors = scalemani(*({"RUN": finished, "POINTS": points}.get(word, word) for word in arguments))
    one_error(errors, words)
    assert status == 2
    assert tree(finished) == before
    assert not list(tmp_path.iterdir())


def test_a_real_process_says_one_line_and_shows_a_traceback_only_when_asked(tmp_path):
    np.save(tmp_path / "points.npy", np.arange(5.0))
    command = [sys.executable, "-m", "scalemani", "embed", str(tmp_path / "points.npy")]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    assert plain.stderr.startswith("error: Missing argument 'RUN'.")
    assert (len(plain.stderr.splitlines()), plain.returncode) == (1, 2)
    command += [str(tmp_path / "run"), "--debug"]
    detailed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" in detailed.stderr
    assert detailed.stderr.splitlines()[-1].startswith("error: Expected 2D array")
    assert detailed.returncode == 2


def test_settings_that_a_library_refuses_are_told_of_as_such(points, tmp_path):
    command = [sys.executable, "-m", "scalemani", "plan", str(points), str(tmp_path / "run")]
    refused = {**os.environ, "NUMBA_NUM_THREADS": "0"}
    done = subprocess.run(command, env=refused, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: a library cannot be loaded: ValueError: Number of threads specified must be")
