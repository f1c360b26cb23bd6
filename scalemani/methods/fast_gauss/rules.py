"""What the forces of a descent by the fast Gauss transform can err by, beside what they were measured to err by."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from scalemani.descents.parts import DescentPart, Ended
from scalemani.kernels.arrays.coordinates import norm
from scalemani.methods.fast_gauss.kernels.expansions import hermite_bound, taylor_bound, translated_bound
from scalemani.methods.fast_gauss.kernels.fast_gauss import BOX_RATIO, FastGauss


class BoundedForces(DescentPart):
    """Bounds of the last sums."""

    def certificates(self, ended: Ended) -> Mapping[str, Any]:
        """Return bounds at the last positions: of the relative error of all gradients of sums, and (5.5) to (5.7).

        Where no gradient errs by more than b, N of them err by b sqrt(N) at most in all, and the exact ones are as long
        as those that were summed, less that; nothing follows where that is less than nothing.
        """
        transform, positions = ended.sums, ended.state.positions
        if not isinstance(transform, FastGauss):
            return {}
        masses = ended.problem.masses
        sums, gradient = transform.bounds(positions, charges=masses)
        error = gradient * float(np.sqrt(len(positions)))
        left = norm(transform.field(positions, charges=masses)[1]) - error
        n_charges = len(positions) if masses is None else int(np.ceil(masses.sum()))
        about = (n_charges, transform.order, positions.shape[1], BOX_RATIO)
        return {
            "force_error_bound": error / left if left > 0 else None,
            "sum_error_bound": sums,
            "hermite_bound": hermite_bound(*about),
            "taylor_bound": taylor_bound(*about),
            "translated_bound": translated_bound(*about),
        }
