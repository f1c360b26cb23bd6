"""What is declared of every stored array holds in every run, and every declaration notices values of which it does not.

Arrays are read by zarr and checked by NumPy: nothing that wrote them takes part.
"""

import functools
import itertools

import numpy as np
import pytest
from scipy import sparse

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.config.routes import ROUTES, takes_labels
from scalemani.datasets import generator
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels, with_lists
from scalemani.runs.walk import run
from scalemani.store.invariants import Block, count_broken
from scalemani.store.invariants.values import FINITE
from tests.stages.arrays.specification import stored_stages
from tests.stages.arrays.stored_run import RunOnDisk, arrays_by_description, blocks_of, broken_in, run_in

pytestmark = pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")

BLOCK_ROWS, SIZE = 1024, 1200
VALUES = {
    "neighbors": {"n_neighbors": 9, "method": "partition", "n_probes": 2, "recall": 0.99, "max_rounds": 1},
    "partition": {"cell_points": 60, "sketch_dimensions": 3, "sample_points": 1000},
    "affinities": {"perplexity": 3},
    "landmarks": {"n_landmarks": 80},
    "landmark_weights": {"n_neighbors": 4},
    "clustering": {"n_clusters": 4},
    "layout": {"max_iterations": 3, "exaggerated_iterations": 1, "snapshots": 2},
}
LAPLACIAN = "laplacian-eigenmaps"
LEAVES = {"n_neighbors": 30, "method": "leaves", "leaf_points": 60, "recall": 0.995, "max_rounds": 2}
PER_SOLVER = {
    "le-z": {"kind": "bhattacharyya", "covariances": "full"},
    "nystrom": {"kind": "bhattacharyya", "covariances": "diagonal"},
}
# Of each route: its method, and parameters beside `VALUES`.
CASES = {
    **{method: (method, {}) for method in ROUTES},
    **{
        f"solver {name}": (LAPLACIAN, {"embedding": {"solver": name}, "landmark_graph": PER_SOLVER.get(name, {})})
        for name in ("lll", "lll+refine", "exact", "variational-nystrom", "le-z", "nystrom")
    },
    **{
        f"neighbors {name}": ("knn-graph", {"neighbors": {"method": name, "max_rounds": 1}})
        for name in ("exact", "given", "pynndescent")
    },
    "neighbors leaves": ("knn-graph", {"neighbors": LEAVES}),
    **{
        f"affinities {kind}": (LAPLACIAN, {"affinities": {"kind": kind, "perplexity": None}})
        for kind in ("gaussian", "self-tuning", "uniform")
    },
    "largest component": (LAPLACIAN, {"components": {"disconnected": "largest"}}),
    "pieces": ("spectral-clustering", {"components": {"disconnected": "separate"}}),
    "diffused pieces": ("diffusion-maps", {"components": {"disconnected": "separate"}}),
    "landmarks off the data": (
        LAPLACIAN,
        {"landmarks": {"method": "kmeans", "snap": False}, "embedding": {"solver": "lll"}},
    ),
    "compared rows": (LAPLACIAN, {"points": {"metric": "manhattan"}, "neighbors": {"method": "exact"}}),
    "classes": (LAPLACIAN, {"symmetric_affinities": {"target_weight": 0.5}}),
    "merged duplicates": (LAPLACIAN, {"duplicates": {"tolerance": 0.0}, "embedding": {"solver": "lll"}}),
}


def roll():
    """A surface in three dimensions."""
    return np.asarray(generator("swiss-roll", SIZE, seed=3).read(0, SIZE), np.float32)


def hard():
    """Points without leading axes, of which cells of sketches lose the neighbours."""
    return np.random.default_rng(0).normal(size=(SIZE, 100)).astype(np.float32)


