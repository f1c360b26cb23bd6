"""Run t-SNE of another library; t_sne.py and iteration.py run this where it is installed.

python t_sne_peer.py fit|iterate|fit-h2pack INPUT.npz OUTPUT.npz THREADS [PERPLEXITY]

INPUT holds a CSR matrix (data, indices, indptr) and `start` (N, 2). `fit` runs openTSNE's defaults on affinities, 250
iterations exaggerated and 500 plain; `iterate` times single iterations of the plain phase. `fit-h2pack` runs
tsne-h2pack's defaults on a matrix of distances to neighbours: it makes the affinities and a random start itself.
"""

import sys
import time

import numpy as np
import scipy.sparse as sp

TIMED_ITERATIONS = 3


def open_tsne(what, matrix, start, n_threads):
    """Return openTSNE's map of affinities, and seconds: of the whole descent, or of single iterations."""
    import openTSNE
    from openTSNE.affinity import PrecomputedAffinities

    prepared = PrecomputedAffinities(matrix)
    if what == "fit":
        model = openTSNE.TSNE(initialization=start, n_jobs=n_threads, negative_gradient_method="fft", random_state=0)
        started = time.perf_counter()
        embedding = model.fit(affinities=prepared)
        return embedding, [time.perf_counter() - started]
    embedding = openTSNE.TSNEEmbedding(
        start, prepared, negative_gradient_method="fft", n_jobs=n_threads, random_state=0
    )
    seconds = []
    for _ in range(TIMED_ITERATIONS):
        started = time.perf_counter()
        embedding.optimize(1, inplace=True)
        seconds.append(time.perf_counter() - started)
    return embedding, seconds


def h2pack(distances, n_threads, perplexity):
    """Return tsne-h2pack's map of distances to neighbours, and its seconds, affinities among them."""
    from tsne_h2pack import TSNE

    model = TSNE(perplexity=perplexity, metric="precomputed", random_state=0, n_jobs=n_threads)
    started = time.perf_counter()
    return model.fit_transform(distances), [time.perf_counter() - started]


def main():
    what, source, target, n_threads = *sys.argv[1:4], int(sys.argv[4])
    with np.load(source) as given:
        start = given["start"]
        matrix = sp.csr_matrix((given["data"].astype(np.float64), given["indices"], given["indptr"]))
    found = (
        h2pack(matrix, n_threads, float(sys.argv[5]))
        if what == "fit-h2pack"
        else open_tsne(what, matrix, start, n_threads)
    )
    np.savez(target, embedding=np.asarray(found[0]), seconds=found[1])


if __name__ == "__main__":
    main()
