"""What the certificates of kernel discriminants mean."""

from scalemani.interfaces.report.certificates import Meaning

MEANINGS = {
    "kernel_discriminants": {
        "between_shares": Meaning("share of the variance along each axis that lies between classes")
    },
}
