"""Random draws that are a function of the seed, the stage and the global row, never of block size or thread."""

import hashlib

import numpy as np

from scalemani.kernels.arrays.tiles import slices

DRAWS_PER_COUNTER = 4  # a Philox counter yields four 64-bit words
ROWS_AT_ONCE = 2**20  # whose words are looked at together


def philox_key(seed: int, stage: str) -> int:
    """Return the 128-bit Philox key of the stream of a seed and a stage's name."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{stage}".encode(), digest_size=16).digest(), "little")


def generator(seed: int, stage: str, item: int = 0) -> np.random.Generator:
    """Return a generator for one item (a tile, a restart) of a stage: 2**128 draws apart from every other item's."""
    return np.random.Generator(np.random.Philox(key=philox_key(seed, stage), counter=[0, 0, item, 0]))


def row_words(seed: int, stage: str, start: int, stop: int) -> np.ndarray:
    """Return one uniform 64-bit word for each global row in [start, stop): (stop - start,) uint64.

    Any cut of the rows gives the same words.

    References
    ----------
    Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011 (Philox).
    """
    bits = np.random.Philox(key=philox_key(seed, stage))
    bits.advance(start // DRAWS_PER_COUNTER)
    skip = start % DRAWS_PER_COUNTER
    return bits.random_raw(skip + stop - start)[skip:]


def sample_rows(seed: int, stage: str, n_rows: int, n_sampled: int) -> np.ndarray:
    """Return distinct rows drawn uniformly, ascending: (n_sampled,) int64, all of them where there are no more."""
    if n_sampled >= n_rows:
        return np.arange(n_rows)
    rows, words = np.empty(0, np.int64), np.empty(0, np.uint64)
    for part in slices(n_rows, max(ROWS_AT_ONCE, n_sampled)):
        rows = np.append(rows, np.arange(part.start, part.stop))
        words = np.append(words, row_words(seed, stage, part.start, part.stop))
        if len(rows) > n_sampled:
            least = np.argpartition(words, n_sampled - 1)[:n_sampled]
            rows, words = rows[least], words[least]
    return np.sort(rows)


def continue_sample(
    seed: int, stage: str, n_known: int, n_before: int, n_rows: int, n_sampled: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a sample keeps, and what enters it, once rows follow those that it was drawn from.

    Where the sample was uniform, so is what comes of it. A sample of all rows says how many of those that follow are in
    it, and which; what is drawn of the rows before is as random as any of these, and fills the other places.

    Parameters
    ----------
    n_known : rows in the sample so far: `n_sampled` of them, or all rows where there were no more.
    n_rows : rows there are, the first `n_before` of them those before.

    Returns
    -------
    positions in the sample so far (a,) int64, and rows from `n_before` on (b,) int64, both ascending; a + b are as many
    as `sample_rows` returns.
    """
    drawn = sample_rows(seed, stage, n_rows, n_sampled)
    entering = drawn[np.searchsorted(drawn, n_before) :]
    return sample_rows(seed, f"{stage}/kept of {n_before}", n_known, len(drawn) - len(entering)), entering
