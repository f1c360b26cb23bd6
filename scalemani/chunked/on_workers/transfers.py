"""P between a graph whose vectors are distant and the next coarser one, distant or in the memory of the driver."""

import functools
from dataclasses import dataclass

import numpy as np

from scalemani.chunked.on_workers.rows import Place
from scalemani.chunked.on_workers.spread import Spread
from scalemani.kernels.arrays.columns import panels
from scalemani.kernels.arrays.tall import DistantRows, Tall, written_panel
from scalemani.kernels.arrays.tiles import run
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.spectral.multilevel import prolong_rows, prolong_rows_beside, restrict_rows


@dataclass(frozen=True)
class PanelTransfer:
    """P as tasks see it: labels (N,) int32, degrees (N,) and (C,); the members of nodes are objects of a name."""

    labels: DistantRows
    degrees: DistantRows
    coarse_degrees: DistantRows
    members_name: str
    place: Place

    def put_members(self, first: int, members: np.ndarray, counts: np.ndarray) -> None:
        """Write the rows (n,) that are members of the nodes of a coarse panel, and how many each node has."""
        self.place.put(f"{self.members_name}/{first}-rows", members.astype(np.int64))
        self.place.put(f"{self.members_name}/{first}-counts", counts.astype(np.int64))

    def members(self, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the members of the nodes of a coarse panel, node by node, and how many each has."""
        integer = np.dtype(np.int64)
        rows = self.place.get(f"{self.members_name}/{first}-rows", integer)
        return rows, self.place.get(f"{self.members_name}/{first}-counts", integer)


def coarse_panels_panel(labels: DistantRows, panel_rows: int, panel: slice) -> np.ndarray:
    """Return the numbers of the coarse panels that members in a panel belong to."""
    return np.unique(labels[panel] // panel_rows)


def members_panel(transfer: PanelTransfer, unit: tuple[slice, list[slice]]) -> None:
    """Write the members of the nodes of a coarse panel, ascending, as the panels that have some say."""
    nodes, having = unit
    rows, labels = [], []
    for panel in having:
        found = transfer.labels[panel]
        inside = np.flatnonzero((found >= nodes.start) & (found < nodes.stop))
        rows.append(inside + panel.start)
        labels.append(found[inside] - nodes.start)
    of_members = np.concatenate(labels)
    members = np.concatenate(rows)[np.argsort(of_members, kind="stable")]
    transfer.put_members(nodes.start, members, np.bincount(of_members, minlength=nodes.stop - nodes.start))


def restrict_panel(transfer: PanelTransfer, vectors: DistantRows, out: Tall, nodes: slice) -> None:
    """Write a panel of P^T times vectors.

    Parameters
    ----------
    transfer : P.
    vectors : (N, m).
    out : (C, m), written.
    nodes : the panel, of rows of `out`.
    """
    members, counts = transfer.members(nodes.start)
    order = np.argsort(members)
    rows = members[order]
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    coarse_degrees = np.repeat(transfer.coarse_degrees[nodes], counts)[order]
    scale = np.sqrt(transfer.degrees.gather(rows) / coarse_degrees)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    with written_panel(out, nodes) as target:
        restrict_rows(indptr, places, scale, vectors.gather(rows), 0, target)


def nodes_of(transfer: PanelTransfer, panel: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes that rows of a panel belong to, the place of each row's node among them, and its scale."""
    nodes, places = np.unique(transfer.labels[panel], return_inverse=True)
    nodes = nodes.astype(np.int64)
    scale = np.sqrt(transfer.degrees[panel] / transfer.coarse_degrees.gather(nodes)[places])
    return nodes, places.astype(np.int32), scale


def prolong_panel(transfer: PanelTransfer, coarse: DistantRows, out: Tall, panel: slice) -> None:
    """Write a panel of P times coarse.

    Parameters
    ----------
    transfer : P.
    coarse : (C, m).
    out : (N, m), written.
    panel : which rows of it.
    """
    nodes, places, scale = nodes_of(transfer, panel)
    with written_panel(out, panel) as target:
        prolong_rows(places, scale, coarse.gather(nodes), 0, target)


@dataclass(frozen=True)
class Beside:
    """What is added to P times coarse: shares (N,) of a right side (N, m)."""

    smoothing: DistantRows
    right: DistantRows


def prolong_beside_panel(transfer: PanelTransfer, coarse: DistantRows, beside: Beside, out: Tall, panel: slice) -> None:
    """Write a panel of P times coarse, and what is added to it.

    Parameters
    ----------
    transfer, coarse, out, panel : as of `prolong_panel`.
    beside : what is added.
    """
    nodes, places, scale = nodes_of(transfer, panel)
    smoothing, right = beside.smoothing[panel], beside.right[panel]
    with written_panel(out, panel) as target:
        prolong_rows_beside(places, scale, coarse.gather(nodes), 0, smoothing, right, target)


class SpreadTransfer:
    """P between a distant graph of N nodes and the next coarser one of C.

    Parameters
    ----------
    spread : where panels are worked on.
    labels : (N,) int32, the coarse node of each node.
    degrees, coarse_degrees : (N,) and (C,) float64.
    memory : where vectors of the coarser graph are made if that is in the driver's memory, None if it is distant.
    """

    def __init__(
        self,
        spread: Spread,
        labels: DistantRows,
        degrees: DistantRows,
        coarse_degrees: DistantRows,
        memory: Workspace | None,
    ) -> None:
        self.workspace: Workspace = spread.workspace
        self._spread, self._memory = spread, memory
        self._transfer = PanelTransfer(labels, degrees, coarse_degrees, spread.new_name(), spread.place)
        self._coarse = panels(len(coarse_degrees))
        spread.remove_with(self, self._transfer.members_name)
        self._find_members(panels(len(labels)))

    def restricted(self, vectors: DistantRows) -> Tall:
        """Return P^T times vectors (N, m): (C, m) float32."""
        out = self._spread.rows((self._coarse[-1].stop, vectors.shape[1]), np.float32)
        run(self._spread.over(functools.partial(restrict_panel, self._transfer, vectors, out), self._coarse))
        return out if self._memory is None else self._spread.fetch(out, self._memory.empty(out.shape, out.dtype))

    def prolong(self, coarse: Tall, out: DistantRows) -> None:
        """Write P times coarse (C, m) into `out` (N, m)."""
        part = functools.partial(prolong_panel, self._transfer, self._distant(coarse), out)
        run(self._spread.over(part, panels(len(out))))

    def prolong_beside(self, coarse: Tall, smoothing: DistantRows, right: DistantRows, out: DistantRows) -> None:
        """Write diag(smoothing) right + P times coarse (C, m) into `out` (N, m).

        Parameters
        ----------
        coarse : (C, m) float32.
        smoothing : (N,), the share of the right side that is added to each row.
        right : (N, m), the right side.
        out : (N, m), written.
        """
        beside = Beside(smoothing, right)
        part = functools.partial(prolong_beside_panel, self._transfer, self._distant(coarse), beside, out)
        run(self._spread.over(part, panels(len(out))))

    def _distant(self, coarse: Tall) -> DistantRows:
        return self._spread.put(coarse) if isinstance(coarse, np.ndarray) else coarse

    def _find_members(self, rows: list[slice]) -> None:
        """Have the members of the nodes of each coarse panel found in the panels that have some."""
        having: list[list[slice]] = [[] for _ in self._coarse]
        find = functools.partial(coarse_panels_panel, self._transfer.labels, self._coarse[0].stop)
        for panel, numbers in zip(rows, self._spread.over(find, rows), strict=True):
            for number in numbers:
                having[number].append(panel)
        units = list(zip(self._coarse, having, strict=True))
        run(self._spread.over(functools.partial(members_panel, self._transfer), units))
