"""The one rule for a run's outcome, and the numbers of its chain. Knows records, not torch.

U is what the best constant predictor loses on the validation batches (`tasks.base.unigram_loss`).

    diverged   a loss that is not finite, or the probe batch's loss above 1.5 × its running minimum for 20 steps
    trains     validation loss below 0.98 U: more was learned than how often each word comes
    stuck      validation loss from there to 1.1 U, past the warm-up, with less than 1 % gain over the last quarter
               or a first/last decoder gradient ratio below 1e-2 at every reading of the last 125 updates;
               or that ratio below 1e-2 once, with no gain over the last quarter
    early      too short to tell; a reader sees `not judged`
    failed     no result (never written here: a failed run has no folder)

The papers give no rule ("diverged" is not defined in them). What separated stuck from training runs in our measurements
is the gradient ratio alone: ADMIN's first update spikes as high as Post-LN's, and it trains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from stabkit.results.chain import Chain, gradient_ratio, links, still
from stabkit.results.records import Records, Table
from stabkit.spec import SHORTEST_JUDGED, TrainConfig

Word = Literal["trains", "stuck", "diverged", "early", "failed"]
Displayed = Literal["trains", "stuck", "diverged", "not judged", "failed"]
NOT_JUDGED: Displayed = "not judged"
"""Of a run too short for an outcome, which a forecast may have a word of."""

VANISHED = 1e-2
"""A first/last decoder gradient ratio below this has vanished: the only limit, for outcomes, words, claims and
a watch's warnings alike; a probe, which reads sixteen updates, has one of its own (`results/own/rules.py`). What it is
worth: FELL_BELOW."""
FELL_BELOW = {"stuck": (31, 31), "trains": (6, 43)}
"""(how many fell below VANISHED, of how many) of the 80 runs of blind.csv that both readings, which saw losses
alone, called so: all that are stuck, and six that train, Post-LN's near the rate beyond which it no longer does."""
BY_EYE = "{} of {} runs that two readers of loss curves called stuck fell below it, and {} of {} that train".format(
    *FELL_BELOW["stuck"], *FELL_BELOW["trains"]
)
"""The same in words."""
LOST, RECOVERED = 1e-4, (3, 131)
"""Of (how many) runs of the studies' rows whose ratio fell below this at any reading until they were judged, so many
train; of those that fell below it within sixteen updates none of 126 does."""
GROWN = 1.5
"""LN inputs that have grown by half since step 0 have become large."""
RISEN = 1.1
"""A probe loss above this many times its own at step 0 is one that training has made worse."""
GONE_FOR, BACK = 125, 1.5
"""A run is stuck for good when every reading of the gradient ratio over so many updates past the warm-up lies below
VANISHED and the last is no more than BACK times the lowest of them. Near the rate beyond which a method no longer
trains ratios of 4e-4 lasted for 150 updates and came back, rising as they did (docs/evidence/outcome.md)."""
NEAR_UNIGRAM = 1.1
"""Of U: what ends above it has not come to the level of word frequencies, and is not stuck there."""
AT_UNIGRAM = 0.98
"""Of U: a validation loss above it is that of a model that predicts by frequency; one below it, of a run that trains.
Two readers (docs/evidence/outcome.md) called what ends at 0.974 U and below training, at 0.983 U and above not yet."""
NEAR = 0.1
"""Nats from that line on either side: so near, with few updates, the word says how fast a run learns, and twice as many
decide it (docs/evidence/outcome.md)."""
FLAT = 0.01
"""A relative gain over the last quarter below which a run near U is stuck."""
NO_GAIN = 1e-3
"""A relative gain that is none: the size of the rounding and dropout noise of a run that does not move."""


Link = Literal["gradient", "frozen", "loss"]


@dataclass(frozen=True, slots=True)
class Risk:
    """A link of the chain that shows a warning sign in a run too short to judge."""

    link: Link
    value: float
    """`gradient`: the lowest first/last gradient ratio; `frozen`: layers that no longer move; `loss`: the last loss of
    the probe batch, nats a token."""
    of: float = math.nan
    """`frozen`: all layers; `loss`: that at step 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended."""

    word: Word
    risks: tuple[Risk, ...] | None
    """Of an early run what warns, () where nothing does; None where nothing was recorded to tell by, and of every run
    that was judged."""
    steps: int
    unigram_loss: float
    validation_loss: float
    perplexity: float
    """exp(−log p of the right token) on the validation batches, without label smoothing."""
    token_accuracy: float
    """Share of the validation tokens whose likeliest prediction is right, the words before them given."""
    chain: Chain

    @property
    def near_line(self) -> bool:
        """Whether its word hangs on less than NEAR of loss; of a run long enough to be judged."""
        return near_line(self.word, self.steps, self.validation_loss - AT_UNIGRAM * self.unigram_loss)


def displayed(word: str) -> Displayed:
    """The word that a reader sees."""
    return cast(Displayed, NOT_JUDGED if word == "early" else word)


def near_line(word: Word, steps: int, apart: float) -> bool:
    """Whether a run's word hangs on less than NEAR of loss; `apart`: its loss less the line. Of one that is long enough
    to be judged and has not diverged."""
    return word in ("trains", "stuck", "early") and steps >= SHORTEST_JUDGED and abs(apart) < NEAR


