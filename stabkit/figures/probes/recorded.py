"""Any probe, by site and by step: of those that have no picture of their own, and of those from a file of one's own.

By site: the reading at the last recorded step, from the first site to the last of the stack that the output comes from,
with the reading at step 0 dotted beside it; a second stream is a line of its own. By step: the mean over all sites, and
in the frame the least and the greatest. Quantities beside the main one (after an @) are in `stabkit export`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

import numpy as np
import pandas as pd

from stabkit.figures.curve_picture import curves_of
from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves, Strokes, conditions
from stabkit.figures.drawing.style import CONDITION_DASHES
from stabkit.figures.picture import RunPicture, always
from stabkit.results.conditions import Shown, apart
from stabkit.results.readings import centre
from stabkit.results.records import Table
from stabkit.results.run import Run
from stabkit.results.sites import main_sites, parse
from stabkit.words import plain, short

SHOWN_ELSEWHERE = frozenset(
    "loss validation update parameter_update ln_input branch_ratio grad_norm weight_grad".split()
)
"""Probes that have pictures of their own."""
WORDS: Mapping[str, tuple[str, str]] = {
    "token_cosine": ("Cosine between tokens", "mean cosine between the output states of different tokens"),
    "stream": ("Residual stream", "rms of the state after each layer; position 0 is the input of the first"),
    "cosine": ("Neighbouring states", "cosine of the states before and after each layer; 1: the layer is an identity"),
    "attention_logit": ("Attention logits", "largest attention logit of each attention"),
    "perturbation": (
        "Change under a fixed perturbation",
        "relative change of each state when every weight moves by 1e-4, before training",
    ),
    "mixing": ("Gain of the mixings", "largest row sum of the product of mixings up to each sub-layer; 1: no growth"),
}
"""(its name in lists, what it reads)."""
LEAST = 2
"""Readings that are needed for a curve."""
LOG_FROM = 5.0
"""Readings that are all above 0 and spread by more than this factor are drawn on a logarithmic scale."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Along:
    """What the readings of a probe are drawn along."""

    name: Literal["site", "step"]
    x_note: str
    """What the axis says besides."""
    columns: tuple[str, ...]
    rows: Callable[[Shown, Table], Iterator[dict[str, Any]]]
    """What a run has read."""
    note: str
    """What stands for a site or a step."""


def of_runs(runs: Sequence[Run]) -> list[RunPicture]:
    """The pictures of every probe that these runs have recorded and that has none of its own."""
    names = dict.fromkeys(name for run in runs for name in run.records if name not in SHOWN_ELSEWHERE)
    known = list(WORDS)
    ordered = sorted(names, key=lambda name: known.index(name) if name in WORDS else len(known))
    says = {f"own-{probe.label}": probe.says for run in runs for probe in run.spec.probes}
    return [picture(name, along, says.get(name, "")) for name in ordered for along in (BY_SITE, BY_STEP)]


def picture(probe: str, along: Along, says: str) -> RunPicture:
    """The picture of one probe; `says` is what a probe of one's own says of itself."""
    called = plain(probe.removeprefix("own-"))
    whose = "a user's probe" if probe.startswith("own-") else "the probe"
    head, reads = WORDS.get(probe, (called, plain(says) or f"{whose} {called}"))

    def rows(placed: Shown) -> list[dict[str, Any]]:
        """Of a run that has recorded it at two sites or steps."""
        table = placed.run.records[probe]
        readings = list(along.rows(placed, table)) if len(table.steps) else []
        return readings if len(readings) >= LEAST else []

    def title(runs: Sequence[Run], frame: pd.DataFrame) -> str:
        """Where it ends under the method with the most and the one with the least, at the deepest."""
        ends = _ends(frame)
        if len(ends) < 2:
            return f"{head}, by {along.name}"
        most, least = (pick(ends, key=lambda label: ends[label]) for pick in (max, min))
        depth = frame["depth"].iloc[-1]
        return f"{head} at {depth}: {short(ends[most])} under {most}, {short(ends[least])} under {least}"

    def what(frame: pd.DataFrame) -> Curves:
        values = frame["value"].to_numpy(dtype=float)
        finite = values[np.isfinite(values)]
        by_site = along is BY_SITE
        return Curves(
            x=along.name,
            y="value",
            beside="start" if by_site else "",
            x_name=along.name,
            x_note=along.x_note,
            y_label=head,
            log_y=bool(len(finite) > 0 and finite.min() > 0 and finite.max() > LOG_FROM * finite.min()),
            across="linear" if by_site else "decades",
            grouped=by_site,
            ticks=_ticks if by_site else None,
            strokes=_streams if by_site and frame["stream"].any() else conditions,
        )

    return curves_of(
        name=f"probe-{probe}-{along.name}",
        short=f"{head} by {along.name}",
        room="probes",
        caption=f"Probe {plain(probe)}.",
        see=f"{reads[0].upper()}{reads[1:]}.",
        read=always(along.note),
        columns=along.columns,
        index=along.name,
        value="value",
        of=lambda runs: apart(run for run in runs if probe in run.records),
        rows=rows,
        title=title,
        alt=lambda frame: f"Line charts of {reads}, by {along.name}, one panel per depth.",
        what=what,
        none=f"No run has recorded {called}.",
        optional=True,
    )


