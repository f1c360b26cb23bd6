"""Work order where points were appended: blocks of the earlier run stay as they are, until it has grown much."""

import itertools
import shutil

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.config.params import Parameters
from scalemani.engine.task import EarlierResults
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.rows.sketches import sketch_points
from scalemani.runs.appending import append_points
from scalemani.runs.opened import Run, open_run
from scalemani.runs.walk import run
from scalemani.stages import work_points
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints, sketches_of

BOUNDS = (2100, 2200, 2300, 2900)
ASKED = {"n_neighbors": 10, "method": "partition", "n_probes": 4, "recall": 0.5}


def test_bytes_need_no_sketches_beside_them_and_have_all_neighbours_and_bridges(tmp_path):
    draws = np.random.default_rng(4)
    points = (draws.integers(0, 90, (3, 1, 20)) + draws.integers(0, 40, (3, 800, 20))).reshape(-1, 20).astype(np.uint8)
    values = {"neighbors": {**ASKED, "n_probes": 48}, "partition": {"cell_points": 50}, "affinities": {"perplexity": 3}}
    params, executor = Parameters().with_values(values), Executor(workers=2)
    found = run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, executor, 1024)
    work, basis = StoredWorkPoints(found.group("work_points")), StoredPartition(found.group("partition")).basis
    assert not work.group.holds("sketch")
    ordered = points[work.input_rows.read()]
    np.testing.assert_array_equal(sketches_of(work, basis).read(), sketch_points(ordered, basis))
    away = cdist(ordered.astype(float), ordered.astype(float))
    bridges = found.group("components")
    ends = bridges.read("bridge_rows")
    assert len(ends) == bridges.read("labels").max() == 2
    np.testing.assert_allclose(bridges.read("bridge_distances"), away[tuple(ends.T)], rtol=1e-5)
    np.fill_diagonal(away, np.inf)
    listed = found.group("neighbors").read("round_0/distances")
    np.testing.assert_allclose(listed, np.sort(away, axis=1)[:, :10], rtol=1e-6)


@pytest.fixture(scope="module")
def goes(tmp_path_factory):
    """Points, the run of the first ones, and that after each go of appending others; the last adds a fifth."""
    points = np.random.default_rng(3).normal(size=(BOUNDS[-1], 4)).astype(np.float32)
    folder, executor = tmp_path_factory.mktemp("goes") / "run", Executor(workers=1)
    values = Parameters().with_values({"neighbors": ASKED, "partition": {"cell_points": 50}})
    found = [run(open_points(points[: BOUNDS[0]]), folder, "knn-graph", values, executor, 1024)]
    for start, stop in itertools.pairwise(BOUNDS):
        found.append(append_points(open_run(folder), points[start:stop], executor).run)
    return points, found


def stored(grown):
    """Return the work points of a run, and the cell of each point."""
    return StoredWorkPoints(grown.group("work_points")), StoredPartition(grown.group("partition")).cells.read()


@pytest.mark.parametrize("go", [1, 2])
def test_appended_points_come_behind_the_others_sorted_by_cell(goes, go):
    points, runs = goes
    (found, cells), (before, _) = stored(runs[go]), stored(runs[go - 1])
    order, n_before = found.input_rows.read(), BOUNDS[go - 1]
    np.testing.assert_array_equal(order[:n_before], before.input_rows.read())
    np.testing.assert_array_equal(order[n_before:], n_before + np.argsort(cells[n_before:], kind="stable"))
    np.testing.assert_array_equal(found.points.read(), points[order])
    np.testing.assert_array_equal(found.sketch.read()[:n_before], before.sketch.read())
    offsets, of_cells = found.cell_ranges
    np.testing.assert_array_equal(np.repeat(of_cells, np.diff(offsets)), cells[order])


@pytest.mark.parametrize("go", [1, 2])
@pytest.mark.parametrize(("stage", "names"), [("points", ["points"]), ("work_points", ["points", "sketch"])])
def test_blocks_of_earlier_points_are_files_of_the_earlier_run(goes, go, stage, names):
    roots = [found.group(stage).objects.root / "arrays" for found in (goes[1][go], goes[1][go - 1])]
    for name in names:
        same = [(roots[0] / name / "c" / block / "0").samefile(roots[1] / name / "c" / block / "0") for block in "012"]
        assert same == [True, True, False]


def test_a_run_that_has_grown_much_is_sorted_by_cell_anew(goes):
    points, runs = goes
    found, cells = stored(runs[-1])
    assert [stored(one)[0].sorted_by_cell for one in runs] == [True, False, False, True]
    np.testing.assert_array_equal(found.input_rows.read(), np.argsort(cells, kind="stable"))
    np.testing.assert_array_equal(found.points.read(), points[found.input_rows.read()])


def test_lists_are_true_in_either_order(goes):
    points, runs = goes
    for grown in runs[1:]:
        indices, distances = (np.asarray(part[...]) for part in (grown.graph.indices, grown.graph.distances))
        rows = points[: len(indices)]
        apart = np.linalg.norm(rows[indices].astype(np.float64) - rows[:, np.newaxis], axis=2)
        np.testing.assert_allclose(distances, apart, rtol=1e-5)
        assert (indices != np.arange(len(indices))[:, np.newaxis]).all()
        assert grown.certificates["neighbors"]["recall"] > 0.9


def test_many_goes_end_in_an_order_by_cell_anew(goes):
    earlier = stored(goes[1][1])[0]
    cells = stored(goes[1][2])[1]
    task = EarlierResults(BOUNDS[1], {"work_points": earlier.group})
    n_cells = int(cells.max()) + 1
    assert work_points.extended_order(task, cells, n_cells) is not None
    assert work_points.extended_order(task, cells, n_cells, most_ranges=2) is None


@pytest.mark.parametrize(
    ("chunk", "of_both"),
    [
        ("input_rows/c/0", False),
        ("stretch_cells/c/0", False),
        ("points/c/0/0", False),
        ("points/c/0/0", True),
        ("points/c/2/0", True),
    ],
)
def test_what_is_damaged_is_computed_anew_to_the_same_bits(goes, tmp_path, chunk, of_both):
    points, runs = goes
    shutil.copytree(runs[0].store.root, tmp_path / "run")
    before = Run(tmp_path / "run", runs[0].plan)
    before.store.save_plan(before.plan)
    grown = Run(tmp_path / "run", runs[1].plan)
    for one in (grown, before) if of_both else (grown,):
        file = one.group("work_points").objects.root / "arrays" / chunk
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    assert len(grown.group("work_points").damaged_units()) == 1
    found = append_points(before, points[BOUNDS[0] : BOUNDS[1]], Executor(workers=1)).run
    assert found.keys == runs[1].keys
    assert found.group("work_points").damaged_units() == []
    assert found.group("work_points").content_digest == runs[1].group("work_points").content_digest
