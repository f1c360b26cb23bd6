"""Landmarks that repel each other: a determinantal point process, and its approximation for any number of points."""

LANDMARK_RULES = {"dpp": "rules.repulsive", "dpp-exact": "rules.determinantal"}
SAMPLED = ("dpp",)  # gives up where more than landmarks.sample_points points have to be read
