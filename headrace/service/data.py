"""Rows of generator streams, written before the jobs that read them start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headrace.catalog.model import GeneratorSource, Project, Stream
from headrace.plan.logical import streams_of
from headrace.plan.placed import PlacedPlan
from headrace.runtime.generate import materialise
from headrace.service.layout import data_folder
from headrace.service.refusals import plans_of

OnData = Callable[[str, int, int], None]
"""(stream, done, in all), while rows are written."""


def generated_streams(project: Project, placed: PlacedPlan) -> tuple[Stream, ...]:
    """The generator streams that some job or tree reads, each once."""
    names = dict.fromkeys(name for plan in plans_of(placed).values() for name in streams_of(plan))
    streams = (project.streams[name] for name in names)
    return tuple(s for s in streams if isinstance(s.source, GeneratorSource))


def materialise_stream(project: Project, stream: Stream, on_data: OnData | None = None) -> Path:
    """Write the rows of one generator stream, unless they are there; the folder they lie in."""

    def report(done: int, total: int) -> None:
        if on_data is not None:
            on_data(stream.name, done, total)

    return materialise(stream, data_folder(project, stream.name), report)


def materialise_all(project: Project, placed: PlacedPlan, on_data: OnData | None = None) -> None:
    for stream in generated_streams(project, placed):
        materialise_stream(project, stream, on_data)
