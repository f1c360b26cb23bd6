"""
Diffusion maps and uneven density
=================================

Points on a circle, ten times denser on one side. Laplacian eigenmaps (`alpha` 0) spread the dense side; with `alpha` 1
the density is divided out and the circle is evenly round again.
"""

import matplotlib.pyplot as plt
import numpy as np

import scalemani as sm

rng = np.random.default_rng(0)
angles = np.sort(np.concatenate([rng.uniform(0, np.pi, 1600), rng.uniform(np.pi, 2 * np.pi, 160)]))
circle = np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(scale=1e-3, size=(len(angles), 2))

figure, panels = plt.subplots(1, 3, figsize=(10, 3.4))
panels[0].scatter(*circle.T, c=angles, cmap="twilight", s=6)
panels[0].set(title="points", aspect="equal")
for axes, alpha in zip(panels[1:], (0.0, 1.0), strict=True):
    model = sm.DiffusionMaps(
        2, alpha=alpha, time=0, affinity="gaussian", settings={"affinities.sigma": 0.1}, n_neighbors=400
    )
    embedding = model.fit_transform(circle)
    radii = np.hypot(*embedding.T)
    axes.scatter(*embedding.T, c=angles, cmap="twilight", s=6)
    axes.set(title=f"alpha {alpha:.0f}: radii vary by {radii.std() / radii.mean():.0%}", aspect="equal")
figure.tight_layout()
