"""Names of columns: points that follow others, whose columns have names as well, are matched with these by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource, WrappedPoints

SHOWN_NAMES = 5


class OrderedColumns(WrappedPoints):
    """Points (N, D) of another source whose columns `order` (D,) come in the order of their `names`."""

    def __init__(self, points: PointsSource, order: np.ndarray, names: Sequence[str]) -> None:
        super().__init__(points, order, names)
        self.order, self.column_names = order, names

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), C-contiguous, with columns in `order`."""
        return np.ascontiguousarray(super().read(start, stop)[:, self.order])

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return sparse rows [start, stop) with columns in `order`, ascending in each row."""
        rows = super().read_sparse(start, stop)[:, self.order]
        rows.sort_indices()
        return rows


def names_of(source: Any) -> tuple[str, ...]:
    """Return the names of the columns of points; none unless all are texts that differ, as in scikit-learn."""
    names = tuple(source.column_names)
    return (
        tuple(map(str, names)) if all(isinstance(name, str) for name in names) and len(set(names)) == len(names) else ()
    )


def names_of_var(names: Sequence[str]) -> list[str]:
    """Return the names of the columns of an AnnData; none where they are the numbers that it sets by default."""
    names = list(names)
    return [] if names == list(map(str, range(len(names)))) else names


def coordinate_names(array: Any) -> list[Any]:
    """Return the coordinate (D,) of the columns of a labelled array (N, D) of xarray; none of any other object."""
    coordinates = getattr(array, "coords", None)
    if not hasattr(array, "dims") or coordinates is None or array.dims[1] not in coordinates:
        return []
    return np.asarray(coordinates[array.dims[1]]).tolist()


def in_order_of(source: PointsSource, names: Sequence[str], whose: str) -> PointsSource:
    """Return points with their columns in the order of `names`; where either has none, columns stay in their places.

    DataError for points that have other columns than `whose` names these are.
    """
    current, target = names_of(source), tuple(names)
    if not current or not target or current == target:
        return source
    places = {name: place for place, name in enumerate(current)}
    missing, others = [name for name in target if name not in places], sorted(places.keys() - set(target))
    if missing or others:
        raise DataError(
            f"{source.description} must have the columns of {whose}, in any order: "
            f"{'; '.join(filter(None, (listed('missing', missing), listed('not among these', others))))}. Rename them, "
            "or choose columns: adata[:, names] of an AnnData, FILE::x,y of a table in a file"
        )
    return OrderedColumns(source, np.array([places[name] for name in target]), target)


def listed(problem: str, names: Sequence[str]) -> str:
    """Return the number of some names and the first of them, for a message; nothing of none."""
    shown = ", ".join(names[:SHOWN_NAMES]) + (", ..." if len(names) > SHOWN_NAMES else "")
    return f"{len(names)} {problem} ({shown})" if names else ""
