"""
From a table to a report
========================

A Parquet table with a column of labels, a run on the command line, and what comes out of it: a table with coordinates,
and one HTML file that opens without a network.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits

import scalemani as sm

folder = tempfile.TemporaryDirectory()
place = Path(folder.name)
digits = load_digits()
pq.write_table(pa.table({f"pixel{i}": digits.data[:, i] for i in range(64)}), place / "digits.parquet")
np.save(place / "labels.npy", digits.target)

model = sm.TSNE(perplexity=20, store=place / "run").fit(place / "digits.parquet")
report = sm.open_run(place / "run").report(place / "report.html", labels=digits.target)
print(f"{report.name}: {report.stat().st_size / 2**20:.1f} MiB")

# %%
# The picture that `scalemani plot` writes.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 6))
axes.imshow(np.asarray(model.plot(labels=digits.target)))
axes.set_axis_off()
folder.cleanup()
