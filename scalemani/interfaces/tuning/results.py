"""What a search over a grid found: a table of the cells, the best of them, and both as files."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalemani.interfaces.tuning.scores import SCORES
from scalemani.io.export.atomic import replaced_file
from scalemani.kernels.measures import Measure

CSV, JSON, PICTURE = "tuning.csv", "tuning.json", "tuning.png"


class Stage(NamedTuple):
    """A finished stage of a cell: its key, and the seconds that it took when it was computed."""

    key: str
    seconds: float


@dataclass(frozen=True)
class Cell:
    """One combination of a grid: its values by name, its scores and stages by theirs, or why it failed.

    `computed_as` are the parameters that it was computed with in the place of those given, where it shares a graph.
    """

    values: dict[str, Any]
    method: str
    scores: dict[str, Measure] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    computed_as: dict[str, int] = field(default_factory=dict)
    failure: str | None = None


@dataclass
class Tuning:
    """The cells of a grid, compared.

    Attributes
    ----------
    store : str
        The store of all runs; it opens as the best one.
    cells : tuple of Cell
        In the order of the grid.
    scoring : tuple of str
        Names of the scores; the first one ranks.
    best_estimator_ : estimator
        Fitted at the best values, where estimators were tuned.
    """

    store: str
    cells: tuple[Cell, ...]
    scoring: tuple[str, ...]
    best_estimator_: Any = None

    @property
    def names(self) -> list[str]:
        """The names of the parameters that the grid has values of."""
        return list(dict.fromkeys(name for cell in self.cells for name in cell.values))

    @property
    def best_index_(self) -> int | None:
        """The number of the cell with the best score, the first of several; None where none has a score."""
        values = self.signed_scores()
        return None if np.all(np.isnan(values)) else int(np.nanargmax(values))

    @property
    def best_params_(self) -> dict[str, Any]:
        """The values of the best cell; empty where no cell has a score."""
        return {} if self.best_index_ is None else self.cells[self.best_index_].values

    @property
    def best_score_(self) -> float:
        """The score of the best cell; NaN where no cell has one."""
        return float("nan") if self.best_index_ is None else self.cells[self.best_index_].scores[self.scoring[0]].value

    @property
    def results_(self) -> dict[str, np.ndarray]:
        """The table of all cells, a column a name, as scikit-learn's `cv_results_`.

        `params`; `param_<name>` of each name; `<score>` and `<score>_error`, its standard error, of each score; `rank`,
        from 1 for the best; `seconds` of the stages that are its own; `failure`, None where there is none.
        """
        cells, shared = self.cells, set(self.shared_seconds)
        table = {"params": objects([cell.values for cell in cells])}
        for name in self.names:
            table[f"param_{name}"] = objects([cell.values.get(name) for cell in cells])
        for name in self.scoring:
            table[name] = self._column(name, lambda measure: measure.value)
            table[f"{name}_error"] = self._column(name, lambda measure: measure.error)
        signed = self.signed_scores()
        table["rank"] = objects([None if np.isnan(value) else 1 + int(np.sum(signed > value)) for value in signed])
        own = [sum(stage.seconds for name, stage in cell.stages.items() if name not in shared) for cell in cells]
        table["seconds"] = np.array(
            [np.nan if cell.failure else seconds for cell, seconds in zip(cells, own, strict=True)]
        )
        table["failure"] = objects([cell.failure for cell in cells])
        return table

    @property
    def shared_seconds(self) -> dict[str, float]:
        """The seconds of the stages that were computed once for several cells, all that have them."""
        found: dict[str, list[Stage]] = {}
        for cell in self.cells:
            for name, stage in cell.stages.items():
                found.setdefault(name, []).append(stage)
        shared = {name: stages for name, stages in found.items() if len(stages) > 1}
        return {
            name: one.seconds for name, (one, *others) in shared.items() if {other.key for other in others} == {one.key}
        }

    @property
    def n_failed(self) -> int:
        """How many cells failed."""
        return sum(cell.failure is not None for cell in self.cells)

    def signed_scores(self) -> np.ndarray:
        """Return the first score of every cell (n,), more being better; NaN where it has none."""
        values = self._column(self.scoring[0], lambda measure: measure.value)
        return values if SCORES[self.scoring[0]].more_is_better else -values

    def write(self, folder: str | Path) -> list[Path]:
        """Write the table as `tuning.csv` and everything as `tuning.json`; return the files."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        columns = {name: column for name, column in self.results_.items() if name != "params"}
        with replaced_file(target / CSV) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
            writer = csv.writer(text)
            writer.writerow(columns)
            writer.writerows(zip(*([plain(value) for value in column] for column in columns.values()), strict=True))
        with replaced_file(target / JSON) as file:
            file.write((json.dumps(self.as_dict(), indent=1, default=str) + "\n").encode())
        return [target / CSV, target / JSON]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values: scores, the best cell, seconds that are shared, and all cells."""
        return {
            "store": self.store,
            "scoring": list(self.scoring),
            "best_index": self.best_index_,
            "shared_seconds": self.shared_seconds,
            "cells": [
                {
                    "values": cell.values,
                    "method": cell.method,
                    "computed_as": cell.computed_as,
                    "scores": {name: measure._asdict() for name, measure in cell.scores.items()},
                    "seconds": {name: stage.seconds for name, stage in cell.stages.items()},
                    "failure": cell.failure,
                }
                for cell in self.cells
            ],
        }

    def _column(self, name: str, of_measure: Callable[[Measure], float]) -> np.ndarray:
        return np.array([of_measure(cell.scores[name]) if name in cell.scores else np.nan for cell in self.cells])


def objects(values: list[Any]) -> np.ndarray:
    """Return values of any kind as a column."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def plain(value: Any) -> Any:
    """Return a value as a table of text holds it: nothing for what is not there."""
    missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "" if missing else value
