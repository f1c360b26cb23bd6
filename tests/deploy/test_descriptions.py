"""What is handed to Docker and Kubernetes, against its schemas, and held to the rules that a cluster should enforce."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalemani.interfaces.cli.commands import app

DEPLOY = Path(__file__).parents[2] / "deploy"
OPERATOR = "dask-kubernetes==2026.3.0"
OPERATOR_SCHEMAS = "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds/"
KUBERNETES = "1.37"


def resources() -> dict[str, dict[str, Any]]:
    """Return the resources for Kubernetes by kind."""
    texts = [path.read_text() for path in (DEPLOY / "kubernetes").glob("*.yaml")]
    found = [resource for text in texts for resource in yaml.safe_load_all(text)]
    assert len({resource["kind"] for resource in found}) == len(found)
    return {resource["kind"]: resource for resource in found}


def pods() -> dict[str, dict[str, Any]]:
    """Return the descriptions of the pods of a run and of that for files, by what they are."""
    job = resources()["DaskJob"]["spec"]
    cluster = job["cluster"]["spec"]
    return {
        "driver": job["job"]["spec"],
        "scheduler": cluster["scheduler"]["spec"],
        "worker": cluster["worker"]["spec"],
        "files": resources()["Pod"]["spec"],
    }


@pytest.fixture(scope="module")
def operator_schema(tmp_path_factory) -> dict[str, Any]:
    """The schema of a DaskJob, out of the wheel of the operator itself; nothing of it is installed."""
    folder = tmp_path_factory.mktemp("operator")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, OPERATOR]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{OPERATOR} cannot be had: {done.stderr.strip()[-200:]}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        definition = yaml.safe_load(wheel.read(OPERATOR_SCHEMAS + "daskjob.yaml"))
    assert definition["spec"]["versions"][0]["name"] == "v1"
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_the_job_is_what_the_operator_takes(operator_schema):
    jsonschema = pytest.importorskip("jsonschema")
    job = resources()["DaskJob"]
    assert job["apiVersion"] == "kubernetes.dask.org/v1"
    jsonschema.validate(job, operator_schema)
    job["spec"]["cluster"]["spec"]["worker"]["replicas"] = "three"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job, operator_schema)


def test_resources_and_pods_are_what_kubernetes_takes():
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    plain = [found for kind, found in resources().items() if kind in ("Namespace", "NetworkPolicy")]
    plain.append(resources()["PersistentVolumeClaim"])
    wrapped = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod} for name, pod in pods().items()
    ]
    service = resources()["DaskJob"]["spec"]["cluster"]["spec"]["scheduler"]["service"]
    wrapped.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "scheduler"}, "spec": service})
    for resource in plain + wrapped:
        kubernetes_validate.validate(resource, KUBERNETES, strict=True)
    wrapped[0]["spec"]["containers"][0]["imagge"] = "scalemani"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrapped[0], KUBERNETES, strict=True)


@pytest.mark.parametrize("name", ["driver", "scheduler", "worker", "files"])
def test_pods_have_no_rights_they_do_not_need(name):
    pod = pods()[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert not any("hostPath" in volume for volume in pod["volumes"])
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["image"].rpartition(":")[2] not in ("", "latest")
        variables = {variable["name"]: variable["value"] for variable in container["env"]}
        if name == "files":  # it is no part of the cluster
            assert not [variable for variable in variables if "DASK" in variable]
            continue
        assert container["args"][0] in ("dask", "scalemani")  # the operator's own generator still says dask-worker
        assert variables["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
        assert variables["DASK_SCHEDULER_ADDRESS"].startswith("tls://")


def test_only_pods_of_the_cluster_reach_the_cluster():
    own = {"dask.org/cluster-name": resources()["DaskJob"]["metadata"]["name"]}
    policy = resources()["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == own
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    assert policy["ingress"] == [{"from": [{"podSelector": {"matchLabels": own}}]}]
    service = resources()["DaskJob"]["spec"]["cluster"]["spec"]["scheduler"]["service"]
    assert service["type"] == "ClusterIP"
    assert service["selector"] == {**own, "dask.org/component": "scheduler"}
    labels = resources()["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def services() -> list[tuple[str, dict[str, Any]]]:
    """Return the services of the compose file with their names."""
    return list(yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"].items())


@pytest.mark.parametrize(("name", "service"), services())
def test_containers_have_no_rights_they_do_not_need(name, service):
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in service
    assert "privileged" not in service
    assert service["user"].endswith("10001:10001}")
    assert service["deploy"]["resources"]["limits"]["memory"]
    assert service["environment"]["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
    assert name == "driver" or service["healthcheck"]["test"][0] == "CMD"


def test_the_image_is_pinned_and_not_run_as_root():
    lines = (DEPLOY / "compose" / "Dockerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert all(base.partition(":")[2].count(".") == 2 for base in bases)
    users = [line for line in lines if line.startswith("USER ")]
    assert users == ["USER 10001:10001"]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in DEPLOY.glob("*/README.md")))
def test_the_page_of_a_runner_names_files_and_commands_that_are_there(name):
    page = (DEPLOY / name / "README.md").read_text()
    blocks = "\n".join(line for line in page.splitlines() if line.startswith("    "))
    files = re.findall(r"(?<!tests/)deploy/[\w./-]+", page)
    assert files
    assert [file for file in files if not (DEPLOY.parent / file).exists()] == []
    asked = set(re.findall(r"(?:bin/scalemani|driver|--|\$IMAGE\"|:0\.1\.0) (?:scalemani )?([a-z]+)\b", blocks))
    assert "report" in asked  # from an empty machine to a result
    assert asked <= {command.name or command.callback.__name__ for command in app.registered_commands}
