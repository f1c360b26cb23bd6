"""The landmarks, chosen among the points in input order: they depend on the points and the seed alone.

Landmarks off the data are stored with their anchors, the points nearest to them, which give them coordinates.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, get_args

import numpy as np

from scalemani.config.methods import LandmarkExtension, extensions
from scalemani.config.params import Resolved
from scalemani.config.params.fields import values_in
from scalemani.config.stages import INPUT_LANDMARKS, LANDMARK_ROWS, DrawnRule
from scalemani.engine.context import StageContext, Steps
from scalemani.engine.memory_model import Disk, Memory, Terms, array
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.task import EarlierResults
from scalemani.errors import DataError
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.quality import SAMPLED_POINTS, sampled_spacings
from scalemani.kernels.landmarks.selection import (
    SPARE_FRACTION,
    Choice,
    LandmarkRule,
    RuleChoice,
    Selected,
    choice_class,
    n_spread_candidates,
    selected_landmarks,
)
from scalemani.kernels.landmarks.weights import ANCHORS, LANDMARKS_AT_ONCE, anchored
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.equal_rows import equal_rows_among
from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.shared.sampled_rows import SampledRows
from scalemani.stages.shared.side_data import side_data_part


class PlannedRule(LandmarkRule[RuleChoice], Protocol[RuleChoice]):
    """A rule of landmarks that a method adds, with its memory."""

    def memory(self, sizes: Sizes) -> Terms:
        """Return what it takes without the landmarks and the block that points are in."""
        ...

    def check(self, params: Resolved, n_points: int) -> None:
        """Raise ConfigError for parameters or points that it does not take, before work starts."""
        return


def rule_of_method(name: str) -> PlannedRule[Any] | None:
    """Return the rule of a name that a method adds; None where none does."""
    extension = extensions(LandmarkExtension).get(name)
    if extension is None:
        return None
    rule: PlannedRule = extension.load()
    return rule


def memory(sizes: Sizes) -> Memory:
    """Return what the points take that landmarks are chosen from, as the method compares them, and the landmarks."""
    dimensions, landmark_params, n_landmarks = sizes.dimensions, sizes.params.landmarks, sizes.params.n_landmarks
    n_points, features, dtype = dimensions.n_points, dimensions.n_features, dimensions.dtype
    landmarks, n_compared = array("float64", n_landmarks, features), min(n_points, SAMPLED_POINTS)
    held = Memory(
        process={
            "landmarks": array(dtype, n_landmarks, features),
            "points whose nearest landmarks are looked for": array(dtype, n_compared, features),
            "a tile of these and of landmarks": 2 * array("float64", min(n_compared, TILE_ROWS), features),
        },
        task={"block that points are in": dimensions.block_rows * dimensions.row_bytes},
    )
    if landmark_params.method == LANDMARK_ROWS:
        return held + Memory({"landmarks as given": 2 * landmarks})
    if landmark_params.off_data:
        held += anchors_memory(sizes)
    if landmark_params.method == INPUT_LANDMARKS:
        return held
    if rule := rule_of_method(landmark_params.method):
        return held + Memory(rule.memory(sizes))
    chosen = {}
    if landmark_params.method in get_args(DrawnRule):
        n_drawn = min(n_points, n_spread_candidates(n_landmarks, n_points) + n_landmarks // SPARE_FRACTION + 1)
        chosen["points drawn, as read and in the order drawn"] = 2 * array(dtype, n_drawn, features)
    else:
        n_sampled = min(n_points, max(landmark_params.sample_points, n_landmarks))
        chosen["sample of the points"] = array(dtype, n_sampled, features)
    if landmark_params.method != "random":
        chosen["points that fix the sketches, centred"] = array("float64", min(MOST_SAMPLE_ROWS, n_points), features)
    if landmark_params.method in ("kmeans", "kmeans++"):
        # Centroids, their sums, those of the step before, and in float32 with their sketches.
        chosen["centroids and their sums"] = 4 * landmarks
        chosen["a tile of points, centred"] = 2 * array("float64", TILE_ROWS, features)
    return held + Memory(chosen)


def anchors_memory(sizes: Sizes) -> Memory:
    """Return what landmarks off the data and their anchors take."""
    n_landmarks = sizes.params.n_landmarks
    rows = 2 * (n_landmarks + ANCHORS * min(n_landmarks, LANDMARKS_AT_ONCE))
    return Memory(
        {
            "landmarks off the data, and anchors of some": array("float64", rows, sizes.dimensions.n_features),
            "anchors and their distances": 8 * array("float64", n_landmarks, ANCHORS),
        }
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the landmarks and their rows, or their anchors."""
    stored = StoredLandmarks
    if sizes.params.landmarks.off_data:
        off_data = [stored.local_spacings, stored.points, stored.anchor_rows, stored.anchor_weights]
        return Disk(written(off_data, sizes, anchor=ANCHORS))
    landmarks = {stored.points.name: sizes.params.n_landmarks * sizes.stored_row_bytes}
    return Disk({**written([stored.local_spacings, stored.rows], sizes), **landmarks})


