"""The metrics in which points are compared, as plain data; `scalemani.kernels.rows.metrics` has their functions.

A metric maps rows, or compares two rows by a function. Mapped rows have coordinates, of whose Euclidean distances the
metric is a function: every search and every method takes them. Rows that are only compared have none: they are searched
exactly, and serve the methods that need no more than a graph.

A metric that compares rows is a function in `scalemani.kernels.rows.comparisons`, a row of `METRICS` and its name in
`ComparedMetric`, which type checkers read.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeVar, get_args

from scalemani.config.stages import PRECOMPUTED

MappedMetric = Literal["euclidean", "cosine", "correlation", "hellinger", "hamming", "jaccard"]
ComparedMetric = Literal["braycurtis", "canberra", "chebyshev", "manhattan"]
OtherName = Literal["l1", "l2", "cityblock", "tanimoto"]


class MetricText(NamedTuple):
    """What a distance of the metric is, in words, and the name that SciPy's `cdist` has for one that compares rows.

    The name is what certificates and audits compute by: it is "" of metrics with coordinates.
    """

    text: str
    scipy: str = ""


METRICS = {
    "euclidean": MetricText("the Euclidean distance of rows"),
    "cosine": MetricText("one less the cosine of the angle of two rows"),
    "correlation": MetricText("one less Pearson's correlation of two rows"),
    "hellinger": MetricText("the Hellinger distance of rows of counts, from 0 to 1"),
    "hamming": MetricText("the share of bits in which rows of zeros and ones differ"),
    "jaccard": MetricText("of bits that are set in either row, the share that is not set in both"),
    "braycurtis": MetricText("differences of amounts, over the sum of all amounts in both rows", "braycurtis"),
    "canberra": MetricText("the sum of differences, each over the sum of both absolute values", "canberra"),
    "chebyshev": MetricText("the largest difference of two rows in a column", "chebyshev"),
    "manhattan": MetricText("the sum of differences of two rows", "cityblock"),
}
SAME_METRICS: dict[str, str] = {"l2": "euclidean", "tanimoto": "jaccard", "l1": "manhattan", "cityblock": "manhattan"}
METRIC_NAMES = (*METRICS, PRECOMPUTED)


def has_coordinates(metric: str) -> bool:
    """Return whether points have coordinates in whose geometry a metric compares them; neighbour lists have none."""
    return metric in get_args(MappedMetric)


def compares_rows(metric: str) -> bool:
    """Return whether a metric compares two rows by a function, without coordinates."""
    return metric in get_args(ComparedMetric)


def no_coordinates(metric: str) -> str:
    """Return in words that rows have no coordinates in a metric that compares them; "" in others."""
    return f"metric={metric} compares rows, which have no coordinates in it" if compares_rows(metric) else ""


def choice_of(metrics: Iterable[str]) -> str:
    """Return names of metrics as docstrings list a choice."""
    return "{" + ", ".join(f'"{name}"' for name in metrics) + "}"


# Words of docstrings, and what stands there at run time: tables are not copied by hand.
WORDS = {
    "METRICS": choice_of(METRICS),
    "MAPPED_METRICS": choice_of(filter(has_coordinates, METRICS)),
    "COMPARED_METRICS": choice_of(filter(compares_rows, METRICS)),
    "METRIC_TEXTS": "; ".join(f"{name}: {row.text}" for name, row in METRICS.items()),
}
Documented = TypeVar("Documented")


def lists_metrics(documented: Documented) -> Documented:
    """Put the metrics of the table where the docstring of a function or class has one of WORDS."""
    documented.__doc__ = with_metrics(documented.__doc__ or "") or None  # there is none under python -OO
    return documented


def with_metrics(text: str) -> str:
    """Return a docstring with the metrics of the table in place of WORDS."""
    return re.sub(rf"\b({'|'.join(WORDS)})\b", lambda word: WORDS[word[1]], text)
