"""The exponential and the logarithm in float64: loops around them vectorise, around those of libm they do not."""

import math
from typing import Any

import numba
from llvmlite import ir

from scalemani.kernels.machine.compile import compiled, compiled_fused, emitted, in_plain_mode

LEAST_EXPONENT = -700.0  # exp(-700) = 1e-304: a normal number, negligible compared with the 1 that every sum here holds

# exp(x) = 2^n exp(r), n = round(x / log 2), |r| <= log(2) / 2.
INVERSE_LOG_2 = 1.4426950408889634
LOG_2_HIGH = 0.6931471801362932  # the leading 30 bits of log 2, so that n * LOG_2_HIGH is exact for every n here
LOG_2_LOW = 4.236521365809284e-10
ROUNDING_SHIFT = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer and leaves n in the low bits
EXPONENT_POSITION = 52

# exp(r) = 1 + r + r^2 q(r), with q interpolated at its Chebyshev nodes: relative error 2e-17 before rounding.
C2, C3, C4 = 0.5000000000000001, 0.16666666666666669, 0.04166666666662413
C5, C6, C7 = 0.008333333333330062, 0.0013888888917213717, 0.00019841269863053618
C8, C9, C10 = 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07
C11 = 2.510038549551032e-08

# log(x) = n log 2 + 2 atanh(s), s = (m - 1) / (m + 1), x = 2^n m with m in [sqrt(1/2), sqrt(2)): |s| <= 0.1716.
LOG_2 = 0.6931471805599453
OFFSET = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2): a number's bits less these carry its exponent n above m's
MANTISSA = (1 << EXPONENT_POSITION) - 1


@emitted(numba.types.int64, numba.types.float64)
def bits_of(builder: Any, number: Any) -> Any:
    """Emit the bits of a float64, as an int64."""
    return builder.bitcast(number, ir.IntType(64))


@emitted(numba.types.float64, numba.types.int64)
def number_of(builder: Any, bits: Any) -> Any:
    """Emit the float64 that has the bits of an int64."""
    return builder.bitcast(bits, ir.DoubleType())


# Nothing but fused multiply-add: reassociation would cancel ROUNDING_SHIFT away.
@in_plain_mode(math.exp)
@compiled_fused
def exp_in_range(x: float) -> float:
    """Return exp(x) in float64 to a relative error of 4e-16, for -700 <= x <= 700; it means nothing outside of that."""
    shifted = x * INVERSE_LOG_2 + ROUNDING_SHIFT
    n = shifted - ROUNDING_SHIFT
    r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW
    q = C11
    for coefficient in (C10, C9, C8, C7, C6, C5, C4, C3, C2, 1.0, 1.0):
        q = q * r + coefficient
    return number_of(bits_of(q) + (bits_of(shifted) << EXPONENT_POSITION))


@compiled
def exp_nonpositive(x: float) -> float:
    """Return exp(x) in float64 to a relative error of 4e-16, for x <= 0 with minus infinity; below -700 as at -700."""
    return exp_in_range(max(x, LEAST_EXPONENT))


@in_plain_mode(math.log)
@compiled_fused
def log_positive(x: float) -> float:
    """Return the natural logarithm of a positive, finite, normal float64 to an error of 4e-16, absolute or relative.

    Of the two errors the larger counts. The result means nothing for other numbers.
    """
    shifted = bits_of(x) - OFFSET
    n = shifted >> EXPONENT_POSITION
    m = number_of((shifted & MANTISSA) + OFFSET)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    tail = 1.0 / 21.0
    for coefficient in (1 / 19.0, 1 / 17.0, 1 / 15.0, 1 / 13.0, 1 / 11.0, 1 / 9.0, 1 / 7.0, 1 / 5.0, 1 / 3.0):
        tail = tail * square + coefficient
    return n * LOG_2 + 2.0 * (s + s * square * tail)
