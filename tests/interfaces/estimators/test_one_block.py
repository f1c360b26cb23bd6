"""Few points without a store are one block, with the bits that the blocks of a store of the user's give."""

import numpy as np

import scalemani as sm
from scalemani.interfaces.estimators import running


def test_few_points_without_a_store_are_one_block_and_give_the_same_bits(tmp_path, monkeypatch):
    points = np.random.default_rng(0).normal(size=(1500, 4))
    blocks = []

    def counted(*arguments):
        finished = run(*arguments)
        blocks.append(finished.dimensions.n_blocks)
        return finished

    run = running.run
    monkeypatch.setattr(running, "run", counted)
    settings = {"n_neighbors": 10, "perplexity": 5}
    embeddings = [
        sm.LaplacianEigenmaps(**settings, **where).fit(points).embedding_
        for where in ({}, {"store": tmp_path / "run"}, {"memory": "2GB"})
    ]
    assert blocks == [1, 2, 2]
    np.testing.assert_array_equal(embeddings[0], embeddings[1])
