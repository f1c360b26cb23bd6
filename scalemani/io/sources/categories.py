"""Categories with an order or colours of their own, as data frames, columns of tables and AnnData keep them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np


class OrderedLabels(np.ndarray):
    """Texts (N,) whose categories have an order or colours (#rrggbb) of their own, which rows chosen from them keep."""

    categories: tuple[str, ...] = ()
    colours: Mapping[str, str] = MappingProxyType({})

    def __array_finalize__(self, origin: Any) -> None:
        self.categories = getattr(origin, "categories", ())
        self.colours = getattr(origin, "colours", MappingProxyType({}))


def categories_of(labels: Any) -> tuple[str, ...]:
    """Return the categories of labels in an order of their own; none where that is the order of texts.

    `labels` is anything with `categories` or a dtype that has them: `OrderedLabels`, categorical columns.
    """
    categories = getattr(labels, "categories", None)
    if categories is None:
        categories = getattr(getattr(labels, "dtype", None), "categories", None)
    names = () if categories is None else tuple(map(str, categories))
    return () if names == tuple(sorted(names)) else names


def colours_of_categories(labels: Any) -> Mapping[str, str]:
    """Return the colours (#rrggbb) of labels by their categories; empty where these have none of their own."""
    return labels.colours if isinstance(labels, OrderedLabels) else MappingProxyType({})


def with_categories(
    labels: np.ndarray, categories: Sequence[Any], colours: Mapping[str, str] = MappingProxyType({})
) -> np.ndarray:
    """Return labels (N,) of texts with the order of their categories, and the colours of these; others as they are."""
    if not (len(categories) or colours) or labels.dtype.kind not in "UO":
        return labels
    ordered = labels.view(OrderedLabels)
    ordered.categories, ordered.colours = tuple(map(str, categories)), colours
    return ordered
