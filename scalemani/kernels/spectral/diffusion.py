"""Diffusion maps from eigenvectors of L v = lambda D v.

Source: Coifman and Lafon, Diffusion maps, Applied and Computational Harmonic Analysis 2006, section 2.3.
"""

import numpy as np


def diffusion_scales(eigenvalues: np.ndarray, time: float) -> np.ndarray:
    """Return |mu|^time (d,) of each column, mu = 1 - lambda; exactly one for time 0.

    The sign of mu^time would only turn a column that has no sign of its own, and is none where `time` is no integer.
    """
    return np.abs(1.0 - eigenvalues) ** time
