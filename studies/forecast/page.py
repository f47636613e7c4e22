"""The page of the forecast: how good it is, which link predicts, where it fails, what it was fitted on.

Three studies' rows are on it: `forecast`, its corpus; `later` and `recent`, which are joined. Whichever of the first
two was trained, the others are read from the files beside its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stabkit import methods
from stabkit.figures.drawing import svg
from stabkit.report.cards import card
from stabkit.report.frame import shell, template
from stabkit.results.forecast import logistic
from stabkit.results.forecast.links import FITTED
from stabkit.storage.folder import write_file
from stabkit.words import percent, plain, short
from studies.forecast import baselines, joined_words, which_link
from studies.forecast.baselines import Baselines, Scheme
from studies.forecast.evaluation import BOTH, LONGEST, Evaluation
from studies.forecast.holdouts import HeldOutGroup
from studies.forecast.joined import Joined, rows_beside
from studies.forecast.scores import ForecastScores, score
from studies.rows import StudyRow, digest, from_csv
from studies.study import Study

KEY, SUFFIX = "forecast", ".html"
AUC, SKILL, DECIDED, RIGHT, BINS, WORST_AUC, WORST_SKILL, EARLY = 0.95, 0.5, 0.6, 0.95, 4, 0.85, 0.25, 0.05
"""What was asked of the forecast before it was fitted."""


def write(study: Study, path: Path, command: str) -> dict[str, Any]:
    """Write the page; returns its content, for `--json` and the terminal."""
    folder = study.path.parent
    evaluation = Evaluation(study.rows if study.design.key == KEY else from_csv(folder / f"{KEY}.csv"))
    joined = Joined.of(evaluation.fitted_rows, rows_beside(folder) if evaluation.both else ())
    beside = Baselines(joined).schemes if evaluation.both else ()
    write_file(path, render(study, evaluation, joined, beside, command).encode())
    drawn = which_link.draw(which_link.select(evaluation))
    write_file(path.with_name(f"{which_link.PICTURE.name}.png"), svg.to_bytes(drawn, "png"))
    return {
        "answer": " ".join(answer(evaluation, beside)).strip(),
        "baselines": baselines.to_json(beside),
        "sentences": joined_words.paragraphs(joined),
        "joined": joined_words.to_json(joined),
        "rows": str(study.path),
        "missing": len(study.missing),
        "counted": evaluation.counted(),
        "asked": [
            {"what": what, "is": is_, "asked": wanted, "met": met} for what, is_, wanted, met in asked(evaluation)
        ],
        "corpus": digest(evaluation.corpus),
    }


@np.errstate(all="ignore")
def render(study: Study, evaluation: Evaluation, joined: Joined, beside: Sequence[Scheme], command: str) -> str:
    """The page as one HTML file."""
    return template(Path(__file__).with_name("page.html.j2")).render(
        **shell(study.design.title, command, answer(evaluation, beside)) | {"elsewhere": ""},  # it needs its text
        baselines=baselines.table(beside),
        baseline_heads=baselines.HEADS,
        easy=_easy(evaluation),
        asked=asked(evaluation),
        of=_of(evaluation),
        miscalibrated=_miscalibrated(evaluation),
        harder=[_harder(group, scores) for group, scores in evaluation.harder],
        bins=_bins(evaluation),
        card=card(which_link.PICTURE, which_link.select(evaluation), evaluation),
        misses=[_miss(*miss) for miss in evaluation.misses],
        links=_links(evaluation),
        grid=[_verified(row, p) for row, p in evaluation.default_grid],
        unseen=_unseen(joined),
        unseen_heads=joined_words.HEADS,
        unseen_sentences=joined_words.paragraphs(joined),
        beyond=[(row.run_id, row.warmup, ", ".join(axes) or "in range") for row, axes in evaluation.beyond],
        counted=evaluation.counted(),
        corpus=_corpus(evaluation.designed),
        depths=sorted({row.depth for row in evaluation.designed}),
        digest=digest(evaluation.corpus),
        commands=[plain(line) for line in study.commands],
        rows=plain(str(study.path)),
        missing=len(study.missing),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in study.failed],
        switches=[],
        group_switches=[],
        lit=(),
    )


def answer(evaluation: Evaluation, beside: Sequence[Scheme]) -> tuple[str, str]:
    """(the page's headline, what it adds for methods that it has not seen; beneath it all hold-outs, the worst group,
    whether it carries over to widths)."""
    if not evaluation.both:
        return f"{len(evaluation.rows)} runs are in: too few to fit a forecast.", ""
    pooled = evaluation.pooled()
    scores, (low, high) = pooled.scores, evaluation.auc_interval(pooled)
    headline, *parts = baselines.headline(beside) or ["16 updates predict which runs train"]
    parts += [
        f"with one method, depth, task, architecture or rate unseen by the fit, the AUC is {short(scores.auc)} "
        f"({short(low)} to {short(high)}); {percent(scores.coverage)} of the forecasts are firm (p ≥ 0.9 or ≤ 0.1), "
        f"and {percent(scores.accuracy)} of these come true"
    ]
    if evaluation.worst:
        group, worst = evaluation.worst
        of = f"groups with {BOTH} runs of each outcome"
        parts.append(f"the worst of these groups is {group.name}, AUC {short(worst.auc)} ({of})")
    if evaluation.width_scores:
        width = evaluation.width_scores
        holds = "it carries over" if width.auc >= WORST_AUC and width.skill > WORST_SKILL else "it does not carry over"
        parts.append(
            f"{holds} to widths 128 and 256 (AUC {short(width.auc)}, skill {short(width.skill)}; {width.right} of "
            f"{width.decided} firm forecasts right)"
        )
    return f"{headline}.", " ".join(f"{part[0].upper()}{part[1:]}." for part in parts)


def asked(evaluation: Evaluation) -> list[tuple[str, str, str, bool]]:
    """(what, its number, what was asked, whether it is met) of everything that was asked before the first fit."""
    if not evaluation.both:
        return []
    scores, counted = evaluation.pooled().scores, evaluation.counted()
    calibrated = evaluation.calibrated()
    table = [
        ("AUC, pooled out of group", short(scores.auc), f"at least {AUC:g}", scores.auc >= AUC),
        *_later(evaluation),
        ("Brier skill against the base rate", short(scores.skill), f"at least {SKILL:g}", scores.skill >= SKILL),
        (
            "firm forecasts (p ≥ 0.9 or ≤ 0.1)",
            percent(scores.coverage),
            f"at least {DECIDED:.0%}",
            scores.coverage >= DECIDED,
        ),
        ("firm forecasts that are right", percent(scores.accuracy), f"at least {RIGHT:.0%}", scores.accuracy >= RIGHT),
        ("bins of p in which as many train as was said", f"{calibrated} of 5", f"at least {BINS}", calibrated >= BINS),
    ]
    if evaluation.worst:
        worst = evaluation.worst[1]
        table.append(
            (
                f"the worst group, {evaluation.worst[0].name}",
                f"AUC {short(worst.auc)}, skill {short(worst.skill)}",
                f"AUC at least {WORST_AUC:g}, skill above {WORST_SKILL:g}",
                worst.auc >= WORST_AUC and worst.skill > WORST_SKILL,
            )
        )
    share = counted["early"] / max(counted["runs"], 1)
    table.append(("runs still early at update 800", percent(share), f"at most {EARLY:.0%}", share <= EARLY))
    return table


def _of(evaluation: Evaluation) -> str:
    """How many forecasts of how many runs the numbers are of, the base rate, the Brier score; with a warm-up too."""
    if not evaluation.both:
        return ""
    parts = []
    for warmup, words in ((0, "Without warm-up"), (LONGEST, f"with a warm-up of {LONGEST} updates")):
        pooled = evaluation.pooled(warmup=warmup)
        scores, runs = pooled.scores, len(set(pooled.run.tolist()))
        parts.append(
            f"{words}, {scores.n} forecasts of {runs} runs, {percent(scores.base_rate)} of them of runs that train: "
            f"AUC {short(scores.auc)}, Brier score {short(scores.brier)}, skill {short(scores.skill)}, "
            f"{percent(scores.coverage)} firm, {percent(scores.accuracy)} of these right"
        )
    return "; ".join(parts) + "."


def _miscalibrated(evaluation: Evaluation) -> str:
    """Which held-out groups keep the bins from being calibrated, each with the lowest bin in which it is not; "" where
    as many are as was asked."""
    if not evaluation.both or evaluation.calibrated() >= BINS:
        return ""
    parts = []
    for group in evaluation.groups:
        if (count := evaluation.calibrated(without=group)) >= BINS:
            worst = next((bin_ for bin_ in evaluation.of_group_bins(group) if bin_.n and not bin_.calibrated), None)
            there = (
                f"; {worst.runs} of its runs are given {percent(worst.probability)} on average, and "
                f"{percent(worst.share)} ({percent(worst.interval[0])} to {percent(worst.interval[1])}) of them train"
                if worst
                else ""
            )
            parts.append(f"without {group.name}, told by a fit that has seen none, {count} of 5 do{there}")
    return f"{evaluation.calibrated()} of 5 bins come true; {'; '.join(parts) or 'no single hold-out is the reason'}."


def _bins(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """(bin, forecasts, runs, mean forecast, share that trained, its interval, whether they agree) of each bin that has
    forecasts."""
    return [
        (
            f"{bin_.low:g} to {bin_.high:g}",
            str(bin_.n),
            str(bin_.runs),
            *map(percent, (bin_.probability, bin_.share)),
            " to ".join(map(percent, bin_.interval)),
            "yes" if bin_.calibrated else "no",
        )
        for bin_ in (evaluation.bins if evaluation.both else ())
        if bin_.n
    ]


def _unseen(joined: Joined) -> list[tuple[str, ...]]:
    """The table of the runs that are joined; nothing where there are none."""
    return (
        [(name, *joined_words.scored(runs, joined)) for name, runs in joined_words.scores(joined)]
        if joined.rows
        else []
    )


EASY = 0.95
"""Of a method's runs: who trains in more says little of a forecast."""


