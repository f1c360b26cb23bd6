"""Convolution of meshes against products of whole transforms."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scalemani.kernels.repulsion.convolution import MESH_KERNELS, MeshConvolution, kernel_transform, padded_lengths


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


@pytest.mark.parametrize("shape", [(40, 33), (20, 17, 25)])
def test_threads_and_earlier_calls_change_no_bit(shape):
    transform = kernel_transform("student", padded_lengths(shape, 20.0), 0.2, 3)
    parts = np.random.default_rng(1).normal(size=(2, *shape)).astype(np.float32)
    alone = MeshConvolution(transform, np.dtype(np.float32)).apply(parts.copy(), map).copy()
    used = MeshConvolution(transform, np.dtype(np.float32))
    with ThreadPoolExecutor(3) as pool:
        for _ in range(2):
            np.testing.assert_array_equal(used.apply(parts.copy(), pool.map), alone)


@pytest.mark.parametrize("shape", [(9, 14), (5, 6, 7)])
def test_one_charge_gives_the_kernel_around_it(shape):
    lengths = padded_lengths(shape, 20.0)
    transform = kernel_transform("gaussian", lengths, 0.3, 3)
    convolution = MeshConvolution(transform, np.dtype(np.float64))
    kernel = np.fft.ifftn(whole_transform(transform.values, lengths)).real
    for place in (tuple(0 for _ in shape), tuple(size - 1 for size in shape), tuple(size // 2 for size in shape)):
        parts = np.zeros((1, *shape))
        parts[(0, *place)] = 1.0
        offsets = np.ix_(*(np.abs(np.arange(size) - at) for size, at in zip(shape, place, strict=True)))
        np.testing.assert_allclose(convolution.apply(parts, map), kernel[offsets], atol=1e-14)
