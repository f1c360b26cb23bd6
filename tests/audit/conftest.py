"""Right runs, made once for all tests of the audit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audit.runs import RUNS


@pytest.fixture(scope="session")
def right(tmp_path_factory) -> Callable[[str], Path]:
    """Return what makes a right run by its name, once, and returns its folder."""
    folder, made = tmp_path_factory.mktemp("right"), set()

    def of(name: str) -> Path:
        if name not in made:
            RUNS[name](folder / name)
            made.add(name)
        return folder / name

    return of