def _easy(evaluation: Evaluation) -> str:
    """The pooled forecasts of methods that nearly always train, apart from the others; "" where there are none."""
    if not evaluation.both:
        return ""
    pooled, by = evaluation.pooled(), dict[str, list[bool]]()
    for row in evaluation.corpus:
        if not row.warmup:
            by.setdefault(row.method, []).append(row.trains)
    easy = {key for key, ends in by.items() if sum(ends) >= EASY * len(ends)}
    inside = np.array([evaluation.corpus[i].method in easy for i in pooled.run], dtype=bool)
    if not inside.any() or inside.all():
        return ""
    theirs, others = (score(pooled.p[some], pooled.label[some]) for some in (inside, ~inside))
    return (
        f"{percent(float(inside.mean()))} of the forecasts are of methods of which {percent(EASY)} or more train: AUC "
        f"{short(theirs.auc)}, skill {short(theirs.skill)} there; AUC {short(others.auc)}, skill {short(others.skill)} "
        "of the others."
    )


def _harder(group: HeldOutGroup, scores: ForecastScores) -> tuple[str, ...]:
    """(who was held out, runs, AUC, skill, share with a word, share of these right)."""
    name = f"methods with {group.value}" if group.axis == "family" else str(group.value)
    return (
        name,
        str(scores.n),
        *map(short, (scores.auc, scores.skill)),
        *map(percent, (scores.coverage, scores.accuracy)),
    )


