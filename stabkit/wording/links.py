"""What a probe of a user's model says, for terminal, page, Python and JSON alike: the sentence, the links of every
rate. In one file, because every sentence of a verdict stands in it beside the others that must agree with it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from stabkit.results.forecast.logistic import Word, word
from stabkit.results.intervals import wilson
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.cure import ALWAYS, BY_KEY, first_tried
from stabkit.results.own.decided import losses
from stabkit.results.own.forecast import (
    DRAWN,
    FEW_SCORES,
    LEAST_CLASSES,
    LEAST_ROWS,
    LOST,
    NO_SCORES,
    ONE_BATCH,
    OPTIMIZER,
    OTHER,
    RATE,
    REGRESSION,
    TESTED,
    UNRAMPED,
    USUAL,
    Healthy,
    OwnForecast,
    ours,
)
from stabkit.results.own.judged import Judged, judged
from stabkit.results.own.looks import TEN, Decision, tens
from stabkit.results.own.measured import SILENT, TOP, UPDATES
from stabkit.results.own.rules import NAMES, LinkVerdict
from stabkit.results.own.verdict import Verdict
from stabkit.wording import chain
from stabkit.wording.chain import law
from stabkit.words import duration, fitting, listed, scientific, short, updates

UNITS = {
    "gradient": "lowest ÷ top layer's",
    "scores": f"nats of information that the logits hold on the input, at 1 to {TOP:g} × the rate",
    "update": "‖ΔF‖ ÷ ‖F‖",
    "stream": "rms of the last layer's output ÷ first's input",
    "tokens": "mean cosine between tokens",
    "loss": "fall of the loss in nats",
    "finite": "",
}
DIGITS = 2
"""Of a probability."""


def answer(judged: Judged) -> str:
    """What becomes of every depth, what the deepest's word rests on, which link explains it, and the change that was
    seen to mend it."""
    worst, first = judged.worst, judged.cells[0].facts
    who = first.factory.rpartition(":")[2]
    others = [_elsewhere(verdict) for verdict in judged.verdicts if verdict is not worst]
    deepest = max((cell.facts for cell in judged.cells), key=lambda facts: facts.depth or 0)
    high = deepest.guess.high(deepest.start) if deepest.guess is not None and not deepest.regression else ""
    more = [_over(judged), _fast(judged), _went_back(judged) or why(worst), "; ".join(others), high, _mended(judged)]
    sentences = [_outcome(who, worst, deepest.warmup, several=len(judged.verdicts) > 1)]
    sentences += [f"{sentence[0].upper()}{sentence[1:]}" for sentence in more if sentence]
    return " ".join(f"{sentence}." for sentence in sentences)


def _over(judged: Judged) -> str:
    """`its time was over: --time 240 trains it on` where that ended a training without a firm word; "" elsewhere."""
    depth = judged.worst.depths[-1].depth or 0
    within = max((cell.facts.within for cell in judged.cells if cell.depth == depth), default=0)
    if not within or judged.worst.decision.firm:
        return ""
    return f"its time was over: --time {2 * within:g} trains it on"


def _went_back(judged: Judged, learnt: float = 0.15) -> str:
    """`its loss was 2.6 at update 90 and is 4.1 at 150: …`, which no link says; "" where it never had `learnt` so much
    of its level, or kept it."""
    worst = judged.worst
    if not worst.word.endswith("fails") or worst.decision.basis != "seen" or worst.decision.diverges:
        return ""
    place = worst.depths[-1].depth, worst.lr, worst.depths[-1].seed
    cell = next(cell for cell in judged.cells if (cell.facts.depth, cell.facts.lr, cell.seed) == place)
    means, level = tens(losses(cell)), min(cell.facts.frequencies or math.inf, cell.facts.start)
    low = min(means, default=level)
    if not (level - low > learnt * level and means[-1] - low > (level - low) / 2):
        return ""
    at, last = TEN * (means.index(low) + 1), TEN * len(means)
    return f"its loss was {low:.3g} at update {at} and is {means[-1]:.3g} at {last}: it learnt, then lost most of that"


def _fast(judged: Judged) -> str:
    """`6e-2 is 60 times AdamW's usual 1e-3; …` of a rate beyond those of all tested models; "" of any other."""
    if RATE not in judged.worst.forecast.axes:
        return ""
    facts = next(cell.facts for cell in judged.cells if cell.facts.lr == judged.worst.lr)
    name, low, high = next(iter(facts.optimizers)), *TESTED
    usual = USUAL[name]
    return (
        f"{scientific(facts.rate)} is {short(facts.rate / usual)} times the usual {scientific(usual)} of {name}; "
        f"tested models had 1/{1 / low:.0f} to {high:.0f} times it"
    )


def _mended(judged: Judged) -> str:
    """`with β = … it trains: its loss is 1.31 after 150 updates, 3.16 without: …`; where no change was seen to, what a
    forecast alone says, or how many were tried; of what probably trains what to do if it does not."""
    if judged.worst.word == "probably trains":
        return f"train it; if it stalls, {BY_KEY[_first(judged)].label} comes first"
    left = untried(judged) if judged.untried else ""
    cure, many = judged.cure, len(judged.cures)
    if cure is None:
        tried = f"none of {many} changes tried makes" if many > 1 else "the change tried does not make"
        return "; ".join(filter(None, (f"{tried} it train" * bool(many), left)))
    if cure.basis == "forecast" or cure.loss is None:
        said = f"by its forecast alone ({probability(cure.probability or 0.0)})"
        return "; ".join(filter(None, (f"with {cure.label} it {cure.word}, {said}: `{cure.code}`", left)))
    beside = f", {_number(cure.without)} without" if cure.without is not None else ""
    others = (own for own in judged.cures if own.trains and own.updates == cure.updates and own != cure)
    also = "".join(f", {_number(own.loss)} with {own.label}" for own in others)
    loss = f"The loss is {_number(cure.loss)} after {updates(cure.updates)}{also}{beside}"
    return f"with {cure.label} it {cure.word}: `{cure.code}`. " + "; ".join(filter(None, (loss, left * (not also))))


TRAINING = ("rate", "warmup", "clip")
"""Edits that every model takes."""


def _first(judged: Judged) -> str:
    """The change of the training to try first, but no higher rate: whether one of the model applies is not known before
    it is made."""
    deepest = max(judged.cells, key=lambda cell: cell.depth)
    keys = (key for key in first_tried(judged.worst, [deepest]) if key not in ALWAYS)
    return next(key for key in keys if BY_KEY[key].edit in TRAINING and not 0 < BY_KEY[key].by < 1)


def untried(judged: Judged) -> str:
    """`for 4 more changes there was no time: --time 240 tries more`."""
    more = f"{judged.untried} {'more ' * bool(judged.cures)}change{'s' * (judged.untried != 1)}"
    return f"for {more} there was no time: --time {2 * judged.time:g} tries more"


def following(judged: Judged, factory: str, call: str) -> str:
    """What to do next: the change that mends it and the probe that was made again, a command, two lines of a training.
    `call`: how that probe was typed."""
    worst, depths = judged.worst, [own.depth for own in judged.worst.depths if own.depth]
    given = f" --depths {','.join(map(str, depths))}" if depths else ""
    if judged.cure is not None:
        rate = " at that rate" * (BY_KEY[judged.cure.change].edit == "rate")
        return f"{judged.cure.code}\nthen: {call}  # of the changed model{rate}: does it train now?"
    if judged.untried:
        return f"stabkit probe {factory}{given} --time {2 * judged.time:g}  # tries more changes"
    if ONE_BATCH in worst.forecast.axes:
        return "return (model, loss) from the factory, with a new batch at each step in loss(model, step); probe again"
    if worst.word == "undecided" and worst.decision.basis != "seen" and judged.trainable:
        return f"stabkit probe {factory}{given}  # it trains on until that decides"
    if worst.decision.diverges and not worst.decision.updates:
        return f"stabkit probe {factory}{given}  # once the model's first numbers are finite"
    if worst.word == "fails" and judged.mendable and not judged.time:
        return f"stabkit probe {factory}{given}  # tries changes"
    alike = len({own.decision.word for own in worst.depths}) == len(judged.verdicts) == 1 and judged.mendable
    if alike or (worst.word == "undecided" and len(judged.verdicts) == 1):
        return f"stabkit probe {factory}{given} --lr 1e-4,3e-4,1e-3  # does the rate break it, or the depth?"
    return "watch = stabkit.watch(model, optimizer) before your loop, watch.close() after it"


def announced(depths: int, seconds: float, most: float, *, quick: bool) -> str:
    """`3 depths, one seed each to begin with: about 25 s; then training on, and changes where it fails: at most 2 min
    (--time)`."""
    begin = f"{depths} depth{'s' * (depths != 1)}, one seed each to begin with: about {duration(seconds)}"
    more = f"; then training on, and changes where it fails: at most {duration(most)} (--time)"
    return begin if quick else begin + more


def _verb(word: str) -> str:
    return f"is {word}" if word == "undecided" else word


def by_depth(verdict: Verdict) -> str:
    """`trains to 6 layers, fails from 12 on`; of one depth or one word `fails at 24 layers`, `trains at 6 to 24
    layers`; `fails` of a factory without a depth."""
    if verdict.depths[-1].depth is None:
        return _verb(verdict.word)
    return along([(own.depth or 0, own.decision.word) for own in verdict.depths], "layers")


def along(words: Sequence[tuple[int, Word]], unit: str) -> str:
    """`trains to 6 layers, fails from 12 on`, `fails at 6 layers, is undecided at 12`, of (size, word) by size."""
    groups = [(word, [size for size, _ in group]) for word, group in groupby(words, lambda own: own[1])]
    (word, sizes), *rest = groups
    ends = " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))
    all_below = rest and word.endswith("trains")
    parts = [f"{_verb(word)} {f'to {sizes[-1]}' if all_below else f'at {ends}'} {unit}"]
    for place, (word, (first, *more)) in enumerate(rest, 1):
        many = f"from {first} on" if place == len(rest) else f"at {first} to {(first, *more)[-1]}"
        parts.append(f"{_verb(word)} {many if more else f'at {first}'}")
    return ", ".join(parts)


def rests_on(decision: Decision) -> str:
    """`seen, after 140 updates`, `seen, diverges at update 3`, `forecast 0.97`; "" of what nothing is known of."""
    if decision.diverges:
        return f"seen, diverges {f'at update {decision.updates}' if decision.updates else 'before any update'}"
    if decision.basis == "seen":
        return f"seen, after {updates(decision.updates)}"
    if decision.probability == LOST:
        return "forecast, a link breaks"
    return f"forecast {probability(decision.probability)}" if decision.probability is not None else ""


def _outcome(who: str, verdict: Verdict, warmup: int, *, several: bool) -> str:
    """`gpt trains to 6 layers, fails from 12 on, without warm-up (24 layers: forecast 0.02); none of 57 …`."""
    decision, depth = verdict.decision, verdict.depths[-1].depth
    at = f" at {scientific(verdict.lr)}" if several else ""
    warm = f"with a warm-up of {warmup:,} updates" if warmup else "without warm-up"
    one = len({own.decision.word for own in verdict.depths}) == 1
    which = f"{depth} layers: " if depth and not (one and len(verdict.depths) == 1) else ""
    basis = rests_on(decision) or f"no forecast: {unlike(verdict.forecast)}"
    return f"{who} {by_depth(verdict)}{at}, {warm} ({which}{basis}){worth(decision)}"


def worth(decision: Decision) -> str:
    """How often that came true: `. Of 34 held-out models judged so, 34 did not train (95 %: 90 to 100 %)`; "" where a
    number was lost, or nothing is known."""
    if decision.diverges or decision.probability is None:
        return ""
    right, n = ours().looks.told.get(decision.counted_as, (0, 0))
    if not n:
        return ". No such model was among those tested"
    became = "did not train" if decision.word in ("fails", "probably fails") else "trained"
    low, high = (100 * end for end in wilson(right / n, n))
    how = "judged so" if decision.basis == "seen" else "with such a forecast"
    return f". Of {n} held-out models {how}, {right} {became} (95 %: {low:.0f} to {high:.0f} %)"


def in_short(judged: Judged) -> str:
    """The same as far as a headline holds it: `gpt trains to 6 layers, fails at 24; with a third of the rate it trains
    (1.31, 3.16 without).`"""
    worst = judged.worst
    who = judged.cells[0].facts.factory.rpartition(":")[2]
    said, cure = by_depth(worst), judged.cure
    on = f" ({basis})" if (basis := rests_on(worst.decision)) else ""
    if cure is None:
        return fitting(f"{who} {said}{on}.", f"It {said}{on}.", f"It {said}.")
    seen = cure.loss is not None and cure.without is not None
    both = f" ({_number(cure.loss)}, {_number(cure.without)} without)" if seen else ""
    it, fixed = f"{who} {said}", f"; with {cure.label} it {cure.word}"
    return fitting(
        f"{it}{on}{fixed}{both}.",
        f"{it}{fixed}{both}.",
        f"{it}{fixed}.",
        f"It {said}{fixed}.",
        f"It {said}; with a change it {cure.word}.",
    )


def probability(p: float) -> str:
    """`0.93`; never 0 or 1, which no fit can know."""
    digits = min(max(p, 0.01), 0.99)
    near = round(digits, DIGITS)
    if word(near) != word(p):  # 0.896 is no 0.90
        near += math.copysign(10**-DIGITS, p - near)
    return f"{near:.{DIGITS}f}"


UNLIKE = {
    ONE_BATCH: "every update used the same batch, which a model can learn by heart: give loss(model, step)",
    OPTIMIZER: f"forecasts exist only for the optimisers {', '.join(USUAL)}",
    NO_SCORES: "a forecast needs a first loss like the cross-entropy of an untrained classifier; this one is not",
    REGRESSION: "its loss is one of regression, of which no forecast was fitted: training on decides",
    FEW_SCORES: f"a forecast needs at least {LEAST_ROWS} scores over at least {LEAST_CLASSES} classes",
    DRAWN: "its matrices are drawn far larger than those of any tested model",
    OTHER: f"a forecast needs {UPDATES} updates",
    UNRAMPED: "its rate could not be raised, or there are no scores while it rises",
}


def unlike(forecast: OwnForecast) -> str:
    """Why no forecast is given."""
    known = [UNLIKE[axis] for axis in forecast.axes if axis in UNLIKE]
    axes = [axis for axis in forecast.axes if axis not in UNLIKE]
    tested = " (4 to 48 layers, widths 64 to 256)" * bool({"depth", "width"} & {*axes})
    beyond = f"its {' and '.join(axes)} {'is' if len(axes) == 1 else 'are'} outside of what was tested{tested}"
    return "; ".join((*known, *([beyond] if axes else [])))


def why(verdict: Verdict) -> str:
    """The link that explains it: what breaks, else what is farthest from models that train, if it lies outside of what
    nine of ten have, else the scores that the forecast is made of where they tell little; "" where all is as there, and
    of what trains or was seen."""
    failing = [verdict.links[name] for name in verdict.failing]
    if failing:
        return "; ".join(chain.why(link) for link in failing[:2])
    if verdict.word in ("trains", "probably trains") or (verdict.word, verdict.decision.basis) == ("undecided", "seen"):
        return ""
    odd = [(link.healthy, link) for link in verdict.links.values() if link.healthy and beside(link.healthy)]
    scores = verdict.scores
    if odd:
        _, link = max(odd, key=lambda pair: (pair[1] is scores, abs(pair[0].percent - 50)))
        return f"{chain.why(link)}: {among(link)}"
    if scores.healthy is not None and scores.healthy.percent < LITTLE:
        lower = f"lower than in {100 - scores.healthy.percent:.0f} % of models that train"
        return f"{chain.why(scores)}: {lower}"
    return "each link alone is as in models that train" if scores.healthy is not None else ""


def beside(healthy: Healthy) -> bool:
    """Whether a number lies outside of what nine of ten models have that train."""
    return not LOW <= healthy.percent <= 100 - LOW


LOW, LITTLE = 5, 25
"""Of 100."""


def among(link: LinkVerdict) -> str:
    """`lower than in 95 % of models that train`, or the range; "" without."""
    most = "{} than in all {} models that train", "{} than in {:.0f} % of models that train"
    return _placed(link.healthy, ("lower", "higher"), *most, "as in models that train ({} to {})")


def where(link: LinkVerdict) -> str:
    """The same under a head that says among what: `below 95 of 100`, `above all 247`, or the usual range."""
    above = "better than" if link.ground.key in ("scores", "loss") else "above"
    return _placed(link.healthy, ("below", above), "{} all {}", "{} {:.0f} of 100", "usual: {} to {}")


def _placed(healthy: Healthy | None, sides: tuple[str, str], all_: str, most: str, usual: str) -> str:
    if healthy is None:
        return ""
    if not beside(healthy):
        return usual.format(short(healthy.low), short(healthy.high))
    percent, side = healthy.percent, sides[healthy.percent > 50]
    return most.format(side, max(percent, 100 - percent)) if 0 < percent < 100 else all_.format(side, healthy.n)


def _elsewhere(verdict: Verdict) -> str:
    """`at 1e-3 trains (forecast 0.96)`."""
    basis = rests_on(verdict.decision)
    return f"at {scientific(verdict.lr)} {_verb(verdict.word)}" + (f" ({basis})" if basis else "")


def cures(judged: Judged) -> list[dict[str, str]]:
    """A row a change that was tried; nothing where none was."""
    return [
        {
            "change": own.label,
            "word": own.word,
            "basis": f"forecast {probability(own.probability or 0.0)}"
            if own.basis == "forecast"
            else "seen" + ", cut off by --time" * own.cut_off,
            "loss": _number(own.loss),
            "without": _number(own.without),
            "updates": str(own.updates),
            "code": own.code,
        }
        for own in judged.cures
    ]


def _number(loss: float | None) -> str:
    """`1.31`, `diverged`, `–`."""
    if loss is None:
        return "–"
    return short(loss, 3) if math.isfinite(loss) else "diverged"


def rates(judged: Judged) -> list[dict[str, Any]]:
    """A table a rate: every link with its verdict, its exponent and its number at each depth."""
    return [_rate(verdict, judged) for verdict in judged.verdicts]


def cell(probed: ModelCell) -> str:
    """The links of one cell in a line, `update 0.89, loss 1.2`; a cell alone has no law of depth and no word, and the
    update at which gradients are read is chosen by the deepest."""
    (rate,) = rates(judged([probed]))
    shown = [(link["name"].lower(), *link["values"]) for link in rate["links"] if link["name"] != NAMES["gradient"]]
    return ", ".join(f"{name} {value}" for name, value in shown if value != "–")


def _rate(verdict: Verdict, judged: Judged) -> dict[str, Any]:
    alike = [cell.facts for cell in judged.cells if cell.facts.lr == verdict.lr]
    depths = sorted({facts.depth for facts in alike}, key=lambda depth: depth or 0)
    facts = alike[0]
    said = [(own.decision.word, rests_on(own.decision)) for own in verdict.depths]
    return {
        "name": f"{facts.optimizer}, rate {scientific(facts.rate) if facts.rate > 0 else '–'}",
        "word": verdict.word,
        "depths": [str(depth or "–") for depth in depths],
        "seeds": len({facts.seed for facts in alike}),
        "said": [LinkCell(word.replace(" ", "-"), word, basis) for word, basis in said],
        "links": [
            {
                "name": NAMES[name],
                "unit": _unit(name, link),
                "verdict": link.verdict,
                "word": _among_cell(name, link, levels.get(depths[-1]), True).word or NONE,
                "why": chain.why(link),
                "among": where(link),
                "exponent": _with_depth(link),
                "values": [_level(name, levels[depth]) if depth in levels else "–" for depth in depths],
                "cells": [_among_cell(name, link, levels.get(depth), depth == depths[-1]) for depth in depths],
            }
            for name, link in verdict.links.items()
            for levels in ({point.depth: point.value for point in link.evidence},)
        ],
    }


class LinkCell(NamedTuple):
    """A cell of the page's matrix: the class of its colour, its word, its number."""

    tint: str
    word: str
    number: str


