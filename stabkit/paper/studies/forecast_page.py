"""The page of the forecast's study: what it is worth, which link predicts, where it fails, what it was fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stabkit import methods
from stabkit.figures.catalogue import STUDIES
from stabkit.figures.forecast import groups as groups_figure
from stabkit.figures.shared.words import percent, plain, short
from stabkit.paper.studies.study import Study
from stabkit.report.cards import card
from stabkit.report.html import shell, template
from stabkit.results.forecast import model
from stabkit.results.forecast.holdouts import Group
from stabkit.results.forecast.judged import BOTH, LONGEST, Judged
from stabkit.results.forecast.links import FITTED
from stabkit.results.forecast.rows import Row, digest
from stabkit.results.forecast.scores import Scores
from stabkit.storage.folder import write_file

AUC, SKILL, DECIDED, RIGHT, BINS, WORST_AUC, WORST_SKILL, EARLY = 0.95, 0.5, 0.6, 0.95, 4, 0.85, 0.25, 0.05
"""What was asked of the forecast before it was fitted."""


def write(study: Study, path: Path, command: str) -> dict[str, Any]:
    """Write the page; returns what it says, for `--json` and the terminal."""
    judged = Judged(study.rows)
    write_file(path, render(study, judged, command).encode())
    return {
        "answer": answer(judged),
        "rows": str(study.path),
        "missing": len(study.missing),
        "counted": judged.counted(),
        "asked": [{"what": what, "is": is_, "asked": wanted, "met": met} for what, is_, wanted, met in asked(judged)],
        "corpus": digest(judged.corpus),
    }


@np.errstate(all="ignore")
def render(study: Study, judged: Judged, command: str) -> str:
    """The page as one HTML file."""
    cards = [card(figure, figure.select(judged), judged) for figure in STUDIES]
    return template(Path(__file__).with_name("forecast.html.j2")).render(
        **shell(study.item.title, command, answer(judged)) | {"elsewhere": ""},  # it needs its text
        asked=asked(judged),
        of=_of(judged),
        miscalibrated=_miscalibrated(judged),
        harder=[_harder(group, own) for group, own in judged.harder],
        cards=cards,
        misses=[_miss(*one) for one in judged.misses],
        links=_links(judged),
        grid=[_verified(row, p) for row, p in judged.default_grid],
        beyond=[(row.run_id, row.warmup, ", ".join(axes) or "in range") for row, axes in judged.beyond],
        counted=judged.counted(),
        corpus=_corpus(judged.designed),
        depths=sorted({row.depth for row in judged.designed}),
        digest=digest(judged.corpus),
        commands=[plain(line) for line in study.commands],
        rows=plain(str(study.path)),
        missing=len(study.missing),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in study.failed],
        switches=[],
        group_switches=[],
        lit=(),
    )


def answer(judged: Judged) -> str:
    """The page's one sentence: what sixteen updates tell, the worst group, and whether it carries over to widths."""
    if not judged.both:
        return f"{len(judged.rows)} runs are in: too few to fit a forecast."
    pooled = judged.pooled()
    own, (low, high) = pooled.scores, judged.auc_interval(pooled)
    parts = [
        f"Sixteen updates without warm-up tell who will train with an AUC of {short(own.auc)} ({short(low)} to "
        f"{short(high)}), where the fit has not seen one of method, depth, task, architecture and rate; "
        f"{percent(own.coverage)} of these forecasts are a word, right in {percent(own.accuracy)}"
    ]
    if judged.worst:
        group, worst = judged.worst
        name = groups_figure.name(group.axis, group.value)
        parts.append(f"of groups with {BOTH} runs of each outcome {name} is told worst, AUC {short(worst.auc)}")
    if judged.width_scores:
        width = judged.width_scores
        holds = "it carries over" if width.auc >= WORST_AUC and width.skill > WORST_SKILL else "it does not carry over"
        parts.append(f"{holds} to widths 128 and 256 (AUC {short(width.auc)}, skill {short(width.skill)})")
    return "; ".join(parts) + "."


def asked(judged: Judged) -> list[tuple[str, str, str, bool]]:
    """(what, its number, what was asked, whether it is met) of everything that was asked before the first fit."""
    if not judged.both:
        return []
    own, counted = judged.pooled().scores, judged.counted()
    calibrated = judged.calibrated()
    found = [
        ("AUC, pooled out of group", short(own.auc), f"at least {AUC:g}", own.auc >= AUC),
        *_later(judged),
        ("Brier skill against the base rate", short(own.skill), f"at least {SKILL:g}", own.skill >= SKILL),
        ("forecasts that are a word", percent(own.coverage), f"at least {DECIDED:.0%}", own.coverage >= DECIDED),
        ("of these right", percent(own.accuracy), f"at least {RIGHT:.0%}", own.accuracy >= RIGHT),
        ("bins in which what is said comes true", f"{calibrated} of 5", f"at least {BINS}", calibrated >= BINS),
    ]
    if judged.worst:
        worst = judged.worst[1]
        found.append(
            (
                f"the worst group, {groups_figure.name(judged.worst[0].axis, judged.worst[0].value)}",
                f"AUC {short(worst.auc)}, skill {short(worst.skill)}",
                f"AUC at least {WORST_AUC:g}, skill above {WORST_SKILL:g}",
                worst.auc >= WORST_AUC and worst.skill > WORST_SKILL,
            )
        )
    share = counted["early"] / max(counted["runs"], 1)
    found.append(("runs still early at update 800", percent(share), f"at most {EARLY:.0%}", share <= EARLY))
    return found


