"""
In a pipeline of scikit-learn
=============================

Estimators keep scikit-learn's contract: they can be cloned, searched over and put into a pipeline. Spectral columns as
features, a logistic regression on them, and a search over both.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scalemani as sm

warnings.filterwarnings("ignore", "embedding: eigenvalues")  # accuracy is the judge here

points, labels = load_digits(n_class=6, return_X_y=True)
pipeline = make_pipeline(
    sm.LaplacianEigenmaps(n_components=10, n_landmarks=200, solver="lll"),
    StandardScaler(),
    LogisticRegression(max_iter=500),
)
search = GridSearchCV(pipeline, {"laplacianeigenmaps__perplexity": [5, 15]}, cv=2)
search.fit(points, labels)
print(f"best perplexity {search.best_params_['laplacianeigenmaps__perplexity']}, accuracy {search.best_score_:.3f}")

# %%
# The first columns that the classifier sees.

columns = search.best_estimator_[:-1].transform(points)
figure, axes = plt.subplots(figsize=(5, 4))
axes.scatter(*columns[:, :2].T, c=labels, cmap="tab10", s=6)
axes.set(xticks=[], yticks=[])
figure.tight_layout()
