"""The field of one point or one cell at a group of targets: what a tree walk adds, with vector instructions.

A cell with charge Q and second moments M about its centre of charge c has, with r = y - c and s = |r|^2,
S = Q K(s) + tr(M) K'(s) + 2 (r^T M r) K''(s) up to its third moments: there is no first moment about c. Its gradient is
(2 Q K' + 2 tr(M) K'' + 4 (r^T M r) K^(3)) r + 4 K'' M r. For K = exp(-s) every derivative is +-K; for K = 1 / (1 + s)
they are -K^2, 2 K^3 and -6 K^4.

The loops run over the targets, always all lanes of a group: no remainders, and nothing to add up across lanes. Targets
and results are parts of one array at fixed places, so that the compiler sees that they do not overlap.
"""

import numpy as np

from scalemani.kernels.machine.compile import compiled, compiled_sums
from scalemani.kernels.machine.vector_exp import exp_nonpositive
from scalemani.kernels.repulsion.pair_sums import STUDENT

GROUP_POINTS = 32  # targets of a group
STATE_SIZE = 7 * GROUP_POINTS  # three coordinates of the targets, three of the gradient, and S
GRADIENT, SUM = 3 * GROUP_POINTS, 6 * GROUP_POINTS
_LANES = np.uint64(GROUP_POINTS)
_X, _Y, _Z, _G0, _G1, _G2, _S = (np.uint64(i * GROUP_POINTS) for i in range(7))


@compiled
def add_point(kind: int, place: np.ndarray, charge: float, state: np.ndarray) -> None:
    """Add the field of a point to the state of a group.

    Parameters
    ----------
    kind : GAUSSIAN or STUDENT
    place : (d,) float64, d = 2 or 3
    charge : of the point
    state : (STATE_SIZE,) float64, coordinates of the targets, gradient and S
    """
    if len(place) == 2:
        _add_point_plane(kind, place[0], place[1], charge, state)
    else:
        _add_point_space(kind, place[0], place[1], place[2], charge, state)


@compiled
def add_cell(kind: int, center: np.ndarray, charge: float, moments: np.ndarray, state: np.ndarray) -> None:
    """Add the field of a cell to the state of a group.

    Parameters
    ----------
    kind, charge, state : those of `add_point`, of all points in the cell together
    center : (d,) float64, of the charge
    moments : (d (d + 1) / 2,) float64, second moments about it, row by row of the upper triangle
    """
    if len(center) == 2 and kind == STUDENT:
        _add_student_plane(center, charge, moments, state)
    elif len(center) == 2:
        _add_gaussian_plane(center, charge, moments, state)
    elif kind == STUDENT:
        _add_student_space(center, charge, moments, state)
    else:
        _add_gaussian_space(center, charge, moments, state)


@compiled_sums
def _respond(kind: int, squared: float) -> float:
    return 1.0 / (1.0 + squared) if kind == STUDENT else exp_nonpositive(-squared)


@compiled_sums
def _add_point_plane(kind: int, x: float, y: float, charge: float, state: np.ndarray) -> None:
    for j in range(_LANES):
        u, v = state[_X + j] - x, state[_Y + j] - y
        response = _respond(kind, u * u + v * v)
        strength = charge * response
        slope = -2.0 * strength * (response if kind == STUDENT else 1.0)
        state[_G0 + j] += slope * u
        state[_G1 + j] += slope * v
        state[_S + j] += strength


@compiled_sums
def _add_point_space(kind: int, x: float, y: float, z: float, charge: float, state: np.ndarray) -> None:
    for j in range(_LANES):
        u, v, w = state[_X + j] - x, state[_Y + j] - y, state[_Z + j] - z
        response = _respond(kind, u * u + v * v + w * w)
        strength = charge * response
        slope = -2.0 * strength * (response if kind == STUDENT else 1.0)
        state[_G0 + j] += slope * u
        state[_G1 + j] += slope * v
        state[_G2 + j] += slope * w
        state[_S + j] += strength


