"""Who may connect, what listens where, and what is written down: secrets are not."""

import contextlib
import http.client
import json
import operator
import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from distributed import LocalCluster

from scalemani.config.limits import ClusterTimeouts
from scalemani.engine.workers import clients
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, SchedulerLostError

MADE_BY = Path(__file__).parents[2] / "deploy" / "dask.sh"
PAGES = (
    "/health",
    "/status",
    "/workers",
    "/info/main/workers.html",
    "/json/counts.json",
    "/proxy/8787/127.0.0.1/status",
)
BRIEF = ClusterTimeouts(connect=5)
SECONDS = 60  # in which a port answers on a machine that does much else
PLANTED = ("AKIAPLANTEDBYTESTS00", "planted/secret+of/the+tests")


INTRUDER = """
import asyncio, json, os, sys
from distributed.core import connect, rpc
from distributed.protocol.pickle import dumps
from distributed.security import Security

plain = {}
own = Security.temporary().get_connection_args("client")
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)

async def intrude(seconds, place, scheme, arguments, operation):
    call = {"function": dumps(os.getpid), "args": dumps(()), "kwargs": dumps({}), "wait": True}
    try:
        async with rpc(f"{scheme}://{place}", timeout=seconds, connection_args=arguments) as peer:
            return await asyncio.wait_for(getattr(peer, operation)(**call), seconds)
    except Exception as error:
        return type(error).__name__

async def intrude_somewhere(seconds, places):
    ways, answers = [(*way, call) for way in (("tcp", plain), ("tls", own)) for call in ("run_function", "run")], []
    for attempt in asyncio.as_completed([intrude(seconds, place, *way) for place in places for way in ways]):
        answers.append(await attempt)
        if isinstance(answers[-1], dict) and "result" in answers[-1]:
            break
    return answers

print(json.dumps(asyncio.run(intrude_somewhere(float(sys.argv[1]), sys.argv[2:]))))
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Folders of certificates of two clusters, made as `deploy/dask.sh` makes them."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ours", "theirs"):
        command = f". {shlex.quote(str(MADE_BY))} {shlex.quote(str(folder / name))}"
        subprocess.run(["bash", "-euc", command], check=True)
    return folder


def options_of(folder):
    """Return the options of Dask's commands for the certificates in a folder."""
    files = {"--tls-ca-file": "ca.pem", "--tls-cert": "certificate.pem", "--tls-key": "key.pem"}
    return [word for option, name in files.items() for word in (option, str(folder / name))]


def process_of(unit):
    return os.getpid()


