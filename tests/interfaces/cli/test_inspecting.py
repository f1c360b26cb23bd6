"""The commands that look around: doctor, params, runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from scalemani.config.params import Parameters
from scalemani.engine.progress import json_line
from scalemani.interfaces.cli.doctor import slow_here
from scalemani.interfaces.cli.output import say_json
from scalemani.interfaces.cli.printing import show_reading
from scalemani.interfaces.report.reading import ClassReading, Reading

SMALL = ("--set=neighbors.n_neighbors=10", "--set=landmarks.n_landmarks=50", "--quiet")
FOUND = {
    "processors": {"usable": 8, "all": 8, "load": 0.5},
    "memory": {"usable": 2**34, "all": 2**34, "free": 2**33},
    "disk": {"path": ".", "free": 10**12, "filesystem": "ext4"},
    "temporary files": {"path": "/tmp", "free": 10**12, "filesystem": "ext4"},
}


@pytest.fixture
def folder(tmp_path, scalemani):
    """A folder with points and a run of theirs that was asked for twice, with other perplexities."""
    folder = tmp_path
    np.save(folder / "points.npy", np.random.default_rng(0).normal(size=(800, 5)))
    for perplexity in (3, 4):
        status, output, errors = scalemani(
            "embed", folder / "points.npy", folder / "run", *SMALL, f"--set=affinities.perplexity={perplexity}"
        )
        assert (status, output, errors) == (0, "", "")
    return folder


def size_of(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def test_doctor_says_versions_memory_and_disk(scalemani, tmp_path):
    status, output, _ = scalemani("doctor", tmp_path / "not" / "there")
    assert status == 0
    assert f"zarr {zarr.__version__}" in output
    assert "usable" in output
    found = json.loads(scalemani("doctor", tmp_path, "--json")[1])
    assert found["packages"]["numpy"] == np.__version__
    assert 0 < found["memory"]["usable"] <= found["memory"]["all"]
    assert found["disk"]["free"] > 0


@pytest.mark.parametrize(
    ("subject", "values", "told"),
    [
        ("processors", {"usable": 2}, "2 of 8 processors may be used"),
        ("processors", {"load": 9.0}, "others are at work"),
        ("memory", {"usable": 2**32}, "allows 4.29 GB of 17.18 GB"),
        ("memory", {"free": 2**30}, "only 1.07 GB of memory are free"),
        ("disk", {"filesystem": "nfs4"}, "network file system"),
        ("disk", {"free": 10**9}, "are free for runs"),
        ("temporary files", {"filesystem": "tmpfs"}, "temporary files are in memory"),
    ],
)
def test_doctor_tells_what_is_slow_and_only_that(subject, values, told):
    assert not any(told in line for line in slow_here(FOUND))
    assert any(told in line for line in slow_here({**FOUND, subject: {**FOUND[subject], **values}}))


def test_doctor_reports_kernels_that_cannot_be_cached(tmp_path):
    (tmp_path / "file").write_text("")
    for cache, told in [(tmp_path / "file" / "cache", True), (tmp_path / "cache", False)]:
        command, places = [sys.executable, "-m", "scalemani", "doctor"], {"SCALEMANI_CACHE": str(cache)}
        ended = subprocess.run(command, env={**os.environ, **places}, capture_output=True, text=True, check=True)
        assert ("compiled kernels cannot be cached" in ended.stdout) == told


def test_params_lists_all_that_set_takes(scalemani):
    status, output, _ = scalemani("params")
    assert status == 0
    listed = {line.split()[0] for line in output.splitlines() if "." in line.split(" ")[0]}
    params = Parameters().as_dict()
    assert listed == {f"{stage}.{name}" for stage, table in params.items() if stage != "seed" for name in table}


def test_params_of_a_stage_say_what_they_mean(scalemani):
    output = scalemani("params", "neighbors")[1]
    assert "The k-nearest-neighbour graph" in output
    assert "affinities.perplexity" not in output
    table = json.loads(scalemani("params", "neighbors", "--json")[1])["neighbors"]["parameters"]
    assert {"name": "neighbors.recall", "default": 0.95, "python": "settings"} in table
    assert {"name": "neighbors.n_neighbors", "default": None, "python": "n_neighbors"} in table
    for stage, words in (("neighbours", "did you mean 'neighbors'"), ("reduced", "no stage 'reduced' takes")):
        status, _, errors = scalemani("params", stage)
        assert status == 2
        assert words in errors


def test_runs_lists_results_of_earlier_parameters_and_removes_them(scalemani, folder):
    results = json.loads(scalemani("runs", folder / "run", "--json")[1])
    asked = {
        result["params"].get("perplexity"): result["used"] for result in results if result["stage"] == "affinities"
    }
    assert asked == {3.0: False, 4.0: True}
    assert [result["used"] for result in results if result["stage"] == "neighbors"] == [True]
    before, unused = size_of(folder / "run"), sum(result["n_bytes"] for result in results if not result["used"])
    removed = json.loads(scalemani("runs", folder / "run", "--prune", "--json")[1])
    assert {result["key"] for result in removed} == {result["key"] for result in results if not result["used"]}
    assert size_of(folder / "run") <= before - unused
    assert all(result["used"] for result in json.loads(scalemani("runs", folder / "run", "--json")[1]))
    status, _, errors = scalemani(
        "embed", folder / "points.npy", folder / "run", *SMALL[:2], "--set=affinities.perplexity=4"
    )
    assert status == 0
    assert "nothing to do: every stage is complete" in errors


def test_what_is_not_finite_is_null_in_json(capsys):
    say_json({"a": float("nan"), "b": [np.float64("inf"), {"c": (-np.inf, 1.5)}]})
    printed = capsys.readouterr().out
    assert json.loads(printed, parse_constant=pytest.fail) == {"a": None, "b": [None, {"c": [None, 1.5]}]}
    line = json_line("progress", "a message", seconds=float("nan"))
    assert json.loads(line, parse_constant=pytest.fail)["seconds"] is None


def test_a_table_of_classes_says_how_many_it_leaves_out(capsys):
    classes = tuple(ClassReading(f"kind{n}", 20 - n, 0.9, 0.3, 0.0, 0.2, 0.9) for n in range(12))
    for shown, told in ((classes, True), (classes[:10], False)):
        show_reading(Reading((), {"kind": ()}, {"kind": shown}), {}, as_json=False)
        assert ("and 2 smaller classes, which --json lists" in capsys.readouterr().out) is told
