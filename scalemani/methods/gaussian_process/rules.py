"""The rules of landmarks: what a choice finds of N points."""

from scalemani.config.params import Resolved
from scalemani.engine.needs import Terms, array
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.selection import Choice, Selected, at_rows, sample_of
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.methods.gaussian_process.kernels import active_landmarks, batch_size, drawn_batches, learned_landmarks


def active(points: PointsByRow, choice: Choice) -> Selected:
    """Return the points of a sample of which the process knows least, one after the other."""
    rows = sample_of(points, choice)
    first = int(generator(choice.seed, "landmarks/active").integers(len(rows)))
    return at_rows(points, rows[active_landmarks(points[rows], choice.n_landmarks, choice.eta, first)])


def ascended(points: PointsByRow, choice: Choice) -> Selected:
    """Return places off the data, learned from batches."""
    found = learned_landmarks(drawn_batches(points, choice), choice)
    objectives = {"first_objective": float(found.objectives[0]), "last_objective": float(found.objectives[-1])}
    return Selected(found.landmarks, None, objectives)


def check_landmarks(params: Resolved, n_points: int) -> None:
    """Refuse batches of no more points than landmarks."""
    if params.landmarks.method == "gp":
        batch_size(n_points, params.n_landmarks, params.landmarks.batch_points)


def landmarks_memory(sizes: Sizes) -> Terms:
    """Return what the sample takes, and what of it the landmarks explain: the factor, or the bases of all batches."""
    dimensions, asked, n_landmarks = sizes.dimensions, sizes.params.landmarks, sizes.params.n_landmarks
    in_batches, least = asked.method == "gp", n_landmarks
    if in_batches:
        least = batch_size(dimensions.n_points, n_landmarks, asked.batch_points)
    n_sampled = min(dimensions.n_points, max(asked.sample_points, least))
    return {
        "sample, as read and in batches": 2 * array(dimensions.dtype, n_sampled, dimensions.n_features),
        "bases of all batches" if in_batches else "factor": array("float64", n_sampled, n_landmarks),
        "a tile of points, centred": 2 * array("float64", TILE_ROWS, dimensions.n_features),
    }
