"""The page of a watch: what was seen in training, and when."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stabkit.figures.model_curves import WATCHED
from stabkit.report.cards import card
from stabkit.report.frame import page, shell
from stabkit.results.own.alarm import ALARM_FALSE, ALARM_RECALL, Alarm
from stabkit.storage.folder import reports, write_file
from stabkit.storage.watched import Watched
from stabkit.wording.anatomy import kinds
from stabkit.words import fitting, plain, scientific, updates

TITLE = "What happened in training?"
WHAT = {
    "finite": "a number is not finite",
    "step": "weights moved by more than their norm",
    "stream": "the stream is near the largest number of its type",
    "gradient": "the lowest layer's gradient is far below the top layer's",
    "loss": "the loss is three times the first one",
    "level": "the logits hardly depend on the input",
    "logits": "an attention logit is far beyond its first one",
    "jump": "one update was much larger than earlier ones",
    "start": "the first loss is far above that of a uniform guess",
    "owned": "some trainable tensors belong to no optimiser",
    "reach": "some tensors receive no gradient",
    "still": "some tensors with a gradient do not move",
    "undone": "something other than the optimizer writes to the weights",
    "resume": "the optimizer begins with an empty state",
    "small": "gradients are near the smallest number of their type",
    "outlook": "the loss falls as in trainings that fail",
    "rate": "the rate is far above the usual one",
    "chance": "the forward draws from what the watch cannot put back",
}
"""{link of a warning: what it says, in short}."""
EXPLODES = "the lowest layer's gradient is far above the top layer's"
"""Of the gradient, where it grows on its way down."""


def write(watched: Watched, out: Path, command: str) -> Path:
    """Write the page; returns where."""
    path = reports(out) / page_name(watched.watch_id)
    write_file(path, render(watched, command).encode())
    return path


def page_name(watch_id: str) -> str:
    """Of a page: a watch's folder may be called anything."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", watch_id)[:100]
    same = "" if plain == watch_id else f"-{hashlib.sha256(os.fsencode(watch_id)).hexdigest()[:8]}"
    return f"own-{plain}{same}.html"


@np.errstate(all="ignore")
def render(watched: Watched, command: str) -> str:
    """The page as one HTML file."""
    facts = watched.cell.facts
    return page(
        "watch.html.j2",
        shell(TITLE, command, [in_short(watched), answer(watched)]),
        ended=ended(watched),
        alarmed=ALARM_FALSE,
        alarms=[
            {"step": f"{a.step:,}", "link": a.link, "sentence": plain(a.sentence), "advice": a.advice}
            for a in watched.alarms
        ],
        cards=[
            card(figure, frame, watched)
            for figure in sorted(WATCHED, key=lambda figure: _place(figure.name, watched.alarms))
            for frame in [figure.select(watched)]
            if not frame.empty
        ],
        model=plain(facts.model),
        facts=[
            ("watch", watched.watch_id),
            ("updates", f"{facts.steps:,}"),
            ("optimizer", f"{facts.optimizer}, rate {scientific(facts.rate)}" if facts.rate > 0 else facts.optimizer),
            ("parameters", f"{facts.parameters:,}"),
            ("sub-layers", kinds(facts)),
            ("named", f"{facts.sublayers[0].name} … {facts.sublayers[-1].name}"),
            ("found by", plain(facts.how)),
            ("probe batch", f"{facts.tokens:,} tokens, width {facts.width}"),
            ("digest", watched.cell.digest),
        ],
        notes=[plain(note) for note in facts.notes],
    )


def answer(watched: Watched) -> str:
    """One sentence: what was warned of first, or that nothing was."""
    facts = watched.cell.facts
    who = watched.name or facts.model
    if not watched.alarms:
        heard, failed, half = ALARM_RECALL
        return (
            f"{who} was watched for {updates(facts.steps)}: no link of the chain exceeded its limit. Of {failed} "
            f"trainings that failed, {heard} were warned of, half of them by update {half}."
        )
    first, *later = sorted(watched.alarms, key=lambda alarm: alarm.step)
    rest = f", and {len(later) - 1} more" if len(later) > 1 else ""
    further = f" Then, at update {later[0].step:,}: {_what(later[0])}{rest}." if later else ""
    then = f"; {first.advice}" if first.advice else ""
    return f"{who}, update {first.step:,} of {facts.steps:,}: {first.sentence}{then}.{further}"


def in_short(watched: Watched) -> str:
    """The same as far as a headline holds it."""
    cut = "" if watched.ended == "closed" else f" Not closed: its records end at {watched.cell.facts.steps:,}."
    if not watched.alarms:
        return f"No link exceeded its limit in {updates(watched.cell.facts.steps)}.{cut}"
    first = min(watched.alarms, key=lambda alarm: alarm.step)
    when = f"Update {first.step:,}" + f" of {watched.cell.facts.steps:,}" * (not cut)
    what = _what(first)
    then = f"; try {first.change}" if first.change else ""
    said = (f"{first.sentence}{then}", f"{what}{then}", what)
    return fitting(*(f"{when}: {one}.{cut}" for one in said), f"{when}: {what}.")


def _place(figure: str, alarms: Sequence[Alarm]) -> int:
    """Which warning a figure shows; those that show none come last, in their own order."""
    shown = [place for place, alarm in enumerate(alarms) if SHOWN.get(alarm.link) == figure]
    return min(shown, default=len(alarms))


SHOWN = {
    "gradient": "watched_gradient",
    "stream": "watched_stream",
    **dict.fromkeys(("step", "jump", "still", "rate"), "watched_update"),
    **dict.fromkeys(("loss", "level", "start"), "watched_loss"),
}
"""{link of a warning: the figure that shows it}."""


def _what(alarm: Alarm) -> str:
    return EXPLODES if alarm.link == "gradient" and alarm.numbers["ratio"] > 1 else WHAT[alarm.link]


def ended(watched: Watched) -> str:
    """How a watch ended that was not closed; "" for one that was."""
    if watched.ended == "closed":
        return ""
    at = f"after update {watched.cell.facts.steps:,}"
    if not watched.ended:
        return f"This watch was not closed: its records end {at}."
    return f"The watch ended before the training, {at}: {plain(watched.stopped)}"
