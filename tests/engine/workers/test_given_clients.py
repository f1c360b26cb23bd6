"""Clients and clusters of Dask that cannot be used are refused by one line, before any work."""

import asyncio

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import scalemani as sm
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError

ROWS = np.random.default_rng(0).normal(size=(200, 3))


@pytest.fixture
def cluster():
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        yield cluster


def test_a_client_that_was_closed_is_refused(cluster, tmp_path):
    client = Client(cluster)
    Executor(client)
    client.close()
    with pytest.raises(ConfigError, match="the Dask client was closed: make another one"):
        sm.LaplacianEigenmaps(scheduler=client, store=tmp_path / "run").fit(ROWS)
    assert not (tmp_path / "run").exists()


def test_a_cluster_that_was_closed_is_refused(cluster):
    cluster.close()
    with pytest.raises(ConfigError, match="the Dask cluster was closed: make another one"):
        Executor(cluster)


def test_a_client_that_answers_by_coroutines_is_refused(cluster, tmp_path):
    async def fit():
        async with Client(cluster.scheduler_address, asynchronous=True) as client:
            for given in (client, "distributed"):
                with pytest.raises(ConfigError, match="the Dask client is asynchronous"):
                    sm.LaplacianEigenmaps(scheduler=given, store=tmp_path / "run").fit(ROWS)

    asyncio.run(fit())
    assert not (tmp_path / "run").exists()


def test_points_that_a_closed_client_holds_are_refused(cluster, tmp_path):
    with Client(cluster) as client:
        points = client.persist(da.from_array(ROWS, chunks=(100, 3)))
        client.compute(points, sync=True)
    with pytest.raises(sm.errors.ScalemaniError):
        sm.LaplacianEigenmaps(store=tmp_path / "run").fit(points)
    assert not (tmp_path / "run").exists()
