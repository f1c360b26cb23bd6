"""Whatever the descriptions in a store say, whole and sealed: our errors, or a run that can be used."""

import contextlib
import json
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalemani.config.params import Parameters
from scalemani.engine.context import DIMENSIONS
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniError
from scalemani.interfaces.report.certificates import VERDICTS, judged_certificates
from scalemani.io.sources import open_points
from scalemani.runs.new_points import NewPoints, read_placement
from scalemani.runs.opened import open_run
from scalemani.runs.walk import INPUTS, plan_run, run
from scalemani.store.objects import digest, sealed, unsealed
from tests.fuzz.damage import changed, places

VALUES = {"neighbors": {"n_neighbors": 6}, "affinities": {"perplexity": 2}, "landmarks": {"n_landmarks": 20}}
EXAMPLES = settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
ODD = [0, -1, 1, 2**31, 2**63, 10**400, 1e308, float("nan"), "", "../x", "/", "\0", "x" * 300, "laplacian-eigenmaps"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(ODD),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=8), some, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def points(roll):
    return roll[:400]


@pytest.fixture(scope="module")
def folder(points, tmp_path_factory):
    folder = tmp_path_factory.mktemp("descriptions") / "run"
    run(open_points(points), folder, "laplacian-eigenmaps", Parameters().with_values(VALUES), Executor())
    used(folder, points, planned=True)
    return folder


def used(folder, points, planned):
    """Do all that a run is opened for; `planned`, also what a run that goes on starts with."""
    opened = open_run(folder)
    list(judged_certificates(opened))
    np.asarray(opened.embedding[...])
    assert np.isfinite(opened.eigenvalues).all()
    NewPoints(read_placement(opened), open_points(points[:3])).read(0, 3)
    if planned:
        plan_run(open_points(points), folder, "laplacian-eigenmaps", Parameters().with_values(VALUES), Executor())


@pytest.mark.parametrize("value", ["text", [1, "a"], {"a": None}, None, True, 10**400])
def test_a_certificate_of_another_type_is_judged_or_refused(folder, value):
    for path in sorted(folder.rglob("complete.json")):
        content = path.read_bytes()
        record = unsealed(content)
        for name in record["certificates"]:
            path.write_bytes(sealed({**record, "certificates": {**record["certificates"], name: value}}))
            with contextlib.suppress(ScalemaniError):
                assert all(one.judged.verdict in VERDICTS for one in judged_certificates(open_run(folder)))
        path.write_bytes(content)


def test_sealed_descriptions(folder, points):
    names = ("plan.json", "complete.json", "scalemani.json", DIMENSIONS, INPUTS)
    files = sorted(path for name in names for path in folder.rglob(name))

    @EXAMPLES
    @given(st.sampled_from(files), st.data())
    def check(path, data):
        content = path.read_bytes()
        value = unsealed(content)
        place = data.draw(st.sampled_from(places(value)))
        try:
            path.write_bytes(sealed(changed(value, place, data.draw(ANYTHING), data.draw(HOW))))
            used(folder, points, path.name in (DIMENSIONS, "scalemani.json"))
        except ScalemaniError:
            pass
        finally:
            path.write_bytes(content)

    check()


HOW = st.sampled_from(["other", "gone", "renamed"])


def test_descriptions_of_arrays(folder, points):
    """Those of zarr, under a digest that fits: whoever can write a store can write that as well."""
    files = sorted(path for path in folder.rglob("zarr.json") if json.loads(path.read_bytes())["node_type"] == "array")

    @EXAMPLES
    @given(st.sampled_from(files), st.data())
    def check(path, data):
        content, stage = path.read_bytes(), next(p for p in path.parents if (p / "complete.json").exists())
        complete = (stage / "complete.json").read_bytes()
        value = json.loads(content)
        place = data.draw(st.sampled_from(places(value)))
        other = json.dumps(changed(value, place, data.draw(ANYTHING), data.draw(HOW))).encode()
        try:
            path.write_bytes(other)
            key, record = str(path.relative_to(stage / "arrays")), unsealed(complete)
            for unit in record["units"].values():
                if key in unit:
                    unit[key] = [len(other), digest(other), ""]
            (stage / "complete.json").write_bytes(sealed(record))
            used(folder, points, False)
        except ScalemaniError:
            pass
        finally:
            path.write_bytes(content)
            (stage / "complete.json").write_bytes(complete)

    check()


def test_a_run_mends_descriptions_that_make_no_sense(folder, points, tmp_path):
    """Or says what to do: by the command that goes on."""
    reference = np.asarray(open_run(folder).embedding[...])
    for number, name in enumerate(("plan.json", "complete.json", INPUTS)):
        copied = shutil.copytree(folder, tmp_path / str(number))
        path = sorted(copied.rglob(name))[-1]
        path.write_bytes(sealed({"units": {"schema": {"a": 3}}, "method": []}))
        params = Parameters().with_values(VALUES)
        mended = run(open_points(points), copied, "laplacian-eigenmaps", params, Executor())
        np.testing.assert_array_equal(mended.embedding[...], reference)
