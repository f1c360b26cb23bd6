"""The variational Nystrom method: a solver that makes points of the landmarks among their neighbours, by affinities."""

from scalemani.config.stages import Key, Stage

REDUCTIONS = {"variational-nystrom": "affinity_weights.block_weights"}
AFFINITY_WEIGHTS = Stage(
    "affinity_weights",
    ("work_points", "landmarks", "symmetric_affinities", "normalized_affinities"),
    by_block=False,
    solvers=tuple(REDUCTIONS),
    package=__name__,
    key=Key(version=2),
)
WEIGHTS_STAGES = (AFFINITY_WEIGHTS,)
