"""What a picture is: one value with a name, what is selected for it, how that is drawn and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from stabkit.figures.drawing import style
from stabkit.results.run import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Source = TypeVar("Source")
"""What a picture is made of: the runs of a store, a landscape, a probed model, …"""

Room = Literal["surfaces", "ablation", "methods", "chain", "depth", "probes"]
"""The section of a page of runs that a picture stands in; `report/order.py` has their headings."""
Mark = Literal["diverged", "stuck", "band"]
"""What a frame may hold and a reader has to be told the sign of: a run that diverged (✕), one that is stuck (square), a
range over several seeds."""


@dataclass(frozen=True, slots=True)
class Note:
    """How to read a part of a picture."""

    text: str
    """Whole sentences."""
    marks: tuple[Mark, ...] = ()
    """That it explains: it is shown where the frame holds one of them; without any it is always shown."""


def always(*texts: str) -> tuple[Note, ...]:
    """Notes that are always shown."""
    return tuple(map(Note, texts))


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture(Generic[Source]):
    """One picture, a row of its table. Order in a table = order on the page."""

    name: str
    """Its file's name, and its id on the page."""
    short: str
    """Its name in the contents list."""
    room: Room | None = None
    """None on pages without sections."""
    caption: str
    """The paper's figure."""
    see: str
    """What there is to see, in one sentence; of a picture with `here`, what a healthy one shows."""
    here: Callable[[pd.DataFrame], str] | None = None
    """What this one shows, computed: `falls to 2.8e-9 at the lowest layer`."""
    read: tuple[Note, ...] = ()
    """How to read the rest."""
    columns: tuple[str, ...]
    """Of the frame."""
    index: str | None = None
    """The column whose values run across the folded table, a row a run; None: the frame's rows as they are."""
    value: str
    """The column that fills the table."""
    select: Callable[[Source], pd.DataFrame]
    """Exactly what is drawn; also the CSV and the folded table."""
    draw: Callable[[pd.DataFrame], Figure | None]
    """The picture of that frame alone, None where nothing of it can be drawn; called by `drawn`."""
    title: Callable[[Source], str]
    """A finding where the data support one, else what is shown."""
    alt: Callable[[pd.DataFrame], str]
    """What the picture shows, for those who do not see it; called by `described`."""
    none: str = ""
    """What stands for the picture and for its alt text where the frame is empty; "": `draw` and `alt` say it. Also what
    stands for the picture where `draw` is None."""
    grid: bool = True
    """Whether its panels have the lines of a grid."""
    optional: bool = False
    """Not on a page for which the frame is empty."""
    at_start: bool = False
    """On a page of single steps of SGD too, which train nothing."""
    tells: Callable[[pd.DataFrame], bool] | None = None
    """Whether a frame says enough to lead a page; None: whenever it is not empty."""
    single_steps: bool = False
    """Made of all runs, single steps included, which are its matter; the others of trained runs alone."""

    def drawn(self, frame: pd.DataFrame) -> Figure:
        """The picture of a frame, in our look."""
        if frame.empty and self.none:
            return style.empty(self.none)
        with style.look(axes_grid=self.grid):
            return self.draw(frame) or style.empty(self.none)

    def what_to_see(self, frame: pd.DataFrame) -> str:
        """What there is to see."""
        if self.here is None:
            return f"{self.see[0].upper()}{self.see[1:]}"
        here = self.here(frame) if not frame.empty else ""
        return f"Healthy: {self.see}. Here: {here}." if here else f"Healthy: {self.see}."

    def described(self, frame: pd.DataFrame) -> str:
        """Its alt text."""
        return self.none if frame.empty and self.none else self.alt(frame)


RunPicture = Picture[Sequence[Run]]
"""A picture of the runs of a store."""