def duplicates():
    """Points of which many are the same."""
    return roll()[np.sort(np.random.default_rng(1).integers(0, SIZE // 2, SIZE))]


def pieces():
    """Clouds in float64 that no edge joins, one of them of a few points."""
    rng = np.random.default_rng(2)
    sizes, places = (SIZE - 420, 400, 20), (0, 60, 900)
    return np.concatenate([place + rng.normal(size=(size, 4)) for size, place in zip(sizes, places, strict=True)])


def counts():
    """Sparse rows of counts."""
    return sparse.random(
        SIZE, 100, 0.09, format="csr", random_state=3, data_rvs=lambda count: np.arange(count) % 7 + 1.0
    ).astype(np.float32)


def gaps():
    """Points of which every ninth has a gap."""
    points = roll()
    points[::9, 1] = np.nan
    return points


KINDS = {one.__name__: one for one in (roll, hard, duplicates, pieces, counts, gaps)}
# Each process compiles pynndescent for a minute: its runs are checked where one test has it compiled,
# tests/runs/test_pynndescent.py.
COMPILED = "neighbors pynndescent"
# Sparse points are not searched within leaves, and landmarks of separate clouds are no graph.
REFUSED = {("counts", "neighbors leaves"), ("pieces", "solver le-z"), ("pieces", "solver nystrom")}


def values_of(case, kind):
    """Return the parameters of a case for points of a kind."""
    own = {**CASES[case][1], **({"points": {"missing": "leave-out"}} if kind == "gaps" else {})}
    return Parameters().with_values(
        {stage: {**VALUES.get(stage, {}), **own.get(stage, {})} for stage in {*VALUES, *own}}
    )


def source_of(case, kind):
    """Return the points of a kind with what a case takes beside them."""
    points, (method, _) = KINDS[kind](), CASES[case]
    source, rows = open_points(points, kind == "gaps"), np.arange(SIZE)
    if case == "neighbors given":
        indices = (rows[:, np.newaxis] + np.arange(1, 10)) % SIZE
        indices[::7, -2:] = -1
        return with_lists(source, (indices, np.ones(indices.shape)))
    return with_labels(source, rows % 3) if takes_labels(method) or case == "classes" else source


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A folder for the runs of each kind of points, which share their stages, and the groups that were checked."""
    return functools.cache(lambda kind: (tmp_path_factory.mktemp("invariants") / kind, set()))


def broken_of(kind, case, folder, checked=()):
    """Return what does not hold of the arrays of a run that are not checked yet, and the groups that were looked at."""
    run(source_of(case, kind), folder, CASES[case][0], values_of(case, kind), Executor(workers=1), BLOCK_ROWS)
    stored = run_in(folder)
    new = {stage: key for stage, key in stored.keys.items() if (stage, key) not in checked}
    return [broken for stage in new if (broken := broken_in(stored, stage))], set(new.items())


@pytest.mark.parametrize("case", [case for case in CASES if case != COMPILED])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_declared_holds_for_every_route_over_every_kind_of_points(kind, case, stores):
    if (kind, case) in REFUSED:
        pytest.skip("refused before anything is stored")
    folder, checked = stores(kind)
    broken, new = broken_of(kind, case, folder, checked)
    assert broken == []
    checked |= new


# Runs of the catalogue, which store every array between them


STORED = ("finished", "wide", "pictured", "sparse_run", "weighted", "by_leaves", "grown", "in_pieces", "others")


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A run of several blocks that points were appended to."""
    points, folder = np.random.default_rng(0).normal(size=(1400, 4)), tmp_path_factory.mktemp("grown") / "run"
    estimator = sm.LaplacianEigenmaps(perplexity=5, store=folder, settings={"neighbors.method": "partition"})
    estimator.fit(points[:1300])
    return sm.append(folder, points[1300:]).run


@pytest.fixture(scope="module")
def in_pieces(tmp_path_factory):
    """A run of affinities of two cliques that nothing joins."""
    clique, folder = np.ones((9, 9)), tmp_path_factory.mktemp("pieces") / "run"
    return sm.LaplacianEigenmaps(affinity="precomputed", store=folder).fit(np.kron(np.eye(2), clique)).run_


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Runs by parameters on which it depends what is checked: landmarks joined by distance, objectives computed."""
    folder, points = tmp_path_factory.mktemp("others") / "run", open_points(roll())
    values = {**VALUES, "embedding": {"solver": "nystrom"}}
    methods = {LAPLACIAN: values, "elastic-embedding": {**VALUES, "layout": {"max_iterations": 3}}}
    return {
        method: run(points, folder, method, Parameters().with_values(own), Executor(workers=1), BLOCK_ROWS)
        for method, own in methods.items()
    }


@pytest.fixture(scope="module")
def runs_of(request):
    """Return the runs of a fixture of the catalogue as they lie on the disk."""

    def read(which):
        found = request.getfixturevalue(which)
        return [RunOnDisk(one.store.root, one.plan) for one in (found.values() if isinstance(found, dict) else [found])]

    return functools.cache(read)


@pytest.mark.parametrize("which", STORED)
def test_what_is_declared_holds_of_runs_that_store_every_array(which, runs_of):
    groups = {(stage, key): one for one in runs_of(which) for stage, key in one.keys.items()}
    assert [broken for (stage, _), one in groups.items() if (broken := broken_in(one, stage))] == []


def test_every_array_has_an_invariant_and_a_reason_where_that_says_little():
    for described in itertools.chain.from_iterable(stored.ARRAYS for stored in stored_stages()):
        assert described.invariants, described
        assert bool(described.no_invariant) == (described.invariants == (FINITE,)), described
        texts = [invariant.text for invariant in described.invariants]
        assert len(set(texts)) == len(texts), described


# Damage that checks notice


class Damaged:
    """A run of which one array, or a part of it, holds other values."""

    def __init__(self, run, stage, path, values):
        self.n_points, self.block_rows, self.params = run.n_points, run.block_rows, run.params
        self._run, self._damaged = run, {(stage, path): values}

    def stored(self, stage, path):
        """Return an array, the damaged one where it is asked for."""
        found = self._damaged.get((stage, path))
        return self._run.stored(stage, path) if found is None else found


def changed(change):
    """Return damage that changes a copy of values in place."""

    def damage(values):
        copy = values.copy()
        change(copy)
        return copy

    return damage


def first(values):
    """Return what a damage changes first: an entry, of an array without a dimension all of it."""
    return (0,) * values.ndim


def set_first(number):
    """Return damage that sets the first value."""
    return changed(lambda values: values.__setitem__(first(values), np.asarray(number).astype(values.dtype)))


DAMAGES = {
    "minus two": set_first(-2.0),
    "a large value": set_first(1e6),
    "zero": set_first(0),
    "one": set_first(1),
    "two": set_first(2),
    "five": set_first(5),
    "halved": changed(lambda values: values.__setitem__(first(values), values[first(values)] / 2)),
    "doubled": changed(lambda values: values.__setitem__(first(values), values[first(values)] * 2)),
    "all doubled": lambda values: values * values.dtype.type(2),
    "all zero": np.zeros_like,
    "not a number": set_first(np.nan),
    "a value repeated": changed(lambda values: values.__setitem__((..., 0), values[..., -1])),
    "rows reversed": lambda values: values[::-1].copy(),
    "a row less": lambda values: values[:-1].copy(),
    "a row more": lambda values: np.concatenate([values, np.zeros((1, *values.shape[1:]), values.dtype)]),
    "columns reversed": lambda values: values[..., ::-1].copy(),
    "rows exchanged": changed(lambda values: values.__setitem__([0, -1], values[[-1, 0]])),
    "row numbers": changed(lambda values: values.__setitem__(0, 0)),
    "shifted": lambda values: values + values.dtype.type(1),
    "one column": changed(lambda values: values.__setitem__(..., values[:1])),
    "column for column": changed(lambda values: values.__setitem__((..., -1), values[..., 0])),
    "ascending": lambda values: np.arange(values.size).reshape(values.shape).astype(values.dtype),
}


def damaged_values(values):
    """Yield values with each damage that such an array can have."""
    for damage in DAMAGES.values():
        with np.errstate(all="ignore"):
            try:
                yield damage(values)
            except (IndexError, ValueError, TypeError, OverflowError):
                continue


def is_noticed(invariant, run, stage, paths):
    """Return whether an invariant, which holds of an array or its parts, breaks by some damage of one of these."""
    intact = [block for path in paths[1:] for block in blocks_of(run, stage, path)]
    array = run.stored(stage, paths[0])
    for values in damaged_values(np.asarray(array[...])):
        damaged = Damaged(run, stage, paths[0], values)
        blocks = [
            *blocks_of(damaged, stage, paths[0]),
            *(Block(damaged, stage, one.path, one.start, one.values) for one in intact),
        ]
        with np.errstate(all="ignore"):
            try:
                if count_broken((invariant,), blocks)[invariant.text]:
                    return True
            except IndexError:  # numbers of rows that are not there: a stage that was looked up by them
                continue
    return False


@pytest.mark.parametrize("stage", dict.fromkeys(stored.STAGE for stored in stored_stages()))
def test_every_declaration_notices_damage_in_some_run(stage, runs_of):
    """Each invariant of each array: what none of the damages breaks would see nothing."""
    blind = {}
    for one in (one for which in STORED for one in runs_of(which) if stage in one.keys):
        for (described, _), paths in arrays_by_description(one, stage).items():
            floating = one.stored(stage, paths[0]).dtype.kind == "f"
            for invariant in described.invariants if floating else set(described.invariants) - {FINITE}:
                name = described.paths, invariant.text
                if blind.get(name, True) is True:
                    blind[name] = not is_noticed(invariant, one, stage, paths)
    assert [name for name, unseen in blind.items() if unseen] == []
