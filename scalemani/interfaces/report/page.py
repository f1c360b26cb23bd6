"""The page about a run, and what notebooks show: facts and measures, put into templates that escape every text."""

import base64
import hashlib
import json
import platform
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
import numpy as np

from scalemani.audit.verifying import JSON_NAME
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params import TUNED, Parameters
from scalemani.config.stages import CLASSES, DUPLICATES, LISTS, PRECOMPUTED, WEIGHTS
from scalemani.config.units import format_bytes
from scalemani.config.validation import check_count
from scalemani.interfaces.functions.measures import SAMPLED_POINTS
from scalemani.interfaces.functions.run_measures import meaning_of, measure_labels, measure_run
from scalemani.interfaces.report.certificates import VERDICTS, counted, judged_certificates
from scalemani.interfaces.report.charts import distributions
from scalemani.interfaces.report.map_data import MOST_AXES, MapData, map_of, picture, with_doubtful
from scalemani.interfaces.report.reading import MOST_LISTED, Reading, percent
from scalemani.io.sources import open_points
from scalemani.io.sources.base import without_credentials
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.machine.forks import cached_property
from scalemani.kernels.measures import Measure
from scalemani.runs.opened import Run
from scalemani.runs.outline import SEARCH, SOLVER
from scalemani.runs.walk import stored_warnings
from scalemani.store.objects import RECORD_BYTES

MAP_SCRIPTS = ("points", "tiles", "density", "canvas", "pace", "legend", "finding", "names", "map")
SCRIPTS = ("page", *MAP_SCRIPTS)
LIBRARIES = ("scalemani", "numpy", "scipy", "numba", "scikit-learn", "dask", "zarr")
MOST_SHOWN = 12  # numbers of a certificate that is a list
MOST_PRODUCTS = 1e11  # of coordinates, in the distances of sampled points to all: some ten seconds
FEWEST_POINTS = 100  # a share of a half is then known to five percent
MOST_MEASURED = 6  # columns of classes
MOST_NAMES = 24  # of columns of the points that are not folded away
LEAST_INPUT = 3  # points, for neighbours to be measured at all


CHOICES = {"embedding.solver": SOLVER, "neighbors.method": SEARCH}  # where a plan has what `auto` was resolved to


class Parameter(NamedTuple):
    """A parameter of a stage that the run has; `tuned` for those that few have a reason to change.

    `chosen` says that the run chose the value, since `auto` was requested.
    """

    name: str
    value: Any
    default: Any
    tuned: bool
    chosen: bool = False

    @property
    def changed(self) -> bool:
        """Whether the value that was requested differs from its default."""
        return bool(self.value != self.default) and not self.chosen


class Quality(NamedTuple):
    """Measures, and a note on them or in place of them."""

    measures: Mapping[str, Measure | float]
    note: str = ""


class Heading(NamedTuple):
    """The title of a page, a note below it, and the date on which it was written; texts may be empty."""

    title: str = ""
    note: str = ""
    date: str = ""


def page(
    run: Run,
    quality: Quality,
    drawn: MapData | None,
    heading: Heading = Heading(),  # noqa: B008
    reading: Reading | None = None,
) -> str:
    """Return the page about a run, of which some stages may not be finished, as HTML; with its map, if it has one."""
    groups = {name: run.group(name) for name in run.records()}
    return rendered(
        "page.html",
        SCRIPTS,
        run=run,
        root=without_credentials(str(run.store.root)),
        name=OBJECTIVES[run.method].name if run.method in OBJECTIVES else "",
        sizes={name: group.committed_bytes for name, group in groups.items()},
        warnings=[message for group in groups.values() for _, message in stored_warnings(group)],
        certificates=list(judged_certificates(run)),
        parameters=list(parameters_with_defaults(run)),
        charts=list(distributions(run)),
        verification=read_verification(run),
        quality=quality,
        map=drawn,
        reading=reading,
        heading=heading,
        commands=commands(run),
        versions=versions(),
    )


def read_verification(run: Run) -> dict[str, Any] | None:
    """Return what the last audit reported, as stored with the run; None where there was none, or of another run."""
    content = run.store.objects.get(JSON_NAME, RECORD_BYTES)
    if content is None:
        return None
    try:
        verification = json.loads(content)
        return verification if verification["keys"] == run.keys and isinstance(verification["findings"], list) else None
    except (KeyError, RecursionError, TypeError, ValueError):
        return None


