"""The nonlinear embedding in input order: a descent on the driver, from the spectral embedding or another start.

W and the positions are held in memory. The descent is saved every few seconds: one that was killed resumes there
and ends the same to the last bit.
"""

import functools
import time
from dataclasses import replace
from typing import Any

import numpy as np

from scalemani.config.objectives import objective_of
from scalemani.config.params import Resolved
from scalemani.config.stages import INPUT_START
from scalemani.descents.descent import COUNTS, NUMBERS, State
from scalemani.descents.force_errors import MOST_TARGETS, MeasuredForces, coarse_forces, sums_at_end
from scalemani.descents.parts import Ended, parts_of
from scalemani.descents.phases import descend, has_converged, phases_of, too_few_iterations
from scalemani.descents.problem import Problem, problem_of
from scalemani.descents.pull import towards
from scalemani.descents.repulsion import chosen_method, mesh_values
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.context import Arrays, StageContext, Steps
from scalemani.engine.memory_model import Disk, Memory, array, entries
from scalemani.engine.sizes import Sizes, written
from scalemani.errors import ShortfallWarning
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.graph.product import spread_to_neighbors
from scalemani.kernels.machine.compile import COMPILING
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredLayout
from scalemani.stages.arrays.points import StoredWorkPoints, stored_weights
from scalemani.stages.layout.continued import (
    PLACED_AT_ONCE,
    earlier_sums,
    in_short_windows,
    place_appended,
    tolerance_factor,
)
from scalemani.stages.shared.output import in_input_order, write_embedding
from scalemani.stages.shared.side_data import in_work_order, side_data_part
from scalemani.stages.shared.starts import noise, standardized, start_of


def start_positions(context: StageContext, problem: Problem, method: str) -> np.ndarray:
    """Return the start (N, d) in work order of a problem whose repulsion is summed by a method.

    Points that start where others do are parted by a little noise, drawn by input row.
    """
    task, params, masses = context.task, context.task.params.layout, problem.masses
    if params.init == INPUT_START:
        return continued_start(context, problem, method)
    order = task.stored(StoredWorkPoints).input_rows.read()
    by_input = None
    if masses is not None:
        by_input = np.empty_like(masses)
        by_input[order] = masses
    positions = standardized(start_of(task, params.init, order), by_input)
    positions += params.jitter * noise(task)
    positions *= params.start_deviation or 1.0
    positions = np.ascontiguousarray(positions[order])
    return positions if problem.pull is None else problem.pull.turned(positions)


def continued_start(context: StageContext, problem: Problem, method: str) -> np.ndarray:
    """Return the coordinates (N, d) of the input, in work order; points without any start among their neighbours.

    Points that were appended to a run start where they are placed among the others. All are brought to the requested
    deviation, if there is one, by one factor: the shape stays.
    """
    task, params = context.task, context.task.params.layout
    positions = init_coordinates(context)
    filled = np.flatnonzero(np.isnan(positions[:, 0]))
    if task.earlier is not None:
        sums, most = earlier_sums(task, method, problem.workspace), task.params.affinity_neighbors
        place_appended(problem.rows, positions, sums, problem.objective, task.params.descent.relative_strength, most)
    spread_to_neighbors(problem.rows, positions)
    deviation = float(np.sqrt(positions.var(axis=0).mean()))
    order = task.stored(StoredWorkPoints).input_rows.read()
    positions[filled] += params.jitter * (deviation or 1.0) * noise(task)[order[filled]]
    if params.start_deviation is not None and deviation > 0:
        positions = (positions - positions.mean(axis=0)) * (params.start_deviation / deviation)
    return positions


def init_coordinates(context: StageContext) -> np.ndarray:
    """Return a copy of the coordinates (N, d) of the input, in work order; NaN where there are none."""
    return in_work_order(context, side_data_part(context, "init").coordinates)


def pulled(context: StageContext, problem: Problem) -> Problem:
    """Return a problem with its pull towards the reference map, where one is requested."""
    task, params = context.task, context.task.params.layout
    if params.global_weight == 0:
        return problem
    if params.reference == INPUT_START:
        coordinates = in_work_order(context, side_data_part(context, "reference").coordinates)
    else:
        order = task.stored(StoredWorkPoints).input_rows.read()
        coordinates = start_of(task, params.reference, order)[order]
    affinities = problem.scale * float(problem.rows.values.sum(dtype=np.float64))
    return replace(problem, pull=towards(coordinates, params.global_weight * affinities, problem.masses))


