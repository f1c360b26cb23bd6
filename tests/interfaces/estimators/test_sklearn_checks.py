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
# They have no code that another does not have: how they take inputs and parameters is what is checked of that one.
LIKE = {
    sm.DiffusionMaps: sm.LaplacianEigenmaps,
    sm.LandmarkIsomap: sm.LandmarkPCA,
    sm.LandmarkKernelPCA: sm.LandmarkPCA,
    sm.LandmarkLLE: sm.LandmarkPCA,
    sm.LandmarkKernelLDA: sm.LandmarkLDA,
    **{getattr(sm, objective.estimator): sm.TSNE for objective in OBJECTIVES.values() if objective.estimator != "TSNE"},
}
OF_RESULTS = {
    "check_estimators_dtypes",
    "check_estimator_sparse_tag",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
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
    """Yield every check of the estimators, and those of results of those that are like another."""
    others = [made(max_iter=20) for made, like in LIKE.items() if like is sm.TSNE]
    for estimator in (*ESTIMATORS, *others):
        name = type(estimator).__name__
        for same, check in estimator_checks_generator(estimator):
            if check.func.__name__ == OF_MATRICES and name not in OPEN_POINTS:
                continue
            said = ", ".join(f"{key}={value}" for key, value in check.keywords.items())
            if type(estimator) not in LIKE or (check.func.__name__ in OF_RESULTS and not said):
                yield pytest.param(same, check, id=f"{name}-{check.func.__name__}{said and f'({said})'}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


@pytest.mark.parametrize("made", LIKE)
def test_estimators_that_are_like_another_have_no_code_of_their_own(made):
    like = LIKE[made]
    shared = [one for one in made.__mro__ if one in like.__mro__]
    assert shared == list(like.__mro__ if like in made.__mro__ else like.__mro__[1:])
    for estimator in {made, like} - set(shared):
        code = [key for key, value in vars(estimator).items() if callable(value) or hasattr(value, "__get__")]
        assert set(code) <= {"__init__"}  # made of what is annotated
