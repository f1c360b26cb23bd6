"""The stage `partition`: what its certificates say of the cells."""

import numpy as np

from scalemani.records.points import StoredPartition
from scalemani.stages import partition
from scalemani.stages.partition import points_of_cells
from scalemani.store.groups import StageGroup


def test_points_of_each_cell_are_counted_a_part_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(partition, "COUNTED_ROWS", 700)
    cells = np.random.default_rng(0).integers(0, 40, 2500).astype(np.int32)
    group = StageGroup(tmp_path, "stages/partition/key", 1024)
    group.create(len(cells), [StoredPartition.CELLS.sized()])
    for block in range(3):
        group.write_block(block, {StoredPartition.CELLS: cells[1024 * block : 1024 * (block + 1)]})
    group.write_whole({StoredPartition.CENTROIDS: np.zeros((50, 3), np.float32)})
    found = points_of_cells(StoredPartition(group), len(cells))
    np.testing.assert_array_equal(found, np.bincount(cells, minlength=50))
