"""What a probe of a user's model says, for terminal, page, Python and JSON alike: the sentence, the links of every
rate. In one file, because every sentence of a verdict stands in it beside the others that must agree with it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from stabkit.results.forecast.logistic import word
from stabkit.results.intervals import wilson
from stabkit.results.own.cell import ModelCell
from stabkit.results.own.cure import Cure
from stabkit.results.own.forecast import (
    DRAWN,
    FEW_SCORES,
    LEAST_CLASSES,
    LEAST_ROWS,
    NO_SCORES,
    ONE_BATCH,
    OPTIMIZER,
    OTHER,
    RATE,
    TESTED,
    UNRAMPED,
    USUAL,
    Healthy,
    OwnForecast,
)
from stabkit.results.own.judged import Judged, judged
from stabkit.results.own.measured import TOP, UPDATES
from stabkit.results.own.outcome import LEAST, NOTHING, SLOW, ShortTraining
from stabkit.results.own.rules import NAMES, LinkVerdict
from stabkit.results.own.verdict import Verdict
from stabkit.wording import chain
from stabkit.wording.chain import law
from stabkit.words import fitting, scientific, short, updates

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
    """Whether it is likely to train, what that word is worth, which link explains it, and the change that mends it."""
    worst, first = judged.worst, judged.cells[0].facts
    who = first.factory.rpartition(":")[2]
    others = [_elsewhere(verdict) for verdict in judged.verdicts if verdict is not worst]
    deepest = max((cell.facts for cell in judged.cells), key=lambda facts: facts.depth or 0)
    high = deepest.guess.high(deepest.start) if deepest.guess is not None else ""
    more = [why(worst), "; ".join(others), high, _mended(judged)]
    sentences = [_outcome(who, worst, several=len(judged.verdicts) > 1), *filter(None, [_fast(judged)])]
    sentences += [f"{sentence[0].upper()}{sentence[1:]}" for sentence in more if sentence]
    return " ".join(f"{sentence}." for sentence in sentences)


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
    """`likely to train with a third of the rate: …`; where no change that was tried makes it so, the best of those that
    help, and how many there was no time for; "" where none was tried, or it is likelier to train than not."""
    unchanged = f", {probability(judged.unchanged)} unchanged" if judged.unchanged is not None else ""
    seed = f"the worst seed ({judged.tried_on}{unchanged})" if unchanged else f"seed {judged.tried_on}"
    on = f" on {seed}" if judged.tried_on is not None else ""
    if judged.cure is not None:
        on = ", in every seed" if judged.cure.seeds > 1 else on
        return f"likely to train with {judged.cure.label}{on}: {judged.cure.marked}"
    near, many = helpful(judged), len(judged.cures)
    left = f"; {untried(judged)}" if judged.untried else ""
    if near is not None:
        best = f"the best of {many} changes tried{on}" if many > 1 else f"the change tried{on}"
        return f"{best} is {near.label}, {probability(near.probability or 0.0)}: {near.marked}{left}"
    if leans(judged.worst):
        return ""
    if not many:
        return left.removeprefix("; ")
    tried = f"none of {many} changes tried{on} makes" if many > 1 else f"the change tried{on} does not make"
    return f"{tried} it likely to train{left}"


def helpful(judged: Judged) -> Cure | None:
    """The change that helps most; of a model that is likelier to train than not none of the model itself."""
    near = judged.nearest
    return None if near is None or (leans(judged.worst) and not near.training) else near


def untried(judged: Judged) -> str:
    """`for 4 more changes there was no time: --cure-time 90 is enough`."""
    more = f"{judged.untried} {'more ' * bool(judged.cures)}change{'s' * (judged.untried != 1)}"
    enough = f": --cure-time {judged.wanted} is enough" if judged.wanted else ""
    return f"for {more} there was no time{enough}"


LEAN = 0.65
"""From this probability on an open model is likelier to train than not, below 1 − LEAN the opposite (verdict.md)."""
LEANS = {None: "", True: ", more likely to train than not", False: ", more likely stuck than not"}


def leans(verdict: Verdict) -> bool | None:
    """Whether what is open is likelier to train than not; None near the middle and for all else."""
    p = verdict.forecast.probability
    if verdict.word != "open" or p is None or verdict.failing or 1 - LEAN < p < LEAN:
        return None
    return p >= LEAN


def _outcome(who: str, verdict: Verdict, *, several: bool) -> str:
    """`gpt at 24 layers is likely to train, without warm-up: probability 0.97`, and what the word is worth."""
    forecast = verdict.forecast
    where = f" at {forecast.depth} layers" if forecast.depth else ""
    where += f" at {scientific(verdict.lr)}" if several else ""
    warm = f"with a warm-up of {forecast.warmup:,} updates" if forecast.warmup else "without warm-up"
    if verdict.broken:
        return f"{who}{where} does not train as it stands"
    if verdict.trained is not None:
        return f"{_became(verdict.trained).format(f'{who}{where}')}, {warm}: {_trained(verdict.trained)}"
    if forecast.probability is None:
        return f"No forecast for {who}{where}: {unlike(forecast)}"
    p = probability(forecast.probability)
    if verdict.word != forecast.word:
        return f"Whether {who}{where} trains is open, {warm}: its numbers predict that it does ({p}), but a link fails"
    words = {
        "likely trains": f"{who}{where} is likely to train, {warm}: probability {p}",
        "likely stuck": f"{who}{where} is likely stuck, {warm}: it trains with probability {p}",
        "open": f"Whether {who}{where} trains is open{LEANS[leans(verdict)]}, {warm}: probability {p}",
    }
    return f"{words[forecast.word]}; {worth(forecast)}"


OUTCOMES = {"trains": "{} trains", "stuck": "{} is stuck", "open": "Whether {} trains is still open"}


def _became(trained: ShortTraining) -> str:
    """`{} is stuck`; where seeds differ `{} trains in 2 of 3 seeds`."""
    if 0 < trained.learnt < len(trained.seeds):
        return f"{{}} trains in {trained.learnt} of {len(trained.seeds)} seeds"
    return OUTCOMES[trained.word]


def _trained(trained: ShortTraining) -> str:
    """`after 187 updates its loss is 1.53, 0.6 of the way from knowing frequencies alone (3.92) to knowing the order
    (1.11)`; of a loss of the user's own `… to what 6 layers reach at this rate (1.39)`; and what that word is worth."""
    least = trained.least
    whose = f"the loss of seed {least.seed}, the highest," if len(trained.seeds) > 1 else "its loss"
    loss = f"after {updates(least.updates)} {whose} is {least.loss:.3g}"
    level = f"{'at least ' * trained.estimated}{trained.level:.3g}"
    other, best = f"{trained.reference_depth} layers", f"{trained.reference:.3g}"
    if least.way is None:
        return f"{loss}; knowing frequencies alone gives {level}, and {other} do no better ({best})"
    way = f"{least.way:.2g} of the way" if least.way >= 0.005 else "none of the way"
    known = trained.reference_depth is None
    end = f"all that can be learnt ({best})" if known else f"what {other} reach at this rate ({best})"
    return f"{loss}, {way} from knowing frequencies alone ({level}) to {end}; {_slow(least.updates, least.way)}"


