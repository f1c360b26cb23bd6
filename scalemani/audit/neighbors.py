"""The neighbour graph: recall by distinct true neighbours of rows that the run has not drawn, and their distances.

A neighbour counts once, however often it is listed; it is true where it lies no farther than the k-th nearest point, so
that of points at one distance any will do. All points are looked at in one pass of products.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.audit.findings import STANDARD_ERRORS, Finding, is_number, none_wrong, unchecked, verdict_of
from scalemani.audit.rows import Audit, dense
from scalemani.audit.stored import StoredGroup
from scalemani.config.judged import distances_between
from scalemani.config.methods import PixelsExtension, extensions
from scalemani.config.metrics import compares_rows

STAGE = "neighbors"
JACCARD = "jaccard"
TIE = 1e-6  # by how much, relative to them, distances differ that were rounded to float32 on their way
ROUNDING = 1e-12  # of squared lengths, in squared distances by products in float64
MOST_OF_ERROR = 2.0  # that a claim of an error may be, for as many rows
MANY = 8  # candidates over neighbours: beyond, the nearest are selected
FLOAT32 = float(np.finfo(np.float32).eps)
ROWS_AT_ONCE, QUERIES_AT_ONCE = 1024, 128  # of products: what is made of them stays in the caches of processors


def of_pixels(audit: Audit) -> bool:
    """Return whether neighbours are those around a pixel, of which no lists are stored."""
    return audit.run.param(STAGE, "method") in extensions(PixelsExtension)


def last_round(group: StoredGroup) -> int:
    """Return the number of the round whose lists are the graph; as certified where no array says it."""
    number = group.number("last_round")
    return int(group.certificates.get("rounds", 0) if number is None else number)


def lists_of(group: StoredGroup) -> tuple[str, str]:
    """Return the paths of the graph's neighbours and distances."""
    folder = f"round_{last_round(group)}"
    return f"{folder}/indices", f"{folder}/distances"


def check_neighbors(audit: Audit) -> Iterator[Finding]:
    """Check distances that are listed, and the recall, of rows drawn, against distances to all points."""
    group = audit.run.groups[STAGE]
    if of_pixels(audit):
        return  # W says what they are
    if audit.points is None:
        yield unchecked(
            STAGE, "recall", "precomputed neighbours, no points to search", group.certificates.get("recall")
        )
        return
    names = lists_of(group)
    indices, distances = (audit.rows_of(group, name, audit.sample) for name in names)
    inside = (indices >= 0) & (indices < audit.run.n_points)
    if not inside.all():
        yield none_wrong(STAGE, "neighbours are rows", int((~inside).sum()), "of the rows drawn")
        return
    search = Search(audit, indices, distances)
    search.run()
    yield from judge_distances(search)
    yield judge_recall(audit, group, search)


