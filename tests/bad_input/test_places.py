"""Places that cannot be written."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

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
