"""Which system translates better than which: Very Deep Transformers Table 3, by the paired bootstrap.

All systems were given the same sentences and the same search; they are resampled together, so that every pair is judged
on the same 1,000 corpora.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from stabkit.figures.drawing import lettering, style
from stabkit.figures.picture import Note, Picture, RunPicture
from stabkit.figures.shared import quality
from stabkit.figures.shared.comparison import FACTS, Condition, Shown, shown
from stabkit.figures.shared.once import once
from stabkit.figures.shared.words import listed, short
from stabkit.quality import bleu
from stabkit.storage.store import Run

MOST = 14
"""Systems in the matrix; of more, those with the highest BLEU."""
COLUMNS = (
    *(*FACTS, "against", "against_depth", "against_condition", "bleu", "difference", "low", "high", "p", "sign"),
    *("search", "signature", "systems"),
)
FILLS = {"+": "#9fc8ea", "-": "#f6b98a", "=": "#e4e7ec"}
"""Blue, orange, grey: apart for every kind of colour-blindness, and dark text is readable on all three."""
ROW, HEAD, LETTER, WORD, SCORE, CELL = 0.3, 0.36, 0.3, 0.068, 0.6, 0.4
"""Inches: a row, what stands over the rows, the systems' letters, a character of their names, their BLEU, a column."""
LONGEST = 45
"""Characters of a name."""
LETTERS = "abcdefghijklmn"


def systems(runs: Sequence[Run]) -> list[Shown]:
    """Every method, depth and condition once, by its lowest seed; those translated alike, shallow before deep."""
    pairs = quality.alike(runs)
    first: dict[tuple[str, tuple[int, int], Condition], Shown] = {}
    for placed in shown(runs):  # in the order of seeds
        if placed.run.run_id in pairs:
            first.setdefault((placed.variant, placed.shape, placed.condition), placed)
    return list(first.values())


@once
def select(runs: Sequence[Run]) -> pd.DataFrame:
    """One row an ordered pair of systems."""
    every, by_run = systems(runs), quality.alike(runs)
    score = {placed.run.run_id: by_run[placed.run.run_id].score.bleu for placed in every}
    best = sorted(every, key=lambda placed: -score[placed.run.run_id])[:MOST]
    kept = [placed for placed in every if placed in best]
    sizes = Counter(len(bleu.counted(by_run[placed.run.run_id])) for placed in kept)
    if len(kept) < 2 or len(sizes) > 1 or 0 in sizes:
        return pd.DataFrame([], columns=list(COLUMNS))
    counts = [bleu.counted(by_run[placed.run.run_id]) for placed in kept]
    samples = bleu.resampled(counts)
    whole = [bleu.bleu(result.sum(axis=0)) for result in counts]
    rows = []
    for i, placed in enumerate(kept):
        result = by_run[placed.run.run_id]
        for j, other in enumerate(kept):
            if i != j:
                pair = bleu.from_samples(whole[i], whole[j], samples[i], samples[j])
                rows.append(
                    {
                        **placed.facts(),
                        "against": other.label,
                        "against_depth": other.run.spec.depth,
                        "against_condition": other.condition.text,
                        "bleu": result.score.bleu,
                        "difference": pair.difference,
                        "low": pair.low,
                        "high": pair.high,
                        "p": pair.p,
                        "sign": pair.sign,
                        "search": quality.words(result.spec.search),
                        "signature": result.score.signature,
                        "systems": len(every),
                    }
                )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def title(runs: Sequence[Run]) -> str:
    """The system with the highest BLEU, and how many it is significantly above."""
    frame = select(runs)
    if frame.empty:
        return "Which system translates better than which"
    if frame["bleu"].max() < quality.TRANSLATES:
        return f"No system translates: the highest BLEU is {short(float(frame['bleu'].max()))}"
    best = frame[frame["run"] == frame["run"].iloc[int(frame["bleu"].argmax())]]
    if frame.loc[frame["bleu"] >= quality.TRANSLATES, "run"].nunique() == 1:
        return f"Only {_name(best.iloc[0])} translates at all, BLEU {best['bleu'].iloc[0]:.1f}"
    above, others = int((best["sign"] == "+").sum()), len(best)
    name = _name(best.iloc[0])
    many = f"{above} of {others} others" if others > 1 else "the other" if above else "no other"
    beyond = f" (the best {others + 1} of {best['systems'].iloc[0]})" if best["systems"].iloc[0] > others + 1 else ""
    return f"Of all {name} has the highest BLEU, {best['bleu'].iloc[0]:.1f}: significantly above {many}{beyond}"


def _name(row: pd.Series[Any]) -> str:
    return listed(f"{row['label']} {row['depth']}", row["condition"])


