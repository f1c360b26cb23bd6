"""W: its rows made anew for the rows drawn, and one pass over all of it for degrees, symmetry, pieces and products."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from scalemani.audit.affinities import LEAST, Edges, read_edges
from scalemani.audit.findings import Finding, at_most, equal, none_wrong, unchecked
from scalemani.audit.neighbors import lists_of, of_pixels
from scalemani.audit.rows import PRECOMPUTED, Audit, Points
from scalemani.audit.stored import block_folder
from scalemani.config.methods import PixelAffinitiesExtension, extensions

STAGE, NORMALIZED = "symmetric_affinities", "normalized_affinities"
COMPONENTS = "components"
FLOAT32 = float(np.finfo(np.float32).eps)
# Entries of D^-1/2 W D^-1/2 below the rounding of float32 join nothing in a run; of those near it either may be said.
MAY_JOIN, JOINS = 0.5 * FLOAT32, 2 * FLOAT32
EDGES_TOGETHER = 2**22  # whose pieces are computed at once
EXAMPLES = 3


def final_graph(audit: Audit) -> str:
    """Return the stage whose W the eigenproblem is of: for diffusion maps that of the normalised W."""
    return NORMALIZED if audit.run.has(NORMALIZED) else STAGE


def read_block(audit: Audit, stage: str, block: int) -> sp.csr_matrix:
    """Return the rows of W of one block, (n, N) float64: stored, or made of the pixels of an image, or of edges."""
    group, folder = audit.run.groups[stage], block_folder(block)
    start, stop = audit.run.blocks[block]
    if group.holds("image") and not group.holds(f"{folder}/indices"):
        return window_rows(audit, start, stop)
    if group.holds(f"{folder}/sources"):
        return rows_of_edges(audit, block)
    parts = (group.read(f"{folder}/{part}") for part in ("values", "indices", "indptr"))
    values, indices, indptr = parts
    n_points = audit.run.n_points
    if len(indptr) != stop - start + 1 or (len(indices) and not 0 <= indices.min() <= indices.max() < n_points):
        raise ValueError(f"{folder} of {stage} is no block of rows of W")
    return sp.csr_matrix((values.astype(np.float64), indices, indptr), shape=(stop - start, n_points))


def read_degrees(audit: Audit, stage: str) -> np.ndarray:
    """Return the stored degrees (N,) of the W of a stage, in work order."""
    group = audit.run.groups[stage]
    parts = [group.read(f"{block_folder(block)}/degrees") for block in range(len(audit.run.blocks))]
    return np.concatenate(parts)


def rows_of_edges(audit: Audit, block: int) -> sp.csr_matrix:
    """Return the rows of W of a block, made of its edges, of those of the blocks that send it some, and of bridges."""
    start, stop = audit.run.blocks[block]
    parts = [half_edges(audit, block)]
    for source in audit.run.groups[STAGE].read(f"{block_folder(block)}/sources").tolist():
        sources, targets, values = half_edges(audit, source)
        parts.append((targets, sources, values))
    ends, values = read_bridges(audit)
    joined = values.astype(np.float32).astype(np.float64)
    parts += [(*ends.T, joined), (*ends.T[::-1], joined)]
    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    inside = (rows >= start) & (rows < stop)
    entries = values[inside], (rows[inside] - start, columns[inside])
    matrix = sp.coo_matrix(entries, shape=(stop - start, audit.run.n_points)).tocsr()
    matrix.data = matrix.data.astype(np.float32).astype(np.float64)
    matrix.eliminate_zeros()
    return matrix


def half_edges(audit: Audit, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the edges of a block begin and end, and half their affinities: (E,) each."""
    rows = audit.run.blocks[block]
    edges = read_edges(audit, *rows)
    sources = np.repeat(np.arange(*rows), edges.indices.shape[1])
    return sources, edges.indices.ravel().astype(np.int64), 0.5 * edges.values.ravel().astype(np.float64)


