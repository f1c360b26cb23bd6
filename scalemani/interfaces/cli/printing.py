"""What commands print and draw: records, measures and results of runs, plans and their needs, landmarks compared."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scalemani.config.stages import REFINE
from scalemani.config.units import format_bytes
from scalemani.engine.memory_model import Memory, of_process
from scalemani.errors import ConfigError
from scalemani.interfaces.cli.output import quoted, say, say_json
from scalemani.interfaces.functions.measures import knn_accuracy
from scalemani.interfaces.report.certificates import VERDICTS, counted, judged_certificates
from scalemani.interfaces.report.reading import MOST_LISTED, Reading, percent
from scalemani.io.export.atomic import replaced_file
from scalemani.io.sources.base import optional_module
from scalemani.io.sources.label_values import is_absent
from scalemani.io.sources.side_data import has_label
from scalemani.kernels.measures import Measure
from scalemani.runs.aligning import Alignment
from scalemani.runs.opened import Run
from scalemani.runs.plan import Plan
from scalemani.runs.stored_results import StoredResult
from scalemani.stages.arrays.embeddings import StoredClustering
from scalemani.store.run_store import PLAN, RunStore

if TYPE_CHECKING:
    from scalemani.engine.graph import TaskGraph  # which takes Dask
    from scalemani.interfaces.tuning.landmarks import LandmarkQuality

Graphs = Mapping[str, Sequence["TaskGraph | str"]]
UNKNOWN = "-"
REPORTED = ("look", "short")  # verdicts on certificates that miss their target
PLANNED = "{:<24}{:<18}{:>12}{:>12}{:>12}{:>9}{:>10}"  # a stage of a plan
TERM = "  {:<66}{:>15.0f}  {}"  # what it is of, bytes, and for how long or how often


def left_out(run: Run) -> str:
    """Return what to say of the rows that a run has left out: those with gaps, or of smaller components."""
    missing = run.n_input_points - len(run.rows)
    if run.fills_gaps:
        others = " or are in other components than the largest" if run.is_component else ""
        return f"{missing} of {run.n_input_points} rows have gaps{others}, and NaN or no cluster in results"
    return f"{missing} of {run.n_input_points} points are in other components than the largest, and have no row"


def show_records(run: Run) -> None:
    """Print a line a finished stage: seconds, peak memory, certificates; and what was left out."""
    if run.n_input_points > len(run.rows):
        say(left_out(run))
    for name, record in run.records().items():
        certificates = certificate_text(record["certificates"])
        say(f"{name:<24}{record['seconds']:>9.1f} s {format_bytes(record['peak_memory']):>11}  {certificates}")


def show_verdicts(run: Run) -> None:
    """Print which stage an unfinished run comes to, how many certificates are good, and the others explained."""
    if following := run.next_stage:
        state = f"{len(run.records())} of {len(run.keys)} stages are complete, {following} is next"
        say(f"unfinished: {state}; where no process is at work on it, the same command resumes the run")
    certificates = list(judged_certificates(run))
    good = counted(certificates)["good"]
    say(f"{good} {'certificate is' if good == 1 else 'certificates are'} good; 'scalemani report' explains all")
    for one in certificates:
        if one.judged.verdict in REPORTED:
            words = f"{VERDICTS[one.judged.verdict]}: {one.stage}.{one.name}, {one.meaning}"
            say(f"{words}; {one.judged.scale}" if one.judged.scale else words)


def next_steps(run: Run) -> str:
    """Return what can be done with a finished run, as commands."""
    root = quoted(str(run.store.root))
    if not run.embeds:
        return f"next: scalemani report {root}, or scalemani export {root} graph.npz"
    result = "labels.npy --what labels" if StoredClustering.STAGE in run.keys else "embedding.npy"
    return f"next: scalemani report {root}, scalemani plot {root} map.png, or scalemani export {root} {result}"


def certificate_text(certificates: Mapping[str, Any]) -> str:
    """Return certificates on one line; those that bound nothing have no value."""
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {'none' if value is None else value}"
        for key, value in certificates.items()
    )


def show_label_accuracy(run: Run, labels: np.ndarray, partial: bool) -> None:
    """Print the share of points whose nearest other point in the embedding has their label, of (N,) labels of these.

    Where they may be `partial`, -1 is no label either.
    """
    known = has_label(labels) if partial else ~is_absent(labels)
    classes, n_others = labels[known], int(np.count_nonzero(~known))
    if classes.dtype.kind == "f" and np.any(classes != np.rint(classes)):
        say("labels are values, not classes: no agreement is counted; 'scalemani plot' colours by them")
        return
    others = f"; {n_others} of {len(labels)} points have no label and do not count" if n_others else ""
    if len(classes) < 2:
        say(f"labels are too few: no agreement is counted{others}")
        return
    accuracy = knn_accuracy(run.stored_embedding.read()[known], classes)
    share = f"{accuracy.value:.4f} of {accuracy.n_sampled} points"
    say(f"{share} have the label of their nearest neighbour in the embedding{others}")


def show_measures(measures: Mapping[str, Any], as_json: bool) -> None:
    """Print the measures of a run, one a line with standard error, points looked at and meaning, or as JSON."""
    from scalemani.interfaces.functions.run_measures import meaning_of

    tables = {
        name: value._asdict() if isinstance(value, Measure) else {"value": value} for name, value in measures.items()
    }
    if as_json:
        say_json(tables)
        return
    for name, table in tables.items():
        sampled = f" +- {table['error']:.4f}   {table['n_sampled']} points" if "error" in table else ""
        value = f"{table['value']:.4f}{sampled}"
        say(f"{name.replace('_', ' '):<32}{value:<36}{meaning_of(name, measures[name])}")


def show_results(results: Sequence[StoredResult], removed: bool) -> None:
    """Print the results of a store, or those removed from it, a line each: size, whether they are used, parameters."""
    for result in results:
        state = "removed" if removed else "used" if result.used else "unused" if result.complete else "unfinished"
        values = ", ".join(f"{key} {value}" for key, value in result.params.items() if value is not None)
        say(f"{result.stage:<24}{result.key:<18}{format_bytes(result.n_bytes):>11}  {state:<11}{values}")
    freed = sum(result.n_bytes for result in results if not result.used)
    say(f"{format_bytes(freed)} {'removed' if removed else 'unused: --prune removes them'}")


def show_alignment(alignment: Alignment, as_json: bool) -> None:
    """Print the transform of one embedding onto another and what it leaves, for people or as JSON."""
    if as_json:
        say_json(alignment.as_dict())
        return
    for name, value in alignment.as_dict().items():
        say(f"{name.replace('_', ' ')} {value}")


def show_reading(reading: Reading, certificates: dict[str, Any], as_json: bool) -> None:
    """Print how to read a map, and between which classes points could move, for people or as JSON."""
    if as_json:
        tables = {
            part: {name: [one._asdict() for one in listed] for name, listed in columns.items()}
            for part, columns in (("classes", reading.classes), ("exchanges", reading.exchanges))
        }
        say_json({"certificates": certificates, "sentences": reading.sentences, **tables})
        return
    for sentence in reading.sentences:
        say(sentence)
    for name, classes in reading.classes.items():
        heads = ("believable", "kept", "could move", "of others", "by chance")
        say(f"\n{name:<20}{'points':>10}" + "".join(f"{head:>12}" for head in heads))
        for one in classes[:MOST_LISTED]:
            shares = one.believable, one.preserved, one.could_move, one.mixed, one.by_chance
            say(f"{one.name[:19]:<20}{one.points:>10,}" + "".join(f"{percent(share):>12}" for share in shares))
        if len(classes) > MOST_LISTED:
            say(f"and {len(classes) - MOST_LISTED} smaller classes, which --json lists")
        for pair in reading.exchanges[name][:MOST_LISTED]:
            moving = f"{pair.points} point{'s' * (pair.points > 1)} could move"
            say(f"{moving} between {pair.one} and {pair.other}, of {pair.of_points}")
    if reading.classes:
        say("kept: of the neighbours in the data, those on the map. of others: of these neighbours, other classes")


def earlier_seconds(store: RunStore, n_rows: int) -> dict[str, float]:
    """Return the seconds of the stages of the last run in a folder, in proportion to the number of input rows."""
    if store.objects.get_json(PLAN) is None:
        return {}
    earlier = Run(store.root)
    records = earlier.records()
    if not records:  # the first of the stages has the number of input rows
        return {}
    share = n_rows / earlier.n_input_points
    return {name: record["seconds"] * share for name, record in records.items()}


def plan_facts(plan: Plan, seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return what a plan says: bytes, notes, and its stages with what is missing of each; None for unknown seconds."""
    merged, solver, search = plan.outline.survey.side.duplicates, plan.outline.solver, plan.outline.search
    stages = [
        {
            "stage": (name := planned.stage.name),
            "key": planned.key,
            "complete": planned.group.complete,
            "missing": planned.missing(plan.dimensions.n_blocks),
            "memory": planned.memory,
            "disk": planned.disk.total,
            "at_once": planned.fit.at_once,
            "seconds": 0.0 if planned.group.complete else seconds.get(name),
        }
        for planned in plan.stages
    ]
    known = [one["seconds"] for one in stages if one["seconds"] is not None]
    return {
        "method": plan.method,
        "notes": [*plan.outline.notes, *([] if merged is None else [str(merged)])],
        "solver": None if solver is None else solver.text,
        "search": None if search is None else search.text,
        "dimensions": vars(plan.dimensions),
        "disk": plan.disk,
        "projected_disk": plan.projected_disk,
        "free": plan.free_bytes,
        "stages": stages,
        "seconds": sum(known) if len(known) == len(stages) else None,
    }


