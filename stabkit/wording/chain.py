"""A link of the chain in a sentence, of what it rests on (`results/own/rules.py`); how a number goes with depth."""

from __future__ import annotations

import math
from typing import get_args

from stabkit.results.depth_fit import DepthFit
from stabkit.results.line import too_few
from stabkit.results.own.measured import TOP
from stabkit.results.own.rules import Ground, LinkVerdict, StreamGround
from stabkit.results.own.verdict import UPDATE_FULL
from stabkit.words import grows, share, times, updates

NOTHING = 1e-6
"""Nats that scores tell of their input: less is nothing."""


def power_law(fit: DepthFit) -> str:
    """`N^0.54 (0.50 to 0.58)`."""
    p, low, high = (f"{value:.2f}".replace("-0.00", "0.00") for value in (fit.exponent, fit.low, fit.high))
    return f"N^{p} ({low} to {high})".replace("-", "−")


def law(fit: DepthFit) -> str:
    """How a number goes with depth: `N^0.54 (0.50 to 0.58)`, or `×1.08 a layer (1.07 to 1.09)` where that is nearer."""
    if not fit.exponential:
        return power_law(fit)
    return f"×{fit.factor:.3g} a layer ({fit.factor_low:.3g} to {fit.factor_high:.3g})"


def with_depth(fit: DepthFit) -> str:
    """`it scales with depth as N^0.54 (0.50 to 0.58)`; of an exponent that says nothing, that it does."""
    few = "one seed does" if fit.seeds == 1 else f"{fit.seeds} seeds do"
    return f"{few} not show how it scales with depth" if fit.vague else f"it scales with depth as {law(fit)}"


def why(link: LinkVerdict) -> str:
    """What it rests on, with the numbers: `the residual stream grows 5.8-fold from …`."""
    ground = link.ground
    match ground.key:
        case "room":
            near = f"within a factor of {ground.room:.2g} of the largest {ground.dtype} number"
            return f"{_grows(link)}; its largest entry is {near}"
        case "overflow":
            return f"the {_whose(ground)}residual stream overflows {ground.dtype}{_at(ground.depth)}"
        case "divided out":
            weigh = f", and upper branches weigh {ground.dilution:.2g} times as much as lower ones"
            return f"{_with_law(link)}; the final norm divides this out{weigh if ground.dilution > 0 else ''}"
        case "diluted":
            weigh = f"upper branches weigh {ground.dilution:.2g} times as much as lower ones, too little to count"
            return f"{_with_law(link)}: {weigh}"
        case "law unknown":
            return f"{_grows(link)}; its law in depth is not known: {_no_law(link)}"
        case "exponential" if link.fit is not None:
            return f"{_grows(link)}, exponentially with depth: {100 * (link.fit.factor - 1):+.0f} % per layer"
        case "steep":
            return f"{_with_law(link)}: more than a sum of aligned branches explains"
        case "undecided":
            vague = link.fit is None or link.fit.vague
            within = "" if vague else f", and this interval contains N^{link.limit:g}"
            return f"{_with_law(link)}{within}: add seeds or depths to decide"
        case "unregistered":
            return ground.cause
        case "unreached":
            return f"{ground.cause} received no non-zero gradient in {updates(ground.updates)}"
        case "incomparable":
            cause = "weights are shared, frozen or cut off"
            return f"no two layers{_at(ground.depth)} have a gradient to compare: {cause}"
        case "gradient":
            when = f"after {updates(link.step)}" if link.step else "before any update"
            return f"the {_whose(ground)}lowest layer receives {times(link.level)} the top layer's gradient {when}"
        case "finite":
            return "every number recorded is finite"
        case "broke":
            runs = f"{ground.cells} of {ground.of_cells} runs had a number that is not finite"
            return f"{runs}, first{_at(ground.depth)}: {ground.broke}"
        case "update":
            return _update(link)
        case "tokens":
            cosine = f"the cosine between different tokens of the output is {link.level:.2f} on average"
            return f"after {updates(link.step)} {cosine}"
        case "no tokens":
            return "no tokens were compared"
        case "scores":
            hold = f"{link.level:.2g} nats of information" if link.level > NOTHING else "no information"
            return f"the logits hold {hold} about their input while the rate rises to {TOP:g} times its peak"
        case "no scores":
            return "the model has no scores of classes, or the rate was not raised"
        case "loss":
            return _loss(link)
    return _with_law(link)


def brief(link: LinkVerdict) -> str:
    """The same for the title of a picture, where it is too long for one."""
    return _grows(link) if link.ground.key in get_args(StreamGround) else why(link)


def _whose(ground: Ground) -> str:
    """`encoder's ` where there are several stacks."""
    return f"{ground.stack}'s " if ground.stack else ""


def _at(depth: int | None) -> str:
    return f" at {depth} layers" if depth else ""


def _grows(link: LinkVerdict) -> str:
    stream = f"the {_whose(link.ground)}residual stream"
    return f"{stream} {grows(link.level)} from the first layer's input to the last's output"


def _with_law(link: LinkVerdict) -> str:
    return f"{_grows(link)}; {with_depth(link.fit)}" if link.fit is not None else _grows(link)


def _no_law(link: LinkVerdict) -> str:
    depths = [row.depth for row in link.evidence]
    if depths == [None]:
        return "the factory takes no depth"
    return too_few([depth or 0 for depth in depths]) or "not every depth has a number above 0"


def _update(link: LinkVerdict) -> str:
    after, first = f"after {updates(link.step)} the output", link.evidence[0]
    if not link.step or not math.isfinite(link.level):
        return f"{after}'s change is not finite"
    changed = f"{after} has changed by {share(link.level)}"
    if link.saturated and first.value <= UPDATE_FULL:
        return f"{changed}, {share(first.value)}{_at(first.depth)}"
    if not link.saturated and link.fit is not None and not link.fit.vague:
        return f"{changed}, as {law(link.fit)}"
    return changed


def _loss(link: LinkVerdict) -> str:
    ground = link.ground
    first, last = ground.loss_first, ground.loss_last
    fall = f"the fall of the loss in {updates(link.step)} is {first - last:.3g}, from {first:.3g} to {last:.3g}"
    if ground.frequencies is None:
        return fall
    return f"{fall} (knowing only the frequencies gives {ground.frequencies:.3g})"
