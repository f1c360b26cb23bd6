"""Places that cannot be written."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import scalemani as sm
from scalemani.errors import ConfigError

SMALL = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")


AS_NOBODY = """
import contextlib, io, json, os, sys
import numba
import scalemani.interfaces.cli.printing, scalemani.io.export, scalemani.io.figures, scalemani.engine.progress
from scalemani.interfaces.cli.process import main

numba.njit(lambda: 0)()  # loads what it needs while it may be read
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
for command in json.loads(sys.argv[1]):
    sys.argv = ["scalemani", *command]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    print(json.dumps([status, errors.getvalue()]))
"""


def as_nobody(commands):
    """Run commands without the rights of root, which may write anywhere: status and standard error of each."""
    program = [sys.executable, "-c", AS_NOBODY, json.dumps([[*map(str, command)] for command in commands])]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    if "ModuleNotFoundError" in done.stdout:
        pytest.skip("this environment cannot be read without the rights of root")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_places_that_cannot_be_written(finished, points, one_error, tree):
    # pytest's own folders are closed to others
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "points.npy").write_bytes(points.read_bytes())
        copy = Path(shutil.copytree(finished, folder / "run"))
        (folder / "closed").mkdir(mode=0o555)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = tree(folder)
        expected = [
            (["embed", folder / "points.npy", folder / "closed" / "run", *SMALL], ["cannot write", "closed/run"]),
            (["embed", folder / "points.npy", copy, *SMALL], ["cannot be written", "choose a folder that can"]),
            (["export", copy, folder / "closed" / "out.npy"], ["cannot write", "closed/out.npy"]),
            (["plot", copy, folder / "closed" / "out.png"], ["cannot write", "closed/out.png"]),
        ]
        found = as_nobody([arguments for arguments, _ in expected])
        for (_, words), (status, errors) in zip(expected, found, strict=True):
            one_error(errors, words)
            assert status == 2
        assert tree(folder) == before
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)


def test_a_home_folder_that_no_shell_has_put_in_is_told_at_every_door(scalemani, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    points = np.random.default_rng(0).normal(size=(60, 3))
    np.save("points.npy", points)
    sm.LaplacianEigenmaps(perplexity=5, store="run").fit(points)
    doors = (
        lambda: sm.TSNE().fit("~/points.npy"),
        lambda: sm.TSNE(store="~/other").fit(points),
        lambda: sm.open_run("~someone/run"),
        lambda: sm.open_run("run").plot(labels="~/labels.txt"),
        lambda: sm.open_run("run").report("~/report.html"),
    )
    for door in doors:
        with pytest.raises(ConfigError, match=r"begins with ~.* give os\.path\.expanduser\('~"):
            door()
    status, _, error = scalemani("export", "run", "~/map.npy")
    assert status == 2
    assert "begins with ~" in error
    Path("~").mkdir()  # a folder of this very name
    np.save("~/points.npy", points)
    sm.LaplacianEigenmaps(perplexity=5).fit("~/points.npy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["points.npy", "run", "~"]


@pytest.mark.parametrize("name", ["points.npy", "two words.parquet", "points.h5ad"])
def test_a_file_url_of_this_machine_is_refused_with_its_path(tmp_path, name):
    place = tmp_path / name
    with pytest.raises(ConfigError, match=re.escape(f"is a file of this machine: give its path, {place}")):
        sm.TSNE().fit(place.as_uri())


def test_a_report_and_labels_of_names_that_are_not_utf8(scalemani, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, labels = (Path(os.fsdecode(name)) for name in (b"m\xfcller", b"kind\xfc.txt"))
    points = np.random.default_rng(0).normal(size=(60, 3))
    sm.LaplacianEigenmaps(perplexity=5, store=folder).fit(points)
    labels.write_text("a\nb\n" * 30)
    status, _, error = scalemani("report", folder, "--labels", labels)
    assert (status, error) == (0, "")
    page = (folder / "report.html").read_bytes().decode()
    assert r"m\udcfcller" in page
    assert scalemani("export", folder, "map.parquet", "--labels", labels)[0] == 0
    assert pq.read_schema("map.parquet").names == ["x", "y", r"kind\udcfc.txt"]
