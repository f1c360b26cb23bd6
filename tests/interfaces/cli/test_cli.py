"""The commands end to end, and the process around them: signals, exit status, help."""

import contextlib
import functools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import psutil
import pytest

from scalemani.config.units import format_bytes
from scalemani.runs.opened import open_run

SMALL = ("--set=neighbors.n_neighbors=10", "--set=affinities.perplexity=3", "--set=landmarks.n_landmarks=50")
STAGES = ["points", "partition", "work_points", "neighbors", "affinities", "components"]
SECONDS = 240  # on a machine that does much else
COMMANDS = ("embed", "plan", "stage", "transform", "info", "plot", "export", "generate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a Swiss roll, two classes for it, and the run that embeds it."""
    folder = tmp_path_factory.mktemp("commands")
    command = [sys.executable, "-m", "scalemani"]
    roll, run = str(folder / "roll.npy"), str(folder / "run")
    subprocess.run([*command, "generate", "swiss-roll", roll, "--n-points", "2000"], check=True, capture_output=True)
    position = np.load(folder / "roll.labels.npy")
    np.savetxt(folder / "classes.txt", position > np.median(position), fmt="%d")
    done = subprocess.run([*command, "embed", roll, run, *SMALL], check=True, capture_output=True, text=True)
    (folder / "printed").write_text(done.stdout)
    return folder


def test_embed_prints_every_stage_in_order_with_its_certificates(folder):
    lines = (folder / "printed").read_text().splitlines()
    assert [line.split()[0] for line in lines][:6] == STAGES
    assert any(line.startswith("embedding ") and "residual" in line for line in lines)
    assert any("largest_entropy_residual" in line for line in lines)


def test_info_says_parameters_and_records_also_as_json(scalemani, folder):
    status, output, _ = scalemani("info", folder / "run")
    assert status == 0
    assert "laplacian-eigenmaps of 2000 points of 3 features" in output
    assert "n_neighbors 10" in output
    assert (folder / "printed").read_text() in output
    summary = json.loads(scalemani("info", folder / "run", "--json")[1])
    assert summary["method"] == "laplacian-eigenmaps"
    assert summary["dimensions"]["n_points"] == 2000
    assert summary["params"]["neighbors"]["n_neighbors"] == 10
    assert list(summary["stages"])[:6] == STAGES
    assert summary["scalemani"] == version("scalemani")
    verdicts = summary["verdicts"]
    assert verdicts["neighbors.recall"] == "good"
    told = [f"{name}," for name, verdict in verdicts.items() if verdict in ("look", "short")]
    good, *others = output.splitlines()[-len(told) - 1 :]
    assert good == f"{list(verdicts.values()).count('good')} certificates are good; 'scalemani report' explains all"
    assert [line.partition(": ")[2].split()[0] for line in others] == told
    assert all(record["seconds"] >= 0 and record["peak_memory"] > 0 for record in summary["stages"].values())


def test_info_says_what_an_unfinished_run_comes_to(scalemani, folder, tmp_path):
    assert json.loads(scalemani("info", folder / "run", "--json")[1])["next_stage"] is None
    assert "unfinished" not in scalemani("info", folder / "run")[1]
    assert scalemani("stage", "points", folder / "roll.npy", tmp_path / "run", *SMALL)[0] == 0
    said = scalemani("info", tmp_path / "run")[1]
    (line,) = (line for line in said.splitlines() if line.startswith("unfinished: "))
    assert re.match(r"unfinished: 1 of \d+ stages are complete, partition is next; .* resumes the run$", line)
    assert json.loads(scalemani("info", tmp_path / "run", "--json")[1])["next_stage"] == "partition"


def test_plan_shows_what_is_done_and_what_it_would_take(scalemani, folder, tmp_path):
    status, output, _ = scalemani("plan", folder / "roll.npy", folder / "run", *SMALL)
    assert status == 0
    assert output.count("complete") >= len(STAGES)
    assert "about 0.0 s to do" in output
    changed = scalemani("plan", folder / "roll.npy", folder / "run", *SMALL, "--set=affinities.perplexity=3.5")[1]
    rows = {line.split()[0]: line.split()[2:] for line in changed.splitlines()[2:-1]}
    assert rows["neighbors"][0] == "complete"
    assert rows["affinities"][:3] == ["2", "of", "2"]
    assert "by the last run in this folder" in changed
    fresh = scalemani("plan", folder / "roll.npy", tmp_path / "new", *SMALL)[1]
    assert all(line.endswith(" -") for line in fresh.splitlines()[2:-1])
    assert not (tmp_path / "new").exists()


def test_a_plan_as_json_has_the_facts_of_the_printed_one(scalemani, folder, tmp_path):
    for run in (folder / "run", tmp_path / "new"):
        arguments = ("plan", folder / "roll.npy", run, *SMALL)
        printed, facts = (scalemani(*arguments, *more)[1] for more in ((), ("--json",)))
        facts = json.loads(facts)
        rows = {line.split()[0]: line for line in printed.splitlines()[2:-1]}
        assert list(rows) == [one["stage"] for one in facts["stages"]]
        for one in facts["stages"]:
            line = rows[one["stage"]]
            seconds = "-" if one["seconds"] is None else f"{one['seconds']:.1f}"
            assert (line.split()[1], line.split()[-2:]) == (one["key"], [str(one["at_once"]), seconds])
            assert one["missing"] in line
            assert one["complete"] == ("complete" in line)
            assert f"{format_bytes(one['memory'])} " in line
            assert f"{format_bytes(one['disk'])} " in line
        assert f"up to {format_bytes(facts['disk'])} to write" in printed
        assert facts["solver"] in printed
        assert (facts["method"], facts["dimensions"]["n_points"]) == ("laplacian-eigenmaps", 2000)
        assert (facts["seconds"] == 0) == ("about 0.0 s to do" in printed)
    status, _, errors = scalemani(*arguments, "--json", "--explain", "neighbors")
    assert (status, "leave out one of the two" in errors) == (2, True)


def test_stages_run_one_by_one_give_the_run(scalemani, folder, tmp_path):
    plan = scalemani("plan", folder / "roll.npy", tmp_path / "run", *SMALL)[1]
    for line in plan.splitlines()[2:-1]:
        assert scalemani("stage", line.split()[0], folder / "roll.npy", tmp_path / "run", *SMALL)[0] == 0
    for run, name in ((folder / "run", "one.npy"), (tmp_path / "run", "other.npy")):
        assert scalemani("export", run, tmp_path / name)[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy"), np.load(tmp_path / "other.npy"))


def test_a_stage_that_the_solver_does_not_need_does_nothing(scalemani, folder, tmp_path):
    arguments = ("stage", "reduced", folder / "roll.npy", tmp_path / "run", "--set=embedding.solver=exact")
    status, output, _ = scalemani(*arguments)
    assert status == 0
    assert output == "reduced: nothing to do, a run with these parameters does not need it\n"
    assert not (tmp_path / "run").exists()
    assert scalemani(*arguments, "--method=knn-graph")[0] == 2


def test_a_stage_before_its_inputs_is_refused(scalemani, folder, tmp_path):
    status, _, errors = scalemani("stage", "neighbors", folder / "roll.npy", tmp_path / "run", *SMALL)
    assert status == 2
    assert "reads partition, work_points, not finished yet: run these stages first" in errors


def test_a_plan_that_does_not_fit_is_shown_before_it_is_refused(scalemani, folder, tmp_path):
    status, output, errors = scalemani("plan", folder / "roll.npy", tmp_path / "run", *SMALL, "--memory", "100MB")
    assert status == 2
    assert "symmetric_affinities" in output
    assert "raise --memory to" in errors
    assert not (tmp_path / "run").exists()


def test_a_configuration_and_assignments_in_this_order(scalemani, folder, tmp_path):
    (tmp_path / "config.toml").write_text("seed = 4\n[affinities]\nperplexity = 4\nsolver = 'newton'\n")
    arguments = ("--config", tmp_path / "config.toml", "--set=affinities.perplexity=3", *SMALL)
    assert scalemani("stage", "points", folder / "roll.npy", tmp_path / "run", *arguments)[0] == 0
    params = json.loads(scalemani("info", tmp_path / "run", "--json")[1])["params"]
    assert (params["seed"], params["affinities"]["perplexity"], params["affinities"]["solver"]) == (4, 3, "newton")


def test_labels_are_judged_where_they_are_classes(scalemani, folder):
    arguments = ("embed", folder / "roll.npy", folder / "run", *SMALL, "--labels")
    found = scalemani(*arguments, folder / "classes.txt")[1].splitlines()[-1]
    assert "of 2000 points have the label of their nearest neighbour in the embedding" in found
    assert float(found.split()[0]) > 0.9
    assert scalemani(*arguments, folder / "classes.txt", "--quiet") == (0, f"{found}\n", "")
    assert "labels are values, not classes" in scalemani(*arguments, folder / "roll.labels.npy")[1]


def test_plot_export_and_transform(scalemani, folder, tmp_path):
    pytest.importorskip("PIL")
    run = folder / "run"
    for labels in ([], ["--labels", folder / "classes.txt"], ["--labels", folder / "roll.labels.npy"]):
        assert scalemani("plot", run, tmp_path / "picture.png", *labels)[0] == 0
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    both = ("--labels", folder / "classes.txt", "--labels", folder / "roll.labels.npy")
    look = ("--size", "640x300", "--title", "A roll", "--legend", "map", "--poor")
    assert scalemani("plot", run, tmp_path / "picture.svg", *both, *look)[0] == 0
    dark = ("--theme", "dark", "--point-size", "2")
    assert scalemani("plot", run, tmp_path / "dark.svg", *dark)[0] == 0
    assert "#15171c" in (tmp_path / "dark.svg").read_text()
    code, _, error = scalemani("plot", run, tmp_path / "dark.svg", "--theme", "drak")
    assert code == 2
    assert "did you mean 'dark'" in error
    drawn = (tmp_path / "picture.svg").read_text()
    assert all(text in drawn for text in ("A roll", "classes.txt", "roll.labels.npy", "2,000 points"))
    assert scalemani("export", run, tmp_path / "embedding.npy")[0] == 0
    assert scalemani("export", run, tmp_path / "embedding.zarr")[0] == 0
    assert scalemani("transform", run, folder / "roll.npy", tmp_path / "placed.npy")[0] == 0
    embedding, placed = np.load(tmp_path / "embedding.npy"), np.load(tmp_path / "placed.npy")
    assert embedding.shape == placed.shape == (2000, 2)
    assert np.corrcoef(embedding[:, 0], placed[:, 0])[0, 1] > 0.9


@pytest.mark.parametrize("method", ["spectral-clustering", "knn-graph"])
def test_other_methods(scalemani, folder, tmp_path, method):
    arguments = ("--method", method, *SMALL, "--set=clustering.n_clusters=3")
    status, output, _ = scalemani("embed", folder / "roll.npy", tmp_path / "run", *arguments)
    assert status == 0
    assert output.splitlines()[-1].split()[0] == ("clustering" if method == "spectral-clustering" else "graph")


def test_help_is_quick_and_says_every_command():
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-X", "importtime", "-m", "scalemani", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began < 2  # half a second where nothing else runs
    assert done.returncode == 0
    assert all(f" {command} " in done.stdout for command in COMMANDS)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"numpy", "dask", "zarr", "numba", "pydantic", "sklearn"}


def processor_seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("command", ["plan", "embed"])
def test_a_wrong_parameter_is_told_of_before_anything_heavy_is_loaded(folder, tmp_path, command):
    arguments = [command, str(folder / "roll.npy"), str(tmp_path / "run"), "--set=affinities.perplexity=-3"]
    started = [sys.executable, "-X", "importtime", "-m", "scalemani", *arguments]
    before = processor_seconds_of_children()
    done = subprocess.run(started, capture_output=True, text=True, check=False)
    assert processor_seconds_of_children() - before < 6  # three times what people wait for without a thought
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: affinities.perplexity must be > 1, got -3"
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"dask", "distributed", "zarr", "numba", "scipy", "sklearn"}