def listening(processes):
    """Return the addresses and ports on which processes and their children listen."""
    found = set()
    for process in processes:
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                found |= {(*c.laddr,) for c in member.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    return found


def assert_loopback_without_pages(places):
    """Check that all is on the loopback interface, and that what speaks HTTP shows metrics and health alone."""
    assert {host for host, _ in places} == {"127.0.0.1"}
    assert [(host, port) for host in other_addresses() for _, port in places if can_connect(host, port)] == []
    answers = {page: [answer(*place, page) for place in places] for page in PAGES}
    assert 200 in answers.pop("/health")
    assert all(status in (None, 404) for statuses in answers.values() for status in statuses), answers


def other_addresses():
    """Return addresses of this machine that are not the one where all should listen; Linux has all of 127.0.0.0/8."""
    found = [one.address for some in psutil.net_if_addrs().values() for one in some if one.family == socket.AF_INET]
    return sorted({"127.0.0.2", *found} - {"127.0.0.1"})


def can_connect(host, port):
    with socket.socket() as tried:
        tried.settimeout(SECONDS)
        return tried.connect_ex((host, port)) == 0


def answer(host, port, page):
    """Return the status with which a page is answered; None where that port does not speak HTTP."""
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request("GET", page)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def test_only_holders_of_the_cluster_s_certificates_get_in(start_cluster, certificates, mapped):
    cluster = start_cluster(1, options=options_of(certificates / "ours"), protocol="tls")
    executor = Executor(scheduler=cluster.address, tls=str(certificates / "ours"), timeouts=BRIEF)
    with executor.started():
        assert mapped(executor, process_of, [1])[0] != os.getpid()
    with (
        pytest.raises(SchedulerLostError),
        Executor(scheduler=cluster.address, tls=str(certificates / "theirs"), timeouts=BRIEF).started(),
    ):
        pass
    with pytest.raises(ConfigError, match="--tls"), Executor(scheduler=cluster.address, timeouts=BRIEF).started():
        pass
    plain = cluster.address.replace("tls://", "tcp://")
    with pytest.raises(SchedulerLostError), Executor(scheduler=plain, timeouts=BRIEF).started():
        pass
    assert_loopback_without_pages(listening([psutil.Process(process.pid) for process in cluster.processes]))


def intruded(places, seconds):
    """Return what another user of this machine was answered first who had processes at some places call os.getpid.

    Who is not let in may wait for an answer until the seconds are over.
    """
    command = [sys.executable, "-c", INTRUDER, str(seconds), *(f"{host}:{port}" for host, port in sorted(places))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [answer["result"] for answer in json.loads(done.stdout) if isinstance(answer, dict) and "result" in answer]


def test_no_other_user_of_this_machine_runs_code_through_local_processes():
    pytest.importorskip("cryptography")
    before = listening([psutil.Process()])
    with LocalCluster(n_workers=0, protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0"):
        open_to_all = listening([psutil.Process()]) - before
        assert intruded(open_to_all, SECONDS) == [os.getpid()]
    with Executor(scheduler="processes", workers=1).started():
        places = listening([psutil.Process()]) - before
        assert len(places) >= 3  # of the scheduler, the worker, metrics
        assert intruded(places, 6) == []
        processes = [psutil.Process().pid, *(child.pid for child in psutil.Process().children(recursive=True))]
        seen = [Path(f"/proc/{one}/{part}").read_bytes() for one in processes for part in ("cmdline", "environ")]
        assert [text for text in seen if b"PRIVATE KEY" in text] == []


def test_without_the_package_the_command_makes_certificates_of_one_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    executor = Executor(scheduler="processes", workers=1)
    with executor.started():
        assert executor._client.scheduler.address.startswith("tls://")
        assert executor.fold(operator.neg, operator.add, range(4)) == -6
        first = executor._client.security
    assert clients.temporary_security().tls_client_key != first.tls_client_key


def test_without_package_and_command_processes_are_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setenv("PATH", "")
    with (
        pytest.raises(ConfigError, match=r"openssl or the package cryptography \(pip install .*\), or use threads"),
        Executor(scheduler="processes", workers=1).started(),
    ):
        pass


def test_a_key_that_others_can_read_is_refused(certificates, tmp_path):
    shutil.copytree(certificates / "ours", tmp_path / "open")
    (tmp_path / "open" / "key.pem").chmod(0o644)
    with (
        pytest.raises(ConfigError, match="chmod 600"),
        Executor(scheduler="tls://h:1", tls=str(tmp_path / "open")).started(),
    ):
        pass


def test_everything_listens_on_the_loopback_interface_only(start_cluster, mapped):
    cluster = start_cluster(1)
    executor = Executor(scheduler=cluster.address)
    with executor.started():
        mapped(executor, process_of, [1])
        assert_loopback_without_pages(listening([psutil.Process(process.pid) for process in cluster.processes]))
    own, before = Executor(scheduler="processes", workers=1), listening([psutil.Process()])
    with own.started():
        mapped(own, process_of, [1])
        assert_loopback_without_pages(listening([psutil.Process()]) - before)


def test_what_listens_everywhere_would_be_reached_from_the_other_addresses():
    with socket.create_server(("0.0.0.0", 0)) as everywhere, socket.create_server(("127.0.0.1", 0)) as here:
        reached = [
            [can_connect(host, one.getsockname()[1]) for host in other_addresses()] for one in (everywhere, here)
        ]
    assert all(reached[0])
    assert not any(reached[1])


def test_credentials_are_nowhere_in_what_a_run_writes_and_says(
    scalemani, roll, start_cluster, bucket, values, tmp_path
):
    from scalemani.store.buckets import open_bucket

    np.save(tmp_path / "roll.npy", roll)
    cluster = start_cluster(1)
    settings = [f"--set={stage}.{name}={value}" for stage, group in values.items() for name, value in group.items()]
    settings += ["--block-rows=3072"]
    said = ""
    commands = [
        ["embed", tmp_path / "roll.npy", f"{bucket}/run", "--scheduler", cluster.address, *settings],
        ["plan", tmp_path / "roll.npy", f"{bucket}/run", *settings],
        ["info", f"{bucket}/run", "--json"],
        ["export", f"{bucket}/run", tmp_path / "out.npy"],
        ["export", f"{bucket}/run", f"{bucket}/out.zarr"],
        ["embed", tmp_path / "roll.npy", f"s3://{'no-such-bucket'}/run", "--debug", *settings],
        ["embed", f"s3://{PLANTED[0]}:{PLANTED[1]}@bucket/points.zarr", f"{bucket}/other", *settings],
    ]
    for command, status in zip(commands, [0, 0, 0, 0, 0, 2, 2], strict=True):
        ended, output, errors = scalemani(*command)
        assert ended == status, errors
        said += output + errors
    written = b""
    for entry in open_bucket(bucket).list().collect():
        written += entry["path"].encode() + open_bucket(bucket).get(entry["path"]).bytes().to_bytes()
    written += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert '"stages"' in said
    for secret in PLANTED:
        assert secret not in said
        assert secret.encode() not in written
