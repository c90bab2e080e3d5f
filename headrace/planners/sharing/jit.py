"""Compiled kernels: numba's decorator with a type, and its cache switched on.

Numba looks only at a kernel's own file to see whether its cached code is still good, and code of other files
is inlined into it. So the cache has a folder named after all sources of this package: any change starts a new
one.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.uint16]

NONE = cast(int, np.int64(-1))
ZERO = cast(int, np.int64(0))
ONE = cast(int, np.int64(1))
"""Starting values of variables in kernels. A plain -1 is a type of its own to numba, and every kernel it is
passed to would be compiled once more for it."""


def _cache_folder() -> Path:
    """The folder for kernels of exactly these sources."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(here.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return here / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}"


def _use_cache() -> None:
    """Where the package's folder cannot be written, numba's own place has to do: there an upgrade changes the
    time of every file, and so starts anew too."""
    folder = _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".used").touch()
    except OSError:
        return
    for old in folder.parent.glob("kernels-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    cast(Any, config).CACHE_DIR = str(folder)


_use_cache()

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` at its first call; later processes load it from the cache beside the source."""
    return cast(F, njit(cache=True, error_model="numpy")(function))


def inner(function: F) -> F:
    """A kernel that only kernels call: without the wrappers for Python, which take longest to compile."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, cast(Any, njit)(cache=True, error_model="numpy", **options)(function))
