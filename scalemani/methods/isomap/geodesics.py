"""How far all points are from landmarks along the neighbour graph: shortest paths from some of these at a time.

Paths from a few sampled points certify what is made of those from landmarks.
"""

from typing import Any, ClassVar

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.reading import Parts, RowsOfArray, StoredStage, Whole
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.arrays.tiles import slices
from scalemani.methods.isomap.kernels import UndirectedEdges, geodesic_distances, undirected_edges
from scalemani.stages.arrays.affinities import StoredComponents
from scalemani.stages.arrays.embeddings import StoredReduction, component_values, embedding_rows
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.stages.shared.landmark_maps import warn_of_unseen_components
from scalemani.store.invariants.models import (
    NO_SHORTCUTS,
    NOT_ONE_PLACE,
    ROWS_OF_EMBEDDING,
    SAME_WAY_BACK,
    ZERO_TO_ITSELF,
)
from scalemani.store.invariants.values import (
    DESCENDING,
    FINITE,
    NOT_NEGATIVE,
    POINTS,
    POSITIVE,
    STRICTLY_ASCENDING,
    in_count,
)
from scalemani.store.schema import AS_DISTANCES, ArrayDescription

DIMENSIONS = {
    "source_landmark": "the landmarks of a part, from which paths start: 8, at most L",
    "sampled_point": "points drawn to certify an Isomap: one for 16 landmarks, from 16 to 128, at most N",
    "sampled_source": "those of a part, from which paths start: 8, fewer in the last part",
}
SAMPLED, FROM_SAMPLE = "sampled_points", "sample"  # a unit, and a step
LANDMARKS_A_SAMPLE = 16  # paths from sampled points take a sixteenth of the time of those from landmarks
FEWEST_SAMPLED, MOST_SAMPLED_PATHS = 16, 128


