"""Every option of every command changes what is computed, written or told, or says why it does not."""

import contextlib
import json
import re
import shutil
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
import typer

import scalemani as sm
from scalemani.interfaces.cli.commands import app
from scalemani.interfaces.cli.options import Options
from scalemani.store.run_store import RunStore
from tests.config.params.effects import points_of_each_kind

COMMANDS = typer.main.get_command(app).commands


@dataclass(frozen=True)
class Effect:
    """An option, beside the others of a command and of `beside`, changes what is seen of it.

    That is its "result" (the embedding of RUN), what it writes ("out", files), what it says on standard output, "said",
    its exit "status", or what else `Seen` has. `instead` are other arguments than those that the command has above.
    """

    option: str
    on: str = "result"
    beside: str = ""
    instead: str = ""


@dataclass(frozen=True)
class Unchanged:
    """An option changes no bit of what is seen, for a reason."""

    option: str
    reason: str
    on: str = "result"
    beside: str = ""
    instead: str = ""


def traced(broken: str) -> Effect:
    """Return the effect of --debug on a call that ends in an error."""
    return Effect("--debug", "traceback", instead=broken)


RESOURCE = "a resource"
CLASSES = "--set symmetric_affinities.target_weight=0.5"
SMALL = "--set neighbors.n_neighbors=12 --set landmarks.n_landmarks=40"
RUNNING = {
    "method": Effect("--method diffusion-maps"),
    "metric": Effect("--metric cosine"),
    "missing": Effect("--missing leave-out", "status", instead="FOLDER/gaps.npy NOWHERE " + SMALL),
    "exclude": Effect("--exclude x", "status"),  # of points that have no names
    "config": Effect("--config FOLDER/parameters.toml"),
    "assignments": Effect("--set affinities.perplexity=3"),
    "scheduler": Effect("--scheduler nowhere", "status"),
    "workers": Unchanged("--workers 2", RESOURCE),
    "memory": (Effect("--memory 1MB", "status", instead="POINTS NOWHERE"), Unchanged("--memory 3GB", RESOURCE)),
    "labels": (
        Effect("--labels FOLDER/labels.npy", "rows"),
        Effect("--labels FOLDER/other.npy", beside="--labels FOLDER/labels.npy " + CLASSES),
    ),
    "weights": Effect("--weights FOLDER/weights.npy"),
    "precomputed_lists": Effect("--graph FOLDER/lists.npz"),
    "deduplicate": Effect("--deduplicate", "stages"),
    "init": Effect("--init FOLDER/start.npy", beside="--method elastic-embedding --set layout.max_iterations=3"),
    "global_reference": Effect(
        "--global-reference FOLDER/start.npy",
        beside="--method elastic-embedding --set layout.max_iterations=3 --set layout.global_weight=1",
    ),
    "ids": Effect(
        "--ids FOLDER/ids.npy FOLDER/others.npy",
        beside="--method elastic-embedding --set layout.max_iterations=3 --init FOLDER/start.npy",
    ),
    "landmarks": Effect("--landmarks FOLDER/landmarks.npy", beside="--set embedding.solver=lll"),
    "block_rows": (
        Effect("--block-rows 1000", "status", instead="POINTS NOWHERE " + SMALL),
        Unchanged("--block-rows 2048", "work is cut otherwise", instead="POINTS NOWHERE " + SMALL),
    ),
    "tls": Effect("--tls FOLDER/nowhere", "told", beside="--scheduler tls://127.0.0.1:9"),
    "wait": Effect("--wait 0.5", "waits", beside="LOCKED"),
    "keep": Effect(
        "--keep",
        "files",
        instead="POINTS NOWHERE --set neighbors.n_neighbors=12 --set neighbors.method=partition "
        "--set neighbors.n_probes=1 --set partition.cell_points=16 --set neighbors.recall=1 "
        "--set partition.sketch_dimensions=2",
    ),
    "log": Effect("--log json", "objects"),
    "quiet": Effect("--quiet", "rows"),
    "debug": traced("POINTS RUN --set seed=-1"),
}
TABLES = {
    "embed": ("POINTS RUN " + SMALL, RUNNING),
    "stage": ("points POINTS RUN " + SMALL, {"debug": traced("nothing POINTS RUN")}),
    "plan": (
        "POINTS RUN " + SMALL,
        {
            "explain": Effect("--explain neighbors", "said"),
            "graph": Effect("--graph FOLDER/graph.dot", "said"),
            "as_json": Effect("--json", "said"),
            "debug": traced("POINTS RUN --set seed=-1"),
        },
    ),
    "info": ("RUN", {"as_json": Effect("--json", "said"), "debug": traced("NOWHERE")}),
    "measure": (
        "RUN",
        {
            "labels": Effect("--labels FOLDER/labels.npy", "said"),
            "neighbors": Effect("--neighbors 4", "said"),
            "sampled": Effect("--sampled 30", "said"),
            "seed": Effect("--seed 1", "said", beside="--sampled 30"),
            "as_json": Effect("--json", "said"),
            "debug": traced("NOWHERE"),
        },
    ),
    "verify": (
        "RUN --seed 1",
        {
            "rows": Effect("--rows 30", "said"),
            "memory": (Effect("--memory 1MB", "status"), Unchanged("--memory 3GB", RESOURCE, "said")),
            "seed": Effect("--seed 2", "said"),
            "quiet": (Effect("--quiet", "silent"), Unchanged("--quiet", "findings are what was asked for", "said")),
            "as_json": Effect("--json", "said"),
            "debug": traced("NOWHERE"),
        },
    ),
    "transform": (
        "RUN NEW OUT.npy",
        {
            "exclude": RUNNING["exclude"],
            "scheduler": Effect("--scheduler nowhere", "status"),
            "workers": Unchanged("--workers 2", RESOURCE, "out"),
            "memory": (Effect("--memory 1MB", "status"), Unchanged("--memory 3GB", RESOURCE, "out")),
            "tls": RUNNING["tls"],
            "log": Effect("--log json", "objects"),
            "quiet": Effect("--quiet", "rows"),
            "debug": traced("NOWHERE NEW OUT.npy"),
        },
    ),
    "plot": (
        "RUN OUT.png --size 400",
        {
            "labels": Effect("--labels FOLDER/labels.npy", "out"),
            "size": Effect("--size 300", "out"),
            "title": Effect("--title Points", "out"),
            "legend": Effect("--legend map", "out", beside="--labels FOLDER/labels.npy"),
            "theme": Effect("--theme dark", "out"),
            "point_size": Effect("--point-size 3", "out"),
            "poor": Effect("--poor", "out", instead="POOR OUT.png --size 400"),
            "doubtful": Effect("--doubtful", "out", instead="DOUBTED OUT.png --size 400"),
            "palette": Effect("--palette colour-blind", "out", beside="--labels FOLDER/labels.npy"),
            "cmap": Effect("--cmap plasma", "out", beside="--labels FOLDER/values.npy"),
            "vmin": Effect("--vmin 0.3", "out", beside="--labels FOLDER/values.npy"),
            "vmax": Effect("--vmax 0.7", "out", beside="--labels FOLDER/values.npy"),
            "groups": Effect("--group 1", "out", beside="--labels FOLDER/labels.npy"),
            "panels": Effect("--panels FOLDER/labels.npy", "out"),
            "positions": Effect("--positions FOLDER/start.npy", "out"),
            "stretch": Effect("--stretch", "out"),
            "debug": traced("NOWHERE OUT.png"),
        },
    ),
    "stretch": (
        "RUN OUT.npz",
        {
            "neighbors": Effect("--neighbors 6", "out"),
            "dimensions": Effect("--dimensions 1", "out"),
            "debug": traced("NOWHERE OUT.npz"),
        },
    ),
    "features": (
        "RUN",
        {
            "groups": Effect("--groups FOLDER/labels.npy", "said"),
            "top": Effect("--top 1", "said"),
            "seed": Unchanged("--seed 1", "derivatives agree at every point", "said"),
            "picture": Effect("--picture FOLDER/features.png", "said"),
            "as_json": Effect("--json", "said"),
            "debug": traced("NOWHERE"),
        },
    ),
    "report": (
        "RUN OUT.html",
        {
            "labels": Effect("--labels FOLDER/labels.npy", "texts"),
            "title": Effect("--title Mammals", "texts"),
            "note": Effect("--note Reptiles", "texts"),
            "positions": Effect("--positions FOLDER/start.npy", "map"),
            "stretch": Effect("--stretch", "map"),
            "sampled": Effect("--sampled 0", "texts"),
            "tiles": Effect("--tiles OUT.tiles", "folders", instead="RUN"),
            "axes": Effect("--axes 2 1", "tiles", instead="RUN --tiles OUT.tiles"),
            "debug": traced("NOWHERE"),
        },
    ),
    "export": (
        "RUN OUT.npz --what graph",
        {
            "what": Effect("--what affinities", "out"),
            "labels": Effect("--labels FOLDER/labels.npy", "out", instead="RUN OUT.csv"),
            "neighbors": Effect("--neighbors", "out", instead="RUN OUT.parquet"),
            "escape_formulas": Effect("--escape-formulas", "out", instead="RUN OUT.csv --labels FOLDER/formulas.npy"),
            "debug": traced("NOWHERE OUT.npz"),
        },
    ),
    "generate": (
        "swiss-roll OUT.npy --n-points 30",
        {
            "n_points": Effect("--n-points 31", "out"),
            "seed": Effect("--seed 1", "out"),
            "source": Effect(
                "--source FOLDER/bright.npz",
                "out",
                instead="infinite-digits OUT.npy --n-points 9 --source FOLDER/digits.npz",
            ),
            "debug": traced("nothing OUT.npy"),
        },
    ),
    "landmarks": (
        "POINTS --methods random --landmarks 20 --json",
        {
            "methods": Effect("--methods spread", "qualities", instead="POINTS --landmarks 20 --json"),
            "n_landmarks": Effect("--landmarks 15", "qualities", instead="POINTS --methods random --json"),
            "seeds": Effect("--seed 1", "qualities"),
            "n_sampled": Effect("--sampled 40", "qualities"),
            "sigma": Effect("--sigma 0.5", "qualities"),
            "metric": Effect("--metric cosine", "qualities"),
            "assignments": Effect("--set landmark_weights.n_neighbors=3", "qualities"),
            "workers": Unchanged("--workers 2", RESOURCE, "qualities"),
            "memory": Unchanged("--memory 3GB", RESOURCE, "qualities"),
            "as_json": Effect("--json", "objects", instead="POINTS --methods random --landmarks 20"),
            "debug": traced("NOWHERE"),
        },
    ),
    "align": (
        "RUN OTHER",
        {
            "ids": Effect("--ids FOLDER/ids.npy FOLDER/others.npy", "said"),
            "as_json": Effect("--json", "said"),
            "debug": traced("NOWHERE OTHER"),
        },
    ),
    "mix": (
        "OUT.npz --group POINTS --group FOLDER/start.npy --perplexity 4",
        {
            "groups": Effect("--group FOLDER/start.npy=cosine", "out"),
            "combine": Effect("--how product", "out"),
            "weights": Effect("--weight 1 --weight 3", "out"),
            "perplexity": Effect("--perplexity 3", "out"),
            "n_neighbors": Effect("--neighbors 15", "out"),
            "random_state": Unchanged("--seed 1", "so few points are searched exactly", "out"),
            "workers": Unchanged("--workers 2", RESOURCE, "out"),
            "memory": Unchanged("--memory 3GB", RESOURCE, "out"),
            "debug": traced("OUT.npy --group POINTS --group POINTS"),
        },
    ),
    "append": (
        "RUN NEW",
        {
            "exclude": RUNNING["exclude"],
            "freeze": Effect("--freeze", instead="DESCENT NEW"),
            "scheduler": Effect("--scheduler nowhere", "status"),
            "workers": Unchanged("--workers 2", RESOURCE),
            "memory": (Effect("--memory 1MB", "status"), Unchanged("--memory 3GB", RESOURCE)),
            "tls": RUNNING["tls"],
            "wait": RUNNING["wait"],
            "quiet": Effect("--quiet", "rows"),
            "debug": traced("NOWHERE NEW"),
        },
    ),
    "doubt": (
        "DESCENT",
        {
            "labels": Effect("--labels FOLDER/labels.npy", "said"),
            "assignments": Effect("--set doubt.null_points=40", "said"),
            "as_json": Effect("--json", "objects"),
            "scheduler": Effect("--scheduler nowhere", "status"),
            "workers": Unchanged("--workers 2", RESOURCE, "said"),
            "memory": (
                Effect("--memory 1MB", "status", instead="DESCENT"),
                Unchanged("--memory 3GB", RESOURCE, "said"),
            ),
            "tls": RUNNING["tls"],
            "wait": RUNNING["wait"],
            "quiet": (Effect("--quiet", "silent"), Unchanged("--quiet", "the reading is what was asked for", "said")),
            "debug": traced("NOWHERE"),
        },
    ),
    "tune": (
        "POINTS RUN " + SMALL + " --set affinities.perplexity=3,4 --out OUT",
        {
            "reference": Effect("--reference FOLDER/start.npy", "scores"),
            "score": Effect("--score trustworthiness", "scores"),
            "neighbors": Effect("--neighbors 3", "scores", beside="--score trustworthiness"),
            "out": Effect("--out ELSEWHERE", "folders"),
            "debug": traced("POINTS RUN --set seed=-1"),
        },
    ),
    "params": ("", {"as_json": Effect("--json", "said"), "debug": traced("nothing")}),
    "runs": (
        "RUN",
        {"prune": Effect("--prune", "files"), "as_json": Effect("--json", "said"), "debug": traced("NOWHERE")},
    ),
    "doctor": (
        "",
        {"as_json": Effect("--json", "objects"), "debug": Unchanged("--debug", "it ends in no error", "examined")},
    ),
}


