"""What is beyond a limit is refused before any work, and the page on limits is the table that checks read."""

from pathlib import Path

import numpy as np
import pytest
import zarr

from scalemani.errors import DataError, MemoryBudgetError, ScalemaniError
from scalemani.limits import LIMITS, check_limit, limits_table
from scalemani.params import Parameters
from scalemani.runs.walk import plan_run
from scalemani.sources import open_points
from scalemani.workers.executor import Executor

PAGE = Path(__file__).parents[1] / "scalemani" / "LIMITS.md"


class NothingIsRead:
    """A source of which only the header may be looked at."""

    dtype = np.dtype(np.float64)
    description, preferred_rows, sequential, remote = "a source", None, False, False

    def __init__(self, shape):
        self.shape = shape

    def read(self, start, stop):
        raise AssertionError("a row was read")


def planned(source, folder, **resources):
    return plan_run(source, folder / "run", "laplacian-eigenmaps", Parameters(), Executor(workers=1, **resources))


def test_the_page_shows_the_table():
    assert limits_table() in PAGE.read_text()


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_taken_and_one_more_is_refused_with_what_to_do(name):
    limit = LIMITS[name]
    check_limit(name, limit.most, "it")
    with pytest.raises(ScalemaniError) as refused:
        check_limit(name, limit.most + 1, "it")
    assert str(refused.value).startswith(f"it has {limit.most + 1} {limit.unit}, at most {limit.most} are taken")
    assert str(refused.value).endswith(limit.remedy)
    assert refused.value.exit_status == 2


@pytest.mark.parametrize("n_points", [2**31, 10**12])
def test_points_beyond_the_limit_are_refused_by_their_header(tmp_path, n_points):
    with pytest.raises(DataError, match="at most 2147483647 are taken"):
        planned(NothingIsRead((n_points, 3)), tmp_path)
    array = zarr.create_array(tmp_path / "p.zarr", shape=(n_points, 3), dtype="f4", chunks=(2**30, 3))
    with pytest.raises(DataError, match="at most 2147483647 are taken"):
        planned(open_points(array), tmp_path)


def test_rows_beyond_what_is_stored_or_beyond_the_budget_are_refused_by_their_header(tmp_path):
    with pytest.raises(DataError, match="a row of a source has 8000000 bytes, at most 2097151 are taken"):
        planned(NothingIsRead((5000, 10**6)), tmp_path)
    with pytest.raises(MemoryBudgetError, match="reading 1024 rows of 800000 bytes"):
        planned(NothingIsRead((5000, 10**5)), tmp_path, memory=10**9)
