"""Arrays whose entries are so large or so small that squares of sums of squares leave float64, brought near one.

Factors are powers of two: no digit is lost, except of entries that are negligible compared with the largest.
"""

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.rows.compressed import Points

ORDINARY_EXPONENT = 128  # beyond: fourth powers come near the ends of float64, of which sums over points take a part


def scale_exponent(parts: Iterable[np.ndarray]) -> int:
    """Return e of the power of two that arrays are divided by: 0 where the largest entry of all is of ordinary size."""
    largest = max((float(np.max(np.abs(part), initial=0.0)) for part in parts), default=0.0)
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > ORDINARY_EXPONENT else 0


def at_unit_scale(array: Points) -> tuple[Points, int]:
    """Return an array over 2^e, and e; the array itself where its largest entry is of ordinary size."""
    entries = array.data if sp.issparse(array) else array
    exponent = scale_exponent([entries])
    if exponent == 0:
        return array, 0
    scaled = np.ldexp(np.asarray(entries, np.float64), -exponent)
    return (
        sp.csr_matrix((scaled, array.indices, array.indptr), array.shape) if sp.issparse(array) else scaled
    ), exponent
