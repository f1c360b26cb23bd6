import doctest

import numpy as np
import pytest

from scalemani.functions import affinities, bandwidths, landmarks, minimizers, nonlinear, spectral
from scalemani.tuning import tune


@pytest.mark.parametrize("module", [affinities, bandwidths, landmarks, minimizers, nonlinear, spectral, tune])
def test_the_examples_in_docstrings_are_true(module):
    with np.printoptions(legacy=False):
        results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
