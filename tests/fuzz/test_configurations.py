"""Whatever stands in a configuration or on the command line: our errors, or parameters that can be used."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.config.params import Parameters, parse_assignments
from scalemani.config.params.parsing import read_configuration
from scalemani.config.routes import ROUTES
from scalemani.config.routing import route
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, ScalemaniError

EXAMPLES = settings(max_examples=500, deadline=None, derandomize=True)
KNOWN = Parameters().as_dict()
STAGES = st.sampled_from(sorted(KNOWN)) | st.text(max_size=12)
NAMES = st.sampled_from(sorted({name for group in KNOWN.values() if isinstance(group, dict) for name in group}))
ODD = [0, -1, 1, 2**31, 2**63, 2**64, 10**400, 1e308, 5e-324, float("nan"), float("inf"), "auto", "", "none", "lll"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(ODD)
ANYTHING = st.recursive(
    SCALARS, lambda some: st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=8), some, max_size=4)
)
TABLES = st.dictionaries(NAMES | st.text(max_size=12), ANYTHING, max_size=3)
TOML = st.lists(
    st.sampled_from(["[affinities]\n", "perplexity = ", "30\n", "[[", "]]\n", "'", '"""', "#", "= {", "}", "\\u0000"])
    | st.text(max_size=10),
    max_size=12,
).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass"))


def resolved_or_refused(values):
    try:
        params = Parameters().with_values(values)
    except ScalemaniError:
        return
    for method in ROUTES:
        used = params.resolved(method)
        assert Parameters.of(used).resolved(method) == used


@EXAMPLES
@given(st.dictionaries(STAGES, TABLES | ANYTHING, max_size=4))
def test_tables_of_parameters(values):
    resolved_or_refused(values)


@EXAMPLES
@given(st.lists(st.tuples(STAGES, st.sampled_from([".", "", ".."]), NAMES | st.text(max_size=8), st.text(max_size=12))))
def test_assignments(parts):
    try:
        values = parse_assignments(f"{stage}{dot}{name}={text}" for stage, dot, name, text in parts)
    except ConfigError:
        return
    resolved_or_refused(values)


def test_files(tmp_path):
    @EXAMPLES
    @given(TOML | st.binary(max_size=60))
    def check(content):
        (tmp_path / "config.toml").write_bytes(content)
        try:
            values = read_configuration(tmp_path / "config.toml")
        except ConfigError:
            return
        resolved_or_refused(values)

    check()


@EXAMPLES
@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("scheduler", "workers", "memory", "wait"), SCALARS | st.just("tcp://h:1"))
    ),
    st.text(max_size=20) | st.sampled_from(sorted(ROUTES)),
    st.text(max_size=8) | st.sampled_from(["lll", "exact"]),
)
def test_resources_and_methods(resources, method, solver):
    for make in (lambda: Executor(**resources), lambda: route(method, solver)):
        try:
            make()
        except ScalemaniError:
            continue
