"""Principal components of reduced problems, against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.measures import subspace_angle
from scalemani.methods.pca.kernels import principal_components
from tests.kernels.spectral.reduced_problems import weights_and_points


def test_components_are_the_extremes_over_what_landmarks_can_say():
    """The scores are the projections of the points' principal directions within the span of Z, by QR of Z."""
    _, _, z, points = weights_and_points()
    centred = points - points.mean(axis=0)
    found, _ = principal_components(sp.csr_matrix(z.T @ z), z.T @ centred, 3)
    basis = np.linalg.qr(z)[0]
    left, singular, _ = np.linalg.svd(basis.T @ centred)
    np.testing.assert_allclose(found.eigenvalues, singular[:3] ** 2, rtol=1e-10)
    scores = z @ found.vectors
    assert subspace_angle(scores, basis @ left[:, :3]) < 1e-8
    np.testing.assert_allclose(scores.T @ scores, np.diag(singular[:3] ** 2), atol=1e-9 * singular[0] ** 2)


def test_repeated_and_unused_landmarks_change_nothing():
    _, _, z, points = weights_and_points()
    centred = points - points.mean(axis=0)
    more = np.column_stack([z, z[:, :2], np.zeros(len(z))])
    plain, _ = principal_components(sp.csr_matrix(z.T @ z), z.T @ centred, 3)
    found, _ = principal_components(sp.csr_matrix(more.T @ more), more.T @ centred, 3)
    np.testing.assert_allclose(found.eigenvalues, plain.eigenvalues, rtol=1e-8)
    assert subspace_angle(more @ found.vectors, z @ plain.vectors) < 1e-7


def test_more_components_than_dimensions_are_refused():
    _, _, z, points = weights_and_points()
    with pytest.raises(RankError, match="span 1 dimensions"):
        principal_components(sp.csr_matrix(np.ones((12, 12))), z.T @ points, 2)
