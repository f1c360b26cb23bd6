"""The meanings of certificates of the variational Nystrom method."""

from scalemani.interfaces.report.certificates import Meaning

MEANINGS = {
    "affinity_weights": {
        "landmarks_a_point": Meaning("landmarks that a point is a mean of, on average"),
        "points_without_landmark": Meaning("points with no landmark among their neighbours, which take these for it"),
        "further_steps": Meaning("steps from neighbour to neighbour until every point had landmarks"),
    },
}
