"""A matplotlib panel whose ticks are drawn together: one grid, one row of marks, one label moved from place to place.

matplotlib makes an object of seven parts for each tick, twice for each axis before anything is drawn, and measures all
labels three times over: half of the time that small multiples take. What is set on single ticks (a font for one, minor
ticks) is drawn by matplotlib's own axis, as is whatever this file does not know of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import NullLocator

LISTS = ("majorTicks", "minorTicks")
"""Made by matplotlib when they are first asked for; no list, no tick that anyone has changed."""


class _Together:
    """Of an axis: drawing. Stands before matplotlib's class, whose other ways stay as they are."""

    along: str
    across: str
    """The coordinate in which ticks differ, and the other."""
    _marks: Any = None
    """The tick that is moved."""
    _labels: tuple[list[Any], list[Any]] = ([], [])
    """What the tick labels on both sides cover, as last drawn."""

    @contextmanager
    def _no_ticks(self) -> Iterator[None]:
        """While settings are passed on to ticks: do not make any for it, later ones are made by the settings."""
        missing = [name for name in LISTS if name not in vars(self)]
        for name in missing:
            setattr(self, name, [])
        try:
            yield
        finally:
            for name in missing:
                delattr(self, name)
            self._marks = None

    def set_clip_path(self, *args: Any, **options: Any) -> None:
        with self._no_ticks():
            super().set_clip_path(*args, **options)  # type: ignore[misc]

    def set_tick_params(self, *args: Any, **options: Any) -> None:
        with self._no_ticks():
            super().set_tick_params(*args, **options)  # type: ignore[misc]

    def draw(self, renderer: Any) -> None:
        own: Any = self
        if any(name in vars(self) for name in LISTS) or not isinstance(own.get_minor_locator(), NullLocator):
            super().draw(renderer)  # type: ignore[misc]
            return
        if not own.get_visible():
            return
        renderer.open_group("matplotlib.axis", gid=own.get_gid())
        self._labels = self._ticks(renderer)
        if own.label.get_text():
            self._place_label(renderer.points_to_pixels(1.0))
            own.label.draw(renderer)
        if offset := own.major.formatter.get_offset():
            own._update_offset_text_position(*self._labels)
            own.offsetText.set_text(offset)
            own.offsetText.draw(renderer)
        renderer.close_group("matplotlib.axis")
        own.stale = False

    def _ticks(self, renderer: Any) -> tuple[list[Any], list[Any]]:
        """Draws all that belongs to ticks; what the labels on both sides cover."""
        own: Any = self
        if isinstance(own.get_major_locator(), NullLocator):
            return [], []
        found = own.get_majorticklocs()
        texts = own.major.formatter.format_ticks(found)
        first, last = sorted(own.get_transform().transform(own.get_view_interval()))
        at = own.get_transform().transform(np.asarray(found, dtype=float))
        near = 1e-10 * (last - first)  # a tick on the edge is one, whatever rounding says
        seen = [i for i, place in enumerate(at) if first - near <= place <= last + near]
        if not seen:
            return [], []
        if self._marks is None:
            self._marks = own._get_tick(major=True)
            self._marks.set_clip_path(own.axes.patch)
        tick = self._marks
        places = np.asarray(found, dtype=float)[seen]
        grid = {self.along: np.repeat(places, 3), self.across: np.tile([0.0, 1.0, np.nan], len(seen))}
        tick.gridline.set_data(grid["x"], grid["y"])
        tick.gridline.draw(renderer)
        for line, side in ((tick.tick1line, 0.0), (tick.tick2line, 1.0)):
            if line.get_visible():
                marks = {self.along: places, self.across: np.full(len(seen), side)}
                line.set_data(marks["x"], marks["y"])
                line.draw(renderer)
        covered: tuple[list[Any], list[Any]] = [], []
        measured = bool(own.label.get_text() or own.major.formatter.get_offset())
        for label, boxes in zip((tick.label1, tick.label2), covered, strict=True):
            if label.get_visible():
                move = label.set_x if self.along == "x" else label.set_y
                for place, i in zip(places, seen, strict=True):
                    move(place)
                    label.set_text(texts[i])
                    if texts[i]:
                        label.draw(renderer)
                        if measured:
                            boxes.append(label.get_window_extent(renderer))
        return covered

    def _place_label(self, pixels: float) -> None:
        """The axis label beyond the tick labels, or beyond the marks where there are none; `pixels` of a point."""
        own: Any = self
        if own._autolabelpos:
            side = int(own.label_position in ("top", "right"))
            edge, sign = "xy".index(self.across), 1 if side else -1
            marks = own.axes.bbox.get_points()[side][edge] + sign * pixels * (self._marks._size if self._marks else 0.0)
            reach = max([sign * marks, *(sign * box.get_points()[side][edge] for box in self._labels[side])])
            (own.label.set_x if edge == 0 else own.label.set_y)(sign * (reach + pixels * own.labelpad))


class _XAxis(_Together, XAxis):
    along, across = "x", "y"


class _YAxis(_Together, YAxis):
    along, across = "y", "x"


class Panel(Axes):
    """matplotlib's axes with these two: `figure.add_axes(place, axes_class=Panel)`."""

    def _init_axis(self) -> None:
        self.xaxis, self.yaxis = _XAxis(self, clear=False), _YAxis(self, clear=False)
        for axis, names in ((self.xaxis, ("bottom", "top")), (self.yaxis, ("left", "right"))):
            for name in names:
                self.spines[name].register_axis(axis)