def _later(evaluation: Evaluation) -> list[tuple[str, str, str, bool]]:
    """The AUC on runs that the choice of links has not seen; nothing while there are none."""
    scores = evaluation.unseen.scores
    if min(scores.trained, scores.n - scores.trained) < BOTH:
        return []
    runs = len(set(evaluation.unseen.run.tolist()))
    what = f"the same of {runs} runs trained after the links were chosen"
    return [(what, f"{short(scores.auc)}, skill {short(scores.skill)}", f"at least {AUC:g}", scores.auc >= AUC)]


def _miss(row: StudyRow, p: float, axis: str) -> dict[str, str]:
    return {**_cells(row, p), "axis": axis, "ratio": short(row.measured.gradient_lowest) if row.measured else "–"}


def _cells(row: StudyRow, p: float) -> dict[str, str]:
    depth = f"{row.encoder_layers}L-{row.decoder_layers}L" if row.encoder_layers else f"{row.decoder_layers}L decoder"
    return {
        "run": row.run_id,
        "method": methods.label(row.method, {}),
        "depth": depth,
        "task": row.task,
        "rate": f"{row.rate:g}",
        "p": short(p),
        "outcome": row.outcome,
        "steps": str(row.steps),
    }


def _verified(row: StudyRow, p: float) -> dict[str, Any]:
    word = logistic.word(p)
    right = {"trains": row.trains, "fails": row.outcome in ("stuck", "diverged")}.get(word)
    return {**_cells(row, p), "word": word, "right": "not firm" if right is None else "right" if right else "wrong"}


def _links(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """(link, its weight a standard deviation, why it is there), the heaviest first."""
    if not evaluation.both:
        return []
    order = sorted(zip(FITTED, evaluation.whole.weight.tolist(), strict=True), key=lambda pair: -pair[1])
    return [(link.label, short(weight) if weight else "0", link.reason) for link, weight in order]


def _corpus(rows: Sequence[StudyRow]) -> list[tuple[str, list[str]]]:
    """A row a method: at each depth how many runs train, are stuck, diverge, are early."""
    depths = sorted({row.depth for row in rows})
    table = []
    for key in dict.fromkeys(row.method for row in rows):
        counts = [Counter(row.outcome for row in rows if (row.method, row.depth) == (key, depth)) for depth in depths]
        cells = [" + ".join(f"{n} {word}" for word, n in sorted(count.items())) for count in counts]
        table.append((methods.label(key, {}), cells))
    return table