class Search:
    """The true distances of the neighbours of some rows, and how far their nearest points are.

    Products of dense points are made in float32, and choose for which points distances are computed in float64, by
    differences: the bound of their rounding is on top of what is looked within. Where a metric compares rows, SciPy
    computes its distances, whose squares replace squared Euclidean ones.

    Attributes
    ----------
    listed : (m, k) float64 squared distances of the neighbours that are listed
    reach : (m,) float64 squared distance of the k-th nearest point of each row
    """

    def __init__(self, audit: Audit, indices: np.ndarray, distances: np.ndarray) -> None:
        assert audit.points is not None
        self.audit, self.points, self.indices, self.distances = audit, audit.points, indices.astype(np.int64), distances
        metric = audit.run.param("points", "metric")
        self.sets, self.compared_by = metric == JACCARD, metric if compares_rows(metric) else ""
        self.queries = as_sets(audit.sampled_points) if self.sets else audit.sampled_points
        plain = self.sets or self.points.sparse or bool(self.compared_by)
        self.center = np.zeros(self.queries.shape[1], np.float32)
        if not plain:
            self.center = rounded(self.queries.mean(axis=0))
        self.shifted = self.queries - self.center
        self.squares = np.einsum("ij,ij->i", self.shifted, self.shifted)
        # In products, squared distances lose digits of squared lengths; those of rows that are compared lose none.
        self.largest_square = 0.0 if self.compared_by else float(self.squares.max(initial=0.0))
        largest = np.abs(self.shifted).max(initial=0.0)
        self.unit = largest if 0.0 < largest < np.inf else 1.0  # in which nothing near leaves the range of float32
        self.in_units = (self.shifted / self.unit).astype(np.float32)
        self.listed = np.full(indices.shape, np.nan)
        self.n_neighbors = min(indices.shape[1], audit.run.n_points - 1)
        # What is claimed is where to look: a claim that is too low shows, as fewer points lie within it.
        self.limits = (distances.max(axis=1).astype(np.float64) * (1 + 1e-5)) ** 2
        self.reach = np.full(len(indices), np.inf)
        self.order = np.argsort(self.indices, axis=None, kind="stable")
        self.ascending = self.indices.ravel()[self.order]
        self.within = self.by_products if plain else self.by_rough_products

    def run(self) -> None:
        """Look at all points, once more for the rows whose claims were too low."""
        for again in (False, True):
            if again:
                short = np.flatnonzero(~np.isfinite(self.reach))
                if not len(short):
                    return
                self.limits[:] = -1.0
                self.limits[short] = np.inf
            parts = self.audit.over(self.of_panel, 8 * self.queries.shape[1])
            rows, squares = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            order = np.lexsort((squares, rows))
            rows, squares = rows[order], squares[order]
            first = np.searchsorted(rows, np.arange(len(self.queries)))
            enough = np.append(first[1:], len(rows)) - first >= self.n_neighbors
            if self.n_neighbors:
                self.reach[enough] = squares[first[enough] + self.n_neighbors - 1]

    def of_panel(self, panel: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Return which queries (c,) have a point of a panel within their limits, and its squared distance (c,)."""
        start, stop = panel
        rows = self.points.rows(start, stop)
        self.measure_listed(rows, start, stop)
        parts = [
            self.within(rows[first - start : first - start + ROWS_AT_ONCE], first)
            for first in range(start, stop, ROWS_AT_ONCE)
        ]
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))  # type: ignore[return-value]

    def by_products(self, rows: Any, start: int, some: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return what `of_panel` does of consecutive rows by products in float64, of all queries or of `some`."""
        some = np.arange(len(self.queries)) if some is None else some
        scores = self.squared(rows, some)
        scores[self.themselves(some, start, rows.shape[0])] = np.inf
        near = scores <= self.limits[some, np.newaxis]
        if (
            self.n_neighbors
            and np.count_nonzero(near) > MANY * self.n_neighbors * len(some)
            and scores.shape[1] > self.n_neighbors
        ):
            scores = np.partition(scores, self.n_neighbors - 1, axis=1)[:, : self.n_neighbors]
            near = scores <= self.limits[some, np.newaxis]
            self.limits[some] = np.minimum(self.limits[some], scores[:, -1])
        return some[np.nonzero(near)[0]], scores[near]

    def by_rough_products(self, rows: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what `by_products` does; queries with few points within their limits have these by differences."""
        with np.errstate(over="ignore", invalid="ignore"):  # of points that are far beyond all queries
            exact = np.result_type(rows.dtype, np.float32)
            shifted = (np.subtract(rows, self.center, dtype=exact) / exact.type(self.unit)).astype(
                np.float32, copy=False
            )
            halves = 0.5 * np.einsum("ij,ij->i", shifted, shifted)
            products = self.in_units @ shifted.T
            products -= halves
            squares = self.squares / self.unit**2
            # Each term of |q - x|^2 / 2 is off by this at most, and what was taken from it by as much.
            slack = 2 * (rows.shape[1] + 8) * FLOAT32 * (np.sqrt(squares) + np.sqrt(2.0 * float(halves.max()))) ** 2
            least = (0.5 * (squares - self.limits / self.unit**2) - slack).astype(np.float32)
            near = ~(products < least[:, np.newaxis])
        near[self.limits < 0] = False
        near[self.themselves(np.arange(len(near)), start, len(rows))] = False
        crowded = np.flatnonzero(near.sum(axis=1) > MANY * max(1, self.n_neighbors))
        near[crowded] = False
        queries, places = np.nonzero(near)
        distances = self.apart(queries, rows, places)
        inside = distances <= self.limits[queries]
        of_crowded = (crowded[first : first + QUERIES_AT_ONCE] for first in range(0, len(crowded), QUERIES_AT_ONCE))
        parts = [(queries[inside], distances[inside]), *(self.by_products(rows, start, some) for some in of_crowded)]
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))  # type: ignore[return-value]

    def themselves(self, queries: np.ndarray, start: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which of some queries are among consecutive rows, and where."""
        offsets = self.audit.sample[queries] - start
        here = np.flatnonzero((offsets >= 0) & (offsets < n_rows))
        return here, offsets[here]

    def squared(self, rows: Any, some: np.ndarray) -> np.ndarray:
        """Return the squared distances (m, n) of points to some queries (m,), by products."""
        if self.sets:
            return jaccard(as_sets(dense(rows)), self.queries[some])
        if self.compared_by:
            return np.square(distances_between(self.compared_by, self.queries[some], dense(rows)))
        queries = self.shifted[some]
        if sp.issparse(rows):
            rows = rows.astype(np.float64)
            products, lengths = (rows @ queries.T).T, np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        else:
            shifted = dense(rows) - self.center
            products, lengths = queries @ shifted.T, np.einsum("ij,ij->i", shifted, shifted)
        products *= -2.0
        products += self.squares[some, np.newaxis]
        products += lengths
        return np.maximum(products, 0.0, out=products)

    def apart(self, queries: np.ndarray, rows: Any, places: np.ndarray) -> np.ndarray:
        """Return the squared distances (c,) of queries (c,) to rows of a panel, by differences."""
        distances, width = np.empty(len(places)), max(1, 2**18 // self.queries.shape[1])
        for first in range(0, len(places), width):
            some = slice(first, first + width)
            others, points = dense(rows[places[some]]), self.queries[queries[some]]
            if self.sets:
                distances[some] = jaccard_of_pairs(as_sets(others), points)
            elif self.compared_by:
                pairs = zip(others[:, np.newaxis], points[:, np.newaxis], strict=True)
                distances[some] = [distances_between(self.compared_by, one, other)[0, 0] ** 2 for one, other in pairs]
            else:
                others -= points
                distances[some] = np.einsum("ij,ij->i", others, others)
        return distances

    def measure_listed(self, rows: Any, start: int, stop: int) -> None:
        """Compute the distances of listed neighbours that lie in a panel."""
        first, last = np.searchsorted(self.ascending, (start, stop))
        places = self.order[first:last]
        of_query = places // self.indices.shape[1]
        self.listed.reshape(-1)[places] = self.apart(of_query, rows, self.ascending[first:last] - start)


def rounded(values: np.ndarray) -> np.ndarray:
    """Return values (D,) in float32, 0 where they leave its range."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return np.where(np.isfinite(narrow), narrow, np.float32(0))


def as_sets(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, D) of scaled bits as float64 ones and zeros."""
    return (rows > 0).astype(np.float64)


def jaccard(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the Jaccard distances (m, n) of sets (n, D) to queries (m, D)."""
    common = queries @ rows.T
    union = queries.sum(axis=1)[:, np.newaxis] + rows.sum(axis=1) - common
    return 1.0 - np.divide(common, union, out=np.ones_like(common), where=union > 0)


def jaccard_of_pairs(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the Jaccard distances (n,) of pairs of sets (n, D)."""
    common = (rows * queries).sum(axis=1)
    union = rows.sum(axis=1) + queries.sum(axis=1) - common
    return 1.0 - np.divide(common, union, out=np.ones_like(common), where=union > 0)


def judge_distances(search: Search) -> Iterator[Finding]:
    """Compare the distances that are stored with those computed anew."""
    true, stored = np.sqrt(search.listed), search.distances.astype(np.float64)
    scale = np.sqrt(search.largest_square)
    off = np.abs(stored - true) > 4 * TIE * true + np.sqrt(ROUNDING) * 1e-2 * scale
    yield none_wrong(STAGE, f"distances of {off.size} neighbours", int(off.sum()), "computed anew by differences")


def judge_recall(audit: Audit, group: StoredGroup, search: Search) -> Finding:
    """Compare the share of true neighbours with the recall that is claimed."""
    if not search.n_neighbors:
        return unchecked(STAGE, "recall", "there is one point")
    slack = ROUNDING * (search.largest_square + search.reach)
    true = search.listed <= (search.reach * (1 + TIE) ** 2 + slack)[:, np.newaxis]
    shares = distinct_true(search.indices, true, audit.sample) / search.n_neighbors
    recall, error = audit.mean(shares)
    claimed = group.certificates.get("recall")
    claim = f"recall, distinct true neighbours of {len(shares)} rows"
    if not is_number(claimed):
        return unchecked(STAGE, claim, "the record does not say it", claimed)
    of_claim = group.certificates.get("recall_error", 0.0)
    trials = len(shares) * search.n_neighbors
    least = np.sqrt(max(recall * (1 - recall), 1 / trials) / trials) * audit.sample_error
    # The error that is claimed is believed as far as as many rows would err here.
    believed = MOST_OF_ERROR * max(error, least) * np.sqrt(len(shares) / max(1, n_queries(group)))
    both = float(np.hypot(max(error, least), min(of_claim, believed) if is_number(of_claim) else 0.0))
    holds = recall >= claimed - STANDARD_ERRORS * both - 1e-9
    note = "a repeated neighbour counts once, a point is no neighbour of itself"
    return Finding(STAGE, claim, claimed, recall, both, verdict_of(holds), note)


def n_queries(group: StoredGroup) -> int:
    """Return on how many points the run says that it has measured its recall; 1 where it does not."""
    count = group.certificates.get("sampled_queries")
    return int(count) if is_number(count) else 1


def distinct_true(indices: np.ndarray, true: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return how many different true neighbours (m,) rows list, themselves left out."""
    order = np.argsort(indices, axis=1, kind="stable")
    ascending, true_ascending = np.take_along_axis(indices, order, 1), np.take_along_axis(true, order, 1)
    first = np.ones(indices.shape, bool)
    first[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    return (first & true_ascending & (ascending != rows[:, np.newaxis])).sum(axis=1)
