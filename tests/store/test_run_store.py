"""A run's folder: only ours is touched, one run at a time, one format version."""

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
import zarr

from scalemani.errors import (
    ConfigError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
    UnreachableStoreError,
    UnsafeStoreError,
)
from scalemani.io.sources import open_labels, open_points
from scalemani.store.objects import LocalObjects
from scalemani.store.run_store import MARKER, RunStore
from scalemani.store.schema import FORMAT_VERSION


def test_a_run_is_created_and_opened(tmp_path):
    RunStore.create(tmp_path / "run")
    RunStore.create(tmp_path / "run")
    RunStore.open(tmp_path / "run")


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "precious.txt").write_text("data")
    with pytest.raises(StoreError, match="not a run of scalemani"):
        RunStore.create(tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "data"
    with pytest.raises(StoreError, match="not a run of scalemani"):
        RunStore.open(tmp_path)


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(StoreError, match="choose an empty or a new folder"):
        RunStore.create(tmp_path / "run")


@pytest.mark.parametrize("version", [0, 1, 3, "2", None])
def test_another_format_version_is_refused(tmp_path, version):
    store = RunStore.create(tmp_path)
    marker = store.objects.get_json(MARKER)
    store.objects.set_json(MARKER, {**marker, "version": version})
    for opener in (RunStore.create, RunStore.open):
        with pytest.raises(StoreVersionError, match="format version"):
            opener(tmp_path)


def test_a_second_run_is_told_who_holds_the_store(tmp_path):
    store = RunStore.create(tmp_path)
    owner = f'"process": {os.getpid()}'
    with store.locked(), pytest.raises(StoreLockedError, match=owner), RunStore.open(tmp_path).locked():
        pass
    with store.locked():
        pass


def test_a_run_that_is_held_is_waited_for_as_long_as_was_asked(tmp_path):
    store, said = RunStore.create(tmp_path), []
    with contextlib.ExitStack() as first:
        first.enter_context(store.locked())
        with pytest.raises(StoreLockedError), store.locked(0.5, said.append):
            pass

        def free():
            said.append("freed")
            first.close()

        def free_later(line):
            said.append(line)
            threading.Timer(1.5, free).start()

        with store.locked(600, free_later):
            said.append("held")
    told = ["waiting up to 0.5 s", "waiting up to 600 s", "freed", "held"]
    assert [line.partition(":")[0] for line in said] == told


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOLCK, UnreachableStoreError),  # of a server whose lock service is not there, or of a full table
        (errno.ENOSYS, StoreError),
        (errno.EOPNOTSUPP, StoreError),
        (errno.EIO, UnreachableStoreError),
    ],
)
def test_a_disk_without_locks_is_told_with_the_file_and_what_its_lock_is_for(tmp_path, monkeypatch, number, kind):
    store = RunStore.create(tmp_path / "run")

    def refused(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refused)
    with (
        pytest.raises(
            kind, match=rf"cannot lock {store.root}/lock, by which one run .*{os.strerror(number)}; .*flock"
        ) as error,
        store.locked(),
    ):
        pass
    assert type(error.value) is kind
    assert error.value.exit_status == (2 if kind is StoreError else 1)


def test_a_file_that_is_swept_away_while_it_is_written_is_written_again(tmp_path, spy):
    holder = LocalObjects(tmp_path / "run")

    def sweep(_):
        if len(swept) < 2:
            left = [path.name for path in (tmp_path / "run").rglob("*.partial")]
            holder.sweep()
            return len(left)
        return 0

    swept = spy(os, "fsync", sweep)
    RunStore.create(tmp_path / "run")
    assert swept[:2] == [1, 1]
    assert RunStore.open(tmp_path / "run").is_marked
    assert [path.name for path in (tmp_path / "run").iterdir()] == [MARKER]


def test_a_folder_that_goes_while_it_is_swept_is_passed_over(tmp_path, spy):
    for name in ("computed-1", "computed-2"):
        (tmp_path / "run" / name).mkdir(parents=True)
        (tmp_path / "run" / name / "tmp1.partial").touch()

    def vanish(path):
        if str(path).endswith(("computed-1", "computed-2")):
            shutil.rmtree(path)
            return True
        return False

    vanished = spy(os, "scandir", vanish)
    LocalObjects(tmp_path / "run").sweep()
    assert any(vanished)


def test_a_run_whose_folder_another_removed_before_it_had_the_lock_is_marked_again(tmp_path):
    store = RunStore.create(tmp_path / "run")
    RunStore.open(tmp_path / "run").remove_empty()
    assert not (tmp_path / "run").exists()
    with store.locked():
        store.mark()
        assert RunStore.open(tmp_path / "run").is_marked


def test_a_run_that_another_marks_while_its_place_is_looked_at_is_taken_for_one(tmp_path, spy):
    store, other = RunStore(tmp_path), RunStore(tmp_path)
    spy(store.objects, "names", other.mark)
    store.check_free()
    assert store.objects.names() == ["scalemani.json"]


