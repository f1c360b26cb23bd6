"""The one compile decorator: serial, cached, and free of the GIL, so that callers run kernels side by side."""

from typing import Any

import numba

# Reassociation lets LLVM vectorise sums; the other fast-math flags would make isnan(nan) False and undo exact tricks.
REASSOCIATE = frozenset({"reassoc", "contract", "nsz"})

compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy")
compiled_sums: Any = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=set(REASSOCIATE))
