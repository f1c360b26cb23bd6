"""Objects in a bucket: as in a folder, through errors and outages of the server, and with one writer at a time."""

import http.server
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from zarr.core.sync import sync

from scalemani.errors import (
    ConfigError,
    CorruptChunkError,
    MissingChunkError,
    StoreError,
    StoreLockedError,
    UnreachableStoreError,
    UnsafeStoreError,
)
from scalemani.io.sources.bucket_files import BucketFile
from scalemani.io.sources.stores import UrlStore
from scalemani.store import buckets
from scalemani.store.buckets import BucketObjects, ConflictError, Timeouts
from scalemani.store.groups import StageGroup, block_unit
from scalemani.store.run_store import MARKER, RunStore
from scalemani.store.schema import ArrayDescription

BLOCK_ROWS = 1024
VALUES = np.arange(3000, dtype=np.float64)
DEMO = ArrayDescription("demo", "values", "rows", ("point",), "float64", "1", "demo")
PROXY = Path(__file__).parents[2] / "pipelines" / "benchmarks" / "faulty_proxy.py"
SECRET_NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
QUICK = Timeouts(renewal=0.5)
SECONDS = 240  # on a machine that does much else
HOLDER = """
import sys, time
from scalemani.store.run_store import RunStore
with RunStore.open(sys.argv[1]).locked():
    print("held", flush=True)
    time.sleep(120)
"""


def written_group(root):
    group = StageGroup(root, "stages/demo/key", BLOCK_ROWS)
    group.create(len(VALUES), [DEMO.sized()])
    for block in range(3):
        group.write_block(block, {DEMO: VALUES[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]})
    return group


def test_the_server_copies_blocks_that_a_group_takes_over(bucket):
    other = written_group(f"{bucket}/place")
    group = StageGroup(f"{bucket}/place", "stages/demo/grown", BLOCK_ROWS)
    group.create(len(VALUES), [DEMO.sized()])
    other.objects.set("arrays/values/c/1", b"another")
    assert [group.take_block(block, other) for block in range(3)] == [True, False, True]
    other.objects.delete("arrays/values/c/2")
    reader = StageGroup(f"{bucket}/place", group.path, BLOCK_ROWS)
    np.testing.assert_array_equal(reader.read_block("values", 2), VALUES[2 * BLOCK_ROWS :])
    assert reader.damaged_units() == []


def test_objects_are_kept_found_and_removed(bucket):
    objects = BucketObjects(f"{bucket}/place")
    assert objects.get("one") is None
    assert objects.names() == []
    tag = objects.set("folder/one", b"1")
    assert tag == objects.set("folder/one", b"1") != objects.set("two", b"2")
    assert objects.names() == ["folder", "two"]
    assert objects.below("folder").get("one") == b"1"
    objects.set_json("folder/two", {"a": 2})
    assert objects.many_intact(["two", "three", "folder/two"]) == [None, None, {"a": 2}]
    objects.delete("folder/two")
    objects.delete("two")
    objects.delete("two")
    assert objects.names() == ["folder"]
    objects.set("folders/one", b"")
    objects.delete_below("folder")
    assert objects.names() == ["folders"]


def test_more_objects_than_a_page_are_listed(bucket):
    objects = BucketObjects(f"{bucket}/place")
    for number in range(1007):  # a page has a thousand
        objects.set(f"many/{number}", b"")
    assert objects.names("many") == sorted(str(number) for number in range(1007))


@pytest.mark.parametrize("key", ["../x", "/abs", "a/../../b", "", ".", "a//b", "nul\0", "x" * 300, ".hidden"])
def test_names_are_checked_as_in_a_folder(bucket, key):
    objects = BucketObjects(f"{bucket}/place")
    for action in (lambda: objects.set(key, b""), lambda: objects.get(key), lambda: objects.delete(key)):
        with pytest.raises(UnsafeStoreError):
            action()


@pytest.mark.parametrize(
    "location", ["s3://bucket", "s3://user:hunter2@bucket/run", "s3://", "gs://bucket", "gcs://bucket/run"]
)
def test_a_place_without_a_name_or_with_a_password_is_refused_without_repeating_it(location):
    with pytest.raises(ConfigError) as refused:
        RunStore(location)
    assert "hunter2" not in str(refused.value)
    assert "s3://bucket/name" in str(refused.value) or "environment" in str(refused.value)


