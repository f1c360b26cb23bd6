"""Categories that have an order of their own, as data frames and columns of tables keep it: low, mid, high."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class OrderedLabels(np.ndarray):
    """Texts (N,) whose categories have an order of their own, which rows chosen from them keep."""

    categories: tuple[str, ...] = ()

    def __array_finalize__(self, origin: Any) -> None:
        self.categories = getattr(origin, "categories", ())


def categories_of(labels: Any) -> tuple[str, ...]:
    """Return the categories of labels in their own order; none where they have no order but that of texts.

    Categories that were made from texts without a word on their order stand in that of the texts.

    Parameters
    ----------
    labels : whatever has `categories`, or a dtype that has: `OrderedLabels`, categorical columns of data frames
    """
    found = getattr(labels, "categories", None)
    if found is None:
        found = getattr(getattr(labels, "dtype", None), "categories", None)
    names = () if found is None else tuple(map(str, found))
    return () if names == tuple(sorted(names)) else names


def with_categories(labels: np.ndarray, categories: Sequence[Any]) -> np.ndarray:
    """Return labels (N,) of texts with the order of their categories; others as they are."""
    if not len(categories) or labels.dtype.kind not in "UO":
        return labels
    found = labels.view(OrderedLabels)
    found.categories = tuple(map(str, categories))
    return found
