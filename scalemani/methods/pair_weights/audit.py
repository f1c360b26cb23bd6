"""What an audit computes anew of a map whose repulsion has weights of pairs: objective, gradient and forces."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from scalemani.audit.findings import Finding, equal, none_wrong, unchecked, verdict_of
from scalemani.audit.kernel_sums import of_kernel
from scalemani.audit.layout import STAGE, STEP, attraction
from scalemani.audit.rows import Audit
from scalemani.config.objectives import GIVEN_PAIRS, objective_of

NAME = "pair_weights"
ROUNDING = 1e-9


def check_pairs(audit: Audit) -> Iterator[Finding]:
    """Check what the run claims of its end, from the matrix of pairs; without one a claim of pairs is wrong."""
    said, named = audit.run.groups[STAGE].certificates, audit.run.param(STAGE, NAME, None)
    claims = said.get("repulsion") == GIVEN_PAIRS
    if named is None and not claims:
        return
    if named is None or not claims:
        yield none_wrong(STAGE, "repulsion is over the pairs of the parameters", 1)
        return
    path, _, digest = named.rpartition("@")
    if not Path(path).is_file() or hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] != digest:
        yield unchecked(STAGE, "objective", f"{path} is gone or has other content than the run read")
        return
    matrix = np.load(path, allow_pickle=False) if path.endswith(".npy") else sp.load_npz(path)
    pairs = sp.coo_matrix(sp.csr_matrix(matrix)[audit.order][:, audit.order].astype(np.float64))
    apart = (pairs.row != pairs.col) & (pairs.data != 0)
    rows, columns, weights = pairs.row[apart], pairs.col[apart], pairs.data[apart]
    yield equal(STAGE, "pairs", said.get("pairs"), len(weights) // 2, 0, "with a weight")
    group, dof = audit.run.groups[STAGE], float(audit.run.param(STAGE, "dof", 1.0))
    objective, positions = objective_of(audit.run.method, dof), group.read("embedding").astype(np.float64)[audit.order]
    differences = positions[rows] - positions[columns]
    values, slopes = of_kernel(objective.kernel, np.square(differences).sum(axis=1))
    forces = np.stack(
        [
            np.bincount(rows, 2.0 * weights * slopes * difference, minlength=len(positions))
            for difference in differences.T
        ],
        axis=1,
    )
    wrong = np.abs(group.read("forces") - forces).max(axis=1) > ROUNDING * np.abs(forces).max()
    yield none_wrong(STAGE, "force_error, forces are those of the pairs", int(wrong.sum()))
    if float(audit.run.param(STAGE, "global_weight", 0.0)) > 0:
        yield unchecked(STAGE, "objective", "pairs and the pull to a reference together are not computed anew")
        return
    pull = attraction(audit, objective, positions, np.ones(len(positions)))
    strength = float(audit.run.param(STAGE, "strength", objective.strength))
    value = pull.energy + strength * float(weights @ values)
    yield equal(STAGE, "objective", said.get("objective"), value, 1e-9 * abs(value), "over all of W and all pairs")
    exaggeration = float(audit.run.param(STAGE, "late_exaggeration", 1.0))
    norm = float(np.linalg.norm(exaggeration * pull.gradients + 2.0 * strength * forces))
    claimed = said.get("gradient_norm")
    note = f"over all of W and all pairs; at most {STEP:g} times that before the last step"
    holds = isinstance(claimed, float) and norm <= STEP * claimed + ROUNDING
    yield Finding(STAGE, "gradient_norm", claimed, norm, None, verdict_of(holds), note)