def rows(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """(name, its row of the matrix) of every system."""
    return [(_name(rows.iloc[0]), rows) for _, rows in frame.groupby("run", sort=False)]


def alt(frame: pd.DataFrame) -> str:
    texts = [f"{name} {own['bleu'].iloc[0]:.1f}: {_counted(own)}" for name, own in rows(frame)]
    return f"Matrix of significant differences in BLEU. {'; '.join(texts)}."


def _counted(rows: pd.DataFrame) -> str:
    words = {"+": "above", "-": "below", "=": "level with"}
    return ", ".join(f"{words[sign]} {n}" for sign in words if (n := int((rows["sign"] == sign).sum())))


def draw(frame: pd.DataFrame) -> Figure:
    """The matrix."""
    lines = [(_ended(name, group), group) for name, group in rows(frame)]
    count, names = len(lines), LETTER + WORD * max(len(name) for name, _ in lines) + 0.1
    tall = HEAD + ROW * count + 0.5
    figure = Figure(figsize=(style.WIDTH, tall))
    wide = names + SCORE + CELL * count
    axes = figure.add_axes((0.0, 0.5 / tall, wide / style.WIDTH, ROW * count / tall), facecolor="none")
    axes.set_axis_off()
    axes.set_xlim(0, wide)
    axes.set_ylim(count, 0)
    axes.text(names + SCORE / 2, -0.4, "BLEU", ha="center", va="center", fontsize=8)
    for at, (name, group) in enumerate(lines):
        _row(axes, at, name, group, names)
    first = frame.iloc[0]
    left = f"; the {count} highest of {first['systems']} systems" if first["systems"] > count else ""
    note = f"+ the row is significantly above the column, − below, = neither (p < {bleu.LEVEL:g}){left}"
    figure.text(0.008, 0.3 / tall, note, fontsize=7.5)
    verdict = lettering.safe(f"{first['search']}; sacreBLEU {first['signature']}", 130)
    figure.text(0.008, 0.1 / tall, verdict, fontsize=7, alpha=0.75)
    return figure


def _ended(name: str, rows: pd.DataFrame) -> str:
    """The name, and the outcome of a run that does not train."""
    outcome = str(rows["outcome"].iloc[0])
    return lettering.safe(name + (f" ({outcome})" if outcome in ("stuck", "diverged") else ""), LONGEST)


def _row(axes: Axes, at: int, name: str, rows: pd.DataFrame, names: float) -> None:
    method, middle = str(rows["method"].iloc[0]), at + 0.5
    axes.text(0.1, middle, LETTERS[at], va="center", fontsize=8)
    axes.text(names + SCORE + CELL * (at + 0.5), -0.4, LETTERS[at], ha="center", va="center", fontsize=8)
    style.mark(axes.text(LETTER, middle, name, va="center", fontsize=8, color=style.colour(method)), method)
    score = axes.text(names + SCORE / 2, middle, f"{rows['bleu'].iloc[0]:.1f}", ha="center", va="center", fontsize=8)
    style.mark(score, method)
    places = [place for place in range(len(rows) + 1) if place != at]
    for place, sign in zip(places, rows["sign"], strict=True):
        left = names + SCORE + CELL * place
        patch = axes.add_patch(Rectangle((left + 0.02, at + 0.06), CELL - 0.04, 0.88, facecolor=FILLS[sign]))
        patch.set_edgecolor("none")
        text = axes.text(
            left + CELL / 2,
            middle,
            sign.replace("-", "−"),
            ha="center",
            va="center",
            fontsize=10 if sign != "=" else 9,
            fontweight="bold" if sign != "=" else "normal",
            color="#000000",
        )
        style.mark(patch, method)
        style.mark(text, method)


PICTURE: RunPicture = Picture(
    name="significance",
    short="Who translates better",
    room="quality",
    caption=(
        "Very Deep Transformers Table 3 (ADMIN at seven shapes, WMT'14 En-Fr; p < 0.05, bootstrap of 1,000 samples)."
    ),
    see=(
        "Row against column: + the row's BLEU is significantly higher, − significantly lower, = no significant "
        "difference (paired bootstrap over the test sentences, 1,000 samples, p < 0.05)."
    ),
    read=(
        Note(
            "The test covers the choice of sentences, not the seed: of several seeds only the lowest is shown. "
            "One pair in twenty differs by chance alone. Between scores below 1 the signs reflect length and "
            "chance, not quality."
        ),
    ),
    columns=COLUMNS,
    value="difference",
    select=select,
    draw=draw,
    title=title,
    alt=alt,
    none="No two systems have comparable translations: run stabkit sweep --bleu.",
    grid=False,
    optional=True,
)
