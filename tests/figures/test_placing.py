"""Names of classes on a map: on their clusters, none over another, all of them readable."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.figures.composing import checked_look
from scalemani.figures.drawing import Discs, Words, font_of
from scalemani.figures.picture import draw
from scalemani.figures.placing import ClassPlaces, place_boxes
from scalemani.figures.themes import READABLE, THEMES, contrast


def clusters(n_classes: int, n_points: int = 6000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (N, 2), their classes and the centres of these."""
    draws = np.random.default_rng(5)
    centres = draws.normal(size=(n_classes, 2)) * 10
    classes = np.arange(n_points) % n_classes
    return centres[classes] + draws.normal(size=(n_points, 2)) * 0.5, classes, centres


def ink(words: Words) -> np.ndarray:
    """The box of what is drawn of a text, in pixels: left, top, right, bottom."""
    return np.array(font_of(words.size).getbbox(words.text, anchor=f"{words.anchor}m")) + np.tile([words.x, words.y], 2)


def overlapping(boxes: np.ndarray) -> np.ndarray:
    """Pairs of boxes (n, 4) that have more than an edge in common."""
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    over = ((low < boxes[None, :, 2:]) & (boxes[None, :, :2] < high)).all(axis=2)
    return np.argwhere(np.triu(over, 1))


@pytest.mark.parametrize("size", [1200, "slide", "500x700"])
@pytest.mark.parametrize("n_classes", [2, 60])
def test_names_do_not_overlap_and_are_all_there(n_classes, size):
    points, classes, _ = clusters(n_classes)
    names = np.array([f"cluster number {number}" for number in range(n_classes)])
    drawing, _ = draw(points, names[classes], checked_look(size, "", "map"))
    shown = [part for part in drawing.parts if isinstance(part, Words) and part.halo]
    assert {part.text for part in shown} == set(names)
    boxes = np.array([ink(part) for part in shown])
    assert len(overlapping(boxes)) == 0
    assert (boxes >= 0).all()
    assert (boxes <= [drawing.width, drawing.height] * 2).all()
    assert min(part.size for part in shown) >= 8


def sheet() -> dict[str, tuple[object, object, dict]]:
    """Points, labels and look of the kinds of pictures that have no sixty classes."""
    points, classes, _ = clusters(12)
    missing = np.where(points[:, 0] > 6, np.nan, np.hypot(*points.T))
    return {
        "two classes": (points, np.array(["left", "right"])[classes % 2], {}),
        "values, some missing": (points, {"distance from the origin": missing}, {}),
        "five points": (np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]), list("abcde"), {"legend": "map"}),
        "panels": (points, {"cluster": classes, "height": points[:, 1]}, {}),
        "ten million": (np.tile(points.astype(np.float32), (10_000_000 // len(points) + 1, 1))[:10_000_000], None, {}),
    }


@pytest.mark.parametrize("kind", sheet())
def test_no_text_of_a_picture_lies_over_another(kind):
    points, labels, look = sheet()[kind]
    drawing, _ = draw(points, labels, checked_look(720, kind, **look))
    shown = [part for part in drawing.parts if isinstance(part, Words)]
    assert kind in {part.text for part in shown}
    assert any(f"{len(points):,} points" in part.text for part in shown)
    boxes = np.array([ink(part) for part in shown])
    assert len(overlapping(boxes)) == 0
    assert (boxes >= 0).all()
    assert (boxes <= [drawing.width, drawing.height] * 2).all()


def test_a_lone_cluster_has_its_name_on_it():
    points, classes, _ = clusters(3)
    points[classes == 0] += [200, 0]
    drawing, _ = draw(points, np.array(["far", "b", "c"])[classes], checked_look(900, "", "map"))
    far = next(part for part in drawing.parts if isinstance(part, Words) and part.text == "far")
    left, _, right, _ = ink(far)
    assert drawing.width * 0.85 < (left + right) / 2


def test_names_of_few_points_hide_none_of_them():
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    drawing, _ = draw(points, np.array(list("abcde")), checked_look(720, "", "map"), most_discs=5)
    boxes = np.array([ink(part) for part in drawing.parts if isinstance(part, Words) and part.halo])
    (discs,) = (part for part in drawing.parts if isinstance(part, Discs))
    assert len(boxes) == len(discs.places) == 5
    nearest = np.clip(discs.places, boxes[:, None, :2], boxes[:, None, 2:])
    assert np.linalg.norm(nearest - discs.places, axis=2).min() > discs.radius / 2


def test_more_names_than_have_room_are_counted_below():
    points, classes, _ = clusters(250)
    names = np.array([f"a rather long name of class {number}" for number in range(250)])
    drawing, _ = draw(points, names[classes], checked_look(220, "", "auto"))
    shown = [part for part in drawing.parts if isinstance(part, Words)]
    named = [part for part in shown if part.halo]
    assert len(overlapping(np.array([ink(part) for part in named]))) == 0
    assert shown[-1].text == f"6,000 points, {250 - len(named)} names have no place"


def test_classes_are_named_beside_the_panel_up_to_twenty():
    points, classes, _ = clusters(21)
    for n_classes, on_map in ((20, False), (21, True)):
        drawing, _ = draw(points, classes % n_classes, checked_look(600, "", "auto"))
        assert any(part.halo for part in drawing.parts if isinstance(part, Words)) == on_map
    drawing, _ = draw(points, classes, checked_look(600, "", "beside"))
    assert {str(number) for number in range(21)} <= {part.text for part in drawing.parts if isinstance(part, Words)}


@settings(max_examples=30)
@given(n_boxes=st.integers(1, 40), seed=st.integers(0, 10**6), wide=st.floats(5, 80))
def test_boxes_never_overlap_and_stay_within_bounds(n_boxes, seed, wide):
    draws = np.random.default_rng(seed)
    anchors, bounds = draws.random((n_boxes, 2)) * [300, 200], (300, 200)
    extents = np.stack([draws.random(n_boxes) * wide + 5, np.full(n_boxes, 14.0)], axis=1)
    centres = place_boxes(anchors, extents, bounds)
    placed = np.isfinite(centres[:, 0])
    boxes = np.concatenate([centres - extents / 2, centres + extents / 2], axis=1)[placed]
    assert placed[0]
    assert len(overlapping(np.round(boxes, 6))) == 0
    assert (boxes >= -1e-9).all()
    assert (boxes[:, 2:] <= np.array(bounds) + 1e-9).all()


def test_the_densest_place_of_a_class_is_that_of_its_larger_part():
    places = ClassPlaces(2, np.array([[0.0, 1.0], [0.0, 1.0]]))
    draws = np.random.default_rng(5)
    points = np.concatenate([draws.normal([0.2, 0.7], 0.03, (700, 2)), draws.normal([0.8, 0.2], 0.03, (300, 2))])
    places.add(points[:, 0], points[:, 1], np.zeros(1000, np.int32))
    places.add(np.array([np.nan, 0.5]), np.array([0.5, 0.5]), np.array([1, 2], np.int32))
    np.testing.assert_allclose(places.densest()[0], [0.2, 0.3], atol=0.03)
    np.testing.assert_array_equal(places.sizes, [1000, 0])


@pytest.mark.parametrize("name", THEMES)
def test_names_stand_out_of_the_paper_as_text_must(name):
    theme = THEMES[name]
    for colour in np.random.default_rng(0).random((50, 3)):
        found = np.array(theme.readable(colour)) / 255
        assert contrast(found, np.array(theme.paper) / 255) > READABLE - 0.1
