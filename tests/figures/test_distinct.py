"""Colours of many classes: the first are those of the palette, all can be told apart."""

import numpy as np

from scalemani.figures.distinct import difference, seen
from scalemani.figures.palette import NO_LABEL, PAPER, TEN_COLOURS, class_colours, rgb


def smallest_difference(colours: np.ndarray) -> float:
    """How far the two nearest colours are from each other, as they are told apart."""
    places = seen(colours)
    return min(difference(places[:, number + 1 :], places[:, [number]]).min() for number in range(len(colours) - 1))


def test_few_classes_have_the_ten_colours():
    np.testing.assert_array_equal(class_colours(10), rgb(TEN_COLOURS))
    np.testing.assert_array_equal(class_colours(60)[:10], rgb(TEN_COLOURS))


def test_many_classes_are_told_apart_from_each_other_and_from_what_is_no_class():
    ten = smallest_difference(rgb(TEN_COLOURS))
    assert smallest_difference(class_colours(20)) > 0.9 * min(ten, 0.1)
    assert smallest_difference(class_colours(60)) > 0.04
    others = np.concatenate([class_colours(60)[10:], rgb((PAPER, NO_LABEL))])
    assert smallest_difference(others) > 0.04


def test_lightness_of_oklab_is_that_of_its_definition():
    np.testing.assert_allclose(seen(np.array([[1.0, 1, 1]]))[0], [[1, 0, 0]], atol=1e-4)
    np.testing.assert_allclose(seen(np.array([[1.0, 0, 0]]))[0], [[0.6279554, 0.2248631, 0.1258463]], atol=1e-4)
