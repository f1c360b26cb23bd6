"""The metrics in which points are compared, as plain data; `scalemani.kernels.rows.metrics` has their functions.

A metric maps rows, or compares two rows by a function. Mapped rows have coordinates, of whose Euclidean distances the
metric is a function: every search and every method takes them. Rows that are only compared have none: exact search and
leaves take them, and methods that need no more than a graph.

A metric that compares rows is a function in `scalemani.kernels.rows.comparisons`, a row of `METRICS` and its name in
`ComparedMetric`, which type checkers read. No table lists `minkowski:P`, one metric for each power P, nor functions
that users write: `scalemani.config.functions`.
"""

import math
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeVar, get_args

from scalemani.config.functions import is_function
from scalemani.config.stages import PRECOMPUTED

MappedMetric = Literal["euclidean", "cosine", "correlation", "hellinger", "hamming", "jaccard"]
ComparedMetric = Literal["braycurtis", "canberra", "chebyshev", "haversine", "manhattan", "wasserstein"]
OtherName = Literal["l1", "l2", "cityblock", "tanimoto"]
HAVERSINE = "haversine"
MINKOWSKI = "minkowski"


class MetricText(NamedTuple):
    """What a distance of the metric is, in words, and the name that SciPy's `cdist` has for one that compares rows.

    The name is what certificates and audits compute by, of rows as they are stored: it is "" of metrics with
    coordinates, and where SciPy has none: `config.judged.JUDGES` has a function then.
    """

    text: str
    scipy: str = ""


class Metrics(dict[str, MetricText]):
    """Metrics by name: those that a table lists, and any power of Minkowski's or function of users."""

    def __missing__(self, name: str) -> MetricText:
        if power := power_of(name):
            return MetricText(f"the root {power:g} of the sum of differences to the power {power:g}", MINKOWSKI)
        if is_function(name):
            return MetricText("what a function of the user returns of two rows")
        raise KeyError(name)


METRICS = Metrics(
    {
        "euclidean": MetricText("the Euclidean distance of rows"),
        "cosine": MetricText("one less the cosine of the angle of two rows"),
        "correlation": MetricText("one less Pearson's correlation of two rows"),
        "hellinger": MetricText("the Hellinger distance of rows of counts, from 0 to 1"),
        "hamming": MetricText("the share of bits in which rows of zeros and ones differ"),
        "jaccard": MetricText("of bits that are set in either row, the share that is not set in both"),
        "braycurtis": MetricText("differences of amounts, over the sum of all amounts in both rows", "braycurtis"),
        "canberra": MetricText("the sum of differences, each over the sum of both absolute values", "canberra"),
        "chebyshev": MetricText("the largest difference of two rows in a column", "chebyshev"),
        HAVERSINE: MetricText("the angle between two places, each its latitude and longitude in radians"),
        "manhattan": MetricText("the sum of differences of two rows", "cityblock"),
        "wasserstein": MetricText(
            "how far the shares of a histogram move, in bins, until it is the other", "cityblock"
        ),
    }
)
SAME_METRICS: dict[str, str] = {"l2": "euclidean", "tanimoto": "jaccard", "l1": "manhattan", "cityblock": "manhattan"}
METRIC_NAMES = (*METRICS, PRECOMPUTED)


def has_coordinates(metric: str) -> bool:
    """Return whether points have coordinates in whose geometry a metric compares them; neighbour lists have none."""
    return metric in get_args(MappedMetric)


def compares_rows(metric: str) -> bool:
    """Return whether a metric compares two rows by a function, without coordinates."""
    return metric in get_args(ComparedMetric) or power_of(metric) is not None or is_function(metric)


def power_of(metric: str) -> float | None:
    """Return the power of a metric of Minkowski's, None of others; raise ValueError for what is no power."""
    family, colon, power = metric.partition(":")
    return float(power) if family == MINKOWSKI and colon else None


def known_power(metric: str) -> str:
    """Return the name of a metric of Minkowski's, which is another one's for some powers; ValueError for no power."""
    try:
        power = power_of(metric)
    except ValueError:
        power = None
    if power is None or not power >= 1:
        raise ValueError("minkowski takes its power, 1 or more: minkowski:3")
    named = {1.0: "manhattan", 2.0: "euclidean", math.inf: "chebyshev"}
    return named.get(power, f"{MINKOWSKI}:{int(power) if power.is_integer() else power}")


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
