import numpy as np
import pytest

from scalemani.kernels.repulsion.mesh.convolution import MeshConvolution
from scalemani.kernels.repulsion.mesh.fourier import batch_lanes, radices_of, transformed, twiddle_factors
from scalemani.kernels.repulsion.mesh.transforms import MESH_KERNELS, kernel_transform, padded_lengths


@pytest.mark.parametrize(("dtype", "least_error"), [(np.float32, 1e-6), (np.float64, 1e-14)])
@pytest.mark.parametrize("length", [2, 3, 4, 5, 30, 64, 72, 90, 225, 960, 1024])
def test_batches_are_transformed_as_numpy_does(dtype, least_error, length):
    lanes = batch_lanes(np.dtype(dtype))
    batch = np.random.default_rng(length).normal(size=(length, 2, lanes)).astype(dtype)
    expected = np.fft.fft(batch[:, 0].astype(np.float64) + 1j * batch[:, 1], axis=0)
    radices = radices_of(length)
    assert np.prod(radices) == length
    found = transformed(batch, np.empty_like(batch), radices, twiddle_factors(length, np.dtype(dtype)))
    error = np.abs(found[:, 0] + 1j * found[:, 1] - expected).max()
    assert error < least_error * np.abs(expected).max()


def whole_transform(values, lengths):
    """Return a kernel's transform at all wave numbers, from the halves that are stored."""
    for axis, length in enumerate(lengths):
        numbers = np.arange(length)
        values = values.take(np.minimum(numbers, length - numbers), axis=axis)
    return values


@pytest.mark.parametrize("kernel", MESH_KERNELS)
@pytest.mark.parametrize(("dtype", "least_error"), [(np.float32, 1e-6), (np.float64, 1e-14)])
@pytest.mark.parametrize("shape", [(5, 4), (40, 33), (17, 90), (6, 9, 4), (20, 17, 25)])
def test_convolution_is_a_product_of_transforms(kernel, dtype, least_error, shape):
    lengths = padded_lengths(shape, 20.0)
    transform = kernel_transform(kernel, lengths, 0.2, 3)
    parts = np.random.default_rng(0).normal(size=(3, *shape)).astype(dtype)
    spectrum = np.fft.fftn(parts.astype(np.float64).sum(axis=0), lengths, axes=range(len(shape)))
    whole = np.fft.ifftn(spectrum * whole_transform(transform.values, lengths)).real
    expected = whole[tuple(slice(size) for size in shape)]
    found = MeshConvolution(transform, np.dtype(dtype)).apply(parts, map)
    assert np.abs(found - expected).max() < least_error * np.abs(expected).max()


def test_padded_lengths_are_even_quick_to_transform_and_near():
    for needed in range(20, 5000, 7):
        (length,) = padded_lengths((needed,), 30.0)
        least = needed + min(needed, 31)
        assert length % 2 == 0
        assert length >= least
        assert length <= max(1.13 * (least + 16) + 1, 64)
        assert np.prod(radices_of(length)) == length


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
