"""Airflow DAGs of scalemani: one a method, a task a stage, each task the command `scalemani stage NAME POINTS RUN`.

The DAGs are made from `scalemani.config.routes`, which needs the standard library only; everything else of
scalemani stays in a separate environment, whose command the variable SCALEMANI_COMMAND of the Airflow workers names
(default: `scalemani`).
A DAG on a schedule, in a separate file next to this one:

    from scalemani_dags import method_dag

    dag = method_dag("laplacian-eigenmaps", "digits", "@daily", points="/data/digits.zarr", run="/data/runs/digits")
"""

import os
from collections.abc import Mapping
from typing import Any

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from scalemani.config.routes import ROUTES

RETRIES = 3  # a stage resumes at the first incomplete block, so that a retry repeats no work
REFUSED = 2  # exit status for arguments or input that no further attempt can change
PLACE = "^(/[^\\x00-\\x1f]+|[a-z0-9]+://[^@?\\x00-\\x1f]+)$"  # no password, no signed query: params are logged
FILE = "^/[^\\x00-\\x1f]+$"
ASSIGNMENT = "^[a-z_]+(\\.[a-z_]+)?=[^\\x00-\\x1f]+$"

# What a run of a DAG takes, as JSON schemas. Relative paths are refused: a task has no working folder.
PARAMS: dict[str, dict[str, Any]] = {
    "points": {"type": "string", "pattern": PLACE, "description": "absolute path or URL of the points"},
    "run": {"type": "string", "pattern": PLACE, "description": "folder of the run, absolute"},
    "config": {"type": ["null", "string"], "pattern": FILE, "description": "TOML file, a table of parameters a stage"},
    "set": {
        "type": "array",
        "items": {"type": "string", "pattern": ASSIGNMENT},
        "description": "STAGE.PARAM=VALUE, over the TOML file",
    },
    "scheduler": {
        "type": "string",
        "pattern": "^(threads|processes|(tcp|tls)://[A-Za-z0-9.:\\[\\]-]+)$",
        "description": "threads, processes, or the address of a Dask scheduler",
    },
    "workers": {"type": ["null", "integer"], "minimum": 1, "description": "tasks at the same moment"},
    "memory": {
        "type": ["null", "string"],
        "pattern": "^[0-9]+([.][0-9]+)? ?([kKMGT]i?)?B$",
        "description": "budget for all memory of a stage, such as 4GB",
    },
    "wait": {"type": "integer", "minimum": 0, "description": "seconds to wait for a run that another command works on"},
    "labels": {
        "type": ["null", "string"],
        "pattern": FILE,
        "description": "file of labels, for methods that learn from them, and for symmetric_affinities.target_weight",
    },
    "weights": {
        "type": ["null", "string"],
        "pattern": FILE,
        "description": "file of weights: how many equal points each stands for",
    },
    "block_rows": {"type": ["null", "integer"], "minimum": 1024, "multipleOf": 1024, "description": "rows a block"},
}
DEFAULTS: dict[str, Any] = {"config": None, "set": [], "scheduler": "threads", "workers": None, "memory": None}
DEFAULTS |= {"wait": 3600, "block_rows": None, "labels": None, "weights": None}


def stage_command(stage: str, method: str, params: Mapping[str, Any]) -> list[str]:
    """Return the arguments that run one stage; a value of any content is one argument, and no shell reads it."""
    options = [f"--method={method}", f"--scheduler={params['scheduler']}", f"--wait={params['wait']}"]
    names = [
        name for name in ("config", "workers", "memory", "block_rows", "labels", "weights") if params[name] is not None
    ]
    options += [f"--{name.replace('_', '-')}={params[name]}" for name in names]
    options += [f"--set={assignment}" for assignment in params["set"]]
    command = os.environ.get("SCALEMANI_COMMAND", "scalemani")
    return [command, "stage", *options, "--", stage, params["points"], params["run"]]


class StageOperator(BaseOperator):
    """Runs one stage of a method; its lines go to the log of the task, nothing goes to XCom, nothing is rendered."""

    template_fields = ()

    def __init__(self, *, method: str, **settings: Any) -> None:
        super().__init__(do_xcom_push=False, **settings)
        self.method = method
        self.hook = SubprocessHook()

    def execute(self, context: Mapping[str, Any]) -> None:
        """Run the stage to its end; a refusal fails the task for good, any other failure is tried again."""
        finished = self.hook.run_command(stage_command(self.task_id, self.method, context["params"]))
        if finished.exit_code == REFUSED:
            raise AirflowFailException(finished.output)
        if finished.exit_code != 0:
            raise AirflowException(f"exit status {finished.exit_code}: {finished.output}")

    def on_kill(self) -> None:
        """Stop the stage; it ends within seconds and leaves its finished blocks marked."""
        self.hook.send_sigterm()


def method_dag(method: str, dag_id: str | None = None, schedule: str | None = None, **values: Any) -> DAG:
    """Return the DAG of a method; `values` are defaults of its params: a schedule needs `points` and `run`.

    A run is written by one stage at a time, each of which uses all workers: no two tasks of a DAG run side by side.
    """
    filled = {**DEFAULTS, **values}
    params = {name: Param(**({"default": filled[name]} if name in filled else {}), **PARAMS[name]) for name in PARAMS}
    with DAG(
        dag_id or f"scalemani-{method}",
        description=f"{method} of points into a run of scalemani, a task a stage",
        schedule=schedule,
        catchup=False,
        max_active_runs=1,
        max_active_tasks=1,
        params=params,
        render_template_as_native_obj=False,
        default_args={"retries": RETRIES, "retry_exponential_backoff": 2.0},
        tags=["scalemani"],
    ) as dag:
        tasks: dict[str, StageOperator] = {}
        for stage in ROUTES[method]:
            tasks[stage.name] = StageOperator(task_id=stage.name, method=method)
            tasks[stage.name].set_upstream([tasks[name] for name in stage.inputs if name in tasks])
    return dag


for name in ROUTES:
    globals()[f"dag_of_{name}"] = method_dag(name)
