"""Make and check the axes of pictures, and write class names that fit below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ordinalrisk.display.palette import BLUE, GREY, ORANGE
from ordinalrisk.inputs.labels import Classes
from ordinalrisk.prediction.interval_set import IntervalSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INSTALL_PLOTS = 'pip install "ordinalrisk[plots]"'
TARGET_LINE: dict[str, Any] = {"color": ORANGE, "linestyle": "--", "zorder": 1}

_LONGEST_NAME = 1.3  # inches
_SLANT = 35


def sets_on_host(sets: Any) -> IntervalSet:
    """Copy the sets to the host; raise an error if there are no rows to draw."""
    if not isinstance(sets, IntervalSet):
        raise ValueError(f"sets must be an IntervalSet; got a {type(sets).__name__}.")
    if not len(sets):
        raise ValueError("sets has no rows, so there is nothing to draw.")
    return sets.cpu()


def axes_for(ax: Any, *, width: float = 6.8, height: float = 4.0, grid: bool = True) -> Axes:
    """Return the given axes, or new axes in the style of the library."""
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise ImportError(f"Pictures need matplotlib: {INSTALL_PLOTS}") from error
    if ax is not None:
        if not isinstance(ax, Axes):
            raise ValueError(
                f"ax must be one matplotlib Axes, such as plt.subplots()[1]; got a {type(ax).__name__}."
            )
        return ax
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis="y", color=GREY, alpha=0.4, linewidth=0.8)
    return axes


def draw_shares(axes: Axes, at: Any, shares: Any, *, width: float, xlabel: str) -> None:
    """Draw shares of rows as bars, with percent on the y axis."""
    axes.bar(at, shares, width=width, color=BLUE)
    axes.set(xlabel=xlabel, ylabel="share of rows")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.6g}%")


def draw_estimates(axes: Axes, at: Any, estimates: Any, n_names: int) -> None:
    """Draw values, with confidence intervals if ``estimates`` has the rows value, low and high."""
    value, low, high = np.broadcast_to(estimates, (3, np.shape(estimates)[-1]))
    reach = np.stack([value - low, high - value])
    axes.errorbar(at, value, yerr=reach, fmt="o", color=BLUE, capsize=min(4, 60 / n_names), markersize=6)


def draw_target(axes: Axes, level: float, name: str) -> None:
    """Draw a horizontal reference line with its name and value at the right."""
    axes.axhline(level, **TARGET_LINE)
    axes.annotate(
        f"{name} {level:.4g}",
        (1, level),
        xycoords=axes.get_yaxis_transform(),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
    )


def name_classes(axes: Axes, classes: Classes, notes: Sequence[str] = ()) -> None:
    """Write the classes below the x axis: horizontally if they fit, else slanted or vertically.

    If even vertical names are too close, some are left out. Dollar signs in names are not read as math.
    """
    names = [on_one_line(label) for label in classes.tolist()]
    level, turned = names, [with_middle_cut(name) for name in names]
    if notes:
        level = [f"{name}\n{note}" for name, note in zip(level, notes, strict=True)]
        turned = [f"{name} ({note})" for name, note in zip(turned, notes, strict=True)]
    margin = 0.1 + 0.015 * len(names)
    axes.set_xlim(-0.5 - margin, len(names) - 0.5 + margin)
    slot = inches(axes)[0] / (len(names) + 2 * margin)
    room = {  # the distance that a name needs from the next one, by the angle of the text
        0: max(_text_inches(line) for text in level for line in text.split("\n")) / 0.88,
        _SLANT: line_inches() / math.sin(math.radians(_SLANT)),
        90: line_inches(),
    }
    step, angle = min((math.ceil(needed / slot), angle) for angle, needed in room.items())
    style: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor"} if angle == _SLANT else {}
    texts = turned if angle else level
    axes.set_xticks(range(0, len(texts), step), texts[::step], parse_math=False, rotation=angle, **style)


def on_one_line(label: Any) -> str:
    return " ".join(str(label).split()) or repr(label)


def with_middle_cut(name: str) -> str:
    """Cut the middle out of a long name, because similar names differ at an end."""
    if (width := _text_inches(name)) <= _LONGEST_NAME:
        return name
    at_each_end = max(1, int(len(name) * _LONGEST_NAME / width - 1) // 2)
    return f"{name[:at_each_end]}…{name[-at_each_end:]}"


def inches(axes: Axes) -> tuple[float, float]:
    """Return the width and height of the axes after the layout has placed what is already drawn."""
    figure = axes.figure.figure
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    box = axes.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi


def line_inches() -> float:
    """Return the height of a line of tick labels, including the gap to the next line."""
    return float(1.25 * _tick_font().get_size_in_points() / 72)


def _text_inches(text: str) -> float:
    """Return the width of a tick label."""
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, _tick_font(), ismath=False)
    return float(width) / 72


def _tick_font() -> Any:
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=rcParams["xtick.labelsize"])
