"""
Discriminants and principal components
======================================

Linear methods by the same landmarks: principal components keep the variance of all points, discriminants what parts
the classes. The kernel forms are those of the graph's affinities. Titles say how often a point and its nearest
neighbour in the plane are the same digit.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

points, labels = load_digits(return_X_y=True)
models = {
    "LandmarkPCA": sm.LandmarkPCA(2),
    "LandmarkLDA": sm.LandmarkLDA(2),
    "LandmarkKernelPCA": sm.LandmarkKernelPCA(2, n_landmarks=500),
    "LandmarkKernelLDA": sm.LandmarkKernelLDA(2, n_landmarks=500),
}
figure, panels = plt.subplots(2, 2, figsize=(7, 7))
for axes, (name, model) in zip(panels.flat, models.items(), strict=True):
    embedding = model.fit(points, labels).embedding_
    accuracy = sm.measures.knn_accuracy(embedding, labels)
    axes.scatter(*embedding.T, c=labels, cmap="tab10", s=4)
    axes.set(xticks=[], yticks=[], title=f"{name}: {accuracy.value:.2f}")
figure.tight_layout()