def show_plan(plan: Plan, seconds: Mapping[str, float]) -> None:
    """Print the stages of a plan: keys, what is missing, projected memory and time."""
    facts, dimensions, solver = plan_facts(plan, seconds), plan.dimensions, plan.outline.solver
    by_landmarks = [solver.text] if solver is not None and solver.resolved != REFINE else []
    for note in (*facts["notes"], *by_landmarks, *filter(None, (facts["search"],))):
        say(note)
    refined = f"; {solver.text}" if solver is not None and not by_landmarks else ""
    say(
        f"{dimensions.n_points} points of {dimensions.n_features} features ({dimensions.dtype}) in "
        f"{dimensions.n_blocks} blocks of {dimensions.block_rows} rows; "
        f"about {format_bytes(plan.projected_disk)}, up to {format_bytes(plan.disk)} to write"
        f"{'' if plan.free_bytes is None else f', {format_bytes(plan.free_bytes)} free'}{refined}"
    )
    say(PLANNED.format("stage", "key", "missing", "memory", "disk", "at once", "seconds"))
    for one in facts["stages"]:
        shown = UNKNOWN if one["seconds"] is None else f"{one['seconds']:.1f}"
        sizes = format_bytes(one["memory"]), format_bytes(one["disk"])
        say(PLANNED.format(one["stage"], one["key"], one["missing"], *sizes, one["at_once"], shown))
    if facts["seconds"] is not None:
        say(f"about {facts['seconds']:.1f} s to do, by the last run in this folder, in proportion to the points")
    else:
        say(f"seconds: by the last run in this folder, in proportion to the points; {UNKNOWN} where none ran")