@compiled_sums
def _add_gaussian_plane(center: np.ndarray, charge: float, moments: np.ndarray, state: np.ndarray) -> None:
    x, y, m00, m01, m11 = center[0], center[1], moments[0], moments[1], moments[2]
    net = charge - (m00 + m11)
    for j in range(_LANES):
        u, v = state[_X + j] - x, state[_Y + j] - y
        p, q = m00 * u + m01 * v, m01 * u + m11 * v
        stretched = 2.0 * (u * p + v * q)
        response = exp_nonpositive(-(u * u + v * v))
        strength = response * (net + stretched)
        radial, bent = -2.0 * strength, 4.0 * response
        state[_S + j] += strength
        state[_G0 + j] += radial * u + bent * p
        state[_G1 + j] += radial * v + bent * q


@compiled_sums
def _add_gaussian_space(center: np.ndarray, charge: float, moments: np.ndarray, state: np.ndarray) -> None:
    x, y, z = center[0], center[1], center[2]
    m00, m01, m02, m11, m12, m22 = moments[0], moments[1], moments[2], moments[3], moments[4], moments[5]
    net = charge - (m00 + m11 + m22)
    for j in range(_LANES):
        u, v, w = state[_X + j] - x, state[_Y + j] - y, state[_Z + j] - z
        p, q, r = m00 * u + m01 * v + m02 * w, m01 * u + m11 * v + m12 * w, m02 * u + m12 * v + m22 * w
        stretched = 2.0 * (u * p + v * q + w * r)
        response = exp_nonpositive(-(u * u + v * v + w * w))
        strength = response * (net + stretched)
        radial, bent = -2.0 * strength, 4.0 * response
        state[_S + j] += strength
        state[_G0 + j] += radial * u + bent * p
        state[_G1 + j] += radial * v + bent * q
        state[_G2 + j] += radial * w + bent * r


@compiled_sums
def _add_student_plane(center: np.ndarray, charge: float, moments: np.ndarray, state: np.ndarray) -> None:
    x, y, m00, m01, m11 = center[0], center[1], moments[0], moments[1], moments[2]
    trace = m00 + m11
    for j in range(_LANES):
        u, v = state[_X + j] - x, state[_Y + j] - y
        p, q = m00 * u + m01 * v, m01 * u + m11 * v
        stretched = 2.0 * (u * p + v * q)
        response = 1.0 / (1.0 + (u * u + v * v))
        square, bend = response * response, 2.0 * response * stretched
        state[_S + j] += charge * response - square * (trace - bend)
        radial = -2.0 * square * (charge - response * (2.0 * trace - 3.0 * bend))
        bent = 8.0 * square * response
        state[_G0 + j] += radial * u + bent * p
        state[_G1 + j] += radial * v + bent * q


@compiled_sums
def _add_student_space(center: np.ndarray, charge: float, moments: np.ndarray, state: np.ndarray) -> None:
    x, y, z = center[0], center[1], center[2]
    m00, m01, m02, m11, m12, m22 = moments[0], moments[1], moments[2], moments[3], moments[4], moments[5]
    trace = m00 + m11 + m22
    for j in range(_LANES):
        u, v, w = state[_X + j] - x, state[_Y + j] - y, state[_Z + j] - z
        p, q, r = m00 * u + m01 * v + m02 * w, m01 * u + m11 * v + m12 * w, m02 * u + m12 * v + m22 * w
        stretched = 2.0 * (u * p + v * q + w * r)
        response = 1.0 / (1.0 + (u * u + v * v + w * w))
        square, bend = response * response, 2.0 * response * stretched
        state[_S + j] += charge * response - square * (trace - bend)
        radial = -2.0 * square * (charge - response * (2.0 * trace - 3.0 * bend))
        bent = 8.0 * square * response
        state[_G0 + j] += radial * u + bent * p
        state[_G1 + j] += radial * v + bent * q
        state[_G2 + j] += radial * w + bent * r