def _slow(updates_: int, way: float) -> str:
    """Of one that has learnt nothing, how often such a one learns later; of all others what counts."""
    known = [slow for slow in SLOW if slow.updates <= updates_]
    if way > NOTHING or not known:
        return "half of it counts as training"
    slow = known[-1]
    nothing = f"had learnt nothing after {updates(slow.updates)}"
    return f"{slow.late} of {slow.n} tested trainings that {nothing} learnt later"


def in_short(judged: Judged) -> str:
    """The same as far as a headline holds it: `gpt at 24 layers is open (0.83); with a tenth of the rate
    it is likely to train (0.95).`"""
    worst = judged.worst
    who = judged.cells[0].facts.factory.rpartition(":")[2]
    forecast = worst.forecast
    where = f" at {forecast.depth} layers" if forecast.depth else ""
    what = {"likely trains": "is likely to train", "likely stuck": "is likely stuck", "open": "is open"}
    is_ = "does not train as it stands" if worst.broken else what.get(worst.word, "has no forecast")
    if worst.trained is not None:
        is_ = {"trains": "trains", "stuck": "is stuck", "open": "is open still"}[worst.trained.word]
        return fitting(f"{who}{where} {is_} ({updates(worst.trained.updates)}).", f"It {is_}{where}.")
    p = said = fixed = then = ""
    if not worst.broken and forecast.probability is not None:
        number = probability(forecast.probability)
        p = said = f" ({number})"
        if worst.word == "likely stuck":
            said = f" ({number} that it trains)"
    if judged.cure is not None:
        fixed = f"; with {judged.cure.label} it is likely to train"
        then = f" ({probability(judged.cure.probability or 0.0)})"
    elif (near := helpful(judged)) is not None:
        fixed, then = f"; best change: {near.label}", f" ({probability(near.probability or 0.0)})"
    elif judged.cures and not leans(worst):
        many = len(judged.cures)
        fixed = f"; none of {many} changes tried is enough" if many > 1 else "; the change tried is not enough"
    lean, it = LEANS[leans(worst)], f"{who}{where} {is_}"
    whole = (f"{it}{lean}{said}{fixed}{then}.", f"{it}{said}{fixed}{then}.", f"{it}{p}{fixed}{then}.")
    return fitting(*whole, f"{it}{p}{fixed}.", f"{it}{lean}{said}.", f"It {is_}{where}{p}.")


