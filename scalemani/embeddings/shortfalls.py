"""What is said of a descent that fell short of what was asked."""


def too_few_iterations(iterations: int) -> str:
    """Return what is said of a descent that ran out of iterations."""
    return (
        f"not converged after {iterations} iterations: raise layout.max_iterations, or accept a larger layout.converged"
    )


def coarse_forces(error: float, tolerance: float) -> str:
    """Return what is said of forces that err by more than was asked."""
    return (
        f"forces err by {error:.1e} at the end, {tolerance:.1e} was asked for: clusters are narrower than the mesh's "
        "steps; a smaller layout.tolerance makes these finer"
    )
