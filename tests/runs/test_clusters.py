"""Wherever a command takes labels it takes the folder of a run, whose clusters they then are."""

import json
import re
import shutil

import numpy as np
import pytest
import typer

import scalemani as sm
from scalemani.interfaces.cli.commands import app

SMALL = "--set neighbors.n_neighbors=12 --set landmarks.n_landmarks=40 --set affinities.perplexity=4"
MADE = f"POINTS MADE {SMALL} --labels LABELS"
# What a command prints; of those that write files, what these hold.
CALLS = {
    "embed": (MADE, f"{MADE} --method lda"),
    "stage": (f"points {MADE}",),
    "plan": (MADE, f"{MADE} --method lda"),
    "tune": (f"{MADE} --set affinities.perplexity=3,4",),
    "measure": ("RUN --json --labels LABELS", "RUN --json --labels OTHER"),
    "doubt": ("RUN --json --labels LABELS",),
    "features": ("RUN --groups LABELS",),
    "plot": ("RUN OUT.png --labels LABELS --size 300", "RUN OUT.png --panels LABELS --size 300"),
    "report": ("RUN OUT.html --labels LABELS --sampled 0", "RUN --tiles OUT.tiles --labels LABELS"),
    "export": ("RUN OUT.csv --labels LABELS",),
}
NAME = "clusters of clusters"  # of the column that stands for the folder `clusters`


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Points in three groups, a run with clusters, the same clusters in a file, and a map of the points."""
    here = tmp_path_factory.mktemp("clusters")
    draw = np.random.default_rng(0)
    points = (draw.normal(size=(150, 4)) + 3 * draw.integers(0, 3, (150, 1))).astype(np.float32)
    np.save(here / "points.npy", points)
    arguments = {"n_neighbors": 12, "n_landmarks": 40, "perplexity": 4}
    found = sm.SpectralClustering(3, store=here / "clusters", **arguments).fit(points)
    np.savetxt(here / "labels.csv", found.labels_, "%d", header=NAME, comments="")
    np.save(here / "other.npy", np.arange(150) % 3)
    settings = {"doubt.measured": True, "doubt.null_points": 0}
    sm.ElasticEmbedding(max_iter=3, store=here / "map", settings=settings, **arguments).fit(points)
    return here


def seen(scalemani, folder, place, command, words, labels):
    """Return what a command prints and writes, without times and sizes, with `labels` for LABELS."""
    shutil.copytree(folder / "map", place / "map")
    places = {"RUN": place / "map", "MADE": place / "run", "POINTS": folder / "points.npy", "OUT": place / "out"}
    places |= {"LABELS": folder / labels, "OTHER": folder / "other.npy"}
    arguments = [re.sub("|".join(places), lambda name: str(places[name[0]]), word) for word in words.split()]
    status, said, errors = scalemani(command, *arguments)
    assert (status, errors if status else "") == (0, "")
    said = re.sub(r"[\d.]+ s\b|[\d.]+ \w?B\b.*| {2,}[\d.]+$", "", said.replace(str(place), ""), flags=re.MULTILINE)
    files = [path for path in sorted(place.rglob("out*")) if path.is_file() and path.suffix != ".html"]
    return said, {path.name: path.read_bytes() for path in files}


def test_every_command_with_labels_is_called_below():
    commands = typer.main.get_command(app).commands
    takes = {"labels", "groups", "panels"}
    named = {name for name, one in commands.items() if takes & {option.name for option in one.params}}
    assert named - {"mix"} == CALLS.keys()  # whose groups are columns of points


@pytest.mark.parametrize(("command", "words"), [(name, words) for name, calls in CALLS.items() for words in calls])
def test_the_folder_of_a_run_is_as_a_file_of_its_clusters(scalemani, folder, tmp_path, command, words):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    of_file = seen(scalemani, folder, tmp_path / "one", command, words, f"labels.csv::{NAME}")
    assert seen(scalemani, folder, tmp_path / "other", command, words, "clusters") == of_file


def test_folders_that_are_no_labels_are_refused_before_work(scalemani, folder, tmp_path):
    points, made = folder / "points.npy", tmp_path / "run"
    status, _, errors = scalemani("embed", points, made, *SMALL.split(), "--labels", folder / "map")
    assert (status, "has no labels" in errors, made.exists()) == (2, True, False)
    status, _, errors = scalemani("embed", points, folder / "clusters", *SMALL.split(), "--labels", folder / "clusters")
    assert (status, "is the run that this command writes" in errors) == (2, True)
    np.save(tmp_path / "few.npy", np.load(points)[:40])
    status, _, errors = scalemani("embed", tmp_path / "few.npy", made, *SMALL.split(), "--labels", folder / "clusters")
    assert (status, "clusters has 150 labels for 40 points" in errors) == (2, True)
    status, _, errors = scalemani("embed", points, made, *SMALL.split(), "--labels", folder)
    assert (status, "or the folder of a run: its clusters" in errors) == (2, True)


def test_classes_of_a_fit_in_python_are_clusters_too(folder):
    points, labels = np.load(folder / "points.npy"), np.loadtxt(folder / "labels.csv", int, skiprows=1)
    maps = [sm.LandmarkLDA(n_landmarks=40).fit(points, y).embedding_ for y in (labels, folder / "clusters")]
    np.testing.assert_array_equal(*maps)
    found = sm.open_run(folder / "map").features(folder / "clusters")
    assert found.groups == sm.open_run(folder / "map").features(labels).groups == ("0", "1", "2")


def test_the_word_run_names_the_clusters_of_the_run(scalemani, folder):
    status, said, _ = scalemani("measure", folder / "clusters", "--json", "--labels", "run")
    assert (status, json.loads(said)["clustering_error"]["value"]) == (0, 0.0)
