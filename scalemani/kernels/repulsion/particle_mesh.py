"""Sums of a kernel over all pairs of points in 2-D or 3-D, by charges on a mesh and Fourier transforms.

S(y) = sum_m q_m K(|y - x_m|^2) with Student's kernel K = (1 + r^2 / dof)^-dof, 1 / (1 + r^2) by default, or the
Gaussian exp(-r^2): charges are spread on a mesh by B-splines, the mesh is convolved with the kernel in free space, and
the spline through the result is read at the targets. Its analytic gradient is read with it, so forces are the exact
gradient of the discrete energy. Source: Hockney and Eastwood, Computer Simulation Using Particles (1988); Essmann et
al., J. Chem. Phys. 103 (1995), 8577.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from scalemani.errors import ConfigError, DataError, NumericalError
from scalemani.kernels.arrays.coordinates import bounding_box
from scalemani.kernels.arrays.tiles import run, slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.repulsion.convolution import MESH_KERNELS, MeshConvolution, kernel_transform, padded_lengths
from scalemani.kernels.repulsion.pair_sums import PairSums, Potential, family_of, kernel_number
from scalemani.kernels.repulsion.splines import gather, gather_points, row_slack, spread, taps_of

LEAST_TOLERANCE, MOST_TOLERANCE = 1e-6, 1e-1

# The largest relative error of the gradient over 200,000 points, uniform or in 60 or 1,000 clusters of deviation 0.3,
# over an extent of 160, in 2-D. Wider clusters err up to twenty times less: errors are relative
# to larger sums. Errors grow as the degree + 1 power of the step, times what is left of the kernel at that wave number.
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

DIMENSIONS = (2, 3)
PIECE = 32768  # targets read at a time; a multiple of the points that share a vector
LEAST_PART = 16384  # points that are worth a separate mesh
MOST_PARTS = 16
MOST_BYTES = 2**31  # of charges, spectrum and transform together
LEAST_EXTENT = 1e-100  # squares of anything smaller are no normal numbers: such points count as coincident
LEAST_CHARGE = 1e-290  # what charges are measured by has an inverse
MOST_CELLS = 2**40  # along an axis; so many never fit, and fewer are counted without overflow
CACHED_CONVOLUTIONS = 2


class MeshRule(NamedTuple):
    """The widest step, the degree of the splines, the dtype of the mesh, and where the kernel counts as ended."""

    step: float
    degree: int
    dtype: np.dtype
    reach: float
    least_cells: int


def mesh_rule(kernel: str | float, tolerance: float, n_points: int, n_dims: int) -> MeshRule:
    """Return the mesh for a relative error of the gradient in 1e-6 .. 1e-1; raise ConfigError for another tolerance."""
    if not LEAST_TOLERANCE <= tolerance <= MOST_TOLERANCE:
        raise ConfigError(
            f"a tolerance of {tolerance:g} for the particle mesh: it reaches {LEAST_TOLERANCE:g} to "
            f"{MOST_TOLERANCE:g}; use exact sums for less"
        )
    cubic_from = CUBIC_TOLERANCE if n_points >= MANY_POINTS else CUBIC_TOLERANCE_OF_FEW
    degree = 3 if tolerance >= cubic_from else 5
    narrowed = min(max((MANY_POINTS / max(n_points, 1)) ** 0.6, 1.0), MOST_NARROWED)
    error = MARGIN * tolerance / narrowed
    step = float(np.exp(np.interp(np.log(error), np.log(ERRORS[family_of(kernel), degree]), np.log(STEPS))))
    # In units of the root of dof, general kernels are powers of 1 / (1 + r^2), whose transforms fall as fast; with more
    # than one degree of freedom they are nearer to the Gaussian, which errs less.
    unit = 1.0 if isinstance(kernel, str) else min(kernel, 1.0) ** 0.5
    step *= unit
    # The Gaussian's gradient beyond its reach is a hundredth of the tolerance, relative to its largest value.
    reach = np.inf if family_of(kernel) == "student" else float(np.sqrt(np.log(100.0 / error)))
    dtype = np.dtype(np.float32 if tolerance * unit >= SINGLE_TOLERANCE else np.float64)
    cells = int((n_points / POINTS_PER_NODE) ** (1.0 / n_dims))
    return MeshRule(step, degree, dtype, reach, max(LEAST_CELLS, cells))


class Mesh(NamedTuple):
    """A mesh of `shape` nodes, `step` apart; its cells, where patches start, are counted from `origin`."""

    origin: tuple[float, ...]
    step: float
    shape: tuple[int, ...]

    def scale(self) -> tuple[float, ...]:
        """Return what `mesh_splines` needs to know: the origin and the inverse of the step."""
        return (*self.origin, 1.0 / self.step)


class Spline(NamedTuple):
    """The potential: coefficients on a mesh, and the factor and constant that its values take."""

    coefficients: np.ndarray
    mesh: Mesh
    rule: MeshRule
    affine: tuple[float, float]


class ParticleMesh(PairSums):
    """Sums of a Student or Gaussian kernel and their gradients to a relative `tolerance` in 1e-6 .. 1e-1.

    The error of the gradient is relative to the gradient, both in the Frobenius norm over the points. The step of the
    mesh follows from kernel, tolerance, and the number of points, and is halved for maps so small that they would cover
    a few cells only; nodes lie at multiples of it. The tolerance was set by maps of clusters, of uniform and of normal
    density; many points in clusters far narrower than the step (deviations below a quarter of it) in a map hundreds of
    steps wide err more.

    The workspace runs pieces of the work side by side and makes the arrays that are returned: results have the same
    bits for any number of threads. Buffers of the size of the mesh stay in the object between calls: use an object from
    one thread at a time. An unknown kernel and a tolerance out of range are a ConfigError.
    """

    def __init__(self, kernel: str | float, tolerance: float, workspace: Workspace = IN_MEMORY):
        kernel_number(kernel, MESH_KERNELS, of_any_dof=True)
        self.kernel, self.tolerance, self.workspace = kernel, tolerance, workspace
        mesh_rule(kernel, tolerance, MOST_PARTS, DIMENSIONS[0])
        self._convolutions: dict[tuple[Any, ...], MeshConvolution] = {}
        self._buffer = np.empty(0)

    def field(
        self, sources: np.ndarray, targets: np.ndarray | None = None, charges: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what `PairSums.field` does, in 2 or 3 dimensions.

        Raises
        ------
        DataError
            For shapes that do not fit and for values that are not finite.
        NumericalError
            Where the points lie so far apart that the mesh would take more than 2 GiB.
        """
        sources = _points(sources, "sources")
        others = sources if targets is None else _points(targets, "targets", sources.shape[1])
        measured = _charges(charges, len(sources))
        if not len(sources) or not len(others) or measured.unit == 0.0:
            return np.zeros(len(others)), np.zeros(others.shape)
        low, high = self._box(sources, others)
        self_term = 1.0 if targets is None and charges is None else 0.0
        if np.max(high - low) < LEAST_EXTENT:
            values, gradients = np.full(len(others), measured.total - self_term), np.zeros(others.shape)
        else:
            values, gradients = self._read(self._spline(sources, measured, (low, high), self_term), others)
        if targets is None and charges is not None:
            values -= measured.amounts
        return values, gradients

    def potential(self, sources: np.ndarray, margin: float, charges: np.ndarray | None = None) -> Potential:
        """Return the field of sources (N, d) and their charges (N,) within `margin` of their bounding box, made once.

        Targets may come in any number and order: the values of a target do not depend on other targets.
        """
        sources = _points(sources, "sources")
        low, high = self._box(sources, sources)
        low, high = low - margin, high + margin
        spline = self._spline(sources, _charges(charges, len(sources)), (low, high), 0.0)
        lasting = spline._replace(coefficients=spline.coefficients.copy())  # the next call would overwrite them
        return Potential(lambda targets: self._read(lasting, np.ascontiguousarray(targets, np.float64)), low, high)

    def _spline(
        self, sources: np.ndarray, charges: "_Charges", box: tuple[np.ndarray, np.ndarray], self_term: float
    ) -> "Spline":
        """Return the spline of the potential on a mesh over a box, less the `self_term` of each point's sum."""
        low, high = box
        rule = mesh_rule(self.kernel, self.tolerance, len(sources), len(low))
        mesh = fitted_mesh(low, high, rule)
        lengths = padded_lengths(mesh.shape, rule.reach / mesh.step)
        _check_memory(mesh, lengths, rule, (self.tolerance, high - low))
        convolution = self._convolution(mesh, lengths, rule)
        parts = self._charged(sources, charges, mesh, rule)
        coefficients = convolution.apply(parts, self.workspace.over)
        affine = charges.unit * convolution.unit, charges.total * convolution.edge - self_term
        return Spline(coefficients, mesh, rule, affine)

    def _box(self, sources: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and greatest coordinates of all points."""
        sets = [sources] if others is sources else [sources, others]
        pieces = [points[piece] for points in sets for piece in slices(len(points), PIECE)]
        low, high = bounding_box(pieces, self.workspace.over)
        if not np.isfinite([low, high]).all():
            raise DataError(
                f"sources and targets reach from {low} to {high}: they must be finite; look where they became NaN or "
                "infinite"
            )
        return low, high

    def _convolution(self, mesh: Mesh, lengths: tuple[int, ...], rule: MeshRule) -> MeshConvolution:
        """Return the convolution for a mesh, cached by an earlier call where the lengths are the same."""
        key = (mesh.step, lengths, rule.degree, rule.dtype)
        convolution = self._convolutions.pop(key, None)
        if convolution is None:
            convolution = MeshConvolution(kernel_transform(self.kernel, lengths, mesh.step, rule.degree), rule.dtype)
        self._convolutions[key] = convolution
        while len(self._convolutions) > CACHED_CONVOLUTIONS:
            del self._convolutions[next(iter(self._convolutions))]
        return convolution

    def _charged(self, sources: np.ndarray, charges: "_Charges", mesh: Mesh, rule: MeshRule) -> np.ndarray:
        """Return charged meshes, in a buffer that the next call overwrites; their sum is that of all charges."""
        parts, amounts = self._parts(len(sources), mesh, rule), charges.amounts
        ends = np.linspace(0, len(sources), len(parts) + 1).astype(np.int64)

        def charge(part: int) -> None:
            rows = slice(ends[part], ends[part + 1])
            part_amounts = amounts[rows] if len(amounts) == len(sources) else amounts
            parts[part] = 0.0
            spread(sources[rows], part_amounts, 1.0 / charges.unit, mesh.scale(), taps_of(rule.degree), parts[part])

        run(self.workspace.over(charge, list(range(len(parts)))))
        return parts

    def _parts(self, n_points: int, mesh: Mesh, rule: MeshRule) -> np.ndarray:
        """Return the buffer for meshes that are charged side by side, (p, n_0, ...): p depends on sizes alone."""
        nodes = int(np.prod(mesh.shape))
        most_parts = min(n_points // LEAST_PART, max(2, n_points // nodes), MOST_PARTS)
        n_parts = max(1, min(most_parts, MOST_BYTES // (4 * nodes * rule.dtype.itemsize)))
        size = n_parts * nodes
        if self._buffer.dtype != rule.dtype or not size <= self._buffer.size <= 4 * size:
            self._buffer = np.empty(size, rule.dtype)
        return self._buffer[:size].reshape(n_parts, *mesh.shape)

    def _read(self, spline: "Spline", others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return unit * spline + constant and unit * its gradient at the targets."""
        coefficients, mesh, rule, affine = spline
        values, gradients = self.workspace.empty((len(others),), float), self.workspace.empty(others.shape, float)
        group = gather_points(rule.degree, rule.dtype)

        def read(piece: slice) -> None:
            out = (values[piece], gradients[piece])
            gather(others[piece], mesh.scale(), affine, taps_of(rule.degree), group, coefficients, out)

        run(self.workspace.over(read, slices(len(others), PIECE)))
        return values, gradients


def _points(points: np.ndarray, name: str, n_dims: int | None = None) -> np.ndarray:
    points = np.ascontiguousarray(points, dtype=np.float64)
    allowed = DIMENSIONS if n_dims is None else (n_dims,)
    if points.ndim != 2 or points.shape[1] not in allowed:
        raise DataError(
            f"{name} have shape {points.shape}: a mesh takes (n, d) with d = {' or '.join(map(str, allowed))}; "
            "use exact sums for other dimensions"
        )
    return points


class _Charges(NamedTuple):
    """Charges (N,), or (1,) where all are one, their largest magnitude and their sum over the sources."""

    amounts: np.ndarray
    unit: float
    total: float


def _charges(charges: np.ndarray | None, n_points: int) -> _Charges:
    if charges is None:
        return _Charges(np.ones(1), 1.0, float(n_points))
    charges = np.ascontiguousarray(charges, dtype=np.float64)
    if charges.shape != (n_points,) or not np.isfinite(charges).all():
        raise DataError(
            f"charges have shape {charges.shape}, for {n_points} sources: pass one finite number a source, or None"
        )
    largest = float(np.abs(charges).max(initial=0.0))
    return _Charges(charges, max(largest, LEAST_CHARGE) if largest > 0.0 else 0.0, float(charges.sum()))


def fitted_mesh(low: np.ndarray, high: np.ndarray, rule: MeshRule) -> Mesh:
    """Return the mesh for points between `low` and `high`: the rule's step, halved until the map has enough cells."""
    extent = float(np.max(high - low))
    halvings = max(0, math.ceil(math.log2(rule.least_cells * rule.step / extent)))
    step = math.ldexp(rule.step, -halvings)
    shift = 0.5 * (rule.degree - 1)  # a patch starts this many steps below the cell that it belongs to
    with np.errstate(over="ignore", invalid="ignore"):
        origin = (np.floor(low / step - shift) + shift) * step
        # Where coordinates dwarf the step, multiples of it are rounded: the least coordinate is as good an origin.
        origin = np.where((origin <= low) & (low - origin < 2.0 * step), origin, low)
        cells = np.ceil((high - origin) / step) + 1.0
    shape = [int(min(count, MOST_CELLS)) + rule.degree + 1 for count in cells]
    shape[-1] += row_slack(rule.degree)
    return Mesh(tuple(origin.tolist()), step, tuple(shape))


def _check_memory(mesh: Mesh, lengths: tuple[int, ...], rule: MeshRule, requested: tuple[float, np.ndarray]) -> None:
    """Raise NumericalError where two meshes of charges, the spectrum and the kernel's transform take too much."""
    nodes = math.prod(float(length) for length in mesh.shape)
    spectrum = lengths[-1] * nodes / mesh.shape[-1]
    transform = 2.0 * math.prod(0.5 * length + 1.0 for length in lengths)
    size = rule.dtype.itemsize * (2.0 * nodes + spectrum + transform)
    if size > MOST_BYTES:
        tolerance, extents = requested
        raise NumericalError(
            f"points that extend over {' x '.join(f'{extent:.4g}' for extent in extents)} take {size / 1e9:.3g} GB "
            f"of mesh in steps of {mesh.step:.3g}, for a tolerance of {tolerance:g}; {MOST_BYTES / 1e9:.3g} GB are "
            "allowed: look for outliers, allow a larger tolerance, or use barnes-hut or exact sums"
        )
