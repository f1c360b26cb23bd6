"""Every parameter of every method and estimator changes a result, or says why it does not: results are compared."""

import inspect

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params import Parameters, names_of_parameters
from scalemani.config.routes import ROUTES, takes_labels
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.estimators.fitting import Embedder, requested_of
from scalemani.interfaces.estimators.parameters import RESOURCES, defaults_of, settings_of
from scalemani.interfaces.estimators.transformers import OF_SEARCH
from scalemani.interfaces.wording import PARAMETERS, SETTINGS
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels
from scalemani.runs.walk import plan_run
from tests.config.params.effects import (
    COMMON,
    ROWS,
    Found,
    Refused,
    Row,
    Same,
    labels_of,
    moved_by,
    points_of_each_kind,
)

POINTS = points_of_each_kind()
PUBLIC = [getattr(sm, name) for name in sm.__all__]
ESTIMATORS = {one._method: one for one in PUBLIC if isinstance(one, type) and issubclass(one, Embedder)}
ESTIMATORS["knn-graph"] = sm.knn_graph
METHODS = ("knn-graph", *(method for method in ROUTES if method != "knn-graph"))  # the one of the fewest stages first
# What is looked at once, in the first of the methods that have the same stage of the same inputs.
EARLY = ("graph", "affinities", "neighbors", "new")
NO_CHOICE = ("layout.objective",)  # it is the method


def python_names(method: str) -> dict[str, str]:
    """Return the arguments of an estimator that are parameters of runs, by the names of settings."""
    taken = inspect.signature(ESTIMATORS[method]).parameters
    known = PARAMETERS | OF_SEARCH if method == "knn-graph" else PARAMETERS
    return {name: python for python, name in known.items() if python in taken}


def read_parameters(method: str) -> list[str]:
    """Return the parameters of the stages of a method, with those that its stages read of others."""
    stages = {stage.name for stage in ROUTES[method]} | {"seed"}
    stages |= {name for stage in ROUTES[method] for name in stage.key.parameters_of}
    return [name for name in names_of_parameters() if name.partition(".")[0] in stages and name not in NO_CHOICE]


def acting_under(method: str, name: str) -> dict[str, object]:
    """Return under what landmarks act, of methods where it depends on that."""
    stage = name.partition(".")[0]
    if stage == "landmark_graph":
        return {"embedding.solver": "nystrom"}
    if method == "lda" and stage in ("seed", "landmarks", "landmark_weights"):
        return {"landmarks.n_landmarks": 14}  # as many as features span all directions, wherever they lie
    landmarks = any(stage.name == "landmark_weights" and stage.solvers for stage in ROUTES[method])
    return {"embedding.solver": "lll"} if landmarks and stage in ("landmarks", "landmark_weights") else {}


def given_names(method: str, values: dict) -> dict:
    """Return parameters as the estimator of a method takes them."""
    names, given = python_names(method), {}
    for name, value in ({name: COMMON[name] for name in COMMON if name in names} | values).items():
        if name in names:
            given[names[name]] = value
        else:
            given.setdefault(SETTINGS, {})[name] = value
    return given


def fit(method: str, given: dict, points: np.ndarray) -> Found:
    """Return what an estimator finds of some points."""
    if method == "knn-graph":
        return Found(sm.knn_graph(points, **given), points)
    return Found(ESTIMATORS[method](**given).fit(points, labels_of(points)), points)


class Fits:
    """What one method finds under parameters, each computed once and in one store."""

    def __init__(self, method: str, store) -> None:
        self.method, self.store, self.known = method, store, {}

    def found(self, values: dict, kind: str) -> Found:
        key = repr(sorted(values.items())), kind
        if key not in self.known:
            given = given_names(self.method, values) | {"store": self.store, "workers": 1}
            self.known[key] = fit(self.method, given, POINTS[kind])
        return self.known[key]

    def fault(self, name: str, row: Row | Same | Refused) -> str:
        """Return what is not as a row says; "" where all is."""
        under = acting_under(self.method, name) | dict(row.under)
        if isinstance(row, Refused):
            with pytest.raises(ConfigError, match=row.words):
                self.found({**under, name: row.value}, row.points)
            return ""
        before, after = self.found(under, row.points), self.found({**under, name: row.value}, row.points)
        if isinstance(row, Same):
            return "" if before.bits == after.bits else f"{name}={row.value} changes a result"
        what = "graph" if self.method == "knn-graph" and row.changes == "embedding" else row.changes
        moved = moved_by(before.value(what), after.value(what))
        return "" if moved > row.least else f"{name}={row.value} moves {what} by {moved:.1e}"


