"""The wait for a signal that ends the process, free of the interpreter: SciPy holds the GIL while LAPACK is at work."""

import numba
import numpy as np

from scalemani.kernels.machine.compile import compiled

# Of the C library, whose words, sizes and pointers are written as the integers of their width.
_read = numba.types.ExternalFunction("read", numba.types.intp(numba.types.intc, numba.types.intp, numba.types.intp))
_sleep = numba.types.ExternalFunction("sleep", numba.types.uintc(numba.types.uintc))
_exit = numba.types.ExternalFunction("_exit", numba.types.void(numba.types.intc))


@compiled
def end_on_signal(reader: int, signals: tuple[int, ...], status: int, grace: int) -> None:
    """Read numbers of signals from a pipe; end the process some seconds after the first that is to end it.

    Parameters
    ----------
    reader : int
        Descriptor of a pipe, into which the number of each signal is written as one byte.
    signals : tuple of int
        Those that end the process.
    status : int
        To which the number of the signal is added.
    grace : int
        Seconds in which the interpreter may end the process itself.

    Returns
    -------
    None
        Once the other end of the pipe is closed.
    """
    received = np.zeros(1, np.uint8)
    while True:
        n_read = _read(reader, received.ctypes.data, 1)
        if n_read == 0:
            return
        for number in signals:
            if n_read == 1 and received[0] == number:
                left = grace
                while left > 0:  # a signal that this thread handles wakes it
                    left = _sleep(left)
                _exit(status + number)
