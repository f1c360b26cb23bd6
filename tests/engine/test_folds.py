"""Parts combined in order, few of which reach the driver, with the same results however blocks and parts are cut."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalemani.config.params import Parameters
from scalemani.engine import work as module
from scalemani.engine.task import Dimensions
from scalemani.engine.work import MOST_PARTS, StageTask, StageWork, ranges_of
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.runs.walk import run
from scalemani.stages import clustering, reduced
from scalemani.stages.arrays.embeddings import StoredClustering, StoredEmbedding
from scalemani.store.groups import StageGroup

METHOD = "laplacian-eigenmaps"
VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "partition"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "partition": {"cell_points": 200, "sample_points": 2000},
    "embedding": {"solver": "lll+refine"},  # the one that sums matrices over blocks
}


class Counted(Executor):
    """Counts the parts of sums, of which the driver is given the sum alone."""

    parts = 0

    def compute(self, graph, targets, *arguments):
        parts = [len(layer.tasks) for name, layer in graph.layers.items() if name.endswith("-part")]
        self.parts = max([self.parts, *parts])
        return super().compute(graph, targets, *arguments)


def embed(points, root, block_rows):
    executor = Counted(workers=2)
    return run(open_points(points), root, METHOD, Parameters().with_values(VALUES), executor, block_rows), executor


@given(st.integers(0, 10**6), st.integers(1, 64))
def test_numbers_are_cut_into_few_runs_that_cover_them(count, together):
    runs = ranges_of(count, together)
    assert len(runs) <= MOST_PARTS
    assert [run.start for run in runs[1:]] == [run.stop for run in runs[:-1]]
    assert sum(map(len, runs)) == count
    assert all(len(run) >= together for run in runs[:-1])


def test_few_parts_reach_the_driver_and_change_nothing(roll, tmp_path, monkeypatch):
    one, executor = embed(roll, tmp_path / "one", 1024)
    assert executor.parts == 5
    monkeypatch.setattr(module, "MOST_PARTS", 2)
    other, executor = embed(roll, tmp_path / "other", 1024)
    assert executor.parts == 2
    for stage in one.keys:
        assert one.group(stage).content_digest == other.group(stage).content_digest, stage
        ours, theirs = one.certificates[stage], other.certificates[stage]
        assert ours == pytest.approx(theirs, rel=1e-12) if stage == "landmark_weights" else ours == theirs, stage


def test_sums_over_clusters_have_the_same_bits_for_any_blocks(tmp_path):
    rows, centers = np.random.default_rng(5).normal(size=(40_000, 3)), np.eye(4, 3)
    found = []
    for block_rows in (1024, 7168, 65_536):
        embedding = StageGroup(tmp_path / str(block_rows), "stages/embedding/key", block_rows)
        embedding.create(len(rows), [StoredEmbedding.embedding.sized(3)])
        dimensions = Dimensions(len(rows), 3, "float64", block_rows)
        for block in range(dimensions.n_blocks):
            embedding.write_block(block, {StoredEmbedding.embedding: rows[slice(*dimensions.rows(block))]})
        output = StageGroup(tmp_path / str(block_rows), "stages/clustering/key", block_rows)
        output.write_whole({StoredClustering.pass_centers.numbered(0): centers}, "pass_000")
        task = StageTask(
            "clustering", dimensions, Parameters().resolved("spectral-clustering"), {"embedding": embedding}, output, 0
        )
        runs = ranges_of(-(-len(rows) // TILE_ROWS), clustering.TILES_TOGETHER)
        work = StageWork(task, Executor(workers=2), 2)
        found.append(work.fold(functools.partial(clustering.tiles_part, 0), clustering.added, runs))
    assert len(runs) == 3
    assert found[0].counts.sum() == len(rows)
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_the_reduced_problem_has_the_same_bits_for_any_number_of_sums_on_the_way(roll, tmp_path, monkeypatch):
    one, _ = embed(roll, tmp_path / "one", 1024)
    monkeypatch.setattr(reduced, "SUMMED_TOGETHER", 2)
    other, _ = embed(roll, tmp_path / "other", 1024)
    steps = {unit.partition("-")[0] for unit in other.group("reduced").units}
    assert steps == {"block", "sum_1", "sum_2", "whole"}
    for name in ("laplacian_triangle", "mass_triangle"):
        for part in ("indptr", "indices", "values"):
            ours, theirs = (found.group("reduced").read(f"{name}_{part}") for found in (one, other))
            np.testing.assert_array_equal(ours, theirs)
