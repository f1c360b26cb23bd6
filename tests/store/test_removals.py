"""Folders are removed while somebody still writes to them, and writes that are broken off leave nothing behind."""

import contextlib
import os
import threading

import pytest

from scalemani.errors import StoreError
from scalemani.store.objects import LocalObjects


def test_a_folder_is_removed_from_under_a_writer(tmp_path):
    objects = LocalObjects(tmp_path)

    def write():
        for number in range(1000):
            with contextlib.suppress(StoreError):
                objects.set(f"copy/{number % 50}", b"rows")

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        objects.delete_below("copy")
    objects.delete_below("copy")
    assert objects.names() == []
    objects.delete_below("copy")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
def test_a_write_that_is_broken_off_leaves_nothing_behind(tmp_path, monkeypatch, error):
    def break_off(descriptor):
        raise error

    monkeypatch.setattr(os, "fsync", break_off)
    with pytest.raises((KeyboardInterrupt, SystemExit, StoreError)):
        LocalObjects(tmp_path).set("folder/name", b"content")
    assert not list((tmp_path / "folder").iterdir())
