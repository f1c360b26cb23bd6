"""A reader who follows a command to the first kernel passes few functions."""

import subprocess
import sys

import numpy as np

MOST_FRAMES = 9  # functions of the package, the command's own, what takes --debug from it, and the kernel among them
# Plans ask kernels for sizes: only those below the `run` of a stage compute.
FOLLOWED = """
import os, sys
from pathlib import Path
import scalemani
from scalemani.interfaces.cli import main

package = Path(scalemani.__file__).parent
kernels = str(package / "kernels") + os.sep

def place(frame):
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(package)) if path.is_relative_to(package) else ""

def follow(frame, event, argument):
    if event != "call" or not frame.f_code.co_filename.startswith(kernels):
        return
    names = []
    while frame is not None:
        if place(frame):
            names.append((place(frame), frame.f_code.co_name))
        frame = frame.f_back
    if any(path.startswith("stages/") and name == "run" for path, name in names):
        print(*(f"{path}:{name}" for path, name in names[::-1]), flush=True)
        os._exit(0)  # the rest of the run says nothing more

sys.setprofile(follow)
main()
"""


def test_few_functions_lead_from_the_command_to_the_first_kernel(tmp_path):
    points = tmp_path / "points.npy"
    np.save(points, np.random.default_rng(0).normal(size=(400, 10)).astype(np.float32))
    small = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")
    words = ["embed", points, tmp_path / "run", "--quiet", *small]
    done = subprocess.run([sys.executable, "-c", FOLLOWED, *words], capture_output=True, text=True, check=True)
    frames = done.stdout.split()
    assert frames[0].endswith(":main")
    assert frames[-1].startswith("kernels/")
    assert len(frames) <= MOST_FRAMES, frames
