"""The pictures of the HTML report, as SVG that takes its colours from the page.

matplotlib is the extra `plots`; without it there are no pictures, and the tables hold the same numbers.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Collection, Mapping, Sequence
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
BINS = 40


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


def traces_per_program(traces: Mapping[str, int], cut_short: Collection[str] = ()) -> str:
    """One bar per program: how many different traces (schedules that matter) it has.

    Of a search that was `cut_short` only a lower bound is known, and the label says so.
    """
    figure, axes = _canvas(height=0.9 + 0.26 * len(traces))
    names = list(traces)[::-1]
    counts = [max(traces[name], 1) for name in names]
    labels = [
        f"{n:,}{' or more' if name in cut_short else ''}"
        for name, n in zip(names, counts, strict=True)
    ]
    bars = axes.barh(names, counts, color=SERIES[0], height=0.62)
    axes.bar_label(bars, labels=labels, padding=4, color=INK, fontsize=9)
    axes.margins(y=0.02)
    axes.set_xscale("log")
    axes.set_xlim(0.8, max(counts, default=1) * 9)
    axes.set_xlabel("distinct traces (logarithmic)")
    axes.tick_params(axis="y", length=0)
    return _svg(figure, "traces-per-program")


def latency(milliseconds: Mapping[str, Sequence[float]]) -> str:
    """From publish to first delivery, one step line per recording, as the share of messages in each bin."""
    import numpy as np

    figure, axes = _canvas(height=2.8)
    shown = {name: np.asarray(ms) for name, ms in milliseconds.items() if len(ms)}
    low = min((ms.min() for ms in shown.values()), default=0.01)
    high = max((ms.max() for ms in shown.values()), default=1.0)
    edges = np.geomspace(max(low, 1e-3), max(high, 2e-3) * 1.01, BINS + 1)
    for colour, (name, ms) in zip(SERIES, shown.items(), strict=False):
        counts, _ = np.histogram(np.clip(ms, edges[0], edges[-1]), edges)
        share = 100 * counts / len(ms)
        axes.stairs(share, edges, color=colour, linewidth=1.6, label=name)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("milliseconds from publish to first delivery (logarithmic)")
    axes.set_ylabel("% of messages")
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, labelcolor=INK, fontsize=9)
    return _svg(figure, "latency")


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
