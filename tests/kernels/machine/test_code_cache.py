"""Machine code of kernels from process to process: never of other sources, and never in anybody's way."""

import hashlib
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from llvmlite import binding

import scalemani
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.cli.doctor import slow_here
from scalemani.kernels.machine.code_cache import (
    BUILT_WITH,
    LEVELS,
    UNUSED_SECONDS,
    built_with,
    cache_home,
    distrust,
)
from scalemani.kernels.machine.compile import PLAIN
from scalemani.runs.walk import locked_run

pytestmark = pytest.mark.skipif(PLAIN, reason="plain kernels are not compiled")

NOBODY = 65534
WITHOUT_ACCOUNT = 54321
DAY = 86400

LOGARITHM = """
from scalemani.kernels.machine.vector_math import log_positive as kernel
result = kernel(2.0)
"""
ENTROPIC = """
import numpy as np
from scalemani.kernels.affinities.entropic import (entropic_affinities, solve_tile as kernel)
distances = np.sort(np.random.default_rng(0).random((200, 40)), axis=1)
result = entropic_affinities(distances, 10.0, solver="halley").iterations.mean()
"""
BARNES_HUT = """
import hashlib, numpy as np, scalemani
from scalemani.methods.barnes_hut.kernels import add_point as kernel
places = np.random.default_rng(0).normal(size=(2000, 2))
sums = [np.asarray(part) for part in scalemani.repulsion(places, kernel="student", method="barnes-hut")]
result = float.fromhex("0x" + hashlib.sha256(b"".join(part.tobytes() for part in sums)).hexdigest()[:13])
"""
DISTANCES = """
import hashlib, numpy as np
from scalemani.kernels.landmarks.nearest import squares_to as kernel
points = np.random.default_rng(0).normal(size=(20, 200))
squares = kernel(points, points, np.tile(np.arange(20), (20, 1)))
result = float.fromhex("0x" + hashlib.sha256(squares.tobytes()).hexdigest()[:13])
"""
REPORT = """
import json
print(json.dumps([float(result), sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())]))
"""
AS_USER = """
import os
import numba.core.typed_passes, scalemani.kernels.machine.vector_math
numba.njit(lambda: 0)()  # loads what it needs while it may be read
if os.geteuid() == 0:
    os.setgroups([]), os.setgid({user}), os.setuid({user})
"""


