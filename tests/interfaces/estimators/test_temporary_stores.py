"""Where an estimator without a store keeps what it computes: in memory for few points, else with temporary files."""

import os
import shutil
from pathlib import Path

import pytest

from scalemani.interfaces.estimators.running import IN_MEMORY, LEAST_ROOM, MOST_BYTES_IN_MEMORY, store_or_temporary

has_room = os.path.isdir(IN_MEMORY) and shutil.disk_usage(IN_MEMORY).free >= LEAST_ROOM


@pytest.mark.skipif(not has_room, reason=f"{IN_MEMORY} has no room, or is not there")
@pytest.mark.parametrize(("n_bytes", "in_memory"), [(10_000, True), (MOST_BYTES_IN_MEMORY + 1, False), (None, False)])
def test_few_points_are_kept_in_memory(monkeypatch, n_bytes, in_memory):
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    with store_or_temporary(None, n_bytes) as folder:
        assert Path(folder).is_relative_to(IN_MEMORY) == in_memory
        assert Path(folder).parent.is_dir()
    assert not Path(folder).parent.exists()


def test_a_folder_for_temporary_files_is_where_they_go(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with store_or_temporary(None, 10_000) as folder:
        assert Path(folder).is_relative_to(tmp_path)


def test_a_requested_store_is_used_as_it_is(tmp_path):
    with store_or_temporary(tmp_path / "run", 10_000) as folder:
        assert folder == tmp_path / "run"
    assert not (tmp_path / "run").exists()
