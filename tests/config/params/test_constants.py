"""Numbers inside kernels that change results are in no key: another number needs another version of its stage."""

import importlib

import pytest

from scalemani.config.routes import ROUTES

# The version of a stage, and the numbers of the modules that compute it. Whoever changes one so that results change
# raises the version in `scalemani.config.stages`, then writes both here.
HELD = {
    ("layout", 5): {
        "descents.descent": {
            "SUFFICIENT_DECREASE": 1e-4, "BACKTRACK": 0.5, "MOST_HALVINGS": 20, "GROWTH_INTERVAL": 5, "REACH": 1.0,
            "LARGEST_COORDINATE": 1e7,
        },
        "descents.directions": {
            "LEAST_CURVATURE": 1e-10, "LEAST_SHARE": 0.1, "CURVATURE_TOLERANCE": 0.1, "CURVATURE_STEPS": 50,
        },
        "descents.force_errors": {
            "CERTIFIED_TARGETS": 1000, "ADAPTATION_TARGETS": 250, "ADAPT_EVERY": 50, "ADAPTATION_SEED": 2**32,
            "ROOM": 0.8, "LOOSE": 0.4, "LEAST_FACTOR": 0.05, "SINGLE_POINTS": 10.0, "LEAST_FORCE": 1e-3,
            "LEAST_SUM": 1e-300,
        },
        "descents.growth": {
            "NEVER": 1.0, "FIRST_DOUBLING": 150, "LOOK_EVERY": 50, "ADAPT_EVERY": 50, "ERROR_GROWTH": 1.5,
            "MESH_VALUES": 37_500_000, "WIDE_MESH_VALUES": 60_000_000, "FEW_POINTS": 150_000,
            "WIDE_MESH_NODES": 2**24, "FINE_STEP": 0.25,
        },
        "descents.laplacian": {
            "FACTORED_UP_TO": 5000, "EXACT_SHIFT": 1e-10, "ITERATIVE_SHIFT": 1e-3, "SOLVED_TO": 0.1, "MOST_STEPS": 12,
        },
        "descents.problem": {"LEAST_SUM": 1e-300, "ISOLATED": 0.1, "ENTROPY_ROWS": 8192},
        "kernels.descent.momentum": {"GAIN_STEP": 0.2, "GAIN_FACTOR": 0.8, "LEAST_GAIN": 0.01},
        "kernels.graph.rounded_attraction": {
            "MOST_STEPS": 2**30 - 1, "LONGEST_STEP": 1e-5, "LEAST_STEP": 1e-150, "ITEM_BYTES": 4,
        },
        "kernels.descent.curvature": {"GAUSSIAN": 1, "LEAST_SUM": 1e-300, "STUDENT": 0},
    },
    ("embedding", 6): {
        "kernels.spectral.refinement": {
            "TILE": 4096, "FEWEST_GUARDS": 6, "FEWEST_SPARE": 8, "TRIVIAL_SHARE": 1e-10, "DEPENDENT": 1e-6,
            "STEPS_BETWEEN_GRAMS": 8,
        },
    },
    ("coarse_graphs", 2): {
        "kernels.spectral.coarsening": {
            "TILE_ROWS": 1024, "MOST_MEMBERS": 8, "DENSE_NODES": 1000, "LEAST_SHRINKAGE": 0.9, "NODES_AT_ONCE": 2048,
            "SLOTS_OF_COLUMN": 2,
        },
    },
    ("coarse_embedding", 4): {
        "kernels.spectral.multilevel": {
            "TILE_ROWS": 1024, "DENSE_NODES": 1000, "DAMPING": 0.7, "LEAST_DIAGONAL": 1e-3, "LEAST_GAP": 1e-6,
            "STEPS_PER_LEVEL": 2, "MOST_STEPS": 8, "STEPS_NODES": 2**18, "STEPS_FROM_RANDOM": 60,
            "LEAST_RESIDUAL": 1e-5,
        },
    },
    ("landmark_embedding", 3): {
        "kernels.spectral.eigenproblem": {
            "DENSE_LANDMARKS": 2500, "SPARSE_DENSITY": 0.02, "SHIFT": 1e-3, "TOLERANCE": 1e-9,
            "LARGEST_EIGENVALUE": 2.0, "ZERO_TOLERANCE": 1e-10, "CONSTANT_TOLERANCE": 1e-8,
            "RANK_ITERATIONS": 4, "RANK_TOLERANCE": 1e-12, "MAX_BLOCKS": 30, "GUARD_VECTORS": 8, "PANEL_COLUMNS": 256,
            "SLAB_ROWS": 1024, "SETTLED": 1e-12, "LEAST_DECREASE": 0.5,
        },
    },
}  # fmt: skip
VERSIONS = {stage.name: stage.version for route in ROUTES.values() for stage in route}


def numbers_of(module):
    found = vars(importlib.import_module(f"scalemani.{module}"))
    return {name: value for name, value in found.items() if name.isupper() and type(value) in (int, float)}


@pytest.mark.parametrize("held", HELD, ids=lambda held: held[0])
def test_another_number_comes_with_another_version(held):
    stage, version = held
    assert (VERSIONS[stage], {module: numbers_of(module) for module in HELD[held]}) == (version, HELD[held])
