"""BLEU against depth: DeepNet Fig. 6 and Table 2, with the search and the signature that the numbers belong to.

A translation is of a run's last weights over the whole test set (`stabkit sweep --bleu`). Diverged weights translate
nothing: 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures import curves, quality
from stabkit.figures.comparison import FACTS, depth_rank, listed, number, several, short, shown
from stabkit.figures.curves import Curves
from stabkit.store import Run

NAME = "bleu"
SHORT = "BLEU"
INDEX: str | None = None
VALUE = "bleu"
OPTIONAL = True
CAPTION = "DeepNet Fig. 6 and Table 2 (BLEU after a fixed number of updates); Very Deep Transformers Tables 1 and 3."
READ = (
    "BLEU of the test set against depth; several seeds are a mean with a band from least to greatest. A run that is "
    "stuck scores what chance gives, one that diverged 0 (the table says which)."
)
COLUMNS = (*FACTS, "layers", "beam", "bleu", "perplexity", "token_accuracy", "brevity", "signature")


def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a translation."""
    rows = []
    for each in shown(runs):
        facts, searches = each.facts(), {one.spec.search for one in each.run.translations}
        for one in each.run.translations:
            search = quality.words(one.spec.search) if len(searches) > 1 else ""
            rows.append(
                {
                    **facts,
                    "condition": listed(each.condition, search),
                    "layers": sum(depth_rank(each.run.spec)[:1]),
                    "beam": one.spec.search.beam,
                    "bleu": one.score.bleu,
                    "perplexity": number(each.run.outcome.get("perplexity")),
                    "token_accuracy": number(each.run.outcome.get("token_accuracy")),
                    "brevity": one.score.brevity,
                    "signature": one.score.signature,
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def words(own: pd.DataFrame) -> str:
    """A cell: mean BLEU, its range over seeds, perplexity, and what became of the runs."""
    if own.empty:
        return ""
    scores = own["bleu"]
    spread = f"\n{scores.min():.1f} to {scores.max():.1f}" if len(own) > 1 else ""
    fates = [word for word in own["outcome"] if word in ("stuck", "diverged")]
    fate = f"\n{len(fates)} of {len(own)} {fates[0]}" if len(own) > 1 and fates else f"\n{fates[0]}" if fates else ""
    return f"{scores.mean():.1f}  (perplexity {short(own['perplexity'].median(), 3)}){spread}{fate}"


def title(runs: Sequence[Run]) -> str:
    """Whose BLEU is the best at the deepest place, and what it has at the shallowest."""
    frame = select(runs)
    if frame.empty:
        return "BLEU"
    if frame["bleu"].max() < quality.TRANSLATES:
        return f"No model translates yet: the highest BLEU is {short(float(frame['bleu'].max()))}"
    deepest = frame[frame["layers"] == frame["layers"].max()]
    by = deepest.groupby("label", sort=False)["bleu"].mean()
    best = [str(label) for label in by.index[by == by.max()]]
    depth = str(deepest["depth"].iloc[0])
    if len(by) == 1:
        return f"{best[0]} reaches BLEU {by.max():.1f} at {depth}"
    return f"At {depth} {several(best, len(by))} has the highest BLEU, {by.max():.1f}"


def alt(frame: pd.DataFrame) -> str:
    """What the picture shows, for those who do not see it."""
    if frame.empty:
        return "Nothing was translated."
    means = frame.groupby(["label", "depth"], sort=False)["bleu"].mean()
    rows = means.head(24).reset_index().itertuples(index=False)
    told = "; ".join(f"{row.label} {row.depth} {row.bleu:.1f}" for row in rows)
    return f"BLEU against depth, a line a method. {told}."


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a condition, a line a method over depth."""
    ordered = frame.sort_values("layers", kind="stable")
    return curves.draw(
        ordered.assign(panel=ordered["condition"], condition=""),
        Curves(
            x="layers",
            y="bleu",
            x_label="layers, both stacks together",
            y_label="BLEU (test set)",
            none="Nothing was translated: stabkit sweep --bleu.",
            log_y=False,
            middle=pd.Series.mean,
            across="factors",
            columns=2,
            height=3.0,
        ),
    )