def run(context: StageContext) -> dict[str, Any]:
    """Choose the landmarks and keep them with their rows, or with their anchors where they lie off the data."""
    params, output, progress = context.task.params, context.task.output, context.executor.progress
    extension = extensions(LandmarkExtension).get(params.landmarks.method)
    one_by_one = extension is not None and extension.one_by_one
    progress.start(context.task.stage, *((params.n_landmarks, "landmark") if one_by_one else (1, "selection")))
    points: PointsByRow = SampledRows(context)
    if context.task.earlier is not None:
        points = with_earlier_landmarks(points, context.task.earlier)
    if params.landmarks.method == INPUT_LANDMARKS:
        landmarks, rows, measured = Selected(side_data_part(context, "landmarks").points, None)
    elif params.landmarks.method == LANDMARK_ROWS:
        landmarks, rows, measured = landmarks_among(points, side_data_part(context, "landmarks").points)
    else:
        landmarks, rows, measured = selected_landmarks(points, replace(choice_of(params), advance=progress.advance))
    certificates: dict[str, Any] = {"landmarks": len(landmarks), **measured}
    if params.points.metric != EUCLIDEAN:
        certificates["geometry"] = METRICS[params.points.metric].geometry
    spacings = sampled_spacings(points, landmarks, params.seed)
    output.write_whole({StoredLandmarks.local_spacings: spacings}, StoredLandmarks.SPACINGS_UNIT)
    if rows is None:
        nearest = anchored(points, landmarks)
        anchors = {
            StoredLandmarks.anchor_rows: nearest.rows,
            StoredLandmarks.anchor_weights: nearest.weights,
        }
        output.write_whole(anchors, StoredLandmarks.ANCHORS_UNIT)
        output.write_whole({StoredLandmarks.points: landmarks})
        certificates["mean_distance_to_nearest_point"] = float(nearest.distances.mean())
    else:
        output.write_whole({StoredLandmarks.rows: rows, StoredLandmarks.points: landmarks})
    if not one_by_one:
        progress.advance()
    return certificates


def graphs(context: StageContext) -> Steps:
    """Yield what the driver does, in rounds that follow from the points."""
    yield "landmarks are selected; tasks read the rows of candidates where these lie in many blocks"


@dataclass(frozen=True)
class RowsAtHand:
    """Points (N, D) by row numbers, of which `values` (m, D) at ascending `rows` (m,) are at hand."""

    points: PointsByRow
    rows: np.ndarray
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        gathered, others = self.values[places], np.flatnonzero(self.rows[places] != rows)
        if len(others):
            gathered[others] = self.points[rows[others]]
        return gathered


def with_earlier_landmarks(points: PointsByRow, earlier: EarlierResults) -> PointsByRow:
    """Return points of which the landmarks of an earlier run are at hand: most of them stay, and lie in all blocks."""
    stored = earlier.stored(StoredLandmarks)
    if not stored.group.holds(StoredLandmarks.rows.name):
        return points
    rows = stored.rows.read()
    order = np.argsort(rows)
    return RowsAtHand(points, rows[order], stored.points.read()[order])


def landmarks_among(points: PointsByRow, landmarks: np.ndarray) -> Selected:
    """Return landmarks (L, D) by the first row of the points that equals each, ascending.

    Raises
    ------
    DataError
        Where one equals none.
    """
    rows = equal_rows_among(points, landmarks)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        raise DataError(
            f"row {missing[0]} of the landmarks is no row of the points, nor are {len(missing) - 1} more of them: this "
            "method takes landmarks that are points; give rows of the points, or their numbers"
        )
    rows = np.sort(rows)
    return Selected(points[rows], rows)


def choice_of(params: Resolved) -> Choice:
    """Return how parameters say that landmarks are chosen."""
    kind, values = choice_class(params.landmarks.method), {**values_in(params.landmarks), "seed": params.seed}
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in values})
