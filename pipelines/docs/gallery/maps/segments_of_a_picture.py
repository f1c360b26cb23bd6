"""
Segments of a picture
=====================

An image is a table of pixels whose neighbours are known: those in a window around each. The affinities are made of
the pixels block by block as they are needed, and never stored.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_sample_image

import scalemani as sm

flower = load_sample_image("flower.jpg")[::8, ::8]
settings = {"neighbors.method": "window", "affinities.sigma": 25}  # a distance of colours
model = sm.SpectralClustering(4, affinity="gaussian", n_landmarks=300, settings=settings).fit(flower)
segments = model.labels_.reshape(flower.shape[:2])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
left.imshow(flower)
right.imshow(segments, cmap="tab10", interpolation="nearest")
for axes in (left, right):
    axes.set_axis_off()
figure.tight_layout()
print(
    f"{flower.shape[0]} x {flower.shape[1]} pixels, {model.certificates_['symmetric_affinities']['nonzeros']:,} edges"
)
