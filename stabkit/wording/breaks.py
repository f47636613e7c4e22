"""Which link of the chain broke, and whether in the order of the paper, as a sentence of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stabkit.results.breaks import NEVER, LinkName, first, frame
from stabkit.results.conditions import shown
from stabkit.results.once import once
from stabkit.results.points import LOWEST
from stabkit.results.readings import centre, chain, lowest_ratio
from stabkit.results.run import Run
from stabkit.words import listed, several, short


@once
def sentence(runs: Sequence[Run]) -> str:
    """Which link these runs break, and whether in the paper's order: counted, and nothing where none has a gradient."""
    by: dict[str, dict[str, int]] = {}
    places: dict[str, tuple[str, str]] = {}
    for row in frame(runs).itertuples():
        by.setdefault(str(row.run), {})[str(row.link)] = int(str(row.step))
        places[str(row.run)] = str(row.label), str(row.depth)
    seen = {run: links for run, links in by.items() if "gradient" in links}
    if not seen:
        return ""
    gone = [run for run, links in seen.items() if links["gradient"] == 0]
    lost = [run for run, links in seen.items() if links["gradient"] > 0]
    ordered = [run for run in lost if 0 < seen[run].get("ln_input", NEVER) <= seen[run]["gradient"]]
    grown = [run for run, links in seen.items() if links.get("ln_input", NEVER) > 0]
    below = f"in {{}} of {len(seen)} runs the lowest layer's gradient"
    if not any(run.outcome.word in ("stuck", "diverged") for run in runs):
        if told := goes_first(runs):
            return told.removesuffix(".")
        though = f"; {below.format(len(gone) + len(lost))} fell below its limit all the same" if gone or lost else ""
        return f"no run failed, so none shows where the chain breaks{though}"
    parts = []
    if gone:
        which = f"({_cells(places[run] for run in gone)}{_fall(run for run in runs if run.run_id in gone)})"
        parts.append(f"{below.format(len(gone))} was below its limit before any update {which}")
    if lost:
        training = sum(run.outcome.word == "trains" for run in runs if run.run_id in lost)
        began = f"in {len(lost)} more it" if gone else below.format(len(lost))
        after = f"in {len(ordered) or 'none'} of them after LN inputs had grown by half"
        still = f" ({training} of them train{'s' * (training == 1)} all the same)" if training else ""
        parts.append(f"{began} fell below its limit in training, {after}{still}")
    if not parts:
        parts.append(f"{below.format('none')} fell below its limit")
    parts.append(f"LN inputs grew by half in {len(grown) or 'none'}")
    end = ""
    if gone and not lost:
        end = ". So the gradient is weak before the update explodes; in DeepNet's chain it vanishes after"
    elif ordered and not gone:
        end = ". That is the order of DeepNet's chain"
    return f"{'; '.join(parts)}{end}"


GOES: Mapping[LinkName, tuple[str, str]] = {
    "gradient": ("gradient had vanished before the first update", "gradient vanishes first, by update {}"),
    "ln_input": ("LN inputs", "LN inputs grow by half first, by update {}"),
    "update": ("output", "output has moved as far as it can first, by update {}"),
}
"""What is said of a link that goes at step 0, and later."""
TOLD = 2
"""Methods that the sentence tells of."""


@once
def goes_first(runs: Sequence[Run]) -> str:
    """`Post-LN's gradient had vanished before the first update from 18L-18L on.`: of every method with runs that fail,
    or are forecast to, the link that went first in most of them; "" where none fails."""
    depths: dict[str, dict[str, None]] = {}
    went: dict[str, dict[LinkName, dict[str, int]]] = {}
    for placed in shown(runs):
        run, name = placed.run, listed(placed.label, placed.condition.text)
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
        parts.append(f"{name}'s {GOES[link][latest > 0].format(latest)} {where}")
    more = f"; {len(parts) - TOLD} more settings break too" if len(parts) > TOLD else ""
    return f"{'; '.join(parts[:TOLD])}{more}." if parts else ""


def _fall(runs: Iterable[Run]) -> str:
    """`; training took it from 0.003 to 2·10⁻⁷`: the medians of what these runs began with and of their lowest, where
    it fell ten-fold."""
    kept = list(runs)
    began = centre(max(chain(run, "gradient_ratio_start"), LOWEST) for run in kept)
    lowest = centre(map(lowest_ratio, kept))
    return f"; training took it from {short(began, 1)} to {short(lowest, 1)}" if lowest < 0.1 * began else ""


def _cells(places: Iterable[tuple[str, str]]) -> str:
    """`Post-LN at 18L-18L, 50L-50L and 100L-100L; ADMIN at 50L-50L`."""
    by: dict[str, list[str]] = {}
    for label, depth in dict.fromkeys(places):
        by.setdefault(label, []).append(depth)
    return "; ".join(f"{label} at {several(depths, len(depths) + 1, 'depths')}" for label, depths in by.items())
