"""How kernels are compiled: serial, cached between processes, and free of the GIL; callers run them side by side.

The decorators differ in what the compiler may do to sums and products of floats: nothing, reorder, fuse. In plain mode
nothing is compiled: Python and NumPy that a person can step through, slow, and equal to rounding. Code that emits LLVM
instructions, or that is written to be vectorised, is then replaced by a reference implementation in NumPy, which takes
the arguments of what it replaces, addresses among them, so that no kernel needs to know the mode. The mode holds for a
process from its start to its end. Python differs from compiled code where a sum starts from 0.0 and its terms are
float32, which it then is too, and where `math` raises an OverflowError instead of returning infinity.
"""

import ctypes
import functools
import gc
import os
import time
from collections.abc import Callable, Set
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import event, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic
from numpy.typing import DTypeLike

from scalemani.errors import ConfigError
from scalemani.kernels.machine.code_cache import CodeCache
from scalemani.kernels.machine.forks import new_lock

PLAIN_VARIABLE = "SCALEMANI_PLAIN"


def is_plain_requested(value: str) -> bool:
    """Return whether the environment requests kernels that are not compiled; refuse words such as "no"."""
    if value not in ("", "0", "1"):
        raise ConfigError(f"{PLAIN_VARIABLE} in the environment must be 0 or 1, got {value!r}")
    return value == "1"


# Without its compiler numba cannot run instructions at all.
PLAIN = is_plain_requested(os.environ.get(PLAIN_VARIABLE, "")) or bool(vars(numba.config)["DISABLE_JIT"])

# Reassociation lets LLVM vectorise sums; the other fast-math flags would make isnan(nan) False and undo exact tricks.
REASSOCIATE = frozenset({"reassoc", "contract", "nsz"})
FUSE = frozenset({"contract"})  # a product and a sum may become one instruction that rounds once
Function = TypeVar("Function", bound=Callable[..., Any])


def in_plain_mode(reference: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a decorator that replaces a function by its reference implementation where kernels are plain."""

    def choose(optimized: Any) -> Any:
        return reference if PLAIN else optimized

    return choose


def numbers_at(
    address: int, shape: tuple[int, ...], dtype: DTypeLike, strides: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return the numbers at an address as an array that shares the memory of the array that lies there.

    `strides` are bytes, not negative, along each axis; those of a C-contiguous array by default. All numbers must lie
    within an array that somebody keeps alive.
    """
    if strides is None:
        strides = np.empty(shape, dtype).strides
    n_bytes = np.dtype(dtype).itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * n_bytes).from_address(int(address))
    return np.ndarray(shape, dtype, memory, strides=strides)


