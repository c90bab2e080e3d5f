"""Compiled kernels: numba's decorator with a type, and its cache switched on.

Numba looks only at a kernel's own file to see whether its cached code is still good, and code of other kernel
files is inlined into it. So the cache has a folder named after the sources of all `*_kernels.py` files here.
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
Small = NDArray[np.int32]
Flags = NDArray[np.bool_]

F = TypeVar("F", bound=Callable[..., object])


def _cache_folder() -> str | None:
    """The folder for kernels of exactly these sources; None: it cannot be written."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in [Path(__file__), *sorted(here.glob("*_kernels.py"))]:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    folder = here / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    for old in folder.parent.glob("kernels-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return str(folder)


_FOLDER = _cache_folder()


def _compiled(function: F, **options: bool) -> F:
    """The setting is numba's own and global: other packages have their own folder, so it is put back."""
    settings = cast(Any, config)
    before = settings.CACHE_DIR
    settings.CACHE_DIR = before if _FOLDER is None else _FOLDER
    try:
        return cast(F, cast(Any, njit)(cache=True, error_model="numpy", **options)(function))
    finally:
        settings.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile `function` at its first call; later processes load it from the cache beside the source."""
    return _compiled(function)


def inner(function: F) -> F:
    """A kernel that only kernels call: without the wrappers for Python, which take longest to compile."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
