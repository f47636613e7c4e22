"""What a watch warns of: a link of the chain beyond its limit, in training, with the numbers and the nearest cause.

    finite    a loss, a gradient or a stream that is no number
    step      one update moved a sub-layer's weights by more than their own norm: the rate
    stream    an entry of it is within a factor of ten of the largest number of its type
    gradient  the lowest layer receives less than 10⁻² of the top layer's gradient, or more than 10², three readings
              in a row: below it few of stabkit's own runs came back (docs/evidence/outcome.md)
    loss      three times the first one
    level     after LATE updates, two readings in a row, the logits hardly depend on the input: what is left is how
              often each answer comes, the level that a loss is stuck at
    logits    an attention logit is beyond LOGIT, and GROWN times what it was when the watch began (Wortsman et al.
              2309.14322: worse from 10³ on at 10 M parameters, diverged from 10⁴; docs/evidence/ladder.md)
    jump      ‖Δθ‖ of a sub-layer is more than JUMP times its own median of the readings before: reports from the
              field have it before a spike of the loss
    start     the first loss costs much more than a uniform guess, or is several times what the scores cost (`guess.py`)
    owned     tensors to be trained that no optimiser given steps, that two do, or that are not the model's parameters
    resume    trained weights go on with an optimiser whose state is empty, and the loss or the rate leaps
    small     no sub-layer moves by more than SMALL of its weights, and that does not grow (a warm-up's does)
    undone    the weights are written between two updates, so that most of the last step is taken back
    outlook   after 50, 100 or 200 updates the rule of `looks.py` says that it will not train; that it will is a note
    reach     tensors to be trained that no gradient arrives at (`own/watch/still.py`, as what follows)
    still     tensors that have a gradient and do not move
    rate      it is beyond the rates of all tested models: more than TESTED[1] times the usual one (`forecast.py`)

Each is told once, and again of other tensors. The limits are judged on held-out models (docs/evidence/verdict.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypedDict

from stabkit.results.outcome import LOST, RECOVERED, VANISHED
from stabkit.results.own.cell import Sublayer, module_of
from stabkit.results.own.cure import BY_KEY
from stabkit.results.own.forecast import ours
from stabkit.results.own.guess import TRAINED, Guess
from stabkit.results.own.looks import FIRM, Known, tens
from stabkit.results.own.rules import Limits
from stabkit.words import scientific, short, times

MOST_STEP = 1.0
"""‖Δθ‖/‖θ‖ of one update."""
LATE, LEVEL = 64, 0.003
"""Updates after which a model is to have learnt more than frequencies; H(mean p) − mean H(p) of its scores, nats."""
LOGIT, GROWN = 1_000.0, 3.0
"""LOGIT is the lowest that warns of no training of 250 updates which ends well (studies/ladder/logits.py); GROWN is for
trained models, whose logits were large before, and was chosen on no runs."""
LOGIT_RECALL = 6, 8, 0, 14, 250
"""Of trainings of 2,000 updates without QK-norm at too high a rate so many of so many were warned of, and of those that
ended well so many of so many, by this update (docs/evidence/ladder.md, from whose rows a test counts them)."""
JUMP, BEFORE = 20.0, 5
"""Times the median of so many readings."""
SMALL, SMALL_READINGS = 1e-6, 8
"""‖Δθ‖/‖θ‖ of an update, and readings in a row; float32 holds weights to 10⁻⁷ of themselves."""
LEAPS, RATE_LEAPS, SOON = 0.15, 3.0, 10
"""What a loss rises by, of the uniform level, within SOON updates of a restart; times the rate before it."""
UNDONE, UNDONE_READINGS = 0.5, 3
"""Share of a step that is taken back before the next one, and readings in a row."""
MOST_WARNINGS = 3
"""Times that a link is told of, each time of other tensors."""
WEAK = VANISHED
"""The lowest layer's gradient over the top layer's: warned of below, and above its inverse."""
HELPED: dict[str, tuple[str, int, int]] = {
    "gradient": ("rate/10", 6, 12),
    "step": ("rate/10", 8, 26),
    "loss": ("rate/10", 3, 8),
    "finite": ("rate/10", 3, 11),
    "level": ("rate/10", 5, 14),
    "outlook": ("rate/10", 8, 26),
}
"""{link: (the change to try first, of how many failing models with that warning it was seen to make trains, of how many
it was tried on)}, by own_corpus.csv and own_cures.csv of docs/evidence/, where a test counts them. No change is advised
of the other links, of which three models at most have rows; nor before the first update, which no rate has moved."""
OF_ALL = ("step", "outlook")
"""Links whose counts are of all failing models: too few had that warning, or none, as it came after their training."""
ALARM_RECALL, ALARM_FALSE = (106, 118, 34), (27, 195)
"""So many of so many trainings of the judging part that failed were warned of before the end, half of them by this
update; and of those that trained (docs/evidence/verdict.md, from which a test reads them)."""
IN_A_ROW = 3
"""Readings of the gradient beyond its limit."""
LOSS_TIMES = 3.0
"""The loss over the first one."""


LOOKED_AT = (50, 100, 200)
"""Updates after which the outlook of a training is asked for, once it is firm no more."""


class AlarmJson(TypedDict):
    """A warning of a watch."""

    step: int
    link: str
    sentence: str
    advice: str
    """The change to try; "" where none is known."""
    numbers: dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    """One warning."""

    step: int
    link: str
    sentence: str
    numbers: Mapping[str, float]
    names: frozenset[str] = frozenset()
    """Tensors that it is of; none where it is of a link as a whole."""

    @property
    def _key(self) -> str:
        """Of the change to try: none before the first update, which no rate has moved."""
        return HELPED[self.link][0] if self.step and self.link in HELPED else ""

    @property
    def change(self) -> str:
        """The change to try first, with the rate that it comes to; "" where none is known."""
        rate, usual = (self.numbers.get(name, math.nan) for name in ("rate", "usual"))
        label = BY_KEY[self._key].label if self._key else ""
        if self.link == "rate" or (self._key == "rate/10" and usual <= rate / 10):
            return f"the usual rate, {scientific(usual)}"
        return f"{label}, {scientific(rate / 10)}" if self._key == "rate/10" and rate > 0 else label

    @property
    def advice(self) -> str:
        """The same as an advice."""
        if not self._key:
            return f"try {self.change}" if self.change else ""
        _, helped, of = HELPED[self.link]
        which = "" if self.link in OF_ALL else " with this warning"
        moved = ", or in Post-LN the norm before the branch" * (self.numbers.get("ratio", 1.0) < 1)
        on = f"{of} failing models{which}"
        it = "" if (label := BY_KEY[self._key].label) in self.change else f"{label} "
        return f"try {self.change} ({it}helped {helped} of {on}){moved}; stabkit probe tries changes on a copy"

    @property
    def whole(self) -> str:
        """When, what and what to try, in a line."""
        return "; ".join(filter(None, (f"update {self.step}: {self.sentence}", self.advice)))

    def to_json(self) -> AlarmJson:
        return {
            "step": self.step,
            "link": self.link,
            "sentence": self.sentence,
            "advice": self.advice,
            "numbers": dict(self.numbers),
        }


@dataclass(slots=True)
class Alarms:
    """Looks at each row as it comes; tells each link once."""

    sublayers: Sequence[Sublayer]
    limits: Limits = field(default_factory=Limits)
    raised: dict[str, Alarm] = field(default_factory=dict)
    guess: Guess | None = None
    """What the model's scores were worth at the start."""
    _since: dict[str, list[int]] = field(default_factory=dict)
    _loss: float = math.nan
    _steps: dict[str, list[float]] = field(default_factory=dict)
    _level: list[int] = field(default_factory=list)
    _losses: list[float] = field(default_factory=list)
    _logit: tuple[int, float] | None = None
    """When attention was first read, and its largest logit then."""
    _named: dict[str, set[str]] = field(default_factory=dict)
    _small: list[float] = field(default_factory=list)
    _sizes: list[float] = field(default_factory=list)
    _undone: int = 0
    _times: float = 1.0
    rate: float = math.nan
    usual: float = math.nan
    """The highest so far, and the one that its optimiser is used at on small models."""
    anew: bool = False
    """Whether the optimiser had no state when the watch began."""
    promise: str = ""
    """That it trains, in a sentence, where its losses say so; "" before."""

    def see(self, probe: str, step: int, row: Mapping[str, float], missing: Set[str] = frozenset()) -> Alarm | None:
        """The warning that this row is reason for; None where there is none, or it was told before. `missing`: whom no
        gradient reached, which is no number either."""
        return self.add(self._lost(probe, step, row, missing) or self._judged(probe, step, row))

    def add(self, alarm: Alarm | None) -> Alarm | None:
        """The warning, if there is one and its link was not told of before."""
        if alarm is None:
            return None
        before = self._named.setdefault(alarm.link, set())
        told = [own for own in self.raised.values() if own.link == alarm.link]
        if told and (len(told) == MOST_WARNINGS or alarm.names <= before):
            return None
        before |= alarm.names
        rates = {"rate": self.rate, "usual": self.usual} if alarm.change else {}
        alarm = replace(alarm, numbers={**alarm.numbers, **rates})
        self.raised[f"{alarm.link}{len(told) or ''}"] = alarm
        return alarm

    def replaced(self, step: int, names: str, was: float, rate: float, *, empty: bool) -> Alarm | None:
        """Other optimisers step from now on, whose state may be `empty`: the warning, where their rate leaps too."""
        self._steps.clear()
        if not (rate > RATE_LEAPS * was > 0 and empty):
            return None
        sentence = (
            f"from here on {names} steps with an empty state at a rate of {rate:.3g}, {rate / was:.3g} times that of "
            "the update before; load its state and schedule, or let the rate rise anew"
        )
        return Alarm(step=step, link="resume", sentence=sentence, numbers={"rate": rate, "before": was})

    def rewritten(self, step: int, left: float) -> Alarm | None:
        """Before update `step` + 1 weights are `left` of a step away from where they were before the last one."""
        self._undone = self._undone + 1 if 1 - left > UNDONE else 0
        if self._undone < UNDONE_READINGS:
            return None
        sentence = (
            f"between two updates something other than the optimizer writes to the weights: {100 * (1 - left):.3g} % "
            "of each step is undone (an average copied over the model, weights loaded again?)"
        )
        return Alarm(step=step, link="undone", sentence=sentence, numbers={"undone": 1 - left, "limit": UNDONE})

    def _lost(self, probe: str, step: int, row: Mapping[str, float], missing: Set[str]) -> Alarm | None:
        if probe not in ("loss", "gradient", "stream"):
            return None
        for name, value in row.items():
            if not math.isfinite(value) and name not in missing:
                what = "the loss" if probe == "loss" else f"the {probe} of {name}"
                sentence = f"{what} is not finite; {self._before()}"
                return Alarm(step=step, link="finite", sentence=sentence, numbers={name: value})
        return None

    def _before(self) -> str:
        """What had been told: the nearest cause of what a link comes to in the end."""
        parts = [f"{alarm.link} at update {alarm.step}" for alarm in self.raised.values()]
        return f"earlier warnings: {', '.join(parts)}" if parts else "no earlier warning"

    def _judged(self, probe: str, step: int, row: Mapping[str, float]) -> Alarm | None:
        judge = {
            "gradient": self._of_gradient,
            "delta": self._of_step,
            "stream": self._of_stream,
            "loss": self._of_loss,
            "scores": self._of_scores,
            "attention": self._of_attention,
        }
        return judge[probe](step, row) if probe in judge else None

    def _of_gradient(self, step: int, row: Mapping[str, float]) -> Alarm | None:
        self._sizes = [*self._sizes[1 - SMALL_READINGS :], math.hypot(*(x for x in row.values() if x == x))]
        for stack in dict.fromkeys(sublayer.stack for sublayer in self.sublayers):
            norms: dict[int, float] = {}
            for sublayer in self.sublayers:
                if sublayer.stack == stack and sublayer.parameters and math.isfinite(row[sublayer.name]):
                    norms[sublayer.layer] = math.hypot(norms.get(sublayer.layer, 0.0), row[sublayer.name])
            if len(norms) < 2:
                continue
            low, top = norms[min(norms)], norms[max(norms)]
            if low == top == 0.0:  # nothing was to be learnt: no link of the chain
                continue
            ratio = low / top if top else math.inf
            since = self._since.setdefault(stack, [])
            if WEAK <= ratio <= 1 / WEAK:
                since.clear()
                continue
            since.append(step)
            if len(since) >= IN_A_ROW:
                what = f"{self._layer(stack, min(norms))} receives {times(ratio)} the top layer's gradient"
                what += f", too {'little' if ratio < 1 else 'much'} since update {since[0]}"
                why = _of_ratio(ratio)
                numbers = {"ratio": ratio, "limit": WEAK, "lowest": low, "top": top}
                return Alarm(step=step, link="gradient", sentence=f"{what}; {why}", numbers=numbers)
        return None

    def _layer(self, stack: str, layer: int) -> str:
        """`stack.1 (transformer.h.0)`."""
        module = module_of(own.module for own in self.sublayers if (own.stack, own.layer) == (stack, layer))
        return f"{stack}.{layer} ({module})" if module else f"{stack}.{layer}"

    def _of_step(self, step: int, row: Mapping[str, float]) -> Alarm | None:
        moved = {own.both_names: row.get(f"{own.name}@relative", 0.0) for own in self.sublayers}
        name, most = max(moved.items(), key=lambda one: one[1], default=("", 0.0))
        if not most > MOST_STEP:
            return self._slight(step, most) or self._jumped(step, moved)
        sentence = (
            f"one update moved {name} by {most:.2g} times its weights' norm; the likely cause is the learning rate"
        )
        return Alarm(step=step, link="step", sentence=sentence, numbers={"relative": most, "limit": MOST_STEP})

    def _slight(self, step: int, most: float) -> Alarm | None:
        """Steps that move nothing, in readings in a row; of a warm-up they grow from one to the next."""
        grows = bool(self._small) and most > 1.1 * self._small[-1]
        self._small = [*self._small, most] if 0 < most < SMALL and not grows else []
        if len(self._small) < SMALL_READINGS:
            return None
        same = len(self._sizes) == SMALL_READINGS and max(self._sizes) < 1.001 * min(self._sizes)
        clipped = f", and its gradient's norm is {self._sizes[-1]:.3g} each time: is it clipped before it is unscaled?"
        sentence = f"no sub-layer moves by more than {short(most)} of its weights in an update{clipped * same}"
        return Alarm(step=step, link="small", sentence=sentence, numbers={"relative": most, "limit": SMALL})

    def _jumped(self, step: int, moved: Mapping[str, float]) -> Alarm | None:
        found: Alarm | None = None
        for name, now in moved.items():
            history = self._steps.setdefault(name, [])
            usual = statistics.median(history) if len(history) == BEFORE else 0.0
            if found is None and usual and now > JUMP * usual:
                sentence = f"one update moved {name} {now / usual:.2g} times as far as earlier updates"
                found = Alarm(step=step, link="jump", sentence=sentence, numbers={"relative": now, "usual": usual})
            if now > 0:
                history.append(now)
            del history[:-BEFORE]
        return found

    def _of_scores(self, step: int, row: Mapping[str, float]) -> Alarm | None:
        value = row["information"]
        if step < LATE or not value < LEVEL:
            self._level.clear()
            return None
        self._level.append(step)
        if len(self._level) < 2:
            return None
        sentence = (
            f"the logits hardly depend on the input ({value:.2g} nats): the loss is at the level of knowing only "
            "how often each answer occurs"
        )
        return Alarm(step=step, link="level", sentence=sentence, numbers={"information": value, "limit": LEVEL})

    def _of_attention(self, step: int, row: Mapping[str, float]) -> Alarm | None:
        value = row["largest"]
        self._logit = self._logit or (step, value)
        when, first = self._logit
        if not value > max(LOGIT, GROWN * first):
            return None
        places = [own.both_names for own in self.sublayers if row.get(own.name) == value]
        where = f" in {places[0]}" if places else ""
        sentence = (
            f"the largest attention logit{where} is {value:.3g}, at update {when} it was {first:.3g}: attention looks "
            "at one token; trainings with such logits ended worse, and QK-norm bounds them"
        )
        numbers = {"largest": value, "first": first, "limit": LOGIT}
        return Alarm(step=step, link="logits", sentence=sentence, numbers=numbers)

    def _of_stream(self, step: int, row: Mapping[str, float]) -> Alarm | None:
        for stack in dict.fromkeys(own.stack for own in self.sublayers):
            room = row.get(f"{stack}@room", math.inf)
            if room < self.limits.room:
                sentence = f"{stack}'s largest entry is within a factor of {room:.2g} of the largest number of its type"
                numbers = {"room": room, "limit": self.limits.room}
                return Alarm(step=step, link="stream", sentence=sentence, numbers=numbers)
        return None

    def _of_loss(self, step: int, row: Mapping[str, float]) -> Alarm | None:
        value = row["train"]
        if math.isnan(self._loss):
            self._loss = value
            self._times = self.guess.summed(value) if self.guess is not None and not step else 1.0
            if not step and self.guess is not None and (said := self.guess.high(value)):
                return Alarm(
                    step=step, link="start", sentence=said, numbers={"loss": value, "guess": self.guess.uniform}
                )
        self._losses.append(value / self._times)
        trained = self.guess is not None and self._losses[0] < TRAINED * self.guess.uniform
        if self.anew and trained and self.guess and len(self._losses) <= SOON:
            if value - self._loss > LEAPS * self.guess.uniform:
                sentence = (
                    f"the loss is {value:.3g}, up from {self._loss:.3g}: the weights were trained before, and the "
                    "optimizer began with an empty state; load its state, or let the rate rise anew"
                )
                return Alarm(step=step, link="resume", sentence=sentence, numbers={"loss": value, "first": self._loss})
        if not value > LOSS_TIMES * self._loss > 0:
            return self._outlook(step) if len(self._losses) in LOOKED_AT else None
        sentence = f"the loss is {value:.3g}, up from {self._loss:.3g} at the start; {self._before()}"
        return Alarm(step=step, link="loss", sentence=sentence, numbers={"loss": value, "first": self._loss})

    def _outlook(self, step: int) -> Alarm | None:
        """What the losses so far say of the training, once, where that is firm."""
        if self.promise or "outlook" in self.raised or not 0 < self._loss < math.inf:
            return None
        first = self._loss / self._times
        level = first if self.guess is None else min(first, self.guess.uniform)
        p = ours().looks.probability(tens(self._losses), Known(None, level, None, guessed=True))
        said = f"by its loss so far it trains with a probability of {min(max(p, 0.01), 0.99):.2f}"
        if p >= FIRM[1]:
            self.promise = f"update {step + 1}: {said}"
        if p > FIRM[0]:
            return None
        return Alarm(step=step, link="outlook", sentence=said, numbers={"probability": p, "limit": FIRM[0]})


def _of_ratio(ratio: float) -> str:
    """What became of models with such a gradient."""
    if ratio > 1:
        return "the gradient explodes on its way down"
    if ratio < LOST:
        return "{} of {} models that stabkit trained recovered from a ratio below 1e-4".format(*RECOVERED)
    return "few of the models that stabkit trained recovered from a ratio below 0.01"
