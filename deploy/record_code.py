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
BEYOND_EXACT_SEARCH = 21_000  # points


def record(folder: Path) -> None:
    """Fill a folder with the versions that are at work here and a folder of entries for each level."""
    here = binding.get_host_cpu_features()
    folder.mkdir(parents=True)
    (folder / BUILT_WITH).write_text(json.dumps(built_with()))
    for level, features in LEVELS.items():
        if not all(here.get(feature[1:]) for feature in features.split(",") if feature.startswith("+")):
            print(f"{level}: left out, this processor does not have it", flush=True)
            continue
        with tempfile.TemporaryDirectory() as cache:
            variables = {"SCALEMANI_CACHE": cache, "NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features}
            pytest = ("-m", "pytest", "-p", "no:cacheprovider", str(PUBLIC_TESTS))
            for program in ((__file__,), pytest):
                subprocess.run([sys.executable, *program], env={**os.environ, **variables}, check=True)
            (entries,) = Path(cache, "kernels").iterdir()
            shutil.copytree(entries, folder / level, copy_function=shutil.copyfile)
        (folder / level).chmod(0o755)
        sizes = [entry.stat().st_size for entry in (folder / level).iterdir()]
        print(f"{level}: {len(sizes)} entries, {sum(sizes) / 1e6:.1f} MB", flush=True)


def call_kernels() -> None:
    """Fit what the tests do not: all types of points, one and three dimensions, a search that is not exact."""
    warnings.simplefilter("ignore")
    digits = load_digits().data
    blobs = make_blobs(BEYOND_EXACT_SEARCH, 20, centers=30, random_state=0)[0]
    blobs = np.clip(8 * blobs + 128, 0, 255)
    for kind in (np.float64, np.float32, np.uint8):
        for points in (digits.astype(kind), csr_array(digits.astype(kind))):
            for method in (
                sm.TSNE,
                sm.LaplacianEigenmaps,
                sm.DiffusionMaps,
                sm.ElasticEmbedding,
                sm.SpectralClustering,
            ):
                method().fit(points)
            for method in (sm.TSNE, sm.LaplacianEigenmaps):
                method().fit(points[:600]).transform(points[600:])
        sm.TSNE(max_iter=100).fit(blobs.astype(kind))
        sm.LaplacianEigenmaps().fit(blobs.astype(kind))
    for n_components in (1, 3):
        sm.TSNE(n_components, max_iter=100).fit(digits)
    sm.TSNE(metric="cosine").fit(digits)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        record(Path(sys.argv[1]))
    else:
        call_kernels()
