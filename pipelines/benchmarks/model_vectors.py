"""Neighbours of vectors of a language model versus pynndescent, rinnd, hnswlib, usearch and FAISS: seconds and recall.

    OPENBLAS_NUM_THREADS=1 python pipelines/benchmarks/model_vectors.py tokens384.npz --rows tokens --rows 200000

The rows are the tokens of the file, of length one, or so many sums of two of them with noise, which have hardly any
leading axes, or a table ROWSxCOLUMNS that the tokens begin with. Every side is a process of its own with --threads
threads, in turn, --repeats times; the least processor seconds count. It first searches 3,000 rows, which compiles, and
is then measured from points in memory to the graph: seconds of all threads, and wall seconds; the peak memory is that
of the process. Ours has stores and a certificate; of its search alone the seconds and those predicted are told too.
Recall is that of 1,000 rows among all points: the distinct rows of a list that are among the k nearest, ties counted.
Settings of peers are --lists of descents, --ef of small worlds and --probes of inverted lists, of which FAISS has
4 sqrt(N); --prototype FILE.py names a module whose graph(points, k) joins. Peers that are not installed are left out.

    python pipelines/benchmarks/model_vectors.py tokens384.npz --rows 1000000 --write rows.npy
    scalemani embed rows.npy run --method t-sne --memory 4GB

writes two such sums side by side, (N, 768) float16, which a run takes as they are.
"""

import argparse
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import THREAD_VARIABLES, measured, show

FEW_ROWS = 3000
NOISE = 0.03
N_QUERIES = 1000
QUERIES_AT_ONCE = 20  # by which the recall is measured
ROWS_AT_ONCE = 50_000
OURS = ("auto", "leaves", "exact", "partition")


def vectors(path: Path, rows: str) -> np.ndarray:
    """Return the rows that are searched, (N, D) float32 of length one."""
    tokens = of_length_one(np.load(path)["X"].astype(np.float32))
    if rows == "tokens":
        return tokens
    if "x" in rows:
        count, columns = map(int, rows.split("x"))
        return of_length_one(tokens[:count, :columns])
    draws, count = np.random.default_rng(1), int(rows)
    sums = tokens[draws.integers(0, len(tokens), count)] + tokens[draws.integers(0, len(tokens), count)]
    return of_length_one(sums + NOISE * draws.normal(size=sums.shape).astype(np.float32))


