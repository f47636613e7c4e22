"""What is kept is kept with its runs alone; a panel looks as matplotlib's own does."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stabkit.figures.drawing import style
from stabkit.figures.quick import points
from stabkit.figures.quick.once import Runs, once
from stabkit.figures.quick.panel import Panel
from stabkit.storage.store import Run


def test_what_is_made_of_runs_is_made_once_and_of_other_sequences_anew() -> None:
    calls = []

    @once
    def count(runs: Sequence[Run], step: int = 0) -> int:
        calls.append(step)
        return len(runs) + step

    kept = Runs()
    assert [count(kept), count(kept), count(kept, 2), count(kept, 2), count([]), count([])] == [0, 0, 2, 2, 0, 0]
    assert calls == [0, 2, 0, 0]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_panel_looks_as_matplotlibs_axes_do(scale: str) -> None:
    def pixels(kind: type[Axes]) -> np.ndarray:
        with style.look():
            figure = Figure(figsize=(4, 3))
            axes = figure.add_axes((0.2, 0.2, 0.7, 0.7), axes_class=kind)
            axes.set_title("title")
            axes.set_xlabel("across")
            axes.set_ylabel("up")
            axes.set_xlim(0, 16)
            if scale == "log":
                style.log_axis(axes, "y", 1e-7, 3)
            out = io.BytesIO()
            figure.savefig(out, format="rgba", dpi=100)
        return np.frombuffer(out.getvalue(), dtype=np.uint8).astype(int)

    assert np.abs(pixels(Panel) - pixels(Axes)).max() <= 2  # grid lines in one stroke blend in another order


def test_of_several_runs_the_middle_the_least_and_the_greatest_without_nan() -> None:
    x, middle, low, high = points.over_seeds([2, 1, 2, 1], [4.0, np.nan, 8.0, 3.0], points.median)
    assert x.tolist() == [1, 2] and middle.tolist() == [3.0, 6.0]
    assert low.tolist() == [3.0, 4.0] and high.tolist() == [3.0, 8.0]
