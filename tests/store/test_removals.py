"""A folder is removed while somebody still writes to it: a task that was cancelled ends when it will."""

import contextlib
import threading

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
