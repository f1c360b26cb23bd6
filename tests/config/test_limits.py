"""What is beyond a limit is refused before any work, and the page on limits is the table that checks read."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from scalemani.config.limits import LIMITS, check_limit
from scalemani.config.params import Parameters
from scalemani.config.routing import route
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import DataError, MemoryBudgetError, ScalemaniError
from scalemani.io.sources import PointsSource, open_points
from scalemani.kernels.graph.attraction import AffinityRows, attraction_energy, attraction_gradient
from scalemani.kernels.graph.product import normalized_product
from scalemani.kernels.graph.symmetric import row_sums
from scalemani.runs.walk import plan_run
from scalemani.stages.table import STAGES
from tests.stages.arrays.specification import stored_stages

BEYOND = 2**31 + 7
PAGE = Path(__file__).parents[2] / "scalemani" / "LIMITS.md"


class NothingIsRead(PointsSource):
    """A source of which only the header may be looked at."""

    dtype = np.dtype(np.float64)
    description = "a source"

    def __init__(self, shape):
        self.shape = shape

    def read(self, start, stop):
        raise AssertionError("a row was read")


def planned(source, folder, **resources):
    return plan_run(source, folder / "run", "laplacian-eigenmaps", Parameters(), Executor(workers=1, **resources))


def test_the_page_shows_the_table():
    rows = [
        f"| {name} | {limit.most:,} {limit.unit} | {limit.reason} | {limit.remedy} |" for name, limit in LIMITS.items()
    ]
    assert "\n".join(["| of | at most | because | beyond |", "| --- | --- | --- | --- |", *rows]) in PAGE.read_text()


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


def test_where_rows_begin_is_stored_in_64_bits_wherever_it_can_exceed_32():
    bounds = [one for stage in stored_stages() for one in stage.ARRAYS if one.name.endswith("indptr")]
    assert {one.stage for one in bounds} >= {"points", "symmetric_affinities", "affinity_weights", "coarse_graphs"}
    of_landmarks = [one for one in bounds if one.dims == ("landmark_bound",)]  # matrices of landmarks by landmarks
    assert {one.dtype for one in bounds if one not in of_landmarks} == {"int64"}


@pytest.fixture
def far_rows(tmp_path):
    """Rows of a graph whose entries begin after 2^31 + 7 others: a file of holes, of which the end alone is written."""
    draws, n_points = np.random.default_rng(0), 40
    near = sp.csr_matrix(np.triu(draws.random((n_points, n_points)) * (draws.random((n_points, n_points)) < 0.3), 1))
    near = sp.csr_matrix(near + near.T)
    size = BEYOND + near.nnz
    columns = np.memmap(tmp_path / "columns", np.uint32, "w+", shape=(size,))
    values = np.memmap(tmp_path / "values", np.float32, "w+", shape=(size,))
    columns[BEYOND:], values[BEYOND:] = near.indices, near.data.astype(np.float32)
    yield near, AffinityRows(near.indptr.astype(np.int64) + BEYOND, columns, values)
    for name in ("columns", "values"):
        (tmp_path / name).unlink()


def test_entries_beyond_2_to_the_31_are_read_where_they_are(far_rows):
    near, far = far_rows
    here = AffinityRows(near.indptr.astype(np.int64), near.indices.astype(np.uint32), near.data.astype(np.float32))
    n_points = here.n_points
    for n_dims in (2, 3):
        positions = np.random.default_rng(1).normal(size=(n_points, n_dims))
        for kernel in ("quadratic", "student"):
            gradients = [attraction_gradient(rows, positions, kernel, np.empty_like(positions)) for rows in (far, here)]
            np.testing.assert_array_equal(*gradients)
            assert np.abs(gradients[0]).max() > 0.1
            assert attraction_energy(far, positions, kernel) == attraction_energy(here, positions, kernel)
        products = [np.empty_like(positions) for _ in range(2)]
        for rows, out in zip((far, here), products, strict=True):
            normalized_product(tuple(rows), np.ones(n_points), 0, positions, out)
        np.testing.assert_array_equal(*products)
    np.testing.assert_array_equal(row_sums(far.values, far.indptr), row_sums(here.values, here.indptr))


@pytest.mark.parametrize("method", ["laplacian-eigenmaps", "t-sne", "isomap"])
def test_more_neighbours_than_2_to_the_31_in_all_are_counted_in_plans(method):
    values = {"neighbors": {"n_neighbors": 90}, "affinities": {"perplexity": 30}}
    sizes = Sizes(Dimensions(30_000_000, 50, "float32", 65_536), Parameters().with_values(values).resolved(method))
    assert sizes.n_edges == 2_700_000_000
    for stage in route(method, "refine"):
        listed = STAGES[stage.name]
        disk, memory = listed.disk(sizes), listed.memory(sizes)
        needs = [n_bytes for _, n_bytes, _ in (*memory.listed(), *disk.listed())]
        assert all(0 <= need < 2**50 for need in needs), stage.name
    assert STAGES["neighbors"].disk(sizes).total >= 8 * sizes.n_edges
    assert STAGES["symmetric_affinities"].disk(sizes).total >= 8 * sizes.n_affinities