class StoredGeodesics(StoredStage, stage="geodesics"):
    """How far landmarks are from each other and from all points along the graph, bridges where it falls apart."""

    TOGETHER: ClassVar = 8  # landmarks of a part
    distances = Parts(
        "source_landmark landmark",
        "float64",
        "the lengths of the shortest paths from eight consecutive landmarks, fewer in the last part, to all landmarks",
        "as given",
    ).with_invariants(NOT_NEGATIVE, ZERO_TO_ITSELF, SAME_WAY_BACK)
    to_points = Parts(
        "source_landmark point",
        AS_DISTANCES,
        "the lengths of the shortest paths from the same landmarks to all points in work order",
        "as given",
    ).with_invariants(NOT_NEGATIVE, NO_SHORTCUTS)
    sampled_rows = Whole("sampled_point", "int64", "points drawn at random, ascending", "work row").with_invariants(
        in_count(POINTS), STRICTLY_ASCENDING
    )
    FROM_SAMPLE: ClassVar = (
        ArrayDescription(
            "geodesics",
            "from_sample",
            "part",
            ("sampled_source", "point"),
            AS_DISTANCES,
            "as given",
            "the lengths of the shortest paths from eight consecutive sampled points, fewer in the last part, to all",
            (f"{FROM_SAMPLE}-block-N",),
            (NOT_NEGATIVE,),
        ),
    )

    def read_from_sample(self, part: int) -> np.ndarray:
        """Return the distances (s, N) of all points, in work order, from the sampled points of a part."""
        return self.group.read_part(self.FROM_SAMPLE[0].name, part, FROM_SAMPLE)

    def n_parts(self, n_landmarks: int) -> int:
        """Return the number of parts for so many landmarks."""
        return -(-n_landmarks // self.TOGETHER)

    def read_matrix(self, n_landmarks: int) -> np.ndarray:
        """Return the distances (L, L) float64; there and back they may differ in the last bit."""
        return np.concatenate([self.distances(part) for part in range(self.n_parts(n_landmarks))])

    def read_symmetric(self, n_landmarks: int) -> np.ndarray:
        """Return the distances (L, L) float64, the shorter of a path and its way back, which are summed otherwise."""
        ways = self.read_matrix(n_landmarks)
        return np.minimum(ways, ways.T)


class StoredIsomap(StoredReduction, stage="isomap"):
    """Landmark Isomap: coordinates of landmarks by their distances along the graph, and of points by the landmarks."""

    embedding = embedding_rows(
        "points triangulated by their distances to the landmarks along the graph, rows in input order", NOT_ONE_PLACE
    )
    eigenvalues = component_values(
        "the leading eigenvalues of the centred squares of the landmarks' distances, halved, descending",
        POSITIVE,
        DESCENDING,
    )
    vectors = Whole("landmark component", "float64", "the coordinates of the landmarks", "as given").with_invariants(
        FINITE, ROWS_OF_EMBEDDING
    )


BRIDGES_TOGETHER = 1024  # whose ends are read at once


def graph_memory(sizes: Sizes) -> Memory:
    """Return what edges of the whole graph take, over which every path may lead."""
    dimensions, k = sizes.dimensions, sizes.params.n_neighbors
    n_points = dimensions.n_points
    edges = array("int32", n_points, k) + array(dimensions.distance_dtype, n_points, k)
    n_bridges = min(BRIDGES_TOGETHER, n_points // (k + 1))
    return Memory(
        {
            "neighbours and distances as listed, and edges at both ends": 3 * edges,
            "where the edges of points begin, and work rows": array("int64", n_points, 4),
            # Both ends, in float64, and their difference.
            "ends of some bridges": 4 * array("float64", n_bridges, dimensions.n_features),
        }
    )


def memory(sizes: Sizes) -> Memory:
    """Return what the graph takes, and what a search keeps of points."""
    dimensions, n_landmarks = sizes.dimensions, sizes.params.n_landmarks
    n_points, together, lengths = dimensions.n_points, StoredGeodesics.TOGETHER, dimensions.distance_dtype
    between = {"distances between landmarks": 2 * array("float64", n_landmarks, n_landmarks)}
    return graph_memory(sizes) + Memory(
        task={
            "lengths of paths, and which points are next": array("float64", n_points, 2),
            "distances of some landmarks, as found and encoded": 2 * array("float64", together, n_landmarks),
            "the same of all points, to be stored, and encoded": array("float64", n_points, together)
            + 2 * array(lengths, n_points, together),
        },
        steps={"certificate": Memory(between)},
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: paths from landmarks, and from sampled points."""
    n_sampled = min(sizes.dimensions.n_points, n_sampled_points(sizes.params.n_landmarks))
    return Disk(written(StoredGeodesics.ARRAYS, sizes, sampled_point=n_sampled, sampled_source=n_sampled))


def run(context: StageContext) -> dict[str, Any]:
    """Find the distances from all landmarks; certify the longest."""
    output, n_landmarks = StoredGeodesics(context.task.output), context.task.params.n_landmarks
    warn_of_unseen_components(context)
    context.map_blocks(distances_from_some, count=output.n_parts(n_landmarks))
    n_points = context.task.dimensions.n_points
    n_sampled = min(n_points, n_sampled_points(n_landmarks))
    if not context.task.output.committed(SAMPLED):
        sampled = sample_rows(0, "geodesics/sample", n_points, n_sampled)
        context.task.output.write_whole({StoredGeodesics.sampled_rows: sampled}, SAMPLED)
    context.map_blocks(distances_from_sample, FROM_SAMPLE, output.n_parts(n_sampled))
    return {"longest_path": float(output.read_matrix(n_landmarks).max())}


def distances_from_some(task: StageTask, part: int) -> Arrays:
    """Return the distances from consecutive landmarks to all landmarks, and to all points."""
    rows = task.once(work_rows_of_landmarks)
    sources = rows[part * StoredGeodesics.TOGETHER : (part + 1) * StoredGeodesics.TOGETHER]
    distances = geodesic_distances(task.once(edges_of_graph), sources)
    return {
        StoredGeodesics.distances: distances[:, rows],
        StoredGeodesics.to_points: distances.astype(task.dimensions.distance_dtype),
    }


def n_sampled_points(n_landmarks: int) -> int:
    """Return from how many sampled points paths are computed, where there are as many points."""
    return min(max(n_landmarks // LANDMARKS_A_SAMPLE, FEWEST_SAMPLED), MOST_SAMPLED_PATHS)


def distances_from_sample(task: StageTask, part: int) -> Arrays:
    """Return the distances from consecutive sampled points to all points."""
    rows = StoredGeodesics(task.output).sampled_rows.read_once()
    sources = rows[part * StoredGeodesics.TOGETHER : (part + 1) * StoredGeodesics.TOGETHER]
    distances = geodesic_distances(task.once(edges_of_graph), sources)
    return {StoredGeodesics.FROM_SAMPLE[0]: distances.astype(task.dimensions.distance_dtype)}


def work_rows_of_landmarks(task: StageTask) -> np.ndarray:
    """Return the work row (L,) of each landmark."""
    input_rows = task.stored(StoredWorkPoints).input_rows.read()
    return inverse_order(input_rows)[task.stored(StoredLandmarks).rows.read()]


def edges_of_graph(task: StageTask) -> UndirectedEdges:
    """Return the edges of the neighbour graph, and the bridges between its components."""
    graph, bridges = task.stored(StoredNeighbors), task.stored(StoredComponents)
    indices, distances = (table(graph.final_step).read() for table in (graph.indices, graph.distances))
    rows = bridges.bridge_rows.read()
    return undirected_edges(indices, distances, rows, lengths_of_bridges(task, rows))


def lengths_of_bridges(task: StageTask, rows: np.ndarray) -> np.ndarray:
    """Return how far the ends (B, 2) of each bridge are from each other, of which sketches fall short."""
    points = RowsOfArray(task.stored(StoredWorkPoints).points, task.dimensions.n_points)
    lengths = np.empty(len(rows))
    for some in slices(len(rows), BRIDGES_TOGETHER):
        one, other = (points[ends].astype(np.float64) for ends in rows[some].T)
        lengths[some] = np.linalg.norm(one - other, axis=1)
    return lengths
