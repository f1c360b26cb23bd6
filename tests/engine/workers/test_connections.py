"""Clusters as users hold them: clients, clusters, the current client, and clusters that start with nobody."""

import os
import subprocess
import sys

import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import scalemani as sm
from scalemani.engine.workers import clients
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError

LOCAL = {"threads_per_worker": 1, "dashboard_address": None, "processes": False}


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(300, 4))


@pytest.fixture(scope="module")
def expected(points):
    return sm.knn_graph(points, 5).indices


def test_a_cluster_that_starts_with_no_worker_is_asked_for_one(points, expected):
    with LocalCluster(n_workers=0, **LOCAL) as cluster:
        cluster.adapt(minimum=0, maximum=4)
        np.testing.assert_array_equal(sm.knn_graph(points, 5, scheduler=cluster).indices, expected)


def test_a_worker_that_is_lost_before_it_is_looked_at_is_waited_for_again(monkeypatch):
    with Client(n_workers=1, **LOCAL) as client:
        described, answers = clients.described_workers, [{}]
        monkeypatch.setattr(clients, "described_workers", lambda of: answers.pop() if answers else described(of))
        assert [budget.threads for budget in Executor(client).processes] == [1]
        assert not answers


def test_the_current_client_is_taken_by_its_name(points, expected):
    with pytest.raises(ConfigError, match="'distributed' is Dask's current client, and there is none"):
        sm.knn_graph(points, 5, scheduler="distributed")
    with Client(n_workers=1, **LOCAL) as client:
        assert Executor("distributed").scheduler is client
        np.testing.assert_array_equal(sm.knn_graph(points, 5, scheduler="distributed").indices, expected)


def test_estimators_with_a_client_are_cloned_and_searched_over(points):
    classes = points[:, 0] > 0
    with Client(n_workers=1, **LOCAL) as client:
        model = sm.LandmarkPCA(n_landmarks=20, scheduler=client)
        other = clone(model.fit(points))
        assert (other.scheduler, other.n_landmarks, hasattr(other, "embedding_")) == (client, 20, False)
        assert clone(sm.KNeighborsTransformer(3, scheduler=client)).scheduler is client
        pipeline = make_pipeline(model, KNeighborsClassifier())
        found = GridSearchCV(pipeline, {"landmarkpca__n_components": [1, 2]}, cv=2).fit(points, classes)
        assert (found.cv_results_["mean_test_score"] > 0.5).all()


def test_workers_are_the_processors_that_a_process_may_use():
    program = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    program += "from scalemani.engine.workers.executor import Executor; print(Executor().workers)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("error", [None, AssertionError(), TypeError("TLS expects a `ssl_context`")])
def test_an_address_that_takes_certificates_is_refused_without_in_one_way(monkeypatch, error):
    def refused(*given, **named):
        raise error

    if error is not None:  # Dask raises one or the other, by timing
        monkeypatch.setattr(clients, "Client", refused)
    told = r"tls://127.0.0.1:9 without certificates: give their folder with --tls"
    with pytest.raises(ConfigError, match=told), clients.connected("tls://127.0.0.1:9", None):
        pass