NONE = "–"
"""The word of a link that has no range to be held against."""
WITHIN, BETTER, OUTSIDE, BROKEN = "usual", "better", "unusual", "broken"


def before_training(fields: Mapping[str, Any]) -> str:
    """What a probe alone says of a model that is trained on: `trains, forecast 0.93, not firm yet; training on`."""
    probed = Decision(**fields)
    return f"{listed(probed.word, rests_on(probed))}, not firm yet; training on"


def _among_cell(name: str, link: LinkVerdict, level: float | None, deepest: bool) -> LinkCell:
    """Whether a number lies where nine of ten models have it that train; what breaks is said of the deepest, and of
    every depth whose own number lies beyond the limit."""
    number = "" if level is None else _level(name, level)
    if not link.evidence and link.verdict == "pass":
        return LinkCell("trains", WITHIN, number)  # all finite
    if link.verdict == "fail" and (deepest or not within(link, level)):
        return LinkCell("fails", BROKEN, number)
    if level is None or link.healthy is None:
        return LinkCell("plain" if number else "missing", "", number)
    low, here, high = (float(f"{value:.2g}") for value in (link.healthy.low, level, link.healthy.high))
    usual = low <= here <= high  # as they are written
    better = here > high and name in ("scores", "loss")  # told more, learnt more
    return LinkCell("trains" if usual or better else "risk", WITHIN if usual else BETTER if better else OUTSIDE, number)


def within(link: LinkVerdict, level: float | None) -> bool:
    """Whether a gradient's number at a shallower depth lies within the limit that the deepest's is beyond."""
    if level is None or link.ground.key != "gradient":
        return True
    return level >= link.limit if link.limit < 1 else level <= link.limit


def _level(name: str, value: float) -> str:
    """Scores that tell nothing tell 0."""
    return "0" if name == "scores" and value <= 1.01 * SILENT else short(value)


def _unit(name: str, link: LinkVerdict) -> str:
    when = f", after {updates(link.step)}" if link.step else ", before any update" if name == "gradient" else ""
    unit = "fall of the loss" if name == "loss" and link.healthy is None else UNITS[name]  # of no cross-entropy
    return f"{unit}{when}" if link.evidence else ""


def _with_depth(link: LinkVerdict) -> str:
    if link.saturated or link.fit is None:
        return "saturated" if link.saturated else "–"
    few = "one seed" if link.fit.seeds == 1 else "seeds differ"
    return f"–, {few}" if link.fit.vague else law(link.fit)