def test_a_group_is_read_back_elsewhere_and_checked(bucket):
    group = written_group(f"{bucket}/run")
    group.mark_complete({"key": "key"})
    for reader in (StageGroup(group.root, group.path, BLOCK_ROWS), pickle.loads(pickle.dumps(group))):
        assert reader.complete
        assert reader.damaged_units() == []
        np.testing.assert_array_equal(reader.read("values"), VALUES)
        assert reader.content_digest == group.content_digest


@pytest.mark.parametrize(("damage", "expected"), [("lost", MissingChunkError), ("other", CorruptChunkError)])
def test_damage_is_found_by_a_listing_and_never_read(bucket, damage, expected):
    group = written_group(f"{bucket}/run")
    content = bytearray(group.objects.get("arrays/values/c/1"))
    content[-1] ^= 1
    group.objects.delete("arrays/values/c/1")
    if damage == "other":
        group.objects.set("arrays/values/c/1", bytes(content))
    reader = StageGroup(group.root, group.path, BLOCK_ROWS)
    assert reader.damaged_units() == [block_unit(1)]
    with pytest.raises(expected):
        reader.read_block("values", 1)


def test_a_run_is_created_opened_and_nothing_else_is_taken_for_one(bucket):
    RunStore.create(f"{bucket}/run").save_plan({"method": "m"})
    assert RunStore.open(f"{bucket}/run").load_plan() == {"method": "m"}
    with pytest.raises(StoreError, match="is not a run of scalemani"):
        RunStore.open(f"{bucket}/other")
    BucketObjects(f"{bucket}/other").set("data", b"")
    with pytest.raises(StoreError, match="is not a run of scalemani"):
        RunStore.create(f"{bucket}/other")
    with pytest.raises(StoreError, match="NoSuchBucket; check the bucket"):
        RunStore.create("s3://no-such-bucket-at-all/run")


def test_a_conditional_put_has_one_winner(bucket):
    objects, winners = BucketObjects(f"{bucket}/run"), []

    def race(number):
        try:
            objects.put("lock", str(number).encode(), "create")
            winners.append(number)
        except ConflictError:
            pass

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert objects.get("lock") == str(winners[0]).encode()


def test_a_second_writer_is_told_who_the_first_is_and_gets_the_lock_after_it(bucket):
    objects = BucketObjects(RunStore.create(f"{bucket}/run").root, QUICK)
    with objects.lock() as held:
        with pytest.raises(StoreLockedError, match='"process"'), RunStore.open(objects.root).locked():
            pass
        end = time.monotonic() + SECONDS
        while not json.loads(objects.get("lock")).get("renewed") and time.monotonic() < end:
            time.sleep(0.1)
        held.check()
        assert json.loads(objects.get("lock"))["renewed"] >= 1
    assert objects.get("lock") is None
    with RunStore.open(objects.root).locked():
        pass


