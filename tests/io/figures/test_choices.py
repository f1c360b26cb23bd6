"""Colours, groups and panels that one chooses, axes and figures of Matplotlib, and points drawn at other places."""

import sys

import matplotlib.figure
import matplotlib.pyplot as plt
import numpy as np
import pytest

import scalemani as sm
from scalemani.errors import ConfigError, DataError
from scalemani.io.figures import (
    checked_colours,
    checked_look,
    draw_on,
    drawn_embedding,
    embedding_figure,
    embedding_picture,
)
from scalemani.io.figures.look import class_colours, colours_of_labels, ramp

EMBEDDING = np.random.default_rng(0).normal(size=(3000, 2))
KINDS = np.array(["left", "middle", "right"])[np.digitize(EMBEDDING[:, 0], [-0.5, 0.5])]
PALE = np.array([0xD4, 0xD4, 0xD4])


def colours(labels, **choices):
    """The colours of labels, from 0 to 255, by the names of classes."""
    found = colours_of_labels(labels, len(labels), chosen=checked_colours(**choices))
    return dict(zip(found.classes, np.rint(found.colours * 255).astype(int).tolist(), strict=False))


def holds(picture, colour, within=12) -> bool:
    return bool((np.abs(np.asarray(picture).astype(int) - colour).max(axis=2) < within).any())


def test_palettes_are_names_lists_and_mappings():
    assert colours(KINDS)["left"] == np.rint(class_colours(1)[0] * 255).tolist()
    assert colours(KINDS, palette="colour-blind")["left"] == [0x1E, 0x4B, 0xFF]
    assert colours(KINDS, palette="tab10")["middle"] == [255, 127, 14]
    assert colours(KINDS, palette=["red", "#00ff00"]) == {
        "left": [255, 0, 0],
        "middle": [0, 255, 0],
        "right": [255, 0, 0],
    }
    mapped = colours(KINDS, palette={"right": "black"})
    assert (mapped["right"], mapped["left"]) == ([0, 0, 0], colours(KINDS)["left"])
    assert colours(np.array([1, 2, 2]), palette={2: "#010203"})["2"] == [1, 2, 3]
    assert colours(np.array([1.0, np.nan, 2.0]), palette={2.0: "#010203"})["2"] == [1, 2, 3]


def test_values_have_the_ends_and_the_map_that_are_chosen():
    values = np.linspace(0.0, 10.0, 3000)
    usual = colours_of_labels(values, 3000)
    assert usual.limits == pytest.approx((0.05, 9.95), abs=0.01)
    found = colours_of_labels(values, 3000, chosen=checked_colours(cmap="plasma", vmin=2, vmax=4))
    assert found.limits == (2, 4)
    assert (found.index[values <= 2] == 0).all()
    assert (found.index[values >= 4] == 255).all()
    np.testing.assert_allclose(found.colours, plt.get_cmap("plasma")(np.linspace(0, 1, 256))[:, :3], atol=1e-6)
    np.testing.assert_array_equal(
        usual.colours, ramp(("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"))
    )
    assert colours_of_labels(values, 3000, chosen=checked_colours(vmax=4)).limits == pytest.approx((0.05, 4), abs=0.01)


def test_points_of_other_groups_are_pale():
    picture, _ = drawn_embedding(EMBEDDING, KINDS, checked_look(300, colours=checked_colours(groups=["right"])))
    left, middle, right = (np.array(colour) for colour in colours(KINDS).values())
    assert holds(picture, right)
    assert not holds(picture, left)
    assert not holds(picture, middle)
    found = colours_of_labels(KINDS, 3000, chosen=checked_colours(groups="right"))
    np.testing.assert_array_equal(found.index == found.missing, KINDS != "right")


def test_each_class_has_a_panel_in_which_others_are_pale():
    condition = np.where(EMBEDDING[:, 1] > 0, "up", "down")
    figure = embedding_figure(EMBEDDING, KINDS, checked_look(300), panels=condition)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["down", "up"]
    assert [axes.get_legend() is not None for axes in figure.axes] == [False, True]
    assert [text.get_text() for text in figure.axes[1].get_legend().get_texts()] == [
        "left",
        "middle",
        "right",
        "others",
    ]
    pale = [(np.abs(axes.images[0].get_array()[:, :, :3].astype(int) - PALE).max(axis=2) < 10) for axes in figure.axes]
    bottom = np.asarray(figure.axes[1].images[0].get_array())[105:]
    ink = 255 - bottom.astype(int).reshape(-1, 3)
    assert (np.ptp(ink, axis=1) < 3).mean() > 0.98  # pale points have a rim of no other colour
    middle = len(pale[0]) // 2
    counts = [(shown[: middle - 5].sum(), shown[middle + 5 :].sum()) for shown in pale]
    assert counts[0][0] > 20 * counts[0][1]  # what is up is pale in the panel of those that are down
    assert counts[1][1] > 20 * counts[1][0]
    alone = embedding_figure(EMBEDDING, None, checked_look(300), panels=condition)
    assert [axes.get_title(loc="left") for axes in alone.axes] == ["down", "up"]


