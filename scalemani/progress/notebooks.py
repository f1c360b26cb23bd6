"""Bars in a notebook: one output of the cell, written anew as the run goes on."""

import html
import io
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console

from scalemani.errors import printable
from scalemani.progress.bars import ProgressBars

SECONDS_BETWEEN = 0.25  # two looks of the bars, while a stage is at work
COLUMNS = 110
LINES = '<pre style="margin:0;line-height:1.3;font-family:monospace">{code}</pre>'


class NotebookBars(ProgressBars):
    """The bars of a terminal, as an output of the cell; a notebook needs no widgets for it."""

    def __init__(self) -> None:
        super().__init__(
            Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, force_jupyter=False)
        )
        self._notes: list[str] = []
        self._shown_at = 0.0
        self._output: Any = None

    def __enter__(self) -> "NotebookBars":
        from IPython.display import display  # there, since this process is a kernel

        self._output = display({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._show()

    def begin(self, stage: str) -> None:
        """Keep when a stage begins."""
        super().begin(stage)
        self._show()

    def end(self, stage: str, compiling: float = 0.0) -> None:
        """Stop the bar of a stage."""
        super().end(stage, compiling)
        self._show()

    def advance(self, done: int = 1) -> None:
        """Move the bar of the stage at work."""
        super().advance(done)
        if time.monotonic() - self._shown_at >= SECONDS_BETWEEN:
            self._show()

    def note(self, message: str) -> None:
        """Add a line above the bars."""
        self._notes.append(printable(message))
        self._show()

    def _show(self) -> None:
        """Write the output anew."""
        console = self._bars.console
        console.print(self._bars.get_renderable())
        text = console.export_text(clear=False)
        drawn = console.export_html(inline_styles=True, code_format=LINES)
        console.file.seek(0)
        console.file.truncate()  # nobody reads what was printed: the record is what is shown
        notes = "".join(LINES.format(code=html.escape(note)) for note in self._notes)
        looks: Mapping[str, str] = {"text/html": notes + drawn, "text/plain": "\n".join([*self._notes, text])}
        self._output.update(looks, raw=True)
        self._shown_at = time.monotonic()