def probability(p: float) -> str:
    """`0.93`; never 0 or 1, which no fit can know."""
    digits = min(max(p, 0.01), 0.99)
    near = round(digits, DIGITS)
    if word(near) != word(p):  # 0.896 is no 0.90
        near += math.copysign(10**-DIGITS, p - near)
    return f"{near:.{DIGITS}f}"


def worth(forecast: OwnForecast) -> str:
    """How often that came true: `53 of 57 held-out models with this forecast did not train (95 %: 83 to 97 %)`; where
    it is open, `4 of 10 held-out models forecast at 0.1 to 0.35 trained`."""
    record = forecast.record
    if record is None:
        return "no held-out model had this forecast"
    if forecast.word == "open":
        return f"{record.trained} of {record.n} held-out models forecast at {record.low:g} to {record.high:g} trained"
    became = "did not train" if forecast.word == "likely stuck" else "trained"
    low, high = (100 * end for end in wilson(forecast.right / record.n, record.n))
    sure = f"95 %: {low:.0f} to {high:.0f} %"
    return f"{forecast.right} of {record.n} held-out models with this forecast {became} ({sure})"


UNLIKE = {
    ONE_BATCH: "every update used the same batch, which a model can learn by heart: give loss(model, step)",
    OPTIMIZER: f"forecasts exist only for the optimisers {', '.join(USUAL)}",
    NO_SCORES: "a forecast needs a first loss like the cross-entropy of an untrained classifier; this one is not",
    FEW_SCORES: f"a forecast needs at least {LEAST_ROWS} scores over at least {LEAST_CLASSES} classes",
    DRAWN: "its matrices are drawn far larger than those of any tested model",
    OTHER: f"a forecast needs {UPDATES} updates, a short training {LEAST} or more (with a loss of yours at two depths)",
    UNRAMPED: "a forecast is made of the deepest model alone, which has no result, or no scores while its rate rises",
}


def unlike(forecast: OwnForecast) -> str:
    """Why no forecast is given."""
    known = [UNLIKE[axis] for axis in forecast.axes if axis in UNLIKE]
    axes = [axis for axis in forecast.axes if axis not in UNLIKE]
    are = "is" if len(axes) == 1 else "are"
    beyond = f"its {' and '.join(axes)} {are} beyond those of all tested models" if axes else ""
    return "; ".join(filter(None, (*known, beyond)))


def why(verdict: Verdict) -> str:
    """The link that explains it: what fails, else what is farthest from models that train, if it lies outside of what
    nine of ten have, else the scores that the forecast is made of where they tell little; "" where all is as there."""
    failing = [verdict.links[name] for name in verdict.failing]
    if failing:
        return "; ".join(chain.why(link) for link in failing[:2])
    if verdict.trained is not None or verdict.word not in ("likely stuck", "open"):
        return ""
    odd = [(link.healthy, link) for link in verdict.links.values() if link.healthy and beside(link.healthy)]
    scores = verdict.scores
    if odd:
        _, link = max(odd, key=lambda pair: (pair[1] is scores, abs(pair[0].percent - 50)))
        return f"{chain.why(link)}: {among(link)}"
    if scores.healthy is not None and scores.healthy.percent < LITTLE:
        lower = f"lower than in {100 - scores.healthy.percent:.0f} % of models that train"
        return f"at this depth no link is unusual; the weakest: {chain.why(scores)}, {lower}"
    return "each link alone is as in models that train"


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
    return _placed(link.healthy, ("below", "above"), "{} all {}", "{} {:.0f} of 100", "usual: {} to {}")


