"""Whatever is wrong with an input: one clear line, exit status 2, and nothing of an earlier run is touched."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import zarr

from scalemani.chunked.executor import Executor
from scalemani.params import Parameters, parse_assignments
from scalemani.run import open_run, run
from scalemani.sources import open_points

SMALL = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")
NAN_COLUMN = np.column_stack([np.arange(2000.0), np.full(2000, np.nan)])


def tree(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def points(tmp_path_factory, roll):
    path = tmp_path_factory.mktemp("input") / "roll.npy"
    np.save(path, roll[:2000])
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory, points):
    folder = tmp_path_factory.mktemp("finished") / "run"
    params = Parameters().with_values(parse_assignments(word.removeprefix("--set=") for word in SMALL))
    run(open_points(points), folder, "laplacian-eigenmaps", params, Executor())
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "copied"))


@pytest.fixture
def refused(scalemani, finished, tmp_path):
    """Return a check that `embed` refuses an input on an earlier run and on a new folder, and changes neither."""

    def check(given, words, *arguments):
        before = tree(finished)
        for folder in (finished, tmp_path / "new"):
            status, _, errors = scalemani("embed", given, folder, *arguments)
            one_error(errors, words)
            assert status == 2
        assert tree(finished) == before
        assert not (tmp_path / "new").exists()

    return check


def one_error(errors, words):
    found = [line for line in errors.splitlines() if line.startswith("error:")]
    assert len(found) == 1, errors
    assert errors.splitlines()[-1] == found[0]
    assert "Traceback" not in errors
    for word in words:
        assert word in found[0]


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("affinities.perplexity=-5", ["affinities.perplexity must be > 1, got -5"]),
        ("affinities.perplexity=0", ["> 1", "got 0"]),
        ("affinities.perplexity=1", ["> 1", "got 1"]),
        ("affinities.perplexity=0.5", ["> 1", "got 0.5"]),
        ("affinities.perplexity=nan", ["affinities.perplexity", "finite", "nan"]),
        ("affinities.perplexity=inf", ["affinities.perplexity", "finite", "inf"]),
        ("affinities.perplexity=700", ["N=2000 points, need more than n_neighbors (k=2100)"]),
        ('affinities.perplexity="30"', ["valid number", "got '30' (str)"]),
        ("affinities.perplexity=true", ["valid number", "got True (bool)"]),
        ("neighbors.n_neighbors=0", ["neighbors.n_neighbors must be >= 1, got 0"]),
        ("neighbors.n_neighbors=-1", [">= 1", "got -1"]),
        ("neighbors.n_neighbors=15.5", ["valid integer", "got 15.5"]),
        ("neighbors.n_neighbors=1e3", ["valid integer", "got 1000.0"]),
        ("neighbors.n_neighbors=2000", ["N=2000 points, need more than n_neighbors (k=2000)", "give more points"]),
        ("neighbors.method=annoy", ["neighbors.method", "'auto', 'exact', 'pynndescent' or 'partition'", "'annoy'"]),
        ("neighbors.metric=cosine", ["unknown parameter neighbors.metric", "allowed:"]),
        ("neighbors.recall=1.5", ["neighbors.recall must be <= 1, got 1.5"]),
        ("landmarks.n_landmarks=2", ["n_components must be below landmarks.n_landmarks=2", "must be at least 3"]),
        ("landmarks.n_landmarks=1", ["landmarks.n_landmarks must be >= 2, got 1"]),
        ("landmarks.n_landmarks=2001", ["landmarks.n_landmarks must be at most N=2000, got 2001"]),
        ("landmarks.method=kmean", ["landmarks.method", "'kmeans'", "got 'kmean'"]),
        ("landmark_weights.n_neighbors=1001", ["at most landmarks.n_landmarks=1000, got 1001"]),
        ("landmark_embedding.n_components=0", ["landmark_embedding.n_components must be >= 1, got 0"]),
        ("landmark_embedding.n_components=1000", ["below landmarks.n_landmarks=1000", "must be at least 1001"]),
        ("embedding.residual=1", ["embedding.residual must be < 1, got 1"]),
        ("embedding.residual=-0.1", ["embedding.residual must be > 0, got -0.1"]),
        ("embedding.max_passes=-1", ["embedding.max_passes must be >= 0, got -1"]),
        ("affinities.tolerance=0", ["affinities.tolerance must be > 0, got 0"]),
        ("affinities.perplxity=30", ["unknown parameter affinities.perplxity: did you mean 'perplexity'?", "allowed:"]),
        ("affinitys.perplexity=30", ["unknown stage 'affinitys': did you mean 'affinities'?", "allowed:"]),
        ("affinities=30", ["affinities takes a table of parameters, got 30"]),
        ("perplexity", ["--set takes STAGE.PARAM=VALUE, got 'perplexity'"]),
        ("seed=-1", ["seed must be >= 0, got -1"]),
        (f"seed={2**70}", ["seed must be <", f"got {2**70}"]),
        ("seed=1.5", ["seed must be a valid integer, got 1.5"]),
        ("seed.low=1", ["seed must be a valid integer"]),
        ("../x.y=1", ["unknown stage"]),
    ],
)
def test_parameters(refused, points, assignment, words):
    refused(points, words, "--set", assignment)


def test_a_perplexity_that_the_neighbours_do_not_reach(refused, points):
    words = ["affinities.perplexity must be < n_neighbors (k=30), got 30", "3 to 5 neighbours a unit"]
    refused(points, words, "--set=affinities.perplexity=30", "--set=neighbors.n_neighbors=30")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--method", "laplacian-eigenmap"],
            ["did you mean 'laplacian-eigenmaps'?", "allowed:", "knn-graph"],
        ),
        (["--memory", "4 GX"], ["--memory takes a size such as 4GB, got '4 GX'"]),
        (["--memory", "lots"], ["such as 4GB", "'lots'"]),
        (["--memory=-1GB"], ["above zero, such as 4GB"]),
        (["--memory", "0"], ["above zero, such as 4GB"]),
        (["--memory", "100MB"], ["raise --memory to", "--block-rows"]),
        (["--workers", "0"], ["workers must be an integer >= 1, got 0"]),
        (["--wait", "-1"], ["wait must be seconds, zero or more, got -1"]),
        (["--wait", "nan"], ["wait must be seconds, zero or more, got nan"]),
        (["--workers=-2"], [">= 1, got -2"]),
        (["--workers", "two"], ["'--workers'", "integer"]),
        (["--block-rows", "0"], ["multiple of 1024", "got 0"]),
        (["--block-rows", "100"], ["multiple of 1024", "got 100"]),
        (["--block-rows", "many"], ["'--block-rows'", "integer"]),
        (["--scheduler", "tcp://host"], ["or an address such as tcp://host:8786", "got 'tcp://host'"]),
        (["--scheduler", "slurm"], ["threads, processes, a Dask client, or an address", "got 'slurm'"]),
        (["--labels", "nowhere.npy"], ["no file of labels nowhere.npy"]),
        (["--config", "nowhere.toml"], ["nowhere.toml", "No such file"]),
        (["--config", "."], ["cannot be read", "Is a directory"]),
        (["--unknown"], ["No such option", "--unknown", "--help"]),
        (["more"], ["unexpected extra argument", "more"]),
    ],
)
def test_options(refused, points, arguments, words):
    refused(points, words, *arguments)


def test_a_password_is_not_echoed(scalemani, points, tmp_path):
    for arguments in (
        ["embed", points, tmp_path / "run", "--scheduler", "tcp://me:hunter2@host:8786"],
        ["embed", "https://me:hunter2@localhost:1/points.zarr", tmp_path / "run"],
    ):
        status, output, errors = scalemani(*arguments)
        assert status == 2
        assert "hunter2" not in output + errors


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[affinities]\nperplxity = 30\n", ["affinities.perplxity", "did you mean 'perplexity'?"]),
        (b"[affinities]\nperplexity = 30\nperplexity = 40\n", ["not valid TOML", "line 3"]),
        (b"[affinities]\nperplexity = 3\n[affinities]\n", ["not valid TOML"]),
        (b"[neighbors]\nn_neighbors = 08\n", ["not valid TOML", "line 2"]),
        (b"[neighbors]\nn_neighbors = no\n", ["not valid TOML", "line 2"]),
        (b"[neighbors]\nmethod = 1979-05-27\n", ["neighbors.method"]),
        (b"- perplexity\n- 30\n", ["not valid TOML", "line 1"]),
        (b"30\n", ["not valid TOML"]),
        (b"affinities = 30\n", ["affinities takes a table"]),
        (b"affinities = !!python/object/apply:os.system ['touch canary']\n", ["not valid TOML"]),
        (b"a = " + b"[" * 100_000, ["nested too deeply"]),
        (b"#" * 2**21, ["more than 1048576 bytes"]),
        ("[affinities]\nkind = 'é'\n".encode("latin-1"), ["UTF-8"]),
        (b"[affinities]\nkind = 'a\0'\n", ["not valid TOML", "line 2"]),
    ],
)
def test_configurations(refused, points, tmp_path, content, words):
    (tmp_path / "config.toml").write_bytes(content)
    refused(points, ["config.toml", *words], "--config", tmp_path / "config.toml")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf[affinities]\r\nperplexity = 3\r\n"])
def test_empty_configurations_and_those_of_other_editors_are_read(scalemani, points, tmp_path, content):
    (tmp_path / "config.toml").write_bytes(content)
    assert scalemani("plan", points, tmp_path / "run", "--config", tmp_path / "config.toml")[0] == 0


def spiked(value, dtype=np.float64):
    table = np.linspace(0, 1, 6000).reshape(2000, 3).astype(dtype)
    table[1500, 1] = value
    table[1700, 2] = value
    return table


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (spiked(np.nan), ["2 values", "2 NaN", "row 1500, column 1", "1500, 1700", "Remove these rows or fill in"]),
        (spiked(np.inf), ["2 inf", "row 1500, column 1"]),
        (spiked(-np.inf), ["2 inf", "row 1500, column 1"]),
        (spiked(np.inf, np.float16), ["2 inf"]),
        (NAN_COLUMN, ["nothing but NaN in column(s) 1"]),
        (np.ones((2000, 3)), ["zero variance", "float64"]),
        (np.zeros((2000, 3), np.uint8), ["zero variance"]),
        ((1e8 + np.linspace(0, 1, 2000))[:, None].astype(np.float32), ["zero variance", "pass float64"]),
        (np.linspace(0, 1e-310, 2000)[:, None], ["underflow", "multiply"]),
        (np.linspace(0, 1e200, 2000)[:, None], ["overflow", "divide"]),
        (np.ones((2000, 3), complex), ["Complex data not supported", "real and imaginary parts as columns"]),
        (np.array([["a", "b"]] * 2000), ["numeric dtype, got <U1", "Convert it"]),
        (np.array([[b"a", b"b"]] * 2000), ["numeric dtype"]),
        (np.zeros((2000, 2), "M8[s]"), ["numeric dtype, got datetime64"]),
        (np.zeros(2000, [("x", "f4"), ("y", "f4")]), ["numeric dtype"]),
        (np.ones((2000, 2)).astype(object), ["Python objects", "pickle", "save numbers"]),
        (np.arange(2000.0), ["Expected 2D array, got 1D array", "Reshape"]),
        (np.zeros((20, 20, 20)), ["Expected 2D array, got 3D array"]),
        (np.array(3.0), ["Expected 2D array, got 0D array"]),
        (np.zeros((0, 3)), ["0 sample(s)", "minimum of 1"]),
        (np.zeros((2000, 0)), ["0 feature(s)", "minimum of 1"]),
        (np.arange(3.0)[None], ["zero variance"]),
        (np.arange(6.0).reshape(2, 3), ["2 rows, at least 3 are needed"]),
        (np.arange(30.0).reshape(10, 3), ["N=10 points, need more than n_neighbors (k=90)", "give more points"]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")) or None,
)
def test_arrays(refused, tmp_path, table, words):
    np.save(tmp_path / "points.npy", table)
    refused(tmp_path / "points.npy", words)


def truncated(path):
    np.save(path, np.ones((2000, 3)))
    path.write_bytes(path.read_bytes()[:-100])


def text_as(path):
    path.write_text("x,y\n1,2\n")


def empty_zarr(path):
    zarr.open_group(path, mode="w")


def two_arrays(path):
    np.savez(path, X=np.ones((5, 2)), Z=np.ones((5, 2)))


def pickle_codec(path):
    zarr.create_array(path, shape=(2000, 3), dtype="f4", zarr_format=2)
    metadata = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps({**metadata, "filters": [{"id": "pickle", "protocol": 5}]}))


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("nowhere.npy", None, ["no file or directory", "points are .npy"]),
        ("points.npy", truncated, ["truncated", "copy or save it again"]),
        ("points.npy", text_as, ["no .npy file"]),
        ("points.npz", text_as, ["no .npz archive"]),
        ("points.npz", two_arrays, ["say which array", "X (5, 2)"]),
        ("points.csv", text_as, [".csv is not among"]),
        ("points", text_as, ["no suffix"]),
        ("folder", Path.mkdir, ["neither a zarr store nor Parquet"]),
        ("points.zarr", Path.mkdir, ["not a complete zarr store"]),
        ("points.zarr", empty_zarr, ["zarr group", "found nothing"]),
        ("points.zarr", pickle_codec, ["codec 'pickle'", "allowed:"]),
        ("points.zarr::../../x", empty_zarr, ["error:"]),
    ],
)
def test_files(refused, tmp_path, name, make, words):
    if make:
        make(tmp_path / name.partition("::")[0])
    refused(tmp_path / name, words)


@pytest.mark.parametrize(
    ("module", "name"), [("pyarrow", "points.parquet"), ("h5py", "points.h5ad"), ("h5py", "points.h5")]
)
def test_damaged_files_of_other_libraries(refused, tmp_path, module, name):
    pytest.importorskip(module)
    (tmp_path / name).write_bytes(b"PAR1 nothing of the kind")
    refused(tmp_path / name, [name, "truncated or damaged"])


@pytest.mark.parametrize("other", [{"x": [1.0], "z": [2.0]}, {"x": [1.0]}, {"x": [1], "y": [2]}])
def test_tables_that_do_not_match(refused, tmp_path, other):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "table").mkdir()
    for number, content in enumerate(({"x": [1.0], "y": [2.0]}, other)):
        parquet.write_table(pyarrow.table(content), tmp_path / "table" / f"part.{number}.parquet")
    refused(tmp_path / "table", ["all files must have the same columns", "part.1.parquet", "part.0.parquet"])


def test_a_graph_has_no_embedding(scalemani, points, tmp_path):
    assert scalemani("embed", points, tmp_path / "run", "--method=knn-graph", *SMALL)[0] == 0
    for arguments in (["export", "out.npy"], ["plot", "out.png"], ["transform", points, "out.npy"]):
        status, _, errors = scalemani(arguments[0], tmp_path / "run", *arguments[1:])
        one_error(errors, ["method knn-graph, which has no embedding", "another method"])
        assert status == 2


def test_labels_with_a_header(scalemani, finished, points, tmp_path):
    (tmp_path / "labels.csv").write_text("label\n" + "1\n" * 2000)
    status, _, errors = scalemani("plot", finished, tmp_path / "out.png", "--labels", tmp_path / "labels.csv")
    one_error(errors, ["2001 labels for 2000 points", "is the first a header?"])
    assert status == 2


def test_the_output_is_not_the_input(scalemani, finished, tmp_path, points):
    shutil.copytree(finished / "stages" / "points", tmp_path / "folder")
    np.save(tmp_path / "new.npy", np.load(points)[:10])
    before = tree(tmp_path)
    for arguments in (
        ["embed", points, points],
        ["embed", tmp_path / "folder", tmp_path / "folder" / "run"],
        ["transform", finished, tmp_path / "new.npy", tmp_path / "new.npy"],
        ["export", finished, finished / "embedding.npy"],
        ["plot", finished, finished / "embedding.png"],
    ):
        status, _, errors = scalemani(*arguments)
        one_error(errors, ["is the input", "choose another place"])
        assert status == 2
    assert tree(tmp_path) == before


def test_folders_that_are_no_run(scalemani, tmp_path, points):
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "sentinel").write_text("mine")
    (tmp_path / "model").write_bytes(b"\x80\x04.")  # a pickle
    for name in ("nowhere", "empty", "foreign", "model"):
        for arguments in (
            ["info", tmp_path / name],
            ["plot", tmp_path / name, tmp_path / "out.png"],
            ["export", tmp_path / name, tmp_path / "out.npy"],
            ["transform", tmp_path / name, points, tmp_path / "out.npy"],
        ):
            status, _, errors = scalemani(*arguments)
            one_error(errors, [name, "not a run of scalemani"])
            assert status == 2
    for name in ("foreign", "model"):
        status, _, errors = scalemani("embed", points, tmp_path / name, *SMALL)
        one_error(errors, [name, "not a run of scalemani", "choose an empty or a new folder"])
        assert status == 2
    assert sorted(tree(tmp_path)) == ["foreign/sentinel", "model"]


def test_a_store_of_another_version(scalemani, copied, points, tmp_path):
    marker = json.loads((copied / "scalemani.json").read_text())
    (copied / "scalemani.json").write_text(json.dumps({**marker, "version": 99}))
    before = tree(copied)
    for arguments in (
        ["embed", points, copied, *SMALL],
        ["plan", points, copied],
        ["stage", "points", points, copied],
        ["info", copied],
        ["export", copied, tmp_path / "out.npy"],
    ):
        status, _, errors = scalemani(*arguments)
        one_error(errors, ["format version 99", "reads 2", "or a new folder"])
        assert status == 2
    assert tree(copied) == before


@pytest.mark.parametrize("how", ["damaged", "missing", "empty", "swapped"])
def test_a_chunk_that_is_not_what_was_written(scalemani, copied, points, tmp_path, how):
    chunk = next(copied.glob("stages/embedding/*/arrays/embedding/c/1/0"))
    other = chunk.parents[1] / "0" / "0"
    if how == "damaged":
        chunk.write_bytes(chunk.read_bytes()[:-1] + b"!")
    elif how == "missing":
        chunk.unlink()
    else:
        chunk.write_bytes(other.read_bytes() if how == "swapped" else b"")
    for arguments in (
        ["export", copied, tmp_path / "out.npy"],
        ["export", copied, tmp_path / "out.zarr"],
        ["plot", copied, tmp_path / "out.png"],
        ["transform", copied, points, tmp_path / "out.npy"],
    ):
        status, _, errors = scalemani(*arguments)
        one_error(errors, [str(chunk), "run the same command again"])
        assert status == 1
    assert [path.name for path in tmp_path.iterdir()] == ["copied"]
    status, _, errors = scalemani("embed", points, copied, *SMALL)
    assert status == 0
    assert "embedding: 1 damaged or lost, computed anew: ['block-000001']" in errors
    assert scalemani("export", copied, tmp_path / "out.npy")[0] == 0


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "gone"])
@pytest.mark.parametrize("name", ["scalemani.json", "plan.json", "dimensions.json", "inputs.json", "complete.json"])
def test_a_description_that_is_not_what_was_written(scalemani, copied, finished, points, name, damage):
    described = sorted(copied.rglob(name))[-1]
    content = described.read_bytes()
    described.unlink()
    if damage != "gone":
        described.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "other": b"[]"}[damage])
    status, _, errors = scalemani("embed", points, copied, *SMALL)
    if name == "scalemani.json" or (name == "dimensions.json" and damage != "gone"):
        assert status in (1, 2)
        one_error(errors, [name if damage != "gone" else "not a run of scalemani", "folder"])
    else:
        assert status == 0, errors
        np.testing.assert_array_equal(rows_of(copied), rows_of(finished))


def test_a_damaged_plan_is_told_apart_from_wrong_parameters(scalemani, copied, points):
    plan = copied / "plan.json"
    plan.write_text(plan.read_text().replace("perplexity", "perplexitx"))
    status, _, errors = scalemani("info", copied)
    one_error(errors, ["plan.json was damaged", "its digest is not", "run the same command again"])
    assert status == 1
    assert scalemani("embed", points, copied, *SMALL)[0] == 0
    assert scalemani("info", copied)[0] == 0


def test_a_link_that_leads_out_of_the_store(scalemani, copied, points, tmp_path):
    chunk = next(copied.glob("stages/points/*/arrays/points/c/1/0"))
    shutil.move(chunk, tmp_path / "elsewhere")
    chunk.symlink_to(tmp_path / "elsewhere")
    status, _, errors = scalemani("embed", points, copied, *SMALL)
    one_error(errors, ["symbolic link", "remove the link"])
    assert status == 2


def test_a_run_behind_a_link(scalemani, copied, points, tmp_path):
    (tmp_path / "link").symlink_to(copied, target_is_directory=True)
    assert scalemani("embed", points, tmp_path / "link", *SMALL)[0] == 0


def test_the_second_of_two_runs_is_told_at_once(scalemani, copied, points):
    with (copied / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = time.monotonic()
        status, _, errors = scalemani("embed", points, copied, *SMALL)
        assert time.monotonic() - started < 1
    one_error(errors, ["another run is working on", '"process"', "wait for it, or use another folder"])
    assert status == 2
    assert scalemani("embed", points, copied, *SMALL)[0] == 0  # what a dead owner left does not block


AS_NOBODY = """
import contextlib, io, json, os, sys
os.umask(0)  # folders that numba makes at import for what it compiles later
import numba
import scalemani.cli.summaries, scalemani.export, scalemani.figures, scalemani.progress
from scalemani.cli.process import run_command

