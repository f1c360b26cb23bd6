"""Messages in the words of Python: arguments of the estimator or function that was called, for names of settings."""

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

from scalemani.config.methods import ArgumentExtension, extensions
from scalemani.config.other_names import Ours, name_here, with_note
from scalemani.config.params import names_of_parameters
from scalemani.config.routes import ROUTES
from scalemani.errors import WORDING, ScalemaniError, nearest_name

# The setting that an argument is.
PARAMETERS = {
    "metric": "points.metric",
    "missing": "points.missing",
    "deduplicate": "duplicates.tolerance",
    "n_components": "landmark_embedding.n_components",
    "n_neighbors": "neighbors.n_neighbors",
    "affinity": "affinities.kind",
    "perplexity": "affinities.perplexity",
    "disconnected": "components.disconnected",
    "n_landmarks": "landmarks.n_landmarks",
    "landmarks": "landmarks.method",
    "solver": "embedding.solver",
    "residual": "embedding.residual",
    "alpha": "normalized_affinities.alpha",
    "time": "diffusion_coordinates.time",
    "n_clusters": "clustering.n_clusters",
    "strength": "layout.strength",
    "learning_rate": "layout.learning_rate",
    "early_exaggeration": "layout.early_exaggeration",
    "exaggeration": "layout.late_exaggeration",
    "dof": "layout.dof",
    "init": "layout.init",
    "global_weight": "layout.global_weight",
    "reference": "layout.reference",
    "max_iter": "layout.max_iterations",
    "random_state": "seed",
    **{name: argument.setting for name, argument in extensions(ArgumentExtension).items()},
}
ARGUMENT_OF = {setting: argument for argument, setting in PARAMETERS.items()}
SETTINGS = "settings"
# A name of a setting that stands in no quotes, as the command line may write it, and a value that it is to have.
NAME = re.compile(r"(?<![\w.'\"/-])(?:--set )?([a-z_]+\.[a-z_]+)(?:=([\w+-]+(?:\.\w+)*))?(?![\w.]*\w)")
BOTH = re.compile(r"--[a-z-]+ \((\w+(?:=|\.\w+))(?: in Python)?\)")  # an option, and what it is called in Python
OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])")
PLAIN = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?|None|[A-Z]+", re.ASCII)  # numbers, and letters that stand for one
OPTIONS = {"global_reference": "reference"}  # whose argument has another name

Called = TypeVar("Called", bound=Callable[..., Any])


def in_words_of(arguments: Collection[str], passed: Collection[str], other: Mapping[str, str], text: str) -> str:
    """Return a message with `arguments` for names of settings, of which those that were `passed` stay as they are.

    A setting that is no argument is an entry of `settings`, where that is one. `other` has the settings of arguments
    that stand for others than in `PARAMETERS`.
    """
    argument_of = {setting: name for name, setting in {**PARAMETERS, **other}.items() if name in arguments}
    known = set(names_of_parameters())

    def argument(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in known or name in passed:
            return match[0]
        written = value if value is None or PLAIN.fullmatch(value) else repr(value)
        written = {"'true'": "True", "'false'": "False"}.get(str(written), written)
        if name in argument_of:
            return argument_of[name] + f"={written}" * (value is not None)
        if SETTINGS not in arguments:
            return match[0]
        return f"settings[{name!r}]" if value is None else f"settings={{{name!r}: {written}}}"

    def option(match: re.Match[str]) -> str:
        name = match[1].replace("-", "_")
        return OPTIONS.get(name, name) if OPTIONS.get(name, name) in arguments else match[0]

    return OPTION.sub(option, NAME.sub(argument, BOTH.sub(r"\1", text)))


def instead_of(
    name: str,
    arguments: Collection[str],
    method: str = "",
    elsewhere: Mapping[str, Ours] = MappingProxyType({}),
    argument_of: Mapping[str, str] = ARGUMENT_OF,
) -> str:
    """Return the arguments or settings that a name which is no argument may stand for, or the nearest of `arguments`.

    `method` is that of the estimator, whose stages have the settings; "" where any may be meant. `elsewhere` has names
    of other libraries before `OTHER_NAMES`, and `argument_of` the argument of each setting that has one.
    """
    stages = {stage.name for stage in ROUTES.get(method, ())}
    known = names_of_parameters() if SETTINGS in arguments else []
    if ours := elsewhere.get(name) or name_here(name):
        argument = argument_of.get(ours.name, ours.name)
        if argument in arguments:
            return with_note(argument, ours)
        if argument not in PARAMETERS and ours.name in known:
            return with_note(f"settings={{'{ours.name}': ...}}", ours)
    homes = [full for full in known if full.endswith(f".{name}") and (not stages or full.partition(".")[0] in stages)]
    return " or ".join(f"settings={{'{full}': ...}}" for full in homes) or nearest_name(name, arguments)


def names_arguments(**other: str) -> Callable[[Called], Called]:
    """Have errors and warnings of a function name its arguments, and those of the estimators that it takes.

    A name that is no argument is answered with what it may stand for. `other` has the settings of arguments that stand
    for others than in `PARAMETERS`.
    """

    def decorate(function: Called) -> Called:
        parameters = inspect.signature(function).parameters
        names, takes_any = list(parameters), any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        argument_of = {**ARGUMENT_OF, **{setting: name for name, setting in other.items()}}

        @functools.wraps(function)
        def called(*values: Any, **named: Any) -> Any:
            for name in named:
                if name not in names and not takes_any:
                    meant = instead_of(name, set(names) - {"self"}, argument_of=argument_of)
                    raise TypeError(f"{name} is no argument of {function.__name__}: {meant}")

            def worded(text: str) -> str:
                arguments: dict[str, Any] = {**dict.fromkeys(names), **dict(zip(names, values, strict=False)), **named}
                estimators = arguments.get("self", arguments.get("estimator"))
                for estimator in estimators if isinstance(estimators, list | tuple) else [estimators]:
                    # Runs and arrays have no parameters; scikit-learn is not loaded to see that.
                    parameters = getattr(estimator, "get_params", None)
                    if parameters is not None and not isinstance(estimator, type):
                        arguments |= parameters(deep=False)
                passed = arguments.get(SETTINGS)
                return in_words_of(arguments, passed if isinstance(passed, Mapping) else (), other, text)

            token = WORDING.set(worded)
            try:
                return function(*values, **named)
            except ScalemaniError as error:
                error.args = tuple(worded(part) if isinstance(part, str) else part for part in error.args)
                raise
            finally:
                WORDING.reset(token)

        return cast(Called, called)

    return decorate
