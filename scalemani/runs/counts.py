"""What is counted as a run goes, and decides what its later stages take."""

from collections.abc import Mapping
from typing import Any

from scalemani.records.affinities import StoredSymmetricAffinities
from scalemani.records.coarse import StoredCoarseGraphs
from scalemani.store.groups import StageGroup


def counted(groups: Mapping[str, StageGroup]) -> dict[str, Any]:
    """Return fields of `Sizes`: the nonzeros of W once it is there, nodes and nonzeros of its coarse graphs.

    Raises
    ------
    CorruptChunkError
        Where a record does not say them as it should.
    """
    found: dict[str, Any] = {"counted_nonzeros": None, "counted_graphs": None}
    matrix, coarse = groups.get(StoredSymmetricAffinities.STAGE), groups.get(StoredCoarseGraphs.STAGE)
    if matrix is not None and matrix.complete:
        found["counted_nonzeros"] = matrix.certificate("nonzeros", int)
    if coarse is not None and coarse.complete:
        found["counted_graphs"] = StoredCoarseGraphs(coarse).graph_sizes
    return found
