"""Run openTSNE on given affinities; t_sne.py and iteration.py run this where it is installed.

python t_sne_peer.py fit|iterate INPUT.npz OUTPUT.npz THREADS

INPUT holds a CSR matrix P (data, indices, indptr) and `start` (N, 2). `fit` runs openTSNE's defaults, 250 iterations
exaggerated and 500 plain; `iterate` times single iterations of the plain phase.
"""

import sys
import time

import numpy as np
import openTSNE
import scipy.sparse as sp
from openTSNE.affinity import PrecomputedAffinities

TIMED_ITERATIONS = 3


def main():
    what, source, target, n_threads = *sys.argv[1:4], int(sys.argv[4])
    with np.load(source) as given:
        start = given["start"]
        affinities = sp.csr_matrix((given["data"].astype(np.float64), given["indices"], given["indptr"]))
    prepared = PrecomputedAffinities(affinities)
    if what == "fit":
        model = openTSNE.TSNE(initialization=start, n_jobs=n_threads, negative_gradient_method="fft", random_state=0)
        started = time.perf_counter()
        embedding = model.fit(affinities=prepared)
        seconds = [time.perf_counter() - started]
    else:
        embedding = openTSNE.TSNEEmbedding(
            start, prepared, negative_gradient_method="fft", n_jobs=n_threads, random_state=0
        )
        seconds = []
        for _ in range(TIMED_ITERATIONS):
            started = time.perf_counter()
            embedding.optimize(1, inplace=True)
            seconds.append(time.perf_counter() - started)
    np.savez(target, embedding=np.asarray(embedding), seconds=seconds)


if __name__ == "__main__":
    main()
