"""Where an estimator without a store keeps what it computes: in memory for few points, else with temporary files."""

import tempfile
from pathlib import Path

import pytest

from scalemani.interfaces.estimators.running import (
    IN_MEMORY,
    MOST_BYTES_IN_MEMORY,
    folder_in_memory,
    store_or_temporary,
)


@pytest.fixture
def unnamed(monkeypatch):
    """Nobody has named a folder for temporary files."""
    monkeypatch.delenv("TMPDIR", raising=False)


def test_few_points_are_kept_in_memory_where_it_has_room(unnamed, tmp_path):
    assert folder_in_memory(str(tmp_path), 0) == str(tmp_path)
    assert folder_in_memory(str(tmp_path), 10**30) is None
    assert folder_in_memory(str(tmp_path / "none"), 0) is None
    assert folder_in_memory() in (IN_MEMORY, None)


@pytest.mark.parametrize("n_bytes", [10_000, MOST_BYTES_IN_MEMORY + 1, None])
def test_a_temporary_store_is_removed_at_the_end(unnamed, n_bytes):
    few = n_bytes == 10_000
    with store_or_temporary(None, n_bytes) as folder:
        place = (folder_in_memory() if few else None) or tempfile.gettempdir()
        assert Path(folder).is_relative_to(place)
        assert Path(folder).parent.is_dir()
    assert not Path(folder).parent.exists()


def test_a_folder_for_temporary_files_is_where_they_go(temporary_files):
    assert folder_in_memory(str(temporary_files.parent), 0) is None
    with store_or_temporary(None, 10_000) as folder:
        assert Path(folder).is_relative_to(temporary_files)


def test_a_requested_store_is_used_as_it_is(tmp_path):
    with store_or_temporary(tmp_path / "run", 10_000) as folder:
        assert folder == tmp_path / "run"
    assert not (tmp_path / "run").exists()
