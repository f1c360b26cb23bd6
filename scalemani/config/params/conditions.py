"""Conditions under which a parameter has an effect: objects in the annotation of its field.

A field `Annotated[Count, Acts("neighbors.method", OneOf("partition"))]` has an effect where `neighbors.method` is
"partition". A parameter with several conditions has one where all hold; a note names the first that fails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, get_type_hints

Table = TypeVar("Table")
POINTS = "the number of points"


class Configuration(Protocol):
    """What decides which parameters have an effect: a method, the stages that are run, and values."""

    @property
    def method(self) -> str:
        """The method."""

    @property
    def stages(self) -> frozenset[str]:
        """The stages whose parameters are read."""

    def value(self, name: str) -> Any:
        """Return the value of a parameter that is in use, or the number of POINTS."""

    def requested(self, name: str) -> Any:
        """Return the value of a parameter that was requested."""

    def part(self, kind: type[Table], /) -> Table:
        """Return the parameters of a class that are in use."""


class Requirement(Protocol):
    """What the value of a parameter has to be; `str` says it in words."""

    def holds(self, value: Any, here: Configuration) -> bool:
        """Return whether a value is such a one."""


class OneOf:
    """One of some values."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def holds(self, value: Any, here: Configuration) -> bool:
        """Return whether a value is such a one."""
        return value in self.values

    def __str__(self) -> str:
        return " or ".join(map(str, self.values))


class OtherThan:
    """Any value but some."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def holds(self, value: Any, here: Configuration) -> bool:
        """Return whether a value is such a one."""
        return value not in self.values

    def __str__(self) -> str:
        return f"other than {' or '.join(map(str, self.values))}"


@dataclass(frozen=True)
class Above:
    """A larger number."""

    bound: float

    def holds(self, value: Any, here: Configuration) -> bool:
        """Return whether a value is such a one."""
        return bool(value > self.bound)

    def __str__(self) -> str:
        return f"above {self.bound}"


@dataclass(frozen=True)
class AtMost:
    """A number, or a smaller one."""

    bound: float

    def holds(self, value: Any, here: Configuration) -> bool:
        """Return whether a value is such a one."""
        return bool(value <= self.bound)

    def __str__(self) -> str:
        return f"at most {self.bound}"


@dataclass(frozen=True)
class Where:
    """What a function of several values decides; `words` say when it is true."""

    words: str
    is_met: Callable[[Configuration], bool]

    def holds(self, value: Any, here: Configuration) -> bool:
        """Return whether a value is such a one."""
        return self.is_met(here)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Acts:
    """The condition of a parameter: what the value of another one, named `on`, or of itself has to be.

    Where it fails, a requested value is left out and named in a note, or refused where it is `required`: the request
    contradicts itself. `reason` says why in words of its own, where values of `on` do not.
    """

    on: str
    what: Requirement
    required: bool = False
    reason: str = ""

    def why_not(self, here: Configuration) -> str:
        """Return why the parameter has no effect; "" where the condition is met."""
        value = here.value(self.on)
        if self.what.holds(value, here):
            return ""
        return self.reason or f"it acts only where {self.on} is {self.what}; here it is {value}"


def conditions_of(table: type) -> dict[str, list[Acts]]:
    """Return the conditions of the fields of a table of parameters, by field, in their order."""
    hints = get_type_hints(table, include_extras=True)
    by_field = {
        name: [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Acts)]
        for name, hint in hints.items()
    }
    return {name: conditions for name, conditions in by_field.items() if conditions}
