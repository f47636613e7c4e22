"""Which link of the chain went first, as a sentence of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stabkit.results.breaks import NEVER, LinkName, first
from stabkit.results.conditions import shown
from stabkit.results.once import once
from stabkit.results.run import Run
from stabkit.words import several

GOES: Mapping[LinkName, tuple[str, str]] = {
    "gradient": ("gradient had vanished before the first update", "gradient vanishes first, by update {}"),
    "ln_input": ("LN inputs", "LN inputs grow by half first, by update {}"),
    "update": ("output", "output has moved as far as it can first, by update {}"),
}
"""What is said of a link that goes at step 0, and later."""
MOST_SETTINGS = 2
"""Methods that the sentence tells of."""


@once
def goes_first(runs: Sequence[Run]) -> str:
    """`Post-LN's gradient had vanished before the first update from 18L-18L on.`: of every method with runs that fail,
    or are forecast to, the link that went first in most of them; "" where none fails."""
    depths: dict[str, dict[str, None]] = {}
    went: dict[str, dict[LinkName, dict[str, int]]] = {}
    for placed in shown(runs):
        run, text = placed.run, placed.condition.text
        name = f"{placed.label} ({text}): the" if text else f"{placed.label}'s"
        depths.setdefault(name, {})[run.spec.depth] = None
        word = run.forecast.word if run.outcome.word == "early" and run.forecast else run.outcome.word
        steps = {link: step for link in GOES if (step := first(run, link)) is not None and step != NEVER}
        if steps and word in ("stuck", "diverged", "fails", "probably fails"):
            link = min(steps, key=lambda one: (steps[one], one != "gradient"))
            at = went.setdefault(name, {}).setdefault(link, {})
            at[run.spec.depth] = max(at.get(run.spec.depth, 0), steps[link])
    parts = []
    for name, links in went.items():
        link = max(links, key=lambda one: len(links[one]))
        here, every = list(links[link]), list(depths[name])
        onwards = len(here) > 1 and here == every[-len(here) :]
        where = f"from {here[0]} on" if onwards else f"at {several(here, len(here) + 1, 'depths')}"
        latest = max(links[link].values())
        parts.append(f"{name} {GOES[link][latest > 0].format(latest)} {where}")
    one = " (one seed)" * (len({run.spec.seed for run in runs}) == 1)
    more = f"; {len(parts) - MOST_SETTINGS} more settings break too" if len(parts) > MOST_SETTINGS else ""
    return f"{'; '.join(parts[:MOST_SETTINGS])}{more}{one}." if parts else ""
