"""Letters that steer a terminal, planted in names, labels and stores, reach no terminal."""

import json
import shutil

import numpy as np
import pytest
import zarr

from scalemani.store.objects import sealed, unsealed

TITLE = "\x1b]0;owned\x07"
PLANTED = f"{TITLE}\x1b[2J\x9b31m\r\u202e"


def assert_printable(*texts):
    for text in texts:
        assert [line for line in text.splitlines() if not line.isprintable()] == []
        assert "\r" not in text


@pytest.mark.parametrize("command", ["plan", "embed"])
def test_names_of_files(scalemani, points, tmp_path, command):
    shutil.copy(points, tmp_path / f"{TITLE}p.npy")
    for given in (f"{TITLE}p.npy", f"{TITLE}missing.npy", f"{TITLE}none.npz", f"{TITLE}.zarr"):
        status, *printed = scalemani(command, tmp_path / given, tmp_path / "file" / PLANTED[:4], "--set=a.b=1")
        assert status == 2
        assert_printable(*printed)
    (tmp_path / f"{TITLE}none.npz").write_bytes(b"nothing")
    for given in (f"{TITLE}p.npy", f"{TITLE}missing.npy", f"{TITLE}none.npz", f"{TITLE}.zarr"):
        assert_printable(*scalemani("plan", tmp_path / given, tmp_path / "run")[1:])


def test_names_in_stores_and_of_columns(scalemani, tmp_path):
    group = zarr.open_group(tmp_path / "p.zarr", mode="w")
    for name in (f"a{PLANTED}", "b"):
        group.create_array(name, shape=(40, 3), dtype="f8")
    status, *printed = scalemani("plan", tmp_path / "p.zarr", tmp_path / "run")
    assert status == 2
    assert_printable(*printed)
    np.savez(tmp_path / "p.npz", **{f"a{PLANTED}": np.ones((40, 3)), "b": np.ones((40, 3))})
    status, *printed = scalemani("plan", tmp_path / "p.npz", tmp_path / "run")
    assert status == 2
    assert_printable(*printed)


def planted_in(value):
    """Return a description in which every text ends in what steers a terminal."""
    if isinstance(value, dict):
        return {name: planted_in(part) for name, part in value.items()}
    if isinstance(value, list):
        return [planted_in(part) for part in value]
    return value + PLANTED if isinstance(value, str) else value


@pytest.mark.parametrize("stage", ["points", "neighbors", "embedding"])
def test_certificates_and_warnings_of_a_store(scalemani, copied, stage):
    path = next((copied / "stages" / stage).rglob("complete.json"))
    record = unsealed(path.read_bytes())
    record["certificates"]["note"] = PLANTED
    record["certificates"][PLANTED] = 1
    record["warnings"] = [[PLANTED, "ScalemaniWarning"]]
    path.write_bytes(sealed(record))
    for arguments in (["info", copied], ["info", copied, "--json"], ["runs", copied]):
        status, output, errors = scalemani(*arguments)
        assert_printable(output, errors)
        if "--json" in arguments and status == 0:
            json.loads(output)


@pytest.mark.parametrize("name", ["plan.json", "scalemani.json"])
def test_plans_of_a_store(scalemani, points, copied, name):
    path = copied / name
    path.write_bytes(sealed(planted_in(unsealed(path.read_bytes()))))
    for arguments in (["info", copied], ["runs", copied], ["plan", points, copied], ["measure", copied]):
        assert_printable(*scalemani(*arguments)[1:])


def test_what_is_no_command_or_option(scalemani, points, tmp_path):
    for given in ([PLANTED], ["plan", f"--{PLANTED}"], ["plan", points, tmp_path / "run", f"--memory={PLANTED}"]):
        status, *printed = scalemani(*given)
        assert status == 2
        assert_printable(*printed)


def test_labels(scalemani, finished, tmp_path):
    (tmp_path / "y.txt").write_text("\n".join(f"{PLANTED}{row % 3}".replace("\r", "") for row in range(2000)))
    (tmp_path / "few.txt").write_text(f"{TITLE}\n")
    for labels in ("y.txt", "few.txt"):
        for command, target in (("plot", "map.png"), ("report", None), ("measure", None)):
            given = [finished, *([tmp_path / target] if target else []), "--labels", tmp_path / labels]
            if command == "report":
                given += ["--out", tmp_path / "report.html"]
            assert_printable(*scalemani(command, *given)[1:])
