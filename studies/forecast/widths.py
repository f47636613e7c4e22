"""Other widths than the corpus': their forecasts by its fit, and their outcomes."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from stabkit import methods
from stabkit.figures.drawing import style
from stabkit.figures.picture import Note, Picture
from stabkit.words import short
from studies.forecast.evaluation import Evaluation

COLUMNS = ("run", "method", "label", "hidden", "depth", "rate", "p", "outcome")


def select(evaluation: Evaluation) -> pd.DataFrame:
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
        for row, p in (zip(evaluation.widths, evaluation.width_p, strict=True) if evaluation.width_scores else ())
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(evaluation: Evaluation) -> str:
    """Whether the forecast carries over."""
    scores = evaluation.width_scores
    if scores is None:
        return "Does the forecast carry over to other widths?"
    return (
        f"At widths that the fit has not seen: AUC {short(scores.auc)}, Brier skill {short(scores.skill)}; "
        f"{scores.right} of {scores.decided} decided runs told right, {scores.n - scores.decided} open"
    )


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "There is no run of another width."
    parts = [
        f"hidden {hidden}: {sum(runs['outcome'] == 'trains')} of {len(runs)} train"
        for hidden, runs in frame.groupby("hidden")
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
            for row in frame[frame["hidden"] == hidden].to_dict("records"):
                hue = style.colour(row["method"])
                face = hue if row["outcome"] == "trains" else "none"
                height = labels.index(row["label"])
                (point,) = axes.plot([row["p"]], [height], "o", color=hue, markerfacecolor=face, markersize=6)
                style.mark(point, row["method"])
            axes.set_yticks(range(len(labels)), labels)
            axes.set_ylim(len(labels) - 0.5, -0.5)
            axes.set_xlim(-0.03, 1.03)
            for edge in (0.1, 0.9):
                axes.axvline(edge, color=style.INK, linewidth=0.6, alpha=0.4)
            axes.set_xlabel("said: probability that it trains")
        return figure


PICTURE: Picture[Evaluation] = Picture(
    name="forecast_widths",
    short="Other widths",
    caption="Runs of hidden 128 and 256, forecast by the fit on hidden 64 as it stands.",
    see=(
        "A point a run, at the probability that it was given after 16 updates: filled where it trained, open where it "
        "was stuck or diverged."
    ),
    read=(Note("Right of 0.9 a run was forecast to train, left of 0.1 to fail."),),
    columns=COLUMNS,
    value="p",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
)
