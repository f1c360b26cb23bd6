"""FORMAT.md and the catalogue say the same."""

import json
import re

import pytest

from scalemani.engine.checkpoints import FOLDERS, TABLE
from scalemani.engine.context import DIMENSIONS
from scalemani.runs.walk import INPUTS
from scalemani.stages.points import SURVEY
from scalemani.store.locks import LOCK
from scalemani.store.run_store import MARKER, PLAN
from scalemani.store.schema import CODEC, CODEC_LEVEL, FORMAT, FORMAT_VERSION
from tests.stages.arrays import specification
from tests.stages.arrays.specification import stored_stages


def test_the_tables_are_those_of_the_catalogue():
    text = specification.FORMAT_FILE.read_text()
    assert specification.with_tables(text) == text, "run: python -m tests.stages.arrays.specification"


def test_every_array_has_its_line():
    lines = specification.FORMAT_FILE.read_text().splitlines()
    for stored in stored_stages():
        section = lines[lines.index(f"### {stored.STAGE}") :]
        for described in stored.ARRAYS:
            assert any(f"`{described.paths[0]}`" in line and described.meaning in line for line in section), described


def test_every_file_of_a_run_is_named(finished):
    text = specification.FORMAT_FILE.read_text()
    for name in (MARKER, PLAN, LOCK, DIMENSIONS, SURVEY, INPUTS, TABLE, *FOLDERS, "complete.json", "marks/", "arrays/"):
        assert name in text, name
    root = finished["t-sne"].store.root
    files = {path.name for path in root.rglob("*") if path.is_file() and not {"arrays", "marks"} & set(path.parts)}
    assert all(name in text for name in files), files
    for unit in (path.stem for path in root.glob("stages/*/*/marks/*.json")):
        assert f"`{re.sub(r'[0-9]+', 'N', unit)}`" in text, unit


def test_the_fields_of_descriptions_are_named(finished):
    text, root = specification.FORMAT_FILE.read_text(), finished["t-sne"].store.root
    for name in (MARKER, PLAN):
        assert all(f"`{field}`" in text for field in json.loads((root / name).read_text())), name
    record = json.loads(next(root.glob("stages/layout/*/complete.json")).read_text())
    assert all(f"`{field}`" in text for field in record), record.keys()


def test_the_versions_and_the_codec_are_those_of_the_code():
    text = specification.FORMAT_FILE.read_text()
    assert f'"{FORMAT}"' in text
    assert f"version is {FORMAT_VERSION}" in text
    assert f"{CODEC}, level {CODEC_LEVEL}" in text


def test_a_file_without_its_markers_is_refused():
    with pytest.raises(ValueError, match="needs the lines"):
        specification.with_tables(f"text\n{specification.FIRST_MARKER}\nno end")
