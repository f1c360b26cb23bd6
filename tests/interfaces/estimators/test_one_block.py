"""Few points without a store are one block, with the bits that the blocks of a store of the user's give."""

import numpy as np

import scalemani as sm
from scalemani.runs import walk


def test_few_points_without_a_store_are_one_block_and_give_the_same_bits(tmp_path, spy):
    points = np.random.default_rng(0).normal(size=(1500, 4))
    planned = spy(walk, "run_plan", lambda target, plan: plan.dimensions.n_blocks)
    settings = {"n_neighbors": 10, "perplexity": 5}
    embeddings = [
        sm.LaplacianEigenmaps(**settings, **where).fit(points).embedding_
        for where in ({}, {"store": tmp_path / "run"}, {"memory": "2GB"})
    ]
    assert planned == [1, 2, 2]
    np.testing.assert_array_equal(embeddings[0], embeddings[1])
