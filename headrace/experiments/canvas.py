"""Figures without a display, as PNG and SVG. matplotlib is imported where it is used: it takes a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Without pyplot: no display, no global state, nothing to close."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    import matplotlib as mpl

    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    # Without a date and with fixed ids the same numbers give the same bytes.
    with mpl.rc_context({"svg.hashsalt": "headrace"}):
        figure.savefig(paths[0], dpi=130)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
