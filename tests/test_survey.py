"""What is told of points before anything is computed of them."""

import numpy as np
import pytest

from scalemani.sources import open_points
from scalemani.survey import survey
from scalemani.workers.executor import Executor

POINTS = np.random.default_rng(0).random((1500, 3))


@pytest.mark.parametrize(
    ("points", "block_rows", "noted"),
    [
        (POINTS, 4096, ["a block has 2048 rows, which hold all 1500 points: 4096 were asked for"]),
        (POINTS > 0.5, 1024, ["Booleans are kept as uint8 0 and 1"]),
        (POINTS.astype(np.float16), 2048, []),
        (POINTS, None, []),
    ],
)
def test_what_is_not_as_it_was_given_is_told(listening, points, block_rows, noted):
    survey(open_points(points), Executor(progress=listening), block_rows)
    assert listening.noted == noted
