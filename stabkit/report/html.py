"""The page: one self-contained HTML file, computed from the runs. No network, one script of our own.

Texts reach the page only through jinja2's escaping; ids are made of our own hex digits; the pictures come from
`figures.drawing.svg.to_page`, which matplotlib has escaped; what the script reads is packed to base64.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from stabkit.claims import Finding, findings
from stabkit.claims.base import ORDER
from stabkit.figures.chain import chain_order
from stabkit.figures.drawing import style
from stabkit.figures.quick.once import Runs
from stabkit.figures.shared.comparison import GROUPS, apart, method_group, shown, trained
from stabkit.figures.shared.numbers import chain, reference_step, update_at
from stabkit.figures.shared.surfaces import Landscape
from stabkit.figures.shared.words import number, percent, plain, short
from stabkit.report import cards, how, order, turn
from stabkit.report.json_document import seconds_a_step
from stabkit.report.verdict import legend, panel, sparks
from stabkit.report.verdict.answer import answer
from stabkit.report.verdict.foretold import foretold
from stabkit.report.verdict.headline import headline, separation
from stabkit.report.verdict.matrix import OUTCOMES, Matrix, matrix
from stabkit.results.records import lacking
from stabkit.spec import RunSpec
from stabkit.storage.store import Run
from stabkit.storage.surfaces import Surface
from stabkit.version import __version__

HERE = Path(__file__).parent / "assets"

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
def render(
    runs: Sequence[Run],
    *,
    command: str,
    failed: Sequence[tuple[RunSpec, str]] = (),
    claimed: Sequence[Finding] | None = None,
    surfaces: Sequence[Surface] = (),
    title: str = "",
) -> str:
    """The page of these runs; `failed` are the runs without a result, and why; `claimed` what the claims' tests found,
    where they have been judged already."""
    whole = list({run.run_id: run for run in runs}.values())
    every = Runs(apart(whole))
    runs = Runs(trained(every))
    specs = [run.spec for run in every] + [spec for spec, _ in failed]
    verdicts = matrix([run for run in runs if not run.spec.single_step], failed)
    claimed = findings(every, surfaces) if claimed is None else claimed
    turn_script = (HERE / "turn.js").read_text(encoding="utf-8")
    turning = turn.rows(Landscape(runs, surfaces)) if surfaces else []
    environments = how.environments(every)
    asked = order.kind(every, surfaces)
    ordered = order.order(cards.of_runs(every, surfaces, whole) if every else [], asked.leads)
    said = opening(asked, ordered, answer(verdicts), headline(runs, failed))
    around = shell(title or asked.asks, command, said[0])
    if turning:
        around["hashes"] += [script_hash(turn_script), turn.plotly()[1]]
    return template(HERE / "page.html.j2").render(
        **around,
        second=said[1:],
        turning=[
            {"name": row["name"], "labels": [one["label"] for one in row["surfaces"]], "data": cards.script_data(row)}
            for row in turning
        ],
        turn_script=Markup(turn_script),
        plotly=turn.plotly()[0] if turning else "",
        matrix=verdicts,
        lowest=verdicts.lowest,
        lit=verdicts.lit,
        forecast=any(cell.forecast for row in verdicts.rows for cell in row.cells),
        judged=any(math.isfinite(cell.loss) for row in verdicts.rows for cell in row.cells),
        groups=[(group, [row for row in verdicts.rows if row.group == group]) for group in _groups(verdicts)],
        known=OUTCOMES,
        meanings=legend.meanings(verdicts),
        several=", median over seeds" if len({spec.seed for spec in specs}) > 1 else " (one seed)",
        tint=legend.tint,
        notes=legend.notes,
        sparks=sparks.of(runs, verdicts),
        anchors={run.run_id: anchor(run.spec) for run in runs},
        curves={run.run_id: panel.key(run.spec) for run in runs},
        panels=panel.panels([run for run in runs if not run.spec.single_step]),
        chain_head=[name.format(step=reference_step(runs)) for _, name in CHAIN],
        chain_rows=chain_rows([run for run in runs if not run.spec.single_step], verdicts.reference_step),
        every_row=chain_rows(every, verdicts.reference_step),
        chained=len(runs),
        steps_only=bool(every) and all(run.spec.single_step for run in every),
        separation=separation(runs),
        which=chain_order.sentence(runs),
        foretold=foretold(runs),
        order=ordered,
        figures_first=asked.figures_first and bool(ordered.leads),
        switches=switches(every),
        group_switches=group_switches(every),
        recipes=how.recipes(specs),
        departures=how.departures(specs),
        files=how.files(whole),
        claimed=bool(claimed),
        counted=counted(claimed),
        **parted(claimed),
        settings=how.settings(specs) if specs else [],
        tasks=_tasks(specs),
        seeds=sorted({spec.seed for spec in specs}),
        environments=environments,
        mixed=how.mixed(environments),
        wall=how.duration(sum(how.wall_seconds(run) for run in every)),
        duration=how.duration,
        lacking=lacking(run.lacks for run in runs),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in failed],
        count=len(every),
    )


def opening(asked: order.Kind, ordered: order.Order, answered: str, compared: str) -> list[str]:
    """The answer to the page's question, then what else there is to say in a sentence."""
    if asked is order.LANDSCAPE:
        said = [f"{ordered.leads[0].title}." if ordered.leads else "", answered, compared]
    else:
        said = [compared, answered] if asked is order.ABLATE else [answered, compared]
    return [text for text in said if text]


