"""
A graph in pieces
=================

Clusters that lie far apart leave a neighbour graph in pieces, and eigenvectors that only separate these. By default
the pieces are joined through their closest pairs, and the run says so.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

import scalemani as sm
from scalemani.errors import DisconnectedGraphError

points, labels = make_blobs(1200, centers=4, n_features=6, random_state=0)
with warnings.catch_warnings(record=True) as messages:
    warnings.simplefilter("always")
    model = sm.LaplacianEigenmaps(perplexity=8).fit(points)
for message in messages:
    print(message.message)
print(model.certificates_["components"])

figure, axes = plt.subplots(figsize=(4.5, 4))
axes.scatter(*model.embedding_.T, c=labels, cmap="tab10", s=20)
axes.set(xticks=[], yticks=[])

# %%
# `disconnected="error"` refuses instead; `"largest"` embeds the largest piece, with NaN in the rows of the others;
# `"separate"` embeds each piece from its eigenvectors.

try:
    sm.LaplacianEigenmaps(perplexity=8, disconnected="error").fit(points)
except DisconnectedGraphError as error:
    print(error)