@pytest.mark.parametrize("setting", ["codec_pipeline.path", "buffer", "ndbuffer", "codecs.blosc"])
def test_settings_of_zarr_that_nothing_can_be_stored_with_are_refused_before_any_work(tmp_path, setting):
    with zarr.config.set({setting: "nonsense"}), pytest.raises(ConfigError, match=r"nonsense.* ZARR_\.\.\.") as told:
        RunStore.create(tmp_path / "run")
    assert told.value.exit_status == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("async.concurrency", ["nonsense", 0, -1, 2.5, None]),
        ("async.timeout", ["nonsense", 0, -1.0]),
        ("threading.max_workers", ["nonsense", 0, -1]),
        ("codec_pipeline.batch_size", ["nonsense", 0, None]),
        ("array.order", ["nonsense", None]),
        ("array.write_empty_chunks", ["nonsense", 1]),
    ],
)
def test_values_that_zarr_would_stumble_over_are_refused_by_their_variable(tmp_path, setting, values):
    points = zarr.create_array(tmp_path / "points.zarr", shape=(4, 3), dtype="f8")
    variable = f"ZARR_{setting.upper()}".replace(".", "__")
    for value in values:
        message = f"{setting}, {variable} in the environment, must be .*, got {value!r}"
        for opener in (
            lambda: RunStore.create(tmp_path / "run"),
            lambda: open_points(points),
            lambda: open_points(tmp_path / "points.zarr"),
            lambda: open_labels(f"{tmp_path}/points.zarr::x", 4),
        ):
            with zarr.config.set({setting: value}), pytest.raises(ConfigError, match=message):
                opener()
    assert not (tmp_path / "run").exists()


def test_the_lock_goes_with_the_process_that_held_it(tmp_path):
    store = RunStore.create(tmp_path)
    program = (
        "import sys, time; from scalemani.store.run_store import RunStore\n"
        "with RunStore.open(sys.argv[1]).locked():\n    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreLockedError), store.locked():
            pass
        holder.kill()
    time.sleep(0.1)
    with store.locked():
        pass


@pytest.mark.parametrize("key", ["../x", "/abs", "a/../../b", "", ".", "a//b", "nul\0", "x" * 300, ".hidden", "a\nb"])
def test_names_cannot_leave_the_store(tmp_path, key):
    objects = LocalObjects(tmp_path / "run")
    for action in (lambda: objects.set(key, b""), lambda: objects.get(key), lambda: objects.delete(key)):
        with pytest.raises(UnsafeStoreError):
            action()


def test_a_symbolic_link_cannot_lead_out_of_the_store(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "stages").symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafeStoreError, match="symbolic link"):
        LocalObjects(tmp_path / "run").set("stages/x", b"")
    assert not list((tmp_path / "outside").iterdir())


def test_plans_are_json(tmp_path):
    store = RunStore.create(tmp_path)
    with pytest.raises(StoreError, match="no run was ever started"):
        store.load_plan()
    store.save_plan({"method": "laplacian-eigenmaps"})
    assert json.loads((tmp_path / "plan.json").read_text())["method"] == "laplacian-eigenmaps"
    assert store.load_plan() == {"method": "laplacian-eigenmaps"}


def test_what_was_never_renamed_is_neither_seen_nor_kept(tmp_path):
    objects = LocalObjects(tmp_path)
    objects.set("marks/one", b"1")
    (tmp_path / "marks" / "tmpabc.partial").write_bytes(b"half")
    assert objects.names("marks") == ["one"]
    objects.sweep()
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["one"]


def test_what_users_keep_in_a_run_under_names_like_those_of_temporaries_stays(tmp_path):
    for folder in ("mine.partial", "tmpfolder.partial"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_text("x")
    (tmp_path / "notes.partial").write_text("x")
    LocalObjects(tmp_path).sweep()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 3


def test_a_run_that_was_begun_is_known_after_a_power_cut(tmp_path, spy):
    synced = spy(os, "fsync", lambda file: os.fstat(file).st_ino)
    RunStore.create(tmp_path / "run")
    assert synced[-1] == (tmp_path / "run").stat().st_ino


def test_a_full_disk_is_an_error_that_leaves_nothing_half_written(tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(StoreError, match="cannot write"):
            LocalObjects(tmp_path).set("one", bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [None, b"", b"{", b'{"format": "scalemani-run", "version": 2}'])
def test_a_marker_that_is_lost_or_damaged_is_written_anew_where_the_plan_is_there(tmp_path, left):
    store = RunStore.create(tmp_path / "run")
    store.save_plan({"method": "t-sne", "params": {}, "dimensions": {}, "keys": {}})
    marker = tmp_path / "run" / MARKER
    marker.unlink() if left is None else marker.write_bytes(left)
    assert RunStore.open(tmp_path / "run").load_plan()["method"] == "t-sne"
    RunStore.create(tmp_path / "run")
    assert RunStore(tmp_path / "run").objects.get_json(MARKER)["version"] == FORMAT_VERSION


def test_a_plan_of_something_else_marks_no_run(tmp_path):
    (tmp_path / "plan.json").write_text('{"method": 1, "params": 1, "dimensions": 1, "keys": 1}')
    with pytest.raises(StoreError, match="is not a run"):
        RunStore.create(tmp_path)
