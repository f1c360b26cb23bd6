"""What the certificates of Isomap mean."""

from scalemani.interfaces.report.certificates import Meaning

MEANINGS = {
    "geodesics": {"longest_path": Meaning("the longest of the shortest paths between two landmarks")},
    "isomap": {
        "residual_variance": Meaning("1 - r^2 of distances along the graph and in the embedding, between landmarks"),
        "least_eigenvalue": Meaning("below zero, by as much as no coordinates at all have these distances"),
    },
}
