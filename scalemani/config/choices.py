"""Closed lists of names, written in full for type checkers and editors, which read no tables.

Parameters of runs have the same types; names that methods add are separate lists there, and
`tests/config/test_choices.py` compares them with these.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from scalemani.config.metrics import ComparedMetric, MappedMetric, OtherName
from scalemani.config.stages import DrawnRule, SampledRule

# A type with all powers of Minkowski's distance has all texts, and no misspelling would be reported: these are usual
# powers. A function is passed as such; its name, as text, is for the command line.
Power = Literal["minkowski:1.5", "minkowski:2.5", "minkowski:3", "minkowski:4", "minkowski:5", "minkowski:6"]
NamedMetric = Literal[MappedMetric, ComparedMetric, OtherName]
CoordinateMetric = Literal[MappedMetric, "l2", "tanimoto"]
MetricFunction = Callable[[np.ndarray, np.ndarray], float | np.floating[Any]]
PointMetric = NamedMetric | Power | MetricFunction
AnyMetric = PointMetric | Literal["precomputed"]
Missing = Literal["refuse", "leave-out"]
NeighborSearch = Literal["auto", "exact", "pynndescent", "partition", "leaves", "window"]
KernelKind = Literal["gaussian", "self-tuning"]
AffinityKind = Literal["entropic", "gaussian", "self-tuning", "uniform", "ensemble", "precomputed"]
BandwidthSolver = Literal["newton", "halley", "euler", "bisection", "brent", "ridder"]
BandwidthOrder = Literal["density", "bounds", "mst", "path", "raster", "random", "oracle"]
Disconnected = Literal["connect", "error", "largest", "separate"]
LandmarkRule = Literal[DrawnRule, SampledRule, "dpp", "dpp-exact", "gp-active", "gp"]
Solver = Literal["auto", "refine", "lll", "lll+refine", "variational-nystrom", "exact", "nystrom", "le-z"]
ObjectiveName = Literal["elastic-embedding", "s-sne", "t-sne", "sne", "t-ee", "epanechnikov-ee"]
RepulsionMethod = Literal["auto", "exact", "barnes-hut", "fgt", "grid"]
Direction = Literal[
    "auto",
    "gradient-descent",
    "momentum",
    "fixed-point",
    "diagonal-hessian",
    "conjugate-gradients",
    "l-bfgs",
    "spectral",
    "spectral+diagonal",
    "spectral+l-bfgs",
    "spectral-minus",
]
Legend = Literal["auto", "beside", "map"]
ThemeName = Literal["light", "dark"]


class Shaped(Protocol):
    """An array, a matrix or a frame of any library."""

    @property
    def shape(self) -> Any:
        """Rows and columns."""


Table = Shaped | Sequence[Sequence[float]]
Landmarks = LandmarkRule | Path | Table | Sequence[int]
Seed = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
