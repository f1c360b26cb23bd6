"""Colours that go on where a palette ends: each as far as can be from all before, also for those who see two hues."""

import functools

import numpy as np

STEPS = 24  # a channel, of the colours to choose from
DARKEST, LIGHTEST = 0.35, 0.85  # lightness (Oklab): beside these, colours are near black or near the paper
# Ottosson (2020), A perceptual color space for image processing: linear sRGB to cone responses, and these to Oklab.
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# Machado, Oliveira and Fernandes (2009), doi 10.1109/TVCG.2009.113, table 1: deuteranopia, the most frequent kind.
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def distinct_colours(first: np.ndarray, n_colours: int, avoided: np.ndarray) -> np.ndarray:
    """Return colours (n_colours, 3) float32 from 0 to 1: the first (F, 3), then others, each farthest from all before.

    The distance of two colours is that in Oklab, or half of what lies between them with deuteranopia where that is
    less: hues alone carry no further than to tens of classes.

    Parameters
    ----------
    first, avoided : (F, 3) colours to start with, and (A, 3) that no further one may come near
    n_colours : at most some thousand
    """
    keys = tuple(map(tuple, first.tolist())), tuple(map(tuple, avoided.tolist()))
    return sequence(*keys, max(n_colours, len(first)))[:n_colours]


@functools.lru_cache(maxsize=8)
def sequence(
    first: tuple[tuple[float, ...], ...], avoided: tuple[tuple[float, ...], ...], n_colours: int
) -> np.ndarray:
    """Return what `distinct_colours` does, for colours as tuples."""
    axis = np.linspace(0, 1, STEPS)
    choices = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    lightness = oklab(choices)[:, 0]
    choices = choices[(lightness > DARKEST) & (lightness < LIGHTEST)]
    places = seen(choices)
    chosen = list(first)
    distances = np.full(len(choices), np.inf)
    for colour in (*first, *avoided):
        distances = np.minimum(distances, difference(places, seen(np.array([colour]))))
    while len(chosen) < n_colours:
        farthest = int(np.argmax(distances))
        chosen.append(tuple(choices[farthest]))
        distances = np.minimum(distances, difference(places, places[:, farthest : farthest + 1]))
    return np.array(chosen, dtype=np.float32)


def seen(colours: np.ndarray) -> np.ndarray:
    """Return colours (n, 3) as places (2, n, 3) in Oklab: as most people see them, and with deuteranopia."""
    linear = linear_light(colours)
    dichromatic = np.clip(linear @ DEUTERANOPIA.T, 0, 1)
    return np.stack([np.cbrt(light @ TO_CONES.T) @ TO_OKLAB.T for light in (linear, dichromatic)])


def linear_light(colours: np.ndarray) -> np.ndarray:
    """Return the intensities of light, from 0 to 1, that the channels of sRGB colours stand for."""
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def oklab(colours: np.ndarray) -> np.ndarray:
    """Return colours (n, 3) in Oklab: lightness and two opponent hues."""
    return seen(colours)[0]


def difference(places: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return how far places (2, n, 3) are from another one (2, 1, 3): (n,)."""
    usual, dichromatic = np.linalg.norm(places - other, axis=2)
    return np.minimum(usual, 2 * dichromatic)