def aligned_with_still(init: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return positions (N, d) moved as a whole so that points that were fixed are where they started, to the bit."""
    known = ~np.isnan(init[:, 0])
    return np.where(known[:, np.newaxis], init, positions + (init[known] - positions[known]).mean(axis=0))


def moved_share(init: np.ndarray, positions: np.ndarray) -> tuple[int, float]:
    """Return how many points had a position, and how far they are from it.

    That is the root mean square distance, as a share of that from their middle at the end; both maps are centred.
    """
    known = ~np.isnan(init[:, 0])
    before, after = init[known], positions[known]
    before -= before.mean(axis=0)
    after -= after.mean(axis=0)
    size = np.linalg.norm(after)
    return len(before), float(np.linalg.norm(after - before) / size) if size > 0 else 0.0


STATE_SHAPES = {"counts": (len(COUNTS),), "numbers": (len(NUMBERS),), "curve": (None, 3)}  # in a checkpoint
NOTE_SECONDS = 10.0


def memory(sizes: Sizes) -> Memory:
    """Return what W takes, the positions with what a direction remembers, and the mesh."""
    n_points, params = sizes.dimensions.n_points, sizes.params
    positions = array("float64", n_points, params.n_components)
    held = {
        "W": entries(sizes.nonzeros, "float32") + array("int64", n_points),
        # Gradients, velocities, trial positions, what a checkpoint holds, those in the units of a kernel, and the sums'
        # buffers.
        "positions, gradients and what is like them": (14 + (params.layout.dof != 1)) * positions,
        # A step and a change of the gradient of each pair, once more in a checkpoint.
        "steps that the direction remembers": 4 * learnt_pairs(params) * positions,
        "mesh of a map of the largest extent that is met": array(
            "float64", mesh_values(n_points, params.layout.dof, params.n_components)
        ),
        "positions as whole numbers": array("int32", n_points, params.n_components),
    }
    if sizes.weighted:  # in work and input order, as charges, and with the sums that they meet
        held["weights of the points"] = array("float64", n_points, 4)
    if params.layout.global_weight > 0:  # as read, in work order, times masses; and a product with these
        held["reference map"] = 4 * positions
    if params.layout.init == INPUT_START:  # as given, in work order, filled in, and the means on their way
        held["coordinates that are given"] = 4 * positions
    for part in parts_of(params.layout):
        held.update(part.held(params.layout, n_points))
    if sizes.n_appended:
        placed = array("float64", PLACED_AT_ONCE, params.affinity_neighbors)
        held["positions of earlier points, and appended ones as they are placed"] = positions + 10 * placed
    return Memory(held)


def learnt_pairs(params: Resolved) -> int:
    """Return how many pairs of steps and changes of the gradient a direction remembers."""
    return (params.layout.pairs or 0) if params.layout.direction in ("l-bfgs", "spectral+l-bfgs") else 0


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the embedding, its forces and its snapshots; and the checkpoints of the descent."""
    layout, n_points, width = sizes.params.layout, sizes.dimensions.n_points, sizes.params.n_components
    n_snapshots = layout.max_iterations // layout.snapshots if layout.snapshots else 0
    # Positions, the gradient, and what a direction remembers.
    state = array("float64", n_points, width * (5 + 2 * learnt_pairs(sizes.params)))
    divides = objective_of(str(layout.objective)).combine == "sum-log"
    of_points = [StoredLayout.embedding, StoredLayout.forces, *([StoredLayout.force_sums] if divides else [])]
    of_points += [StoredLayout.reference] if layout.global_weight > 0 else []
    sampled = [StoredLayout.force_rows, StoredLayout.force_weights]
    return Disk(
        {
            **written(of_points, sizes),
            **written(sampled, sizes, sampled_force=min(n_points, MOST_TARGETS)),
            **written([StoredLayout.snapshots], sizes, n_snapshots),
        },
        {"positions and what is remembered, in two checkpoints": 2 * state},
    )


def run(context: StageContext) -> dict[str, Any]:
    """Descend to a minimum, write the embedding in input order, certify the errors of the forces at its end."""
    task, params = context.task, context.task.params.layout
    objective = objective_of(str(params.objective), params.dof)
    with threads(context.executor.workers) as side_by_side:
        graph = task.stored(StoredSymmetricAffinities)
        rows = graph.read_all_rows(task.dimensions.n_blocks, side_by_side.over)
        weights = stored_weights(task.inputs)
        masses = None if weights is None else weights.read()
        problem = problem_of(rows, objective, task.params.descent.strength, side_by_side.over, masses)
        problem, parts = pulled(context, problem), parts_of(params)
        for part in parts:
            problem = part.prepared(problem, task.params.descent, task.stored(StoredWorkPoints).input_rows.read())
        init = init_coordinates(context) if params.init == INPUT_START else None
        if init is not None and params.freeze:
            problem = replace(problem, still=~np.isnan(init[:, 0]))
        shape = rows.n_points, task.params.n_components
        method = chosen_method(params.repulsion, objective.kernel, *shape, params.exact_up_to)
        state, curve, stopped = run_descent(context, problem, method)
        sums, forces = sums_at_end(problem, method, params.tolerance, state, task.params.seed)
        errors = forces.errors
        if errors.least_tolerance > params.tolerance:
            context.warn(f"{task.stage}: {coarse_forces(errors, params.tolerance)}", ShortfallWarning)
        certificates = {
            "iterations": state.iteration,
            "stopped": stopped,
            "objective": problem.value(state.positions, sums),
            "gradient_norm": state.gradient_norm,
            "repulsion": method,
            "repulsion_tolerance": params.tolerance * state.tolerance_factor,
            "force_error": errors.whole,
            "force_standard_error": errors.standard_error,
            "worst_decile_force_error": errors.worst_decile,
            "worst_decile_standard_error": errors.worst_decile_standard_error,
        }
        if problem.pull is not None:
            certificates["reference_distance"] = problem.pull.distance(state.positions)
            certificates["pulled"] = problem.pull.n_pulled
        for part in parts:
            certificates.update(part.certificates(Ended(problem, task.params.descent, state, sums, curve)))
    positions = state.positions
    if init is not None:
        positions = aligned_with_still(init, positions) if params.freeze else positions
        certificates["started"], certificates["moved"] = moved_share(init, positions)
    others = rows_of_forces(forces)
    if problem.pull is not None:
        others = {**others, StoredLayout.reference: problem.pull.reference}
    write_embedding(context, StoredLayout.embedding, positions, others=others)
    sample: Arrays = {StoredLayout.force_rows: forces.rows, StoredLayout.force_weights: forces.weights}
    task.output.write_whole({StoredLayout.curve: curve, **sample})
    Checkpoints(task.output).clear()
    return certificates


def rows_of_forces(forces: MeasuredForces) -> Arrays:
    """Return what is stored of the approximate forces of all points."""
    sums: Arrays = {} if forces.sums is None else {StoredLayout.force_sums: forces.sums}
    return {StoredLayout.forces: forces.forces, **sums}


def first_state(context: StageContext, problem: Problem, method: str) -> State:
    """Return the state that a descent starts from: where points were appended, with the value that is to fall."""
    task, state = context.task, State(start_positions(context, problem, method))
    if task.earlier is None or task.params.layout.homotopy > 1:
        return state
    exaggerated = replace(problem, exaggeration=task.params.layout.late_exaggeration)
    value = exaggerated.value(state.positions, earlier_sums(task, method, problem.workspace))
    return replace(state, tolerance_factor=tolerance_factor(task, method), reference=value)


def graphs(context: StageContext) -> Steps:
    """Yield what the driver does alone."""
    yield "descent, on the driver's threads"


def run_descent(context: StageContext, problem: Problem, method: str) -> tuple[State, np.ndarray, str]:
    """Return the last state, the learning curve (n, 3: iteration, value, gradient norm), and why the descent ended.

    Checkpoints and snapshots are stored meanwhile; the curve has the iterations whose objective was computed.
    """
    task, progress = context.task, context.executor.progress
    checkpoints = Checkpoints(task.output, context.executor.checkpoint_seconds)
    params, shape = task.params.descent, (task.dimensions.n_points, task.params.n_components)
    phases = phases_of(params, problem.n_copies)
    if task.earlier is not None:
        phases = in_short_windows(phases)
    stored = checkpoints.load({"positions": shape, **STATE_SHAPES})
    curve = stored["curve"].tolist() if stored else []
    state = State.of_arrays(stored) if stored else None
    done = 0 if state is None else state.iteration
    progress.start(task.stage, sum(phase.most_iterations for phase in phases), "iteration", done)
    state = state or first_state(context, problem, method)
    noted, before, compiled = time.monotonic(), state.iteration, COMPILING.total
    for following in descend(problem, phases, method, state):
        state = following
        progress.advance()
        if np.isfinite(state.value):
            curve.append([state.iteration, state.value, state.gradient_norm])
        objective = curve[-1][1] if curve else float("nan")
        progress.iterate(state.iteration, objective, functools.partial(in_input_order, task, state.positions))
        if params.snapshots and state.iteration % params.snapshots == 0:
            unit, folder = (
                name(state.iteration) for name in (StoredLayout.snapshot_unit, StoredLayout.snapshot_folder)
            )
            task.output.write_whole({StoredLayout.snapshots: in_input_order(task, state.positions)}, unit, folder)
        if checkpoints.due():
            checkpoints.save({**state.arrays(), "curve": curve_of(curve)})
        now, compiling = time.monotonic(), COMPILING.total - compiled  # kernels that are called for the first time
        if now - noted > NOTE_SECONDS:
            value = f"objective {objective:.6g} (iteration {curve[-1][0]:.0f}), " if curve else ""
            seconds = max(now - noted - compiling, 0.0) / (state.iteration - before)
            progress.note(
                f"{task.stage}: iteration {state.iteration}, {value}gradient {state.gradient_norm:.3g}, "
                f"{seconds:.3g} s an iteration" + (f", and {compiling:.0f} s of compiling" if compiling >= 1 else "")
            )
            noted, before, compiled = now, state.iteration, COMPILING.total
    converged = has_converged(state, phases)
    if not converged and params.converged != 0:  # else the request is to use all iterations
        context.warn(f"{task.stage}: {too_few_iterations(state.iteration)}", ShortfallWarning)
    return state, curve_of(curve), "converged" if converged else "max_iterations"


def curve_of(points: list[list[float]]) -> np.ndarray:
    """Return a learning curve (n, 3) float64."""
    return np.array(points, np.float64).reshape(-1, 3)
