"""Keep standard output for answers: what a solver prints there by itself, past Python, is thrown away.

HiGHS has a line that no option turns off. It goes through C's buffer, which is written when it is full or at
exit, so the buffer is emptied on both sides of the search.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_STDOUT = 1


@contextmanager
def own_stdout() -> Iterator[None]:
    """While this is open, nothing that is written to file descriptor 1 arrives."""
    _flush()
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # There is none; then nobody can be disturbed either.
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDOUT)
    os.close(nowhere)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, _STDOUT)
        os.close(kept)


def _flush() -> None:
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
