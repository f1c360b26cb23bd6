"""What commands take to be asked for where an option is not given."""

import inspect

import typer

from scalemani.cli.commands import app
from scalemani.datasets import generator

COMMANDS = typer.main.get_command(app).commands


def test_no_flag_is_up_unless_it_is_given():
    flags = [option for command in COMMANDS.values() for option in command.params if getattr(option, "is_flag", False)]
    assert len(flags) >= len(COMMANDS)  # each has --debug
    assert [option.name for option in flags if option.default] == []


def test_generated_points_are_those_of_the_library_where_no_seed_is_given():
    options = {option.name: option.default for option in COMMANDS["generate"].params}
    assert options["seed"] == inspect.signature(generator).parameters["seed"].default
