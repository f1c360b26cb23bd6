"""The parameters of the descent of nonlinear embeddings."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from scalemani.config.choices import Direction
from scalemani.config.limits import LEAST_DOF, MOST_DOF
from scalemani.config.methods import RepulsionExtension, extensions
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params.conditions import Above, Acts, Configuration, OneOf, Where
from scalemani.config.params.fields import (
    Count,
    CountOrZero,
    Part,
    PartOrZero,
    Positive,
    Pull,
    Share,
    Tuned,
    Unkeyed,
    Weight,
    parameters,
    with_fields_of_methods,
)
from scalemani.config.stages import COMPUTED_STARTS, INPUT_START, SPECTRAL_START

# Points that lie in the wrong place do not come through a wide map: 100 iterations sooner, maps of text keep 1 % fewer
# neighbours.
FIRST_DOUBLING = 150  # iterations of a phase before a map is doubled

# Checkers take names that stand in the text; tables hold these.
if TYPE_CHECKING:
    NonlinearMethod = str
    RepulsionMethod = str
else:
    NonlinearMethod = Literal[tuple(OBJECTIVES)]
    RepulsionMethod = Literal[("auto", "exact", *extensions(RepulsionExtension), "grid")]


def as_exaggeration(value: Any) -> Any:
    """Return a factor: 1 for None, by which openTSNE requests none."""
    return 1.0 if value is None else value


def plain_iterations(here: Configuration) -> int:
    """Return how many iterations of a descent, or of each strength of a homotopy, are not exaggerated at most."""
    return int(here.value("layout.max_iterations") - (here.value("layout.exaggerated_iterations") or 0))


def may_be_doubled(here: Configuration) -> bool:
    """Return whether a phase has as many iterations as come before a map is doubled."""
    return plain_iterations(here) > FIRST_DOUBLING


def may_converge(here: Configuration) -> bool:
    """Return whether a descent continues after its second window, at whose end the objective has fallen or has not.

    Where it is to go to the end, that it has not converged is no warning: 0 always has an effect.
    """
    windows = 2 * (here.value("layout.window") or 1)
    return here.value("layout.converged") == 0 or plain_iterations(here) > windows


def is_objective_of_method(here: Configuration) -> bool:
    """Return whether the objective is that of the method."""
    return here.requested("layout.objective") in (None, here.method)


BY_KAPPA = ("spectral", "spectral+diagonal", "spectral+l-bfgs", "spectral-minus")
OF_MOMENTUM = Acts("layout.direction", OneOf("momentum"))
SUMMED_APPROXIMATELY = Acts("layout.repulsion", OneOf("grid", *extensions(RepulsionExtension)))
EXAGGERATES = Acts("layout.exaggerated_iterations", Above(0))
Exaggeration = Annotated[float, Field(ge=1, le=1e30)]
OF_STUDENT = Acts("layout.objective", OneOf(*(name for name, row in OBJECTIVES.items() if row.kernel == "student")))
LONGER = Acts(
    "layout.max_iterations",
    Where("above layout.exaggerated_iterations by more than two of layout.window", may_converge),
)
DOUBLES = Where(f"above layout.exaggerated_iterations by more than {FIRST_DOUBLING}", may_be_doubled)


@with_fields_of_methods("layout")
@parameters()
class LayoutParams:
    """The descent of a nonlinear embedding.

    `objective` is set by the method. `strength` weighs the repulsion and `direction` auto is the search direction that
    the table of objectives has for it. `learning_rate` is that of momentum (None: N / exaggeration) and the fixed step
    of other directions (None: a line search). `momentum` None is 0.9; `exaggerated_momentum` None is `momentum`.
    Attraction is `early_exaggeration` times stronger for the first `exaggerated_iterations`; None means what the
    objective has under momentum, and no exaggeration under other directions. After these it is `late_exaggeration`
    times stronger. Student's kernel has `dof` degrees of freedom, (1 + d^2 / dof)^-dof.

    The start, `init`, is the spectral embedding, the first principal components of the points (pca) or normal draws
    (random), at a standard deviation of `start_deviation` (None: 1, and 1e-2 under momentum); or coordinates that come
    with the points (given), which stay as they are where `start_deviation` is None, without an early exaggeration by
    default; `freeze` keeps the points that have them where they are. `homotopy` above 1 follows as many strengths,
    which grow to the requested one, without an early exaggeration.

    A phase ends when the objective falls by less than a share `converged` over `window` iterations (0: never; None:
    1e-4 over 10, 1e-2 over 50 under momentum, 1e-6 over 1 for each strength of a homotopy), the descent after
    `max_iterations` in all, or for each strength of a homotopy. `repulsion` sums to a relative error of `tolerance`,
    which is measured during the descent, coarser in the first `schedule` iterations. `kappa` strongest neighbours
    make the spectral direction; L-BFGS keeps `pairs` pairs (None: 100, and 10 where the spectral direction is its first
    guess). Every `snapshots` iterations the positions are stored (0: never).

    A little noise, `jitter` of the start's deviation, parts points that would otherwise stay together. A map that
    momentum has moved for 150 iterations is doubled where that alone lets the objective fall by a share `doubled_for`
    (1: never); a start that the user passed is not.

    `global_weight` above zero, at most 1e5, pulls each point towards a map of the whole: it adds that many times the
    mean squared distance of points from the `reference`, both at the size of the map and relative to it, for a total of
    affinities of one. The reference is the first principal components (pca), the spectral embedding, or coordinates
    that come with the points (given); a computed start is turned to it. New points and those without coordinates there
    are not pulled.
    """

    objective: Annotated[
        NonlinearMethod | None,
        Acts("layout.objective", Where("that of the method", is_objective_of_method), required=True),
    ] = None
    strength: Weight | None = None
    direction: Direction = "auto"
    learning_rate: Positive | None = None
    momentum: Annotated[PartOrZero | None, OF_MOMENTUM] = None
    exaggerated_momentum: Annotated[
        PartOrZero | None, OF_MOMENTUM, EXAGGERATES, Acts("layout.early_exaggeration", Above(1))
    ] = None
    early_exaggeration: Annotated[
        Exaggeration | None,
        Acts("layout.homotopy", OneOf(1), required=True),
        replace(EXAGGERATES, required=True),
    ] = None
    exaggerated_iterations: Annotated[
        CountOrZero | None, Acts("layout.homotopy", OneOf(1)), Acts("layout.early_exaggeration", Above(1))
    ] = None
    late_exaggeration: Unkeyed[Annotated[Exaggeration, BeforeValidator(as_exaggeration)]] = 1.0
    dof: Unkeyed[Annotated[Annotated[float, Field(ge=LEAST_DOF, le=MOST_DOF)], OF_STUDENT]] = 1.0
    init: Unkeyed[Literal["spectral", "pca", "random", "given"]] = "spectral"
    global_weight: Unkeyed[Pull] = 0.0
    reference: Unkeyed[Annotated[Literal["pca", "spectral", "given"], Acts("layout.global_weight", Above(0))]] = "pca"
    freeze: Unkeyed[Annotated[bool, Acts("layout.init", OneOf(INPUT_START))]] = False
    start_deviation: Positive | None = None
    homotopy: Count = 1
    max_iterations: Count = 1000
    converged: Annotated[PartOrZero | None, LONGER] = None
    window: Annotated[Count | None, Acts("layout.converged", Above(0)), LONGER] = None
    repulsion: RepulsionMethod = "auto"
    tolerance: Annotated[Part, SUMMED_APPROXIMATELY] = 1e-3
    schedule: Annotated[CountOrZero, SUMMED_APPROXIMATELY] = 0
    kappa: Annotated[Count, Acts("layout.direction", OneOf(*BY_KAPPA))] = 7
    pairs: Annotated[Count | None, Acts("layout.direction", OneOf("l-bfgs", "spectral+l-bfgs"))] = None
    snapshots: CountOrZero = 0
    jitter: Tuned[Positive] = 1e-4
    doubled_for: Tuned[
        Annotated[
            Share,
            OF_MOMENTUM,
            Acts("layout.init", OneOf(*COMPUTED_STARTS)),
            Acts("layout.max_iterations", DOUBLES),
        ]
    ] = 0.08

    @property
    def takes_spectral(self) -> bool:
        """Whether a descent starts from the spectral embedding, or is pulled to it."""
        return SPECTRAL_START in (self.init, self.reference if self.global_weight > 0 else "")

    exact_up_to: ClassVar[int] = 2000  # points: beyond, the mesh is quicker at every tolerance that it meets
    coarsest: ClassVar[float] = 0.1  # the error at which a `schedule` begins
    least_strength: ClassVar[float] = 1e-6  # at which a homotopy begins, of that asked for: 1e-4 to 1e2 in [PH] 3.4
