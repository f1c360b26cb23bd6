"""The audit: every check of a run's stages, in their order, and the files in the run that list the findings."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from threadpoolctl import threadpool_limits

from scalemani.audit import (
    affinities,
    digests,
    graph,
    guards,
    invariants,
    landmarks,
    layout,
    neighbors,
    reductions,
    spectral,
)
from scalemani.audit.digests import Descriptions
from scalemani.audit.findings import Finding, Verification, unchecked
from scalemani.audit.rows import Audit
from scalemani.audit.stored import StoredRun
from scalemani.config.methods import CheckExtension, extensions
from scalemani.errors import ScalemaniError

JSON_NAME, TEXT_NAME = "verification.json", "verification.txt"
ROWS = 1000
MEMORY = 4 * 10**9
LARGEST_SEED = 2**32
# What a damaged or forged array makes of a check that reads it.
WRONG_ARRAYS = (ScalemaniError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError)
Check = Callable[[Audit], Iterable[Finding]]
Watch = Callable[[int, int], None]  # takes how many checks are done, of how many

# Checks by the stage whose claims they are; W and what is made of it come with one pass, see `of_graph`.
CHECKS: tuple[tuple[str, Check], ...] = (
    ("duplicates", reductions.check_copies),
    ("work_points", reductions.check_order),
    ("neighbors", neighbors.check_neighbors),
    ("graph", reductions.check_result_graph),
    ("affinities", affinities.check_affinities),
    ("symmetric_affinities", graph.check_rows),
    ("normalized_affinities", graph.check_normalized),
    ("landmarks", landmarks.check_landmarks),
    ("landmark_weights", landmarks.check_weights),
    ("affinity_weights", landmarks.check_affinity_weights),
    ("reduced", landmarks.check_reduced),
    ("landmark_embedding", landmarks.check_solution),
)


def verify(
    root: str | Path,
    descriptions: Descriptions,
    rows: int = ROWS,
    memory: int = MEMORY,
    seed: int | None = None,
    watch: Watch = lambda done, total: None,
) -> Verification:
    """Audit a run.

    Parameters
    ----------
    root : the folder of the run, or s3://bucket/name
    descriptions : the arrays of each stage of the run, by its name
    rows : how many rows are drawn
    memory : bytes that blocks, products and what has a row for each point may take
    seed : what rows are drawn by; None: a number that nobody knew before, which the result says
    watch : called before each check

    Raises
    ------
    StoreError
        Where there is no run of this format version, or its plan is damaged.
    """
    drawn_by = secrets.randbelow(LARGEST_SEED) if seed is None else seed
    audit = Audit(StoredRun(root), rows, drawn_by, memory)
    with threadpool_limits(1):  # threads read blocks in parallel; those of BLAS would wait for each other
        findings = tuple(with_unnamed(audit.run, all_findings(audit, descriptions, watch)))
    return Verification(findings, audit.run.method, audit.run.keys, drawn_by, len(audit.sample))


def all_checks(audit: Audit, descriptions: Descriptions) -> list[tuple[str, Check]]:
    """Return the checks of objects and invariants, then those of each finished stage in their order."""
    later: tuple[tuple[str, Check], ...] = (
        ("embedding", of_embedding),
        ("diffusion_coordinates", spectral.check_diffusion),
        ("clustering", reductions.check_clustering),
        ("layout", layout.check_layout),
    )
    of_methods = [(one.stage or name, one) for name, one in extensions(CheckExtension).items()]
    added = [(stage, one.load()) for stage, one in of_methods if audit.run.has(stage)]
    return [
        ("store", lambda _: digests.check_digests(audit.run)),
        ("store", lambda _: digests.check_arrays(audit.run, descriptions)),
        ("store", lambda _: invariants.check_invariants(audit, descriptions)),
        *((stage, check) for stage, check in CHECKS if audit.run.has(stage)),
        ("symmetric_affinities", of_graph),
        *((stage, check) for stage, check in later if audit.run.has(stage)),
        *added,
    ]


def all_findings(audit: Audit, descriptions: Descriptions, watch: Watch) -> Iterator[Finding]:
    """Yield the findings of all checks, one after the other."""
    checks = all_checks(audit, descriptions)
    for number, (stage, check) in enumerate(checks):
        watch(number, len(checks))
        yield from guarded(stage, check, audit)


def with_unnamed(run: StoredRun, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings, and of each stage one that names the certificates that none of them is of."""
    claims: dict[str, list[str]] = {}
    for finding in findings:
        claims.setdefault(finding.stage, []).append(finding.claim)
        yield finding
    for stage, group in run.groups.items():
        named = claims.get(stage, [])
        unnamed = [name for name in sorted(group.certificates) if not any(is_of(claim, name) for claim in named)]
        if unnamed:
            yield unchecked(stage, f"{len(unnamed)} other certificates", f"nothing computes {', '.join(unnamed)}")


def is_of(claim: str, name: str) -> bool:
    """Return whether a claim is that of a certificate: its name, or one that begins with it and a comma or "is"."""
    return claim == name or claim.startswith((f"{name},", f"{name} is "))


def guarded(stage: str, check: Check, audit: Audit) -> Iterator[Finding]:
    """Yield the findings of a check; one that arrays stop is a claim that fails."""
    try:
        yield from check(audit)
    except WRONG_ARRAYS as error:
        yield Finding(
            stage, "arrays can be computed with", None, None, None, "fails", f"{type(error).__name__}: {error}"
        )


def of_graph(audit: Audit) -> Iterator[Finding]:
    """Check W and the eigenvectors by one pass over it, and the components of the graph."""
    pieces = None
    if audit.run.has(graph.STAGE):
        findings, pieces = spectral.check_spectral(audit)
        yield from findings
    if audit.run.has(graph.COMPONENTS):
        yield from graph.check_components(audit, None if audit.run.has(graph.NORMALIZED) else pieces)


def of_embedding(audit: Audit) -> Iterator[Finding]:
    """Check how an embedding was made of landmarks."""
    reduces = audit.run.has(landmarks.SOLVED)
    if reduces and audit.run.param("embedding", "solver") not in guards.BY_PASSES:
        yield from landmarks.check_by_landmarks(audit)


def write_findings(root: str | Path, findings: Verification) -> str:
    """Write the findings into the run, as JSON and as a table; return where the JSON is."""
    place = StoredRun(root).place
    place.write(TEXT_NAME, f"{findings}\n".encode())
    return place.write(JSON_NAME, findings.as_json().encode())
