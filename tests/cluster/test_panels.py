"""Vectors that are refined on the workers of a real cluster, one of which is killed."""

import shutil
import threading

import numpy as np
import pytest

from scalemani.chunked.on_workers import spread
from scalemani.kernels.arrays import columns
from scalemani.params import Parameters
from scalemani.runs.walk import run
from scalemani.sources import open_points
from scalemani.workers.executor import LEDGER_VARIABLE, Executor

N_POINTS, UNITS_BEFORE_THE_KILL = 3500, 25


def embed(points, root, **resources):
    values = {"neighbors": {"n_neighbors": 12}, "affinities": {"perplexity": 4}, "embedding": {"residual": 3e-3}}
    params = Parameters().with_values(values)
    return run(open_points(points), root, "laplacian-eigenmaps", params, Executor(**resources), 2048)


class OneKill(threading.Thread):
    """Ends one worker once so many panels were worked on."""

    def __init__(self, cluster, ledger):
        super().__init__(daemon=True)
        self.cluster, self.ledger, self.stop, self.killed = cluster, ledger, threading.Event(), False

    def run(self):
        while not self.stop.wait(0.05):
            done = self.ledger.read_text().count("over_") if self.ledger.exists() else 0
            workers = self.cluster.worker_processes()
            if done >= UNITS_BEFORE_THE_KILL and workers:
                workers[0].kill()
                self.killed = True
                return


@pytest.fixture
def small_panels(monkeypatch):
    monkeypatch.setattr(columns, "PANEL", 1024)
    monkeypatch.setattr(spread, "SPREAD_ROWS", 1100)


def test_a_cluster_that_loses_a_worker_refines_to_the_bits_of_threads(roll, small_panels, start_cluster, tmp_path):
    points, ledger = roll[:N_POINTS], tmp_path / "ledger"
    alone = embed(points, tmp_path / "alone")
    shutil.copytree(tmp_path / "alone", tmp_path / "together")
    shutil.rmtree(tmp_path / "together" / "stages" / "embedding")
    cluster = start_cluster(2, {LEDGER_VARIABLE: str(ledger)})
    killer = OneKill(cluster, tmp_path / "ledger.parts")
    killer.start()
    together = embed(points, tmp_path / "together", scheduler=cluster.address)
    killer.stop.set()
    killer.join()
    assert killer.killed
    one, other = (finished.group("embedding") for finished in (alone, together))
    for name in ("embedding", "eigenvalues"):
        np.testing.assert_array_equal(one.read(name), other.read(name), err_msg=name)
    assert "panels" not in other.objects.names()
    assert alone.certificates["embedding"] == together.certificates["embedding"]