def _of(judged: Judged) -> str:
    """How many forecasts of how many runs the numbers are of, the base rate, the Brier score; with a warm-up too."""
    if not judged.both:
        return ""
    told = []
    for warmup, words in ((0, "Without warm-up"), (LONGEST, f"with one of {LONGEST}")):
        pooled = judged.pooled(warmup=warmup)
        own = pooled.scores
        told.append(
            f"{words} {own.n} forecasts of {len(set(pooled.run.tolist()))} runs, {percent(own.base_rate)} of them of "
            f"runs that train: AUC {short(own.auc)}, Brier score {short(own.brier)}, skill {short(own.skill)}, "
            f"{percent(own.coverage)} with a word, {percent(own.accuracy)} of these right"
        )
    return "; ".join(told) + "."


def _miscalibrated(judged: Judged) -> str:
    """Which held-out groups keep the bins from coming true, each with the lowest bin in which it misses; "" where as
    many come true as was asked."""
    if not judged.both or judged.calibrated() >= BINS:
        return ""
    told = []
    for group in judged.groups:
        if (count := judged.calibrated(without=group)) >= BINS:
            own = judged.of_group_bins(group)
            worst = next((one for one in own if one.n and not one.calibrated), None)
            name = groups_figure.name(group.axis, group.value)
            there = (
                f"; {worst.runs} of its runs are given {percent(worst.said)} on average, and {percent(worst.share)} "
                f"({percent(worst.interval[0])} to {percent(worst.interval[1])}) of them train"
                if worst
                else ""
            )
            told.append(f"without {name}, told by a fit that has seen none, {count} of 5 do{there}")
    return f"{judged.calibrated()} of 5 bins come true; {'; '.join(told) or 'no single hold-out is the reason'}."


def _harder(group: Group, own: Scores) -> tuple[str, ...]:
    """(who was held out, runs, AUC, skill, share with a word, share of these right)."""
    name = f"methods with {group.value}" if group.axis == "family" else str(group.value)
    return name, str(own.n), short(own.auc), short(own.skill), percent(own.coverage), percent(own.accuracy)


def _later(judged: Judged) -> list[tuple[str, str, str, bool]]:
    """The AUC on runs that the choice of links has not seen; nothing while there are none."""
    own = judged.unseen.scores
    if min(own.trained, own.n - own.trained) < BOTH:
        return []
    runs = len(set(judged.unseen.run.tolist()))
    what = f"the same of {runs} runs trained after the links were chosen"
    return [(what, f"{short(own.auc)}, skill {short(own.skill)}", f"at least {AUC:g}", own.auc >= AUC)]


def _miss(row: Row, p: float, axis: str) -> dict[str, str]:
    return {**_told(row, p), "axis": axis, "ratio": short(row.measured.gradient_lowest) if row.measured else "–"}


def _told(row: Row, p: float) -> dict[str, str]:
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


def _verified(row: Row, p: float) -> dict[str, Any]:
    word = model.word(p)
    right = {"likely trains": row.trains, "likely stuck": row.outcome in ("stuck", "diverged")}.get(word)
    return {**_told(row, p), "word": word, "right": "open" if right is None else "right" if right else "wrong"}


def _links(judged: Judged) -> list[tuple[str, str, str]]:
    """(link, its weight a standard deviation, why it is there), the heaviest first."""
    if not judged.both:
        return []
    order = sorted(zip(FITTED, judged.whole.weight.tolist(), strict=True), key=lambda one: -one[1])
    return [(link.label, short(weight) if weight else "0", link.reason) for link, weight in order]


def _corpus(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """A row a method: at each depth how many runs train, are stuck, diverge, are early."""
    depths = sorted({row.depth for row in rows})
    table = []
    for key in dict.fromkeys(row.method for row in rows):
        counts = [Counter(row.outcome for row in rows if (row.method, row.depth) == (key, depth)) for depth in depths]
        cells = [" + ".join(f"{n} {word}" for word, n in sorted(count.items())) for count in counts]
        table.append((methods.label(key, {}), cells))
    return table
