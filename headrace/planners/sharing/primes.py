"""Prime powers of slides. Slides are below 10^12, so the primes below a million are enough."""

from __future__ import annotations

from functools import cache, lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from headrace.errors import InternalError

LARGEST = 10**12


@cache
def _primes(below: int) -> NDArray[np.int64]:
    sieve = np.ones(below, dtype=np.bool_)
    sieve[:2] = False
    for p in range(2, isqrt(below) + 1):
        if sieve[p]:
            sieve[p * p :: p] = False
    return np.flatnonzero(sieve).astype(np.int64)


@lru_cache(maxsize=100_000)
def prime_powers(n: int) -> tuple[tuple[int, int], ...]:
    """The (prime, exponent) pairs of n, smallest prime first."""
    if n > LARGEST:
        raise InternalError(f"a slide of {n} is longer than {LARGEST}")
    primes = _primes(1000) if n < 1_000_000 else _primes(1_000_001)
    powers: list[tuple[int, int]] = []
    for p in primes[n % primes == 0].tolist():
        exponent = 0
        while n % p == 0:
            n //= p
            exponent += 1
        powers.append((p, exponent))
    if n > 1:
        powers.append((n, 1))
    return tuple(powers)
