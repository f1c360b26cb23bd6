"""A copy of the repository in which tests run, each time in a process that has loaded the libraries before."""

import contextlib
import importlib
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from changes import REPOSITORY, Mutation

COPIED = ("scalemani", "tests", "pipelines", "deploy", "pyproject.toml")
# What the package and its tests load and what does not change: it is loaded once, for all mutations.
LIBRARIES = ("dask.array", "distributed", "hypothesis", "numba", "pydantic", "rich.console", "scipy.sparse.linalg")
LIBRARIES += ("sklearn.neighbors", "typer", "zarr")
MOST_MEMORY = 8 * 2**30  # bytes of addresses: a wrong size must not take the machine down
PATIENCE = 10  # a test may take so many times its seconds of processor time
COMPILING = 120  # seconds that each may take beside them
POLL = 0.1  # seconds
IDLE = 120  # seconds without any work after which tests are taken to hang
STOPPED = 10  # seconds between two polls after which all processes are taken to have been stopped meanwhile
UNKNOWN_TESTS = 4  # exit status of pytest where a test of a given name is not there


class Reports:
    """A plugin of pytest that appends to a file which test begins and which fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, word: str, name: str) -> None:
        """Append a line."""
        with self.path.open("a") as file:
            file.write(f"{word} {name}\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell which test begins."""
        self.append("begins", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell which test fails."""
        if report.failed:
            self.append("fails", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell which file of tests cannot be imported."""
        if report.failed:
            self.append("fails", report.nodeid)


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and of those that it has started; 0 where there is none."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(member.cpu_times()[:4])  # its own, and of children that have ended
    return total


class Trial:
    """A copy of the repository, and which tests are known to pass and which to fail without a mutation."""

    def __init__(self, folder: Path, seconds: dict[str, float]) -> None:
        self.folder, self.seconds, self.sound = folder, seconds, dict[str, bool]()
        self.reports, self.stamp = folder / "reports", time.time_ns()
        for name in COPIED:
            source = REPOSITORY / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(source, folder / name, ignore=ignored, dirs_exist_ok=True)
            else:
                shutil.copy(source, folder / name)
        for name in LIBRARIES:
            importlib.import_module(name)

    def killer(self, mutation: Mutation, tests: list[str]) -> str | None:
        """Return the first of some tests that notices a mutation, None where none does.

        A test that fails without the mutation too is left out.
        """
        while tests:
            with self.mutated(mutation):
                failed = self.first_failure(tests)
            if failed is None or self.passes_alone(failed):
                return failed
            tests = [test for test in tests if test != failed]
        return None

    def passes_alone(self, test: str) -> bool:
        """Return whether a test passes without a mutation."""
        if test not in self.sound:
            self.sound[test] = self.first_failure([test]) is None
        return self.sound[test]

    @contextlib.contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """Change a line; the file's time is one that no byte code was made at."""
        path = self.folder / mutation.file
        whole, times = path.read_text(), path.stat()
        lines = whole.split("\n")
        lines[mutation.line - 1] = mutation.after
        path.write_text("\n".join(lines))
        self.stamp += 10**9 * 60
        os.utime(path, ns=(self.stamp, self.stamp))
        try:
            yield
        finally:
            path.write_text(whole)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def first_failure(self, tests: list[str]) -> str | None:
        """Return the first test that fails or does not end, None where all pass."""
        while True:
            self.reports.unlink(missing_ok=True)
            status, was_stopped = self.finished(self.started(tests))
            if status == 0:
                return None
            if status == UNKNOWN_TESTS and any("::" in test for test in tests):
                tests = list(dict.fromkeys(test.partition("::")[0] for test in tests))  # names made of what changed
            elif not was_stopped:
                return self.last_report("fails") or self.last_report("begins") or tests[0]

    def started(self, tests: list[str]) -> int:
        """Start tests in a process group of their own."""
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            os.chdir(self.folder)
            for stream in (1, 2):
                os.dup2(os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            sys.path.insert(0, str(self.folder))
            os.environ["PYTHONPATH"] = str(self.folder)
            os.environ.setdefault("SCALEMANI_CACHE", str(self.folder / "cache"))
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=0"]
            status = int(pytest.main([*options, f"--basetemp={self.folder / 'tmp'}", *tests], [Reports(self.reports)]))
        finally:
            os._exit(status)

    def finished(self, pid: int) -> tuple[int, bool]:
        """Wait for tests; return their exit status, and whether processes were stopped from outside meanwhile.

        Time is counted by the processor: a machine that is busy with others kills nothing.
        """
        was_stopped, test, begin, work, idle, last = False, "", 0.0, 0.0, 0.0, time.monotonic()
        try:
            while True:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    return os.waitstatus_to_exitcode(status), was_stopped
                time.sleep(POLL)
                now, before, work = time.monotonic(), work, processor_seconds(pid)
                was_stopped |= now - last > STOPPED
                idle, last = (idle + POLL if work - before < POLL / 100 else 0.0), now
                if test != (test := self.last_report("begins") or ""):
                    begin = work
                if work - begin > COMPILING + PATIENCE * self.seconds.get(test, 0.0) or idle > IDLE:
                    return 1, False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what a test has started goes too
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def last_report(self, word: str) -> str | None:
        """Return the test that a report of some kind was last made of."""
        if not self.reports.exists():
            return None
        found = [
            line.partition(" ")[2] for line in self.reports.read_text().splitlines() if line.startswith(f"{word} ")
        ]
        return found[-1] if found else None
