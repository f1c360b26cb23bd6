"""The objectives of nonlinear embeddings, as plain data: one row each, read by everything that knows them by name.

E = E+ + strength E-, with E+ = sum w a(d^2) over the affinities w of the graph and E- made of the sums
S_n = sum over m != n of K(d_nm^2); d is the distance in the embedding. The parameters, the routes, the command line and
its help and `scalemani.objective` are made from this table; each row has an estimator class. Source: [PH] 3.2,
eqs. (3.1) to (3.4).
"""

from dataclasses import dataclass, replace
from typing import Literal

from scalemani.errors import ConfigError, nearest_name

Kernel = Literal["student", "gaussian", "epanechnikov"]


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What pulls, what pushes, and what a descent does where nothing else is requested.

    Attributes
    ----------
    attraction : a of E+: "quadratic", a(t) = t, or "student", a(t) = -log K(t), log(1 + t) with one degree of freedom
    kernel : K of E-: "student", 1 / (1 + t), "gaussian", exp(-t), or "epanechnikov", max(0, 1 - t); or a number dof,
        the degrees of freedom of Student's (1 + t / dof)^-dof
    combine : how the sums make E-: "sum", sum_n S_n, "log-sum", log sum_n S_n, or "sum-log", sum_n log S_n
    total : what the affinities are scaled to sum to: "given" leaves them as they are, "one" makes them probabilities
        over all pairs, "points" (N in all) over the neighbours of each point
    formula : E+ and E-, as the documentation shows them; p stands for affinities that were scaled, w for unscaled ones
    name : what a person calls it
    estimator : the name of its scikit-learn class, in `scalemani`
    strength : weight of E-
    direction : search direction, a name of `LayoutParams.direction`
    exaggeration, exaggerated_iterations : factor on E+ at first, and for how many iterations, under momentum
    """

    attraction: Literal["quadratic", "student"]
    kernel: Kernel | float
    combine: Literal["sum", "log-sum", "sum-log"]
    total: Literal["given", "one", "points"]
    formula: tuple[str, str]
    name: str
    estimator: str
    strength: float = 1.0
    direction: str = "spectral+l-bfgs"
    exaggeration: float = 1.0
    exaggerated_iterations: int = 0

    @property
    def dof(self) -> float:
        """The degrees of freedom of Student's kernel; one for others."""
        return 1.0 if isinstance(self.kernel, str) else self.kernel


GIVEN_PAIRS = "pairs"  # the certificate of how repulsion was summed, where that is over pairs of the user's alone
UNNORMALIZED_STRENGTH = 1e-4  # [NB] 5.5: sums over all pairs are larger than the affinities' by orders of magnitude

OBJECTIVES: dict[str, Objective] = {
    "elastic-embedding": Objective(
        attraction="quadratic",
        kernel="gaussian",
        combine="sum",
        total="given",
        formula=("sum w d^2", "sum exp(-d^2)"),
        name="The elastic embedding",
        estimator="ElasticEmbedding",
        strength=UNNORMALIZED_STRENGTH,
    ),
    "s-sne": Objective(
        attraction="quadratic",
        kernel="gaussian",
        combine="log-sum",
        total="one",
        formula=("sum p d^2", "log sum exp(-d^2)"),
        name="Symmetric stochastic neighbour embedding",
        estimator="SymmetricSNE",
    ),
    "t-sne": Objective(
        attraction="student",
        kernel="student",
        combine="log-sum",
        total="one",
        formula=("sum p log(1 + d^2)", "log sum 1 / (1 + d^2)"),
        name="t-distributed stochastic neighbour embedding",
        estimator="TSNE",
        direction="momentum",
        # Users know 250 iterations, from a random start. From the spectral embedding 75 do.
        exaggeration=12.0,
        exaggerated_iterations=75,
    ),
    "sne": Objective(
        attraction="quadratic",
        kernel="gaussian",
        combine="sum-log",
        total="points",
        formula=("sum p d^2", "sum_n log sum_m exp(-d_nm^2)"),
        name="Stochastic neighbour embedding, with a distribution for each point",
        estimator="SNE",
    ),
    "t-ee": Objective(
        attraction="student",
        kernel="student",
        combine="sum",
        total="given",
        formula=("sum w log(1 + d^2)", "sum 1 / (1 + d^2)"),
        name="The elastic embedding with Student's kernel",
        estimator="StudentElasticEmbedding",
        strength=UNNORMALIZED_STRENGTH,
    ),
    "epanechnikov-ee": Objective(
        attraction="quadratic",
        kernel="epanechnikov",
        combine="sum",
        total="given",
        formula=("sum w d^2", "sum max(0, 1 - d^2)"),
        name="The elastic embedding with Epanechnikov's kernel",
        estimator="EpanechnikovElasticEmbedding",
        strength=UNNORMALIZED_STRENGTH,
    ),
}


def objective_of(method: str, dof: float = 1.0) -> Objective:
    """Return the objective of a method, with so many degrees of freedom of Student's kernel, where it has that.

    Raises
    ------
    ConfigError
        For a method that has no objective, with the nearest name that has one.
    """
    if method not in OBJECTIVES:
        raise ConfigError(f"unknown objective {method!r}: {nearest_name(method, OBJECTIVES)}")
    objective = OBJECTIVES[method]
    return objective if dof == 1 or objective.kernel != "student" else replace(objective, kernel=dof)


def table_of_objectives() -> str:
    """Return the methods and their formulas as the rows of a table in Markdown."""
    rows = [f'| "{method}" | {row.formula[0]} | {row.formula[1]} |' for method, row in OBJECTIVES.items()]
    return "\n".join(["| method | E+ | E- |", "| --- | --- | --- |", *rows])
