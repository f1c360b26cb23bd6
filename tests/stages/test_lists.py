"""Lists of what stages hold and write: an array of one name is the same array in all of them."""

from collections import defaultdict

import numpy as np
import pytest

from scalemani.chunked.sizes import Sizes
from scalemani.chunked.task import Dimensions
from scalemani.params import Parameters
from scalemani.stages.table import STAGES

DIMENSIONS = Dimensions(n_points=5000, n_features=7, dtype="int16", block_rows=1024)
# Names that say another thing in another stage: in another precision there, or of another Z.
AMBIGUOUS = {
    *("a tile of points, centred", "weights of a block", "distances", "landmarks"),
    *("columns of a block of W", "values of a block of W", "columns of Z"),
    *("landmarks of each point", "weights of these landmarks"),
}
VALUES = [
    {},
    {"neighbors": {"method": "exact"}},
    {"neighbors": {"method": "partition"}},
    {"points": {"metric": "precomputed"}},
    {"embedding": {"solver": "lll+refine"}},
    {"embedding": {"solver": "exact"}},
    {"embedding": {"solver": "variational-nystrom"}},
]


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_an_array_has_the_same_columns_and_dtype_wherever_it_is_listed(values):
    sizes, found, users = Sizes(DIMENSIONS, Parameters().with_values(values)), defaultdict(set), defaultdict(set)
    for name, stage in STAGES.items():
        for record in (*stage.memory(sizes), *stage.disk(sizes)):
            found[record.name].add((record.columns, np.dtype(record.dtype).name))
            users[record.name].add(name)
    assert {name: shapes for name, shapes in found.items() if len(shapes) > 1 and name not in AMBIGUOUS} == {}
    assert sum(len(stages) > 1 for stages in users.values()) > 20


def test_rows_are_numbered_by_eight_bytes_whatever_is_stored_of_the_points():
    for values in ({}, {"points": {"metric": "precomputed"}}, {"neighbors": {"method": "window", "window": 3}}):
        sizes = Sizes(DIMENSIONS, Parameters().with_values(values))
        (numbers,) = [record for record in STAGES["work_points"].memory(sizes) if record.name == "row numbers"]
        (order,) = [record for record in STAGES["work_points"].disk(sizes) if record.name.startswith("input row of")]
        assert numbers.bytes == numbers.copies * order.bytes == numbers.copies * np.arange(5000).nbytes
