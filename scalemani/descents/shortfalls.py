"""What is said of a descent, or of sums, that fell short of what was asked."""

from scalemani.descents.force_errors import SINGLE_POINTS, ForceErrors

FINER = "set a smaller layout.tolerance, or layout.repulsion to exact"


def too_few_iterations(iterations: int) -> str:
    """Return what is said of a descent that ran out of iterations."""
    return (
        f"not converged after {iterations} iterations: raise layout.max_iterations, or accept a larger layout.converged"
    )


def coarse_forces(errors: ForceErrors, tolerance: float, remedy: str) -> str:
    """Return what is said of forces that err by more than was requested."""
    return (
        f"forces err by {errors.whole:.1e} of all and those of one point in ten by {errors.worst_decile:.1e} or more "
        f"of its own; requested were {tolerance:.1e} and {SINGLE_POINTS * tolerance:.1e}: {remedy}"
    )
