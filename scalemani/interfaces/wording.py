"""Messages in the words of Python: arguments of the estimator or function that was called, for names of settings."""

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

from scalemani.config.methods import ArgumentExtension, extensions
from scalemani.config.params import names_of_parameters
from scalemani.errors import WORDING, ScalemaniError

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


def names_arguments(**other: str) -> Callable[[Called], Called]:
    """Have errors and warnings of a function name its arguments, and those of the estimators that it takes.

    `other` has the settings of arguments that stand for others than in `PARAMETERS`.
    """

    def decorate(function: Called) -> Called:
        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def called(*values: Any, **named: Any) -> Any:
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
