"""What the certificates of kernel principal components mean."""

from scalemani.interfaces.report.certificates import Meaning, good_if

LEAST_EIGENVALUE = good_if(
    lambda value, run: -value <= run.eigenvalues[-1],
    lambda run: (
        f"not below {-float(run.eigenvalues[-1]):.3g}: farther from zero than the last component, the kernel is not "
        "positive semidefinite"
    ),
)

MEANINGS = {
    "kernel_components": {
        "least_eigenvalue": Meaning("least eigenvalue of the kernel on the landmarks", LEAST_EIGENVALUE)
    },
}
