"""A notebook that a kernel executes: an estimator is fitted, bars tell its progress, its map and picture are shown."""

import base64
import io
import re
import sys
from html import unescape

import numpy as np
import pytest
from PIL import Image

nbclient = pytest.importorskip("nbclient", reason="nbclient, which executes notebooks, is not installed")
pytest.importorskip("ipykernel", reason="ipykernel, which notebooks run in, is not installed")

CELLS = (
    "import numpy as np\nimport scalemani as sm\n"
    "points = np.random.default_rng(0).normal(size=(300, 4)) + 6 * (np.arange(300) % 2)[:, None]\n"
    "side = np.arange(300) % 2",
    "model = sm.LandmarkPCA(n_landmarks=20, store={store!r}, verbose=True).fit(points)\nmodel",
    "model.live_map({{'side': side}})",
    "model.plot(side, title='Two clusters')",
    "sm.open_run({store!r})",
    "sm.LandmarkPCA(n_landmarks=20)",
)
SECONDS = 300


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> list[list[dict]]:
    """Return what each cell of a notebook has shown; a cell that fails raises."""
    import nbformat
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec

    store = str(tmp_path_factory.mktemp("notebook") / "run")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.format(store=store)) for cell in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "this Python"}},
    )
    manager = AsyncKernelManager()
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, display_name="this Python", language="python")
    executed = nbclient.NotebookClient(notebook, km=manager, timeout=SECONDS, startup_timeout=SECONDS).execute()
    nbformat.validate(executed)
    return [cell.outputs for cell in executed.cells]


def shown(outputs: list[dict], kind: str) -> str:
    """Return the result of a cell in one form."""
    (found,) = (output for output in outputs if output["output_type"] == "execute_result")
    return found["data"][kind]


def test_no_cell_fails_and_none_writes_an_error(outputs):
    assert [output for cell in outputs for output in cell if output["output_type"] == "error"] == []
    assert [output for cell in outputs for output in cell if output.get("name") == "stderr"] == []


def test_a_fitted_model_and_its_run_show_a_live_map(outputs):
    for cell in (1, 2, 4):
        page = unescape(shown(outputs[cell], "text/html").split('srcdoc="')[1].split('"')[0])
        assert '"of": 300' in page
        assert "new MapView" in page
    assert '"name": "side"' in unescape(shown(outputs[2], "text/html"))
    assert "<iframe" not in shown(outputs[5], "text/html")


def test_progress_names_the_stages_and_ends_complete(outputs):
    (bars,) = (output["data"] for output in outputs[1] if output["output_type"] == "display_data")
    for told in (re.sub(r"<[^>]+>", "", bars["text/html"]), re.sub(r"\x1b\[[\d;]*m", "", bars["text/plain"])):
        assert re.search(r"principal_components .* 1/1 ", told)
        assert told.count("1/1") > 3


def test_a_plot_is_a_picture_in_the_colours_of_its_labels(outputs):
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(shown(outputs[3], "image/png")))).convert("RGB")).astype(
        int
    )
    for colour in ("50afff", "ff7d3c"):
        assert (np.abs(image - list(bytes.fromhex(colour))).max(axis=2) < 30).sum() > 50
