"""
From a residual to an angle
===========================

The residual of an eigenvector is computed over all points. Over the eigengap it bounds how far the embedding may be
turned from the exact one. The bound holds; the true angle, by a dense eigensolver, lies below it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll

import scalemani as sm

points, _ = make_swiss_roll(1500, random_state=0)
exact = sm.LaplacianEigenmaps(perplexity=8, solver="exact").fit(points).embedding_

residuals, bounds, angles = [], [], []
for residual in (1e-2, 1e-3, 1e-4, 1e-5):
    model = sm.LaplacianEigenmaps(perplexity=8, residual=residual).fit(points)
    certificates = model.certificates_["embedding"]
    residuals.append(certificates["residual"])
    bounds.append(certificates["angle_bound"])
    angles.append(sm.measures.subspace_angle(model.embedding_, exact))

figure, axes = plt.subplots(figsize=(5.5, 3.6))
axes.loglog(residuals, np.array(bounds, float), marker="o", label="certified bound")
axes.loglog(residuals, angles, marker="s", label="true angle")
axes.set(xlabel="residual", ylabel="radians")
axes.legend()
figure.tight_layout()