def started(program, folder=None, **environment):
    """Start a program that prints its result, and how many kernels it found and compiled."""
    kept = {k: v for k, v in os.environ.items() if k not in ("SCALEMANI_CACHE", "XDG_CACHE_HOME")}
    places = {"PYTHONPATH": str(folder or Path(scalemani.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    values = {k: str(v) for k, v in (kept | places | environment).items() if v is not None}
    command = [sys.executable, "-W", "error", "-c", program + REPORT]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=values, cwd="/")


def ended(process):
    """Return a program's result, and how many kernels it found and how many it compiled."""
    output, errors = process.communicate(timeout=280)
    assert not errors
    assert process.returncode == 0
    return json.loads(output)


def run(program, folder=None, **environment):
    return ended(started(program, folder, **environment))


def copied_package(folder):
    """Copy the sources alone: Python takes byte code as current by the time and size of its source."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(Path(scalemani.__file__).parent, folder / "copy" / "scalemani", ignore=ignored))


def entries(cache):
    return sorted(path for path in (cache / "kernels").glob("*/*") if path.is_file())


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory):
    cache = tmp_path_factory.mktemp("filled") / "cache"
    assert run(LOGARITHM, SCALEMANI_CACHE=cache)[1:] == [0, 1]
    return cache


@pytest.fixture
def filled(filled_once, cache):
    """A cache of its own that holds the logarithm, just used."""
    shutil.copytree(filled_once, cache)
    for path in entries(cache):
        path.touch()
    return cache


def test_a_function_that_was_edited_in_another_file_is_compiled_anew(tmp_path, cache):
    copy = copied_package(tmp_path)
    edited = copy / "kernels/affinities/root_finders.py"
    source = edited.read_text()
    steps, found, compiled = run(ENTROPIC, copy.parent, SCALEMANI_CACHE=cache)
    assert (found, compiled) == (0, 1)
    assert steps < 3
    times = edited.stat()
    edited.write_text(source.replace("newton = -value", "newton = +value"))
    os.utime(edited, ns=(times.st_atime_ns, times.st_mtime_ns))  # neither its time nor its size tells
    assert edited.stat().st_size == times.st_size
    with_error, found, compiled = run(ENTROPIC, copy.parent, SCALEMANI_CACHE=cache)
    assert (found, compiled) == (0, 1)
    assert with_error > 5 * steps
    edited.write_text(source)
    assert run(ENTROPIC, copy.parent, SCALEMANI_CACHE=cache) == [steps, 1, 0]


@pytest.mark.parametrize("program", [BARNES_HUT, DISTANCES], ids=["functions", "overloads"])
def test_code_that_was_just_compiled_and_code_from_the_cache_add_in_the_same_order(cache, program):
    in_first_process, *_ = run(program, SCALEMANI_CACHE=cache)
    assert run(program, SCALEMANI_CACHE=cache)[0] == in_first_process


def test_equal_sources_in_another_folder_share_what_is_compiled(filled, tmp_path):
    assert run(LOGARITHM, copied_package(tmp_path).parent, SCALEMANI_CACHE=filled)[1:] == [1, 0]


@pytest.mark.parametrize("variable", ["NUMBA_OPT", "NUMBA_BOUNDSCHECK"])
def test_code_compiled_under_other_settings_is_other_code(filled, variable):
    assert run(LOGARITHM, SCALEMANI_CACHE=filled, **{variable: "1"})[1:] == [0, 1]
    assert run(LOGARITHM, SCALEMANI_CACHE=filled, NUMBA_NUM_THREADS="1")[1:] == [1, 0]


MEASURE = """
from scalemani.kernels.rows.reduced import distance_by
def value(a, b):
    return {value}
constant = distance_by(value, "constant")
"""


def test_a_kernel_follows_from_the_function_of_the_distance_that_it_is_called_with(tmp_path, cache):
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport numpy as np\n"
    program += "from measure import constant\nfrom scalemani.kernels.neighbors.row_scan import scan_rows as kernel\n"
    program += "from scalemani.kernels.neighbors.rerank import no_neighbors\nlists = no_neighbors(1, 1)\n"
    program += "row, numbers = np.zeros((1, 2)), np.full(1, -1)\n"
    program += "kernel(constant, row, numbers, row, 0, lists, np.full(1, np.inf)); result = lists.distances[0, 0]"
    for value in (1.0, 2.0):
        (tmp_path / "measure.py").write_text(MEASURE.format(value=value))
        assert run(program, SCALEMANI_CACHE=cache) == [value, 0, 1]
    assert run(program, SCALEMANI_CACHE=cache) == [2.0, 1, 0]


NAMED = "from collections import namedtuple\nPair = namedtuple('Pair', '{fields}')\n"
FIRST = """
from scalemani.kernels.machine.compile import compiled
@compiled
def kernel(pair):
    return pair.x
"""


def test_named_tuples_with_other_fields_are_other_arguments(tmp_path, cache):
    (tmp_path / "first.py").write_text(FIRST)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    program += "from first import kernel; from pair import Pair; result = kernel(Pair(1.0, 2.0))"
    found = {}
    for fields in ("x y", "y x"):
        (tmp_path / "pair.py").write_text(NAMED.format(fields=fields))
        found[fields] = run(program, SCALEMANI_CACHE=cache)
    assert found == {"x y": [1.0, 0, 1], "y x": [2.0, 0, 1]}


TWICE = """
from scalemani.kernels.machine.compile import (compiled, compiled_fused)
def fuse(x, y, z):
    return x * y + z
rounded, kernel = compiled(fuse), compiled_fused(fuse)
"""


def test_one_function_under_two_decorators_is_two_kernels(tmp_path, cache):
    (tmp_path / "twice.py").write_text(TWICE)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom twice import kernel, rounded\n"
    program += "rounded(1.0, 2.0, 3.0); result = kernel(1.0, 2.0, 3.0)"
    assert run(program, SCALEMANI_CACHE=cache) == [5.0, 0, 1]
    assert len(entries(cache)) == 2
    assert run(program, SCALEMANI_CACHE=cache) == [5.0, 1, 0]


CONSTANT = """
from scalemani.kernels.machine.compile import compiled
@compiled
def kernel():
    return {value}
"""


def test_a_module_that_is_edited_and_imported_anew_leaves_nothing_behind(tmp_path, cache):
    module = tmp_path / "constant.py"
    module.write_text(CONSTANT.format(value=1.0))
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport constant\n"
    edit = f"import importlib, pathlib; pathlib.Path({str(module)!r}).write_text({CONSTANT.format(value=22.0)!r})\n"
    reload = "importlib.reload(constant); kernel = constant.kernel; result = kernel()"
    assert run(start + edit + reload, SCALEMANI_CACHE=cache)[0] == 22.0
    module.write_text(CONSTANT.format(value=1.0))
    once = start + "kernel = constant.kernel; result = kernel()"
    assert run(once, SCALEMANI_CACHE=cache) == [1.0, 0, 1]
    assert run(once, SCALEMANI_CACHE=cache) == [1.0, 1, 0]


def test_two_processes_may_compile_at_the_same_time(cache):
    together = [started(LOGARITHM, SCALEMANI_CACHE=cache) for _ in range(3)]
    assert len({ended(process)[0] for process in together}) == 1
    assert run(LOGARITHM, SCALEMANI_CACHE=cache)[1:] == [1, 0]
    assert not [path for path in entries(cache) if path.name.startswith(".")]


def test_nobody_else_reads_or_writes_what_is_compiled(cache):
    run("import os; os.umask(0)\n" + LOGARITHM, SCALEMANI_CACHE=cache)
    assert entries(cache)
    for path in (cache, *cache.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[:-1], lambda b: b[:5000] + bytes([b[5000] ^ 1]) + b[5001:]]
)
def test_damaged_entries_are_compiled_anew(filled, damage):
    (path,) = entries(filled)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert run(LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [0, 1]
    assert run(LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [1, 0]


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_not_used(filled, mode):
    (path,) = entries(filled)
    before = path.stat().st_mtime_ns
    path.parent.chmod(mode)
    assert run(LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [0, 1]
    assert path.stat().st_mtime_ns == before


def test_a_link_in_the_place_of_a_folder_is_not_followed(filled, tmp_path):
    (path,) = entries(filled)
    elsewhere = path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(elsewhere)
    assert run(LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [0, 1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns what others may only read")
def test_a_folder_of_another_user_is_not_used(filled):
    for path in (filled, *filled.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    assert run(LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [0, 1]


class Command:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def plant(path, marker):
    """Put an entry in a place that is whole, and makes a folder when it is loaded."""
    payload = pickle.dumps(Command(marker))
    path.write_bytes(hashlib.sha256(payload).digest() + payload)
    path.chmod(0o600)


SWAP = """
import os, sys
left = ["once"]
def swap(event, arguments):
    if event == "open" and left and str(arguments[0]).endswith({name!r}):
        left.clear()
        os.rename({folder!r}, {folder!r} + ".away")
        os.rename({planted!r}, {folder!r})
sys.addaudithook(swap)
"""


def test_a_folder_that_others_put_in_the_place_of_one_that_was_looked_at_is_not_read(filled, tmp_path):
    (entry,) = entries(filled)
    planted = Path(shutil.copytree(entry.parent, tmp_path / "planted"))
    plant(planted / entry.name, tmp_path / "ran")
    swap = SWAP.format(name=entry.name, folder=str(entry.parent), planted=str(planted))
    assert run(swap + LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [1, 0]
    assert not planted.exists()  # it was put there
    assert not (tmp_path / "ran").exists()


def belonging_to_another(path):
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, NOBODY, NOBODY)


def linked(path):
    path.symlink_to(path.rename(path.with_name("elsewhere")))


@pytest.mark.parametrize("change", [belonging_to_another, lambda path: path.chmod(0o622), linked])
def test_entries_that_others_may_have_written_are_not_loaded(filled, tmp_path, change):
    (entry,) = entries(filled)
    plant(entry, tmp_path / "ran")
    change(entry)
    assert run(LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [0, 1]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", [belonging_to_another, lambda path: path.chmod(0o777)])
def test_a_cache_below_a_folder_that_others_decide_on_is_neither_read_nor_written(filled, tmp_path, change):
    shared = tmp_path / "shared"
    shared.mkdir()
    below = filled.rename(shared / "cache")
    change(shared)
    before = {path: path.stat().st_mtime_ns for path in entries(below)}
    assert run(LOGARITHM, SCALEMANI_CACHE=below)[1:] == [0, 1]
    assert {path: path.stat().st_mtime_ns for path in entries(below)} == before


def test_a_home_that_all_users_share_keeps_code_unless_another_has_made_the_folder_of_caches(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o1777)
    assert run(LOGARITHM, HOME=home)[1:] == [0, 1]
    assert run(LOGARITHM, HOME=home)[1:] == [1, 0]
    belonging_to_another(home / ".cache")
    (home / ".cache").chmod(0o777)
    assert run(LOGARITHM, HOME=home)[1:] == [0, 1]


def test_why_code_is_not_kept_is_said_by_each_run_and_by_doctor(tmp_path, listening, monkeypatch):
    monkeypatch.setenv("SCALEMANI_CACHE", str(tmp_path / "shared" / "cache"))
    (tmp_path / "shared").mkdir()
    with locked_run(tmp_path / "run", Executor(progress=listening)):
        assert (distrust(), listening.warned) == ("", [])
    (tmp_path / "shared").chmod(0o777)
    with locked_run(tmp_path / "run", Executor(progress=listening)):
        (said,) = listening.warned
    assert f"{tmp_path / 'shared'} can be written by others" in said
    assert "SCALEMANI_CACHE" in said
    machine = {"usable": 1, "all": 1, "load": 0, "free": 10**12, "filesystem": "ext4", "path": "here"}
    found = dict.fromkeys(("processors", "memory", "disk", "temporary files"), machine)
    assert said in list(slow_here(found))


FIRST_RUN = """
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from types import SimpleNamespace as Some
from scalemani.runs.walk import locked_run, note_expected
noted = []
class Noting(Progress):
    def note(self, message):
        noted.append(message)
layout = Some(stage=Some(name="layout"), group=Some(complete=False))
with locked_run({folder!r}, Executor(progress=Noting())) as target:
    note_expected(Some(stages=[layout], dimensions=Some(n_points=10)), target)
"""


def test_a_run_says_that_it_compiles_where_no_machine_code_is(cache, tmp_path):
    program = FIRST_RUN.format(folder=str(tmp_path / "run")) + LOGARITHM
    program += "result = sum(note.startswith('compiling kernels, once on this machine') for note in noted)"
    assert run(program, SCALEMANI_CACHE=cache) == [1, 0, 1]
    assert run(program, SCALEMANI_CACHE=cache) == [0, 1, 0]
    nowhere = program.replace("once on this machine", "which are not cached")
    assert run(nowhere, SCALEMANI_CACHE="/dev/null/cache") == [1, 0, 1]


@pytest.mark.parametrize("user", [NOBODY, WITHOUT_ACCOUNT])
@pytest.mark.parametrize("home", [None, "closed"])
def test_where_nothing_can_be_written_kernels_are_compiled_in_memory(tmp_path, user, home):
    (tmp_path / "closed").mkdir(mode=0o555)
    place = None if home is None else tmp_path / "closed"
    result, found, compiled = run(AS_USER.format(user=user) + LOGARITHM, HOME=place)
    assert result == pytest.approx(0.6931471805599453, rel=1e-15)
    assert (found, compiled) == (0, 1)
    assert not list((tmp_path / "closed").iterdir())


HOME_OF_ANOTHER = """
from scalemani.kernels.machine.code_cache import distrust, is_compiled, writable_folder
{as_user}
compiled = is_compiled(), writable_folder(), distrust()
assert compiled == (False, None, ""), compiled
"""


@pytest.mark.parametrize("below", [".", ".cache", ".cache/scalemani", ".cache/scalemani/kernels"])
def test_a_home_of_another_user_that_is_closed_is_as_good_as_none(tmp_path, below):
    home = tmp_path / "home"
    (home / ".cache" / "scalemani" / "kernels").mkdir(parents=True)
    for path in home.parents:
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o555)
    (home / below).chmod(0o000 if os.geteuid() else 0o700)
    program = HOME_OF_ANOTHER.format(as_user=AS_USER.format(user=NOBODY)) + LOGARITHM
    try:
        assert run(program, HOME=home)[1:] == [0, 1]
    finally:
        (home / below).chmod(0o755)


def test_a_cache_that_can_only_be_read_is_read(filled):
    closed = [path for path in (filled, *filled.rglob("*")) if path.is_dir()]
    for path in entries(filled):
        path.chmod(0o444)
    for path in (*filled.parents, *closed):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o555)
    for path in closed:
        path.chmod(0o555)
    try:
        assert run(AS_USER.format(user=NOBODY) + LOGARITHM, SCALEMANI_CACHE=filled)[1:] == [1, 0]
    finally:
        for path in closed:
            path.chmod(0o755)


def test_a_place_that_is_no_folder_costs_a_compilation_and_no_error(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", "/dev/null"):
        assert run(LOGARITHM, SCALEMANI_CACHE=place)[1:] == [0, 1]


def test_what_nobody_uses_for_a_month_is_removed(filled):
    (used,) = entries(filled)
    former = used.parent.parent / ("0" * 32)
    other = used.parent.parent / "something else"
    for folder in (former, other):
        folder.mkdir(mode=0o700)
        (folder / "entry").touch()
    (used.parent / "former").touch()
    (used.parent / "recent").touch()
    long_ago, recently = time.time() - UNUSED_SECONDS - DAY, time.time() - UNUSED_SECONDS + DAY
    os.utime(used.parent / "recent", (recently, recently))
    for path in (used.parent / "former", former / "entry", former, other / "entry", other):
        os.utime(path, (long_ago, long_ago))
    assert run(LOGARITHM.replace("2.0", "2"), SCALEMANI_CACHE=filled)[1:] == [0, 1]  # an integer: another signature
    assert used.exists()
    assert (used.parent / "recent").exists()
    assert not (used.parent / "former").exists()
    assert not (former / "entry").exists()
    assert (other / "entry").exists()


def test_of_many_bytes_those_used_longest_ago_are_removed(filled):
    (used,) = entries(filled)
    for number in range(6):
        path = used.parent / f"large{number}"
        path.touch()
        os.truncate(path, 2**27)  # takes no room on the disk
        os.utime(path, (time.time() - 60 - number, time.time() - 60 - number))
    assert run(LOGARITHM.replace("2.0", "2"), SCALEMANI_CACHE=filled)[1:] == [0, 1]
    left = [path.name for path in entries(filled) if path.name.startswith("large")]
    assert left == ["large0", "large1", "large2"]
    assert used.exists()


V4, V3 = LEVELS
TOLD = f"""
{LOGARITHM}
import json
from scalemani.kernels.machine.code_cache import installed_code
hits, misses = (sum(counts.values()) for counts in (kernel.stats.cache_hits, kernel.stats.cache_misses))
raise SystemExit(print(json.dumps([installed_code().level or installed_code().unused, hits, misses])))
"""
BASE = """
from scalemani.engine.memory_model import process_bytes
raise SystemExit(print(process_bytes()))
"""
runs_v3 = pytest.mark.skipif(
    not all(binding.get_host_cpu_features().get(feature[1:]) for feature in LEVELS[V3].split(",")),
    reason="this processor cannot run code of x86-64-v3",
)


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """A cache with the logarithm for x86-64-v3."""
    cache = tmp_path_factory.mktemp("level") / "cache"
    run(LOGARITHM, SCALEMANI_CACHE=cache, NUMBA_CPU_NAME=V3, NUMBA_CPU_FEATURES=LEVELS[V3])
    return cache


@pytest.fixture
def wheel(compiled_once, tmp_path):
    """A copy of the package with that code in it, as a wheel would install it."""
    package = copied_package(tmp_path)
    code = package / "kernels/machine/code"
    shutil.copytree(entries(compiled_once)[0].parent, code / V3)
    (code / V3).chmod(0o755)
    (code / BUILT_WITH).write_text(json.dumps(built_with()))
    return package


def used(wheel, cache, **environment):
    """Return what is said of the code of a wheel, how many kernels were found, and how many compiled."""
    return run(TOLD, wheel.parent, SCALEMANI_CACHE=cache, **environment)


@runs_v3
def test_code_of_a_wheel_is_loaded_and_nothing_is_written(wheel, cache):
    before = {path: path.stat().st_mtime_ns for path in wheel.rglob("*")}
    assert used(wheel, cache) == [V3, 1, 0]
    assert {path: path.stat().st_mtime_ns for path in wheel.rglob("*")} == before
    assert not cache.exists()
    assert used(wheel, cache, NUMBA_CPU_NAME=V3, NUMBA_CPU_FEATURES=LEVELS[V3]) == [V3, 1, 0]


@runs_v3
def test_a_plan_reserves_memory_for_a_compiler_only_where_no_wheel_brings_the_code(wheel, cache):
    assert run(BASE, wheel.parent, SCALEMANI_CACHE=cache) < run(BASE, SCALEMANI_CACHE=cache)


@runs_v3
def test_the_best_level_that_the_processor_has_is_taken(wheel, cache):
    code = wheel / "kernels/machine/code"
    shutil.copytree(code / V3, code / V4)
    assert used(wheel, cache, NUMBA_CPU_FEATURES=LEVELS[V4]) == [V4, 1, 0]
    assert used(wheel, cache, NUMBA_CPU_FEATURES=LEVELS[V3]) == [V3, 1, 0]
    told = f"the wheel's code needs {V4} or {V3}, which this processor does not have"
    assert used(wheel, cache, NUMBA_CPU_FEATURES="+sse4.2") == [told, 0, 1]


@runs_v3
@pytest.mark.parametrize("name", ["Python", "numba", "llvmlite", "LLVM", "NumPy"])
def test_code_of_other_versions_is_not_loaded_and_the_reason_is_told(wheel, cache, name):
    (wheel / "kernels/machine/code" / BUILT_WITH).write_text(json.dumps({**built_with(), name: "0.1"}))
    assert used(wheel, cache) == [f"{name} is {built_with()[name]}, the wheel's was 0.1", 0, 1]
    assert len(entries(cache)) == 1
    assert used(wheel, cache)[1:] == [1, 0]


@runs_v3
def test_code_of_a_wheel_is_not_that_of_other_settings_or_edited_sources(wheel, cache):
    assert used(wheel, cache, NUMBA_OPT="1") == ["NUMBA_OPT is set", 0, 1]
    source = wheel / "kernels/machine/vector_math.py"
    source.write_text(source.read_text().replace("LOG_2 = 0.6931471805599453\n", "LOG_2 = 0.6931471805599454\n"))
    assert used(wheel, cache) == [V3, 0, 1]


@runs_v3
@pytest.mark.parametrize("place", ["", V3, BUILT_WITH, "entry"])
@pytest.mark.parametrize("change", [belonging_to_another, lambda path: path.chmod(path.stat().st_mode | 0o022), linked])
def test_code_that_others_may_have_put_into_a_wheel_is_not_loaded(wheel, cache, tmp_path, place, change):
    code = wheel / "kernels/machine/code"
    (entry,) = (code / V3).iterdir()
    plant(entry, tmp_path / "ran")
    change(entry if place == "entry" else code / place)
    assert used(wheel, cache)[1:] == [0, 1]
    assert not (tmp_path / "ran").exists()


@runs_v3
def test_who_may_write_the_sources_may_write_the_code_beside_them(wheel, cache):
    for path in (wheel / "kernels/machine").rglob("*"):
        path.chmod(path.stat().st_mode | 0o020)  # as a umask of 002 leaves them
    assert used(wheel, cache) == [V3, 1, 0]


@runs_v3
def test_damaged_code_of_a_wheel_is_compiled_anew(wheel, cache):
    (entry,) = (wheel / "kernels/machine/code" / V3).iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert used(wheel, cache) == [V3, 0, 1]
    assert used(wheel, cache) == [V3, 1, 0]


def test_doctor_says_where_machine_code_is_from(scalemani):
    found = json.loads(scalemani("doctor", "--json")[1])
    assert found["machine code"] == {"level": None, "unused": "this installation holds none"}
    assert "unused this installation holds none" in scalemani("doctor")[1]


OF_A_USER = """
import numba
@numba.njit(cache=True)
def own(x):
    return 2 * x
"""


def test_functions_of_the_user_stay_in_numbas_own_cache(tmp_path, cache):
    (tmp_path / "own.py").write_text(OF_A_USER)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom own import own; own(1)\n" + LOGARITHM
    run(program, SCALEMANI_CACHE=cache, NUMBA_CACHE_DIR=tmp_path / "numba")
    assert {path.name.split("-")[0] for path in (tmp_path / "numba").rglob("*.nbc")} == {"own.own"}
    assert len(entries(cache)) == 1


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SCALEMANI_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"SCALEMANI_CACHE": "", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/scalemani"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/c"}, "/c/.cache/scalemani"),
        ({"HOME": "/c"}, "/c/.cache/scalemani"),
    ],
)
def test_the_cache_lies_where_the_user_says(monkeypatch, variables, expected):
    for name in ("SCALEMANI_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_home() == Path(expected)