def write_rows(path: Path, count: int, target: Path) -> None:
    """Write two sums of tokens with noise side by side, (N, 768) float16, in parts."""
    tokens, draws = of_length_one(np.load(path)["X"].astype(np.float32)), np.random.default_rng(1)
    rows = np.lib.format.open_memmap(target, "w+", np.float16, (count, 2 * tokens.shape[1]))
    for start in range(0, count, ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        chosen = tokens[draws.integers(0, len(tokens), (2, 2, len(part)))].sum(axis=0)
        sums = np.concatenate(list(chosen + NOISE * draws.normal(size=chosen.shape).astype(np.float32)), axis=1)
        part[:] = of_length_one(sums)


def of_length_one(points: np.ndarray) -> np.ndarray:
    """Return rows in units of their lengths."""
    return np.ascontiguousarray(points / np.linalg.norm(points, axis=1, keepdims=True), dtype=np.float32)


def graph_of(side: str, value: str, k: int, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return what gives the neighbours (N, k or more) of points by one of the sides."""
    if side in OURS:
        import scalemani as sm

        return lambda points: sm.knn_graph(points, k, side, float(value), workers=threads).indices[...]
    if side in PEERS:
        return lambda points: PEERS[side](points, k, int(value), threads)
    described = importlib.util.spec_from_file_location("prototype", value)
    sys.path.insert(0, str(Path(value).parent))
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return lambda points: module.graph(points, k, leaf=1000, f=4, repeats=4, rounds=1)[0]


def pynndescent(points: np.ndarray, k: int, lists: int, threads: int) -> np.ndarray:
    """Return the lists of a descent, with so many entries."""
    from pynndescent import NNDescent

    return NNDescent(points, n_neighbors=max(k + 1, lists), n_jobs=threads, random_state=0).neighbor_graph[0]


def rinnd(points: np.ndarray, k: int, lists: int, threads: int) -> np.ndarray:
    """Return the lists of a descent, with so many entries; an index for queries is not built."""
    from rinnd import RINND

    index = RINND(points, n_neighbors=max(k + 1, lists), n_jobs=threads, random_state=0, graph_only=True)
    return index.neighbor_graph[0].astype(np.int64)


def hnswlib(points: np.ndarray, k: int, ef: int, threads: int) -> np.ndarray:
    """Return what a small world gives."""
    from hnswlib import Index

    index = Index("l2", points.shape[1])
    index.init_index(len(points), ef_construction=ef, M=16)
    index.add_items(points, num_threads=threads)
    index.set_ef(max(ef, k + 1))
    return index.knn_query(points, k + 1, num_threads=threads)[0].astype(np.int64)


def usearch(points: np.ndarray, k: int, ef: int, threads: int) -> np.ndarray:
    """Return what a small world of float32 gives."""
    from usearch.index import Index

    most = max(ef, k + 1)
    index = Index(ndim=points.shape[1], metric="l2sq", dtype="f32", expansion_add=ef, expansion_search=most)
    index.add(np.arange(len(points)), points, threads=threads)
    return index.search(points, k + 1, threads=threads).keys.astype(np.int64)


def faiss(points: np.ndarray, k: int, probes: int, threads: int) -> np.ndarray:
    """Return what so many inverted lists hold, or with none all points."""
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatL2(points.shape[1])
    if probes:
        index = faiss.IndexIVFFlat(index, points.shape[1], int(4 * len(points) ** 0.5))
        index.train(points)
        index.nprobe = probes
    index.add(points)
    return index.search(points, k + 1)[1]


PEERS = {"pynndescent": pynndescent, "rinnd": rinnd, "hnswlib": hnswlib, "usearch": usearch, "faiss": faiss}


def true_recall(points: np.ndarray, found: np.ndarray, k: int) -> float:
    """Return the share of the k nearest that some rows have, ties counted, a row that is listed twice once."""
    rows = np.random.default_rng(9).choice(len(points), min(N_QUERIES, len(points)), replace=False)
    shares = []
    for start in range(0, len(rows), QUERIES_AT_ONCE):
        for row, products in zip(rows[start:], points[rows[start : start + QUERIES_AT_ONCE]] @ points.T, strict=False):
            products[row] = -np.inf
            least = np.partition(products, -k)[-k]
            listed = [other for other in dict.fromkeys(found[row]) if other not in (row, -1)][:k]
            shares.append(np.mean(np.pad(points[listed] @ points[row] >= least - 1e-6, (0, k - len(listed)))))
    return float(np.mean(shares))


def search(arguments: argparse.Namespace) -> None:
    """Run one side in this process and print what it took."""
    side, value = arguments.side
    k, points = arguments.k[0], vectors(arguments.file, arguments.rows[0])
    searches = []
    if side in OURS:
        from predicted_seconds import predicted, timed_searches

        searches = timed_searches()
    graph = graph_of(side, value, k, arguments.threads)
    graph(points[:FEW_ROWS])
    processor, wall = time.process_time(), time.perf_counter()
    found = graph(points)
    row: dict[str, Any] = {"cpu s": time.process_time() - processor, "wall s": time.perf_counter() - wall}
    row["peak GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row["recall"] = true_recall(points, found, k)
    for one in searches[-1:]:
        seconds = predicted(points, "euclidean", k, float(value))["predicted"]
        row |= {"method": one["method"], "certified": one["recall"], "search s": one["measured"]}
        row["predicted s"] = seconds[one["method"]]
    print(json.dumps(row))


def sides_of(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the sides that can run, each with its setting."""
    sides = [("auto", recall) for recall in arguments.recall] + [("exact", "1.0")]
    peers = [(name, lists) for name in ("pynndescent", "rinnd") for lists in arguments.lists]
    peers += [(name, ef) for name in ("hnswlib", "usearch") for ef in arguments.ef]
    peers += [("faiss", probes) for probes in ("0", *arguments.probes)]
    sides += [(name, value) for name, value in peers if importlib.util.find_spec(name)]
    return sides + ([("prototype", arguments.prototype)] if arguments.prototype else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", action="append", help="tokens, ROWSxCOLUMNS or how many sums; may be repeated")
    parser.add_argument("--k", type=int, nargs="+", default=[15, 90])
    parser.add_argument("--recall", nargs="+", default=["0.9", "0.95", "0.99"])
    parser.add_argument("--lists", nargs="+", default=["16", "30", "60"])
    parser.add_argument("--ef", nargs="+", default=["100", "200"])
    parser.add_argument("--probes", nargs="*", default=[])
    parser.add_argument("--prototype")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="names of sides")
    parser.add_argument("--write", type=Path, help="file of rows for the command line, written in place of a search")
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.rows = arguments.rows or ["tokens"]
    if arguments.write:
        write_rows(arguments.file, int(arguments.rows[0]), arguments.write)
        return
    if arguments.side:
        search(arguments)
        return
    table: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    threads = dict.fromkeys(THREAD_VARIABLES[1:], str(arguments.threads))
    cases = [(rows, k, *side) for rows in arguments.rows for k in arguments.k for side in sides_of(arguments)]
    for case in (case for _ in range(arguments.repeats) for case in cases):
        rows, k, name, value = case
        if arguments.only and name not in arguments.only:
            continue
        words = [sys.executable, __file__, str(arguments.file), "--rows", rows, "--k", str(k), "--side", name, value]
        run = measured([*words, "--threads", str(arguments.threads)], {"OPENBLAS_NUM_THREADS": "1", **threads})
        row = json.loads(run.output.splitlines()[-1])
        print(*case, row, file=sys.stderr, flush=True)
        table[case] = min(table.get(case, row), row, key=lambda one: one["cpu s"])
    show([{"rows": rows, "k": k, "side": f"{name} {value}", **row} for (rows, k, name, value), row in table.items()])


if __name__ == "__main__":
    main()
