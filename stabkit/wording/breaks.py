"""Which link of the chain broke, and whether in the order of the paper, as a sentence of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stabkit.results.breaks import NEVER, frame
from stabkit.results.once import once
from stabkit.results.points import LOWEST
from stabkit.results.readings import centre, chain, lowest_ratio
from stabkit.results.run import Run
from stabkit.words import several, short


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