def _ticks(group: pd.DataFrame) -> list[int]:
    first = int(group["site"].min())
    return sorted({first, *(place for place in curves.layer_ticks(group, "site") if place > first)})


def _streams(frame: pd.DataFrame) -> Strokes:
    """A line style a stream; conditions have panels of their own."""
    streams = [str(stream) for stream in frame["stream"].unique()]
    looks = {stream: {"linestyle": dashes} for stream, dashes in zip(streams, cycle(CONDITION_DASHES), strict=False)}
    several = frame["condition"].nunique() > 1
    named = [stream for stream in streams if stream]
    return Strokes(column="stream", looks=looks, named=named, panels=("panel", "condition") if several else ("panel",))


def by_site(placed: Shown, table: Table) -> Iterator[dict[str, Any]]:
    """A row a site of the stack that the output comes from, at the last step; a further stream as a line of its own."""
    stack = "decoder" if placed.run.spec.model.decoder_layers else "encoder"
    sites = [site for site in main_sites(table.sites) if parse(site).stack == stack] or main_sites(table.sites)
    step, last, start = int(table.steps[-1]), table.select(sites)[-1].tolist(), table.select(sites)[0].tolist()
    places: dict[str, int] = {}
    for site, value, before in zip(sites, last, start, strict=True):
        stream = parse(site).stream
        places[stream] = places[stream] + 1 if stream in places else 0 if parse(site).layer == f"{stack}.0" else 1
        run = {"run": f"{placed.run.run_id}:{stream}"} if stream else {}
        name = plain(f"{stream} stream") if stream else ""
        at = {"stream": name, "site": places[stream], "name": plain(site), "step": step}
        yield {**run, **at, "value": value, "start": before}


def by_step(placed: Shown, table: Table) -> Iterator[dict[str, Any]]:
    """A row a recorded step: mean, least and greatest over all sites."""
    values = table.select(main_sites(table.sites))
    for step, row in zip(table.steps.tolist(), values, strict=True):
        parts = {"value": float(row.mean()), "least": float(row.min()), "greatest": float(row.max())}
        yield {"step": step, **parts}


def _ends(frame: pd.DataFrame) -> dict[str, float]:
    """{label: its last value, median over seeds} at the deepest, first condition."""
    if frame.empty:
        return {}
    deepest = frame[(frame["depth"] == frame["depth"].iloc[-1]) & (frame["condition"] == frame["condition"].iloc[0])]
    return {
        str(label): centre([float(run["value"].iloc[-1]) for _, run in rows.groupby("run", sort=False)])
        for label, rows in deepest.groupby("label", sort=False)
    }


BY_SITE = Along(
    name="site",
    x_note=", from the input on",
    columns=("stream", "site", "name", "step", "value", "start"),
    rows=by_site,
    note="At the last recorded step; dotted at step 0. The table below names the sites.",
)
BY_STEP = Along(
    name="step",
    x_note=" (updates done)",
    columns=("step", "value", "least", "greatest"),
    rows=by_step,
    note="The mean over its sites.",
)
