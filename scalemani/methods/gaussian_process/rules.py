"""The rules of landmarks: what a choice finds of N points."""

from scalemani.config.params import Resolved
from scalemani.engine.needs import EACH_PROCESS, Held
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


def landmarks_held(sizes: Sizes) -> list[Held]:
    """List the sample, and what of it the landmarks explain: the factor, or the bases of all batches."""
    dimensions, asked, n_landmarks = sizes.dimensions, sizes.params.landmarks, sizes.params.n_landmarks
    least = n_landmarks
    if asked.method == "gp":
        least = batch_size(dimensions.n_points, n_landmarks, asked.batch_points)
    n_sampled = min(dimensions.n_points, max(asked.sample_points, least))
    features, explained = dimensions.n_features, "bases of all batches" if asked.method == "gp" else "factor"
    return [
        Held("sample, as read and in batches", EACH_PROCESS, n_sampled, features, dimensions.dtype, 2),
        Held(explained, EACH_PROCESS, n_sampled, n_landmarks),
        Held("a tile of points, centred", EACH_PROCESS, TILE_ROWS, features, "float64", 2),
    ]
