"""What commands take to be asked for where an option is not given."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from scalemani.datasets import generator
from scalemani.errors import ConfigError
from scalemani.interfaces.cli.commands import app
from scalemani.interfaces.cli.tuning import TuningOptions

COMMANDS = typer.main.get_command(app).commands


def test_no_flag_is_up_unless_it_is_given():
    flags = [option for command in COMMANDS.values() for option in command.params if getattr(option, "is_flag", False)]
    assert len(flags) >= len(COMMANDS)  # each has --debug
    assert [option.name for option in flags if option.default] == []


def test_generated_points_are_those_of_the_library_where_no_seed_is_given():
    options = {option.name: option.default for option in COMMANDS["generate"].params}
    assert options["seed"] == inspect.signature(generator).parameters["seed"].default


def test_a_table_of_runs_lies_in_their_folder_and_of_those_in_an_object_store_where_it_is_asked_for():
    in_folder, in_bucket = (TuningOptions("points.npy", run) for run in ("some/run", "s3://bucket/run"))
    assert in_folder.folder == Path("some/run/tuning")
    assert in_bucket.folder is None
    assert replace(in_bucket, out=Path("here")).folder == Path("here")


def test_the_help_says_what_a_budget_means_on_a_cluster():
    shown = {option.name: option.help for option in COMMANDS["embed"].params if hasattr(option, "help")}
    assert (
        "with the address of a scheduler, workers have limits of their own: dask worker --memory-limit"
        in shown["memory"]
    )


def test_an_option_of_one_value_that_is_given_twice_is_refused():
    def given(command: str, *words: str) -> dict[str, object]:
        return COMMANDS[command].make_context(command, list(words)).params

    for words in (("--exclude", "a", "--exclude", "b"), ("--exclude=a", "--quiet", "--exclude=a")):
        with pytest.raises(ConfigError, match=r"^--exclude is given 2 times, and one of them is used: give it once$"):
            given("embed", "points.npy", "run", *words)
    with pytest.raises(ConfigError, match=r"^--labels is given 3 times"):
        given("measure", "run", *("--labels", "a") * 3)
    twice = given("embed", "points.npy", "run", "--set", "a.b=1", "--set", "c.d=2", "--quiet", "--quiet")
    assert [*twice["assignments"]] == ["a.b=1", "c.d=2"]
