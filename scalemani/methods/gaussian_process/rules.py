"""The rules of landmarks: what a choice finds of N points."""

from scalemani.config.params import Resolved
from scalemani.engine.memory_model import Terms, array
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.selection import Selected, at_rows, sample_of
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.methods.gaussian_process.joint import exchanged_landmarks, swept_landmarks
from scalemani.methods.gaussian_process.kernels import (
    GaussianProcessChoice,
    active_landmarks,
    batch_size,
    drawn_batches,
    learned_landmarks,
)
from scalemani.methods.gaussian_process.parameters import GaussianProcessParams
from scalemani.stages.landmarks import PlannedRule


def explained_memory(sizes: Sizes, least: int, explained: str) -> Terms:
    """Return what a sample of at least so many points takes, and what of it the landmarks explain."""
    dimensions, features = sizes.dimensions, sizes.dimensions.n_features
    n_sampled = min(dimensions.n_points, max(sizes.params.landmarks.sample_points, least))
    return {
        "sample, as read and in batches": 2 * array(dimensions.dtype, n_sampled, features),
        explained: array("float64", n_sampled, sizes.params.n_landmarks),
        "a tile of points, centred": 2 * array("float64", TILE_ROWS, features),
    }


class Active(PlannedRule[GaussianProcessChoice]):
    """Points of a sample, each the one of which the process knows least."""

    choice = GaussianProcessChoice

    def select(self, points: PointsByRow, choice: GaussianProcessChoice) -> Selected:
        """Return the points of a sample of which the process knows least, one after the other, or jointly."""
        rows = sample_of(points, choice)
        first, sample = int(generator(choice.seed, "landmarks/active").integers(len(rows))), points[rows]
        chosen = active_landmarks(sample, choice.n_landmarks, choice.eta, first)
        if not choice.sweeps:
            return at_rows(points, rows[chosen])
        chosen, gain = exchanged_landmarks(sample, chosen, choice.sweeps, choice.eta)
        return at_rows(points, rows[chosen])._replace(certificates={"joint_gain": gain})

    def memory(self, sizes: Sizes) -> Terms:
        """Return what the sample takes, and the factor of its kernel, or the kernel and the shares in it."""
        n_landmarks = sizes.params.n_landmarks
        terms = explained_memory(sizes, n_landmarks, "factor")
        if not sizes.params.part(GaussianProcessParams).sweeps:
            return terms
        inverse = 3 * array("float64", n_landmarks, n_landmarks)
        return {**terms, "shares of landmarks": terms["factor"], "kernel of landmarks, and its inverse": inverse}


class Ascended(PlannedRule[GaussianProcessChoice]):
    """Places off the data, learned from batches."""

    choice = GaussianProcessChoice

    def select(self, points: PointsByRow, choice: GaussianProcessChoice) -> Selected:
        """Return places off the data, with the first and the last value of their objective."""
        batches = drawn_batches(points, choice)
        learned = learned_landmarks(batches, choice)
        objectives = {"first_objective": float(learned.objectives[0]), "last_objective": float(learned.objectives[-1])}
        if not choice.sweeps:
            return Selected(learned.landmarks, None, objectives)
        landmarks, gain = swept_landmarks(batches, learned.landmarks, choice)
        return Selected(landmarks, None, {**objectives, "joint_gain": gain})

    def memory(self, sizes: Sizes) -> Terms:
        """Return what the sample takes, and the bases of all batches; with sweeps, their triangles too."""
        process = sizes.params.part(GaussianProcessParams)
        least = batch_size(sizes.dimensions.n_points, sizes.params.n_landmarks, process.batch_points)
        terms = explained_memory(sizes, least, "bases of all batches")
        if not process.sweeps:
            return terms
        return {**terms, "triangles of these bases": terms["bases of all batches"]}

    def check(self, params: Resolved, n_points: int) -> None:
        """Refuse batches of no more points than landmarks."""
        batch_size(n_points, params.n_landmarks, params.part(GaussianProcessParams).batch_points)
