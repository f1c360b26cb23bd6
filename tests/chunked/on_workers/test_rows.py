"""Panels that are objects: what is read is what was written, or an error."""

import numpy as np
import pytest

from scalemani.chunked.on_workers.rows import Place, StoredPanels
from scalemani.errors import CorruptChunkError
from scalemani.kernels.arrays import columns
from scalemani.kernels.arrays.columns import panels


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "PANEL", 100)
    values = np.random.default_rng(0).normal(size=(350, 3)).astype(np.float32)
    rows = StoredPanels("name", values.shape, values.dtype, Place(str(tmp_path), "stages/embedding/key", 10**6))
    for panel in panels(350):
        rows.write(panel, values[panel])
    return rows, values


def test_panels_and_rows_by_number_are_those_that_were_written(stored):
    rows, values = stored
    for panel in panels(350):
        np.testing.assert_array_equal(rows[panel], values[panel])
        assert rows[panel].flags.writeable
    for chosen in (np.arange(0), np.array([349]), np.array([3, 99, 100, 320]), np.arange(350)):
        np.testing.assert_array_equal(rows.gather(chosen), values[chosen])


@pytest.mark.parametrize("lost", [False, True])
def test_a_panel_that_is_not_what_was_written_is_an_error_that_names_it(stored, tmp_path, lost):
    path = tmp_path / "stages/embedding/key/panels/name/2"
    content = path.read_bytes()
    path.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    if lost:
        path.unlink()
    with pytest.raises(CorruptChunkError, match="panels/name/2 " + ("is gone" if lost else "was damaged")):
        stored[0][panels(350)[2]]
