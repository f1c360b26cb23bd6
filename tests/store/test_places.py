"""Where a run or its points are, and what is said of the way there."""

import os
from pathlib import Path

import pytest
import zarr

from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.io.sources.stores import UrlStore
from scalemani.runs.walk import locked_run
from scalemani.store.buckets import open_bucket
from scalemani.store.places import is_loopback, open_objects, remark_on


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_seen_from_itself(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "minio", "", "127.0.0.1.example.org", "localhost.example.org"])
def test_other_machines(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("http://example.org/points.zarr", "example.org is reached over plain HTTP"),
        ("http://10.0.0.1:9000/points.zarr", "10.0.0.1 is reached over plain HTTP"),
        ("http://[::1]:9000/points.zarr", ""),
        ("http://127.0.0.1:9000/points.zarr", ""),
        ("https://example.org/points.zarr", ""),
        ("/a/folder", ""),
        ("http:/a/folder", ""),
    ],
)
def test_plain_http_beyond_this_machine_is_told_of(location, told):
    assert remark_on(location).startswith(told)
    assert bool(remark_on(location)) == bool(told)


@pytest.mark.parametrize("location", ["s3:/bucket/run", Path("s3://bucket/run"), "S3://bucket/run", "gcs://bucket/run"])
def test_what_is_nearly_the_address_of_a_bucket_is_no_folder(tmp_path, monkeypatch, location):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"a run .* s3://bucket/name"):
        open_objects(location)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["http://minio:9000", "https://minio:9000", None])
def test_the_address_of_an_object_store_is_looked_at(monkeypatch, address):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    assert bool(remark_on("s3://bucket/run")) == (address == "http://minio:9000")
    assert not remark_on("gs://bucket/run")


def test_runs_and_points_behind_plain_http_say_so(bucket, monkeypatch, listening):
    address = os.environ["AWS_ENDPOINT_URL"].replace("127.0.0.1", "0.0.0.0")  # this machine too, by no name of it
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    open_bucket.cache_clear()
    with locked_run(f"{bucket}/run", Executor(workers=1, progress=listening)):
        assert "over plain HTTP" in listening.warned[0]
    zarr.create_array(UrlStore(f"{bucket}/p.zarr", read_only=False), shape=(40, 3), dtype="f4")[:] = 1
    assert "over plain HTTP" in open_points(f"{bucket}/p.zarr").remark
