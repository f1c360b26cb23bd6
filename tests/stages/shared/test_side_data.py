"""Values beside the points are stored in work order, whatever the blocks, and missed where they were not given."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.context import PointsInput, StageContext
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions, StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels, with_weights
from scalemani.stages import classes, weights
from scalemani.stages.arrays.points import StoredWeights, StoredWorkPoints
from scalemani.stages.shared.side_data import in_work_order, memory_of_values, side_data_part, store_in_work_order
from scalemani.store.groups import StageGroup

N_POINTS = 2500
POINTS = np.random.default_rng(0).normal(size=(N_POINTS, 3))
GIVEN = np.random.default_rng(1).uniform(1, 9, N_POINTS)
LABELS = np.random.default_rng(2).choice(["one", "three", "two"], N_POINTS)
ORDER = np.random.default_rng(3).permutation(N_POINTS)


@pytest.fixture
def work_of(tmp_path):
    """Return a stage at work on points that are stored in another order."""

    def made(stage, source, block_rows=1024):
        stored = StageGroup(tmp_path, "stages/work_points/key", block_rows)
        stored.write_whole({StoredWorkPoints.input_rows: ORDER}, "order")
        output = StageGroup(tmp_path, f"stages/{stage}/{block_rows}", block_rows)
        dimensions = Dimensions(N_POINTS, 3, "float64", block_rows)
        task = StageTask(
            stage,
            dimensions,
            Parameters().resolved("laplacian-eigenmaps"),
            {StoredWorkPoints.STAGE: stored},
            output,
            2**20,
        )
        given = None if source is None else PointsInput(source, (), 0)
        return StageContext(task, Executor(workers=2), at_once=2, points=given)

    return made


@pytest.mark.parametrize("block_rows", [1024, 4096])
def test_values_are_stored_in_work_order_by_block(work_of, block_rows):
    work = work_of("weights", open_points(POINTS), block_rows)
    returned = store_in_work_order(work, StoredWeights.weights, GIVEN)
    np.testing.assert_array_equal(returned, GIVEN[ORDER])
    np.testing.assert_array_equal(StoredWeights(work.task.output).weights.read(), GIVEN[ORDER])


def test_tables_are_brought_into_work_order_as_copies(work_of):
    work = work_of("layout", open_points(POINTS))
    found = in_work_order(work, POINTS)
    np.testing.assert_array_equal(found, POINTS[ORDER])
    assert not np.shares_memory(found, POINTS)


def test_every_part_of_the_side_data_is_found(work_of):
    source = with_labels(with_weights(open_points(POINTS), GIVEN), LABELS)
    work = work_of("weights", source)
    np.testing.assert_array_equal(side_data_part(work, "weights").values, GIVEN)
    assert side_data_part(work, "labels") is source.side.labels


@pytest.mark.parametrize("source", [None, open_points(POINTS)])
@pytest.mark.parametrize(("stage", "part"), [(weights, "weights"), (classes, "labels")])
def test_a_stage_without_its_values_says_what_it_misses(work_of, source, stage, part):
    name = stage.__name__.rpartition(".")[2]
    with pytest.raises(ValueError, match=f"stage `{name}` was started without {part}"):
        stage.run(work_of(name, source))


def test_the_stages_certify_what_they_store(work_of):
    work = work_of("weights", with_weights(open_points(POINTS), GIVEN))
    found = weights.run(work)
    assert found == {"total_weight": GIVEN[ORDER].sum(), "largest_weight": GIVEN.max()}
    work = work_of("classes", with_labels(open_points(POINTS), LABELS))
    names, counts = np.unique(LABELS, return_counts=True)
    assert classes.run(work) == {"classes": 3, "smallest_class": counts.min()}
    np.testing.assert_array_equal(names[work.task.output.read("codes")], LABELS[ORDER])
    np.testing.assert_array_equal(work.task.output.read("counts"), counts)


def test_what_is_listed_is_what_is_held():
    held = memory_of_values(
        "weights",
        "float64",
        Sizes(Dimensions(N_POINTS, 3, "float64", 1024), Parameters().resolved("laplacian-eigenmaps")),
    )
    assert sum(held.process.values()) == GIVEN.nbytes + GIVEN[ORDER].nbytes + ORDER.nbytes
