"""The DAGs in a real Airflow, whose environment has no scalemani: they are the routes, load light and survive kills."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from scalemani.config.methods import METHODS
from scalemani.config.routes import ROUTES
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.runs.opened import open_run
from scalemani.store.run_store import RunStore
from tests.killed import killed_after

pytestmark = pytest.mark.timeout(900)  # the first time includes the installation of Airflow

ROOT = Path(__file__).parents[2]
DAGS = ROOT / "pipelines" / "airflow"
CONFIGURATION = "[neighbors]\nn_neighbors = 10\n[affinities]\nperplexity = 4\n[landmarks]\nn_landmarks = 50\n"
METHOD, RESULT = "knn-graph", "graph"  # of few stages: Airflow takes seconds for each
CALLS_OF_IMPORT = 5_000_000  # of functions and their returns; 1,660,000 take a tenth of a second
BAD_PARAMS = [["points", "roll.npy"], ["points", "--debug"], ["run", "run"], ["config", 3], ["memory", "much"]]
BAD_PARAMS += [["workers", 0], ["block_rows", 1000], ["set", ["a b"]], ["set", "seed=1"], ["scheduler", "tcp://a@b:1"]]

# The stage `neighbors` is killed without warning once a block of it is finished; the second attempt is left alone.
KILLING_COMMAND = """#!{python}
import pathlib, subprocess, sys
command, killed = [sys.executable, "-m", "scalemani"], pathlib.Path("{folder}/killed")
if "neighbors" in sys.argv and not killed.exists():
    command = {killed_command!r}
    killed.touch()
sys.exit(subprocess.run([*command, *sys.argv[1:]]).returncode % 256)
"""

PROBE = """
import json, sys
from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.exceptions import AirflowFailException
from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.exceptions import ParamValidationError
before, calls = set(sys.modules), []
sys.setprofile(lambda frame, event, argument: calls.append(event))
import scalemani_dags
sys.setprofile(None)
loaded = sorted(set(sys.modules) - before)
dags = {name: value for name, value in vars(scalemani_dags).items() if isinstance(value, DAG)}
edges = {dag.dag_id: {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks} for dag in dags.values()}
daily = scalemani_dags.method_dag("knn-graph", "graph-daily", "@daily", points="/data/x.npy", run="/data/run")
daily.validate()
params = {**daily.params.dump(), **json.loads(sys.argv[1])}
refused = []
for name, value in json.loads(sys.argv[2]):
    try:
        daily.params.get_param(name).resolve(value)
    except ParamValidationError:
        refused.append([name, value])
print(json.dumps({
    "calls": len(calls), "loaded": loaded, "edges": edges, "settings": [daily.max_active_runs, daily.max_active_tasks],
    "refused": refused, "templated": [list(task.template_fields) for task in daily.tasks],
    "command": scalemani_dags.stage_command("points", "knn-graph", params),
}))
"""


@dataclass
class Airflow:
    """An Airflow with a home of its own, and the environment variables that its commands get."""

    bin: Path
    variables: dict[str, str]

    def call(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of Airflow's environment and return how it ended."""
        command = [self.bin / arguments[0], *arguments[1:]]
        return subprocess.run(command, env={**self.variables, **variables}, capture_output=True, text=True, check=False)

    def test_dag(self, dag: str, params: dict[str, object]) -> subprocess.CompletedProcess[str]:
        """Run a DAG from its first task to its last."""
        return self.call("airflow", "dags", "test", dag, "--conf", json.dumps(params))

    def query(self, statement: str) -> list[tuple]:
        """Ask Airflow's database."""
        with sqlite3.connect(Path(self.variables["AIRFLOW_HOME"]) / "airflow.db") as database:
            return database.execute(statement).fetchall()


@pytest.fixture(scope="module")
def airflow(tmp_path_factory) -> Airflow:
    made = subprocess.run(["bash", DAGS / "environment.sh"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"Airflow could not be installed: {made.stderr.strip()[-300:]}")
    home = tmp_path_factory.mktemp("airflow")
    command = home / "scalemani"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m scalemani "$@"\n')
    command.chmod(0o755)
    variables = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "PYTHONPATH": str(ROOT),
        "SCALEMANI_COMMAND": str(command),
    }
    found = Airflow(Path(made.stdout.strip()) / "bin", variables)
    migrated = found.call("airflow", "db", "migrate")
    assert migrated.returncode == 0, migrated.stderr
    return found


