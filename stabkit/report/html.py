"""The page: one self-contained HTML file, computed from the runs. No network, one script of our own.

Texts reach the page only through jinja2's escaping; ids are made of our own hex digits; the pictures come from
`figures.drawing.svg.to_page`, which matplotlib has escaped; what the script reads is packed to base64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stabkit.claims import Finding
from stabkit.claims.base import ORDER
from stabkit.figures.drawing import style
from stabkit.methods import label_of
from stabkit.report import order, provenance
from stabkit.report.frame import ASSETS, shell, template
from stabkit.report.json_document import seconds_a_step
from stabkit.report.sparks import sparks
from stabkit.report.summary import Summary
from stabkit.results import slope
from stabkit.results.conditions import GROUPS, method_group, shown
from stabkit.results.matrix import OUTCOMES, Matrix
from stabkit.results.readings import chain, reference_step, update_at
from stabkit.results.records import lacking
from stabkit.results.run import Run
from stabkit.spec import RunSpec
from stabkit.wording import answer, legend
from stabkit.words import fitting, number, percent, plain, short

CHAIN = (
    ("update_first", "‖ΔF‖, step 1"),
    ("update_reference", "‖ΔF‖, step {step}"),
    ("ln_input_growth", "LN input, growth"),
    ("branch_ratio", "branch ÷ skip"),
    ("gradient_ratio_start", "gradient, first ÷ last layer, step 0"),
    ("gradient_ratio_lowest", "gradient, first ÷ last layer, lowest"),
    ("frozen_layers", "layers frozen"),
)
"""The links of the chain in their order: key in outcome.json, column head."""


@np.errstate(all="ignore")  # runs diverge as they like: what comes of it is NaN or infinity and is drawn as such
def render(summary: Summary, *, command: str, title: str = "", all_figures: bool = True) -> str:
    """The page of these runs, with all figures or those that lead alone."""
    every, runs, failed, surfaces = summary.apart, summary.trained, summary.failed, summary.surfaces
    cells = [cell for row in summary.matrix.rows for cell in row.cells]
    specs = [run.spec for run in every] + [spec for spec, _ in failed]
    verdicts = summary.matrix
    environments = provenance.environments(every)
    chained = [run for run in runs if not run.spec.single_step]
    shown_runs = listed(chained, verdicts)
    asked = order.kind(every, surfaces)
    ordered = order.order(every, surfaces, summary.runs, leads=asked.leads, every=all_figures)
    around = shell(title or asked.asks, command, opening(summary), provenance.condition(specs))
    return template(ASSETS / "page.html.j2").render(
        **around,
        swatch=style.colour,
        matrix=verdicts,
        lowest=verdicts.lowest,
        unigram=verdicts.unigram,
        **_coloured(verdicts, every),
        forecast=any(cell.forecast for cell in cells),
        judged=any(math.isfinite(cell.loss) for cell in cells),
        groups=[(group, [row for row in verdicts.rows if row.group == group]) for group in _groups(verdicts)],
        known=OUTCOMES,
        meanings=legend.meanings(verdicts),
        moved=any(cell.chained or (cell.forecast and not cell.saturated) for cell in cells),
        several=", median over seeds" if len({spec.seed for spec in specs}) > 1 else " (one seed)",
        words=legend,
        sparks=sparks(runs, verdicts),
        anchors={run.run_id: anchor(run.spec) for run in runs},
        chain_head=[name.format(step=reference_step(runs)) for _, name in CHAIN],
        chain_rows=chain_rows(shown_runs, verdicts.reference_step),
        every_row=chain_rows(listed(every, verdicts), verdicts.reference_step),
        chained=len(chained),
        steps_only=bool(every) and all(run.spec.single_step for run in every),
        order=ordered,
        every_figure=f"{command} --all-figures",
        figures_first=asked.figures_first and bool(ordered.leads),
        switches=switches(every),
        group_switches=group_switches(every),
        recipes=provenance.recipes(specs),
        departures=provenance.departures(specs),
        files=provenance.files(summary.runs),
        claimed=bool(summary.claims),
        counted=counted(summary.claims),
        **parted(summary.claims),
        settings=provenance.settings(specs) if specs else [],
        tasks=_tasks(specs),
        seeds=sorted({spec.seed for spec in specs}),
        environments=environments,
        mixed=provenance.mixed(environments),
        wall=provenance.duration(sum(provenance.wall_seconds(run) for run in every)),
        duration=provenance.duration,
        lacking=lacking(run.lacks for run in runs),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in failed],
        count=len(every),
    )


LISTED = 600
"""Runs that a page lists one by one."""


def listed(runs: Sequence[Run], verdicts: Matrix) -> Sequence[Run]:
    """The runs that are listed: all, or of many those of the first seeds of every cell of the matrix."""
    if len(runs) <= LISTED:
        return runs
    cells = [cell.run_ids for row in verdicts.rows for cell in row.cells if cell.run_ids]
    first = {run_id for ids in cells for run_id in ids[: max(1, LISTED // len(cells))]}
    return [run for run in runs if run.run_id in first] or runs[:LISTED]


def opening(summary: Summary) -> list[str]:
    """The headline, then what else there is to say in a sentence."""
    answered = summary.answer or summary.instead
    brief = summary.headline or answer.in_short(summary.matrix) or fitting(answered, f"{answered.split(';')[0]}.")
    return [brief, answered.removeprefix(summary.headline).lstrip()]


def parted(claimed: Sequence[Finding]) -> dict[str, list[Finding]]:
    """The claims as a page has them: those that these runs test by weight, those that no such run could decide, and
    the untested."""
    tested = [finding for finding in claimed if finding.verdict not in ("out of reach", "untested")]
    return {
        "central": [finding for finding in tested if finding.claim.weight == "central"],
        "beside": [finding for finding in tested if finding.claim.weight in ("side", "background")],
        "beyond": [finding for finding in claimed if finding.verdict == "out of reach"],
        "untested": [finding for finding in claimed if finding.verdict == "untested"],
    }


def counted(claimed: Sequence[Finding], weights: Collection[str] = ("central",)) -> str:
    """`2 hold, 1 mixed, 3 fail, 4 undecided` of the claims of these weights."""
    words = [found.verdict for found in claimed if found.claim.weight in weights]
    several = {"holds": "hold", "fails": "fail"}
    counts = [(words.count(word), word) for word in ORDER if word != "untested" and word in words]
    return ", ".join(f"{count} {several.get(word, word) if count > 1 else word}" for count, word in counts)


def switches(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """(key, label) of every method on the page; options of one method go together where their colour does."""
    labels: dict[str, str] = {}
    for entry in shown(runs):
        spec = entry.run.spec
        one = spec if entry.paint != spec.method else replace(spec, options={})
        labels.setdefault(entry.paint, plain(label_of(one)))
    return list(labels.items())


def group_switches(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """(group, its methods' keys with spaces between) where there are several groups of several methods."""
    groups: dict[str, dict[str, None]] = {}
    for entry in shown(runs):
        groups.setdefault(method_group(entry.run.spec), {})[entry.paint] = None
    if len(groups) < 2 or sum(map(len, groups.values())) < 6:
        return []
    return [(group, " ".join(groups[group])) for group in GROUPS if group in groups]


def _coloured(verdicts: Matrix, runs: Sequence[Run]) -> dict[str, Any]:
    """`lit`, the methods that figures show in colour where there are too many for all, and which these are."""
    if verdicts.lit:
        return {"lit": verdicts.lit, "which_lit": "the best, the middle and the worst, each at its greatest depth"}
    return {"lit": slope.lit(runs), "which_lit": "the headline's, the one that moves least and the one that moves most"}


def _groups(verdicts: Matrix) -> list[str]:
    return list(dict.fromkeys(row.group for row in verdicts.rows))


def anchor(spec: RunSpec) -> str:
    """The id of a run's row: made of our own hex digits, whatever the run is called."""
    return f"run-{spec.run_id[-12:]}"


def chain_rows(runs: Sequence[Run], step: int) -> list[Mapping[str, Any]]:
    """One row a run: where it stands, its end, the links of its chain."""
    return [
        {
            **each.facts(),
            "anchor": anchor(each.run.spec),
            "digest": plain(each.run.digest),
            "detail": legend.detail(each.run.outcome),
            "steps": str(each.run.outcome.steps),
            "chain": [
                short(update_at(each.run, step) if key == "update_reference" else chain(each.run, key))
                for key, _ in CHAIN
            ],
            "validation": short(each.run.outcome.validation_loss, 3),
            "perplexity": short(each.run.outcome.perplexity, 3),
            "accuracy": percent(each.run.outcome.token_accuracy),
            "each": _known(seconds_a_step(each.run), lambda time: f"{short(1000 * time)} ms"),
            "unigram": short(each.run.outcome.unigram_loss, 3),
            "parameters": _known(float(each.run.parameters), "{:,.0f}".format),
            "memory": _known(number(each.run.environment.get("peak_memory_bytes")) / 1e6, "{:,.0f} MB".format),
            "wall": provenance.duration(provenance.wall_seconds(each.run)),
        }
        for each in shown(runs)
    ]


def _known(value: float, text: Callable[[float], str]) -> str:
    return text(value) if math.isfinite(value) else "–"


def _tasks(specs: Sequence[RunSpec]) -> list[Mapping[str, str]]:
    """What was trained on, and its digest."""
    tasks = {spec.task for spec in specs}
    return [
        {
            "name": plain(task.name),
            "files": plain(f"{task.source} → {task.target}") if task.source or task.target else "",
            "vocab": str(task.vocab),
            "digest": plain(task.digest) or "none: name, vocabulary and seed define the task",
        }
        for task in sorted(tasks, key=lambda task: (task.name, task.source, task.target, task.digest, task.vocab))
    ]
