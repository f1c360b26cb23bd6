import doctest

import numpy as np
import pytest

from scalemani.functions import affinities, bandwidths, landmarks, minimizers, nonlinear, spectral, variational
from scalemani.tuning import tune

MODULES = (affinities, bandwidths, landmarks, minimizers, nonlinear, spectral, variational, tune)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_are_true(module):
    with np.printoptions(legacy=False):
        results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
