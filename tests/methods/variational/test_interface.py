import numpy as np
import pytest
import scipy.sparse as sp

import scalemani as sm
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError


@pytest.fixture(scope="module")
def graph():
    points = np.random.default_rng(0).normal(size=(400, 3))
    found = sm.knn_graph(points, n_neighbors=20)
    return points, sm.symmetric_affinities(found.indices, sm.entropic_affinities(found.distances, 7).values)


def test_selected_landmarks_are_taken_by_their_rows(graph):
    points, affinities = graph
    chosen = sm.select_landmarks(points, 60)
    one, other = (sm.variational_nystrom(affinities, given, 3) for given in (chosen, chosen.indices))
    np.testing.assert_array_equal(one.embedding, other.embedding)
    assert one.embedding.shape == (400, 3)


@pytest.mark.parametrize(
    ("landmarks", "n_components", "error", "message"),
    [
        ([1, 2, 2], 1, DataError, "distinct rows"),
        ([1.0, 2.0], 1, DataError, "distinct rows"),
        ([1, 400], 1, DataError, r"lie in \[0, 400\)"),
        ([1, 2, 3], 3, ConfigError, "landmarks less one"),
    ],
)
def test_landmarks_that_cannot_be_used_are_refused(graph, landmarks, n_components, error, message):
    with pytest.raises(error, match=message):
        sm.variational_nystrom(graph[1], landmarks, n_components)


def test_affinities_that_cannot_be_used_are_refused():
    with pytest.raises(DataError, match="W must be"):
        sm.variational_nystrom(sp.csr_matrix((3, 2)), [0, 1], 1)


def test_a_graph_of_two_components_is_refused_though_each_has_landmarks(graph):
    """Both have the eigenvalue zero: any combination of their indicators would be a first column."""
    affinities = sp.block_diag([graph[1], graph[1]], format="csr")
    with pytest.raises(DisconnectedGraphError, match="2 eigenvalues are zero where one was expected"):
        sm.variational_nystrom(affinities, np.arange(0, 800, 20), 2)
