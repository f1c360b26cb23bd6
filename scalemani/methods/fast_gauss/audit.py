"""What an audit computes anew of the bounds of a fast Gauss transform: (5.5) to (5.7), and that of its forces.

Boxes have the side sqrt(2) r, r = 1/2, in units in which the kernel is exp(-x^2). With Q points, weights counted, p
terms and d dimensions, (5.5) and (5.6) are Q (1 - r)^-d sum_{k < d} C(d, k) (1 - r^p)^k (r^p / sqrt(p!))^(d - k), and
(5.7) adds Q times the square of the same sum with r sqrt(2) in the place of r. The run says no p: it is the one whose
(5.5) is stated.
"""

import math
from collections.abc import Iterator

import numpy as np

from scalemani.audit.findings import Finding, equal, is_number, unchecked, verdict_of
from scalemani.audit.kernel_sums import kernel_field
from scalemani.audit.layout import STAGE, drawn
from scalemani.audit.rows import Audit
from scalemani.config.objectives import objective_of

RATIO = 0.5
MOST_TERMS = 30
ROUNDING = 1e-9  # relative


def check_bounds(audit: Audit) -> Iterator[Finding]:
    """Check bounds of the last sums, where the run states them."""
    group = audit.run.groups[STAGE]
    said = group.certificates
    if "hermite_bound" not in said:
        return
    positions = group.read("embedding").astype(np.float64)[audit.order]
    masses = np.ones(len(positions)) if audit.weights is None else audit.weights
    total, n_dims = math.ceil(masses.sum()), positions.shape[1]
    stated = said["hermite_bound"]
    orders = range(1, MOST_TERMS + 1)
    near = [abs(total * tail(RATIO, p, n_dims) - stated) if is_number(stated) else math.inf for p in orders]
    order = orders[int(np.argmin(near))]
    expansion = total * tail(RATIO, order, n_dims)
    translated = expansion + total * tail(math.sqrt(2.0) * RATIO, order, n_dims) ** 2
    for name, value in (("hermite_bound", expansion), ("taylor_bound", expansion), ("translated_bound", translated)):
        yield equal(STAGE, name, said.get(name), value, ROUNDING * value, f"of {order} terms and {total} points")
    yield within(audit, said, positions, masses)


def tail(ratio: float, order: int, n_dims: int) -> float:
    """Return (1 - r)^-d sum_{k < d} C(d, k) (1 - r^p)^k (r^p / sqrt(p!))^(d - k)."""
    lost, kept = ratio**order / math.sqrt(math.factorial(order)), 1.0 - ratio**order
    terms = [math.comb(n_dims, k) * kept**k * lost ** (n_dims - k) for k in range(n_dims)]
    return math.fsum(terms) / (1.0 - ratio) ** n_dims


def within(audit: Audit, said: dict, positions: np.ndarray, masses: np.ndarray) -> Finding:
    """Compare the bound of all forces with exact ones at drawn rows, none of which may be further off than it allows.

    Of a bound B on the relative error of all forces, and forces of length F, no single one errs by more than
    B F / ((1 + B) sqrt(N)): that is what B is made of.
    """
    name, claimed, group = "force_error_bound", said.get("force_error_bound"), audit.run.groups[STAGE]
    if not is_number(claimed):
        return unchecked(STAGE, name, "nothing follows from the bound, as the record says", claimed)
    kernel = objective_of(audit.run.method, float(audit.run.param(STAGE, "dof", 1.0)))
    if kernel.combine == "sum-log" or not group.holds("forces"):
        return unchecked(STAGE, name, "the run does not hold the gradients of its sums", claimed)
    rows, forces = drawn(audit, masses), group.read("forces")
    exact = kernel_field(kernel.kernel, positions, positions[rows], masses).gradients
    furthest = float(np.linalg.norm(forces[rows] - exact, axis=1).max())
    allowed = claimed / (1.0 + claimed) * float(np.linalg.norm(forces)) / math.sqrt(len(forces))
    reached = furthest / allowed * claimed if allowed > 0 else math.inf
    note = f"at most, by the force that is furthest off of {len(rows)}"
    return Finding(STAGE, name, claimed, reached, None, verdict_of(furthest <= allowed * (1 + ROUNDING)), note)
