"""The commands of Dask that start a scheduler and workers, with settings that are safe and that suit the driver."""

import json
import sys
from collections.abc import Mapping

from scalemani.errors import ConfigError
from scalemani.store.places import is_loopback
from scalemani.workers.connections import ROUTES, SETTINGS, check_address
from scalemani.workers.tls import certificate_paths

PYTHON = [sys.executable, "-P"]  # files of the working folder are no modules
NO_DASHBOARD = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]


def scheduler_command(host: str, port: int, tls: str | None) -> list[str]:
    """Return the command of a scheduler; any place but the loopback interface takes certificates."""
    require_encryption(host, tls)
    protocol = "tcp" if tls is None else "tls"
    place = ["--host", host, "--port", str(port), "--protocol", protocol]
    return [*PYTHON, "-m", "dask", "scheduler", *place, *NO_DASHBOARD, *certificate_options(tls)]


def worker_command(address: str, workers: int, threads: int, memory: str, tls: str | None) -> list[str]:
    """Return the command of workers of a scheduler.

    Parameters
    ----------
    address : of the scheduler, tcp://HOST:PORT or tls://HOST:PORT
    workers, threads : processes, and threads of each
    memory : the limit of each process, as Dask reads it, such as "4GB"
    tls : a folder made by `scalemani tls`; None without certificates

    Raises
    ------
    ConfigError
        For an address that is none, one beyond this machine without certificates, or certificates and another protocol.
    """
    check_address(address)
    host = address.partition("://")[2].rpartition(":")[0].strip("[]")
    require_encryption(host, tls)
    if address.startswith("tls://") != (tls is not None):
        raise ConfigError(f"certificates (--tls) and an address at tls:// go together, got {address}")
    size = ["--nworkers", str(workers), "--nthreads", str(threads), "--memory-limit", memory]
    own = ["--host", "127.0.0.1"] if is_loopback(host) else []
    return [*PYTHON, "-m", "dask", "worker", address, *size, *own, *NO_DASHBOARD, *certificate_options(tls)]


def dask_environment(tls: str | None) -> Mapping[str, str]:
    """Return the settings of a scheduler or worker as Dask reads them from the environment."""
    values = {**SETTINGS, **ROUTES, "distributed.comm.require-encryption": tls is not None}
    return {
        f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": value
        if isinstance(value, str)
        else json.dumps(value)
        for name, value in values.items()
    }


def require_encryption(host: str, tls: str | None) -> None:
    """Refuse to listen or connect beyond this machine without certificates: who can connect can run code."""
    if tls is None and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines, and whoever reaches a scheduler can run code: make "
            "certificates with 'scalemani tls FOLDER' and give them with --tls FOLDER, or use 127.0.0.1"
        )


def certificate_options(tls: str | None) -> list[str]:
    """Return the options that name the certificates."""
    if tls is None:
        return []
    paths = certificate_paths(tls)
    names = {"--tls-ca-file": "tls_ca_file", "--tls-cert": "tls_client_cert", "--tls-key": "tls_client_key"}
    return [word for option, role in names.items() for word in (option, paths[role])]
