"""Maps of points times a power of two: those of the points themselves, from one end of float64 to the other."""

import numpy as np
import pytest

import scalemani as sm

POINTS = np.random.default_rng(0).normal(size=(200, 4))
POINTS[:60] += 30.0
FAR = 465  # 2^465 is 1e140
METHODS = {
    "refine": (lambda: sm.LaplacianEigenmaps(2, n_neighbors=10), FAR),
    "lll": (lambda: sm.LaplacianEigenmaps(2, solver="lll", n_landmarks=60), FAR),
    "clusters": (lambda: sm.SpectralClustering(3), FAR),
    "diffusion maps": (lambda: sm.DiffusionMaps(2), FAR),
    "lle": (lambda: sm.LandmarkLLE(2), FAR),
    "isomap": (lambda: sm.LandmarkIsomap(2, n_landmarks=60), 332),  # squares of distances are its eigenvalues
    "pca": (lambda: sm.LandmarkPCA(2), FAR),
    "kernel pca": (lambda: sm.LandmarkKernelPCA(2), FAR),
    "t-sne": (lambda: sm.TSNE(max_iter=15), FAR),
}


@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
@pytest.mark.parametrize("method", METHODS)
def test_the_scale_of_the_points_leaves_no_trace_in_the_map(method):
    make, power = METHODS[method]
    expected = make().fit(POINTS).embedding_
    for exponent in (power, -power):
        found = make().fit(np.ldexp(POINTS, exponent)).embedding_
        assert np.isfinite(found).all()
        assert sm.measures.procrustes_error(found, expected) < 1e-6
