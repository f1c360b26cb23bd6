"""The rules of landmarks: what a choice finds of N points."""

from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.selection import Choice, Selected, at_rows, sample_of
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.methods.gaussian_process.kernels.active import active_landmarks
from scalemani.methods.gaussian_process.kernels.ascent import learned_landmarks
from scalemani.methods.gaussian_process.kernels.batches import drawn_batches


def active(points: PointsByRow, choice: Choice) -> Selected:
    """Return the points of a sample of which the process knows least, one after the other."""
    rows = sample_of(points, choice)
    first = int(generator(choice.seed, "landmarks/active").integers(len(rows)))
    return at_rows(points, rows[active_landmarks(points[rows], choice.n_landmarks, choice.process.eta, first)])


def ascended(points: PointsByRow, choice: Choice) -> Selected:
    """Return places off the data, learned from batches."""
    n_landmarks, seed, process = choice.n_landmarks, choice.seed, choice.process
    batches = drawn_batches(points, n_landmarks, seed, choice.sample_points, process.batch_points)
    found = learned_landmarks(batches, n_landmarks, process, seed, choice.advance)
    objectives = {"first_objective": float(found.objectives[0]), "last_objective": float(found.objectives[-1])}
    return Selected(found.landmarks, None, objectives)