def show_needs(plan: Plan, name: str) -> None:
    """Print what a stage takes of memory and of the disk, and how memory adds up to what the plan shows."""
    planned = plan.planned(name)
    tasks, used = planned.tasks, planned.fit
    where, cache = "memory" if used.in_memory else "files", format_bytes(used.cache)
    say(f"memory of {name}")
    for term in (Memory(of_process()) + planned.held).listed():
        say(TERM.format(*term))
    say(f"with {tasks} tasks at once in a process, a cache of {cache}, and what may be in a file in {where}:")
    for step, held in used.memory.by_step.items():
        say(TERM.format(f"in sum{f', step: {step}' if step else ''}", held.total(tasks), "a process"))
    say(TERM.format("memory of a process, that of the largest step", planned.memory, "as planned"))
    say(f"\ndisk of {name}")
    for term in planned.written.listed():
        say(TERM.format(*term))
    say(TERM.format("disk, with marks and descriptions, less what is written", planned.disk.total, "as planned"))


COLUMNS = {
    "Nystrom error": "nystrom_error",
    "distance": "distance",
    "95 %": "high_distance",
    "largest": "largest_distance",
    "condition": "condition",
    "condition 95 %": "high_condition",
    "embedding": "embedding_error",
}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each of at least one row, cells aligned at the right of their columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def show_qualities(qualities: Sequence["LandmarkQuality"], as_json: bool) -> None:
    """Print what landmarks are worth: a line for each method and seed, or JSON."""
    if as_json:
        tables = [
            {name: value._asdict() if isinstance(value, Measure) else value for name, value in one._asdict().items()}
            for one in qualities
        ]
        say_json(tables)
        return
    say(f"{qualities[0].n_landmarks} landmarks; {qualities[0].nystrom_error.n_sampled} points looked at")
    rows = [["method", "seed", *COLUMNS, "time", "memory"]]
    for one in qualities:
        values = [measure_text(getattr(one, name)) for name in COLUMNS.values()]
        rows.append([one.method, str(one.seed), *values, f"{one.seconds:.2f} s", format_bytes(one.memory)])
    for line in aligned(rows):
        say(line)


