"""The logarithm in float64, written so that loops around it vectorise (around libm's they do not)."""

import math

from scalemani.kernels.machine.compile import compiled_fused
from scalemani.kernels.machine.plain import in_plain_mode
from scalemani.kernels.machine.vector_exp import bits_of, number_of

# log(x) = n log 2 + 2 atanh(s), s = (m - 1) / (m + 1), x = 2^n m with m in [sqrt(1/2), sqrt(2)): |s| <= 0.1716.
LOG_2 = 0.6931471805599453
EXPONENT_BITS = 52
OFFSET = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2): a number's bits less these carry its exponent n above m's
MANTISSA = (1 << EXPONENT_BITS) - 1


@in_plain_mode(math.log)
@compiled_fused
def log_positive(x: float) -> float:
    """Return the natural logarithm of a positive, finite, normal float64 to an error of 4e-16, absolute or relative.

    Of the two errors the larger counts. The result means nothing for other numbers.
    """
    shifted = bits_of(x) - OFFSET
    n = shifted >> EXPONENT_BITS
    m = number_of((shifted & MANTISSA) + OFFSET)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    tail = 1.0 / 21.0
    for coefficient in (1 / 19.0, 1 / 17.0, 1 / 15.0, 1 / 13.0, 1 / 11.0, 1 / 9.0, 1 / 7.0, 1 / 5.0, 1 / 3.0):
        tail = tail * square + coefficient
    return n * LOG_2 + 2.0 * (s + s * square * tail)
