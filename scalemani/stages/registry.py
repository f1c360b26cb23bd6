"""The module of every stage: the one beside this that has its name."""

from importlib import import_module
from types import ModuleType

from scalemani.routes import ROUTES

STAGE_MODULES: dict[str, ModuleType] = {
    stage.name: import_module(f"scalemani.stages.{stage.name}") for stages in ROUTES.values() for stage in stages
}
