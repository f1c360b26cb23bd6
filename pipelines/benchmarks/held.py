"""What a process holds by stage, in bytes a point: projected, by the lists that `scalemani plan --explain` prints.

The driver of a cluster is such a process without tasks. What is mapped is in files on its disk where memory is short.
Nothing is run.

    python pipelines/benchmarks/held.py --features 784 --dtype uint8 --neighbors 15
"""

import argparse

from measuring import show

from scalemani.config.params import Parameters
from scalemani.config.routes import ROUTES
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.stages.table import STAGES

SIZES, BLOCK_ROWS = (10**6, 10**8, 10**9), 20_480


def held(sizes: Sizes, stage: str) -> dict[str, float]:
    """Return the most bytes of a step of a stage: of each process, those that may be mapped, and of a task."""
    steps = STAGES[stage].memory(sizes).by_step.values()
    return {
        "a process": max(sum(step.process.values()) for step in steps),
        "or mapped": max(sum(step.points.values()) for step in steps),
        "a task": max(sum(step.task.values()) for step in steps),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="laplacian-eigenmaps")
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--dtype", default="uint8")
    parser.add_argument("--neighbors", type=int, default=15)
    arguments = parser.parse_args()
    params = Parameters().with_values({"neighbors": {"n_neighbors": arguments.neighbors}})
    rows = []
    for stage in ROUTES[arguments.method]:
        row: dict[str, object] = {"stage": stage.name}
        for n_points in SIZES:
            dimensions = Dimensions(n_points, arguments.features, arguments.dtype, BLOCK_ROWS)
            decided = params.resolved(arguments.method, n_points)
            found = held(Sizes(dimensions, decided), stage.name)
            row[f"{n_points:.0e}: a process, B/point"] = found["a process"] / n_points
            row[f"{n_points:.0e}: or mapped, B/point"] = found["or mapped"] / n_points
            row[f"{n_points:.0e}: a task, MB"] = found["a task"] / 1e6
        rows.append(row)
    show(rows)


if __name__ == "__main__":
    main()
