"""How long the random searches of tests are, for those that say it themselves. Who imports this, or
hypothesis, is run again by `make deep`."""

from __future__ import annotations

from hypothesis import settings


def examples(whole: int) -> int:
    """So many, or, in `make check`, a quarter of them."""
    return whole // 4 if settings.get_current_profile_name() == "light" else whole
