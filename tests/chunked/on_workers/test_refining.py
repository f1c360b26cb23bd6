"""Refinement by panels: the bits of vectors in memory, wherever it was stopped."""

import pytest

from scalemani.progress import Silent
from scalemani.workers.executor import Executor


class ByPanels(Executor):
    """Threads that are given panels of objects, as workers of a cluster are."""

    @property
    def on_cluster(self):
        return True


class Stopping(Silent):
    """Ends the run after so many passes of the refinement; counts them."""

    def __init__(self, stop_after=None):
        self.stage, self.passes, self.stop_after = "", 0, stop_after

    def begin(self, stage):
        self.stage = stage

    def advance(self, done=1):
        self.passes += self.stage == "embedding"
        if self.passes == self.stop_after:
            raise KeyboardInterrupt


def test_vectors_by_panels_are_those_in_memory_to_the_last_bit(
    embed, in_memory, without_vectors, assert_same_vectors, tmp_path
):
    found = embed(without_vectors, executor=ByPanels())
    assert found.certificates["coarse_graphs"]["nodes"][0] > 1100  # two levels, of which one is on workers
    assert_same_vectors(in_memory, found)
    for root, executor in ((in_memory.store.root, Executor()), (without_vectors, ByPanels())):
        found = embed(root, residual=1e-7, executor=executor)  # in float64
        in_memory = in_memory if root == without_vectors else found
    assert_same_vectors(in_memory, found)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_refinement_that_was_stopped_goes_on_from_its_last_pass_unless_panels_were_damaged(
    embed, in_memory, without_vectors, assert_same_vectors, damaged
):
    passes = in_memory.certificates["embedding"]["passes"]
    with pytest.raises(KeyboardInterrupt):
        embed(without_vectors, executor=ByPanels(progress=Stopping(stop_after=passes)))
    (folder,) = (without_vectors / "stages" / "embedding").iterdir()
    kept = list((folder / "panels").rglob("0"))
    assert len(kept) >= 2
    if damaged:
        for panel in kept:
            panel.write_bytes(panel.read_bytes()[:-1] + b"x")
    rest = Stopping()
    found = embed(without_vectors, executor=ByPanels(progress=rest))
    assert_same_vectors(in_memory, found)
    written = found.dimensions.n_blocks  # of the embedding, a unit each
    assert rest.passes - written == (passes if damaged else 2)  # those of the state as one, and the pass that was lost