def judge(records: Records, *, unigram: float, warmup: int) -> Outcome:
    """The outcome of a run from its records alone."""
    validation, loss = records["validation"], records["loss"]
    final = float(validation.at("validation")[-1])
    chain = links(records)
    steps = int(loss.steps[-1])
    gain = last_quarter_gain(loss)
    word: Word
    if _diverged(loss) or not math.isfinite(final):
        word = "diverged"
    elif final < AT_UNIGRAM * unigram:
        word = "trains"
    elif steps < SHORTEST_JUDGED:
        word = "early"
    elif steps > warmup and final < NEAR_UNIGRAM * unigram and (gain < FLAT or gone(records, warmup)):
        word = "stuck"
    elif chain.gradient_ratio_lowest < VANISHED and gain < NO_GAIN:
        word = "stuck"
    else:
        word = "early"
    return Outcome(
        word=word,
        risks=_risks(chain, records) if word == "early" else None,
        steps=steps,
        unigram_loss=unigram,
        validation_loss=final,
        perplexity=perplexity(float(validation.at("nll")[-1])),
        token_accuracy=float(validation.at("accuracy")[-1]),
        chain=chain,
    )


DECIDED_AFTER = 400
"""Updates past the warm-up before which no run is called stuck for good: what trains late on the synthetic task was
below the unigram loss by then (docs/evidence/outcome.md)."""


def decided(records: Records, unigram: float, warmup: int) -> bool:
    """Whether a run need not go on: it has diverged; or it is stuck and its gradient has been gone for GONE_FOR updates
    and is not on its way back; or it is stuck and was so a quarter ago already. That a run trains is never decided
    early: one that did for fifty updates may still collapse.

    A function of the records alone, so that a run that was interrupted stops where it would have stopped.
    """
    last = int(records["loss"].steps[-1])
    if last == 0:
        return False
    now = judge(records, unigram=unigram, warmup=warmup)
    if now.word != "stuck":
        return now.word == "diverged"
    if gone(records, warmup) and (ratio := _recent(records, warmup))[-1] <= BACK * ratio.min():
        return True
    if last < warmup + DECIDED_AFTER:
        return False
    before = {name: table.until(0.75 * last) for name, table in records.items()}
    return judge(before, unigram=unigram, warmup=warmup).word == "stuck"


def over(records: Records, unigram: float, train: TrainConfig) -> bool:
    """Whether a run ends here by what it was asked for, short of its last step. A function of the records alone, as
    `decided` is."""
    if train.stop_when_decided and decided(records, unigram, train.warmup):
        return True
    if not train.verdict_at:
        return False
    word = judge(records, unigram=unigram, warmup=train.warmup).word
    return word == "diverged" or (word != "early" and int(records["loss"].steps[-1]) == train.verdict_at)


def gone(records: Records, warmup: int) -> bool:
    """Whether every gradient ratio read over the last GONE_FOR updates, all of them past the warm-up, has vanished."""
    ratio = _recent(records, warmup)
    return len(ratio) > 0 and bool((ratio < VANISHED).all())


def _recent(records: Records, warmup: int) -> NDArray[np.float64]:
    """The gradient ratios of the last GONE_FOR updates; none where these do not all lie past the warm-up."""
    table = records.get("grad_norm")
    since = int(records["loss"].steps[-1]) - GONE_FOR
    return gradient_ratio(table)[table.steps >= since] if table is not None and since >= warmup else np.empty(0)


def perplexity(nll: float) -> float:
    """exp(nll); infinite beyond what a float holds."""
    return math.exp(nll) if nll < 700 else math.inf if nll == nll else math.nan


class StoredOutcome(TypedDict):
    """What a run's outcome.json holds: what training alone knows, whatever words today's rule has for the rest."""

    unigram_loss: float | str
    """U; what is no finite number as a text."""
    parameters: int


def check(value: Any) -> None:
    """Raise ValueError for anything that is not a `StoredOutcome`."""
    if not isinstance(value, dict) or set(value) != set(StoredOutcome.__annotations__):
        raise ValueError("its outcome.json is not an outcome of training")
    if type(value["parameters"]) is not int or not 0 <= value["parameters"] < 2**53:
        raise ValueError("its outcome.json holds an invalid count")
    if type(value["unigram_loss"]) not in (int, float) and value["unigram_loss"] not in ("nan", "inf", "-inf"):
        raise ValueError("its outcome.json holds an invalid number")


def last_quarter_gain(loss: Table) -> float:
    """How much the probe batch's loss fell over the last quarter of the run, as a share of it.

    The mean of the quarter's first half against that of its second half, twice the difference: one reading's noise
    decides nothing, and a straight line gives its own fall.
    """
    begin = loss.steps[-1] * 0.75
    middle = loss.steps[-1] * 0.875
    probe = loss.at("probe")
    early, late = probe[(loss.steps >= begin) & (loss.steps < middle)], probe[loss.steps >= middle]
    if not len(early) or not len(late) or not early.mean() > 0:
        return 0.0
    return float(2 * (early.mean() - late.mean()) / early.mean())


def _diverged(loss: Table) -> bool:
    """A loss that is not finite, or 20 steps on end above 1.5 × the running minimum of the probe batch's loss."""
    if not np.isfinite(loss.values).all():
        return True
    probe = loss.at("probe")
    high = probe > 1.5 * np.minimum.accumulate(probe)
    since: int | None = None
    for step, above in zip(loss.steps, high, strict=True):
        since = (since if since is not None else int(step)) if above else None
        if since is not None and step - since >= 20:
            return True
    return False


def _risks(chain: Chain, records: Records) -> tuple[Risk, ...] | None:
    probe = records["loss"].at("probe")
    risks = []
    if chain.gradient_ratio_lowest < VANISHED:
        risks.append(Risk("gradient", chain.gradient_ratio_lowest))
    if chain.frozen_layers > 0:
        risks.append(Risk("frozen", chain.frozen_layers, len(still(records))))
    if len(probe) > 1 and probe[-1] > RISEN * probe[0]:
        risks.append(Risk("loss", float(probe[-1]), float(probe[0])))
    if not risks and (math.isnan(chain.gradient_ratio_lowest) or len(probe) < 2):
        return None
    return tuple(risks)
