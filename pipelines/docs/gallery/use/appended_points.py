"""
More points into a run
======================

`append` plans a run over old and new points in the same store: the graph changes where new points come nearer, the
embedding resumes. Maps of the same points are compared after the best rotation, scale and translation.
"""

import tempfile

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import scalemani as sm

points, labels = load_digits(return_X_y=True)
folder = tempfile.TemporaryDirectory()
sm.TSNE(perplexity=15, store=folder.name).fit(points[:1500])
before = sm.open_run(folder.name).embedding[...]

grown = sm.append(folder.name, points[1500:])
after = grown.run.embedding[...]
print(f"{grown.appended} points appended; the others moved by {grown.moved:.3f} of their spread")

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2))
panels[0].scatter(*before.T, c=labels[:1500], cmap="tab10", s=6)
panels[1].scatter(*after.T, c=labels, cmap="tab10", s=6)
for axes, name in zip(panels, ("1,500 digits", "1,797 digits"), strict=True):
    axes.set(xticks=[], yticks=[], title=name)
figure.tight_layout()
folder.cleanup()
