"""How to read a map, in sentences made of the figures of its run, and the classes between which points could move."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from scalemani.config.stages import DOUBT
from scalemani.errors import DataError, warn
from scalemani.interfaces.functions.validation import check_labels, labelled_points
from scalemani.io.figures.look import LARGEST_CLASSES
from scalemani.io.sources.label_values import Measured, is_absent
from scalemani.kernels.arrays.tiles import slices
from scalemani.runs.doubt import Doubt
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredEmbedding, StoredLayout

VOTERS = 15  # nearest points of a place, most of which say which class is there
LEAST_LABELLED = 2  # points, as for measures by labels
MOST_LISTED = 10  # pairs of classes, and classes, in a table
LISTS_AT_ONCE = 65536  # rows of the graph
WELL_ARRANGED = 0.2  # of a map's radius: a spread of places below leaves the arrangement of islands as it is


class Exchange(NamedTuple):
    """How many doubtful points of two classes could as well lie in the other one, and how many points both have."""

    one: str
    other: str
    points: int
    of_points: int


class ClassReading(NamedTuple):
    """What the doubt of the points of a class is on average, as shares.

    `preserved` are neighbours in the data that are such on the map, `mixed` those in the data that are of other
    classes, and `by_chance` how many would be if classes were dealt to points at random.
    """

    name: str
    points: int
    believable: float
    preserved: float
    could_move: float
    mixed: float
    by_chance: float


class Coded(NamedTuple):
    """The names of classes, ascending, and which of them each point (M,) is in; -1 for none."""

    names: np.ndarray
    codes: np.ndarray


class Reading(NamedTuple):
    """Sentences on how to read a map; of each column of classes these, the largest first, and exchanges of points."""

    sentences: tuple[str, ...]
    exchanges: Mapping[str, tuple[Exchange, ...]]
    classes: Mapping[str, tuple[ClassReading, ...]]


CONVERGED = "converged"  # why a descent stopped
BETTER = "better by the objective of the map"
ELSEWHERE = "where the equation of the eigenvectors puts them by their neighbours, or by all of these but one"


def read_map(run: Run, columns: Mapping[str, np.ndarray]) -> Reading:
    """Return how to read the map of a run whose doubt was measured, by those columns (N,) that have classes."""
    doubt = run.retained_doubt
    classified = {name: values for name, values in columns.items() if is_classes(values)}
    coded = {name: coded_classes(run.of_results(values), name) for name, values in classified.items()}
    exchanges, classes = {}, {}
    if coded:
        moved, counts = np.flatnonzero(doubt.doubtful), neighbors_by_class(run, coded)
        near = nearest_to(doubt.places[moved], np.asarray(run.retained_embedding[...]))
        exchanges = {name: exchanges_of(moved, near, column) for name, column in coded.items()}
        classes = {name: classes_of(doubt, column, counts[name]) for name, column in coded.items()}
    return Reading(tuple(sentences_of(run, doubt, exchanges)), exchanges, classes)


def is_classes(values: np.ndarray) -> bool:
    """Return whether values (N,) are classes: not numbers or names that most points have alone."""
    return not why_no_classes(values)


def why_no_classes(values: np.ndarray) -> str:
    """Return why values (N,) are no classes, of which some points may have none; empty for classes."""
    if isinstance(values, Measured):
        return "they are measured values"
    present = np.asarray(values)[~is_absent(values)]
    if len(present) < LEAST_LABELLED:
        return f"{len(present)} of {len(values)} points have a value"
    if present.dtype.kind == "f" and not np.array_equal(present, np.rint(present)):
        return "they are numbers with fractions"
    kinds = len(np.unique(present))
    return f"they are {kinds:,} classes, more than {LARGEST_CLASSES}" if kinds > LARGEST_CLASSES else ""


def columns_of_classes(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the columns (N,) that are classes, and warn of others; refuse labels none of which are, as `measure`."""
    reasons = {name: why_no_classes(values) for name, values in columns.items()}
    if columns and all(reasons.values()):
        name, values = next(iter(columns.items()))
        labelled_points(check_labels(values, name, len(values)), least=LEAST_LABELLED, name=name)
        raise DataError(f"{name}: {reasons[name]}: group them first")
    for name, reason in reasons.items():
        if reason:
            warn(f"{name} is left out: {reason}")
    return {name: values for name, values in columns.items() if not reasons[name]}


