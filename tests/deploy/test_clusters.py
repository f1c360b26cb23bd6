"""Runs on real clusters of one machine: Slurm, SSH, and the processes that Docker and Kubernetes would start."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml
from distributed import Client

from scalemani.runs.opened import open_run
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
SMALL = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")
SECONDS = 240
STARTED = 240


@pytest.fixture(scope="module")
def folder(roll, tmp_path_factory) -> Path:
    """A folder with points, the run that embeds them on threads, and certificates."""
    folder = tmp_path_factory.mktemp("clusters")
    np.save(folder / "roll.npy", roll[:3000])
    command = [sys.executable, "-m", "scalemani", "embed", folder / "roll.npy", folder / "threads", *SMALL]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def variables(folder) -> dict[str, str]:
    """The environment after `. deploy/dask.sh FOLDER`."""
    command = f". deploy/dask.sh {shlex.quote(str(folder / 'tls'))} && env -0"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCALEMANI_VENV": sys.prefix}
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


@pytest.fixture
def same_as_threads(folder, tmp_path) -> Iterator[Path]:
    """A place for a run, whose embedding is compared with that of the run on threads."""
    yield tmp_path / "run"
    np.testing.assert_array_equal(
        open_run(tmp_path / "run").embedding[...], open_run(folder / "threads").embedding[...]
    )


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[str]:
    """The configuration of a Slurm of one node."""
    missing = [name for name in ("slurmctld", "slurmd", "munged", "sbatch") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and Debian's slurm-wlm and munge; missing: {', '.join(missing) or 'root'}")
    yield from server("slurm_node.sh", tmp_path_factory.mktemp("slurm"))


@pytest.fixture(scope="module")
def ssh(tmp_path_factory) -> Iterator[str]:
    """The client's configuration for an SSH server on this machine, which is the host `node` there."""
    if not os.access("/usr/sbin/sshd", os.X_OK) or os.geteuid() != 0:
        pytest.skip("needs root and Debian's openssh-server")
    pytest.importorskip("asyncssh")
    yield from server("ssh_host.sh", tmp_path_factory.mktemp("ssh"))


def server(script: str, folder: Path) -> Iterator[str]:
    """Start what a script starts, yield the line it prints, and stop it."""
    command = ["bash", str(Path(__file__).parent / script), str(folder / "server")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environment)
    assert started.returncode == 0, started.stderr
    yield started.stdout.strip()
    subprocess.run([*command, "stop"], check=True, timeout=SECONDS)


def test_certificates_are_for_their_owner_alone(folder, variables):
    assert sorted(path.name for path in (folder / "tls").glob("*.pem")) == ["ca.pem", "certificate.pem", "key.pem"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in [folder / "tls", *(folder / "tls").iterdir()])


def test_a_slurm_job_gives_the_run_of_threads(slurm, folder, tmp_path, variables, same_as_threads):
    environment = {**variables, "SLURM_CONF": slurm}
    command = ["sbatch", "--parsable", "--nodes=1", "--cpus-per-task=2", "--mem=2G", f"--output={tmp_path}/log"]
    command += ["deploy/slurm/run.sbatch", str(folder / "roll.npy"), str(same_as_threads), *SMALL]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    asked = ["scontrol", "show", "job", done.stdout.strip()]
    deadline = time.monotonic() + SECONDS
    state = "JobState=PENDING"
    while state in ("JobState=PENDING", "JobState=RUNNING", "JobState=COMPLETING"):
        assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        time.sleep(0.2)
        shown = subprocess.run(asked, env=environment, check=True, capture_output=True, text=True).stdout
        state = next(word for word in shown.split() if word.startswith("JobState="))
    assert state == "JobState=COMPLETED", (tmp_path / "log").read_text()
    assert "tls://" in (tmp_path / "log").read_text()
    assert not list(ROOT.glob(".scalemani-*"))


