"""Every number that changes an answer: one frozen table a stage, checked when it is made, and what follows from it.

`by_stage` holds the fields with their defaults, `parameters` decides what they leave open,
`effects` knows which of them act. The command line, the estimators and the functions in memory read all of it here.
"""

from scalemani.config.params.by_stage import AffinitiesParams, LayoutParams
from scalemani.config.params.effects import Situation, acting
from scalemani.config.params.parameters import LANDMARKS, TUNED, Parameters, known_values, names_of_parameters
from scalemani.config.params.parsing import by_name, checked_settings, parse_assignments, parse_value

__all__ = [
    "LANDMARKS",
    "TUNED",
    "AffinitiesParams",
    "LayoutParams",
    "Parameters",
    "Situation",
    "acting",
    "by_name",
    "checked_settings",
    "known_values",
    "names_of_parameters",
    "parse_assignments",
    "parse_value",
]
