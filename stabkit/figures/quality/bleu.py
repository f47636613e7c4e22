"""BLEU against depth: DeepNet Fig. 6 and Table 2, with the search and the signature that the numbers belong to.

A translation is of a run's last weights over the whole test set (`stabkit sweep --bleu`). Diverged weights translate
nothing: 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import points, quality
from stabkit.figures.shared.comparison import FACTS, depth_rank, shown
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, several, short
from stabkit.storage.store import Run

COLUMNS = (*FACTS, "layers", "beam", "bleu", "perplexity", "token_accuracy", "length_ratio", "signature")


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a translation; of several test sets each is a condition, as is each of a run's searches."""
    rows = []
    texts = {translation.spec.sentences for run in runs for translation in run.translations}
    for placed in shown(runs):
        facts, searches = placed.facts(), {translation.spec.search for translation in placed.run.translations}
        for translation in placed.run.translations:
            search = quality.words(translation.spec.search) if len(searches) > 1 else ""
            text = f"test set {translation.spec.sentences[:6]}" if len(texts) > 1 else ""
            rows.append(
                {
                    **facts,
                    "condition": listed(placed.condition, search, text),
                    "layers": sum(depth_rank(placed.run.spec)[:1]),
                    "beam": translation.spec.search.beam,
                    "bleu": translation.score.bleu,
                    "perplexity": placed.run.outcome.perplexity,
                    "token_accuracy": placed.run.outcome.token_accuracy,
                    "length_ratio": translation.score.length_ratio,
                    "signature": translation.score.signature,
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def words(rows: pd.DataFrame) -> str:
    """A cell: mean BLEU, its range over seeds, perplexity, and what became of the runs."""
    if rows.empty:
        return ""
    scores = rows["bleu"]
    spread = f"\n{scores.min():.1f} to {scores.max():.1f}" if len(rows) > 1 else ""
    fates = [word for word in rows["outcome"] if word in ("stuck", "diverged")]
    fate = f"\n{len(fates)} of {len(rows)} {fates[0]}" if len(rows) > 1 and fates else f"\n{fates[0]}" if fates else ""
    return f"{scores.mean():.1f}  (perplexity {short(rows['perplexity'].median(), 3)}){spread}{fate}"


def title(runs: Sequence[Run]) -> str:
    """Whose BLEU is the highest, at the deepest place with one of 1 or more; where methods compare, if anywhere."""
    frame = select(runs)
    if frame.empty:
        return "BLEU"
    highest = float(frame.groupby(["depth", "condition", "label"])["bleu"].mean().max())
    if highest < quality.TRANSLATES:
        return f"No model translates yet: the highest BLEU is {short(highest)}"
    by_place = {
        (str(depth), str(condition)): rows.groupby("label", sort=False)["bleu"].mean()
        for (depth, condition), rows in curves.by_depth(frame).groupby(["depth", "condition"], sort=False)
    }
    translating = [(place, by) for place, by in by_place.items() if by.max() >= quality.TRANSLATES]
    place, by = ([one for one in translating if len(one[1]) > 1] or translating)[-1]
    where = listed(*place)
    best = [str(label) for label in by.index[by == by.max()]]
    if len(by) == 1:
        return f"{best[0]} reaches BLEU {by.max():.1f} at {where}"
    return f"At {where} {several(best, len(by))} has the highest BLEU, {by.max():.1f}"


def alt(frame: pd.DataFrame) -> str:
    means = frame.groupby(["label", "depth", "condition"], sort=False)["bleu"].mean()
    rows = means.head(24).reset_index().itertuples(index=False)
    text = "; ".join(f"{listed(f'{row.label} {row.depth}', str(row.condition))} {row.bleu:.1f}" for row in rows)
    return f"BLEU against depth, one line per method. {text}."


def draw(frame: pd.DataFrame) -> Figure | None:
    """A panel a condition, a line a method over depth; a place a shape where layers in all do not tell them apart."""
    ordered = curves.by_depth(frame)
    depths = list(ordered["depth"].unique())
    apart = ordered.drop_duplicates("depth")["layers"].duplicated().any()
    return curves.draw(
        ordered.assign(panel=ordered["condition"], condition="", place=ordered["depth"].map(depths.index)),
        Curves(
            x="place" if apart else "layers",
            places=depths if apart else (),
            y="bleu",
            x_name="encoder and decoder layers" if apart else "layers",
            x_note="" if apart else ", both stacks together",
            y_label="BLEU (test set)",
            log_y=False,
            middle=points.mean,
            across="factors",
            columns=2,
            height=3.0,
        ),
    )


PICTURE: RunPicture = Picture(
    name="bleu",
    short="BLEU",
    room="quality",
    caption="DeepNet Fig. 6 and Table 2 (BLEU after a fixed number of updates); Very Deep Transformers Tables 1 and 3.",
    see="BLEU of the test set against depth; several seeds are a mean with a band from lowest to highest.",
    read=(
        Note(
            "Shapes with the same total of layers stand next to each other. A stuck run scores at chance level, a "
            "diverged run 0 (the numbers say which). Length ratio: translated length over reference length."
        ),
    ),
    columns=COLUMNS,
    value="bleu",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No translations: run stabkit sweep --bleu.",
    optional=True,
)
