"""The end of a command that fails: a status by whether trying again helps, and a sentence that says what does."""

import errno
import os
import subprocess
import types

import pytest

from scalemani.interfaces.cli import process
from scalemani.interfaces.cli.printing import next_steps
from scalemani.store import objects

AGAIN = ["EIO", "ESTALE", "EMFILE", "ENFILE", "EAGAIN", "ETIMEDOUT", "ENOSPC", "EDQUOT", "ENOLCK", "EHOSTUNREACH"]
NEVER = ["EACCES", "EPERM", "EROFS", "ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENAMETOOLONG", "ELOOP", "EINVAL"]


@pytest.fixture
def ending(scalemani, monkeypatch):
    """Return status and standard error of a command that ends with an error."""

    def ending(error, *arguments):
        def fail(**options):
            raise error

        monkeypatch.setattr(process, "app", fail)
        status, _, errors = scalemani(*arguments)
        (line,) = errors.splitlines()
        return status, line

    return ending


@pytest.mark.parametrize(("names", "expected"), [(AGAIN, 1), (NEVER, 2)], ids=["again", "never"])
def test_errors_of_the_system_have_the_status_that_says_whether_to_try_again(ending, tmp_path, names, expected):
    for name in names:
        number = getattr(errno, name)
        error = OSError(number, os.strerror(number), str(tmp_path / "x"))
        assert ending(error, "info", tmp_path)[0] == expected, name
        assert objects.as_store_error(error, tmp_path / "x").exit_status == expected, name


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_are_told_with_the_limit_to_raise(ending, tmp_path, number):
    error = OSError(number, os.strerror(number))
    assert "ulimit -n" in ending(error, "info", tmp_path)[1]
    assert "ulimit -n" in str(objects.as_store_error(error, tmp_path))


@pytest.mark.parametrize(
    "error", [RuntimeError("can't start new thread"), BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))]
)
def test_a_user_who_may_start_no_more_threads_or_processes_is_told_so(ending, tmp_path, error):
    status, line = ending(error, "info", tmp_path)
    assert status == 1
    assert "ulimit -u" in line
    assert "should not happen" not in line


def test_a_full_disk_is_named_though_the_library_that_met_it_does_not(ending, tmp_path, monkeypatch):
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    out = tmp_path / "map.parquet"
    status, line = ending(error, "export", tmp_path / "run", out)
    assert (status, str(out) in line, "free some" in line) == (1, True, True)
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(objects, "free_bytes", lambda place: 0 if place == out else 10**12)
    status, line = ending(error, "export", tmp_path / "run", out)
    assert status == 1
    assert line.startswith(f"error: no space left to write {out}, 0 bytes are free on its disk")


def test_where_inodes_are_missing_bytes_are_not_blamed(ending, tmp_path, monkeypatch):
    without = types.SimpleNamespace(f_files=100, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda place: without)
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "x"))
    for told in (str(objects.as_store_error(error, tmp_path / "x")), ending(error, "info", tmp_path)[1]):
        assert f"no inode is left to write {tmp_path / 'x'}" in told
        assert "bytes are free" not in told


@pytest.mark.parametrize(
    "name", ["plain", "two words", "a\nb", "it's\n\\here", "tab\tand\x1b[31m", "ä\nö", "$HOME`id`\n", "-x\r\n"]
)
def test_the_next_commands_name_the_run_whatever_letters_are_in_its_name(tmp_path, name):
    run = types.SimpleNamespace(store=types.SimpleNamespace(root=tmp_path / name), embeds=True, keys={})
    line = next_steps(run)
    assert line.isprintable()
    command = line.removeprefix("next: ").partition(", ")[0].replace("scalemani report", "printf %s")
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert os.fsdecode(done.stdout) == str(tmp_path / name)
