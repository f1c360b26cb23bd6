import contextlib
import io
import os
import pty
import re
import select
import time

import pytest

from scalemani.progress import progress_for
from scalemani.progress.bars import ProgressBars
from scalemani.progress.lines import SECONDS_BETWEEN_LINES, ProgressLines


def test_a_log_gets_a_line_a_stage_and_a_line_a_note():
    stream = io.StringIO()
    with progress_for(stream) as progress:
        assert isinstance(progress, ProgressLines)
        progress.start("points", 3)
        progress.advance()
        progress.start("partition", 0)
        progress.note("2 of 5 features are constant")
    lines = stream.getvalue().splitlines()
    assert [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in lines] == [
        "points: 3 to do",
        "2 of 5 features are constant",
    ]


def test_a_log_has_a_heartbeat_also_while_nothing_is_finished():
    stream = io.StringIO()
    with ProgressLines(stream, seconds_between_lines=0.05) as progress:
        time.sleep(0.12)
        assert stream.getvalue() == ""
        progress.start("neighbors", 4)
        time.sleep(0.2)
        assert "neighbors: 0 of 4 after 0 s" in stream.getvalue()
        progress.advance(2)
        time.sleep(0.2)
    assert re.search(r"neighbors: 2 of 4 after 0 s, \d+\.\d/s, 0 s remaining", stream.getvalue())
    ended = stream.getvalue()
    time.sleep(0.12)
    assert stream.getvalue() == ended


def test_a_heartbeat_comes_at_least_every_half_minute():
    assert SECONDS_BETWEEN_LINES <= 30


def all_of(driver):
    """Return what was written to a terminal so far."""
    content = b""
    while select.select([driver], [], [], 0.2)[0]:
        content += os.read(driver, 2**16)
    return content.decode()


@pytest.mark.parametrize("error", [None, ValueError])
def test_a_terminal_shows_bars_and_gets_its_cursor_back(monkeypatch, error):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    driver, terminal = pty.openpty()
    with open(terminal, "w") as stream:
        with contextlib.suppress(ValueError), progress_for(stream) as progress:
            assert isinstance(progress, ProgressBars)
            progress.start("partition", 0)
            progress.start("neighbors", 4)
            progress.advance(3)
            progress.note("computed anew: ['block-000002']")
            time.sleep(0.25)
            if error:
                raise error
        shown = all_of(driver)
    os.close(driver)
    assert "neighbors" in shown
    assert "3/4" in shown
    assert re.search(r"\d+:\d\d:\d\d", shown)
    assert "computed anew: ['block-000002']" in shown
    assert "partition" not in shown
    assert shown.rstrip().endswith("\x1b[?25h")  # the cursor is shown again
