"""How fine a mesh must be: the error of a particle-mesh gradient by kernel, spline and step, as it was measured."""

from typing import NamedTuple

import numpy as np

from scalemani.errors import ConfigError

LEAST_TOLERANCE, MOST_TOLERANCE = 1e-6, 1e-1

# The largest relative error of the gradient over 200,000 points, uniform or in 60 or 1,000 clusters of deviation 0.3,
# over an extent of 160, in 2-D. Wider clusters err up to twenty times less: their sums leave more for errors to be
# small beside. Errors grow as the degree + 1 power of the step, times what is left of the kernel at that wave number.
STEPS = (0.0625, 0.09, 0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 0.9)
ERRORS = {
    ("student", 3): (2.9e-5, 8.5e-5, 2.4e-4, 7.4e-4, 2.1e-3, 7.1e-3, 2.8e-2, 9.4e-2, 1.9e-1),
    ("student", 5): (4.4e-8, 3.2e-7, 2.0e-6, 1.9e-5, 1.8e-4, 1.7e-3, 1.3e-2, 5.3e-2, 1.2e-1),
    ("gaussian", 3): (2.3e-5, 6.7e-5, 1.8e-4, 5.6e-4, 1.6e-3, 4.8e-3, 1.7e-2, 6.8e-2, 1.8e-1),
    ("gaussian", 5): (1.8e-8, 1.1e-7, 6.2e-7, 4.3e-6, 2.6e-5, 2.0e-4, 2.4e-3, 2.8e-2, 1.2e-1),
}
MARGIN = 0.8
MANY_POINTS = 100_000  # with fewer, less cancels: uniform maps of 5,000 points err five times as much
MOST_NARROWED = 6.0
# From here on cubic splines are the cheaper ones: with many points they count, with few the transforms do.
CUBIC_TOLERANCE, CUBIC_TOLERANCE_OF_FEW = 3e-3, 2e-2
SINGLE_TOLERANCE = 1e-4  # transforms in float32 leave an error of 1e-5 to 4e-5
LEAST_CELLS = 32  # along the longest axis of a map: the kernel is then as smooth as its mesh however small the map is
POINTS_PER_NODE = 16  # more are a mesh that could be finer at no cost, which helps maps of few tight clusters


class MeshRule(NamedTuple):
    """The widest step, the degree of the splines, the dtype of the mesh, and where the kernel counts as ended."""

    step: float
    degree: int
    dtype: np.dtype
    reach: float
    least_cells: int


def mesh_rule(kernel: str, tolerance: float, n_points: int, n_dims: int) -> MeshRule:
    """Return the mesh that keeps the error of the gradient within a tolerance.

    Parameters
    ----------
    kernel : "student" or "gaussian"
    tolerance : the largest relative error of the gradient
    n_points : N
    n_dims : d, 2 or 3

    Raises
    ------
    ConfigError
        For a tolerance that is not in 1e-6 .. 1e-1.
    """
    if not LEAST_TOLERANCE <= tolerance <= MOST_TOLERANCE:
        raise ConfigError(
            f"a tolerance of {tolerance:g} for the particle mesh: it reaches {LEAST_TOLERANCE:g} to "
            f"{MOST_TOLERANCE:g}; use exact sums for less"
        )
    cubic_from = CUBIC_TOLERANCE if n_points >= MANY_POINTS else CUBIC_TOLERANCE_OF_FEW
    degree = 3 if tolerance >= cubic_from else 5
    narrowed = min(max((MANY_POINTS / max(n_points, 1)) ** 0.6, 1.0), MOST_NARROWED)
    error = MARGIN * tolerance / narrowed
    step = float(np.exp(np.interp(np.log(error), np.log(ERRORS[kernel, degree]), np.log(STEPS))))
    # The Gaussian's gradient beyond its reach is a hundredth of the tolerance, relative to its largest value.
    reach = np.inf if kernel == "student" else float(np.sqrt(np.log(100.0 / error)))
    dtype = np.dtype(np.float32 if tolerance >= SINGLE_TOLERANCE else np.float64)
    cells = int((n_points / POINTS_PER_NODE) ** (1.0 / n_dims))
    return MeshRule(step, degree, dtype, reach, max(LEAST_CELLS, cells))
