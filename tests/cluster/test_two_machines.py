"""Two machines: network namespaces that share a link and an object store, and no folder of the run."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from scalemani.runs.opened import open_run

NEEDED = ("ip", "unshare", "mount", "openssl")
SECONDS = 300
HIDING = 'mount --make-rprivate / && mount -t tmpfs none "$1" && shift && exec "$@"'
CERTIFICATE = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=dask -keyout key.pem -out certificate.pem"
DIGESTS = """
import json
from scalemani.runs.opened import open_run
whole, started = open_run("s3://two/run"), open_run("s3://two/from-file")
found = {stage: whole.group(stage).content_digest for stage in whole.keys}
print(json.dumps([found, started.group("points").content_digest]))
"""


class Machines:
    """Namespaces with an address each: `head`, and `worker`, where the folder of the head is empty."""

    def __init__(self, folder_of_head: Path) -> None:
        mark = uuid.uuid4().hex[:6]
        self.folder = folder_of_head
        self.names = {"head": f"head-{mark}", "worker": f"worker-{mark}"}
        self.addresses = {"head": f"10.213.{int(mark[:2], 16)}.1", "worker": f"10.213.{int(mark[:2], 16)}.2"}
        self._processes: list[subprocess.Popen] = []

    def connect(self) -> None:
        links = dict(zip(self.names, (f"{name[:2]}{name[-6:]}" for name in self.names.values()), strict=True))
        commands = [f"ip netns add {name}" for name in self.names.values()]
        commands.append("ip link add {head} type veth peer name {worker}".format(**links))
        for machine, name in self.names.items():
            commands += [
                f"ip link set {links[machine]} netns {name}",
                f"ip -n {name} addr add {self.addresses[machine]}/24 dev {links[machine]}",
                f"ip -n {name} link set {links[machine]} up",
                f"ip -n {name} link set lo up",
            ]
        for command in commands:
            subprocess.run(command.split(), check=True, capture_output=True)

    def on(self, machine: str, *command: str) -> list[str]:
        """Return what runs a command on a machine."""
        hidden = ["unshare", "-m", "sh", "-c", HIDING, "sh", str(self.folder)] if machine == "worker" else []
        return ["ip", "netns", "exec", self.names[machine], *hidden, *command]

    def start(self, machine: str, command: str, **environment: str) -> None:
        quiet = subprocess.DEVNULL
        arguments = self.on(machine, sys.executable, "-m", *shlex.split(command))
        started = subprocess.Popen(arguments, env={**os.environ, **environment}, stdout=quiet, stderr=quiet)
        self._processes.append(started)

    def python(self, machine: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        command = self.on(machine, sys.executable, *arguments)
        return subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=SECONDS
        )

    def wait_for(self, port: int) -> None:
        """Wait until something listens on a port of the head, as the worker sees it."""
        tried = f"import socket, sys; sys.exit(socket.socket().connect_ex(({self.addresses['head']!r}, {port})))"
        end = time.monotonic() + SECONDS
        while self.python("worker", "-c", tried).returncode:
            assert time.monotonic() < end, f"nothing listens on port {port}"

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        for name in self.names.values():
            found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            subprocess.run(["kill", "-9", *found.stdout.split()], capture_output=True)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.fixture
def machines(tmp_path_factory) -> Iterator[Machines]:
    if os.geteuid() != 0 or not all(map(shutil.which, NEEDED)):
        pytest.skip(f"two namespaces need root and {', '.join(NEEDED)}")
    found = Machines(tmp_path_factory.mktemp("of-the-head"))
    try:
        found.connect()
    except subprocess.CalledProcessError as error:
        found.close()
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    yield found
    found.close()


@pytest.fixture
def certificates(tmp_path_factory) -> Path:
    """The folder of certificates that both machines have."""
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run(CERTIFICATE.split(), cwd=folder, check=True, capture_output=True)
    shutil.copy(folder / "certificate.pem", folder / "ca.pem")
    folder.chmod(0o700)
    return folder


def test_a_worker_needs_no_folder_of_the_driver(machines, certificates, scalemani, roll, values):
    pytest.importorskip("moto.server")
    pytest.importorskip("obstore")
    points, alone = machines.folder / "roll.npy", machines.folder / "alone"
    np.save(points, roll[:3000])
    settings = [f"--set={stage}.{name}={value}" for stage, group in values.items() for name, value in group.items()]
    settings += ["--set=embedding.solver=lll", "--block-rows=1024"]
    assert scalemani("embed", points, alone, *settings)[0] == 0

    head, worker = machines.addresses.values()
    store = {
        "AWS_ACCESS_KEY_ID": "of-the-test",
        "AWS_SECRET_ACCESS_KEY": "of-the-test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{head}:9000",
    }
    tls = " ".join(
        f"--tls-{option} {certificates / file}.pem"
        for option, file in {"ca-file": "ca", "cert": "certificate", "key": "key"}.items()
    )
    machines.start("head", f"moto.server -H {head} -p 9000")
    machines.start("head", f"dask scheduler --host {head} --port 8786 --protocol tls --no-dashboard {tls}")
    machines.wait_for(9000)
    machines.wait_for(8786)
    workers = f"dask worker tls://{head}:8786 --host {worker} --nworkers 2 --nthreads 1 --no-dashboard {tls}"
    machines.start("worker", workers, **store)
    bucket = f"import urllib.request as r; r.urlopen(r.Request('http://{head}:9000/two', method='PUT'))"
    upload = (
        f"import numpy; from scalemani.io.export import export; export(numpy.load({str(points)!r}), 's3://two/p.zarr')"
    )
    cluster = ["--scheduler", f"tls://{head}:8786", "--tls", str(certificates)]
    for arguments in (
        ["-c", bucket],
        ["-c", upload],
        ["-m", "scalemani", "embed", "s3://two/p.zarr", "s3://two/run", *settings, *cluster],
        # The driver reads a file; what follows from the stored points is as above.
        ["-m", "scalemani", "stage", "points", str(points), "s3://two/from-file", *settings, *cluster],
    ):
        done = machines.python("head", *arguments, **store)
        assert done.returncode == 0, done.stderr
    expected = open_run(alone)
    found, of_file = json.loads(machines.python("head", "-c", DIGESTS, **store).stdout)
    assert found == {stage: expected.group(stage).content_digest for stage in expected.keys}
    assert of_file == found["points"]
