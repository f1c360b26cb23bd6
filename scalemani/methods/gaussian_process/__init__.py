"""Landmarks by which a Gaussian process knows most of the points: chosen among these, or learned off the data."""

LANDMARK_RULES = {"gp-active": "rules.active", "gp": "rules.ascended"}
SAMPLED = ("gp-active", "gp")  # read landmarks.sample_points
OFF_DATA = ONE_BY_ONE = ("gp",)  # whose landmarks are no points, and take so long that each is told of
