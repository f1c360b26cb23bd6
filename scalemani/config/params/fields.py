"""The kinds of values that parameters take, and what makes a class a table of parameters that checks itself."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, TypeVar, cast, get_type_hints

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from scalemani.config.functions import is_function, name_of_function
from scalemani.config.methods import FieldsExtension, extensions
from scalemani.config.metrics import METRIC_NAMES, MINKOWSKI, SAME_METRICS, known_power
from scalemani.errors import ConfigError

Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
# A weight of forces: the squares of a gradient that it multiplies stay far below the largest float64.
Weight = Annotated[float, Field(gt=0, le=1e30)]
PositiveOrZero = Annotated[float, Field(ge=0)]
# Of the pull to a map of the whole: t-SNE of 500 points ends within 1% of the reference at 1e5, and beside it at 1e6.
Pull = Annotated[float, Field(ge=0, le=1e5)]
Share = Annotated[float, Field(gt=0, le=1)]
Part = Annotated[float, Field(gt=0, lt=1)]
PartOrZero = Annotated[float, Field(ge=0, lt=1)]

Kind = TypeVar("Kind")


class Mark(Enum):
    """What says of a parameter that a key holds it only where it differs from its default."""

    TUNED = "a number that was tuned once, and that few have a reason to change"
    UNKEYED = "results at the default are those of keys that do not know the parameter"


Tuned = Annotated[Kind, Mark.TUNED]
Unkeyed = Annotated[Kind, Mark.UNKEYED]


def known_metric(name: str) -> str:
    """Return the name of a metric, by whichever of its names; raise ValueError for another one."""
    name = SAME_METRICS.get(name, name)
    if name.startswith(MINKOWSKI):
        return known_power(name)
    if is_function(name):
        return name
    if name not in METRIC_NAMES:
        raise ValueError(
            f"must be one of {', '.join(METRIC_NAMES)}; or minkowski:P with a power P, or a function of two rows "
            "that numba compiles, as module:function or path.py::function; or find the neighbours elsewhere, by "
            "scikit-learn's NearestNeighbors or pynndescent, and give their lists with metric=precomputed"
        )
    return name


def as_metric(value: Any) -> Any:
    """Return the name of a metric that is passed as a function; raise ValueError for one without a name."""
    try:
        return name_of_function(value) if callable(value) else value
    except ConfigError as error:
        raise ValueError(str(error)) from error


def as_tolerance(value: Any) -> Any:
    """Return a tolerance: 0 for true, which asks for equal rows, and None for false."""
    return (0.0 if value else None) if isinstance(value, bool) else value


Tolerance = Annotated[PositiveOrZero | None, BeforeValidator(as_tolerance)]
Metric = Annotated[str, BeforeValidator(as_metric), AfterValidator(known_metric)]

parameters = functools.partial(
    dataclass, frozen=True, kw_only=True, config=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
)
fields_of: Callable[[Any], Any] = dataclasses.fields  # pydantic's dataclasses are dataclasses, which mypy cannot tell
values_of: Callable[[Any], dict[str, Any]] = dataclasses.asdict


def with_fields_of_methods(stage: str) -> Callable[[type[Kind]], type[Kind]]:
    """Return a decorator that adds the parameters which methods have in the table of a stage, after those of the stage.

    The table is then one of each class of such parameters too.
    """

    def extended(table: type[Kind]) -> type[Kind]:
        added = [one.load() for one in extensions(FieldsExtension).values() if one.stage == stage]
        docs = "\n\n".join(inspect.cleandoc(kind.__doc__ or "") for kind in (table, *added))  # none under python -OO
        place = {name: getattr(table, name) for name in ("__module__", "__qualname__")}
        made = parameters()(type(table.__name__, (*reversed(added), table), {**place, "__doc__": docs}))
        return cast("type[Kind]", made)

    return extended


def marked_names(table: type, *marks: Mark) -> frozenset[str]:
    """Return the names of the parameters of a table that have one of some marks."""
    hints = get_type_hints(table, include_extras=True)
    return frozenset(
        name
        for name, hint in hints.items()
        if any(one in marks for one in getattr(hint, "__metadata__", ()) if isinstance(one, Mark))
    )


def names_of(table: Any) -> list[str]:
    """Return the names of a table's parameters, in their order."""
    return [field.name for field in fields_of(table)]


def values_in(table: Any) -> dict[str, Any]:
    """Return the parameters of a table by name, as they are."""
    return {name: getattr(table, name) for name in names_of(table)}
