"""What is told of the classes of a map, against sums of their own; tables of numbers are no classes."""

import base64
import gzip
import json

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

import scalemani as sm
from scalemani.errors import DataError, ScalemaniWarning
from scalemani.interfaces.report.reading import Exchange, exchanged, read_map


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng, folder = np.random.default_rng(3), tmp_path_factory.mktemp("read")
    points = np.concatenate([rng.normal(size=(90, 4)), rng.normal(size=(30, 4)) + 12])
    np.save(folder / "points.npy", points)
    settings = {"doubt.measured": True, "doubt.null_points": 60}
    sm.TSNE(perplexity=5, max_iter=30, settings=settings, store=folder / "run").fit(points)
    return folder


def columns_of() -> dict[str, np.ndarray]:
    mixed, apart = np.arange(120) % 3, np.where(np.arange(120) < 90, "near", "far")
    return {"mixed": mixed, "apart": apart, "height": np.linspace(0, 1, 120)}


def test_classes_have_their_mean_scores_and_their_share_of_other_neighbours(folder):
    run, columns = sm.open_run(folder / "run"), columns_of()
    reading = read_map(run, columns)
    assert set(reading.classes) == set(reading.exchanges) == {"mixed", "apart"}
    assert [one.name for one in reading.classes["apart"]] == ["near", "far"]
    near = NearestNeighbors(n_neighbors=16).fit(np.load(folder / "points.npy"))
    lists = near.kneighbors(return_distance=False)[:, :15]
    for name, listed in reading.classes.items():
        values = columns[name].astype(str)
        assert sum(one.points for one in listed) == 120
        for one in listed:
            members = values == one.name
            others = (values[lists[members]] != one.name).mean()
            of_doubt = (run.doubt.believable, run.doubt.preservation, run.doubt.doubtful)
            expected = [np.asarray(of[...])[members].mean() for of in of_doubt]
            np.testing.assert_allclose(one[2:], [*expected, others, (120 - members.sum()) / 119], atol=1e-12)
    assert all(one.mixed == 0 for one in reading.classes["apart"])
    assert all(abs(one.mixed - one.by_chance) < 0.1 for one in reading.classes["mixed"])


def test_a_pair_of_classes_is_named_where_no_other_exchanges_as_many_points():
    first, second, third = Exchange("5", "8", 2, 90), Exchange("3", "7", 2, 80), Exchange("1", "2", 1, 70)
    assert exchanged((first, third)) == ", 3 of them in another class, most between 5 and 8"
    assert exchanged((first,)) == ", 2 of them in another class, most between 5 and 8"
    assert exchanged((first, second, third)) == ", 5 of them in another class"
    assert exchanged(()) == ""


def test_the_command_and_the_report_tell_them(folder, scalemani):
    columns = columns_of()
    rows = ["mixed,apart,height", *(f"{a},{b},{c:.3f}" for a, b, c in zip(*columns.values(), strict=True))]
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    status, said, warned = scalemani("doubt", folder / "run", "--labels", folder / "labels.csv")
    assert status == 0
    assert "height is left out: they are numbers with fractions" in warned
    assert scalemani("doubt", folder / "run", "--labels", folder / "labels.csv", "--quiet")[:2] == (0, said)
    assert "height" not in said
    (row,) = (line.split() for line in said.splitlines() if line.startswith("far "))
    assert row[1] == "30"
    assert row[-4:] == ["0", "%", "76", "%"]
    _, told, _ = scalemani("doubt", folder / "run", "--labels", folder / "labels.csv", "--json")
    assert json.loads(told)["classes"]["apart"][1]["points"] == 30
    run = sm.open_run(folder / "run")
    page = run.report(folder / "page.html", folder / "labels.csv", n_sampled=0).read_text()
    assert 'aria-label="what may be read of apart"' in page
    for shown in (page, run.live_map().document):
        packed = shown.split('id="array-doubtful">')[1].split("</script>")[0]
        doubtful = np.frombuffer(gzip.decompress(base64.b64decode(packed)), np.uint8)
        np.testing.assert_array_equal(doubtful, run.doubt.perturbation > 2)


def test_labels_are_read_as_measures_read_them(folder, scalemani, tmp_path):
    """Points without a class count in no class and as nobody's neighbours, and what measures refuse is refused."""
    run, apart = sm.open_run(folder / "run"), np.where(np.arange(120) < 90, 3.0, 1.0)
    values = np.where(np.arange(120) % 4 == 0, np.nan, apart)
    with pytest.warns(ScalemaniWarning, match="a: 30 of 120 points have no label"):
        named, texts = (
            read_map(run, {"a": one}) for one in (values, np.where(np.isnan(values), "", apart.astype(int).astype(str)))
        )
    assert named == texts
    lists = NearestNeighbors(n_neighbors=15).fit(np.load(folder / "points.npy")).kneighbors(return_distance=False)
    other = values + 2.0 * (np.arange(120) % 3 == 0)  # classes 1, 3 and 5, which mix
    read = {one.name: one for one in read_map(run, {"a": other}).classes["a"]}
    assert set(read) == {"1", "3", "5"}
    for name, one in read.items():
        members = other == float(name)
        near = other[lists[members]]
        assert one.points == members.sum()
        assert one.mixed == pytest.approx((near[~np.isnan(near)] != float(name)).mean())
        assert one.by_chance == pytest.approx((90 - members.sum()) / 89)
        assert one.preserved == pytest.approx(run.doubt.preservation[members].mean())
    for wrong in (np.linspace(0, 1, 120), np.full(120, np.nan)):
        np.save(tmp_path / "wrong.npy", wrong)
        status, _, said = scalemani("doubt", folder / "run", "--labels", tmp_path / "wrong.npy")
        refused = scalemani("measure", folder / "run", "--labels", tmp_path / "wrong.npy")[2]
        assert (status, said.split()[-4:]) == (2, refused.split()[-4:])
    with pytest.warns(ScalemaniWarning, match="has no value at any point"):
        run.report(tmp_path / "page.html", wrong, n_sampled=0)


def test_the_page_draws_points_where_they_are_and_says_nothing_of_the_map_then(folder, tmp_path):
    run = sm.open_run(folder / "run")
    places = np.random.default_rng(0).uniform(10, 20, (run.n_input_points, 2))
    np.save(tmp_path / "places.npy", places)
    page = run.report(tmp_path / "page.html", positions=tmp_path / "places.npy", n_sampled=0).read_text()
    assert "How to read this map" not in page
    described = json.loads(page.split('id="map-data">')[1].split("</script>")[0])
    assert [one["name"] for one in described["axes"]] == ["position 1", "position 2"]
    ends = [[one["low"], one["high"]] for one in described["axes"]]
    np.testing.assert_allclose(ends, np.stack([places.min(axis=0), places.max(axis=0)], axis=1), rtol=0.1)
    with pytest.raises(DataError, match="give one each"):
        run.report(tmp_path / "page.html", positions=places[:-1], n_sampled=0)
