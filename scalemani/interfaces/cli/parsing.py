"""How commands take their options from dataclasses, parse them, and show them in their help."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from scalemani.errors import ConfigError

PANELS = {  # of the options of commands that have many
    "Method and parameters": ("method", "metric", "missing", "config", "assignments"),
    "Side data of the points": (
        "exclude",
        "labels",
        "weights",
        "precomputed_lists",
        "deduplicate",
        "init",
        "global_reference",
        "ids",
        "landmarks",
    ),
    "Workers and memory": ("scheduler", "workers", "memory", "tls", "block_rows", "wait", "keep"),
    "Messages": ("log", "quiet", "debug", "help"),
}
PANEL_OF = {option: panel for panel, options in PANELS.items() for option in options}
MANY_OPTIONS = 15


def described(parameters: list[Any]) -> list[Any]:
    """Have the help show flags as what takes no value, and many options in panels by their subjects."""
    many = len(parameters) > MANY_OPTIONS
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
        if many:
            one.rich_help_panel = PANEL_OF.get(one.name, one.rich_help_panel)
    return parameters


class Command(TyperCommand):
    """A command with its options as `described`, and paragraphs of its help as lines that fit the terminal."""

    def __init__(self, *values: Any, help: str | None = None, **named: Any) -> None:
        super().__init__(*values, help=re.sub(r"(?<!\n)\n(?!\n)", " ", help or ""), **named)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return arguments and options."""
        return described(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command; refuse an option that is given twice and takes one value, the last of these."""
        order = self.make_parser(ctx).parse_args(list(args))[-1]
        for one in order:
            if (
                one.param_type_name == "option"
                and not (one.multiple or getattr(one, "is_flag", False))
                and order.count(one) > 1
            ):
                raise ConfigError(
                    f"{one.opts[-1]} is given {order.count(one)} times, and one of them is used: give it once"
                )
        return super().parse_args(ctx, args)


class Commands(TyperGroup):
    """All commands, whose options are as `described`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options before a command."""
        return described(super().get_params(ctx))


def taking(kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have Typer pass a command, as keyword arguments, an option for each field of a dataclass."""
    shared = [one.replace(kind=one.POSITIONAL_OR_KEYWORD) for one in inspect.signature(kind).parameters.values()]

    def describe(command: Callable[..., None]) -> Callable[..., None]:
        named = [one for one in inspect.signature(command).parameters.values() if one.kind is not one.VAR_KEYWORD]
        # Python wants parameters with a default last.
        ordered = sorted([*named, *shared], key=lambda one: one.default is not one.empty)
        command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in ordered}
        return command

    return describe