def measure_text(value: Measure | float | None) -> str:
    """Return a value, with its standard error where it has one."""
    if isinstance(value, Measure):
        return f"{value.value:.4g}" + (f" ± {value.error:.1g}" if value.error > 0.0 else "")
    return UNKNOWN if value is None else f"{value:.4g}"


DRAWN = (".svg", ".png", ".pdf")
LEGEND = (
    "Boxes are layers of tasks that are missing; a solid arrow says how many times a task of one waits for a task of "
    "the other, as Dask is given it. Notes are what the driver does. Dashed arrows lead from graph to graph, and from "
    "stage to stage. Block ranges have as many tasks as the planned memory has room for."
)
COMPLETE, DRIVER = "gray80", "lightyellow"


class DrawnStep(NamedTuple):
    """Lines of a step of a stage, and which of its nodes wait for no other of them, and which no other waits for."""

    lines: list[str]
    first: list[str]
    last: list[str]


def check_graph_file(path: Path) -> None:
    """Refuse a file that cannot be drawn on this machine, before any work; raises ConfigError."""
    if path.suffix not in (".dot", *DRAWN):
        raise ConfigError(
            f"--graph of plan draws its stages into a file that ends in .dot, {', '.join(DRAWN)}, got {path}: "
            "give neighbour lists, --graph of embed, as --lists"
        )
    if path.suffix in DRAWN:
        optional_module("pygraphviz", "graph")


def write_graph(plan: Plan, graphs: "Graphs", path: Path) -> None:
    """Write the graphs of a run as a text for Graphviz, or as the picture that it makes of it."""
    text = "\n".join(graph_lines(plan, graphs)) + "\n"
    content = text.encode()
    if path.suffix in DRAWN:
        content = optional_module("pygraphviz", "graph").AGraph(string=text).draw(prog="dot", format=path.suffix[1:])
    with replaced_file(path) as file:
        file.write(content)


def graph_lines(plan: Plan, graphs: "Graphs") -> Iterator[str]:
    """Yield the lines of the graphs of tasks of each stage, of `planned_graphs`; a complete stage is one node."""
    yield f'digraph "{plan.method}" {{'
    yield f'  rankdir=LR; node [shape=box, style=filled, fillcolor=white]; label="{lines_of(LEGEND, 120)}";'
    ends = dict[str, list[str]]()
    for planned in plan.stages:
        name = planned.stage.name
        steps = [drawn_step(f"{name} {place}", step) for place, step in enumerate(graphs.get(name, ()))]
        steps = [step for step in steps if step.first] or [one_node(name, "complete", f"fillcolor={COMPLETE}")]
        yield f'  subgraph "cluster {name}" {{ label="{name}";'
        yield from (f"    {line}" for step in steps for line in step.lines)
        yield "  }"
        ends[name] = steps[-1].last
        before = [end for source in planned.stage.inputs for end in ends[source]]
        for step in steps:
            yield from (f'  "{one}" -> "{other}" [style=dashed];' for one in before for other in step.first)
            before = step.last
    yield "}"


def drawn_step(name: str, step: "TaskGraph | str") -> DrawnStep:
    """Return what is drawn of a graph of tasks, or of what the driver does."""
    if isinstance(step, str):
        return one_node(name, lines_of(step, 30), f"shape=note, fillcolor={DRIVER}")
    edges, tasks = step.edges_of_layers, {layer: len(of_layer.tasks) for layer, of_layer in step.layers.items()}
    lines = [f'"{name} {layer}" [label="{layer}\\ntasks: {count}"];' for layer, count in tasks.items() if count]
    lines += [f'"{name} {one}" -> "{name} {other}" [label="{count}"];' for (one, other), count in edges.items()]
    before, behind = {one for one, _ in edges}, {other for _, other in edges}
    first = [f"{name} {layer}" for layer, count in tasks.items() if count and layer not in behind]
    return DrawnStep(
        lines, first, [f"{name} {layer}" for layer, count in tasks.items() if count and layer not in before]
    )


def one_node(name: str, label: str, style: str) -> DrawnStep:
    """Return a step that is one node."""
    return DrawnStep([f'"{name}" [label="{label}", {style}];'], [name], [name])


def lines_of(text: str, width: int) -> str:
    """Return a text in lines, as labels have them."""
    return "\\n".join(textwrap.wrap(text, width))
