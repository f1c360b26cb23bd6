"""Parameters, options and configurations that cannot be used."""

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("affinities.perplexity=-5", ["affinities.perplexity must be > 1, got -5"]),
        ("affinities.perplexity=0", ["> 1", "got 0"]),
        ("affinities.perplexity=1", ["> 1", "got 1"]),
        ("affinities.perplexity=0.5", ["> 1", "got 0.5"]),
        ("affinities.perplexity=nan", ["affinities.perplexity", "finite", "nan"]),
        ("affinities.perplexity=inf", ["affinities.perplexity", "finite", "inf"]),
        ("neighbors.n_neighbors=2100", ["N=2000 points, need more than n_neighbors (k=2100)"]),
        ("affinities.perplexity=2000", ["affinities.perplexity must be < n_neighbors (k=1999), got 2000"]),
        ('affinities.perplexity="30"', ["valid number", "got '30' (str)"]),
        ("affinities.perplexity=true", ["valid number", "got True (bool)"]),
        ("neighbors.n_neighbors=0", ["neighbors.n_neighbors must be >= 1, got 0"]),
        ("neighbors.n_neighbors=-1", [">= 1", "got -1"]),
        ("neighbors.n_neighbors=15.5", ["valid integer", "got 15.5"]),
        ("neighbors.n_neighbors=1e3", ["valid integer", "got 1000.0"]),
        ("neighbors.n_neighbors=2000", ["N=2000 points, need more than n_neighbors (k=2000)", "give more points"]),
        (
            "neighbors.method=annoy",
            [
                "neighbors.method",
                "'auto', 'exact', 'pynndescent', 'partition', 'leaves', 'window' or 'given'",
                "'annoy'",
            ],
        ),
        ("neighbors.metric=cosine", ["unknown parameter neighbors.metric", "allowed:"]),
        ("neighbors.recall=1.5", ["neighbors.recall must be <= 1, got 1.5"]),
        ("landmarks.n_landmarks=1", ["landmarks.n_landmarks must be >= 2, got 1"]),
        ("landmarks.n_landmarks=2001", ["landmarks.n_landmarks must be at most N=2000, got 2001"]),
        ("landmarks.method=kmean", ["landmarks.method", "'kmeans'", "got 'kmean'"]),
        ("landmarks.sigma=0", ["landmarks.sigma must be > 0, got 0"]),
        ("landmarks.sigma=-1", ["landmarks.sigma must be > 0, got -1"]),
        ("landmarks.update=welsh", ["landmarks.update", "'gaussian' or 'sine'", "got 'welsh'"]),
        ("landmarks.neighborhood=0", ["landmarks.neighborhood must be >= 1, got 0"]),
        ("landmark_weights.n_neighbors=1001", ["at most landmarks.n_landmarks=1000, got 1001"]),
        ("landmark_embedding.n_components=0", ["landmark_embedding.n_components must be >= 1, got 0"]),
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
        ("seed.low=1", ["unknown parameter seed.low"]),
        ("../x.y=1", ["unknown stage"]),
    ],
)
def test_parameters(refused, points, assignment, words):
    refused(points, words, "--set", assignment)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("landmarks.n_landmarks=2", ["n_components must be below landmarks.n_landmarks=2", "must be at least 3"]),
        ("landmark_embedding.n_components=1000", ["below landmarks.n_landmarks=1000", "must be at least 1001"]),
    ],
)
def test_components_that_the_landmarks_cannot_give(refused, points, assignment, words):
    refused(points, words, "--set=embedding.solver=lll", "--set", assignment)


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
        (["--memory", "4 GX"], ["memory takes a size such as 4GB", "got '4 GX'"]),
        (["--memory", "lots"], ["such as 4GB", "'lots'"]),
        (["--memory=-1GB"], ["above zero, such as 4GB"]),
        (["--memory", "0"], ["above zero, such as 4GB"]),
        (["--memory", "100MB"], ["the budget is 100MB: raise --memory to", "for all stages"]),
        (["--workers", "0"], ["workers must be an integer >= 1, got 0"]),
        (["--wait", "-1"], ["wait must be seconds, zero or more, got -1"]),
        (["--wait", "nan"], ["wait must be seconds, zero or more, got nan"]),
        (["--workers=-2"], [">= 1, got -2"]),
        (["--workers", "two"], ["'--workers'", "integer"]),
        (["--block-rows", "0"], ["multiple of 1024", "got 0"]),
        (["--block-rows", "100"], ["multiple of 1024", "got 100"]),
        (["--block-rows", "many"], ["'--block-rows'", "integer"]),
        (["--scheduler", "tcp://host"], ["or an address such as tcp://host:8786", "got 'tcp://host'"]),
        (
            ["--scheduler", "slurm"],
            ["threads, processes, a Dask client", "an address such as tcp://host:8786", "got 'slurm'"],
        ),
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
        (b"[affinities]\nperplxity = 30\n", ["affinities.perplxity", "did you mean 'perplexity'?", "(line 2)"]),
        (b"[neighbors]\n\n[affinities]\nperplexity = -3\n", ["affinities.perplexity must be", "(line 4)"]),
        (b"seed = 1\n\n[affinitys]\n", ["unknown stage 'affinitys'", "(line 3)"]),
        (b"perplexity = 30\n", ["unknown stage 'perplexity': it is a parameter, affinities.perplexity (line 1)"]),
        (b"memory = '4GB'\n", ["unknown stage 'memory'", "an option: --memory (line 1)"]),
        (b"[tsne]\nperplexity = 30\n", ["unknown stage 'tsne'", "a method, --method t-sne", "(line 1)"]),
        (b"seed = 1\naffinities.perplxity = 3\n", ["unknown parameter", "(line 2)"]),
        (b"seed = 1\naffinities = {perplxity = 3}\n", ["unknown parameter", "(line 2)"]),
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
        (b"#" * 2**21, ["at most 1048576 are taken"]),
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


def test_more_neighbors_than_there_are_other_points(refused, tmp_path):
    np.save(tmp_path / "few.npy", np.arange(30.0).reshape(10, 3))
    words = ["N=10 points, need more than n_neighbors (k=90)", "give more points"]
    refused(tmp_path / "few.npy", words, "--set=neighbors.n_neighbors=90")
