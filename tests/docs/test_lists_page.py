"""The page of lists from other libraries: its lines run with those that are installed, and give what it says."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "pipelines" / "docs" / "guides" / "lists.md"
FENCED = re.compile(r"^```(python|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """The code that begins, and the code for each library by its name."""
    found = FENCED.findall(PAGE.read_text())
    return found[0][1], {code.split()[1]: code for kind, code in found[1:]}


COMPILED = "pynndescent"  # for a while in each process: its lines are run by the one test that has it compiled


@pytest.mark.parametrize("library", sorted({*blocks()[1]} - {COMPILED}))
def test_the_lines_of_a_library_run_and_certify_what_it_gave(library):
    pytest.importorskip(library, exc_type=ImportError)  # one that is broken too
    check_lines(library)


def check_lines(library):
    """Run the lines of a library, and look at the certificates of the lists that it gave."""
    first, code = blocks()
    namespace: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(first + code[library], PAGE, "exec"), namespace)
    maps = namespace["maps"]
    if "maps.fit(" not in code[library]:
        return
    certified = maps.certificates_["neighbors"]
    assert np.isfinite(maps.embedding_).all()
    assert 0.2 < certified["given_recall"] <= certified["recall"] <= 1
    assert maps.certificates_["given_lists"]["distances_given"] in ("distances", "squared distances")