def _placed(healthy: Healthy | None, sides: tuple[str, str], all_: str, most: str, usual: str) -> str:
    if healthy is None:
        return ""
    if not beside(healthy):
        return usual.format(short(healthy.low), short(healthy.high))
    percent, side = healthy.percent, sides[healthy.percent > 50]
    return most.format(side, max(percent, 100 - percent)) if 0 < percent < 100 else all_.format(side, healthy.n)


def _elsewhere(verdict: Verdict) -> str:
    """`at 1e-3 likely trains (0.96)`."""
    p = verdict.forecast.probability
    return f"at {scientific(verdict.lr)} {verdict.word}" + (f" ({probability(p)})" if p is not None else "")


def cures(judged: Judged) -> list[dict[str, str]]:
    """A row a change that was tried, below the model as it is; nothing where none was tried."""
    p = judged.unchanged
    before = {
        "change": "none: the model as it is",
        "word": judged.as_it_is.word,
        "probability": probability(p) if p is not None else "–",
        "code": "",
    }
    return [before] * bool(judged.cures) + [
        {
            "change": own.label,
            "word": own.word,
            "probability": probability(own.probability) if own.probability is not None else "–",
            "code": own.code,
        }
        for own in judged.cures
    ]


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
    return {
        "name": f"{facts.optimizer}, rate {scientific(facts.rate) if facts.rate > 0 else '–'}",
        "word": "does not train" if verdict.broken else verdict.word,
        "depths": [str(depth or "–") for depth in depths],
        "seeds": len({facts.seed for facts in alike}),
        "forecast": [_forecast(verdict, depth == depths[-1]) for depth in depths],
        "links": [
            {
                "name": NAMES[name],
                "unit": _unit(name, link),
                "verdict": link.verdict,
                "word": _among_cell(link, levels.get(depths[-1]), True).word or NONE,
                "why": chain.why(link),
                "among": where(link),
                "exponent": _with_depth(link),
                "values": [short(levels[depth]) if depth in levels else "–" for depth in depths],
                "cells": [_among_cell(link, levels.get(depth), depth == depths[-1]) for depth in depths],
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


EMPTY = LinkCell("missing", "", "")
NONE = "–"
"""The word of a link that has no range to be held against."""
WITHIN, OUTSIDE, FAILS = "usual", "unusual", "fails"


def _forecast(verdict: Verdict, deepest: bool) -> LinkCell:
    """Of the deepest, which alone has one."""
    if not deepest:
        return EMPTY
    if verdict.broken:
        return LinkCell("stuck", "does not train", "")
    p = verdict.forecast.probability
    return LinkCell(verdict.word.replace(" ", "-"), verdict.word, "" if p is None else probability(p))


def _among_cell(link: LinkVerdict, level: float | None, deepest: bool) -> LinkCell:
    """Whether a number lies where nine of ten models have it that train; what fails is said of the deepest."""
    number = "" if level is None else short(level)
    if not link.evidence and link.verdict == "pass":
        return LinkCell("trains", WITHIN, number)  # all finite
    if deepest and link.verdict == "fail":
        return LinkCell("stuck", FAILS, number)
    if level is None or link.healthy is None:
        return LinkCell("plain" if number else "missing", "", number)
    low, here, high = (float(f"{value:.2g}") for value in (link.healthy.low, level, link.healthy.high))
    usual = low <= here <= high  # as they are written
    return LinkCell("trains" if usual else "risk", WITHIN if usual else OUTSIDE, number)


def _unit(name: str, link: LinkVerdict) -> str:
    when = f", after {updates(link.step)}" if link.step else ", before any update" if name == "gradient" else ""
    return f"{UNITS[name]}{when}" if link.evidence else ""


def _with_depth(link: LinkVerdict) -> str:
    if link.saturated or link.fit is None:
        return "saturated" if link.saturated else "–"
    few = "one seed" if link.fit.seeds == 1 else "seeds differ"
    return f"–, {few}" if link.fit.vague else law(link.fit)
