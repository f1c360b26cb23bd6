"""Affinities of a point by several tables of rows, to candidates that all tables share, in one distribution a point."""

import numpy as np

from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.kernels.machine.vector_math import LEAST_EXPONENT

MEAN, PRODUCT, UNION = "mean", "product", "union"
COMBINATIONS = (MEAN, PRODUCT, UNION)
JOINING = 1e-3  # of the mean, in a product: points of different categories would else be in pieces without an edge


def log_memberships(squares: np.ndarray, repeated: np.ndarray, n_neighbors: int, perplexity: float) -> np.ndarray:
    """Return beta (d_1^2 - d^2) of points and their candidates in one table: (n, c) float64, zero for the nearest.

    Affinities to the k nearest candidates have the perplexity, as lists of any run; those to others follow the same
    Gaussian. Where too many tie at the nearest, beta is the largest float64: all others are at `LEAST_EXPONENT`.

    Parameters
    ----------
    squares : (n, c) float64, squared distances; at least `n_neighbors` candidates of each point differ
    repeated : (n, c) bool, candidates that are not to count: -inf is returned
    """
    nearest = np.sort(np.where(repeated, np.inf, squares), axis=1)[:, :n_neighbors]
    beta = entropic_affinities(nearest, perplexity).beta[:, np.newaxis]
    with np.errstate(over="ignore"):
        return np.where(repeated, -np.inf, np.maximum(beta * (nearest[:, :1] - squares), LEAST_EXPONENT))


def combined(logs: np.ndarray, how: str, weights: np.ndarray, n_neighbors: int, perplexity: float) -> np.ndarray:
    """Return affinities (n, c) float64 of points to their candidates by all tables, each row with a sum of one.

    Parameters
    ----------
    logs : (G, n, c), of each table as `log_memberships` returns them, with the same `n_neighbors` and `perplexity`
    weights : (G,), with the sum G
    """
    shares, values = weights.reshape(-1, 1, 1), np.exp(logs)
    if how == UNION:
        return rows_of_sum_one(1.0 - np.prod((1.0 - values) ** shares, axis=0))
    mean = rows_of_sum_one((shares * rows_of_sum_one(values)).sum(axis=0))
    if how == MEAN:
        return mean
    product = entropic_in_any_order(-(shares * logs).sum(axis=0), n_neighbors, perplexity)
    return (1.0 - JOINING) * product + JOINING * mean


def entropic_in_any_order(squares: np.ndarray, n_neighbors: int, perplexity: float) -> np.ndarray:
    """Return affinities (n, c) to the k nearest of candidates at squared distances (n, c), zero to the others."""
    order = np.argsort(squares, axis=1, kind="stable")[:, :n_neighbors]
    values = np.zeros_like(squares)
    solved = entropic_affinities(np.take_along_axis(squares, order, axis=1), perplexity)
    np.put_along_axis(values, order, solved.values, axis=1)
    return values


def rows_of_sum_one(values: np.ndarray) -> np.ndarray:
    """Return values (..., c), none negative, over the sums of their rows."""
    return np.asarray(values / values.sum(axis=-1, keepdims=True))
