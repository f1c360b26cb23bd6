"""Principal components of points that are combinations of landmarks: Z alone is formed, and no neighbour graph."""

from typing import TYPE_CHECKING

from scalemani.config.methods import CheckExtension, MeaningsExtension, MethodRoute
from scalemani.config.stages import LINEAR_ROUTE, Key, Stage

if TYPE_CHECKING:
    from scalemani.audit.verifying import Check
    from scalemani.interfaces.report.certificates import Meanings

PRINCIPAL_COMPONENTS = Stage(
    "principal_components",
    ("points", "landmarks", "landmark_weights"),
    package=__name__,
    key=Key(version=3, parameters_of=("landmark_embedding",)),
)
ROUTE = (*LINEAR_ROUTE, PRINCIPAL_COMPONENTS)


def meanings() -> "Meanings":
    """Return the meanings of certificates."""
    from scalemani.methods.pca.interface import MEANINGS

    return MEANINGS


def check() -> "Check":
    """Return the check of an audit."""
    from scalemani.methods.pca.audit import check_principal

    return check_principal


EXTENSIONS = (
    MethodRoute("pca", ROUTE),
    MeaningsExtension(PRINCIPAL_COMPONENTS.name, meanings),
    CheckExtension(PRINCIPAL_COMPONENTS.name, check),
)