def parameters_with_defaults(run: Run) -> Iterator[Parameter]:
    """Yield the parameters of the stages of a run; defaults are those for its method and its number of points."""
    default = Parameters().resolved(run.method, run.dimensions.n_points).as_dict()
    values = run.params.as_dict()
    yield Parameter("seed", values["seed"], default["seed"], False)
    for stage in [known.name for known in run.route]:
        for name, value in values.get(stage, {}).items():
            choice = run.plan.get(CHOICES.get(f"{stage}.{name}", "")) or {}
            chosen = value is not None and choice.get("resolved") == value
            yield Parameter(f"{stage}.{name}", value, default[stage][name], name in TUNED.get(stage, ()), chosen)


def commands(run: Run) -> tuple[str, ...]:
    """Return the commands that repeat the run and inspect it; POINTS stands for the points."""
    words = ["scalemani", "embed", "POINTS", "RUN", "--method", run.method]
    for parameter in parameters_with_defaults(run):
        if (
            (parameter.changed or parameter.chosen)
            and parameter.value is not None
            and parameter.name != "layout.objective"
        ):
            words += ["--set", f"{parameter.name}={written(parameter.value)}"]
    if CLASSES.name in run.keys:
        words += ["--labels", "LABELS"]
    if weighs(run):
        words += ["--weights", "WEIGHTS"]
    if LISTS.name in run.keys:
        words += ["--graph", "LISTS"]
    return (
        shlex.join(words),
        "scalemani info RUN",
        "scalemani measure RUN",
        "scalemani verify RUN",
        "scalemani report RUN",
    )


def weighs(run: Run) -> bool:
    """Return whether weights were passed: those of merged duplicates alone add up to the number of rows."""
    certificates = run.certificates
    total = certificates.get(WEIGHTS.name, {}).get("total_weight")
    return WEIGHTS.name in run.keys and total != certificates.get(DUPLICATES.name, {}).get("rows", 0)


def written(value: Any) -> str:
    """Return a value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def versions() -> dict[str, str]:
    """Return the versions of what writes the page."""
    libraries = {name: version(name) for name in LIBRARIES}
    return {**libraries, "Python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}


def shown(value: Any) -> str:
    """Return a value of a certificate or parameter as a person reads it."""
    if value is None:
        return "open"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        more = f" and {len(value) - MOST_SHOWN:,} more" if len(value) > MOST_SHOWN else ""
        return ", ".join(map(shown, value[:MOST_SHOWN])) + more
    return str(value)


def templates_of(package: str) -> jinja2.Environment:
    """Return the templates of a package, in which values are escaped and undefined ones refused."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "template"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


TEMPLATES = templates_of("scalemani.interfaces.report")
TEMPLATES.filters |= {
    "shown": shown,
    "percent": percent,
    "bytes": format_bytes,
    "counted": counted,
    "meaning": meaning_of,
}
TEMPLATES.globals |= {"verdicts": VERDICTS, "most_names": MOST_NAMES, "most_listed": MOST_LISTED}


def rendered(template: str, scripts: Sequence[str] = (), /, **values: Any) -> str:
    """Return a template with values, which are escaped; undefined ones are refused.

    With names of scripts it is a whole page: these, its style, and a policy that allows nothing else are values.
    """
    if scripts:
        style, texts = text_of("page.css"), [text_of(f"{script}.js") for script in scripts]
        values |= {"style": style, "scripts": texts, "policy": policy(style, texts)}
    return TEMPLATES.get_template(template).render(**values)


def text_of(name: str) -> str:
    """Return a file from the folder of templates."""
    return (files("scalemani.interfaces.report") / "template" / name).read_text(encoding="utf-8")