POINTS = points_of_each_kind()["plain"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of inputs, with a finished run of each kind."""
    here, n = tmp_path_factory.mktemp("inputs"), len(POINTS)
    draw = np.random.default_rng(0)
    arrays = {
        "points": POINTS,
        "gaps": np.where(np.arange(n)[:, None] == 7, np.nan, POINTS),
        "new": POINTS[:20] * np.float32(1.1),
        "labels": np.arange(n) % 3,
        "other": np.arange(n) % 4,
        "values": np.linspace(0, 1, n),
        "formulas": np.where(np.arange(n) % 2, "=1+1", "plain"),
        "weights": 1.0 + np.arange(n) % 3,
        "start": draw.normal(size=(n, 2)),
        "ids": np.arange(n),
        "others": np.roll(np.arange(n), 9),
        "landmarks": POINTS[::5] + np.float32(0.1),
    }
    for name, values in arrays.items():
        np.save(here / f"{name}.npy", values)
    np.savez(here / "lists.npz", indices=(np.arange(n)[:, None] + np.arange(1, 13)) % n, distances=np.ones((n, 12)))
    (here / "parameters.toml").write_text("[affinities]\nperplexity = 3\n")
    digits = draw.integers(0, 255, (4, 784)).astype(np.uint8)
    for name, values in (("digits", digits), ("bright", 255 - digits)):
        np.savez(here / f"{name}.npz", X=values, y=np.arange(4))
    given = {"n_neighbors": 12, "n_landmarks": 40}
    sm.LaplacianEigenmaps(store=here / "run", perplexity=3.5, **given).fit(POINTS)  # results that the next does not use
    sm.LaplacianEigenmaps(store=here / "other", perplexity=3, **given).fit(POINTS)
    sm.LaplacianEigenmaps(store=here / "run", **given).fit(POINTS)
    sm.ElasticEmbedding(max_iter=3, store=here / "descent", **given).fit(POINTS)
    doubted = {"doubt.measured": True, "doubt.null_points": 0}
    sm.LaplacianEigenmaps(store=here / "doubted", settings=doubted, **given).fit(POINTS)
    crowded = np.concatenate([POINTS, np.repeat(POINTS[:1], 12, axis=0)])  # copies are equally near: saturated
    sm.LaplacianEigenmaps(perplexity=4, store=here / "poor", **given).fit(crowded)
    return here


ENDINGS = ("status", "told", "traceback", "waits")  # of commands that end in an error


class Seen:
    """What a call of a command shows of itself."""

    def __init__(self, run: Path, place: Path, called: tuple[int, str, str]) -> None:
        self.status, self.said, self.told = called
        self.run, self.place = run, place

    def value(self, on: str) -> object:
        """Return what an effect is on; see `Effect`."""
        views = {
            "result": lambda: np.asarray(sm.open_run(self.run).embedding[...]),
            "stages": lambda: list(sm.open_run(self.run).keys),
            "said": lambda: re.sub(r"[\d.]+ \w+ free", "", self.said),  # a disk is never still
            "files": lambda: sorted(str(path.relative_to(self.run)) for path in self.run.rglob("*") if path.is_dir()),
            "out": lambda: {path.name: path.read_bytes() for path in sorted(self.place.glob("out*"))},
            "folders": lambda: sorted(path.name for path in self.place.iterdir()),
            "texts": lambda: texts_of((self.place / "out.html").read_text()),
            "map": lambda: re.findall(r'id="map-[^>]*>([^<]*)<', (self.place / "out.html").read_text()),
            "tiles": lambda: (self.place / "out.tiles" / "index.html").read_text(),
            "rows": lambda: len(self.said.splitlines()),
            "silent": lambda: self.told == "",
            "objects": lambda: {self.said.lstrip()[:1], self.told.lstrip()[:1]} & {"{", "["} != set(),
            "traceback": lambda: "Traceback" in self.told,
            "waits": lambda: "waiting up to" in self.told,
            "examined": lambda: self.status,
            "qualities": lambda: [
                {name: value for name, value in one.items() if name not in ("seconds", "memory")}
                for one in json.loads(self.said)
            ],
            "scores": lambda: [line.split()[:-1] for line in self.said.splitlines() if "/" not in line],
        }
        return views[on]() if on in views else getattr(self, on)


def texts_of(page: str) -> tuple[set[str], int]:
    """Return the texts of a page without numbers, and how often it speaks of a file of labels."""
    return set(re.findall(r">\s*([A-Za-z][^<>\d]{2,80})<", page)), page.count("labels")


class Caller:
    """Calls commands, each in a folder of its own."""

    def __init__(self, scalemani, folder: Path, place: Path) -> None:
        self.scalemani, self.folder, self.place, self.calls, self.known = scalemani, folder, place, 0, {}

    def call(self, command: str, words: str) -> Seen:
        """Return what is seen of a command and its arguments, in which words in capitals stand for places."""
        self.calls += 1
        place = self.place / str(self.calls)
        place.mkdir()
        run = place / "run"
        given = next((name for name in ("DESCENT", "POOR", "DOUBTED") if name in words), "RUN")
        if "NOWHERE" not in words:
            shutil.copytree(self.folder / given.lower(), run)
        places = {
            given: run,
            "NOWHERE": run,
            "OTHER": self.folder / "other",
            "POINTS": self.folder / "points.npy",
            "NEW": self.folder / "new.npy",
            "FOLDER": self.folder,
            "ELSEWHERE": place / "elsewhere",
            "OUT": place / "out",
            "LOCKED": "",
        }
        filled = re.sub(r"\b(" + "|".join(places) + r")\b", lambda word: str(places[word[0]]), words)
        held = RunStore.open(run).locked(0, print) if "LOCKED" in words else contextlib.nullcontext()
        with held:
            called = self.scalemani(command, *filled.split())
        return Seen(run, place, called)

    def fault(self, command: str, base: str, row: Effect | Unchanged) -> str:
        """Return what is not as a row says; "" where all is."""
        words = f"{row.instead or base} {row.beside}"
        if words not in self.known:
            self.known[words] = [self.call(command, words) for _ in range(2)]
        calls = self.known[words]
        assert calls[0].status == 0 or row.on in ENDINGS, calls[0].told
        one, other = (seen.value(row.on) for seen in calls)
        assert same(one, other), f"{command} {words}: {row.on} differs from call to call"
        changed = not same(one, self.call(command, f"{words} {row.option}").value(row.on))
        return "" if changed == isinstance(row, Effect) else f"{command} {row.option} ({row.on})"


def same(one: object, other: object) -> bool:
    """Return whether two things that were seen are the same bit for bit."""
    return one.tobytes() == other.tobytes() if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize("command", TABLES)
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_every_option_of_a_command_does_what_its_row_says(command, scalemani, folder, tmp_path):
    base, table = TABLES[command]
    caller = Caller(scalemani, folder, tmp_path)
    rows = [row for found in table.values() for row in (found if isinstance(found, tuple) else (found,))]
    assert [fault for row in rows if (fault := caller.fault(command, base, row))] == []


def test_every_command_and_every_option_has_a_row():
    """Options that commands share are defined once: they are looked at in `embed`."""
    assert set(TABLES) == set(COMMANDS)
    shared = {field.name for field in fields(Options)}
    for name, (_, rows) in TABLES.items():
        options = {option.name for option in COMMANDS[name].params if option.param_type_name == "option"}
        assert options - set(rows) <= (shared if name in ("stage", "plan", "tune") else set()), name
        assert set(rows) <= options, name
