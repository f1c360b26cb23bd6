"""What constructors of estimators take: arguments of a few parameters, and settings of any by the names of --set."""

import copy
import dataclasses
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from sklearn.utils import Tags

from scalemani.config.choices import Seed
from scalemani.config.metrics import with_metrics
from scalemani.config.other_names import Ours
from scalemani.config.params import checked_settings
from scalemani.config.validation import check_seed
from scalemani.errors import ConfigError
from scalemani.interfaces.estimators.bases import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from scalemani.interfaces.wording import PARAMETERS, SETTINGS, instead_of

# Change the cost or the messages, and never the answer.
RESOURCES = ("scheduler", "store", "workers", "memory", "verbose", "callbacks", "callbacks_every")
OF_POINTS = ("use_rep",)  # say which points are meant
AUTOMATIC = "auto"  # scikit-learn's and openTSNE's word for what is None here
TAKE_AUTOMATIC = ("learning_rate", "early_exaggeration")
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*(?:\n+ .*)*", re.MULTILINE)  # of a section of a docstring
PARAMETER_SECTION = re.compile(r"Parameters\n-{10}\n(.*?)(?=\n\w[\w ]*\n-{4,}\n|\Z)", re.DOTALL)

Estimator = TypeVar("Estimator")


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer of dense or sparse rows; its constructor says which setting an unknown argument may mean."""

    _method: ClassVar[str] = ""
    _names_elsewhere: ClassVar[Mapping[str, Ours]] = {}  # that no table has, as other estimators have them as well

    def __new__(cls, *values: Any, **named: Any) -> Self:
        """Make an instance; raise TypeError for a name that the constructor does not take, and a value without one."""
        arguments = inspect.signature(cls.__init__).parameters
        first = [name for name, one in arguments.items() if one.kind is not one.KEYWORD_ONLY][1:]
        if len(values) > len(first):
            raise TypeError(
                f"{cls.__name__} takes {' and '.join(first) or 'nothing'} without a name: give the others by name"
            )
        for name in named:
            if name not in arguments:
                meant = instead_of(name, set(arguments) - {"self"}, cls._method, cls._names_elsewhere)
                raise TypeError(f"{name} is no argument of {cls.__name__}: {meant}")
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set arguments by name; raise ValueError for another name, saying which setting it may mean."""
        names = set(self.get_params(deep=False))
        for name in params:
            if name.partition("__")[0] not in names:
                meant = instead_of(name.rpartition("__")[2], names, self._method, self._names_elsewhere)
                raise ValueError(f"Invalid parameter {name!r} for estimator {type(self).__name__}: {meant}")
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def arguments(cls: type[Estimator]) -> type[Estimator]:
    """Make a constructor of the annotated values of a class and its bases, which stores its arguments untouched.

    The docstring gets the entries of all arguments, from the classes that describe them; resources come last.
    """
    made: Any = dataclasses.dataclass(kw_only=True, eq=False, repr=False)(cls)
    signature = inspect.signature(made.__init__)
    last = (SETTINGS, "random_state", *OF_POINTS, *RESOURCES)
    ordered = sorted(signature.parameters.values(), key=lambda one: (one.kind, one.name in last))
    made.__init__.__signature__ = signature.replace(parameters=ordered)
    made.__doc__ = with_arguments(made, [one.name for one in ordered if one.name != "self"])
    return cls


def with_arguments(cls: Any, names: list[str]) -> str:
    """Return the docstring of an estimator with the entries of all its arguments and of those of its bases."""
    text = inspect.cleandoc(cls.__doc__ or "")  # there is none under python -OO
    entries = dict(getattr(cls, "_entries", {}))
    for section in PARAMETER_SECTION.finditer(text):
        for entry in ENTRY.finditer(section[1]):
            entries |= dict.fromkeys(entry[1].split(", "), entry[0])
    cls._entries = entries
    described = "\n".join(dict.fromkeys(entries[name] for name in names if name in entries))
    return with_metrics(PARAMETER_SECTION.sub(lambda section: f"Parameters\n----------\n{described}\n", text))


def defaults_of(function: Any) -> dict[str, Any]:
    """Return the defaults of the arguments of a function or class."""
    arguments = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in arguments if one.default is not one.empty}


def settings_of(
    arguments: Mapping[str, Any], defaults: Mapping[str, Any], names: Mapping[str, str] = PARAMETERS
) -> dict[str, Any]:
    """Return the requested parameters by the names of settings; `names` has the setting of each argument.

    Raises ConfigError for a parameter that an argument and a setting both give.
    """
    settings = checked_settings(arguments.get(SETTINGS))
    resolved = dict(settings)
    for argument in [one for one in names if one in arguments]:
        name, value = names[argument], arguments[argument]
        if name not in settings:
            automatic = argument in TAKE_AUTOMATIC and is_default(value, AUTOMATIC)
            resolved[name] = check_seed(value) if argument == "random_state" else None if automatic else value
        elif not is_default(value, defaults.get(argument)):
            raise ConfigError(
                f"the argument {argument} and settings[{name!r}] give the same parameter: leave out one of them"
            )
    return resolved


def is_default(value: Any, default: Any) -> bool:
    """Return whether a value, which may be an array, is the default."""
    return value is default or (
        type(value) is type(default) and isinstance(value, str | int | float) and value == default
    )


@arguments
class RunEstimator(Transformer):
    """An estimator whose `fit` makes a run.

    Parameters
    ----------
    settings : mapping or None
        Any other parameter by the name that `--set` has for it, {"neighbors.recall": 0.99}: `scalemani params` lists
        all. Parameters that are arguments here are refused.
    random_state : int, generator or None, default 0
        Seed of every random draw, the same on any machine layout; None or a generator to draw one.
    use_rep : str or None
        Of an AnnData, or the path of one: "X", or a name in `obsm`. None: "X_pca" where there is one, else "X".
    scheduler : None, "processes", "distributed", a Dask client or cluster, or the address of a scheduler
        Where tasks run; None for local threads, "distributed" for Dask's current client.
    store : path, URL or None
        Folder of the run, which is resumed. None for a temporary one. Workers on other machines need to see it.
    workers, memory : int or None, str or int or None
        Tasks at the same moment, and a budget such as "4GB".
    verbose : bool, default False
        Whether progress is shown on standard error: bars on a terminal, lines elsewhere.
    """

    settings: Mapping[str, Any] | None = None
    random_state: Seed = 0
    use_rep: str | None = None
    scheduler: Any = None
    store: str | Path | None = None
    workers: int | None = None
    memory: str | int | None = None
    verbose: bool = False

    def set_params(self, **params: Any) -> Self:
        """Set arguments, and entries of `settings` one by one: settings__neighbors__recall=0.99, as grids do."""
        before = f"{SETTINGS}__"
        entries = {
            name.removeprefix(before).replace("__", "."): params.pop(name)
            for name in list(params)
            if name.startswith(before)
        }
        super().set_params(**params)
        if entries:
            self.settings = {**(self.settings or {}), **entries}
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted estimator of the same parameters, which shares the client of a cluster: it has no copy."""
        without_client = copy.copy(self)
        without_client.scheduler = None
        clone = BaseEstimator.__sklearn_clone__(without_client)
        clone.scheduler = self.scheduler
        return clone
