"""Every check that scikit-learn has for estimators, none of them expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        sm.LaplacianEigenmaps(),
        sm.SpectralClustering(),
        sm.KNeighborsTransformer(),
        sm.DiffusionMaps(),
        sm.LandmarkFeatures(settings={"landmarks.steps": 20}),
        sm.LandmarkPCA(),
        sm.LandmarkKernelPCA(),
        sm.LandmarkKernelLDA(),
        sm.LandmarkLDA(),
        sm.LandmarkLLE(),
        sm.LandmarkIsomap(),
        *(getattr(sm, objective.estimator)(max_iter=20) for objective in OBJECTIVES.values()),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)
