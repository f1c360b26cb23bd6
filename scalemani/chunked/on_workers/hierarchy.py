"""Coarse graphs where they fit: large ones on the workers, small ones in the memory of the driver."""

from scalemani.chunked.on_workers.graphs import SpreadGraph
from scalemani.chunked.on_workers.rows import ArrayPanels
from scalemani.chunked.on_workers.spread import Spread, n_spread_levels
from scalemani.chunked.on_workers.transfers import SpreadTransfer
from scalemani.kernels.arrays.tall import DistantRows
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.spectral.multilevel import GraphOperator, Multilevel, TransferOperator
from scalemani.records.coarse import StoredCoarseGraphs, level_folder


class SpreadLevels:
    """The stored coarse graphs of which the first are on the workers; the coarsest never is.

    Parameters
    ----------
    spread : where panels are worked on.
    stored : the coarse graphs.
    memory : the driver's workspace.
    """

    def __init__(self, spread: Spread, stored: StoredCoarseGraphs, memory: Workspace) -> None:
        self._spread, self._stored, self._memory = spread, stored, memory
        numbers = range(1, stored.read_count(stored.LEVELS, "levels") + 1)
        nonzeros = (stored.reader(stored.VALUES, level_folder(number)).zarr().shape[0] for number in numbers)
        levels = [(len(self.degrees(number)), found) for number, found in zip(numbers, nonzeros, strict=True)]
        self.n_spread = n_spread_levels(levels)

    def degrees(self, number: int) -> DistantRows:
        """Return the degrees (n,) of a coarse graph; the first is number 1."""
        return self._array(number, self._stored.DEGREES.name)

    def transfer(self, number: int, degrees: DistantRows) -> SpreadTransfer:
        """Return P from a graph to the coarse graph next to it: number 0 is the graph of the points.

        Parameters
        ----------
        number : of the finer graph.
        degrees : of the finer graph.
        """
        labels = self._array(number, self._stored.NODE_LABELS.name)
        memory = self._memory if number + 1 > self.n_spread else None
        return SpreadTransfer(self._spread, labels, degrees, self.degrees(number + 1), memory)

    def multilevel(self) -> Multilevel:
        """Return the coarse graphs at work."""
        finer: list[tuple[GraphOperator, TransferOperator]] = []
        for number in range(1, self.n_spread + 1):
            graph = SpreadGraph.of_level(self._spread, self._stored, number)
            finer.append((graph, self.transfer(number, graph.graph.degrees)))
        levels = self._stored.read_levels(self._memory.empty, self.n_spread + 1)
        return Multilevel(levels, self._memory, finer)

    def _array(self, number: int, name: str) -> ArrayPanels:
        folder = f"{level_folder(number)}/" if number else ""
        return ArrayPanels(self._stored.group, folder + name, self._spread.place.cache_bytes)
