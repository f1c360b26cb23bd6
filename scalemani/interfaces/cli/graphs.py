"""What `plan --graph` draws: the tasks of a run and what each waits for, in the language of Graphviz."""

from collections.abc import Iterator
from pathlib import Path

from scalemani.errors import ConfigError
from scalemani.io.export.atomic import replaced_file
from scalemani.io.sources.base import optional_module
from scalemani.runs.plan import Plan, PlannedStage

MOST_BLOCKS = 12  # that are drawn each; of larger runs a stage is one node with its number of blocks
DRAWN = (".svg", ".png", ".pdf")
COMPLETE, MISSING = "gray80", "white"


def check_graph_file(path: Path) -> None:
    """Refuse a file that cannot be drawn on this machine, before any work; raises ConfigError."""
    if path.suffix not in (".dot", *DRAWN):
        raise ConfigError(f"--graph must name a file that ends in .dot, {', '.join(DRAWN)}, got {path}")
    if path.suffix in DRAWN:
        optional_module("pygraphviz", "graph")


def write_graph(plan: Plan, path: Path) -> None:
    """Write the graph of a run as a text for Graphviz, or as the picture that it makes of it."""
    text = "\n".join(graph_lines(plan)) + "\n"
    content = text.encode()
    if path.suffix in DRAWN:
        content = optional_module("pygraphviz", "graph").AGraph(string=text).draw(prog="dot", format=path.suffix[1:])
    with replaced_file(path) as file:
        file.write(content)


def graph_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines of the graph: a stage begins once all blocks of its inputs are there."""
    n_blocks = plan.dimensions.n_blocks
    yield f'digraph "{plan.method}" {{'
    yield "  rankdir=LR; compound=true; node [shape=box, style=filled, fillcolor=white];"
    for planned in plan.stages:
        yield from stage_lines(planned, n_blocks)
    for planned in plan.stages:
        for name in planned.stage.inputs:
            yield from (f'  "{name}" -> "{task}";' for task in tasks_of(planned, n_blocks))
    yield "}"


def tasks_of(planned: PlannedStage, n_blocks: int) -> list[str]:
    """Return the nodes of a stage that wait for its inputs: its blocks in a small run, or itself."""
    name = planned.stage.name
    if not planned.stage.by_block or not 1 < n_blocks <= MOST_BLOCKS:
        return [name]
    return [f"{name} {block}" for block in range(n_blocks)]


def stage_lines(planned: PlannedStage, n_blocks: int) -> Iterator[str]:
    """Yield the nodes of a stage; that with its name alone is the stage once it is complete."""
    name, tasks = planned.stage.name, tasks_of(planned, n_blocks)
    color = COMPLETE if planned.group.complete else MISSING
    count = f"\\n{n_blocks} blocks" if planned.stage.by_block and tasks == [name] and n_blocks > 1 else ""
    yield f'  "{name}" [label="{name}{count}", fillcolor={color}];'
    if tasks != [name]:
        yield f'  subgraph "cluster {name}" {{ label="{name}";'
        for block, task in enumerate(tasks):
            yield f'    "{task}" [label="block {block}", fillcolor={color}];'
        yield "  }"
        yield from (f'  "{task}" -> "{name}";' for task in tasks)
