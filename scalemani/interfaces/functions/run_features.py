"""Which features put points where they are: the derivative of the map times the difference of a group from the rest."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.validation import check_count, check_seed
from scalemani.interfaces.functions.validation import check_labels, labelled_points
from scalemani.io.figures import bar_figure
from scalemani.io.sources.base import natural_order
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.runs.clusters import clusters_of, labels_or_clusters
from scalemani.runs.gradients import Gradients, gathered, read_gradients
from scalemani.runs.opened import Run
from scalemani.runs.stretching import refuse_without_coordinates
from scalemani.stages.arrays.embeddings import StoredClustering
from scalemani.stages.arrays.points import StoredWorkPoints

ALL_POINTS = "all points"
SAMPLED = 100  # points at which finite differences are taken
AGREEMENT = 1e-3  # of a derivative, within which a finite difference agrees
STEP = 1e-4  # of the root of the mean squared coordinate about the mean, of finite differences
TILE_BYTES = 2**26  # of the differences of a tile from what its points are placed by


class Features(NamedTuple):
    """Which features decide where groups of points lie.

    Attributes
    ----------
    groups : (G,) their names in natural order: 2 before 10
    names : (D,) those of the columns, numbers from 1 where they have none
    influence : (G, D) `slope` times the size of `difference`: how far the map moves for it, in units of the map
    slope : (G, D) the root of the mean squared length of dy / dx over the points of a group
    difference : (G, D) the mean of a group minus that of all other points; of a single group the standard deviation
    agreement : the share of sampled points whose derivative along one random direction is met by a central finite
        difference of the map within a thousandth
    """

    groups: tuple[str, ...]
    names: tuple[str, ...]
    influence: np.ndarray
    slope: np.ndarray
    difference: np.ndarray
    agreement: float

    def table(self, top: int = 20) -> list[dict[str, Any]]:
        """Return the `top` features of each group by falling influence, a row each of group, feature and numbers.

        ConfigError for a `top` below 1.
        """
        check_count(top, "top")
        return [
            {
                "group": group,
                "feature": self.names[column],
                **{name: float(getattr(self, name)[row, column]) for name in ("influence", "slope", "difference")},
            }
            for row, group in enumerate(self.groups)
            for column in np.argsort(-self.influence[row], kind="stable")[:top]
        ]

    def picture(self, path: str | Path, top: int = 20) -> Path:
        """Draw the influence of the `top` features of each group as bars into a .png, .svg or .pdf; return its path.

        The sign next to a feature is that of the difference: + where the group has more of it than the others, - less.

        Raises ConfigError for more than 60 groups, another suffix,
        and where matplotlib is not installed.
        """
        bars: dict[str, dict[str, float]] = {group: {} for group in self.groups}
        for row in self.table(top):
            sign = "" if len(self.groups) == 1 else " +" if row["difference"] > 0 else " -"
            bars[row["group"]][f"{row['feature']}{sign}"] = row["influence"]
        bar_figure(bars, path, "influence")
        return Path(path)


def features_of(run: Run, groups: Any = None, random_state: Any = 0) -> Features:
    """Return which features decide where groups of points lie in a map, as `ReportedRun.features` does."""
    refuse_without_coordinates(run)
    names, codes = named_groups(run, groups)
    gradients, n_columns = read_gradients(run), run.dimensions.n_features
    at_once = TILE_ROWS
    # A power of two, so that tiles lie in blocks of any size.
    while at_once > 1 and 8 * at_once * n_columns * (run.params.affinity_neighbors + 8) > TILE_BYTES:
        at_once //= 2
    counts, centre = np.bincount(codes[codes >= 0], minlength=len(names)), gathered(run, np.array([0]))[0]
    sums, squares, slopes = (np.zeros((len(names), n_columns)) for _ in range(3))
    for part in slices(len(codes), at_once):
        rows = np.arange(part.start, part.stop)[codes[part] >= 0]
        if not len(rows):
            continue
        points, lengths = gathered(run, rows), np.empty((len(rows), n_columns))
        np.sum(gradients.at(rows, points) ** 2, axis=1, out=lengths)
        points -= centre  # of squares of columns far from zero nothing would be left
        for code in np.unique(codes[rows]):
            of_group = codes[rows] == code
            sums[code] += points[of_group].sum(axis=0)
            squares[code] += (points[of_group] ** 2).sum(axis=0)
            slopes[code] += lengths[of_group].sum(axis=0)
    means, total = sums / counts[:, np.newaxis], counts.sum()
    variances = (squares.sum(axis=0) / total - (sums.sum(axis=0) / total) ** 2).clip(0.0)
    difference = np.sqrt(variances)[np.newaxis]
    if len(names) > 1:
        difference = means - (sums.sum(axis=0) - sums) / (total - counts)[:, np.newaxis]
    slope = np.sqrt(slopes / counts[:, np.newaxis])
    columns = run.column_names or tuple(str(column) for column in range(1, n_columns + 1))
    scale = float(np.sqrt(variances.mean()))
    agreement = agreement_of(run, gradients, scale, check_seed(random_state))
    return Features(names, columns, slope * abs(difference), slope, difference, agreement)


def named_groups(run: Run, groups: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of groups, and the group (N,) of each stored point in work order, -1 for none."""
    if groups is None and StoredClustering.STAGE not in run.keys:
        return (ALL_POINTS,), np.zeros(run.dimensions.n_points, np.int64)
    values = clusters_of(run) if groups is None else labels_or_clusters(groups, run.n_input_points, run)
    classes = check_labels(run.of_points(values), "groups", run.dimensions.n_points)
    labelled = labelled_points(classes)
    kinds, codes = np.unique(np.asarray(classes)[labelled], return_inverse=True)
    if kinds.dtype.kind not in "bfiu":
        order = sorted(range(len(kinds)), key=lambda kind: natural_order(str(kinds[kind])))
        kinds, codes = kinds[order], np.argsort(order)[codes]
    of_points = np.full(len(classes), -1)
    of_points[labelled] = codes
    if StoredWorkPoints.STAGE in run.keys:
        of_points = of_points[run.order.input_rows]
    return tuple(f"{kind:g}" if kinds.dtype.kind == "f" else str(kind) for kind in kinds), of_points


def agreement_of(run: Run, gradients: Gradients, scale: float, seed: int) -> float:
    """Return the share of sampled points at which derivatives agree with central finite differences of the map."""
    rows = sample_rows(seed, "features", run.dimensions.n_points, SAMPLED)
    points = gathered(run, rows)
    direction = generator(seed, "features/direction").normal(size=points.shape[1])
    step = STEP * scale * direction / np.linalg.norm(direction) * np.sqrt(points.shape[1])
    expected = gradients.at(rows, points) @ step
    measured = (gradients.moved(rows, points + step) - gradients.moved(rows, points - step)) / 2
    errors = np.linalg.norm(measured - expected, axis=1)
    return float(np.mean(errors <= AGREEMENT * np.linalg.norm(measured, axis=1)))