def parted(claimed: Sequence[Finding]) -> dict[str, list[Finding]]:
    """The claims as a page has them: those that these runs test by weight, and the untested."""
    tested = [found for found in claimed if found.verdict != "untested"]
    return {
        "central": [found for found in tested if found.claim.weight == "central"],
        "beside": [found for found in tested if found.claim.weight in ("side", "background")],
        "readings": [found for found in tested if found.claim.weight == "ours"],
        "untested": [found for found in claimed if found.verdict == "untested"],
    }


def counted(claimed: Sequence[Finding], weights: Collection[str] = ("central",)) -> str:
    """`2 hold, 1 mixed, 3 fail, 4 undecided` of the claims of these weights."""
    words = [found.verdict for found in claimed if found.claim.weight in weights]
    several = {"holds": "hold", "fails": "fail"}
    counts = [(words.count(word), word) for word in ORDER if word != "untested" and word in words]
    return ", ".join(f"{count} {several.get(word, word) if count > 1 else word}" for count, word in counts)


def shell(title: str, command: str, said: str = "") -> dict[str, Any]:
    """What every page has, whatever it shows: title, answer and command, style and script, and the script's hash."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    return {
        "title": plain(title),
        "headline": said,
        "said": plain(said.replace("`", "")),
        "command": plain(command),
        "elsewhere": plain(elsewhere(command)),
        "version": __version__,
        "css": Markup((HERE / "page.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "hashes": [script_hash(script)],
        "swatch": style.colour,
    }


def elsewhere(command: str) -> str:
    """The command as somebody can run it who lacks its text; "" where it has none."""
    if "--data" not in command:
        return ""
    words, told = shlex.split(command), list[str]()
    while words:
        word = words.pop(0)
        if word.partition("=")[0] not in ("--data", "--source", "--target", "--out"):
            told.append(word)
        elif "=" not in word and words:
            words.pop(0)
    return shlex.join(told)


def template(path: Path) -> Template:
    """A page, with the parts of this folder; whatever is put into it is escaped, and nothing may be missing."""
    environment = Environment(
        loader=FileSystemLoader([path.parent, HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = short
    environment.filters["code"] = _code
    return environment.get_template(path.name)


def _code(text: str) -> Markup:
    """A sentence whose commands stand between backticks, as in a terminal."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def switches(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """(key, label) of every method on the page; options of one method go together, as their colour does."""
    found: dict[str, str] = {}
    for each in shown(runs):
        found.setdefault(each.run.spec.method, each.label.partition(" (")[0])
    return list(found.items())


def group_switches(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """(group, its methods' keys with spaces between) where there are several groups of several methods."""
    found: dict[str, dict[str, None]] = {}
    for each in shown(runs):
        found.setdefault(method_group(each.run.spec), {})[each.run.spec.method] = None
    if len(found) < 2 or sum(map(len, found.values())) < 6:
        return []
    return [(group, " ".join(found[group])) for group in GROUPS if group in found]


def _groups(verdicts: Matrix) -> list[str]:
    return list(dict.fromkeys(row.group for row in verdicts.rows))


def anchor(spec: RunSpec) -> str:
    """The id of a run's row: made of our own hex digits, whatever the run is called."""
    return f"run-{spec.run_id[-12:]}"


def script_hash(script: str) -> str:
    """What the page's policy calls a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def chain_rows(runs: Sequence[Run], step: int) -> list[Mapping[str, Any]]:
    """One row a run: where it stands, its end, the links of its chain."""
    return [
        {
            **each.facts(),
            "anchor": anchor(each.run.spec),
            "digest": plain(each.run.digest),
            "detail": plain(str(each.run.outcome.get("detail", ""))),
            "steps": plain(str(each.run.outcome.get("steps", "–"))),
            "chain": [
                short(update_at(each.run, step) if key == "update_reference" else chain(each.run, key))
                for key, _ in CHAIN
            ],
            "validation": short(number(each.run.outcome.get("validation_loss")), 3),
            "perplexity": short(number(each.run.outcome.get("perplexity")), 3),
            "accuracy": percent(number(each.run.outcome.get("token_accuracy"))),
            "each": _milliseconds(seconds_a_step(each.run)),
            "unigram": short(number(each.run.outcome.get("unigram_loss")), 3),
            "parameters": _count(number(each.run.outcome.get("parameters"))),
            "memory": _megabytes(number(each.run.environment.get("peak_memory_bytes"))),
            "wall": how.duration(how.wall_seconds(each.run)),
        }
        for each in shown(runs)
    ]


def _count(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "–"


def _milliseconds(time: float) -> str:
    return f"{short(1000 * time)} ms" if math.isfinite(time) else "–"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if math.isfinite(size) else "–"


def _tasks(specs: Sequence[RunSpec]) -> list[Mapping[str, str]]:
    """What was trained on, and its digest."""
    tasks = {spec.task for spec in specs}
    return [
        {
            "name": plain(task.name),
            "files": plain(f"{task.source} → {task.target}") if task.source or task.target else "",
            "vocab": str(task.vocab),
            "digest": plain(task.digest) or "none: the task is decided by its name, vocabulary and seed",
        }
        for task in sorted(tasks, key=lambda task: (task.name, task.source, task.target, task.digest, task.vocab))
    ]