def policy(style: str, scripts: Sequence[str]) -> str:
    """Return the content security policy: this style and these scripts alone, and nothing from outside the file."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, *scripts)]
    allowed = [f"'sha256-{digest}'" for digest in hashes]
    return (
        f"default-src 'none'; script-src {' '.join(allowed[1:])}; style-src {allowed[0]}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def measure_quality(run: Run, classes: Mapping[str, np.ndarray], n_sampled: int | None, random_state: Any) -> Quality:
    """Return the measures of a run on as many points as the cost allows; of classes (N,) with their names."""
    n_points = run.dimensions.n_points
    if n_sampled is not None and check_count(n_sampled, "n_sampled", 0) == 0:
        return Quality({}, "Nothing was measured, as requested: scalemani measure RUN measures.")
    if set(run.records()) != set(run.keys) or run.metric == PRECOMPUTED or n_points < LEAST_INPUT:
        return Quality({}, "No points, too few or an unfinished run: nothing was measured.")
    affordable = np.clip(MOST_PRODUCTS / (n_points * run.dimensions.n_features), FEWEST_POINTS, SAMPLED_POINTS)
    wanted = n_sampled or int(affordable)
    note = "scalemani measure RUN looks at more points." if wanted < min(SAMPLED_POINTS, n_points) else ""
    measures = measure_run(run, n_sampled=wanted, random_state=random_state)
    for name in [*classes][:MOST_MEASURED]:
        of_classes = measure_labels(run, classes[name], n_sampled=wanted, random_state=random_state)
        measures |= {f"{measure} of {name}": value for measure, value in of_classes.items()}
    if len(classes) > MOST_MEASURED:
        note = f"Of {len(classes)} columns of classes the first {MOST_MEASURED} are measured. {note}"
    return Quality(measures, note)


MOST_MAPPED = 1_000_000  # points; of more, a notebook would wait
MAPPED_POINTS = 10_000  # of more than are all drawn: on top of tiles
DRAWN_BYTES = 600_000  # that points may take in a page; scripts and two pictures take some 300,000 more
AXIS_BYTES, COLUMN_BYTES = 3, 2  # of a point, compressed and in base64
SIDE = 256  # tiles a side
TEXT_BYTES = 50_000  # of a column of identifiers
PICTURED_PIXELS = 300


class LiveMap:
    """A map of at most a million points that notebooks show, live where scripts run, else as a picture.

    All points are drawn as long as the page stays below 1 MB: some 75,000 with a column of classes. Of more, 10,000 are
    drawn on top of tiles in which all are counted.
    """

    def __init__(
        self,
        embedding: Any,
        columns: Mapping[str, np.ndarray],
        rows: np.ndarray | None = None,
        doubtful: Callable[[], np.ndarray] | None = None,
    ) -> None:
        """Take an embedding (N, d), labels or values (N,) by their names, and the rows (N,) of the input points.

        `doubtful` returns which of the N could as well lie elsewhere; None where that was not measured.
        """
        self.source, self.columns, self.rows, self.doubtful = open_points(embedding), columns, rows, doubtful

    @cached_property
    def picture(self) -> str | None:
        """The embedding by the first column, as a PNG in base64; None without the extra `figures`."""
        return picture(self.source, next(iter(self.columns.values()), None), PICTURED_PIXELS)

    @cached_property
    def document(self) -> str:
        """The map as a standalone page."""
        n_points = self.source.shape[0]
        n_axes = min(self.source.shape[1], MOST_AXES)
        most = DRAWN_BYTES // (AXIS_BYTES * n_axes + COLUMN_BYTES * len(self.columns))
        drawn = sample_rows(0, "report/notebook", n_points, n_points if n_points <= most else MAPPED_POINTS)
        data = map_of(self.source, self.columns, drawn, self.rows, SIDE, TEXT_BYTES)
        if self.doubtful is not None:
            data = with_doubtful(data, self.doubtful()[drawn])
        return rendered("live.html", MAP_SCRIPTS, map=data._replace(picture=self.picture))

    def _repr_html_(self) -> str:
        return rendered("frame.html", document=self.document, picture=self.picture)

    def _repr_png_(self) -> bytes | None:
        return None if self.picture is None else base64.b64decode(self.picture)


def summary(run: Run, live: LiveMap | None) -> str:
    """Return what a notebook shows of a run as HTML: method, stages, verdicts, and its map where there is one."""
    live_map = "" if live is None else live._repr_html_()
    return rendered("summary.html", run=run, certificates=list(judged_certificates(run)), map=live_map)
