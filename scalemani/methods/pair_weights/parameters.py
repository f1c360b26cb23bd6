"""The parameter of weights of pairs, which names a file by its content too."""

import hashlib
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from scalemani.config.params.conditions import Acts, OneOf, OtherThan
from scalemani.config.params.fields import Unkeyed, parameters

SUFFIXES = (".npz", ".npy")
NAMED = re.compile(r"(?P<path>.+)@(?P<digest>[0-9a-f]{16})")
SUMMED = ("elastic-embedding", "t-ee", "epanechnikov-ee")  # objectives whose E- is a plain sum over pairs
OVER_ALL_PAIRS = ("diagonal-hessian", "spectral-minus", "spectral+diagonal")


def file_digest(path: str | Path) -> str:
    """Return the digest of the content of a file, which its name in keys ends with."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def as_text(value: Any) -> Any:
    """Return the text of a path."""
    return str(value) if isinstance(value, Path) else value


def named_by_content(value: str) -> str:
    """Return PATH@DIGEST of the path of a file; raise ValueError for what is no file of a matrix."""
    if NAMED.fullmatch(value):
        return value
    path = Path(value)
    if path.suffix not in SUFFIXES or not path.is_file():
        raise ValueError(
            f"must be the path of a file {' or '.join(SUFFIXES)} with a sparse (scipy.sparse.save_npz) or dense "
            f"(numpy.save) matrix of all pairs of points, and {value!r} is none"
        )
    return f"{path.resolve()}@{file_digest(path)}"


MatrixFile = Annotated[str, BeforeValidator(as_text), AfterValidator(named_by_content)]


@parameters()
class PairWeightsParams:
    """Repulsion may be that of some pairs, by weights.

    `pair_weights` is the file of a symmetric matrix of weights of pairs that are not negative, in the order of the
    input: the repulsion is the sum over these, exactly, in place of all pairs by one.
    """

    pair_weights: Unkeyed[
        Annotated[
            MatrixFile | None,
            Acts("layout.objective", OneOf(*SUMMED), required=True),
            Acts("layout.repulsion", OneOf("exact"), required=True),
            Acts("layout.direction", OtherThan(*OVER_ALL_PAIRS), required=True),
            Acts("doubt.measured", OneOf(False), required=True),
        ]
    ] = None
