"""Sums over few parts, with the same results however blocks are cut."""

import functools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalemani.config.params import Parameters
from scalemani.engine.context import MOST_PARTS, StageContext, StageTask, ranges_of
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.stages import clustering
from scalemani.stages.arrays.embeddings import StoredClustering, StoredEmbedding
from scalemani.store.groups import StageGroup


@given(st.integers(0, 10**6), st.integers(1, 64))
def test_numbers_are_cut_into_few_runs_that_cover_them(count, together):
    runs = ranges_of(count, together)
    assert len(runs) <= MOST_PARTS
    assert [run.start for run in runs[1:]] == [run.stop for run in runs[:-1]]
    assert sum(map(len, runs)) == count
    assert all(len(run) >= together for run in runs[:-1])


def test_sums_over_clusters_have_the_same_bits_for_any_blocks(tmp_path):
    rows, centers = np.random.default_rng(5).normal(size=(140_000, 3)), np.eye(4, 3)
    found = []
    for block_rows in (1024, 7168, 65_536):
        embedding = StageGroup(tmp_path / str(block_rows), "stages/embedding/key", block_rows)
        embedding.create(len(rows), [StoredEmbedding.embedding.sized(3)])
        embedding.write_whole({StoredEmbedding.eigenvalues: np.linspace(0.1, 0.2, 10)}, "solution")
        dimensions = Dimensions(len(rows), 3, "float64", block_rows)
        for block in range(dimensions.n_blocks):
            embedding.write_block(block, {StoredEmbedding.embedding: rows[slice(*dimensions.rows(block))]})
        output = StageGroup(tmp_path / str(block_rows), "stages/clustering/key", block_rows)
        output.write_whole({StoredClustering.pass_centers.numbered(0): centers}, "pass_000")
        task = StageTask(
            "clustering", dimensions, Parameters().resolved("spectral-clustering"), {"embedding": embedding}, output, 0
        )
        runs = ranges_of(-(-len(rows) // TILE_ROWS), clustering.TILES_TOGETHER)
        context = StageContext(task, Executor(workers=2), 2)
        found.append(context.fold(functools.partial(clustering.tiles_part, 0), clustering.added, runs))
    assert len(runs) == 3
    assert found[0].counts.sum() == len(rows)
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
