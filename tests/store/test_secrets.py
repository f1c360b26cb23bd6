"""Secrets in the environment, in URLs and in wrong places: in no byte that is written, and in nothing that is said."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.outline import outline_run
from scalemani.runs.plan import make_plan
from scalemani.runs.survey import survey
from scalemani.store.buckets import BucketObjects
from scalemani.store.run_store import RunStore

SMALL = ("--set=neighbors.n_neighbors=8", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=60")
PLANTED = {
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDBYTESTS00",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+of/the+tests",
    "AWS_SESSION_TOKEN": "plantedsessiontoken",
    "GITHUB_TOKEN": "ghp_plantedbythetests",
    "DATABASE_URL": "postgresql://planted:hunter2@db/points",
    "HTTPS_PROXY": "http://planted:hunter2@127.0.0.1:9",
    "SCALEMANI_PASSWORD": "hunter2",
}
WORDS = ("AKIAPLANTED", "planted/secret", "plantedsession", "ghp_planted", "hunter2", "PLANTEDKEY", "with/slashes")
URL = "s3://PLANTEDKEY:planted/secret/with/slashes@bucket/x"  # as secret keys of S3 mostly are


def refuse_secrets(content: bytes | str, where: object) -> None:
    text = content if isinstance(content, bytes) else content.encode()
    found = [word for word in WORDS if word.encode() in text or word.encode("utf-16-le") in text]
    assert not found, (where, found)


@pytest.fixture
def planted(monkeypatch):
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def points(tmp_path, roll):
    np.save(tmp_path / "points.npy", roll[:1500])
    return tmp_path / "points.npy"


def test_no_secret_of_the_environment_is_written_or_said(planted, scalemani, points, tmp_path, monkeypatch):
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run = tmp_path / "run"
    command = (sys.executable, "-m", "scalemani", "embed", str(points), str(run), "--block-rows", "1024", *SMALL)
    done = subprocess.run(command, capture_output=True, check=True)
    refuse_secrets(done.stdout + done.stderr, "embed")
    for arguments in (
        ("info", run, "--json"),
        ("plan", points, run, "--debug", *SMALL),
        ("export", run, tmp_path / "out.npy"),
        ("export", run, tmp_path / "nowhere" / "out.npy", "--debug"),
        ("embed", tmp_path / "none.npy", run, "--debug"),
    ):
        _, output, errors = scalemani(*arguments)
        refuse_secrets(output + errors, arguments)
    assert (tmp_path / "out.npy").exists()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            refuse_secrets(path.read_bytes(), path)


def test_no_secret_of_a_bucket_is_written_or_said(bucket, points, scalemani, tmp_path):
    for arguments in (
        ("embed", points, f"{bucket}/run", "--debug", *SMALL),
        ("info", f"{bucket}/run", "--json"),
        ("export", f"{bucket}/run", tmp_path / "out.npy"),
        ("info", f"{bucket}/other", "--debug"),
        ("embed", points, "s3://no-such-bucket/run", "--debug", *SMALL),
    ):
        _, output, errors = scalemani(*arguments)
        refuse_secrets(output + errors, arguments)
    assert (tmp_path / "out.npy").exists()
    objects = BucketObjects(f"{bucket}/run")
    for key in every_key(objects):
        refuse_secrets(objects.get(key) or b"", key)


def every_key(objects, prefix=""):
    for name in objects.names(prefix):
        key = f"{prefix}/{name}" if prefix else name
        inside = list(every_key(objects, key))
        yield from inside or [key]


@pytest.mark.parametrize("debug", [(), ("--debug",)])
@pytest.mark.parametrize(
    "arguments",
    [
        ("embed", "https://planted:hunter2@localhost:1/points.zarr", "RUN"),
        ("embed", "gs://bucket/points.zarr?token=hunter2", "RUN"),
        ("embed", "POINTS", "https://bucket/run?token=hunter2"),
        ("generate", "swiss-roll", "https://localhost:1/out.zarr?token=hunter2"),
        ("embed", "s3://planted:hunter2@bucket/points.zarr", "RUN"),
        ("embed", "POINTS", "s3://planted:hunter2@bucket/run"),
        ("embed", "POINTS", "gs://planted:hunter2@bucket/run"),
        ("embed", "POINTS", "RUN", "--scheduler", "tcp://planted:hunter2@host:8786"),
        ("embed", "POINTS", "RUN", "--scheduler", "planted:hunter2@host"),
        ("embed", "POINTS", "RUN", "--labels", "https://planted:hunter2@localhost:1/labels.npy"),
        ("info", "https://planted:hunter2@localhost:1/run"),
        ("export", "s3://planted:hunter2@bucket/run", "out.npy"),
        ("generate", "swiss-roll", "https://planted:hunter2@localhost:1/out.zarr", "--n-points", "10"),
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_no_secret_in_a_url_is_repeated(scalemani, points, tmp_path, monkeypatch, arguments, debug):
    monkeypatch.chdir(tmp_path)
    given = [{"RUN": tmp_path / "run", "POINTS": points}.get(word, word) for word in arguments]
    status, output, errors = scalemani(*given, *debug)
    assert status in (1, 2)
    refuse_secrets(output + errors, arguments)
    for path in tmp_path.rglob("*"):
        refuse_secrets(path.read_bytes() if path.is_file() else str(path), path)


@pytest.mark.parametrize("debug", [(), ("--debug",)])
@pytest.mark.parametrize(
    "arguments",
    [
        ("embed", f"{URL}.npy", "RUN"),
        ("embed", "POINTS", URL),
        ("embed", URL, URL),
        ("embed", "POINTS", "RUN", "--labels", f"{URL}.npy"),
        ("embed", "POINTS", "RUN", "--config", f"{URL}.toml"),
        ("embed", "POINTS", "RUN", "--config", "https://h/p.toml?X-Amz-Signature=hunter2"),
        ("embed", "POINTS", "RUN", "--method", URL),
        ("embed", "POINTS", "RUN", "--metric", URL),
        ("embed", "POINTS", "RUN", "--memory", URL),
        ("embed", "POINTS", "RUN", "--workers", URL),
        ("embed", "POINTS", "RUN", "--tls", URL, "--scheduler", "tls://host:8786"),
        ("embed", "POINTS", "RUN", "--set", f"affinities.perplexity={URL}"),
        ("embed", "POINTS", "RUN", URL),
        ("stage", URL, "POINTS", "RUN"),
        ("plan", URL, "RUN"),
        ("transform", URL, "POINTS", "out.npy"),
        ("transform", "RUN", URL, URL),
        ("info", URL),
        ("info", "s3://bucket/run?token=hunter2"),
        ("measure", URL, "--labels", URL),
        ("plot", URL, f"{URL}.png"),
        ("plot", "RUN", f"{URL}.png"),
        ("export", "RUN", f"{URL}.npy"),
        ("generate", "infinite-digits", "o.npy", "--source", f"{URL}.npz"),
        ("generate", "infinite-digits", "o.npy", "--source", "https://h/p.npz?X-Amz-Signature=hunter2"),
        ("generate", URL, "o.npy"),
        ("generate", "swiss-roll", f"{URL}.npy", "--n-points", "10"),
        ("certificates", URL),
        (URL,),
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_no_secret_with_slashes_is_repeated_from_any_place_of_a_command(
    scalemani, points, tmp_path, monkeypatch, arguments, debug
):
    monkeypatch.chdir(tmp_path)
    given = [{"RUN": tmp_path / "run", "POINTS": points}.get(word, word) for word in arguments]
    status, output, errors = scalemani(*given, *debug)
    assert status == 2
    refuse_secrets(output + errors, arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["points.npy"]


def test_what_travels_to_workers_holds_no_secret(bucket, roll):
    """Workers of a cluster read credentials of their own."""
    params = Parameters().with_values({"neighbors": {"n_neighbors": 8}, "affinities": {"perplexity": 3}})
    params = params.with_values({"landmarks": {"n_landmarks": 60}})
    source, executor = open_points(roll[:1500]), Executor()
    store = RunStore.create(f"{bucket}/run")
    plan = make_plan(store, outline_run("laplacian-eigenmaps", params, survey(source, executor, 1024)), executor)
    assert os.environ["AWS_ACCESS_KEY_ID"] == PLANTED["AWS_ACCESS_KEY_ID"]
    for planned in plan.stages:
        refuse_secrets(pickle.dumps(planned.group), planned.stage.name)
    refuse_secrets(json.dumps(plan.as_dict()), "plan")
