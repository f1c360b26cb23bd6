"""W of images and videos: of the pixels in a window around each, by Gaussian weights or by an ensemble of trees."""

# Kinds of affinities by windows of pixels, each with the function that writes W.
AFFINITY_KINDS = {"window": "window.write_window", "ensemble": "ensemble.write_ensemble"}