def test_axes_of_matplotlib_are_drawn_on_and_figures_returned(tmp_path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(6, 3), dpi=100)
    right.plot([0, 1], [0, 1])
    draw_on(left, EMBEDDING, KINDS, checked_look(title="A map"))
    assert left.get_title() == "A map"
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["left", "middle", "right"]
    width, height = left.get_window_extent().size
    assert left.images[0].get_array().shape[:2] == (int(height), int(width))
    figure.canvas.draw()
    assert holds(np.asarray(figure.canvas.buffer_rgba())[..., :3], colours(KINDS)["right"])
    plt.close(figure)
    made = embedding_figure(EMBEDDING, KINDS, checked_look(300))
    assert isinstance(made, matplotlib.figure.Figure)
    made.savefig(tmp_path / "a.png", dpi=100)
    embedding_picture(EMBEDDING, tmp_path / "b.png", KINDS, checked_look(300))
    np.testing.assert_array_equal(plt.imread(tmp_path / "a.png")[..., :3], plt.imread(tmp_path / "b.png")[..., :3])
    with pytest.raises(ConfigError, match="at most 1 panels on axes"):
        draw_on(left, EMBEDDING, {"a": KINDS, "b": KINDS})


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"palette": "tab1"}, "unknown palette 'tab1'"),
        ({"palette": "viridis"}, "unknown palette 'viridis'"),
        ({"palette": ["nocolour"]}, "a colour must be #rrggbb"),
        ({"palette": {"a": 3}}, "a colour must be #rrggbb"),
        ({"palette": []}, "a colour or more"),
        ({"cmap": "virids"}, "did you mean 'viridis'"),
        ({"vmin": 3, "vmax": 3}, "vmin must be below vmax, got 3 and 3"),
        ({"groups": ["lef"]}, "no class 'lef' among the groups: did you mean 'left'"),
    ],
)
def test_choices_that_cannot_be_are_refused(choices, message):
    with pytest.raises(ConfigError, match=message):
        colours(KINDS, **choices)


def test_groups_and_panels_are_of_classes():
    look = checked_look(300, colours=checked_colours(groups=["1"]))
    with pytest.raises(ConfigError, match="groups are of classes"):
        drawn_embedding(EMBEDDING, EMBEDDING[:, 0], look)
    with pytest.raises(ConfigError, match="groups are classes of labels"):
        drawn_embedding(EMBEDDING, None, look)
    with pytest.raises(ConfigError, match="panels are of classes"):
        drawn_embedding(EMBEDDING, KINDS, panels=EMBEDDING[:, 0])
    with pytest.raises(ConfigError, match="at most 12 panels"):
        drawn_embedding(EMBEDDING, KINDS, panels=np.arange(3000) % 13)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    points = np.vstack([EMBEDDING[:300] + 6, EMBEDDING[300:600] - 6])
    return sm.SpectralClustering(2, perplexity=5, store=tmp_path_factory.mktemp("model") / "run").fit(points), points


def test_models_and_runs_draw_points_at_other_places(model, tmp_path):
    fitted, points = model
    for drawn, name in ((fitted, "clusters"), (fitted.run_, "clusters of the run")):
        picture = np.asarray(drawn.plot(size=300, positions=points))
        expected = drawn_embedding(points, {name: fitted.labels_}, checked_look(300))[0]
        np.testing.assert_array_equal(picture, np.asarray(expected))
        with pytest.raises(DataError, match="3000 rows for 600 points"):
            drawn.plot(positions=EMBEDDING)
    axes = plt.figure().add_subplot()
    assert fitted.plot(fitted.labels_, positions=points, ax=axes) is axes
    assert len(axes.images) == 1
    plt.close(axes.figure)
    figure = fitted.plot(fitted.labels_, positions=points, figure=True, palette="colour-blind", panels=fitted.labels_)
    assert len(figure.axes) == 2
    with pytest.raises(ConfigError, match="one of path, ax and figure"):
        fitted.plot(figure=True, path=tmp_path / "a.png")


def test_the_command_has_the_same_choices(model, tmp_path, scalemani):
    fitted, points = model
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as arrow

    table = arrow.table({"X": points[:, 0], "Y": points[:, 1], "Z": points[:, 0] * 9})
    parquet.write_table(table, tmp_path / "points.parquet")
    np.save(tmp_path / "side.npy", np.where(points[:, 1] > 0, "up", "down"))
    status, _, error = scalemani(
        *("plot", fitted.run_.store.root, tmp_path / "a.png", "--size", 300, "--labels", "run"),
        *("--positions", f"{tmp_path}/points.parquet::X,Y", "--palette", "0=black", "--palette", "1=#ff0000"),
        *("--group", "0", "--panels", tmp_path / "side.npy"),
    )
    assert (status, error) == (0, "")
    expected = fitted.run_.plot(
        {"clusters of the run": fitted.labels_},
        300,
        positions=points,
        palette={0: "black", 1: "#ff0000"},
        groups=[0],
        panels=np.where(points[:, 1] > 0, "up", "down"),
    )
    found = np.rint(plt.imread(tmp_path / "a.png")[..., :3] * 255).astype(int)
    np.testing.assert_array_equal(found, np.asarray(expected))
    status, _, error = scalemani(
        "plot", fitted.run_.store.root, tmp_path / "b.png", "--palette", "a=red", "--palette", "tab10"
    )
    assert (status, "one NAME, or CLASS=COLOUR" in error) == (2, True)


def test_without_matplotlib_one_message_says_what_to_install(model, monkeypatch):
    for name in ("matplotlib", "matplotlib.style", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    for choices in ({}, {"figure": True}, {"cmap": "plasma"}, {"palette": "tab10"}):
        with pytest.raises(ConfigError, match=r"pip install 'matplotlib>=\S+' 'pillow>=\S+'"):
            model[0].plot(**choices)