def window_rows(audit: Audit, start: int, stop: int) -> sp.csr_matrix:
    """Return rows of W of the pixels of an image or video: Gaussian affinities within a window around each."""
    group = audit.run.groups[STAGE]
    (frames, height, width), (side, before) = (group.read(name).tolist() for name in ("image", "reach"))
    sigma = float(group.read("sigma"))
    pixels = np.arange(start, stop)
    frame, row, column = pixels // (height * width), pixels // width % height, pixels % width
    steps = [(0, r, c) for r in range(-side, side + 1) for c in range(-side, side + 1) if (r, c) != (0, 0)]
    steps += [(f, 0, 0) for f in range(-before, before + 1) if f != 0]
    sources, targets = [], []
    for f, r, c in steps:
        inside = (frame + f >= 0) & (frame + f < frames) & (row + r >= 0) & (row + r < height)
        inside &= (column + c >= 0) & (column + c < width)
        sources.append(pixels[inside] - start)
        targets.append(pixels[inside] + (f * height + r) * width + c)
    rows, columns = np.concatenate(sources), np.concatenate(targets)
    points = all_points(audit)
    squares = np.square(points[columns] - points[rows + start]).sum(axis=1)
    values = np.maximum(np.exp(-0.5 * (squares / sigma) / sigma), LEAST).astype(np.float32).astype(np.float64)
    return sp.csr_matrix((values, (rows, columns)), shape=(stop - start, audit.run.n_points))


def all_points(audit: Audit) -> np.ndarray:
    """Return the features (N, D) float64 of all pixels."""
    assert audit.points is not None
    return np.concatenate([np.asarray(audit.points.rows(*rows), np.float64) for rows in audit.run.blocks])


# Rows of W that were drawn


def check_rows(audit: Audit) -> Iterator[Finding]:
    """Make the rows of W that were drawn anew from the graph and its affinities, and compare."""
    kind = audit.run.param("affinities", "kind")
    if of_pixels(audit):
        random = f"{kind} affinities of pixels are drawn at random"
        why = random if kind in extensions(PixelAffinitiesExtension) else "W is of pixels; degrees are made anew below"
        yield unchecked(STAGE, "rows of W", why)
        return
    stored = sp.vstack([rows for _, rows in sampled_rows(audit, STAGE)], format="csr")
    expected = precomputed_rows(audit) if kind == PRECOMPUTED else expected_rows(audit)
    wrong = different_rows(stored, expected, 4 * FLOAT32)
    yield none_wrong(
        STAGE,
        f"{stored.shape[0]} rows of W",
        len(wrong),
        "made anew of the graph, its affinities and bridges",
        audit.sample[wrong[:EXAMPLES]].tolist(),
    )


