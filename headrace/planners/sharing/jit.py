"""Compiled kernels: numba's decorator with a type, and its cache switched on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.uint16]

NONE = cast(int, np.int64(-1))
ZERO = cast(int, np.int64(0))
ONE = cast(int, np.int64(1))
"""Starting values of variables in kernels. A plain -1 is a type of its own to numba, and every kernel it is
passed to would be compiled once more for it."""

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` at its first call; later processes load it from the cache beside the source."""
    return cast(F, njit(cache=True, error_model="numpy")(function))


def inner(function: F) -> F:
    """A kernel that only kernels call: without the wrappers for Python, which take longest to compile."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, cast(Any, njit)(cache=True, error_model="numpy", **options)(function))
