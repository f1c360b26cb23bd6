"""The variational Nystrom method: a solver that makes points of the landmarks among their neighbours, by affinities."""

from scalemani.config.stages import Stage

REDUCTIONS = {"variational-nystrom": "affinity_weights.block_weights"}
AFFINITY_WEIGHTS = Stage(
    "affinity_weights",
    ("work_points", "landmarks", "symmetric_affinities", "normalized_affinities"),
    by_block=False,
    solvers=tuple(REDUCTIONS),
    version=2,
    package=__name__,
)
WEIGHTS_STAGES = (AFFINITY_WEIGHTS,)
