"""The variational Nystrom method: a solver that makes points of the landmarks among their neighbours, by affinities."""

from typing import TYPE_CHECKING

from scalemani.config.methods import MeaningsExtension, ReductionExtension
from scalemani.config.stages import Key, Stage

if TYPE_CHECKING:
    from scalemani.engine.sizes import Reduction
    from scalemani.interfaces.report.certificates import Meanings

NAME = "variational-nystrom"
AFFINITY_WEIGHTS = Stage(
    "affinity_weights",
    ("work_points", "landmarks", "symmetric_affinities", "normalized_affinities"),
    by_block=False,
    solvers=(NAME,),
    package=__name__,
    key=Key(version=2),
)


def reduction() -> "Reduction":
    """Return how many nonzeros Z has."""
    from scalemani.methods.variational import affinity_weights

    return affinity_weights


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.variational.interface import MEANINGS

    return MEANINGS


EXTENSIONS = (ReductionExtension(NAME, reduction, (AFFINITY_WEIGHTS,)), MeaningsExtension("affinity_weights", meanings))
