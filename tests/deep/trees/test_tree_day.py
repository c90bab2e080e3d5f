"""State does not grow over a day of event time."""

from __future__ import annotations

from tests.property.tree_day import HOUR, KEYS_AT_ONCE, LONGEST, NEW_KEYS, play_day


def test_what_is_kept_does_not_grow_after_the_longest_range() -> None:
    samples, wrong = play_day(24)
    assert not wrong, "\n".join(wrong)
    assert [s.hour for s in samples] == list(range(1, 25))
    full = [s for s in samples if s.hour * HOUR > LONGEST]
    early, late = full[:6], full[6:]
    assert max(s.bytes for s in late) <= 1.25 * max(s.bytes for s in early)
    assert max(s.entries for s in late) <= 2 * max(s.entries for s in early)
    # The engine looks for keys without a fragment when their number has doubled (Bucket.known_keys).
    alive = KEYS_AT_ONCE + NEW_KEYS * (LONGEST // HOUR + 1)
    assert max(s.keys for s in late) <= 2 * alive + 64 < 24 * NEW_KEYS
