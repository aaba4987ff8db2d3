"""The pictures of the HTML report, as SVG that takes its colours from the page.

matplotlib is the extra `plots`; without it there are no pictures, and the tables hold the same numbers.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# matplotlib writes fixed colours.
# These stand for the page's own and are replaced by them, so that a picture follows light and dark.
INK, FAINT = "#010101", "#020202"
SERIES = ("#030303", "#040404", "#050505", "#060606")
PAGE_COLOURS = {INK: "var(--ink)", FAINT: "var(--line)"} | {
    colour: f"var(--series-{n})" for n, colour in enumerate(SERIES, 1)
}


class Fairness(NamedTuple):
    """One published table of a fair consumer beside its simulation: for each queue, how many were served."""

    name: str
    quanta: Sequence[int]
    published: Sequence[int]
    simulated: Sequence[int]


def available() -> bool:
    """Whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def fairness(tables: Sequence[Fairness]) -> str:
    """For each table the published share of each queue as a bar, and the simulated one as a mark on it."""
    figure, _ = _canvas(height=2.8)
    figure.clear()
    for n, table in enumerate(tables, 1):
        axes = figure.add_subplot(1, len(tables), n)
        _bare(axes)
        for numbers, how in ((table.published, "bars"), (table.simulated, "marks")):
            share = [100 * k / sum(numbers) for k in numbers]
            places = range(len(share))
            if how == "bars":
                axes.bar(places, share, color=SERIES[0], width=0.62, alpha=0.55, label="published")
            else:
                axes.plot(places, share, "_", color=SERIES[1], markersize=13, label="simulated")
        axes.set_xticks(range(len(table.quanta)), [str(q) for q in table.quanta])
        axes.set_xlabel(f"quantum; {table.name} a message")
        axes.set_ylim(bottom=0)
        if n == 1:
            axes.set_ylabel("% of messages")
            axes.legend(frameon=False, labelcolor=INK, fontsize=9)
    return _svg(figure, "fairness")


def _canvas(height: float) -> tuple[Figure, Axes]:
    # On its very first use it reports that it builds a font cache, which is of no use to a reader.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.add_subplot()
    figure.patch.set_visible(False)
    _bare(axes)
    return figure, axes


def _bare(axes: Axes) -> None:
    axes.patch.set_visible(False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(which="both", color=FAINT, labelcolor=INK, labelsize=9)
    axes.xaxis.label.set(color=INK, fontsize=9)
    axes.yaxis.label.set(color=INK, fontsize=9)


def _svg(figure: Figure, salt: str) -> str:
    """The picture as an element to be put into a page: text stays text, ids do not change from run to run."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    for fixed, themed in PAGE_COLOURS.items():
        svg = svg.replace(fixed, themed)
    return svg
