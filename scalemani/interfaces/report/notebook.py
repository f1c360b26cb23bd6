"""What a notebook shows of a run and of a fitted model: a few facts, and a small map that lives in a frame."""

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from scalemani.interfaces.report.certificates import VERDICTS, counted, judged_certificates
from scalemani.interfaces.report.map_data import MOST_AXES, MapData, map_of, picture
from scalemani.interfaces.report.page import environment, policy, stage_rows, text_of
from scalemani.io.sources import open_points
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.runs.opened import Run

MOST_SHOWN = 1_000_000  # points; of more, a notebook would wait
SAMPLED_POINTS = 10_000  # of more than are all drawn: on top of tiles
DRAWN_BYTES = 700_000  # that points may take in a page; scripts and pictures take some 200,000 more
AXIS_BYTES, COLUMN_BYTES = 3, 2  # of a point, compressed and in base64
SIDE = 256  # tiles a side
TEXT_BYTES = 50_000  # of a column of identifiers
PICTURED_PIXELS = 400
SCRIPTS = ("points", "tiles", "density", "canvas", "pace", "map")


class LiveMap:
    """A map of at most a million points that notebooks show, live where scripts run, else as a picture.

    All points are drawn as long as the page stays below 1 MB: some 90,000 with a column of classes. Of more, 10,000 are
    drawn on top of tiles in which all are counted.
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
        n_axes = min(self.source.shape[1], MOST_AXES)
        most = DRAWN_BYTES // (AXIS_BYTES * n_axes + COLUMN_BYTES * len(self.columns))
        drawn = sample_rows(0, "report/notebook", n_points, n_points if n_points <= most else SAMPLED_POINTS)
        rows = drawn if self.rows is None else self.rows[drawn]
        asked = None if self.rows is None and len(drawn) == n_points else rows
        found = map_of(self.source, self.columns, drawn, asked, SIDE, TEXT_BYTES)
        return map_page(found._replace(picture=self.picture))

    def _repr_html_(self) -> str:
        return environment().get_template("frame.html").render(document=self.document, picture=self.picture)

    def _repr_png_(self) -> bytes | None:
        return None if self.picture is None else base64.b64decode(self.picture)


def map_page(drawn: MapData) -> str:
    """Return a map as a page of its own, without a word on the run."""
    style, scripts = text_of("page.css"), [text_of(f"{name}.js") for name in SCRIPTS]
    live = environment().get_template("live.html")
    return live.render(map=drawn, style=style, scripts=scripts, policy=policy(style, scripts))


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
