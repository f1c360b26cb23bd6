"""
A memory budget, projected and measured
=======================================

A run says what it will take before it starts, and is refused where its budget cannot hold it. Every stage then records
the peak that was measured. The points are read from a file by blocks.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import scalemani as sm
from scalemani.errors import MemoryBudgetError

folder = tempfile.TemporaryDirectory()
place = Path(folder.name)
np.save(place / "points.npy", np.random.default_rng(0).normal(size=(8000, 32)).astype(np.float32))

sm.LaplacianEigenmaps(perplexity=5, memory="1GB", store=place / "run").fit(place / "points.npy")
figure, axes = plt.subplots(figsize=(7, 3.5))
for stage, record in sm.open_run(place / "run").records().items():
    projected, measured = record["projected_memory"] / 2**20, (record["peak_memory"] - record["memory_before"]) / 2**20
    print(f"{stage:22} projected {projected:6.0f} MiB   measured {measured:6.0f} MiB   {record['seconds']:5.2f} s")
    axes.barh(stage, projected, color="lightgrey")
    axes.barh(stage, measured, height=0.4)
axes.set(xlabel="MiB, projected (grey) and measured")
figure.tight_layout()

# %%
# A budget that cannot hold the run is refused at once, with the number to change.

try:
    sm.LaplacianEigenmaps(perplexity=5, memory="20MB").fit(place / "points.npy")
except MemoryBudgetError as error:
    print(error)
folder.cleanup()
