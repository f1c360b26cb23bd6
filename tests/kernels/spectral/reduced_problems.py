"""Points as combinations of landmarks, for tests of reduced problems."""

import numpy as np


def weights_and_points(n_points=200, n_landmarks=12, n_features=7, seed=0):
    """Return Z as indices and values (N, 3) and as a dense matrix (N, L), and points (N, D) off the origin."""
    rng = np.random.default_rng(seed)
    indices = np.array([rng.choice(n_landmarks, 3, replace=False) for _ in range(n_points)])
    values = rng.dirichlet(np.ones(3), n_points)
    z = np.zeros((n_points, n_landmarks))
    np.put_along_axis(z, indices, values, axis=1)
    return indices, values, z, rng.normal(size=(n_points, n_features)) @ np.diag(3.0 ** -np.arange(n_features)) + 5
