"""What the params of DAGs take, by their patterns alone: these are logged, and shown to whoever may look at a DAG."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "pipelines" / "airflow" / "scalemani_dags.py"


def constant(name):
    """Return a constant of the file of DAGs, which cannot be imported without Airflow."""
    assigned = (node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(node.value) for node in assigned if node.targets[0].id == name)


@pytest.mark.parametrize("place", ["/data/points.npy", "/data/me@host/a?b", "s3://bucket/points.zarr", "s3://b/x::X"])
def test_places_are_taken(place):
    assert re.search(constant("PLACE"), place)


@pytest.mark.parametrize(
    "place",
    [
        "s3://KEY:SECRET@bucket/run",
        "s3://KEY:a/b@bucket/run",
        "https://h/p.zarr?X-Amz-Signature=a",
        "relative",
        "/a\nb",
    ],
)
def test_no_param_takes_a_password(place):
    assert not re.search(constant("PLACE"), place)
