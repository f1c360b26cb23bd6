"""The command `tune`: its table, its files, what it refuses."""

import csv
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

FIXED = ("--set=landmarks.n_landmarks=60", "--set=embedding.solver=lll")
LISTS = ("--set=affinities.perplexity=3,6", "--set=neighbors.n_neighbors=10,5,20", "--method=laplacian-eigenmaps,pca")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 700)
    np.save(folder / "points.npy", rng.normal(size=(700, 6)) + 3 * np.eye(3, 6)[classes])
    np.save(folder / "classes.npy", classes)
    return folder


@pytest.fixture(scope="module")
def done(folder):
    files = folder / "points.npy", folder / "run", f"--labels={folder / 'classes.npy'}"
    command = [sys.executable, "-m", "scalemani", "tune", *map(str, files), *FIXED, *LISTS]
    return subprocess.run(command, check=True, capture_output=True, text=True)


def best_of(done):
    """Return the line that says which cell is best."""
    return next(line for line in done.stdout.splitlines() if line.startswith("best: "))


def test_the_table_has_a_line_a_cell_and_says_which_is_best(done):
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["method", "affinities.perplexity", "neighbors.n_neighbors"]
    assert len(lines[1:13]) == 12
    assert sum("failed: affinities.perplexity must be < " in line for line in lines) == 1
    assert "neighbors" in lines[13]
    ranked = [line.split() for line in lines[1:13] if "failed" not in line]
    best = next(line for line in ranked if line[4] == "1")
    # PCA reads no perplexity: five cells are the run of the best one, and nothing to decide between.
    undecided = [line for line in lines if line.startswith("the data do not decide between ")]
    assert all("method=pca" not in line.partition(" and ")[2] for line in undecided)
    assert best_of(done).startswith(f"best: label-accuracy {best[3]} at --method {best[0]}")
    assert "cell 12 of 12" in done.stderr


def test_a_quiet_command_prints_the_table_and_no_progress(done, folder, scalemani):
    files = folder / "points.npy", folder / "run", f"--labels={folder / 'classes.npy'}"
    status, output, errors = scalemani("tune", *files, *FIXED, *LISTS, "--quiet")
    assert (status, "cell 12 of 12" in errors) == (0, False)
    assert "best: label-accuracy " in output


def test_the_files_beside_it_are_the_table_and_a_picture(done, folder):
    with (folder / "run" / "tuning" / "tuning.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["param_method"] for row in rows] == ["laplacian-eigenmaps"] * 6 + ["pca"] * 6
    picture = np.asarray(Image.open(folder / "run" / "tuning" / "tuning.png").convert("RGB"))
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 100


def test_the_run_opens_as_the_best_which_the_command_by_hand_finds_finished(done, folder, scalemani):
    by_hand = best_of(done).partition(" at ")[2].split()
    by_hand = [word for word in by_hand if word != "--set"]
    settings = [f"--set={word}" for word in by_hand[2:]]
    status, output, _ = scalemani("plan", folder / "points.npy", folder / "run", *FIXED, *by_hand[:2], *settings)
    assert status == 0
    assert "about 0.0 s to do" in output
    assert scalemani("info", folder / "run")[1].startswith(f"{by_hand[1]} of 700 points")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set=affinities.perplexity=5,,6"], "a list of values is written 5,10,30"),
        (["--set=affinities.perplexity=5,5"], "distinct values"),
        (["--method=laplacian,pca"], "unknown method 'laplacian'"),
        (["--method=knn-graph"], "no embedding that could be scored"),
        (["--score=clustering-error"], "give labels as well"),
        (["--metric=precomputed,cosine"], "one at a time"),
        (["--set=neighbors.n_neighbors=700,800"], "need more than n_neighbors"),
    ],
)
def test_what_no_cell_can_use_ends_with_one_line(folder, tmp_path, scalemani, options, message):
    status, _, errors = scalemani("tune", folder / "points.npy", tmp_path / "run", *FIXED, *options)
    assert status == 2
    assert message in errors
    assert not (tmp_path / "run").exists()
