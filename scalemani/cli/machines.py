"""The commands that start a cluster by hand: certificates, a scheduler, workers."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from scalemani.cli.options import Debug, Tls
from scalemani.cli.output import say, tell
from scalemani.errors import ConfigError


def tls(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="new files ca.pem, certificate.pem and key.pem")],
    days: Annotated[int, typer.Option(help="for which they are valid")] = 365,
    debug: Debug = False,
) -> None:
    """Make the certificates of a cluster: for its scheduler, its workers and its clients."""
    from scalemani.store.run_store import MARKER
    from scalemani.workers.tls import make_certificates

    if (folder / MARKER).exists():
        raise ConfigError(f"{folder} is a run of scalemani, where no key belongs: choose another folder")
    for path in make_certificates(folder, days):
        say(path)


def scheduler(
    host: Annotated[str, typer.Option(help="address to listen on; any but 127.0.0.1 takes --tls")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="to listen on")] = 8786,
    tls: Tls = None,
    debug: Debug = False,
) -> None:
    """Start a Dask scheduler that listens on the loopback interface, or with certificates, without a dashboard."""
    from scalemani.workers.commands import dask_environment, scheduler_command

    warn_of_users(tls)
    become(scheduler_command(host, port, tls), dask_environment(tls))


def worker(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="of the scheduler, such as tls://host:8786")],
    workers: Annotated[int, typer.Option(help="processes")] = 1,
    threads: Annotated[int, typer.Option(help="of each process")] = 1,
    memory: Annotated[str, typer.Option(help="limit of a process, such as 4GB; auto: a share of the machine")] = "auto",
    tls: Tls = None,
    debug: Debug = False,
) -> None:
    """Start Dask workers, without a dashboard."""
    from scalemani.workers.commands import dask_environment, worker_command

    warn_of_users(tls)
    become(worker_command(address, workers, threads, memory, tls), dask_environment(tls))


def warn_of_users(tls: str | None) -> None:
    """Say who gets in without certificates: the loopback interface is that of all users and containers of a machine."""
    if tls is None:
        text = (
            "without --tls, every user of this machine can connect to the scheduler and run code as you: make "
            "certificates with 'scalemani tls FOLDER' and give them with --tls FOLDER"
        )
        tell("warning", text, before="warning: ")


def become(command: list[str], environment: Mapping[str, str]) -> None:
    """Go on as another command; what the environment sets already stays."""
    os.execve(command[0], command, {**environment, **os.environ})


COMMANDS = (tls, scheduler, worker)
