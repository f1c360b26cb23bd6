"""The scratch folder of local worker processes, which goes with the process that made it, however that ends."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scalemani.store.locks import lock_file

SCRATCH_PREFIX = "scalemani-"
DRIVER = "driver"  # a file in a scratch folder, locked while the process lives that made it


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """Make a scratch folder, remove it at the end, and with it what killed processes of this user have left.

    It is a folder of one's own: Dask's lies where all may write, under a name that anybody can foresee and make a link.
    """
    sweep_scratch()
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True) as folder,
        owned(Path(folder)),
    ):
        yield folder


@contextlib.contextmanager
def owned(scratch: Path) -> Iterator[None]:
    """Hold a lock in a scratch folder, which goes with this process however that ends."""
    with (scratch / f"{DRIVER}.new").open("xb") as file:
        lock_file(file.fileno())
        os.replace(file.name, scratch / DRIVER)  # seen by others once it is locked
        yield


def sweep_scratch() -> None:
    """Remove the scratch of processes of this user that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*/{DRIVER}"):
        with contextlib.suppress(OSError):
            if left.parent.is_symlink() or left.parent.stat().st_uid != os.getuid():
                continue
            with left.open("rb") as file:
                lock_file(file.fileno())
                shutil.rmtree(left.parent, ignore_errors=True)
