"""Areas of classes are as large as their shares of the points where these are mixed, in colours of theirs alone."""

import numpy as np
import pytest

from scalemani.io.figures import checked_look, drawn_embedding
from scalemani.io.figures.look import PALETTES, THEMES, LabelColours, checked_colours, class_colours, rgb
from scalemani.io.figures.panels import Panel

SIDE = 300
N_POINTS = 20_000
INKED = 0.2  # opacity from which the colour of a pixel is known
WITHIN = 0.03


def places() -> np.ndarray:
    """Points in clusters of several densities, from regions to lone discs."""
    generator = np.random.default_rng(4)
    middles, widths = generator.normal(size=(9, 2)) * 6, generator.uniform(0.3, 2.5, 9)
    cluster = generator.integers(0, 9, N_POINTS)
    return middles[cluster] + widths[cluster, None] * generator.normal(size=(N_POINTS, 2))


def seen_shares(picture: np.ndarray, colours: np.ndarray, paper: np.ndarray) -> np.ndarray:
    """The share of the inked pixels (n, 3) of each colour (K, 3): of that whose line to the paper is nearest."""
    ink, lines = picture - paper, colours - paper
    along = np.clip(ink @ lines.T / (lines**2).sum(axis=1), 0, 1)
    away = np.linalg.norm(ink[:, None] - along[..., None] * lines, axis=2)
    nearest = away.argmin(axis=1)
    inked = np.take_along_axis(along, nearest[:, None], axis=1)[:, 0] > INKED
    assert away.min(axis=1)[inked].max() < 2  # each pixel has the colour of a class, and of no mixture
    return np.bincount(nearest[inked], minlength=len(colours)) / inked.sum()


@pytest.mark.parametrize("theme", sorted(THEMES))
@pytest.mark.parametrize("palette", sorted(PALETTES))
@pytest.mark.parametrize("n_classes", range(2, 13))
def test_pixels_of_mixed_classes_are_in_the_proportion_of_their_points(n_classes, palette, theme):
    generator = np.random.default_rng(n_classes)
    weights = np.ones(n_classes) if n_classes % 2 else np.arange(1.0, n_classes + 1)
    classes = generator.choice(n_classes, N_POINTS, p=weights / weights.sum())
    look = checked_look(SIDE, theme=theme, colours=checked_colours(palette))
    picture, _ = drawn_embedding(places(), classes, look)
    panel = np.asarray(picture)[8 : SIDE - 8, 8 : SIDE - 8].reshape(-1, 3).astype(float)
    (paper,) = rgb(THEMES[theme].paper) * 255
    shares = seen_shares(panel, class_colours(n_classes, palette) * 255.0, paper)
    np.testing.assert_allclose(shares, np.bincount(classes) / N_POINTS, atol=WITHIN)


def test_what_a_pixel_shows_does_not_depend_on_how_rows_are_cut_into_blocks():
    rows, classes = places(), np.random.default_rng(0).integers(0, 5, N_POINTS).astype(np.int32)
    colours = LabelColours(classes, class_colours(5), tuple("abcde"))
    shown = []
    for cuts in ([], [1, 700], [9_999, 10_000, 10_001]):
        panel = Panel((80, 60), (0, 1), np.array([[-20.0, 20.0], [-20.0, 20.0]]), colours, False)
        for numbers in np.split(np.arange(N_POINTS), cuts):
            panel.add(numbers, rows[numbers])
        shown.append(panel.mixed.lowest)
    np.testing.assert_array_equal(shown[0], shown[1])
    np.testing.assert_array_equal(shown[0], shown[2])