@pytest.mark.skipif(importlib.util.find_spec("dask_jobqueue") is None, reason="dask-jobqueue is not installed")
def test_workers_of_dask_jobqueue_give_the_run_of_threads(slurm, folder, tmp_path, variables, same_as_threads):
    command = [sys.executable, ROOT / "deploy/slurm/jobqueue.py", "--jobs=1", "--cores=2", "--memory=2GB"]
    command += ["embed", folder / "roll.npy", same_as_threads, *SMALL]
    environment = {**variables, "SLURM_CONF": slurm}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    plain = {name: value for name, value in environment.items() if not name.startswith("DASK_")}
    refused = subprocess.run(command, env=plain, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert refused.returncode == 1
    assert "no TLS" in refused.stderr


def test_hosts_reached_by_ssh_give_the_run_of_threads(ssh, folder, variables, same_as_threads):
    command = [sys.executable, ROOT / "deploy/ssh/cluster.py", "--hosts", "node", "--threads=2", "--ssh-config", ssh]
    command += ["--", "embed", folder / "roll.npy", same_as_threads, *SMALL]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr


def compose_commands() -> dict[str, tuple[list[str], dict[str, str], list[str]]]:
    """Return command, environment and health check of scheduler and worker in the compose file."""
    services = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"]
    return {
        name: (services[name]["command"], services[name]["environment"], services[name]["healthcheck"]["test"][1:])
        for name in ("scheduler", "worker")
    }


def kubernetes_commands() -> dict[str, tuple[list[str], dict[str, str], list[str]]]:
    """Return command, environment and health check of scheduler and worker in the Kubernetes job."""
    job = yaml.safe_load((ROOT / "deploy/kubernetes/job.yaml").read_text())
    found = {}
    for name in ("scheduler", "worker"):
        (container,) = job["spec"]["cluster"]["spec"][name]["spec"]["containers"]
        environment = {variable["name"]: variable["value"] for variable in container["env"]}
        found[name] = (container["args"], environment, container["livenessProbe"]["exec"]["command"])
    return found


@pytest.mark.parametrize("commands", [compose_commands, kubernetes_commands])
def test_the_commands_of_containers_give_the_run_of_threads(commands, folder, tmp_path, variables, same_as_threads):
    ports = {name: str(free_port()) for name in ("8786", "scheduler", "worker")}
    running = {}
    plain = {name: value for name, value in variables.items() if not name.startswith("DASK_")}
    try:
        for name, (command, environment, check) in commands().items():

            def here(text: str, name: str = name) -> str:
                text = text.replace("8787", ports[name]).replace("scalemani-scheduler", "127.0.0.1")
                text = text.replace("tls://scheduler", "tls://127.0.0.1").replace("8786", ports["8786"])
                return text.replace("/tls/", f"{folder}/tls/").replace("${SCALEMANI_THREADS:-2}", "2")

            located = {key: here(value) for key, value in environment.items()}
            program = [sys.executable, "-m", *map(here, command)]
            with (tmp_path / name).open("w") as log:
                running[name] = subprocess.Popen(program, env={**plain, **located}, stderr=log, cwd=tmp_path)
            wait_until_well([sys.executable, *map(here, check[1:])], running[name], tmp_path / name)
        address = f"tls://127.0.0.1:{ports['8786']}"
        with pytest.raises(OSError, match="tcp://"):
            Client(address.replace("tls", "tcp"), timeout=2)
        embed = [sys.executable, "-m", "scalemani", "embed", folder / "roll.npy", same_as_threads, *SMALL]
        done = subprocess.run(
            [*embed, "--scheduler", address],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        assert listening_places(running, {int(ports["scheduler"]), int(ports["worker"])}) == {"127.0.0.1"}
    finally:
        for process in reversed(running.values()):
            process.terminate()
            process.wait(SECONDS)


def listening_places(running: dict[str, subprocess.Popen], ports: set[int]) -> set[str]:
    """Return the addresses at which processes or their children listen on some ports."""
    processes = [psutil.Process(process.pid) for process in running.values()]
    processes += [child for process in processes for child in process.children(recursive=True)]
    sockets = [found for process in processes for found in process.net_connections("inet")]
    return {found.laddr.ip for found in sockets if found.status == "LISTEN" and found.laddr.port in ports}


def wait_until_well(check: list[str], process: subprocess.Popen, log: Path) -> None:
    """Ask as the container's health check does until the answer is yes."""
    deadline = time.monotonic() + STARTED
    while subprocess.run(check, capture_output=True, check=False).returncode != 0:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)
