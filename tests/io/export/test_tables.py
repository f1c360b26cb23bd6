"""A map in a Parquet table, as viewers of maps take it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scalemani.errors import ConfigError
from scalemani.io.export.writers import write_map
from scalemani.io.sources.lazy import lazy_rows

N, K = 1000, 4
RNG = np.random.default_rng(0)
POSITIONS, INDICES = RNG.normal(size=(N, 2)), RNG.integers(0, N, (N, K))
DISTANCES = np.sort(RNG.random((N, K)).astype(np.float32), axis=1)
LABELS = {
    "kind": np.where(np.arange(N) % 7, "cat", ""),
    "value": np.where(np.arange(N) % 5, 1.5, np.nan),
    "count": np.arange(N),
}


@pytest.mark.parametrize("step", [None, 100])
def test_a_map_has_positions_labels_and_neighbours_by_name(tmp_path, step):
    target = tmp_path / "map.parquet"
    graph = [lazy_rows(part, "graph") for part in (INDICES, DISTANCES)]
    write_map(lazy_rows(POSITIONS, "map"), LABELS, graph, str(target), step)
    table = pq.read_table(target)
    assert table.column_names == ["x", "y", "kind", "value", "count", "neighbors"]
    np.testing.assert_array_equal(np.column_stack([table["x"], table["y"]]), POSITIONS)
    assert table["kind"].to_pylist() == [name or None for name in LABELS["kind"].tolist()]
    assert table["value"].null_count == N // 5
    np.testing.assert_array_equal(table["count"], LABELS["count"])
    neighbors = table["neighbors"].to_pylist()
    assert [row["ids"] for row in neighbors] == INDICES.tolist()
    assert [row["distances"] for row in neighbors] == DISTANCES.tolist()
    assert pa.types.is_struct(table.schema.field("neighbors").type)


def test_a_map_has_names_of_its_own_and_numbers_where_it_is_not_drawn(tmp_path):
    target = str(tmp_path / "map.parquet")
    for n_dims, names in ((3, ["x", "y", "z"]), (5, [f"component_{number}" for number in range(1, 6)])):
        positions = RNG.normal(size=(N, n_dims))
        write_map(lazy_rows(positions, "map"), {"x_": np.arange(N)}, None, target)
        table = pq.read_table(target)
        assert table.column_names == [*names, "x_"]
        np.testing.assert_array_equal(np.column_stack([table[name] for name in names]), positions)
    before = (tmp_path / "map.parquet").read_bytes()
    with pytest.raises(ConfigError, match="labels is called 'x'"):
        write_map(lazy_rows(POSITIONS, "map"), {"x": np.arange(N)}, None, target)
    assert (tmp_path / "map.parquet").read_bytes() == before