numba.njit(lambda: 0)()  # loads what it needs while it may be read
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
for command in json.loads(sys.argv[1]):
    sys.argv = ["scalemani", *command]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        status = run_command()
    print(json.dumps([status, errors.getvalue()]))
"""


def as_nobody(commands, cache):
    """Run commands without the rights of root, which may write anywhere: status and standard error of each."""
    program = [sys.executable, "-c", AS_NOBODY, json.dumps([[*map(str, command)] for command in commands])]
    # Numba looks for a cache that it can write to at import, when the rights are still there.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    if "ModuleNotFoundError" in done.stdout:
        pytest.skip("this environment cannot be read without the rights of root")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_places_that_cannot_be_written(finished, points):
    # pytest's own folders are closed to others
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as cache:
        folder = Path(name)
        folder.chmod(0o755)
        Path(cache).chmod(0o777)
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
        found = as_nobody([arguments for arguments, _ in expected], cache)
        for (_, words), (status, errors) in zip(expected, found, strict=True):
            one_error(errors, words)
            assert status == 2
        assert tree(folder) == before
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.ones((5, 4)), ["4 features", "3 features", "same columns"]),
        (np.ones((5, 3), complex), ["Complex data not supported"]),
        (np.full((5, 3), np.nan), ["finite", "row 0, column 0"]),
    ],
)
def test_new_points(scalemani, finished, tmp_path, table, words):
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
        (["export", "RUN", "out.csv"], ["allowed: .npy, .parquet, .zarr"]),
        (["plot", "RUN", "out.jpg"], [".png", "out.jpg"]),
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
        (["embed", "gs://bucket/points.zarr", "RUN"], ["gs://bucket/points.zarr needs another package", "gcsfs"]),
        (["generate", "infinite-digits", "out.npy"], ["source"]),
        (["generate", "swiss-roll", "no/where/out.npy"], ["no/where/out.npy"]),
        (["embd", "POINTS", "RUN"], ["No such command 'embd'", "embed"]),
        (["info"], ["Missing argument 'RUN'"]),
        (["--unknown"], ["No such option"]),
    ],
)
def test_other_commands(scalemani, finished, points, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    before = tree(finished)
    status, _, errors = scalemani(*({"RUN": finished, "POINTS": points}.get(word, word) for word in arguments))
    one_error(errors, words)
    assert status == 2
    assert tree(finished) == before
    assert not list(tmp_path.iterdir())


def rows_of(folder):
    return open_run(folder).embedding[...]


LAYOUTS = {
    "big-endian": lambda table: table.astype(">f4"),
    "columns first": np.asfortranarray,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_a_file_changes_nothing(scalemani, points, finished, tmp_path, layout):
    np.save(tmp_path / "points.npy", LAYOUTS[layout](np.load(points)))
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)[0] == 0
    assert open_run(tmp_path / "run").keys == open_run(finished).keys
    np.testing.assert_array_equal(rows_of(tmp_path / "run"), rows_of(finished))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16"])
def test_other_numbers_run(scalemani, tmp_path, dtype):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2 if dtype == "bool" else 120, (1500, 16)) - (60 if dtype == "int8" else 0)
    np.save(tmp_path / "points.npy", bits.astype(dtype))
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)[0] == 0
    assert np.isfinite(rows_of(tmp_path / "run")).all()


def test_sparse_points_columns_and_the_fewest_points_run(scalemani, points, tmp_path):
    table = np.load(points)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csr_array(np.maximum(table, 0)))
    np.save(tmp_path / "column.npy", table[:, :1])
    np.save(tmp_path / "least.npy", table[:11])
    few = (*SMALL, "--set=landmarks.n_landmarks=6")
    for name, values in (("sparse.npz", SMALL), ("column.npy", SMALL), ("least.npy", few)):
        assert scalemani("embed", tmp_path / name, tmp_path / f"{name}.run", *values)[0] == 0, name
        assert np.isfinite(rows_of(tmp_path / f"{name}.run")).all()


def test_constant_columns_run_and_are_named(scalemani, points, tmp_path):
    table = np.load(points)
    np.save(tmp_path / "points.npy", np.column_stack([table, np.ones(len(table)), np.zeros(len(table))]))
    status, output, errors = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)
    assert status == 0
    assert "2 of 5 features are constant" in errors
    assert "constant_features 2" in output


@pytest.mark.parametrize("times", [2, 10])
def test_duplicated_points_run_and_are_counted(scalemani, points, tmp_path, times):
    table = np.repeat(np.load(points)[: 2000 // times], times, axis=0)
    np.save(tmp_path / "points.npy", table)
    status, output, errors = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)
    assert status == 0
    assert "duplicated_points 2000" in output
    assert f"saturated_points {0 if times == 2 else 2000}" in output
    told = "2000 of 2000 points" in errors and "merge duplicated points or raise affinities.perplexity" in errors
    assert told == (times == 10)
    assert np.isfinite(rows_of(tmp_path / "run")).all()
    if times == 10:
        values = open_run(tmp_path / "run").group("affinities").read("values")
        np.testing.assert_allclose(np.sort(values, axis=1)[:, 1:], 1 / 9, rtol=1e-6)


def test_one_far_point_runs(scalemani, points, tmp_path):
    table = np.load(points).astype(np.float64)
    table[3] = 1e12
    np.save(tmp_path / "points.npy", table)
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *SMALL)[0] == 0
    assert np.isfinite(rows_of(tmp_path / "run")).all()


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
