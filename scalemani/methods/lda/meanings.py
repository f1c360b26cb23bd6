"""What the certificates of linear discriminants mean."""

from scalemani.interfaces.report.certificates import Meaning

MEANINGS = {
    "discriminants": {"between_shares": Meaning("share of the variance along each axis that lies between classes")},
}
