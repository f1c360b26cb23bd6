"""Names of classes on a map: on their clusters, none over another, all of them readable."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.text import Text

from scalemani.io.figures import checked_look
from scalemani.io.figures.look import READABLE, THEMES, colours_of_labels, contrast, rgb
from scalemani.io.figures.panels import Panel
from scalemani.io.figures.picture import densest, draw, place_boxes, styled


def clusters(n_classes: int, n_points: int = 6000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (N, 2), their classes and the centres of these."""
    draws = np.random.default_rng(5)
    centres = draws.normal(size=(n_classes, 2)) * 10
    classes = np.arange(n_points) % n_classes
    return centres[classes] + draws.normal(size=(n_points, 2)) * 0.5, classes, centres


def drawn(points, labels, look, most_discs=0):
    """The figure of a picture; its texts, with their boxes (n, 4) in pixels; and its names on the map, with theirs."""
    with styled(look):
        figure, _ = draw(points, labels, look, None, most_discs)
        figure.canvas.draw()
        texts = [part for part in figure.findobj(Text) if part.get_visible() and part.get_text().strip()]
        texts = [part for part in texts if not part.get_path_effects()]  # outlines of names
        boxes = np.array([part.get_window_extent().extents for part in texts])
    named = [number for number, part in enumerate(texts) if part.get_zorder() == 6]
    return (
        figure,
        [part.get_text() for part in texts],
        boxes,
        [texts[number].get_text() for number in named],
        boxes[named],
    )


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
    figure, _, boxes, named, _ = drawn(points, names[classes], checked_look(size, "", "map"))
    assert set(named) == set(names)
    assert len(overlapping(boxes)) == 0
    assert (boxes >= 0).all()
    assert (boxes <= np.tile(figure.bbox.size, 2)).all()
    assert (boxes[:, 3] - boxes[:, 1]).min() >= 8


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
    figure, texts, boxes, _, _ = drawn(points, labels, checked_look(720, kind, **look))
    assert kind in texts
    assert any(f"{len(points):,} points" in text for text in texts)
    assert len(overlapping(boxes)) == 0
    assert (boxes >= 0).all()
    assert (boxes <= np.tile(figure.bbox.size, 2)).all()


def test_a_lone_cluster_has_its_name_on_it():
    points, classes, _ = clusters(3)
    points[classes == 0] += [200, 0]
    figure, _, _, named, boxes = drawn(points, np.array(["far", "b", "c"])[classes], checked_look(900, "", "map"))
    left, _, right, _ = boxes[named.index("far")]
    assert figure.bbox.width * 0.85 < (left + right) / 2


def test_names_of_few_points_hide_none_of_them():
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    figure, _, _, _, boxes = drawn(points, np.array(list("abcde")), checked_look(720, "", "map"), most_discs=5)
    (axes,) = figure.axes
    discs = next(part for part in axes.collections if isinstance(part, PathCollection))
    places = axes.transData.transform(discs.get_offsets())
    assert len(boxes) == len(places) == 5
    nearest = np.clip(places, boxes[:, None, :2], boxes[:, None, 2:])
    assert np.linalg.norm(nearest - places, axis=2).min() > 2


def test_more_names_than_have_room_are_counted_below():
    points, classes, _ = clusters(250)
    names = np.array([f"a rather long name of class {number}" for number in range(250)])
    figure, _, _, named, boxes = drawn(points, names[classes], checked_look(220, "", "auto"))
    assert len(overlapping(boxes)) == 0
    assert figure.get_supxlabel() == f"6,000 points, {250 - len(named)} names have no place"


def test_classes_are_named_beside_the_panel_up_to_twenty():
    points, classes, _ = clusters(21)
    for n_classes, on_map in ((20, False), (21, True)):
        _, _, _, named, _ = drawn(points, classes % n_classes, checked_look(600, "", "auto"))
        assert bool(named) == on_map
    _, texts, _, _, _ = drawn(points, classes, checked_look(600, "", "beside"))
    assert {str(number) for number in range(21)} <= set(texts)


def test_names_of_classes_are_shown_as_they_are():
    points, classes, _ = clusters(3)
    names = np.array(["_private", "$x^2$", "a" * 50])
    _, texts, _, _, _ = drawn(points, names[classes], checked_look(600))
    assert {"_private", "$x^2$", "a" * 31 + "…"} <= set(texts)


@settings(max_examples=30)
@given(n_boxes=st.integers(1, 40), seed=st.integers(0, 10**6), wide=st.floats(5, 80))
def test_boxes_never_overlap_and_stay_within_bounds(n_boxes, seed, wide):
    draws = np.random.default_rng(seed)
    anchors, bounds = draws.random((n_boxes, 2)) * [300, 200], np.array([300, 200])
    extents = np.stack([draws.random(n_boxes) * wide + 5, np.full(n_boxes, 14.0)], axis=1)
    centres = place_boxes(anchors, extents, bounds)
    placed = np.isfinite(centres[:, 0])
    boxes = np.concatenate([centres - extents / 2, centres + extents / 2], axis=1)[placed]
    assert placed[0]
    assert len(overlapping(np.round(boxes, 6))) == 0
    assert (boxes >= -1e-9).all()
    assert (boxes[:, 2:] <= bounds + 1e-9).all()


def test_the_densest_place_of_a_class_is_that_of_its_larger_part():
    draws = np.random.default_rng(5)
    points = np.concatenate([draws.normal([0.2, 0.7], 0.03, (700, 2)), draws.normal([0.8, 0.2], 0.03, (300, 2))])
    points = np.concatenate([points, [[np.nan, 0.5], [0.5, 0.5]]])
    labels = np.array(["a"] * 1000 + ["b", ""])
    panel = Panel((500, 500), (0, 1), np.array([[0.0, 1.0], [0.0, 1.0]]), colours_of_labels(labels, 1002), named=True)
    panel.add(np.arange(1002), points)
    np.testing.assert_allclose(densest(panel.densities)[0], [0.2, 0.7], atol=0.03)
    np.testing.assert_array_equal(panel.densities.sum(axis=0), [1000, 0])


@pytest.mark.parametrize("name", THEMES)
def test_names_stand_out_of_the_paper_as_text_must(name):
    theme = THEMES[name]
    for colour in np.random.default_rng(0).random((50, 3)):
        found = theme.readable(colour)
        assert contrast(found, rgb(theme.paper)[0]) > READABLE - 0.1