@pytest.fixture(scope="module")
def points(roll, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("points") / "roll.npy"
    np.save(path, roll)
    path.with_suffix(".toml").write_text(CONFIGURATION)
    return path


def test_the_dags_are_the_routes_and_load_nothing_heavy(airflow, tmp_path):
    (tmp_path / "probe.py").write_text(PROBE)
    hostile = {"points": "/data/x.npy; touch x", "set": ["seed=$(touch x)", "seed=--debug"]}
    done = airflow.call(
        "python",
        str(tmp_path / "probe.py"),
        json.dumps(hostile),
        json.dumps(BAD_PARAMS),
        PYTHONPATH=f"{ROOT}:{DAGS}",
        SCALEMANI_COMMAND="scalemani",
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["calls"] < CALLS_OF_IMPORT
    assert [name for name in found["loaded"] if name.startswith("scalemani.")] == [
        "scalemani.config",
        "scalemani.config.methods",
        "scalemani.config.objectives",
        "scalemani.config.routes",
        "scalemani.config.stages",
        "scalemani.errors",
        "scalemani.methods",
        *sorted(f"scalemani.methods.{method}" for method in METHODS),
    ]
    assert not {"numpy", "dask", "zarr", "pydantic"} & set(found["loaded"])
    assert found["edges"] == {
        f"scalemani-{method}": {
            stage.name: sorted({*stage.inputs} & {other.name for other in stages}) for stage in stages
        }
        for method, stages in ROUTES.items()
    }
    assert found["settings"] == [1, 1]
    assert found["refused"] == BAD_PARAMS
    assert not any(found["templated"])
    assert found["command"] == [
        "scalemani",
        "stage",
        "--method=knn-graph",
        "--scheduler=threads",
        "--wait=3600",
        "--set=seed=$(touch x)",
        "--set=seed=--debug",
        "--",
        "points",
        "/data/x.npy; touch x",
        "/data/run",
    ]


def test_a_dag_waits_for_a_held_run_outlives_a_kill_and_gives_the_run_of_embed(
    airflow, points, tmp_path, scalemani, monkeypatch
):
    ledger, killing, config = tmp_path / "ledger", tmp_path / "killing", points.with_suffix(".toml")
    ledger.touch()
    killed = killed_after(1, "neighbors")
    killing.write_text(KILLING_COMMAND.format(python=sys.executable, folder=tmp_path, killed_command=killed))
    killing.chmod(0o755)
    params = {"points": str(points), "run": str(tmp_path / "run"), "config": str(config), "workers": 1}
    params = {**params, "block_rows": 1024, "memory": "4GB", "set": ["neighbors.n_neighbors=12"]}
    variables = {**airflow.variables, LEDGER_VARIABLE: str(ledger), "SCALEMANI_COMMAND": str(killing)}
    dag = [airflow.bin / "airflow", "dags", "test", f"scalemani-{METHOD}", "--conf", json.dumps(params)]
    said, store = tmp_path / "said", RunStore.create(tmp_path / "run")
    with said.open("w") as log, subprocess.Popen(dag, env=variables, stdout=log, stderr=log) as process:
        with store.locked():
            while "waiting up to 3600 s: another run is working on" not in said.read_text():
                assert process.poll() is None, said.read_text()[-3000:]
                time.sleep(0.2)
            assert ledger.read_text() == ""
        assert process.wait() == 0, said.read_text()[-3000:]
    assert (tmp_path / "killed").exists()
    units = Counter(tuple(line.split()[:2]) for line in ledger.read_text().splitlines())
    assert set(units.values()) == {1}, "a finished block was computed again"
    attempts = dict(airflow.query(f"select task_id, try_number from task_instance where dag_id = 'scalemani-{METHOD}'"))
    assert attempts == {stage.name: 1 + (stage.name == "neighbors") for stage in ROUTES[METHOD]}
    assert airflow.query("select count(*) from xcom") == [(0,)]

    embed = ("--method", METHOD, "--config", config, "--set=neighbors.n_neighbors=12", "--block-rows=1024")
    assert scalemani("embed", points, tmp_path / "other", *embed)[0] == 0
    found, expected = (open_run(tmp_path / name).group(RESULT) for name in ("run", "other"))
    assert found.content_digest == expected.content_digest
    assert found.read("indices").shape == (5000, 12)
    monkeypatch.setenv(LEDGER_VARIABLE, str(ledger))
    assert scalemani("embed", points, tmp_path / "run", *embed)[0] == 0
    assert len(ledger.read_text().splitlines()) == len(units), "the finished run was computed again"


def test_a_refusal_is_not_tried_again_and_no_shell_reads_a_param(airflow, points, tmp_path):
    params = {"points": f"{points}; touch {tmp_path}/x", "run": str(tmp_path / "run"), "set": ["seed=1"]}
    done = airflow.test_dag("scalemani-laplacian-eigenmaps", params)
    assert done.returncode == 1
    assert "error: " in done.stdout
    assert not (tmp_path / "x").exists()
    statement = "select state, try_number from task_instance where dag_id like '%eigenmaps' and task_id = 'points'"
    assert airflow.query(statement) == [("failed", 1)]
