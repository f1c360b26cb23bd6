"""The meanings of certificates of landmark graphs."""

from scalemani.interfaces.report.certificates import NEAR_ZERO, Meaning, good_if, none_of
from scalemani.methods.landmark_graph.parameters import LandmarkGraphParams

LEAST_POINTS = good_if(
    lambda value, run: value >= run.params.part(LandmarkGraphParams).neighborhood,
    "at least what landmark_graph.neighborhood asks for",
    "short",
)
MEANINGS = {
    "landmark_covariances": {
        "least_points": Meaning("points that the covariance of any landmark is of, at least", LEAST_POINTS),
        "singular_covariances": Meaning(
            "landmarks around which points span less than all features",
            none_of("their neighbours are rough: raise landmark_graph.neighborhood or take diagonal covariances"),
        ),
    },
    "landmark_graph": {
        "sigma": Meaning("the bandwidth of the kernel that weighs edges between landmarks"),
        "near_zero_eigenvalues": Meaning("eigenvalues that are zero to rounding", NEAR_ZERO),
    },
}
