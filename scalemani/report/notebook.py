"""What a notebook shows of a run and of a fitted model: a few facts, and a small map that lives in a frame."""

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from scalemani.kernels.arrays.draws import sample_rows
from scalemani.report.certificates import judged_certificates
from scalemani.report.map_data import map_of, picture
from scalemani.report.page import VERDICTS, counted, environment, policy, stage_rows, text_of
from scalemani.runs.opened import Run
from scalemani.sources import open_points

MOST_SHOWN = 1_000_000  # points; of more, a notebook would wait
SAMPLED_POINTS = 10_000  # in a frame, on top of tiles
SIDE = 256  # tiles a side
PICTURED_PIXELS = 400
SCRIPTS = ("points", "tiles", "canvas", "map")


class LiveMap:
    """A map of at most a million points that notebooks show, live where scripts run, else as a picture.

    Of more than 10,000 points, so many are drawn on top of tiles in which all are counted; the page stays below 1 MB.
    """

    def __init__(self, embedding: Any, columns: Mapping[str, np.ndarray], rows: np.ndarray | None = None) -> None:
        """Take an embedding (N, d), labels or values (N,) by their names, and the rows (N,) of the given points."""
        self.source, self.columns, self.rows = open_points(embedding), columns, rows

    @cached_property
    def picture(self) -> str | None:
        """The embedding by the first column, as a PNG in base64; None without the extra `figures`."""
        return picture(self.source, next(iter(self.columns.values()), None), PICTURED_PIXELS)

    @cached_property
    def document(self) -> str:
        """The map as a page of its own."""
        n_points = self.source.shape[0]
        drawn = sample_rows(0, "report/notebook", n_points, SAMPLED_POINTS)
        rows = drawn if self.rows is None else self.rows[drawn]
        found = map_of(
            self.source, self.columns, drawn, None if self.rows is None and len(drawn) == n_points else rows, SIDE
        )
        style, scripts = text_of("page.css"), [text_of(f"{name}.js") for name in SCRIPTS]
        return (
            environment()
            .get_template("live.html")
            .render(
                map=found._replace(picture=self.picture), style=style, scripts=scripts, policy=policy(style, scripts)
            )
        )

    def _repr_html_(self) -> str:
        return environment().get_template("frame.html").render(document=self.document, picture=self.picture)

    def _repr_png_(self) -> bytes | None:
        return None if self.picture is None else base64.b64decode(self.picture)


def summary(run: Run, live: LiveMap | None) -> str:
    """Return what a notebook shows of a run as HTML: method, stages, verdicts, and its map where there is one."""
    certificates = list(judged_certificates(run))
    return (
        environment()
        .get_template("summary.html")
        .render(
            run=run,
            stages=list(stage_rows(run)),
            counts=counted(certificates),
            poor=[one for one in certificates if one.judged.verdict in ("look", "short")],
            verdicts=VERDICTS,
            map="" if live is None else live._repr_html_(),
        )
    )