def test_the_lock_of_a_process_that_ended_here_is_taken_at_once(bucket):
    store = RunStore.create(f"{bucket}/run")
    with subprocess.Popen([sys.executable, "-c", HOLDER, store.root], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
        holder.wait()
    patient = BucketObjects(store.root, Timeouts(lease=1e9))  # who waits for it does so for good
    with patient.lock():
        assert json.loads(store.objects.get("lock"))["process"] == os.getpid()


def test_a_lease_of_another_machine_counts_for_nothing_once_it_is_not_renewed(bucket):
    objects, started = BucketObjects(f"{bucket}/run", Timeouts(renewal=0.5, lease=3.0)), time.monotonic()
    objects.set("lock", json.dumps({"process": 1, "host": "elsewhere", "lease": "x", "machine": "other"}).encode())
    with objects.lock():
        assert time.monotonic() - started > 1.5


def test_a_writer_whose_lease_was_taken_notices(bucket):
    objects = BucketObjects(f"{bucket}/run", QUICK)
    with objects.lock() as held:
        objects.set("lock", b'{"lease": "of another"}')
        assert held.lost.wait(SECONDS)
        with pytest.raises(StoreLockedError, match="another run took over"):
            held.check()
    assert json.loads(objects.get("lock")) == {"lease": "of another"}


def test_failures_at_random_are_survived(bucket, s3_server, monkeypatch):
    command = [sys.executable, str(PROXY), s3_server, "--failing", "0.3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.stdout.readline().strip())
        buckets.open_bucket.cache_clear()
        group = written_group(f"{bucket}/run")
        np.testing.assert_array_equal(StageGroup(group.root, group.path, BLOCK_ROWS).read("values"), VALUES)
        with RunStore.create(f"{bucket}/other").locked():
            pass
        proxy.stdin.write("counts\n")
        proxy.stdin.flush()
        assert "'slow down': 0" not in proxy.stdout.readline()
        proxy.kill()


def test_a_server_that_stays_away_is_an_error_in_time_that_says_so(bucket, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        buckets.open_bucket.cache_clear()
        objects = BucketObjects(f"{bucket}/run", Timeouts(retry=1.0, longest_wait=0.2))
        started = time.monotonic()
        with pytest.raises(UnreachableStoreError, match="said nothing for 1 s; the same command resumes") as failed:
            objects.set("x", b"")
    assert 0.5 < time.monotonic() - started < Timeouts().retry
    assert failed.value.exit_status == 1


def test_wrong_credentials_are_refused_without_repeating_them(bucket, s3_server, monkeypatch):
    def check_after(requests):
        given, headers = str(requests).encode(), {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(f"{s3_server}/moto-api/reset-auth", given, headers)).close()

    objects, secrets = BucketObjects(f"{bucket}/run"), [os.environ[name] for name in SECRET_NAMES]
    objects.set("x", b"1")
    check_after(0)
    try:
        for ask in (lambda: objects.get("x"), lambda: objects.set("x", b"2"), objects.names, objects.prepare):
            with pytest.raises(StoreError, match=r"the server said \w+; check the bucket, and the cred") as refused:
                ask()
            assert refused.value.exit_status == 2
            assert not any(secret in str(refused.value) for secret in secrets)
    finally:
        check_after("inf")
    assert objects.get("x") == b"1"


def test_credentials_of_a_profile_are_found(bucket, monkeypatch, tmp_path):
    pytest.importorskip("boto3")
    lines = [f"{name.lower()} = {os.environ[name]}" for name in SECRET_NAMES]
    (tmp_path / "credentials").write_text("\n".join(["[default]", *lines]))
    for name in SECRET_NAMES:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    buckets.open_bucket.cache_clear()
    objects = BucketObjects(f"{bucket}/run")
    objects.set("x", b"1")
    assert objects.get("x") == b"1"


@pytest.mark.parametrize("url", ["s3://bucket/run", "gs://bucket/run"])
def test_a_machine_without_credentials_is_told_so_before_retries_begin(url, monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    buckets.open_bucket.cache_clear()
    started = time.monotonic()
    with pytest.raises(StoreError, match=r"no credentials for .*: give them in the environment"):
        RunStore.open(url)
    assert time.monotonic() - started < Timeouts().retry


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    buckets.open_bucket.cache_clear()
    with pytest.raises(ConfigError, match=r"pip install 'obstore>=\S+'"):
        RunStore.open("s3://bucket/run")


def test_an_answer_that_is_damaged_on_the_way_is_asked_for_again(bucket):
    BucketObjects(f"{bucket}/place").set_json("one", {"a": 1})
    whole = BucketObjects(f"{bucket}/place").get("one")
    answers = [whole[:-5], b"\0" * len(whole), whole]

    class Damaged(BucketObjects):
        """Objects that arrive whole at the third try."""

        def get(self, *_):
            return answers.pop(0)

    assert Damaged(f"{bucket}/place").get_json("one") == {"a": 1}
    assert not answers


LIST = (
    b"<ListBucketResult><KeyCount>0</KeyCount><MaxKeys>9</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>"
)
DAMAGED_LISTS = {"flipped": b"=" + LIST[1:], "fewer": LIST[:40], "no text": b"\xff\xfe" * 40}


class Damaging(http.server.BaseHTTPRequestHandler):
    """Answers the first `n_damaged` requests for lists and objects with damage, and counts them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests += 1
        whole = LIST if "list-type" in self.path else b"content"
        damage = self.server.damage if self.server.requests <= self.server.n_damaged else None
        if damage == "no answer of HTTP":
            self.wfile.write(b"garbage\r\n\r\n")
            self.close_connection = True
            return
        body = DAMAGED_LISTS.get(damage, whole)
        self.send_response(206 if self.headers.get("Range") else 200)
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Sat, 28 Nov 2026 10:00:00 GMT")
        if self.headers.get("Range"):
            self.send_header("Content-Range", f"bytes 0-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:5] if damage == "cut" else body)
        self.close_connection = damage == "cut"


@pytest.fixture
def damaging(monkeypatch, bucket):
    """Return a function that has the server of all buckets damage so many answers."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Damaging) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")

        def damage(kind, n_damaged):
            buckets.open_bucket.cache_clear()
            server.damage, server.n_damaged, server.requests = kind, n_damaged, 0
            return server

        yield damage
        buckets.open_bucket.cache_clear()
        server.shutdown()


ASKED = {
    "list": lambda: BucketObjects("s3://bucket/run").names(),
    "object": lambda: BucketObjects("s3://bucket/run").get("key"),
    "file": lambda: BucketFile("s3://bucket/points.npy", 7, "tag").read(0, 7),
    "names in zarr": lambda: sync(all_of(UrlStore("s3://bucket/points.zarr").list_dir("x"))),
    "keys in zarr": lambda: sync(all_of(UrlStore("s3://bucket/points.zarr").list_prefix("x"))),
}


async def all_of(found):
    return [name async for name in found]


@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("kind", [*DAMAGED_LISTS, "cut", "no answer of HTTP"])
def test_an_answer_that_comes_damaged_or_is_cut_short_is_asked_for_again(damaging, kind, what):
    damaged = kind in ("cut", "no answer of HTTP") or "list" in what or "zarr" in what
    server = damaging(kind if damaged else None, 1)
    assert ASKED[what]() == (b"content" if what in ("object", "file") else [])
    assert server.requests == (2 if damaged else 1)


@pytest.mark.parametrize("kind", ["flipped", "cut", "no answer of HTTP"])
def test_answers_that_stay_damaged_are_an_error_that_says_so_and_may_pass(damaging, kind):
    server = damaging(kind, 10**6)
    started = time.monotonic()
    with pytest.raises(
        UnreachableStoreError, match=r"cannot list s3://bucket/run: the answer .* damaged or was cut .* for 1 s"
    ) as told:
        BucketObjects("s3://bucket/run", Timeouts(retry=1.0)).names()
    assert told.value.exit_status == 1
    assert server.requests > 2
    assert time.monotonic() - started < 60


def test_a_block_that_comes_damaged_is_asked_for_again(bucket, monkeypatch):
    group = written_group(f"{bucket}/run")
    reader, ordinary, answers = StageGroup(group.root, group.path, BLOCK_ROWS), BucketObjects.get, Counter()

    def damaged(objects, key, most=2**20):
        content = ordinary(objects, key, most)
        answers[key] += 1
        return (
            content if not key.startswith("values/c/") or answers[key] == 3 else bytes([content[0] ^ 1]) + content[1:]
        )

    monkeypatch.setattr(BucketObjects, "get", damaged)
    np.testing.assert_array_equal(reader.read("values"), VALUES)
    assert [answers[f"values/c/{block}"] for block in range(3)] == [3, 3, 3]


@pytest.mark.parametrize("content", [b"\0" * 40, b'{"format": "scale'])
def test_a_marker_and_a_finished_stage_that_come_damaged_are_not_told_as_another_s_or_as_unfinished(bucket, content):
    group = written_group(f"{bucket}/run")
    group.mark_complete({"key": "key"})
    group.objects.set("complete.json", content)
    reader = StageGroup(group.root, group.path, BLOCK_ROWS)
    assert not reader.complete
    with pytest.raises(CorruptChunkError) as told:
        reader.check_mark()
    assert told.value.exit_status == 1
    store = RunStore.create(f"{bucket}/other")
    store.objects.set(MARKER, content)
    with pytest.raises(UnreachableStoreError, match="damaged where it lies or on the way: run the same") as told:
        RunStore.open(f"{bucket}/other")
    assert told.value.exit_status == 1