def emitted(returned: Any, *taken: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a function for kernels of one that emits its instructions.

    Parameters
    ----------
    returned, taken : types of numba, of what the function returns and of its arguments
    """

    def declare(emit: Callable[..., Any]) -> Any:
        @functools.wraps(emit)  # numba takes the names of arguments from here, the builder in place of the context
        def typed(typing_context: Any, *kinds: Any) -> Any:
            def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                value = emit(builder, *arguments)
                return context.get_dummy_value() if value is None else value

            return returned(*taken), lower

        return intrinsic(typed)

    return declare


class InnerLibrary(JITCodeLibrary):
    """The optimised LLVM code of a function that is part of its callers' machine code alone."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class InnerPipeline(Compiler):
    """The passes of numba, into an `InnerLibrary`."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function."""
        self.state.library = InnerLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class Kernel(CPUDispatcher):
    """A function that numba compiles at its first call, for each signature of arguments.

    What only other kernels call gets neither separate machine code nor a way in from Python, nor is it cached; a call
    from Python compiles it again, with all that.
    """

    _compiler: Any

    def __init__(self, py_func: Callable[..., Any], locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals, targetoptions)
        self._compiler._customize_flags = self._with_ways_in
        self._cache = CodeCache(py_func, sorted(self.targetoptions["fastmath"]))  # in place of numba's cache

    def _with_ways_in(self, flags: Flags) -> Flags:
        flags.no_cfunc_wrapper = True  # for callers in C
        flags.no_compile = flags.no_cpython_wrapper = self._is_inner
        return flags

    @property
    def _is_inner(self) -> bool:
        return self._compiler.pipeline_class is InnerPipeline

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile what a kernel calls."""
        with global_compiler_lock:
            before, self._compiler.pipeline_class = self._compiler.pipeline_class, InnerPipeline
            try:
                return super().get_call_template(args, kws)
            finally:
                self._compiler.pipeline_class = before

    def compile(self, sig: Any) -> Any:
        """Compile for a signature, and return what Python calls."""
        with global_compiler_lock:
            arguments, _ = sigutils.normalize_signature(sig)
            held: Any = self.overloads.get(arguments)
            if held is not None and isinstance(held.library, InnerLibrary) and not self._is_inner:
                del self.overloads[arguments]
            return super().compile(sig)

    def add_overload(self, cres: Any) -> None:
        """Keep what was compiled: calls from Python do not find what is compiled for kernels."""
        if isinstance(cres.library, InnerLibrary):
            cres = cres._replace(entry_point=object())  # names it in the kernels that call it
            self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)


def _options(fastmath: Set[str] = frozenset(), inlined: bool = False) -> dict[str, Any]:
    return {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath), "forceinline": inlined}


def _decorator(fastmath: Set[str] = frozenset(), inlined: bool = False) -> Callable[[Function], Any]:
    def compile_kernel(function: Function) -> Any:
        if PLAIN:
            return _silent(function)
        return Kernel(function, targetoptions={"nopython": True, "boundscheck": None, **_options(fastmath, inlined)})

    return compile_kernel


def _silent(function: Function) -> Any:
    """Return a function that, like compiled ones, says nothing of overflow, division by zero and invalid values."""

    @functools.wraps(function)
    def run_silently(*arguments: Any, **named: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments, **named)

    return run_silently


compiled: Any = _decorator()
compiled_sums: Any = _decorator(REASSOCIATE)
compiled_fused: Any = _decorator(FUSE)
# A process may have several compilations of a function that kernels call: one alone, and a copy in each caller. Sums in
# them may be associated differently, and which one a call reaches depends on what was loaded before. Hence inlined.
inlined_sums: Any = _decorator(REASSOCIATE, inlined=True)
inlined: Any = _decorator(inlined=True)
# `jit_options` of what `overload` chooses among: what they leave open numba takes from the first kernel that calls it.
INLINED_SUMS = _options(REASSOCIATE, inlined=True)
INLINED = _options(inlined=True)


@inlined
def square_of(value: float) -> float:
    """Return the square of a number, rounded once.

    Numba compiles `value ** 2` once a process for all kernels, with what the first of them permits the compiler.
    """
    return value * value


class CompileSeconds(event.Listener):
    """Adds up the time in which at least one thread compiles; what is loaded from a cache is not compiled.

    Garbage is not collected meanwhile, which would take a tenth of the time and find little.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock, self._clock = new_lock(), clock
        self._at_work, self._since, self._total = 0, 0.0, 0.0
        self._collecting = False

    def on_start(self, event: Any) -> None:
        """Take note that a thread compiles, or that what it compiles calls what is to be compiled."""
        with self._lock:
            self._at_work += 1
            if self._at_work == 1:
                self._since = self._clock()
                self._collecting = gc.isenabled()
                gc.disable()

    def on_end(self, event: Any) -> None:
        """Take note that one of these is done."""
        with self._lock:
            self._at_work -= 1
            if self._at_work == 0:
                self._total += self._clock() - self._since
                if self._collecting:
                    gc.enable()

    def forget_threads(self) -> None:
        """Take note, in a forked process, that what threads of its parent compile is not compiled here."""
        if self._at_work and self._collecting:
            gc.enable()
        self._at_work = 0

    @property
    def total(self) -> float:
        """The seconds until this moment."""
        with self._lock:
            return self._total + (self._clock() - self._since if self._at_work else 0.0)


COMPILING = CompileSeconds()
event.register("numba:compile", COMPILING)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COMPILING.forget_threads)
