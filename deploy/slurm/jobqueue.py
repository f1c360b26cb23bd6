"""Runs a command of scalemani on workers that Slurm starts as separate jobs, with dask-jobqueue.

    . deploy/dask.sh ~/scalemani-tls
    .venv/bin/python deploy/slurm/jobqueue.py --jobs 4 --cores 32 --memory 64GB embed POINTS RUN

The scheduler and the driver run here, on the login node or in a small job; a job that is lost is replaced. What else
Slurm needs (partition, account, prologue) goes into ~/.config/dask/jobqueue.yaml, which dask-jobqueue reads.
"""

import argparse
import subprocess
import sys

import dask
from dask_jobqueue import SLURMCluster
from distributed import Client
from distributed.security import Security


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, required=True, help="jobs that run at a time, a worker each")
    parser.add_argument("--cores", type=int, required=True, help="threads a worker")
    parser.add_argument("--memory", required=True, help="memory a worker, such as 64GB")
    parser.add_argument("--walltime", default="08:00:00", help="of a job")
    parser.add_argument("--wait", type=float, default=3600, help="seconds to wait for the first worker")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="embed POINTS RUN ..., without --scheduler")
    return parser.parse_args()


def main() -> int:
    """Start the cluster, run the command on it, and return its exit status."""
    options = arguments()
    security = Security()  # from the variables that deploy/dask.sh sets
    if not security.require_encryption:
        sys.exit("no TLS: source deploy/dask.sh first")
    # A job may wait in the queue for long, and its worker does not count as lost meanwhile.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    with SLURMCluster(
        cores=options.cores,
        processes=1,
        memory=options.memory,
        walltime=options.walltime,
        worker_command="distributed.cli.dask_worker",
        worker_extra_args=["--dashboard-address", "127.0.0.1:0"],
        security=security,
        protocol="tls://",
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
    ) as cluster:
        cluster.adapt(minimum_jobs=options.jobs, maximum_jobs=options.jobs)
        with Client(cluster) as client:
            client.wait_for_workers(1, timeout=options.wait)
        command = [sys.executable, "-m", "scalemani", *options.command, "--scheduler", cluster.scheduler_address]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
