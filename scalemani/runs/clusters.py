"""Clusters as labels: the word `run`, and folders of runs, name the clusters that these have."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scalemani.io.sources.labels import READERS, checked_labels, open_labels
from scalemani.runs.opened import Run
from scalemani.store.run_store import RunStore

THIS_RUN = "run"


def with_clusters(labels: Any, run: Run | None) -> Any:
    """Return labels with the clusters of runs, (N,) by a name, in place of the folders of these; others as they are.

    `run` is the run whose points have the labels, which the word THIS_RUN names too; None where there is none.
    """
    if isinstance(labels, Mapping):
        named = {name: with_clusters(source, run) for name, source in labels.items()}
        return {name: next(iter(one.values())) if isinstance(one, dict) else one for name, one in named.items()}
    if isinstance(labels, list | tuple):
        return [with_clusters(source, run) for source in labels]
    if not isinstance(labels, str | Path):
        return labels
    if run is not None and (str(labels) == THIS_RUN or is_same_folder(labels, run)):
        return {"clusters of the run": clusters_of(run)}
    if Path(labels).suffix.lower() in READERS or "::" in str(labels) or not Path(labels).is_dir():
        return labels
    return {f"clusters of {Path(labels).name}": clusters_of(Run(labels))} if RunStore(labels).is_marked else labels


def labels_or_clusters(labels: Any, n_points: int, run: Run | None = None) -> np.ndarray:
    """Return labels (N,) as `open_labels` does, or the clusters of a run where its folder is named.

    `run` is that of `with_clusters`.
    """
    if isinstance(labels, str | Path) and (named := with_clusters(labels, run)) is not labels:
        return checked_labels(next(iter(named.values())), str(labels), n_points, "label")
    return open_labels(labels, n_points)


def is_same_folder(location: str | Path, run: Run) -> bool:
    """Return whether a location is the folder or the URL of a run."""
    root = str(run.store.root)
    return str(location) == root or ("://" not in root and os.path.realpath(location) == os.path.realpath(root))


def clusters_of(run: Run) -> np.ndarray:
    """Return the clusters (N,) of a run in input order, NaN in rows that were left out."""
    clusters = np.asarray(run.retained_labels[...])
    return clusters if run.rows.input_rows is None else run.of_input(clusters.astype(float), np.nan)
