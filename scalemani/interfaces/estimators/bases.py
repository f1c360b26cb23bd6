"""The base classes of scikit-learn, and what mypy has in their place.

scikit-learn has no type hints. A class with a base that mypy does not know takes any argument and has any attribute;
these say what estimators here inherit. Pyright reads the code of scikit-learn, as does the interpreter.
"""

from typing import Any, Literal, Self

import numpy as np

MYPY = False  # which mypy takes for true by its name

if MYPY:

    class BaseEstimator:
        """Parameters by name, as scikit-learn reads and sets them."""

        n_features_in_: int
        feature_names_in_: np.ndarray

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the arguments of the constructor, by name."""

        def set_params(self, **params: Any) -> Self:
            """Set arguments of the constructor, and return the estimator."""

        def get_metadata_routing(self) -> Any:
            """Return a `MetadataRequest` of scikit-learn."""

        def __sklearn_clone__(self) -> Self:
            """Return an unfitted estimator of the same parameters."""

        def __sklearn_tags__(self) -> Any:
            """Return the `Tags` of scikit-learn."""

    class TransformerMixin:
        """Fit and transform in one call, and the kind of table that results are."""

        def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
            """Fit to X and return what X is transformed to."""

        def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self:
            """Have `transform` and `fit_transform` return arrays or frames."""

    class ClassNamePrefixFeaturesOutMixin:
        """Names of columns that a transformer makes."""

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
            """Return the names, the class and a number each."""

    class ClusterMixin:
        """Fit and cluster in one call."""

        def fit_predict(self, X: Any, y: Any = None, **side_data: Any) -> np.ndarray:
            """Fit to X and return the cluster of each point."""

else:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "ClusterMixin", "TransformerMixin"]
