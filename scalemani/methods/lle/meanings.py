"""What the certificates of locally linear embeddings mean."""

from scalemani.interfaces.report.certificates import Meaning, none_of

MEANINGS = {
    "local_reconstruction": {
        "zero_eigenvalues": Meaning(
            "eigenvalues that are zero to rounding, beside that of the constant vector",
            none_of("vectors of the same eigenvalue are one basis of many: raise local_reconstruction.reg"),
        )
    },
}
