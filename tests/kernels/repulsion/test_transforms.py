"""Transforms of kernels on meshes: padding, constants, and what splines make of them."""

import numpy as np
import pytest
from scipy import fft

from scalemani.kernels.repulsion.convolution import MESH_KERNELS, kernel_transform, padded_lengths


def whole_transform(values, lengths):
    """Return a kernel's transform at all wave numbers, from the halves that are stored."""
    for axis, length in enumerate(lengths):
        numbers = np.arange(length)
        values = values.take(np.minimum(numbers, length - numbers), axis=axis)
    return values


def test_padded_lengths_are_even_quick_to_transform_and_near():
    for needed in range(20, 5000, 7):
        (length,) = padded_lengths((needed,), 30.0)
        least = needed + min(needed, 31)
        assert length % 2 == 0
        assert length >= least
        assert length <= max(1.13 * (least + 16) + 1, 64)
        assert fft.next_fast_len(length, real=True) == length


def test_a_kernel_on_a_fine_mesh_is_itself_between_nodes():
    step, lengths = 0.1, (128, 128)
    transform = kernel_transform("student", lengths, step, 3)
    values = whole_transform(transform.values, lengths)
    waves = 2.0 * np.pi * np.fft.fftfreq(128)
    smoothed = values * np.sinc(waves / (2.0 * np.pi))[:, None] ** 8 * np.sinc(waves / (2.0 * np.pi)) ** 8
    found = transform.edge + transform.unit * np.fft.ifft2(smoothed).real[:40, :40]
    offsets = step * np.arange(40)
    expected = 1.0 / (1.0 + offsets[:, None] ** 2 + offsets**2)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("kernel", MESH_KERNELS)
@pytest.mark.parametrize("step", [1e-9, 1e-3, 0.3])
def test_a_kernel_is_one_at_no_distance_however_small_the_mesh(kernel, step):
    transform = kernel_transform(kernel, (64, 64), step, 3)
    assert transform.edge + transform.unit == pytest.approx(1.0, rel=1e-15)
    assert transform.edge < 1.0 or step == 1e-9
    corner = 2.0 * (32.0 * step) ** 2  # about: the last steps are bent
    least = corner / (1.0 + corner) if kernel == "student" else -np.expm1(-corner)
    assert 0.7 * least < transform.unit <= least


@pytest.mark.parametrize("degree", [3, 5])
def test_long_waves_are_those_of_the_kernel_and_of_what_splines_smooth_away(degree):
    lengths = (256, 256)
    values = kernel_transform("gaussian", lengths, 0.2, degree).values
    waves = 2.0 * np.pi * np.arange(5) / (256 * 0.2)
    smoothed = np.sinc(0.2 * waves / (2.0 * np.pi)) ** (2 * degree + 2)
    expected = np.pi / 0.2**2 * np.exp(-0.25 * np.add.outer(waves**2, waves**2))
    expected /= np.multiply.outer(smoothed, smoothed)
    np.testing.assert_allclose(values[:5, :5], expected, rtol=1e-4)
