import contextlib
import io
import json
import os
import pty
import re
import select
import sys
import time
import types
from datetime import datetime

import pytest

from scalemani.engine.progress import (
    SECONDS_BETWEEN_LINES,
    NotebookBars,
    Progress,
    ProgressBars,
    ProgressLines,
    duration_text,
    plural,
    progress_for,
)
from scalemani.errors import ConfigError, ShortfallWarning
from scalemani.interfaces.estimators.running import executor_for

SECONDS = 240  # on a machine that does much else


def wait_for(condition):
    """Return once a condition holds, or fail after a time in which any machine gets there."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def clock(monkeypatch):
    """A list whose only item is what the clock of all progress shows, in seconds."""
    seconds = [0.0]
    monkeypatch.setattr(Progress, "now", staticmethod(lambda: seconds[0]))
    return seconds


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
        "points: 3 blocks to do",
        "2 of 5 features are constant",
    ]


def test_a_log_has_a_heartbeat_also_while_nothing_is_finished():
    stream = io.StringIO()
    with ProgressLines(stream, seconds_between=0.05) as progress:
        time.sleep(0.12)
        assert stream.getvalue() == ""
        progress.start("neighbors", 4)
        wait_for(lambda: re.search(r"neighbors: 0 of 4 blocks after \d+ s\n", stream.getvalue()))
        progress.advance(2)
        wait_for(lambda: "neighbors: 2 of 4" in stream.getvalue())
    assert re.search(
        r"2 of 4 blocks after \d+ s, \d+\.\d/s; at most \d:\d\d:\d\d of this stage left\n", stream.getvalue()
    )
    ended = stream.getvalue()
    time.sleep(0.12)
    assert stream.getvalue() == ended


def test_a_beat_between_two_stages_has_nothing_to_tell():
    stream = io.StringIO()
    progress, ended = ProgressLines(stream), iter([False, True])
    progress._ended = types.SimpleNamespace(wait=lambda seconds: next(ended))  # after one beat
    progress.start("neighbors", 1)
    progress.start("neighbors", 0)
    told = stream.getvalue()
    progress._beat()
    assert next(ended, None) is None
    assert stream.getvalue() == told


def test_a_heartbeat_comes_at_least_every_half_minute():
    assert SECONDS_BETWEEN_LINES <= 30


def text_before(last, driver):
    """Return what was written to a terminal before some last words, as soon as these have come through."""
    content = b""
    while not content.endswith(last):
        assert select.select([driver], [], [], SECONDS)[0], content
        content += os.read(driver, 2**16)
    return content.removesuffix(last).decode()


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
        stream.write("the last words")
        stream.flush()
        shown = text_before(b"the last words", driver)
    os.close(driver)
    assert "neighbors" in shown
    assert "3/4" in shown
    assert re.search(r"\d+:\d\d:\d\d", shown)
    assert "computed anew: ['block-000002']" in shown
    assert "partition" not in shown
    assert shown.rstrip().endswith("\x1b[?25h")  # the cursor is shown again


def test_json_lines_hold_the_event_its_message_and_its_numbers():
    stream = io.StringIO()
    with progress_for(stream, log="json") as progress:
        progress.start("embedding", 1, "pass")
        progress.note("it goes on")
        progress.warn("it falls short", ShortfallWarning)
    started, noted, warned = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {**started, "time": ""} == {
        "time": "",
        "event": "start",
        "message": "embedding: 1 pass to do",
        "stage": "embedding",
        "total": 1,
        "unit": "pass",
    }
    assert (noted["event"], noted["message"]) == ("note", "it goes on")
    assert (warned["event"], warned["message"], warned["kind"]) == ("warning", "it falls short", "ShortfallWarning")
    assert datetime.fromisoformat(noted["time"]).tzinfo is not None


def test_json_lines_count_while_a_stage_is_at_work():
    stream = io.StringIO()
    with ProgressLines(stream, as_json=True, seconds_between=0.05) as progress:
        progress.start("neighbors", 4)
        progress.advance(3)
        wait_for(lambda: '"done": 3' in stream.getvalue())
    counted = next(json.loads(line) for line in stream.getvalue().splitlines() if '"done": 3' in line)
    assert counted["event"] == "progress"
    assert counted["total"] == 4
    assert counted["seconds_remaining"] <= counted["seconds"]


def test_units_of_an_earlier_process_are_no_rate_and_a_run_takes_no_less_than_its_stage(clock):
    """66 seconds for a stage of which 30 were expected: what is left of it follows from its rate."""
    stream = io.StringIO()
    with ProgressLines(stream, as_json=True, seconds_between=0.05) as progress:
        progress.expect({"layout": 30.0})
        progress.begin("layout")
        progress.start("layout", 1000, "iteration", 300)
        progress.advance(100)
        clock[0] += 66
        wait_for(lambda: '"seconds": 66.0' in stream.getvalue())
        progress.end("layout")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    begun, beaten = lines[0], next(line for line in lines if line.get("seconds") == 66)
    assert (begun["message"], begun["done"]) == ("layout: 700 of 1000 iterations to do", 300)
    assert (beaten["done"], beaten["seconds_remaining"], beaten["run_seconds_remaining"]) == (400, 396, 396)
    assert "400 of 1000 iterations after 66 s, 1.5/s; about 0:06:36 left" in beaten["message"]


def test_the_end_of_a_stage_tells_its_seconds_and_compiling_apart(clock):
    stream = io.StringIO()
    with ProgressLines(stream, as_json=True) as progress:
        progress.begin("neighbors")
        progress.start("neighbors", 4)
        clock[0] += 30.5
        progress.end("neighbors", 12.5)
    told = json.loads(stream.getvalue().splitlines()[-1])
    assert (told["event"], told["stage"]) == ("end", "neighbors")
    assert (told["seconds"], told["seconds_compiling"]) == (30.5, 12.5)
    assert "30.5 s, 12.5 s of them compiling kernels" in told["message"]


def test_the_end_of_a_stage_and_a_heartbeat_tell_what_the_run_still_takes(clock):
    stream = io.StringIO()
    with ProgressLines(stream, as_json=True, seconds_between=0.05) as progress:
        progress.expect({"neighbors": 1.0, "layout": 1000.0})
        progress.begin("neighbors")
        progress.start("neighbors", 4)
        clock[0] += 3  # twice what was expected, when the second that expectations are worth at first counts too
        progress.end("neighbors")
        progress.begin("layout")
        progress.start("layout", 10, "iteration")
        clock[0] += 500
        wait_for(lambda: '"seconds": 500.0' in stream.getvalue())
        progress.end("layout")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    ended = next(line for line in lines if line["event"] == "end")
    beaten = next(line for line in lines if line.get("seconds") == 500)
    assert beaten["event"] == "progress"
    assert (ended["run_seconds_remaining"], beaten["run_seconds_remaining"]) == (2000, 1500)
    assert "; about 0:33:20 left" in ended["message"]
    assert beaten["message"].count("left") == 1
    assert "left" not in lines[-1]["message"]


def test_bars_tell_what_the_run_still_takes(clock):
    stream = io.StringIO()
    with ProgressBars(stream) as bars:
        bars.expect({"neighbors": 7000.0})
        bars.begin("neighbors")
        bars.start("neighbors", 4)
        assert bars._bars.tasks[0].fields["rest"] == "1:56:40 left"
        clock[0] += 100
        bars.advance()
        assert bars._bars.tasks[0].fields["rest"] == "1:55:00 left"
        bars.end("neighbors")
        assert bars._bars.tasks[0].fields["rest"] == ""


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.2, "0:00:00"), (59.6, "0:01:00"), (130, "0:02:10"), (12_059, "3:20:59")]
)
def test_durations_are_told_as_bars_tell_them(seconds, told):
    assert duration_text(seconds) == told


def test_bars_count_a_second_lot_of_a_stage_anew_and_stand_still_and_complete_at_its_end():
    stream = io.StringIO()
    with ProgressBars(stream) as bars:
        bars.begin("neighbors")
        bars.start("neighbors", 4)
        bars.advance()
        bars.start("neighbors", 8)
        bars.advance(3)
        bars.end("neighbors", 2.0)
        bars.begin("layout")
        bars.start("layout", 10, "iteration")
        assert [(task.completed, task.total) for task in bars._bars.tasks] == [(3, 3), (0, 10)]
        assert [task.stop_time is None for task in bars._bars.tasks] == [False, True]
        assert bars._bars.tasks[1].fields["unit"] == "iterations"
    assert "neighbors: 2 s of it compiling kernels" in stream.getvalue()


def test_a_notebook_has_one_output_that_is_drawn_again(monkeypatch, capsys):
    display = pytest.importorskip("IPython.display")
    looks = []

    def displayed(shown, display_id):
        assert display_id
        return types.SimpleNamespace(update=lambda same: looks.append((shown is same, same._repr_mimebundle_([], []))))

    monkeypatch.setattr(display, "display", displayed)
    monkeypatch.setattr("scalemani.engine.progress.in_notebook", lambda: True)
    with progress_for(sys.stderr) as progress:
        assert isinstance(progress, NotebookBars)
        progress.begin("layout")
        progress.start("layout", 4, "iteration")
        progress.advance(3)
        progress.note("half of it is done")
        progress.end("layout")
    assert all(same for same, _ in looks)
    assert "3/3" in looks[-1][1]["text/html"]
    assert capsys.readouterr() == ("half of it is done\n", "")


def test_a_quiet_command_tells_warnings_alone():
    stream = io.StringIO()
    with progress_for(stream, quiet=True) as progress:
        progress.start("neighbors", 4)
        progress.advance()
        progress.note("it goes on")
        progress.warn("it falls short")
    assert stream.getvalue() == "it falls short\n"


def test_another_log_is_refused_by_name():
    with pytest.raises(ConfigError, match="unknown log 'jsn': did you mean 'json'"):
        progress_for(io.StringIO(), log="jsn")


@pytest.mark.parametrize(
    ("unit", "count", "text"),
    [("block", 1, "block"), ("block", 2, "blocks"), ("pass", 1, "pass"), ("pass", 3, "passes"), ("graph", 0, "graphs")],
)
def test_units_stand_in_the_plural_after_all_numbers_but_one(unit, count, text):
    assert plural(unit, count) == text


@pytest.mark.parametrize("quiet", [False, True])
def test_a_process_without_standard_error_is_told_nothing_and_goes_on(quiet):
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        with contextlib.redirect_stderr(stream), progress_for(sys.stderr, quiet=quiet) as progress:
            progress.start("demo", 1)
            progress.advance()
            progress.warn("demo")
        with contextlib.redirect_stderr(stream), executor_for(None, 1, None, verbose=True) as executor:
            assert executor.map_here(abs, [-1, 2]) == [1, 2]
