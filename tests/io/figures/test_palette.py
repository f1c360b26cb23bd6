"""Colours of labels: all classes can be told apart, values follow a ramp, points without a label are pale."""

import numpy as np
import pytest
from scipy.optimize import nnls

from scalemani.io.figures.look import (
    FURTHER_COLOURS,
    NO_LABEL,
    PALETTES,
    TWELVE_COLOURS,
    VIRIDIS,
    class_colours,
    colours_of_labels,
    ramp,
    rgb,
)
from scalemani.io.sources import open_labels

PAPER = "ffffff"
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


def seen(colours: np.ndarray) -> np.ndarray:
    """Colours (n, 3) as places (2, n, 3) in Oklab: as most people see them, and with deuteranopia."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    dichromatic = np.clip(linear @ DEUTERANOPIA.T, 0, 1)
    return np.stack([np.cbrt(light @ TO_CONES.T) @ TO_OKLAB.T for light in (linear, dichromatic)])


def difference(places: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How far places (2, n, 3) are from another one (2, 1, 3): (n,)."""
    usual, dichromatic = np.linalg.norm(places - other, axis=2)
    return np.minimum(usual, 2 * dichromatic)


def smallest_difference(colours: np.ndarray) -> float:
    """How far the two nearest colours are from each other, as they are told apart."""
    places = seen(colours)
    return min(difference(places[:, number + 1 :], places[:, [number]]).min() for number in range(len(colours) - 1))


def test_further_colours_are_each_the_farthest_from_all_before():
    axis = np.linspace(0, 1, STEPS)
    choices = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    lightness = seen(choices)[0][:, 0]
    choices = choices[(lightness > DARKEST) & (lightness < LIGHTEST)]
    places, distances, chosen = seen(choices), np.full(len(choices), np.inf), []
    for colour in rgb(*TWELVE_COLOURS, PAPER, NO_LABEL).astype(float):
        distances = np.minimum(distances, difference(places, seen(colour[None])))
    for _ in FURTHER_COLOURS.split():
        farthest = int(np.argmax(distances))
        chosen.append(bytes(np.rint(choices[farthest] * 255).astype(np.uint8)).hex())
        distances = np.minimum(distances, difference(places, places[:, farthest : farthest + 1]))
    assert chosen == FURTHER_COLOURS.split()


def test_few_classes_have_the_twelve_colours():
    np.testing.assert_array_equal(class_colours(12), rgb(*TWELVE_COLOURS))
    np.testing.assert_array_equal(class_colours(60)[:12], rgb(*TWELVE_COLOURS))


def test_many_classes_are_told_apart_from_each_other_and_from_what_is_no_class():
    assert smallest_difference(rgb(*TWELVE_COLOURS)) > 0.15
    assert smallest_difference(class_colours(20)) > 0.09
    assert smallest_difference(class_colours(60)) > 0.04
    others = np.concatenate([class_colours(60)[12:], rgb(PAPER, NO_LABEL)])
    assert smallest_difference(others) > 0.04


def test_lightness_of_oklab_is_that_of_its_definition():
    np.testing.assert_allclose(seen(np.array([[1.0, 1, 1]]))[0], [[1, 0, 0]], atol=1e-4)
    np.testing.assert_allclose(seen(np.array([[1.0, 0, 0]]))[0], [[0.6279554, 0.2248631, 0.1258463]], atol=1e-4)


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64])
def test_classes_that_are_numbers_have_names_of_all_their_digits(kind):
    numbers = np.array([1234567, 1234568, 2**53], kind)
    assert [int(name) for name in colours_of_labels(numbers, 3).classes] == numbers.tolist()


def test_colours_of_labels_by_kind():
    assert colours_of_labels(["b", "a", "b"], 3).classes == ("a", "b")
    assert colours_of_labels([1.0, 2.0, 2.0], 3).classes == ("1", "2")
    assert colours_of_labels(np.arange(3000), 3000).classes == ()
    along = colours_of_labels(np.linspace(0, 1, 101), 101)
    assert along.classes == ()
    assert (np.diff(along.index) >= 0).all()
    assert along.limits == pytest.approx((0.005, 0.995))
    assert colours_of_labels(["10", "2", "²"], 3).classes == ("2", "10", "²")
    assert len(np.unique(class_colours(256), axis=0)) == 256
    assert len(class_colours(300)) == 300
    assert len(colours_of_labels([f"class {i}" for i in range(300)], 300).colours) == 300


def test_points_without_a_label_are_pale_and_last_and_no_class():
    for labels in ([2.0, np.nan, 10.0], ["b2", None, "b10"], np.array(["b2", "", "b10"])):
        found = colours_of_labels(labels, 3)
        assert [name.strip("b") for name in found.classes] == ["2", "10"]
        assert (list(found.index), found.missing) == ([0, 2, 1], 2)
        assert np.ptp(found.colours[2]) == 0
        assert found.colours[2].min() > 0.8
    values = colours_of_labels([0.5, np.nan, 0.25, 0.75], 4)
    assert list(values.index == values.missing) == [False, True, False, False]
    assert values.index[2] == 0
    assert colours_of_labels(["1", "2"], 2).missing is None


def test_categories_keep_their_own_order_and_others_the_natural_one(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    codes = arrow.array([2, 0, 1, None], arrow.int8())
    names = arrow.array(["low", "mid", "high"])
    for ordered, expected in ((True, ("low", "mid", "high")), (False, ("high", "low", "mid"))):
        column = arrow.DictionaryArray.from_arrays(codes, names, ordered=ordered)
        parquet.write_table(arrow.table({"level": column}), tmp_path / "levels.parquet")
        labels = open_labels(tmp_path / "levels.parquet", 4)
        found = colours_of_labels(labels, 4)
        assert found.classes == expected
        assert [(*found.classes, "")[place] for place in found.index] == ["high", "low", "mid", ""]
        assert colours_of_labels(labels[[1, 0]], 2).classes == tuple(name for name in expected if name != "mid")


def test_the_ramp_of_values_gets_lighter():
    assert (np.diff(ramp(VIRIDIS) @ [0.2126, 0.7152, 0.0722]) > -1e-3).all()


@pytest.mark.parametrize("palette", sorted(PALETTES))
def test_no_colour_of_a_palette_is_near_a_mixture_of_others(palette):
    colours = class_colours(12, palette) * 255.0
    for number, colour in enumerate(colours):
        others = np.delete(colours, number, axis=0)
        # Parts of the others that add up to one: a row of much weight.
        parts, _ = nnls(np.vstack([others.T, np.full(11, 1e4)]), np.append(colour, 1e4))
        assert parts.sum() == pytest.approx(1, abs=1e-3)
        assert np.linalg.norm(parts @ others - colour) > 40


# Machado and others (2009), table 1: protanopia and tritanopia.
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
TRITANOPIA = np.array(
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
)


@pytest.mark.parametrize("vision", [np.eye(3), DEUTERANOPIA, PROTANOPIA, TRITANOPIA])
def test_the_palette_for_the_colour_blind_is_told_apart_with_any_kind_of_colour_vision(vision):
    colours = class_colours(12, "colour-blind")
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    places = np.cbrt(np.clip(linear @ vision.T, 0, 1) @ TO_CONES.T) @ TO_OKLAB.T
    away = np.linalg.norm(places[:, None] - places, axis=2)
    assert away[np.triu_indices(12, 1)].min() > 0.1