def upstream(method: str, stage: str, optional: bool = True) -> tuple:
    """Return a stage of a method with all that it follows from: two methods that have the same share its result."""
    by_name = {one.name: one for one in ROUTES[method] if optional or not one.optional}
    found = by_name.get(stage)
    return () if found is None else (found, *(upstream(method, name, optional) for name in found.inputs))


def rows_of(method: str, name: str) -> list[Row | Same | Refused]:
    """Return the rows of a parameter that are looked at in a method.

    What a row changes early is looked at in the first method whose route has the same stages up to there, and so is how
    parameters of stages up to the spectral embedding change it, which a descent begins with and clusters are made of;
    of methods of one route all rows but those of the descent are those of the first. One code reads the parameters of
    descents whatever their objective: a row is looked at in the first that it is so of, and in the first that goes by
    momentum where nothing else is requested.
    """
    rows = [row for row in ROWS[name] if not row.methods or method in row.methods]
    before = METHODS[: METHODS.index(method)]
    stage, found = name.partition(".")[0], []
    if any(ROUTES[other] == ROUTES[method] for other in before) and stage not in ("layout", "landmark_embedding"):
        return []
    alike = [other for other in before if differ_in_objectives(other, method)]
    rows = [row for row in rows if not any(not row.methods or other in row.methods for other in alike)]
    for row in rows:
        changed = row.changes.partition(".")[0] if isinstance(row, Row) else ""
        early = {"graph": "neighbors", "affinities": "symmetric_affinities"}.get(changed, changed)
        shared = any(upstream(other, early) == upstream(method, early) for other in before)
        if not (changed in EARLY[:3] and shared) and not (
            changed == "embedding" and follows(method, stage, row, before)
        ):
            found.append(row)
    return found


def differ_in_objectives(one: str, other: str) -> bool:
    """Return whether two methods are one descent but for the objective: the same code reads their parameters."""
    return {one, other} <= set(OBJECTIVES) and OBJECTIVES[one].direction == OBJECTIVES[other].direction


def spectral(method: str) -> tuple:
    """Return the spectral embedding of a method with all that it follows from, but for side data; () without one."""
    return upstream(method, "embedding", optional=False)


def follows(method: str, stage: str, row: Row, before: tuple[str, ...]) -> bool:
    """Return whether a row of a stage up to the spectral embedding is looked at in an earlier method that has the same.

    The number of coordinates is more than what the next stage begins with.
    """
    if stage == "landmark_embedding" or stage not in names_in(spectral(method)):
        return False
    return any(spectral(other) == spectral(method) and (not row.methods or other in row.methods) for other in before)


def names_in(stages: tuple) -> set[str]:
    """Return the names of stages, nested as `upstream` has them."""
    return set().union(*(names_in(one) if isinstance(one, tuple) else {one.name} for one in stages))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_every_parameter_of_a_method_does_what_its_row_says(method, tmp_path):
    """By its estimator, which is given a parameter as an argument or as a setting."""
    fits = Fits(method, tmp_path / "run")
    dead = []
    for name in read_parameters(method):
        dead += [fault for row in rows_of(method, name) if (fault := fits.fault(name, row))]
    assert dead == []


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_has_a_row(method):
    """And each that a row is left out of has a method of the same stages in which it is looked at."""
    for name in read_parameters(method):
        assert any(not row.methods or method in row.methods for row in ROWS[name]) or name in OF_FEW, name


def test_every_row_is_looked_at_in_some_method():
    looked_at = {
        (name, id(row)) for method in METHODS for name in read_parameters(method) for row in rows_of(method, name)
    }
    unseen = [(name, row) for name, rows in ROWS.items() for row in rows if (name, id(row)) not in looked_at]
    assert unseen == []