def sampled_rows(audit: Audit, stage: str) -> Iterator[tuple[int, sp.csr_matrix]]:
    """Yield the blocks that hold drawn rows, and these rows of W."""
    for block in np.unique(audit.sample // audit.run.block_rows).tolist():
        start, stop = audit.run.blocks[block]
        first, last = np.searchsorted(audit.sample, (start, stop))
        yield block, read_block(audit, stage, block)[audit.sample[first:last] - start]


def precomputed_rows(audit: Audit) -> sp.csr_matrix:
    """Return the rows of a precomputed W, of the rows drawn."""
    points = Points(audit.run, audit.run.groups["points"], "")
    rows = [
        sp.csr_matrix(points.rows(*audit.run.blocks[block]))[audit.sample[first:last] - audit.run.blocks[block][0]]
        for block in np.unique(audit.sample // audit.run.block_rows).tolist()
        for first, last in [np.searchsorted(audit.sample, audit.run.blocks[block])]
    ]
    return following_classes(audit, sp.vstack(rows, format="csr").astype(np.float64))


def expected_rows(audit: Audit) -> sp.csr_matrix:
    """Return (P + P^T) / 2 with bridges, of the rows drawn: (m, N) float64."""
    n_points, place = audit.run.n_points, np.full(audit.run.n_points, -1, np.int64)
    place[audit.sample] = np.arange(len(audit.sample))
    width = audit.run.groups["affinities"].array("values").shape[1]

    def of_panel(panel: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        edges, rows = read_edges(audit, *panel), np.arange(*panel)
        summed, targets = over_copies(edges), edges.indices.astype(np.int64)
        drawn = np.flatnonzero(place[rows] >= 0)
        to_sample = place[np.clip(targets, 0, n_points - 1)]
        into, column = np.nonzero(to_sample >= 0)
        parts = [
            (np.repeat(place[rows[drawn]], width), targets[drawn].ravel(), 0.5 * summed[drawn].ravel()),
            (to_sample[into, column], rows[into], 0.5 * summed[into, column]),
        ]
        if edges.row_counts is not None:
            loops = edges.row_counts * (edges.row_counts - 1.0) * edges.of_copies
            parts.append((place[rows[drawn]], rows[drawn], loops[drawn]))
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))  # type: ignore[return-value]

    parts = audit.over(of_panel, 8 * 6 * width)
    parts.append(bridges_into(audit, place))
    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    inside = (values > 0) & (columns >= 0) & (columns < n_points)
    matrix = sp.coo_matrix((values[inside], (rows[inside], columns[inside])), shape=(len(audit.sample), n_points))
    return following_classes(audit, matrix.tocsr())


def over_copies(edges: Edges) -> np.ndarray:
    """Return the affinities (n, k) of edges, summed over the copies at both ends."""
    values = edges.values.astype(np.float64)
    if edges.counts is None or edges.row_counts is None:
        return values
    return (values * (edges.row_counts[:, np.newaxis] * edges.counts)).astype(np.float32).astype(np.float64)


def read_bridges(audit: Audit) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (B, 2) of the bridges between components, and what each adds to W (B,)."""
    if not audit.run.has(COMPONENTS):
        return np.empty((0, 2), np.int64), np.empty(0)
    group = audit.run.groups[COMPONENTS]
    ends, values = group.read("bridge_rows"), group.read("bridge_weights")
    if audit.weights is not None and len(ends):
        values = values * audit.weights[ends].prod(axis=1)
    return ends.astype(np.int64), values


def bridges_into(audit: Audit, place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what bridges add to rows that are drawn: rows, columns, values."""
    ends, values = read_bridges(audit)
    both, twice = np.concatenate([ends, ends[:, ::-1]]), np.tile(values, 2)
    places = place[both[:, 0]] if len(both) else np.empty(0, np.int64)
    return places[places >= 0], both[places >= 0, 1], twice[places >= 0]


def following_classes(audit: Audit, rows: sp.csr_matrix) -> sp.csr_matrix:
    """Return rows of W, lower between classes where affinities follow these."""
    weight = float(audit.run.param(STAGE, "target_weight", 0.0))
    if not weight or not audit.run.has("classes"):
        return rows
    codes = audit.run.groups["classes"].read("codes")
    row_codes = np.repeat(codes[audit.sample], np.diff(rows.indptr))
    column_codes = codes[rows.indices]
    between = (row_codes >= 0) & (column_codes >= 0) & (row_codes != column_codes)
    lowered = np.maximum(rows.data * (1 - weight), np.minimum(rows.data, LEAST))
    return sp.csr_matrix((np.where(between, lowered, rows.data), rows.indices, rows.indptr), shape=rows.shape)


def different_rows(stored: sp.csr_matrix, expected: sp.csr_matrix, tolerance: float) -> np.ndarray:
    """Return which rows (w,) have an entry that differs by more than a share of it, or is in one matrix alone."""
    difference = abs(stored - expected)
    allowed = tolerance * abs(expected) + sp.csr_matrix(
        (np.full(expected.nnz, 2 * LEAST), expected.indices, expected.indptr), shape=expected.shape
    )
    beyond = (difference - allowed).tocoo()
    return np.unique(beyond.row[beyond.data > 0])


def check_normalized(audit: Audit) -> Iterator[Finding]:
    """Compare drawn rows of the normalised W with those of W over powers of degrees."""
    alpha = float(audit.run.param(NORMALIZED, "alpha", 1.0))
    degrees = read_degrees(audit, STAGE)
    if audit.weights is not None:
        degrees = degrees / audit.weights
    scales = degrees**-alpha
    before, after = (
        sp.vstack([rows for _, rows in sampled_rows(audit, stage)], format="csr") for stage in (STAGE, NORMALIZED)
    )
    expected = sp.diags_array(scales[audit.sample]) @ before @ sp.diags_array(scales)
    wrong = different_rows(after, sp.csr_matrix(expected), 4 * FLOAT32)
    yield none_wrong(NORMALIZED, f"{after.shape[0]} rows", len(wrong), "W over (q_n q_m)^alpha, made anew")


# One pass over all of W


class Pass(NamedTuple):
    """What one pass over W computes.

    `products` (N, m) float64 are W times the vectors, `asymmetry` (N,) how far W r and W^T r differ for a random r,
    over the degrees; `labels` (N,) number the pieces that the edges of W join.
    """

    products: np.ndarray
    degrees: np.ndarray
    nonzeros: int
    asymmetry: np.ndarray
    labels: np.ndarray
    degrees_off: int


def pass_over(audit: Audit, stage: str, vectors: np.ndarray) -> Pass:
    """Read W of a stage once: products with `vectors` (N, m), symmetry by a random vector, degrees and pieces."""
    n_points, n_blocks = audit.run.n_points, len(audit.run.blocks)
    stored = read_degrees(audit, stage)
    probe = audit.generator.standard_normal(n_points)
    columns = np.column_stack([vectors, probe])
    products, transposed, sums = np.empty((n_points, columns.shape[1])), np.zeros(n_points), np.empty(n_points)
    pieces, nonzeros = Pieces(n_points), 0
    for block in range(n_blocks):
        start, stop = audit.run.blocks[block]
        rows = read_block(audit, stage, block)
        products[start:stop] = rows @ columns
        sums[start:stop] = rows.sum(axis=1).ravel()
        if rows.nnz:
            transposed += rows.T @ probe[start:stop]
        nonzeros += rows.nnz
        sources = np.repeat(np.arange(start, stop), np.diff(rows.indptr))
        joining = rows.data > MAY_JOIN * np.sqrt(stored[sources] * stored[rows.indices])
        pieces.join(sources[joining], rows.indices[joining])
    scale = np.abs(products[:, -1]) + np.abs(transposed) + sums
    asymmetry = np.abs(products[:, -1] - transposed) / np.where(scale > 0, scale, 1.0)
    off = int((np.abs(sums - stored) > 1e-9 * np.abs(sums)).sum())
    return Pass(products[:, :-1], stored, nonzeros, asymmetry, pieces.labels, off)


class Pieces:
    """The pieces that edges join points to; edges are stored until there are many."""

    def __init__(self, n_points: int) -> None:
        self._labels = np.arange(n_points, dtype=np.int32)
        self._edges: list[tuple[np.ndarray, np.ndarray]] = []
        self._n_edges = 0

    def join(self, sources: np.ndarray, targets: np.ndarray) -> None:
        """Take edges between points `sources` (e,) and `targets` (e,); they are joined once many have come."""
        self._edges.append((sources.astype(np.int32), targets.astype(np.int32)))
        self._n_edges += len(sources)
        if self._n_edges > EDGES_TOGETHER:
            self._join_pending()

    @property
    def labels(self) -> np.ndarray:
        """The number (N,) of each point's piece, from 0 on, of all edges so far."""
        if self._edges:
            self._join_pending()
        return self._labels

    def _join_pending(self) -> None:
        sources, targets = (self._labels[np.concatenate(ends)] for ends in zip(*self._edges, strict=True))
        self._edges, self._n_edges = [], 0
        apart = sources != targets
        n_pieces = int(self._labels.max()) + 1
        keys = np.sort(sources[apart].astype(np.int64) * n_pieces + targets[apart])
        if len(keys):
            keys = keys[np.append(True, np.diff(keys) > 0)]
            bounds = np.searchsorted(keys, np.arange(n_pieces + 1) * n_pieces)
            graph = sp.csr_matrix((np.ones(len(keys)), keys % n_pieces, bounds), shape=(n_pieces, n_pieces))
            self._labels = connected_components(graph, directed=False)[1].astype(np.int32)[self._labels]


def check_pass(audit: Audit, stage: str, result: Pass) -> Iterator[Finding]:
    """Judge the results of one pass over W."""
    said = audit.run.groups[stage].certificates
    yield none_wrong(stage, "degrees are the sums of rows", result.degrees_off, "rows of W that differ")
    wrong = np.flatnonzero(result.asymmetry > 1e-9)
    yield none_wrong(
        stage, "W is symmetric", len(wrong), "W r and W^T r of a random r, rows that differ", wrong[:EXAMPLES].tolist()
    )
    if "nonzeros" in said:
        yield equal(stage, "nonzeros", said["nonzeros"], result.nonzeros)
    for name, value in (("least_degree", result.degrees.min()), ("largest_degree", result.degrees.max())):
        yield equal(stage, name, said.get(name), float(value), 1e-9 * abs(float(value)))


def check_components(audit: Audit, pieces: np.ndarray | None) -> Iterator[Finding]:
    """Find the pieces of the graph without bridges anew, and those of W with them.

    `pieces` (N,) are those of W; None for methods without one.
    """
    group = audit.run.groups[COMPONENTS]
    if of_pixels(audit) or not group.holds("labels"):
        return
    labels, said = group.read("labels"), group.certificates
    coarse, fine = graph_pieces(audit)
    n_components = int(labels.max()) + 1
    split = n_pairs(fine, labels) - (int(fine.max()) + 1)
    merged = n_pairs(coarse, labels) - n_components
    yield none_wrong(COMPONENTS, "no edge leads out of a component", split, "components that edges join")
    yield none_wrong(COMPONENTS, "components are connected", merged, "components that fall apart")
    yield equal(COMPONENTS, "components", said.get("components"), n_components)
    sizes = np.sort(np.bincount(labels))[::-1].tolist()
    claimed = said.get("largest_components", sizes)
    yield equal(COMPONENTS, "largest_components", str(claimed), str(sizes[: len(claimed)]))
    yield from check_bridges(audit, labels, pieces)


def n_pairs(one: np.ndarray, other: np.ndarray) -> int:
    """Return how many different pairs (one[i], other[i]) two labellings (N,) have."""
    return len(np.unique(one.astype(np.int64) * (int(other.max()) + 1) + other))


def graph_pieces(audit: Audit) -> tuple[np.ndarray, np.ndarray]:
    """Return the piece (N,) of each point of the graph without bridges: by edges that may join, and that do."""
    n_points, graph = audit.run.n_points, audit.run.groups["neighbors"]
    coarse, fine = Pieces(n_points), Pieces(n_points)
    name, _ = lists_of(graph)
    weighed = audit.run.has("affinities")
    degrees = degrees_of_edges(audit) if weighed else np.zeros(0)
    for start, stop in audit.run.blocks:
        targets = graph.read(name, start, stop).astype(np.int64)
        entries = np.ones(targets.shape)
        if weighed:
            edges = read_edges(audit, start, stop)
            targets = np.clip(edges.indices, 0, n_points - 1).astype(np.int64)
            entries = over_copies(edges) / np.sqrt(degrees[start:stop, np.newaxis] * degrees[targets])
        sources = np.broadcast_to(np.arange(start, stop)[:, np.newaxis], targets.shape)
        known = (targets >= 0) & (targets < n_points)
        for pieces, least in ((coarse, MAY_JOIN), (fine, JOINS)):
            joining = known & (entries > least)
            pieces.join(sources[joining], targets[joining])
    return coarse.labels, fine.labels


def degrees_of_edges(audit: Audit) -> np.ndarray:
    """Return the row sums (N,) of P + P^T, copies of weighted points counted, in work order."""
    degrees = np.zeros(audit.run.n_points)
    for start, stop in audit.run.blocks:
        edges = read_edges(audit, start, stop)
        summed, targets = over_copies(edges), np.clip(edges.indices, 0, audit.run.n_points - 1)
        degrees[start:stop] += summed.sum(axis=1)
        degrees += np.bincount(targets.ravel(), summed.ravel(), minlength=len(degrees))
        if edges.row_counts is not None:
            degrees[start:stop] += 2.0 * edges.row_counts * (edges.row_counts - 1.0) * edges.of_copies
    return degrees


def check_bridges(audit: Audit, labels: np.ndarray, pieces: np.ndarray | None) -> Iterator[Finding]:
    """Check that bridges join components, that W has each, and that it is connected where they join all."""
    said = audit.run.groups[COMPONENTS].certificates
    ends, values = read_bridges(audit)
    yield equal(COMPONENTS, "bridges", said.get("bridges"), len(ends))
    inside = ((ends >= 0) & (ends < audit.run.n_points)).all()
    within = int((labels[ends[:, 0]] == labels[ends[:, 1]]).sum()) if inside else len(ends)
    yield none_wrong(COMPONENTS, "bridges join components", within, "both ends are in one")
    if pieces is None or not inside:
        return
    n_components = int(labels.max()) + 1
    across = connected_components(
        sp.coo_matrix((np.ones(len(ends)), (labels[ends[:, 0]], labels[ends[:, 1]])), (n_components,) * 2), False
    )[0]
    if audit.run.param(STAGE, "target_weight", 0.0) == 0.0:
        yield at_most(STAGE, "pieces of W", across, int(pieces.max()) + 1, note="components joined by bridges")
    yield from check_bridge_entries(audit, ends, values)


def check_bridge_entries(audit: Audit, ends: np.ndarray, values: np.ndarray) -> Iterator[Finding]:
    """Check that W has each bridge (b, 2) with at least its value (b,), less what labels take off."""
    missing = 0
    for block in np.unique(ends[:, 0] // audit.run.block_rows).tolist() if len(ends) else ():
        here = np.flatnonzero(ends[:, 0] // audit.run.block_rows == block)
        rows = read_block(audit, STAGE, block)
        in_w = np.asarray(rows[ends[here, 0] - audit.run.blocks[block][0], ends[here, 1]]).ravel()
        missing += int((in_w < values[here] * (1 - float(audit.run.param(STAGE, "target_weight", 0.0))) * 0.999).sum())
    yield none_wrong(STAGE, f"entries of {len(ends)} bridges", missing, "bridges that W lacks")