def test_a_shell_completes_commands_and_methods():
    program = "import sys; sys.argv = ['scalemani']; from scalemani.interfaces.cli import main; main()"
    for words, expected in (("scalemani em", ["embed"]), ("scalemani embed a b --method t-s", ["t-sne"])):
        asked = {"_SCALEMANI_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(scalemani, command):
    status, output, _ = scalemani(command, "--help")
    assert status == 0
    assert "--debug" in output


@pytest.mark.parametrize("command", ["generate", "export", "transform"])
def test_a_command_that_replaces_files_says_so(scalemani, command):
    _, output, _ = scalemani(command, "--help")
    assert "replaced" in " ".join(output.split())


def test_generated_points_replace_those_that_are_there_with_their_labels(scalemani, tmp_path):
    for n_points in (300, 200):
        assert scalemani("generate", "swiss-roll", tmp_path / "roll.npy", "--n-points", n_points)[0] == 0
        assert len(np.load(tmp_path / "roll.npy")) == len(np.load(tmp_path / "roll.labels.npy")) == n_points


def test_help_shows_flags_without_a_value_many_options_in_panels_and_two_examples(scalemani):
    for name in ("embed", "plan", "plot", "export", "verify"):
        assert "bool" not in scalemani(name, "--help")[1]
    _, output, _ = scalemani("embed", "--help")
    panels = re.findall(r"─ ([A-Z][\w ]+) ─", output)
    assert panels == ["Arguments", "Method and parameters", "Side data of the points", "Workers and memory", "Messages"]
    assert output.count("\n scalemani embed ") == 2


def test_a_bare_call_shows_the_help(scalemani):
    status, output, errors = scalemani()
    assert status == 2
    assert "embed" in output
    assert "error" not in errors


def test_what_nobody_foresaw_is_one_line_too(scalemani, folder, monkeypatch):
    def fail(*arguments):
        raise KeyError("surprise\nin two lines https://me:hunter2@host/x")

    monkeypatch.setattr("scalemani.interfaces.cli.printing.show_records", fail)
    status, _, errors = scalemani("info", folder / "run")
    assert status == 1
    assert len(errors.splitlines()) == 1
    assert errors.startswith("error: KeyError")
    assert "hunter2" not in errors
    status, _, errors = scalemani("info", folder / "run", "--debug")
    assert "Traceback" in errors
    assert errors.splitlines()[-1].startswith("error: KeyError")


def at_work(process: psutil.Process) -> bool:
    """Return whether a process has not ended; one that nobody has asked how it ended is still in the table."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def run_command(folder: Path, run: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "scalemani", "embed", str(folder / "roll.npy"), str(run), *options]


def started_run(folder: Path, run: Path, *options: str) -> subprocess.Popen[str]:
    """Start a run and return it at work on its stages."""
    command = run_command(folder, run, *options)
    # a shell that starts the tests in the background has all their processes ignore SIGINT
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    assert process.stderr is not None
    for line in process.stderr:
        if "points: " in line:
            break
    return process


@pytest.mark.parametrize(
    ("number", "expected", "scheduler"),
    [(signal.SIGINT, 130, "threads"), (signal.SIGTERM, 143, "threads"), (signal.SIGTERM, 143, "processes")],
)
def test_a_signal_ends_a_run_in_time_leaves_nothing_behind_and_it_goes_on_equal(
    folder, tmp_path, number, expected, scheduler
):
    with started_run(folder, tmp_path / "run", "--scheduler", scheduler, *SMALL) as process:
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        assert process.wait(SECONDS) == expected, process.stderr.read()
        assert process.stderr is not None
        assert f"stopped by {signal.Signals(number).name}" in process.stderr.read()
    assert not list((tmp_path / "run").glob("stages/embedding/*/complete.json"))  # it did not go on to its end
    deadline = time.monotonic() + SECONDS
    while any(map(at_work, children)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert scheduler == "threads" or children
    assert not list((tmp_path / "run").rglob("*.partial"))
    again = subprocess.run(run_command(folder, tmp_path / "run", *SMALL), capture_output=True, check=False)
    assert again.returncode == 0, again.stderr
    finished, reference = open_run(tmp_path / "run"), open_run(folder / "run")
    for stage in reference.keys:
        assert finished.group(stage).content_digest == reference.group(stage).content_digest, stage
