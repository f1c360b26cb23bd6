"""Runs a command of scalemani on hosts that SSH reaches, which see the same folders and the same environment.

    . deploy/dask.sh /shared/scalemani-tls
    .venv/bin/python deploy/ssh/cluster.py --hosts node1 node2 node3 --threads 16 -- embed POINTS RUN

The first host gets the scheduler, every host a worker, this one the driver. Hosts are reached as the SSH configuration
says (ports, users, keys), and their keys must be known.
"""

import argparse
import subprocess
import sys

import dask
from distributed import Client, SSHCluster
from distributed.security import Security

LOOPBACK = "127.0.0.1:0"  # of the pages that a scheduler and workers show, which TLS does not protect


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", nargs="+", required=True, help="names as SSH knows them")
    parser.add_argument("--threads", type=int, required=True, help="threads a worker")
    parser.add_argument("--python", default=sys.executable, help="Python on the hosts (default: this one)")
    parser.add_argument("--ssh-config", help="file instead of ~/.ssh/config")
    parser.add_argument("command", nargs="+", help="-- embed POINTS RUN ..., without --scheduler")
    return parser.parse_args()


def main() -> int:
    """Start the cluster, run the command on it, and return its exit status."""
    options = arguments()
    security = Security()  # from the variables that deploy/dask.sh sets; the hosts get the same paths
    if not security.require_encryption:
        sys.exit("no TLS: source deploy/dask.sh first, with a folder that all hosts see and only you can read")
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})  # a worker that restarts is not lost
    with SSHCluster(
        [options.hosts[0], *options.hosts],
        connect_options={} if options.ssh_config is None else {"config": [options.ssh_config]},
        remote_python=options.python,
        scheduler_options={"protocol": "tls://", "port": 0, "dashboard_address": LOOPBACK},
        worker_options={"nthreads": options.threads, "dashboard_address": LOOPBACK},
        security=security,
    ) as cluster:
        with Client(cluster) as client:
            client.wait_for_workers(len(options.hosts), timeout=300)
        command = [sys.executable, "-m", "scalemani", *options.command, "--scheduler", cluster.scheduler_address]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
