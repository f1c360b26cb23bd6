"""The checks that scikit-learn has for estimators, none of them expected to fail."""

from collections.abc import Iterator
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES

ESTIMATORS = [
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
    sm.TSNE(max_iter=20),
]
# They are t-SNE with another objective: how they take inputs and parameters is what is checked of it.
NAMES = sorted({objective.estimator for objective in OBJECTIVES.values()} - {"TSNE"})
OF_RESULTS = {
    "check_estimator_sparse_tag",
    "check_estimators_pickle",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_transformer_general",
}
# Sparse matrices are opened as sparse arrays are, and all that follows reads rows of one type: one estimator of each
# class that opens points takes them.
OF_MATRICES = "check_estimator_sparse_matrix"
OPEN_POINTS = ("KNeighborsTransformer", "LandmarkFeatures", "LandmarkPCA", "LaplacianEigenmaps")


def checks() -> Iterator[Any]:
    """Yield every check of the estimators, and those of results of the others."""
    for estimator in (*ESTIMATORS, *(getattr(sm, name)(max_iter=20) for name in NAMES)):
        name = type(estimator).__name__
        for same, check in estimator_checks_generator(estimator):
            if check.func.__name__ == OF_MATRICES and name not in OPEN_POINTS:
                continue
            said = ", ".join(f"{key}={value}" for key, value in check.keywords.items())
            if name not in NAMES or (check.func.__name__ in OF_RESULTS and not said):
                yield pytest.param(same, check, id=f"{name}-{check.func.__name__}{said and f'({said})'}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", NAMES)
def test_other_objectives_have_no_code_that_t_sne_has_not(name):
    made = getattr(sm, name)
    assert made.__mro__[1:] == sm.TSNE.__mro__[1:]
    for estimator in (made, sm.TSNE):
        code = [key for key, value in vars(estimator).items() if callable(value) or hasattr(value, "__get__")]
        assert not code
