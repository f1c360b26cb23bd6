"""Every number that changes an answer: one frozen table a stage, checked when it is made, and what follows from it.

`by_stage` and `layout` hold the fields with their defaults and the conditions under which they have an effect; methods
add theirs.
`Parameters` are requested ones, which leave some to the method and the points; `Resolved` ones are those of a run.
`effects` tells which requested ones have no effect. The command line, the estimators and the functions in memory read
all of it here.
"""

from scalemani.config.params.by_stage import AffinitiesParams
from scalemani.config.params.effects import RunConfiguration, effective_parameters
from scalemani.config.params.layout import LayoutParams
from scalemani.config.params.parameters import LANDMARKS, Parameters, known_values, names_of_parameters
from scalemani.config.params.parsing import by_name, checked_settings, parse_assignments, parse_value
from scalemani.config.params.resolved import Resolved, ResolvedLayout
from scalemani.config.params.tables import TUNED

__all__ = [
    "LANDMARKS",
    "TUNED",
    "AffinitiesParams",
    "LayoutParams",
    "Parameters",
    "Resolved",
    "ResolvedLayout",
    "RunConfiguration",
    "by_name",
    "checked_settings",
    "effective_parameters",
    "known_values",
    "names_of_parameters",
    "parse_assignments",
    "parse_value",
]