def coded_classes(values: np.ndarray, name: str) -> Coded:
    """Return the classes of a column (M,), of which some may be none, with a warning."""
    labelled, codes = labelled_points(values, least=LEAST_LABELLED, name=name), np.full(len(values), -1)
    kinds, codes[labelled] = np.unique(np.asarray(values)[labelled], return_inverse=True)
    return Coded(np.array([f"{kind:.0f}" for kind in kinds] if kinds.dtype.kind == "f" else kinds.astype(str)), codes)


def n_compared(run: Run) -> int:
    """Return how many neighbours of a point are compared: as many as requested, or as its list has."""
    return min(run.params.doubt.n_neighbors, run.retained_graph.indices.shape[1])


def neighbors_by_class(run: Run, columns: Mapping[str, Coded]) -> dict[str, np.ndarray]:
    """Return by column (2, M): how many nearest neighbours in the data a point has of other classes, and of any."""
    graph, k, n_points = run.retained_graph, n_compared(run), len(run.rows)
    counts = {name: np.empty((2, n_points)) for name in columns}
    for rows in slices(n_points, LISTS_AT_ONCE):
        near = np.asarray(graph.indices[rows])[:, :k]
        for name, (_, codes) in columns.items():
            labelled = codes[near] >= 0
            counts[name][0, rows] = (labelled & (codes[near] != codes[rows, np.newaxis])).sum(axis=1)
            counts[name][1, rows] = labelled.sum(axis=1)
    return counts


