"""Other widths than the corpus': what its fit says of them, and what became of them."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from stabkit import methods
from stabkit.figures.drawing import style
from stabkit.figures.shared.words import short
from stabkit.results.forecast.judged import Judged

NAME = "forecast_widths"
SHORT = "Other widths"
INDEX: str | None = None
VALUE = "p"
CAPTION = "Runs of hidden 128 and 256, forecast by the fit on hidden 64 as it stands."
READ = (
    "A point a run, at the probability that it was given after 16 updates: filled where it trained, open where it was "
    "stuck or diverged. Right of 0.9 a run was called likely to train, left of 0.1 likely stuck."
)
COLUMNS = ("run", "method", "label", "hidden", "depth", "rate", "p", "outcome")


def select(judged: Judged) -> pd.DataFrame:
    """One row a run of another width."""
    rows = [
        {
            "run": row.run_id,
            "method": row.method,
            "label": methods.label(row.method, {}),
            "hidden": row.hidden,
            "depth": row.depth,
            "rate": row.rate,
            "p": float(p),
            "outcome": row.outcome,
        }
        for row, p in (zip(judged.widths, judged.width_p, strict=True) if judged.width_scores else ())
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(judged: Judged) -> str:
    """Whether the forecast carries over."""
    own = judged.width_scores
    if own is None:
        return "Does the forecast carry over to other widths?"
    return (
        f"At widths that the fit has not seen: AUC {short(own.auc)}, Brier skill {short(own.skill)}; {own.right} of "
        f"{own.decided} decided runs told right, {own.n - own.decided} open"
    )


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "There is no run of another width."
    parts = [
        f"hidden {hidden}: {sum(own['outcome'] == 'trains')} of {len(own)} train"
        for hidden, own in frame.groupby("hidden")
    ]
    return f"Probabilities given to runs of other widths. {'; '.join(parts)}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a width, a line a method."""
    with style.look():
        if frame.empty:
            return style.empty("There is no run of another width yet.")
        widths = sorted(frame["hidden"].unique())
        labels = list(dict.fromkeys(frame["label"]))
        figure, panels = style.panels(len(widths), 2, 0.7 + 0.3 * len(labels))
        for axes, hidden in zip(panels, widths, strict=True):
            axes.set_title(f"hidden {hidden}")
            own = frame[frame["hidden"] == hidden]
            for row in own.to_dict("records"):
                hue = style.colour(row["method"])
                face = hue if row["outcome"] == "trains" else "none"
                place = labels.index(row["label"])
                (point,) = axes.plot([row["p"]], [place], "o", color=hue, markerfacecolor=face, markersize=6)
                style.mark(point, row["method"])
            axes.set_yticks(range(len(labels)), labels)
            axes.set_ylim(len(labels) - 0.5, -0.5)
            axes.set_xlim(-0.03, 1.03)
            for edge in (0.1, 0.9):
                axes.axvline(edge, color=style.INK, linewidth=0.6, alpha=0.4)
            axes.set_xlabel("said: probability that it trains")
        return figure
