"""Names of other libraries: every door that refuses one says what it is called here."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.other_names import OTHER_CLASSES, OTHER_METHODS, OTHER_NAMES, OTHER_VALUES, method_here
from scalemani.config.params import Parameters, names_of_parameters
from scalemani.config.routes import ROUTES
from scalemani.errors import ConfigError

PAGE = Path(__file__).parents[2] / "pipelines/docs/coming_from.md"
POINTS = np.random.default_rng(0).normal(size=(60, 3))
PARAMETERS = {  # name elsewhere: argument or setting here
    "n_jobs": "workers",
    "n_iter": "max_iter",
    "angle": "layout.tolerance",
    "theta": "layout.tolerance",
    "initialization": "init",
    "n_init": "clustering.n_restarts",
    "gamma": "affinities.sigma",
    "min_dist": "exaggeration",
    "seed": "random_state",
    "callbacks_every_iters": "callbacks_every",
}


def names_of_ours():
    arguments = {name for kind in (sm.TSNE, sm.SpectralClustering) for name in inspect.signature(kind).parameters}
    return arguments | {name.rpartition(".")[2] for name in names_of_parameters()}


def test_the_table_has_no_name_of_ours_and_leads_to_what_there_is():
    one_method = {"kernel"}  # has this name; in all others it is an argument of another library
    ours = names_of_ours() - {"seed"} - one_method
    known = {*names_of_parameters(), "workers", "callbacks_every"}
    for name, meant in OTHER_NAMES.items():
        assert name not in ours
        assert meant.name in known


@pytest.mark.parametrize(("name", "word"), PARAMETERS.items())
def test_estimators_say_what_an_argument_of_another_library_is_called(name, word):
    with pytest.raises(TypeError, match=rf"^{name} is no argument of TSNE: here it is .*\b{re.escape(word)}\b"):
        sm.TSNE(**{name: 3})


@pytest.mark.parametrize(("name", "word"), {**PARAMETERS, "n_iter": "max_iter",
                                            "min_dist": "exaggeration"}.items())  # fmt: skip
@pytest.mark.parametrize("stage", ["", "layout."])
def test_settings_say_what_a_parameter_of_another_library_is_called(name, word, stage):
    if name == "seed":
        return
    with pytest.raises(ConfigError, match=rf"{name}'?: here it is .*\b{re.escape(word)}\b"):
        sm.TSNE(settings={stage + name: 3}).fit(POINTS)


def test_functions_with_settings_and_grids_say_it_too():
    affinities = np.exp(-((POINTS[:, None] - POINTS) ** 2).sum(axis=2))
    with pytest.raises(ConfigError, match=r"settings has no 'angle': here it is settings\['layout\.tolerance'"):
        sm.minimize(affinities, method="t-sne", settings={"angle": 0.5})
    with pytest.raises(ConfigError, match="TSNE has no parameter 'n_iter': here it is max_iter"):
        sm.tune(sm.TSNE(), {"n_iter": [10]}, POINTS)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["embed", "--n-jobs", "3"], r"No such option: --n-jobs: here it is --workers \("),
        (["embed", "--angle", "3"], "here it is --set layout.tolerance=VALUE"),
        (["plan", "--perplexity", "3"], "here it is --set affinities.perplexity=VALUE"),
        (["embed", "--set", "gamma=3"], r"unknown stage 'gamma': here it is affinities\.sigma"),
        (["embed", "--set", "layout.angle=3"], r"unknown parameter layout\.angle: here it is layout\.tolerance"),
        (["info", "--n-jobs", "3"], r"No such option: --n-jobs \("),  # which has no workers
        (["embed", "--min-dist", "0.1"], r"--min-dist: here it is --set layout.late_exaggeration=VALUE \(above 1"),
        (["embed", "--method", "umap"], r"unknown method 'umap': here it is t-sne \(UMAP is no method here"),
        (["tune", "--method", "TSNE"], "unknown method 'TSNE': here it is t-sne; allowed: "),
        (["embed", "--metric", "Cosine"], "did you mean 'cosine'"),
        (["plan", "--set", "affinities.kind=rbf"], r"here it is 'gaussian' \(its width is affinities\.sigma\)"),
    ],
)
def test_the_command_line_says_it_too(scalemani, tmp_path, words, answer):
    np.save(tmp_path / "points.npy", POINTS)
    command, *options = words
    places = [tmp_path / "points.npy", tmp_path / "run"][: 1 + (command != "info")]
    status, _, error = scalemani(command, *places, *options)
    assert status == 2
    assert re.search(answer, error)


def test_methods_and_classes_of_other_libraries_lead_to_ours():
    assert all(ours.name in ROUTES for ours in OTHER_METHODS.values())
    assert not set(OTHER_METHODS) & set(ROUTES)
    assert {method_here(name).name for name in ("t_SNE", "FIt-SNE", "openTSNE", "UMAP")} == {"t-sne"}
    assert {method_here(name).name for name in ("Leiden", "louvain", "clustering")} == {"spectral-clustering"}
    for name, ours in OTHER_CLASSES.items():
        assert hasattr(sm, ours.name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}': here it is {ours.name}"):
            getattr(sm, name)


def test_values_of_other_libraries_lead_to_ours_and_are_none_of_ours():
    assert set(OTHER_VALUES) <= set(names_of_parameters())
    for parameter, values in OTHER_VALUES.items():
        for theirs, ours in values.items():
            assert Parameters().with_values({parameter: ours.name}).value(parameter) == ours.name
            if parameter == "layout.init":  # where any other text may be a file
                continue
            with pytest.raises(ConfigError, match=f", got '{theirs}': here it is '{ours.name}'"):
                Parameters().with_values({parameter: theirs})


@pytest.mark.parametrize(
    ("fit", "answer"),
    [
        (lambda: sm.SpectralClustering(affinity="rbf").fit(POINTS), r"here it is 'gaussian' \(.*'affinities\.sigma'\]"),
        (lambda: sm.LaplacianEigenmaps(affinity="nearest_neighbors").fit(POINTS), "here it is 'uniform'"),
        (lambda: sm.LaplacianEigenmaps(solver="arpack").fit(POINTS), r"here it is 'refine' \(to residual"),
        (lambda: sm.knn_graph(POINTS, 5, method="kd_tree"), "here it is 'exact'"),
        (lambda: sm.knn_graph(POINTS, 5, metric="ip"), "here it is 'cosine'"),
        (lambda: sm.TSNE(settings={"layout.repulsion": "barnes_hut"}).fit(POINTS), "did you mean 'barnes-hut'"),
        (lambda: sm.TSNE(init="PCA").fit(POINTS), "got 'PCA': did you mean 'pca'"),
        (lambda: sm.TSNE(init="elsewhere").fit(POINTS), "there is neither a run nor a file of this name"),
        (lambda: sm.TSNE(method="barnes_hut"), r"settings=\{'layout\.repulsion': \.\.\.\} \(barnes-hut or exact"),
        (lambda: sm.knn_graph(POINTS, k=5), "k is no argument of knn_graph: here it is n_neighbors"),
        (lambda: sm.knn_graph(POINTS, algorithm="brute"), "algorithm is no argument of knn_graph: here it is method"),
        (lambda: sm.SpectralClustering(init="k-means++"), "init is no argument of SpectralClustering: allowed: "),
    ],
)
def test_values_and_names_are_answered_in_words_of_python(fit, answer):
    with pytest.raises((ConfigError, TypeError), match=answer):
        fit()


def test_the_page_has_the_names_that_it_says_are_answered():
    table = PAGE.read_text().partition("## Names of parameters")[2]
    rows = re.findall(r"^\| (`.*) \| (.*`.*) \|$", table, re.MULTILINE)
    theirs = {name for _, right in rows for name in re.findall(r"`(\w+)`", right)} - {"None"}
    assert {"n_jobs", "angle", "n_init", "min_dist"} <= theirs
    assert theirs - set(OTHER_NAMES) - names_of_ours() == {"y"}


@pytest.mark.parametrize(
    ("name", "meant"), [("Cosine", "cosine"), ("euclidian", "euclidean"), ("Hellinger", "hellinger")]
)
def test_a_misspelt_metric_is_answered_with_the_nearest_and_another_one_is_not(name, meant):
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'"):
        sm.TSNE(metric=name).fit(POINTS)
    for other in ("rogerstanimoto", "mahalanobis", "yule"):
        with pytest.raises(ConfigError) as refused:
            sm.knn_graph(POINTS, 5, metric=other)
        assert "did you mean" not in str(refused.value)