def nearest_to(places: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the points (m, k), by their positions (M, d), that are nearest to each place (m, d)."""
    return np.asarray(cKDTree(positions).query(places, np.arange(1, min(VOTERS, len(positions)) + 1))[1])


def classes_of(doubt: Doubt, classes: Coded, counts: np.ndarray) -> tuple[ClassReading, ...]:
    """Return what the doubt of the points of each class is, the largest class first; `counts` of its neighbours."""
    names, codes = classes
    labelled = codes >= 0

    def sums(of: np.ndarray) -> np.ndarray:
        return np.bincount(codes[labelled], of[labelled])

    sizes = np.bincount(codes[labelled])
    shares = [sums(of) / sizes for of in (doubt.believable, doubt.preservation, doubt.doubtful)]
    mixed = sums(counts[0]) / np.maximum(sums(counts[1]), 1)
    others = (sizes.sum() - sizes) / (sizes.sum() - 1)
    ranked = np.argsort(-sizes, kind="stable").tolist()
    columns = [names.tolist(), sizes.tolist(), *(of.tolist() for of in shares), mixed.tolist(), others.tolist()]
    listed = [ClassReading(*of_class) for of_class in zip(*columns, strict=True)]
    return tuple(listed[one] for one in ranked)


def exchanges_of(moved: np.ndarray, near: np.ndarray, classes: Coded) -> tuple[Exchange, ...]:
    """Return the pairs of classes between which points `moved` (m,) could go, those with most points first.

    The class of a place is that of most of the points `near` (m, k) to it; points and places without one do not count.
    """
    names, codes = classes
    known = (codes[moved] >= 0) & (codes[near] >= 0).any(axis=1)
    there = [int(np.bincount(row[row >= 0]).argmax()) for row in codes[near[known]]]
    pairs = Counter(tuple(sorted(pair)) for pair in zip(codes[moved[known]].tolist(), there, strict=True))
    sizes = np.bincount(codes[codes >= 0])
    listed = [
        Exchange(str(names[one]), str(names[other]), count, int(sizes[one] + sizes[other]))
        for (one, other), count in pairs.most_common()
        if one != other
    ]
    return tuple(listed)


def sentences_of(run: Run, doubt: Doubt, exchanges: Mapping[str, tuple[Exchange, ...]]) -> list[str]:
    """Return the sentences on a map, each with figures of the run."""
    certificates, params = run.certificates[DOUBT.name], run.params
    n_points, k, rate = len(doubt.doubtful), n_compared(run), params.doubt.rate
    preserved, trusted = float(doubt.preservation.mean()), float(doubt.trusted.mean())
    said = [
        "Certificates say how exactly the map was computed; these figures say what can be read from it.",
        f"Neighbours: of the {k} nearest points in the data, {percent(preserved)} are among the {k} nearest on the map "
        f"on average (chance would leave {percent(k / max(n_points - 1, 1))}); of those nearest on the map, "
        f"{percent(trusted)} are among the {params.n_neighbors} nearest in the data. A point next to another on the "
        "map is likely to be similar to that extent, and no more.",
    ]
    if certificates["null_points"]:
        said.append(
            f"Structure: {percent(float(doubt.believable.mean()))} of the points are believable, which says how they "
            "are placed and not what they are: their distances on the map agree with those in the data better than in "
            f"a map of {certificates['null_points']:,} points without structure, whose values were shuffled within "
            "each column. If points without structure in these data agree as those do, at most "
            f"{percent(rate)} of the believable points are such; stray points may be believable. A point that is not "
            "is called not told from noise: it may be noise, or belong to a group so far from all others that the "
            "order of these distances is not kept. Where such points form an island, look at what they are. "
            'The column "doubt" colours the map by this.'
        )
    share = float(doubt.doubtful.mean())
    most = exchanged(max(exchanges.values(), key=lambda one: sum(pair.points for pair in one), default=()))
    descended = StoredLayout.STAGE in run.keys
    said.append(
        f"Places: {percent(share)} of the points, {int(doubt.doubtful.sum()):,}, could as well lie in another part of "
        f"the map{most}. Their place there is {BETTER if descended else ELSEWHERE}, and farther than twice the "
        "distance of their neighbours. How many of such points lie wrong is not known."
    )
    if not descended and run.stored(StoredEmbedding).in_pieces:
        said.append(
            "Pieces: the graph fell apart, and each piece was embedded by itself, about one middle. On the map they "
            "lie over one another: neighbours and distances across pieces say nothing, and these figures count them."
        )
    if descended and run.certificates[StoredLayout.STAGE]["stopped"] != CONVERGED:
        said.append(
            "The descent had not converged: some of these points are on their way to where they would end. Raise its "
            "number of iterations before you read more from this."
        )
    if doubt.stable is not None and doubt.spread is not None:
        said += sentences_of_halves(doubt.stable, float(np.median(doubt.spread)), k)
    said.append(
        f"Sizes and gaps: each point is drawn to about {params.perplexity:g} neighbours and pushed away by all others. "
        "How wide an island is says how many points it has, not how different they are; how far islands lie apart says "
        "little beyond that they are not neighbours."
        if descended
        else "Sizes and gaps: each column changes as little along the edges of the graph as it can. A group that few "
        "edges join to the rest is a dense spot, however different its points are; how far spots lie apart says how "
        "few these edges are, and not how different the groups."
    )
    return said


def exchanged(pairs: tuple[Exchange, ...]) -> str:
    """Return how many points pairs of classes exchange, and the first pair where it has more than any other."""
    if not pairs:
        return ""
    first, most = pairs[0], max((pair.points for pair in pairs[1:]), default=0)
    leads = f", most between {first.one} and {first.other}" if first.points > most else ""
    return f", {sum(pair.points for pair in pairs)} of them in another class{leads}"


def sentences_of_halves(stable: np.ndarray, spread: float, k: int) -> list[str]:
    """Return what maps of halves of the points say of neighbours on the map, and of the arrangement."""
    kept, chance = float(stable.mean()), 2 * k / len(stable)
    arranged = (
        "islands lie about where they lie on this map"
        if spread < WELL_ARRANGED
        else "what lies left, right or between on this map is not what another map would show"
    )
    return [
        f"Neighbours again: halves of the points were mapped by themselves. Of the {k} points nearest to a point on "
        f"this map and in its half, {percent(kept)} are as near in the map of the half (chance would leave "
        f"{percent(chance)}).",
        "Places again: turned, shifted and scaled to lie on this map, these maps have half of the points farther than "
        f"{percent(spread)} of its radius from their places here, the radius being the root mean square distance from "
        f"the middle: {arranged}.",
    ]


def percent(share: float) -> str:
    """Return a share in percent, with two digits that count."""
    return f"{100 * share:.2g} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"
