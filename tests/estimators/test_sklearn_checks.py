"""Every check that scikit-learn has for estimators, none of them expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import scalemani as sm


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        sm.LaplacianEigenmaps(),
        sm.SpectralClustering(),
        *(estimator(max_iter=20) for estimator in (sm.ElasticEmbedding, sm.SymmetricSNE, sm.TSNE, sm.SNE)),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)
