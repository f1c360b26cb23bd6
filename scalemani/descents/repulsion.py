"""Sums of a kernel over all points of an embedding: exact, on a mesh, or by a method that declares some.

S(y) = sum_m q_m K(|y - x_m|^2) and its gradient serve every objective: the repulsive force needs no more than these.
Each method has one parameter, the largest error.
"""

from scalemani.config.methods import RepulsionExtension, extensions
from scalemani.config.params.layout import LayoutParams
from scalemani.errors import ConfigError, nearest_name
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.repulsion.convolution import MESH_KERNELS
from scalemani.kernels.repulsion.pair_sums import KERNELS, ApproximateSums, ExactSums, PairSums, family_of
from scalemani.kernels.repulsion.particle_mesh import ParticleMesh

# Of 8 bytes, for a mesh with its transforms and the fields of all threads: over maps as wide as those of few points
# get, and over the widest ones that are doubled, which have so many nodes at the finest usual step.
MESH_VALUES, WIDE_MESH_VALUES, FEW_POINTS = 37_500_000, 60_000_000, 150_000
WIDE_MESH_NODES, FINE_STEP = 2**24, 0.25

APPROXIMATE = extensions(RepulsionExtension)
METHODS = ("auto", "exact", *APPROXIMATE, "grid")


def mesh_values(n_points: int, dof: float = 1.0, n_dims: int = 2) -> int:
    """Return how many numbers of 8 bytes a mesh over a map of so many points takes, as far as maps are planned for.

    The step of a mesh is that for one degree of freedom times the root of fewer.
    """
    values = MESH_VALUES if n_points <= FEW_POINTS else WIDE_MESH_VALUES
    return int(values * max(1.0, dof ** (-n_dims / 2)))


def largest_radius(n_points: float, n_dims: int) -> float:
    """Return how far a point of a map that was doubled is from its middle at most.

    Spread evenly there is a point for every 2^d cubes as wide as the kernel; and a mesh is one that is planned for.
    """
    return min(n_points, WIDE_MESH_NODES * (FINE_STEP / 2) ** n_dims) ** (1 / n_dims)


def chosen_method(
    method: str, kernel: str | float, n_points: int, n_dims: int, exact_up_to: int = LayoutParams().exact_up_to
) -> str:
    """Return a method of `METHODS` for a kernel of `KERNELS`, or raise ConfigError where it does not serve.

    A number as the kernel is Student's with so many degrees of freedom. "auto" is exact sums for up to `exact_up_to`
    points and where nothing else serves, then the mesh.
    """
    if isinstance(kernel, str) and kernel not in KERNELS:
        raise ConfigError(f"unknown kernel {kernel!r}: {nearest_name(kernel, KERNELS)}")
    words = kernel if isinstance(kernel, str) else f"student with {kernel:g} degrees of freedom"
    if method not in METHODS:
        raise ConfigError(f"unknown repulsion {method!r}: {nearest_name(method, METHODS)}")
    served = family_of(kernel) in MESH_KERNELS and n_dims in (2, 3)
    if method == "auto":
        return "grid" if served and n_points > exact_up_to else "exact"
    if method != "exact" and not served:
        raise ConfigError(
            f"repulsion {method!r} sums Gaussian and Student kernels in 2 or 3 dimensions, "
            f"got {words} in {n_dims}: use 'exact'"
        )
    if method in APPROXIMATE and kernel not in APPROXIMATE[method].kernels:
        others = " or ".join(repr(name) for name, one in APPROXIMATE.items() if kernel in one.kernels)
        summed = " and ".join(APPROXIMATE[method].kernels)
        raise ConfigError(
            f"repulsion {method!r} sums the kernel {summed}, got {words}: use 'grid' or {others or repr('exact')}"
        )
    return method


def make_repulsion(method: str, kernel: str | float, tolerance: float, workspace: Workspace = IN_MEMORY) -> PairSums:
    """Return the sums of a kernel by a method that `chosen_method` returns.

    `tolerance` is the largest relative error of the gradient; exact sums have none.
    """
    if method == "exact":
        return ExactSums(kernel, workspace.over)
    if method in APPROXIMATE:
        sums: type[ApproximateSums] = APPROXIMATE[method].load()
        return sums.for_tolerance(kernel, tolerance, workspace.over)
    return ParticleMesh(kernel, tolerance, workspace)
