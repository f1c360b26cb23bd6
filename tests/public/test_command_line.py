"""The command line as it is typed."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow.parquet
import pytest
import zarr

import scalemani as sm


def test_version_and_help(command):
    assert command("--version")[0] == 0
    status, output, _ = command("--help")
    assert status == 0
    for name in ("embed", "plan", "transform", "info", "report", "measure", "export", "append", "align", "doctor"):
        assert name in output


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "scalemani", "--version"], capture_output=True, text=True)
    assert done.returncode == 0


def test_plan_lists_stages_and_runs_nothing(command, files, tmp_path):
    status, output, _ = command("plan", files / "digits.npy", tmp_path / "run")
    assert status == 0
    assert "neighbors" in output
    assert not (tmp_path / "run").exists()


def test_embed_again_computes_nothing(command, files):
    status, output, _ = command("plan", files / "digits.npy", files / "run")
    assert status == 0
    assert output.count("complete") >= 6
    assert command("embed", files / "digits.npy", files / "run")[0] == 0


def test_info_is_json_with_parameters_and_certificates(command, files):
    status, output, _ = command("info", files / "run", "--json")
    summary = json.loads(output)
    assert status == 0
    assert summary["method"] == "laplacian-eigenmaps"
    assert summary["verdicts"]["neighbors.recall"] == "good"


@pytest.mark.parametrize("suffix", ["npy", "zarr", "parquet", "csv"])
def test_exports_hold_the_rows_in_input_order(command, files, tmp_path, suffix):
    out = tmp_path / f"embedding.{suffix}"
    assert command("export", files / "run", out)[0] == 0
    read = {
        "npy": np.load,
        "zarr": lambda path: zarr.open_array(path)[:],
        "parquet": lambda path: np.stack(
            [column.to_numpy() for column in pyarrow.parquet.read_table(path).columns[-2:]], 1
        ),
        "csv": lambda path: np.loadtxt(path, delimiter=",", skiprows=1),
    }[suffix]
    np.testing.assert_allclose(read(out)[:, -2:], sm.open_run(files / "run").embedding[:], rtol=1e-6)


def test_transform_places_rows(command, files, tmp_path):
    assert command("transform", files / "run", files / "digits.npy", tmp_path / "placed.npy")[0] == 0
    assert np.load(tmp_path / "placed.npy").shape == (800, 2)


def test_report_and_measure_and_plot(command, files, tmp_path):
    status, output, _ = command("measure", files / "run", "--labels", files / "labels.npy")
    assert status == 0
    assert "trustworthiness" in output
    assert command("report", files / "run", tmp_path / "report.html", "--labels", files / "labels.npy")[0] == 0
    page = (tmp_path / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html")
    assert command("plot", files / "run", tmp_path / "map.png", "--labels", files / "labels.npy")[0] == 0
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_a_parameter_reruns_only_what_depends_on_it(command, files, tmp_path):
    setting = "--set=embedding.residual=1e-6"
    output = command("plan", files / "digits.npy", files / "run", setting)[1]
    states = {line.split()[0]: line.split()[2] for line in output.splitlines() if len(line.split()) > 3}
    assert states["neighbors"] == "complete"
    assert states["embedding"] != "complete"


def test_append_and_align(command, files, tmp_path):
    digits = np.load(files / "digits.npy")
    np.save(tmp_path / "first.npy", digits[:700])
    np.save(tmp_path / "more.npy", digits[700:])
    assert command("embed", tmp_path / "first.npy", tmp_path / "run", "--quiet")[0] == 0
    assert command("append", tmp_path / "run", tmp_path / "more.npy")[0] == 0
    assert json.loads(command("info", tmp_path / "run", "--json")[1])["dimensions"]["n_points"] == 800
    status, output, _ = command("align", tmp_path / "run", files / "run")
    assert status == 0
    assert "residual" in output


def test_generated_points_follow_the_seed(command, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        arguments = ("generate", "swiss-roll", tmp_path / f"{name}.npy", "--n-points", 300, "--seed", seed)
        assert command(*arguments)[0] == 0
    first, same, other = (np.load(tmp_path / f"{name}.npy") for name in "abc")
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_doctor_knows_the_machine(command):
    status, output, _ = command("doctor")
    assert status == 0
    assert "numba" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("embed", "nowhere.npy", "run"), "nowhere.npy"),
        (("embed", "{digits}", "run", "--method", "sideways"), "sideways"),
        (("embed", "{digits}", "run", "--set", "affinities.perplexty=3"), "perplexity"),
        (("embed", "{digits}", "run", "--memory", "1kB"), "memory"),
        (("info", "nowhere"), "nowhere"),
        (("transform", "{run}", "{labels}", "out.npy"), "features|columns"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_2(command, files, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    places = {"digits": files / "digits.npy", "labels": files / "labels.npy", "run": files / "run"}
    status, _, errors = command(*(argument.format(**places) for argument in arguments))
    assert status == 2
    assert "Traceback" not in errors
    assert re.search(message, errors)
