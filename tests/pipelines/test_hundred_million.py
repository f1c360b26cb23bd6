"""The ledger of the run of a hundred million points: what it says of a run that was killed and resumed."""

import json
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "pipelines" / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield runpy.run_path(str(FOLDER / "hundred_million.py"))
    sys.modules.pop("measuring", None)


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_ledger_counts_all_starts_of_a_stage_and_what_is_on_the_disk(benchmark, tmp_path):
    run, file = tmp_path / "run", tmp_path / "ledger.json"

    def look(watch, resident_bytes, processor_seconds):
        watch.looked -= 10.0  # seconds that have passed
        watch(resident_bytes, processor_seconds)

    watch = benchmark["Watch"](benchmark["Ledger"].of(file), run)
    write(run / "stages" / "points" / "key" / "block", "x" * 100)
    look(watch, 500, 3.0)
    write(run / "stages" / "points" / "key" / "complete.json", '{"certificates": {}}')
    write(run / "stages" / "partition" / "key" / "block", "x" * 50)
    look(watch, 900, 7.0)
    look(watch, 700, 8.0)
    watch.write(finished=False)  # and the command is killed
    entries = json.loads(file.read_text())["stages"]
    assert {stage: entry["finished"] for stage, entry in entries.items()} == {
        "reading": True,
        "points": True,
        "partition": False,
    }
    assert (entries["points"]["peak_bytes"], entries["points"]["stored_bytes"]) == (900, 170)

    resumed = benchmark["Watch"](benchmark["Ledger"].of(file), run)
    look(resumed, 300, 2.0)
    (run / "stages" / "partition" / "key" / "block").unlink()
    for stage in ("partition", "work_points"):  # which end between two looks
        write(run / "stages" / stage / "key" / "complete.json", '{"certificates": {}}')
    look(resumed, 200, 6.0)
    entries = json.loads(file.read_text())["stages"]
    partition = entries["partition"]
    assert partition == {
        "starts": 2,
        "finished": True,
        "seconds": pytest.approx(30.0, abs=1.0),
        "processor_seconds": 1.0 + 6.0,
        "peak_bytes": 700,
        "stored_bytes": 160,
        "most_stored_bytes": 170,
    }
    assert [resumed.ledger.finished(stage) for stage in ("partition", "work_points", "neighbors")] == [1, 1, 0]
    rows = benchmark["rows_of"](resumed.ledger, run, 1_000_000)
    assert rows[-1]["processor seconds"] == sum(entry["processor_seconds"] for entry in entries.values()) == 14.0
