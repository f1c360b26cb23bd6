"""The commands that look at a map point by point: whom to believe, how it stretches, which features move points."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from scalemani.errors import refuse_output_in_input
from scalemani.interfaces.cli.options import (
    AsJson,
    Assignments,
    Output,
    Resources,
    RunFolder,
    Wait,
)
from scalemani.interfaces.cli.output import say, say_json
from scalemani.interfaces.cli.parsing import taking


@dataclass(frozen=True)
class DoubtOptions(Resources):
    """Options of `doubt`."""

    run: RunFolder
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="FILE", help="classes of the points, as `report` takes them; may be repeated"),
    ] = None
    assignments: Assignments = None
    as_json: AsJson = False
    wait: Wait = 0.0


@taking(DoubtOptions)
def doubt(**values: Any) -> None:
    """Measure which points of a map to believe, and say how to read it.

    Each point is placed anew with all others fixed, and its neighbours on the map are compared with those in the data
    and with a map of points without structure. The scores stay with the run: `export RUN OUT.parquet --what doubt`
    writes them, `plot --doubtful` shows them, and `report` says how to read the map.
    """
    options = DoubtOptions(**values)
    from scalemani.config.params import parse_assignments
    from scalemani.interfaces.cli.printing import show_reading
    from scalemani.interfaces.report.reading import columns_of_classes, read_map
    from scalemani.io.sources.labels import named_labels
    from scalemani.runs.clusters import with_clusters
    from scalemani.runs.doubting import measure_doubt
    from scalemani.runs.opened import open_run

    opened = open_run(options.run)
    columns = columns_of_classes(named_labels(with_clusters(options.labels or (), opened), opened.n_input_points))
    with options.running() as executor:
        opened = measure_doubt(opened, executor, parse_assignments(options.assignments or []))
    show_reading(read_map(opened, columns), opened.certificates["doubt"], options.as_json)


def stretch(
    run: RunFolder,
    out: Output,
    neighbors: Annotated[int | None, typer.Option(help="of a point in the graph; default: 15, or all")] = None,
    dimensions: Annotated[
        int | None,
        typer.Option(help="directions of the data in which the map stretches; default: columns of the embedding"),
    ] = None,
) -> None:
    """Write how a map stretches at each point: area, anisotropy, and the share that a linear map explains.

    OUT ends in .parquet or .csv, for `plot --labels OUT::area`, reports and exports; or in .npz or .zarr, which have
    the dual pushforward metric too. Rows are those of the input; what is there is replaced, but for a .zarr.
    """
    import numpy as np

    from scalemani.io.export import checked_target
    from scalemani.io.export.writers import CSV, WRITERS, write_csv
    from scalemani.io.sources.lazy import lazy_rows
    from scalemani.kernels.stretch import BY_POINT
    from scalemani.runs.opened import open_run

    target, suffix = checked_target(out, (*WRITERS, CSV))
    refuse_output_in_input(out, run)
    result = open_run(run).stretch(neighbors, dimensions)
    columns = {name: lazy_rows(values, name) for name, values in result._asdict().items()}
    if suffix in (".parquet", CSV):
        del columns["metric"]  # a matrix is no column
    write: Callable[..., None] = write_csv if suffix == CSV else WRITERS[suffix]
    write(columns, target)
    for name in BY_POINT:
        low, middle, high = np.nanquantile(getattr(result, name), [0.05, 0.5, 0.95])
        say(f"{name:<12}{middle:.4g}   {low:.4g} to {high:.4g} at nine points of ten")


def features(
    run: RunFolder,
    groups: Annotated[
        str | None,
        typer.Option(
            help="the group of each point, in a file, as `measure --labels`; default: clusters, or all points"
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="features of each group to show")] = 20,
    seed: Annotated[int, typer.Option(help="of the points at which derivatives are checked")] = 0,
    picture: Annotated[
        str | None, typer.Option(help="bars of each group's influences, into a .png, .svg or .pdf")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which features put groups of points where they are: derivatives of the map times differences of means."""
    from scalemani.config.validation import check_count
    from scalemani.interfaces.report.opened import open_run
    from scalemani.io.figures import checked_suffix

    check_count(top, "top")
    if picture is not None:
        checked_suffix(Path(picture))
    result = open_run(run).features(groups, random_state=seed)
    rows = result.table(top)
    if picture is not None:
        result.picture(picture, top)
    if as_json:
        say_json({"agreement": result.agreement, "features": rows})
        return
    say(f"{'group':<20}{'feature':<32}{'influence':>12}{'slope':>12}{'difference':>12}")
    for row in rows:
        numbers = "".join(f"{row[name]:>12.4g}" for name in ("influence", "slope", "difference"))
        say(f"{row['group']:<20}{row['feature']:<32}{numbers}")
    say(f"derivatives agree with finite differences at {result.agreement:.0%} of sampled points")
    if picture is not None:
        say(f"written: {picture}")
