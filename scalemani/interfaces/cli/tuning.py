"""The command `tune`: a grid of runs in one store, the table of what they score, and its pictures."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scalemani.config.other_names import check_method
from scalemani.config.routes import ROUTES, takes_labels
from scalemani.errors import ConfigError
from scalemani.interfaces.cli.options import EQUAL, Config, Options
from scalemani.interfaces.cli.output import say
from scalemani.interfaces.cli.parsing import taking

if TYPE_CHECKING:
    from scalemani.interfaces.tuning import Lists
    from scalemani.interfaces.tuning.search import Candidate, Tuning

FOLDER = "tuning"  # within a run that is a folder
SCORE_DIGITS = 4


@dataclass(frozen=True)
class TuningOptions(Options):
    """Options of `tune`: those of `embed`, with lists for values, and what runs are compared with."""

    method: Annotated[str, typer.Option(help=f"one, or several with commas: {', '.join(ROUTES)}")] = (
        "laplacian-eigenmaps"
    )
    config: Config = None
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.PARAM=VALUE,VALUE",
            help="values of one parameter with commas between them; one that holds a comma stands in quotes; may be "
            "repeated, and every combination is run",
        ),
    ] = None
    reference: Annotated[
        str | None, typer.Option(help="embedding to compare with, in a format of POINTS; rows in input order")
    ] = None
    score: Annotated[
        list[str] | None,
        typer.Option(
            help="label-accuracy, clustering-error, procrustes-error, neighbor-preservation, trustworthiness, "
            "continuity, density-correlation, triplet-accuracy, distance-correlation, center-triplet-accuracy, "
            "silhouette, doubt, believable or eigengap; may be repeated: the first ranks, and of two the front is "
            "drawn. Default: what labels or the reference allow, else eigengap"
        ),
    ] = None
    neighbors: Annotated[
        int | None, typer.Option(help="neighbours that a score looks at; default: 1 for labels, 15 for others")
    ] = None
    out: Annotated[
        Path | None, typer.Option(help="folder for tuning.csv, tuning.json and tuning.png; default: RUN/tuning")
    ] = None

    @property
    def methods(self) -> list[str]:
        """The requested methods."""
        from scalemani.interfaces.tuning import parse_list

        return [str(name) for name in parse_list(self.method)]

    @property
    def learns_from_labels(self) -> bool:
        """Whether any method takes the labels."""
        return any(map(takes_labels, self.methods))

    @property
    def folder(self) -> Path | None:
        """Where the table goes; None where the run is in an object store and --out is not set."""
        if self.out is not None:
            return self.out
        return None if "://" in self.run else Path(self.run) / FOLDER

    def lists(self) -> "Lists":
        """Return the requested values of parameters, by name, the method among them."""
        from scalemani.config.params.parsing import parse_assignments, read_configuration
        from scalemani.interfaces.tuning import METHOD, flat_lists, parse_list

        grid: Lists = {METHOD: list(self.methods)}
        if self.config is not None:
            grid |= flat_lists(read_configuration(self.config))
        grid |= parse_assignments(self.assignments or [], parse_list)
        if self.deduplicate:
            grid.setdefault("duplicates.tolerance", [EQUAL])
        return grid | {name: parse_list(value) for name, value in self.implied.items()}


@taking(TuningOptions)
def tune(**values: Any) -> None:
    """Run a grid of parameters in one store and compare the results; RUN then opens as the best.

    Lists are written as `--set affinities.perplexity=5,10,30 --set neighbors.n_neighbors=15,30`. Points, the graph and
    the landmark weights are computed once. The same command resumes, and a combination that
    cannot be run is reported while the others finish.
    """
    options = TuningOptions(**values)
    lists = options.lists()
    candidates = candidates_of(lists)
    from scalemani.interfaces.tuning.scores import chosen_scores, make_judge
    from scalemani.interfaces.tuning.search import SurveyedPoints, search, valid_params

    # Labels are opened where any candidate uses them.
    source = options.source(max(valid_params(candidates), key=lambda one: one.symmetric_affinities.target_weight))
    judge = make_judge(source.shape[0], options.labels, options.reference, options.neighbors)
    scores = chosen_scores(options.score or (), judge, options.methods)
    with options.running() as executor:
        points = SurveyedPoints(source, executor, options.block_rows)
        tuning = search(points, options.run, candidates, scores, judge)
    show_tuning(tuning)
    if options.folder is not None:
        write_tuning(tuning, options.folder)


def candidates_of(lists: "Lists") -> list["Candidate"]:
    """Return the cells of a grid; only what has several values is shown of each."""
    from scalemani.interfaces.tuning import METHOD, combinations

    for method in lists[METHOD]:
        check_method(method, ROUTES)
    from scalemani.config.params import Parameters
    from scalemani.interfaces.tuning.search import Candidate

    candidates = []
    for combination in combinations(lists):
        shown = {name: value for name, value in combination.items() if len(lists[name]) > 1}
        method = combination.pop(METHOD)
        params: Parameters | ConfigError
        try:
            params = Parameters().with_values(combination)
        except ConfigError as error:
            params = error
        candidates.append(Candidate(shown, method, params))
    return candidates


def show_tuning(tuning: "Tuning") -> None:
    """Print a line a cell, the best, and how to have it by hand."""
    from scalemani.interfaces.cli.printing import aligned
    from scalemani.interfaces.tuning import METHOD

    table = tuning.results_
    columns = {name: table[f"param_{name}"] for name in tuning.names}
    columns |= {name: table[name] for name in (*tuning.scoring, "rank", "seconds")}
    rows = [[shown(value) for value in row] for row in zip(*columns.values(), strict=True)]
    for line, failed in zip(aligned([list(columns), *rows]), [None, *table["failure"]], strict=True):
        say(line + (f"  failed: {failed}" if failed else ""))
    seconds = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in tuning.shared_seconds.items() if seconds)
    say(f"computed once for all: {seconds or 'nothing'}")
    if tuning.best_index_ is None:
        return
    if len(tuning.front_) > 1:
        first, second = tuning.scoring[:2]
        say(f"front of {first} and {second}: {' < '.join(named(tuning, number) for number in tuning.front_)}")
    if undecided := tuning.undecided_:
        others = ", ".join(named(tuning, number) for number in undecided)
        say(f"the data do not decide between {named(tuning, tuning.best_index_)} and {others}")
    best = tuning.cells[tuning.best_index_]
    settings = {**best.values, **best.computed_as}
    settings.pop(METHOD, None)
    by_hand = "".join(f" --set {name}={value}" for name, value in settings.items())
    say(f"best: {tuning.scoring[0]} {tuning.best_score_:.{SCORE_DIGITS}g} at --method {best.method}{by_hand}")
    say(f"{tuning.store} opens as the best: 'scalemani plot', 'export' and 'transform' take it")


def named(tuning: "Tuning", number: int) -> str:
    """Return the values of a cell in words."""
    return " ".join(f"{name}={value}" for name, value in tuning.cells[number].values.items())


def shown(value: Any) -> str:
    """Return a value of the table, nothing for what is not there."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.{SCORE_DIGITS}g}"
    return "" if value is None else str(value)


def write_tuning(tuning: "Tuning", folder: Path) -> None:
    """Write the table and its picture, where there is more than one cell and matplotlib is installed."""
    from scalemani.interfaces.tuning.search import FRONT, PICTURE
    from scalemani.io.figures import front_figure, grid_figure

    written = tuning.write(folder)
    try:
        if len(tuning.front_) > 1:
            names = [named(tuning, number) for number in range(len(tuning.cells))]
            front_figure(tuning.results_, tuning.scoring[:2], names, tuning.front_, folder / FRONT)
            written.append(folder / FRONT)
        scores = tuning.results_[tuning.scoring[0]]
        grid_figure(
            [cell.values for cell in tuning.cells], scores, folder / PICTURE, tuning.scoring[0], tuning.best_index_
        )
        written.append(folder / PICTURE)
    except ConfigError as error:
        say(f"no picture: {error}", err=True)
    say(f"written: {', '.join(map(str, written))}")
