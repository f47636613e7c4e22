"""The training loss as the user gave it."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import step_lines
from stabkit.figures.shared import watched
from stabkit.storage.watched import Watched

NAME = "watched_loss"
SHORT = "Loss"
INDEX: str | None = None
VALUE = "value"
CAPTION = "The training loss, as `watch.loss(…)` was given it."
READ = "What the other pictures are to foretell."


def select(found: Watched) -> pd.DataFrame:
    """One row an update; empty where no loss was given."""
    loss = found.cell.records.get("loss")
    return watched.frame([] if loss is None else [("loss", "", loss.steps, loss.at("train"))])


def title(found: Watched) -> str:
    """Its first, least and last."""
    own = select(found)["value"]
    if own.empty:
        return "Loss: none was given to the watch"
    return f"Loss: {own.iloc[0]:.3g} at the start, {own.min():.3g} at its least, {own.iloc[-1]:.3g} at the end"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    return watched.said(frame, "Training loss")


def draw(frame: pd.DataFrame) -> Figure:
    """One panel."""
    return step_lines.draw(frame, "loss", {})