# Rows that name methods: the others refuse these parameters, or are told that they have no effect.
OF_FEW = {
    "affinities.trees", "affinities.jitter", "neighbors.window", "neighbors.frames", "neighbors.image_rows",
    "neighbors.image_columns", "layout.dof", "layout.renewal",
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_hands_every_parameter_to_its_run(method):
    """Those of methods in which a row is not looked at too; as an argument where there is one, and as a setting."""
    names = python_names(method)
    for name in read_parameters(method):
        row = next(row for row in ROWS[name] if not row.methods or method in row.methods or name in OF_FEW)
        if isinstance(row.value, np.ndarray):
            continue
        for given in ({names.get(name, name): row.value}, {name: row.value}):
            taken = given if set(given) & set(names.values()) else {SETTINGS: given}
            if method == "knn-graph":
                params = Parameters().with_values(settings_of(taken, defaults_of(sm.knn_graph), PARAMETERS | OF_SEARCH))
            else:
                params = requested_of(ESTIMATORS[method](**taken)).params
            assert params.value(name) == row.value


TOLD = [method for method in METHODS if ROUTES[method] != ROUTES["t-sne"]] + ["t-sne"]


@pytest.mark.parametrize("method", TOLD)
def test_a_changed_parameter_acts_or_is_told_of_or_refused(method, tmp_path):
    """One that no stage of a run has in its key, so that the run is the same, has a note or an error."""
    points = open_points(POINTS["plain"])
    given = with_labels(points, labels_of(POINTS["plain"]), partial=not takes_labels(method))

    def planned(values):
        return plan_run(given, tmp_path / "run", method, Parameters().with_values(values), Executor(workers=1))

    def keys(plan):
        return {one.stage.name: one.key for one in plan.stages}

    plain = keys(planned({}))
    for name, rows in ROWS.items():
        first = [row for row in rows if not row.methods or method in row.methods] or rows
        try:
            plan = planned({name: first[0].value})
        except (ConfigError, DataError):
            continue
        placing = name in OF_PLACING and method in ("laplacian-eigenmaps", "spectral-clustering", "diffusion-maps")
        # Landmarks of a descent say which new points lie far out, and their note says that they do no more.
        notes = [note for note in plan.outline.notes if "no effect on coordinates" not in note]
        assert (keys(plan) != plain) == (not notes and not placing), (name, notes)


# Read when new points are placed, by no stage that the default solver runs.
OF_PLACING = {f"landmark_weights.{name}" for name in ("n_neighbors", "regularization", "tolerance", "radius")}


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (
            {"early_exaggeration": 4.0},
            "layout.early_exaggeration=4.0 has no effect: it acts only where layout.exaggerated_iterations is above 0",
        ),
        (
            {"early_exaggeration": 4.0, "exaggerated_iterations": 9, "homotopy": 3},
            "acts only where layout.homotopy is 1; here it is 3",
        ),
        (
            {"objective": "sne"},
            "layout.objective=sne has no effect: it acts only where layout.objective is that of the method",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path, layout, words):
    asked = Parameters().with_values({"layout": layout})
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        plan_run(open_points(POINTS["plain"]), tmp_path / "run", "s-sne", asked, Executor(workers=1))


RESOURCES_CHANGED = {"workers": 2, "memory": "2GB", "verbose": True, "callbacks_every": 3, "callbacks": print}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_resources_and_what_is_told_change_no_bit(method, tmp_path):
    """Nor does a store of its own; where tasks run is asked of a scheduler, of which a wrong one is told."""
    taken = inspect.signature(ESTIMATORS[method]).parameters
    others = set(taken) - {*python_names(method).values(), SETTINGS, "points"}
    assert others == {"use_rep", "scheduler", "store", *(set(RESOURCES_CHANGED) & set(taken))}
    assert set(RESOURCES) == {"scheduler", "store", *RESOURCES_CHANGED}
    given, points = given_names(method, {}), POINTS["plain"]
    changed = {name: value for name, value in RESOURCES_CHANGED.items() if name in taken}
    plain = fit(method, given | {"workers": 1, "store": tmp_path / "one"}, points)
    assert fit(method, given | changed | {"store": tmp_path / "other"}, points).bits == plain.bits
    with pytest.raises(ConfigError, match="scheduler"):
        fit(method, given | {"scheduler": "nowhere"}, points)
