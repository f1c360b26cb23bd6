"""Compiles kernels for levels of x86-64 into FOLDER, of which `wheel.sh` makes a wheel: `python record_code.py FOLDER`.

For each level that this processor has, processes run the tests of the public interface and `call_kernels` with an empty
cache: what they call is compiled for that level. What they do not call is compiled where a user calls it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from llvmlite import binding
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_blobs

import scalemani as sm
from scalemani.kernels.machine.code_cache import BUILT_WITH, LEVELS, built_with

PUBLIC_TESTS = Path(__file__).parents[1] / "tests" / "public"
TYPES = PUBLIC_TESTS / "test_types.py"  # need type checkers, and call no kernel
PUBLIC = ("-m", "pytest", "-p", "no:cacheprovider", "--ignore", str(TYPES), str(PUBLIC_TESTS))
PROGRAMS = ((__file__,), PUBLIC)  # which call kernels
BEYOND_EXACT_SEARCH = 21_000  # points


def record(folder: Path) -> None:
    """Fill a folder with the versions that are at work here and a folder of entries for each level."""
    here = binding.get_host_cpu_features()
    folder.mkdir(parents=True)
    (folder / BUILT_WITH).write_text(json.dumps(built_with()))
    needed = {level: [name[1:] for name in LEVELS[level].split(",") if name[0] == "+"] for level in LEVELS}
    levels = [level for level in LEVELS if all(map(here.get, needed[level]))]
    if not levels:
        raise SystemExit(f"this processor has none of {', '.join(LEVELS)}")
    with tempfile.TemporaryDirectory() as caches:
        started = [compiling(level, program, caches) for level in levels for program in PROGRAMS]
        statuses = [process.wait() for process in started]
        if any(statuses):
            raise SystemExit("a program that calls kernels has failed")
        for level in levels:
            (entries,) = Path(caches, level, "kernels").iterdir()
            shutil.copytree(entries, folder / level, copy_function=shutil.copyfile)
            (folder / level).chmod(0o755)
            sizes = [entry.stat().st_size for entry in (folder / level).iterdir()]
            print(f"{level}: {len(sizes)} entries, {sum(sizes) / 1e6:.1f} MB", flush=True)


def compiling(level: str, program: tuple[str, ...], caches: str) -> subprocess.Popen:
    """Start a program whose kernels are compiled for a level."""
    variables = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": LEVELS[level]}
    places = {"SCALEMANI_CACHE": os.path.join(caches, level)}
    return subprocess.Popen([sys.executable, *program], env={**os.environ, **variables, **places})


def call_kernels() -> None:
    """Fit what the tests do not: all types of points, one and three dimensions, a search that is not exact."""
    warnings.simplefilter("ignore")
    digits = load_digits().data
    for method in (sm.TSNE, sm.LaplacianEigenmaps, sm.DiffusionMaps, sm.ElasticEmbedding, sm.SpectralClustering):
        method().fit(digits)
    for n_components in (1, 3):
        sm.TSNE(n_components, max_iter=100).fit(digits)
    sm.TSNE(metric="cosine", max_iter=100).fit(digits)
    blobs = make_blobs(BEYOND_EXACT_SEARCH, 20, centers=30, random_state=0)[0]
    blobs = np.clip(8 * blobs + 128, 0, 255)
    for kind in (np.float64, np.float32, np.uint8):
        for points in (digits.astype(kind), csr_array(digits.astype(kind))):
            sm.TSNE(max_iter=100).fit(points[:600]).transform(points[600:900])
            sm.LaplacianEigenmaps().fit(points).transform(points[:100])
        sm.TSNE(n_neighbors=30, perplexity=10, max_iter=50).fit(blobs.astype(kind))
    sm.LaplacianEigenmaps(n_neighbors=15).fit(blobs)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        record(Path(sys.argv[1]))
    else:
        call_kernels()
