"""Folders on a disk: pages of a file that lies in memory count as the memory of a process, and nobody can drop them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ON_DISK = "/var/tmp"  # kept from boot to boot, so on a disk


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """An empty folder on a disk, wherever temporary files are."""
    with tempfile.TemporaryDirectory(prefix="scalemani-test-", dir=ON_DISK) as folder:
        yield Path(folder)
