"""What the certificates of principal components mean."""

from scalemani.interfaces.report.certificates import Meaning

MEANINGS = {
    "principal_components": {"explained_share": Meaning("share of the variance that the components explain")},
}
