"""Every stage by its name, and what a module must have to be one.

The stages are those that the routes name. A stage's name is its module's: `STAGES["neighbors"]` is
`scalemani/stages/neighbors`.
"""

from importlib import import_module
from typing import Any, Protocol, cast

from scalemani.chunked.needs import Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import StageWork
from scalemani.routes import ROUTES


class StageCode(Protocol):
    """The three functions of a stage's module."""

    def memory(self, sizes: Sizes) -> list[Held]:
        """List what the stage holds in memory."""

    def disk(self, sizes: Sizes) -> list[Written]:
        """List what the stage writes, at most."""

    def run(self, work: StageWork) -> dict[str, Any]:
        """Compute what is missing of the stage's group; return its certificates."""


STAGES: dict[str, StageCode] = {
    stage.name: cast(StageCode, import_module(f"{__package__}.{stage.name}"))
    for stages in ROUTES.values()
    for stage in stages
}
