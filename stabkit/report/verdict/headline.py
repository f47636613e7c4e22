"""What runs say compared with one another, and what separates stuck from training runs: computed from the runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from stabkit.methods import variant
from stabkit.report.verdict.matrix import badness
from stabkit.results.conditions import (
    Condition,
    Shown,
    condition_order,
    conditions,
    depth_rank,
    ends_in_norm,
    method_label,
    method_rank,
    output_stack,
    shown,
)
from stabkit.results.contrast import Contrast, contrast
from stabkit.results.once import Runs
from stabkit.results.outcome import Word, stuck_by_loss
from stabkit.results.points import LOWEST
from stabkit.results.readings import centre, chain, lowest_ratio, reference_step, update_at
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.words import fitting, several, short


def headline(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]] = ()) -> str:
    """What runs say compared with one another. Whatever it compares is paired: one depth, one condition, the same
    seeds."""
    return f"{'; '.join(clauses(runs, failed))}."


def in_short(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]] = ()) -> str:
    """The same in the length of a headline."""
    if ablated := _ablated(Runs.of(runs)):
        return f"{ablated[0]}."
    return fitting(headline(runs, failed), f"{clauses(runs, failed)[0]}.")


def clauses(runs: Sequence[Run], failed: Sequence[tuple[RunSpec, str]] = ()) -> list[str]:
    """The same, clause by clause; the first says it in short."""
    runs = Runs.of(runs)
    if not runs:
        return ["No run has a result yet" if not failed else f"No run has a result: all {len(failed)} failed"]
    if all(run.spec.single_step for run in runs):
        from stabkit.wording import slope  # pandas, as below

        first, *more = slope.clauses(runs)
        return [first, *filter(None, [slope.promise(runs)]), *more]
    if all(run.spec.train.steps == 0 for run in runs):
        return ["No update was made: these are measurements of untrained models"]
    if ablated := _ablated(runs):
        return ablated[1:]
    if split := _split(runs):
        return split
    contrasted = contrast(runs)
    lost = _diverged(runs)
    if contrasted is None:
        return [f"{lost[0].upper()}{lost[1:]}" if lost else _alone(runs)]
    parts = [_first(contrasted), _gradient(contrasted, runs), _fates(contrasted)]
    if lost and not any(run.outcome.word == "diverged" for run in contrasted.higher_runs):
        parts.append(lost)
    return [part for part in parts if part]


def _ablated(runs: Sequence[Run]) -> list[str]:
    """At how many pairs of factors a method whose α and β are scaled trains, in short and in full; nothing without
    scales."""
    if all(run.spec.alpha_scale == 1 == run.spec.beta_scale for run in runs):
        return []
    from stabkit.results import scales  # it needs pandas, which the terminal's table does not

    frame = scales.frame(runs)
    judged = [
        (name, own) for name, own in scales.groups(frame) if any(cell.word != "early" for cell in scales.cells(own))
    ]
    return [scales.in_short(judged[0][1]), scales.sentence(frame, *judged[0])] if judged else []


FATES = {("stuck",): "is stuck", ("diverged",): "diverges", ("diverged", "stuck"): "diverges or is stuck"}


def _split(runs: Sequence[Run]) -> list[str]:
    """Who fails where others train, at the shallowest depth where both are seen in every seed; nothing elsewhere."""
    placed = shown(runs)
    order = condition_order([entry.run.spec for entry in placed])
    cells: dict[tuple[tuple[int, int], int], dict[str, list[Shown]]] = {}
    for entry in placed:
        place = (depth_rank(entry.run.spec), order[entry.condition])
        cells.setdefault(place, {}).setdefault(entry.variant, []).append(entry)
    for _, methods in sorted(cells.items(), key=lambda item: item[0]):
        ends = {method: {entry.run.outcome.word for entry in group} for method, group in methods.items()}
        labels = {method: group[0].label for method, group in methods.items()}
        training = [labels[method] for method, words in ends.items() if words == {"trains"}]
        failing = [method for method, words in ends.items() if words and words <= {"stuck", "diverged"}]
        if not training or not failing:
            continue
        first = methods[failing[0]][0]
        depth, condition = first.run.spec.depth, first.condition
        fates = [f"{labels[method]} {FATES[tuple(sorted(ends[method]))]}" for method in failing]
        where = f"{depth} ({condition})" if condition else depth
        lost = several(fates, len(ends)) + " fail" * (len(fates) > 4)
        sentence = f"At {where} {lost} where {several(training, len(ends))} train{'s' * (len(training) == 1)}"
        if any(len(group) > 1 for method, group in methods.items() if method in failing or labels[method] in training):
            sentence += ", in every seed"
        ratio, method = min(
            (centre(lowest_ratio(entry.run) for entry in methods[method]), method) for method in failing
        )
        if not ratio <= 0.1:
            return [sentence]
        amount = f"{short(ratio, 1)} of" if ratio > LOWEST else "nothing of"
        layer = f"{labels[method]}'s lowest {output_stack([first.shape[1]])} layer"
        return [sentence, f"{layer} receives {amount} the top layer's gradient at its lowest"]
    return []


LINKS = (
    ("gradient ratio", "gradient_ratio_lowest", 1),
    ("LN input growth", "ln_input_growth", -1),
    ("‖ΔF‖ after update 1", "update_first", -1),
)
"""(name, key in outcome.json, 1 where a run that trains should have more of it and −1 where less)."""


def separation(runs: Sequence[Run]) -> str:
    """Which links tell stuck runs (by their losses alone) from training ones; nothing where one kind is not there."""
    training = [run for run in runs if run.outcome.word == "trains"]
    lost = [run for run in runs if run.outcome.word == "stuck" and stuck_by_loss(run.records)]
    parts = []
    for name, key, sign in LINKS:
        sides = [[value for run in own if not math.isnan(value := chain(run, key))] for own in (training, lost)]
        if all(sides):
            ends = (min, max) if sign > 0 else (max, min)
            trains, stuck = (end(side) for end, side in zip(ends, sides, strict=True))
            apart = "no overlap" if sign * (trains - stuck) > 0 else "they overlap"
            words = ("at least", "at most") if sign > 0 else ("at most", "at least")
            parts.append(
                f"{name} {words[0]} {short(trains, 3)} in runs that train, {words[1]} {short(stuck, 3)} in stuck ones "
                f"({apart})"
            )
    if not parts:
        return ""
    cells = {f"{method_label(run.spec)} at {run.spec.depth}" for run in lost}
    whose = f"{len(lost)} stuck run{'s' * (len(lost) != 1)} by the loss alone"
    return f"On this page, {whose}{f', all {cells.pop()}' if len(cells) == 1 else ''}: {'; '.join(parts)}."


def mixing(runs: Sequence[Run]) -> str:
    """How far the product of its mixings lets a stream grow, of each method that mixes streams: the most over the runs
    at its greatest depth; nothing where none mixes."""
    most: dict[str, tuple[tuple[int, int], float, str]] = {}
    for run in runs:
        if "mixing" in run.records:
            found = depth_rank(run.spec), float(run.records["mixing"].values.max()), run.spec.depth
            label = method_label(run.spec)
            most[label] = max(most.get(label, found), found)
    told = [f"{short(gain, 3)} times with {label} at {depth}" for label, (_, gain, depth) in most.items()]
    return f"their product lets a stream grow by at most {', '.join(told)}." if told else ""


def _first(contrast: Contrast) -> str:
    updates = f"first {contrast.step} updates move" if contrast.step > 1 else "first update moves"
    if contrast.alike:
        return f"At {contrast.where} {contrast.higher}'s {updates} the output about as far as {contrast.lower}'s"
    return (
        f"At {contrast.where} {contrast.higher}'s {updates} the output {short(contrast.ratio)} times as far as "
        f"{contrast.lower}'s"
    )


def _gradient(contrast: Contrast, runs: Sequence[Run]) -> str:
    """The method there whose lowest decoder layer receives least, when that is a tenth or less."""
    by: dict[str, list[float]] = {}
    labels: dict[str, str] = {}
    for entry in shown(runs):
        if (entry.shape, entry.condition) == (contrast.shape, contrast.condition):
            by.setdefault(entry.variant, []).append(lowest_ratio(entry.run))
            labels[entry.variant] = entry.label
    least = [(ratio, method) for method, ratios in by.items() if not math.isnan(ratio := centre(ratios))]
    share, method = min(least, default=(math.inf, ""))
    if not share <= 0.1:
        return ""
    amount = f"{short(share, 1)} of" if share > LOWEST else "nothing of"
    whose = "its" if method == variant(contrast.higher_runs[0].spec) else f"{labels[method]}'s"
    stack = output_stack([contrast.shape[1]])
    return f"{whose} lowest {stack} layer receives {amount} the top layer's gradient at its lowest"


def _fates(contrast: Contrast) -> str:
    """How both end, where runs of both have been judged."""
    ends = [Counter(run.outcome.word for run in side) for side in (contrast.higher_runs, contrast.lower_runs)]
    if any(set(end) == {"early"} for end in ends) or ends[0] == ends[1]:
        return ""
    return f"{contrast.higher} {_fate(ends[0])} where {contrast.lower} {_fate(ends[1])}"


def _fate(end: Counter[Word]) -> str:
    word = min(end, key=badness)
    verb = {"trains": "trains", "stuck": "is stuck", "diverged": "diverges", "early": "is too early to judge"}.get(
        word, word
    )
    return f"{verb} in {end[word]} of {end.total()} runs" if end.total() > 1 else verb


def _diverged(runs: Sequence[Run]) -> str:
    """`at 100L-100L Post-LN diverges in 2 of 3 runs`: the shallowest depth that has such a run, its first method."""
    cells: dict[tuple[tuple[int, int], tuple[int, str], int], list[Shown]] = {}
    placed = shown(runs)
    order = condition_order([entry.run.spec for entry in placed])
    for entry in placed:
        place = depth_rank(entry.run.spec), method_rank(entry.run.spec), order[entry.condition]
        cells.setdefault(place, []).append(entry)
    for _, group in sorted(cells.items(), key=lambda item: item[0]):
        cell, text = [entry.run for entry in group], group[0].condition
        count = sum(run.outcome.word == "diverged" for run in cell)
        if count:
            where = f"{cell[0].spec.depth} ({text})" if text else cell[0].spec.depth
            of = f" in {count} of {len(cell)} runs" if len(cell) > 1 else ""
            return f"at {where} {method_label(cell[0].spec)} diverges{of}"
    return ""


def _alone(runs: Sequence[Run]) -> str:
    """What one method says by itself: its growth from its shallowest to its deepest, over the seeds that both have."""
    step = reference_step(runs)
    by: dict[tuple[str, Condition], list[Run]] = {}
    for run, condition in zip(runs, conditions([run.spec for run in runs]), strict=True):
        by.setdefault((variant(run.spec), condition), []).append(run)
    (_, condition), same = max(by.items(), key=lambda item: len(item[1]))
    label = method_label(same[0].spec)
    label = f"{label} ({condition})" if condition.has("alpha_scale", "beta_scale") else label
    same.sort(key=lambda run: depth_rank(run.spec))
    ends = [[run for run in same if run.spec.depth == end.spec.depth] for end in (same[0], same[-1])]
    seeds = set.intersection(*({run.spec.seed for run in end} for end in ends))
    low, high = (centre(update_at(run, step) for run in end if run.spec.seed in seeds) for end in ends)
    if math.isnan(low) or math.isnan(high):
        return (
            f"{len(same)} runs of {label} have ended; none has a model update to compare"
            if len(same) > 1
            else (f"One run of {label} has ended; it has no model update to compare")
        )
    width = same[-1].spec.model.hidden
    if ends[0][0].spec.depth == ends[1][0].spec.depth:
        beside = f", where its length is √{width} = {short(math.sqrt(width))}" if ends_in_norm(same[0].spec) else ""
        return f"At {same[0].spec.depth} {label}'s first {step} updates move the output by {short(low)}{beside}"
    return (
        f"From {same[0].spec.depth} to {same[-1].spec.depth} {label}'s first {step} updates move the output "
        f"{short(high / low)} times as far"
    )
