"""What finding landmarks of a Gaussian process holds in memory."""

from scalemani.engine.needs import EACH_PROCESS, Held
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.methods.gaussian_process.kernels.batches import batch_size


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
