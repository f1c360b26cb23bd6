"""Choosing parameters: a grid of values, runs in one store that share what they have in common, scored and compared."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from scalemani.config.params import by_name, parse_value
from scalemani.errors import ConfigError

Lists = dict[str, list[Any]]  # the values of a grid by the names of their parameters
METHOD = "method"  # the name that the method has among the parameters of a grid
# A value between commas: quotes keep a comma in it, as in TOML.
VALUE = re.compile(r"""(?:"[^"]*"|'[^']*'|[^,"'])+""")
MOST_CELLS = 10_000  # a longer list was hardly meant: at a second a cell it takes three hours


def parse_list(text: str) -> list[Any]:
    """Return the values that are written in one text: `5,10,30`, `[5, 10, 30]`, `random,kmeans`, `none,"a,b"`.

    Commas part values, each read as `--set` reads one; a value that holds a comma stands in quotes. A TOML list is the
    list of its values.
    """
    whole = parse_value(text)
    if isinstance(whole, list):
        values = whole
    else:
        pieces = VALUE.findall(text)
        if ",".join(pieces) != text:
            raise ConfigError(
                f"a list of values is written 5,10,30, with quotes around one that holds a comma, got {text!r}"
            )
        values = [parse_value(piece.strip()) for piece in pieces]
    if not values:
        raise ConfigError(f"a list of values holds one at least, got {text!r}")
    return values


def flat_lists(tables: Mapping[str, Any]) -> Lists:
    """Return lists by name from the tables of a configuration; a value that is no list is the only one."""
    return {name: value if isinstance(value, list) else [value] for name, value in by_name(tables).items()}


def combinations(lists: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of the values in lists, by name; the last name varies fastest."""
    n_cells = 1
    for name, values in lists.items():
        texts = [repr(value) for value in values]
        if not texts or len(set(texts)) < len(texts):
            raise ConfigError(f"{name} takes a list of distinct values, one at least, got {list(values)!r}")
        n_cells *= len(values)
    if n_cells > MOST_CELLS:
        raise ConfigError(f"the grid has {n_cells} combinations, at most {MOST_CELLS} are run: give shorter lists")
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]
