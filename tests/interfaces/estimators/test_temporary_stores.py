"""Where an estimator without a store keeps what it computes: in memory for few points, else with temporary files."""

from pathlib import Path

import pytest

from scalemani.interfaces.estimators import running
from scalemani.interfaces.estimators.running import MOST_BYTES_IN_MEMORY, store_or_temporary


@pytest.fixture
def memory(monkeypatch, tmp_path):
    """The folder in memory, which has room for all; nobody has named a folder for temporary files."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(running, "IN_MEMORY", str(folder))
    monkeypatch.setattr(running, "LEAST_ROOM", 0)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.mark.parametrize(("n_bytes", "in_memory"), [(10_000, True), (MOST_BYTES_IN_MEMORY + 1, False), (None, False)])
def test_few_points_are_kept_in_memory(memory, n_bytes, in_memory):
    with store_or_temporary(None, n_bytes) as folder:
        assert Path(folder).is_relative_to(memory) == in_memory
        assert Path(folder).parent.is_dir()
    assert not Path(folder).parent.exists()


def test_where_memory_has_no_room_or_there_is_no_such_folder_they_are_kept_elsewhere(memory, monkeypatch):
    for name, value in (("LEAST_ROOM", 10**30), ("IN_MEMORY", str(memory / "none"))):
        monkeypatch.setattr(running, name, value)
        with store_or_temporary(None, 10_000) as folder:
            assert Path(folder).parent.is_dir()
            assert not Path(folder).is_relative_to(memory)


def test_a_folder_for_temporary_files_is_where_they_go(memory, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with store_or_temporary(None, 10_000) as folder:
        assert Path(folder).is_relative_to(tmp_path)
        assert not Path(folder).is_relative_to(memory)


def test_a_requested_store_is_used_as_it_is(tmp_path):
    with store_or_temporary(tmp_path / "run", 10_000) as folder:
        assert folder == tmp_path / "run"
    assert not (tmp_path / "run").exists()
