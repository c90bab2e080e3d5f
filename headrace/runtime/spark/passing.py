"""Faults of Spark that pass: another start from the checkpoint may go well, nothing is wrong with the job.

Known by Spark's own words, as they stand in the reason of a failed job:
- A Python worker that Spark starts must connect within ten seconds, and on a busy machine it is not always
  given the CPU for that. For a tree Spark starts one at the driver with every start of the query, and others
  with its tasks.
- The rows of a small table are to be at every worker within five minutes, and an answer of another part of
  Spark is awaited for two.
And in ours: the JVM of this process is gone. The next start has another one.
"""

from __future__ import annotations

DIED = "the JVM of Spark in this process has ended: it was killed, or crashed"

_SAID = (
    DIED,
    "Python worker failed to connect back",
    "Could not execute broadcast in",
    "Futures timed out after",
)

HINT = "The machine is overloaded: run fewer jobs at once, with planner.parallel, and run again to go on."
_DIED_HINT = "Is memory short? Give the site less of it, or set planner.parallel lower; run again to go on."


def is_passing(reason: str) -> bool:
    """Whether a job that has failed for this reason may be started again as it is."""
    return any(said in reason for said in _SAID)


def hinted(reason: str) -> str:
    """The reason, with what to do where it is one that should have passed."""
    hint = _DIED_HINT if DIED in reason else HINT
    return f"{reason}\nhint: {hint}" if is_passing(reason) else reason
