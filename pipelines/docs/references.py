"""References that the code itself gives: public names, the command line, parameters, certificates, limits of errors."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import typer
from sklearn.base import BaseEstimator

import scalemani
from scalemani import errors
from scalemani.config.routes import ROUTES
from scalemani.interfaces.cli.commands import app
from scalemani.interfaces.cli.output import parameter_tables
from scalemani.interfaces.report.certificates import MEANINGS


def write(built: Path) -> None:
    """Write the pages into `built/reference`."""
    folder = built / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "api.rst": api_page(),
        "certificates.md": certificates_page(),
        "command_line.md": command_line_page(),
        "error_list.md": errors_page(),
        "parameters.md": parameters_page(),
    }
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:  # what did not change is not built anew
            path.write_text(text)


def api_page() -> str:
    """Return the public names in reStructuredText, a separate page for each."""
    kinds: dict[str, list[str]] = {"Estimators": [], "Functions": [], "What they return": [], "Measures": []}
    for name in scalemani.__all__:
        value = getattr(scalemani, name)
        kinds[kind_of(value)].append(name)
    parts = ["Python\n======\n\n.. currentmodule:: scalemani\n"]
    for kind, names in kinds.items():
        listed = "\n".join(f"   {name}" for name in names)
        parts.append(f"{kind}\n{'-' * len(kind)}\n\n.. autosummary::\n   :toctree: api\n\n{listed}\n")
    return "\n".join(parts)


def kind_of(value: object) -> str:
    """Return the section of the reference in which a public name stands."""
    if inspect.ismodule(value):
        return "Measures"
    if inspect.isclass(value):
        return "Estimators" if issubclass(value, BaseEstimator) else "What they return"
    return "Functions"


def command_line_page() -> str:
    """Return every command with its arguments and options, from the parser."""
    group = typer.main.get_command(app)
    parts = ["# Command line", "Made from the parser itself; `scalemani COMMAND --help` prints the same."]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        parts += [f"## scalemani {name}", inspect.cleandoc(command.help or "")]
        parts.append(
            "\n".join(["| argument or option | default | meaning |", "| --- | --- | --- |", *rows_of(command)])
        )
    return "\n\n".join(parts) + "\n"


def rows_of(command: typer.core.TyperCommand) -> Iterator[str]:
    """Yield a row of a table in Markdown for each argument and option of a command."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            shown = parameter.metavar or parameter.name.upper()
        else:
            shown = ", ".join([*parameter.opts, *parameter.secondary_opts])
        plain = parameter.default in (None, (), []) or parameter.default is False or callable(parameter.default)
        default = "required" if parameter.required else "" if plain else f"`{parameter.default}`"
        yield f"| `{shown}` | {default} | {cell(getattr(parameter, 'help', '') or '')} |"


def cell(text: str) -> str:
    """Return a text as it can stand in a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


def parameters_page() -> str:
    """Return every parameter of every stage: its default, its name in Python, what the table of its stage says."""
    parts = [
        "# Parameters",
        "Every number that changes an answer, by the stage that reads it; made from the tables that check them. "
        "`--set NAME=VALUE` sets one on the command line, a table a stage in the file of `--config`; in Python it is "
        "an argument, or an entry of `settings={NAME: VALUE}`. *Follows*: decided by the method, the points or another "
        "parameter; `scalemani info RUN` shows it. Resources (memory, workers, scheduler, rows a block) are no "
        "parameters: they change the cost and not the answer.",
        "| method | stages |\n| --- | --- |\n"
        + "\n".join(f"| `{name}` | {', '.join(stage.name for stage in stages)} |" for name, stages in ROUTES.items()),
    ]
    for stage, table in parameter_tables(None).items():
        rows = []
        for row in table["parameters"]:
            default = "follows" if row["default"] is None else f"`{row['default']}`"
            rows.append(f"| `{row['name']}` | {default} | `{row['python']}` |")
        parts += [
            f"## {stage}",
            table["about"],
            "\n".join(["| name | default | in Python |", "| --- | --- | --- |", *rows]),
        ]
    return "\n\n".join(parts) + "\n"


def certificates_page() -> str:
    """Return what every certificate of every stage means."""
    parts = [
        "# Certificates",
        "What each stage measures of its result, as `scalemani info RUN`, `model.certificates_` and the report show "
        "it; made from the table of the report. *Judged*: the report says whether the value is good.",
    ]
    for stage, meanings in MEANINGS.items():
        rows = [
            f"| `{name}` | {cell(meaning.text)} | {'' if meaning.scale is None else 'yes'} |"
            for name, meaning in meanings.items()
        ]
        parts += [f"## {stage}", "\n".join(["| certificate | meaning | judged |", "| --- | --- | --- |", *rows])]
    return "\n\n".join(parts) + "\n"


def errors_page() -> str:
    """Return every class of errors and warnings with its meaning and the exit status that it ends a command with."""
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and kind.__module__ == errors.__name__]
    rows = [
        f"| `{kind.__name__}` | {cell(inspect.getdoc(kind) or '')} | {getattr(kind, 'exit_status', 'a warning')} |"
        for kind in kinds
    ]
    return "\n".join(
        [
            "# Kinds of errors",
            "",
            "| class, in `scalemani.errors` | when | exit status |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )
