"""Any probe, by site and by step: of those that have no picture of their own, and of those from a file of one's own.

By site: the reading at the last recorded step, from the first site to the last of the stack that the output comes from,
with the reading at step 0 dotted beside it; a second stream is a line of its own. By step: the mean over all sites, and
in the frame the least and the greatest. Quantities beside the main one (after an @) are in `stabkit export`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stabkit.figures.drawing import curves
from stabkit.figures.drawing.curves import Curves, Strokes, conditions
from stabkit.figures.drawing.style import CONDITION_DASHES
from stabkit.figures.shared.comparison import FACTS, Shown, apart, shown
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.words import plain, short
from stabkit.results.records import Table
from stabkit.storage.store import Run

SHOWN_ELSEWHERE = (
    *("loss", "validation", "update", "parameter_update", "ln_input", "branch_ratio", "grad_norm", "weight_grad"),
    "perturbation",
)
"""Probes that have pictures of their own."""
WORDS: Mapping[str, tuple[str, str]] = {
    "token_cosine": ("Cosine between tokens", "mean cosine between the output states of different tokens"),
    "stream": ("Residual stream", "rms of the state after each layer; place 0 is what enters the first"),
    "cosine": ("Neighbouring states", "cosine of the states before and after each layer; 1: the layer is an identity"),
    "attention_logit": ("Attention logits", "largest attention logit of each attention"),
}
"""(its name in lists, what it reads)."""
LOG_FROM = 5.0
"""Readings that are all above 0 and spread by more than this factor are drawn on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A picture as the modules of this room are, of one probe along `along`."""

    probe: str
    along: str
    x_label: str
    rows: Callable[[Shown, Table], Iterator[dict[str, Any]]]
    least: int
    """Readings along it that are needed for a curve."""
    says: str = ""
    """What a probe of one's own says of itself."""
    OPTIONAL: bool = True

    @property
    def NAME(self) -> str:  # noqa: N802  # as a module's constant
        return f"probe-{self.probe}-{self.along}"

    @property
    def SHORT(self) -> str:  # noqa: N802
        return f"{self.words[0]} by {self.along}"

    @property
    def INDEX(self) -> str | None:  # noqa: N802
        return self.along

    @property
    def VALUE(self) -> str:  # noqa: N802
        return "value"

    @property
    def CAPTION(self) -> str:  # noqa: N802
        return f"Probe {plain(self.probe)}."

    @property
    def READ(self) -> str:  # noqa: N802
        return f"{self.words[1][0].upper()}{self.words[1][1:]}. {BESIDE[self.along]}"

    @property
    def called(self) -> str:
        """The probe's name, without what marks one of the user's own."""
        return plain(self.probe.removeprefix("own-"))

    @property
    def words(self) -> tuple[str, str]:
        whose = "a probe of one's own" if self.probe.startswith("own-") else "the probe"
        return WORDS.get(self.probe, (self.called, plain(self.says) or f"{whose} {self.called}"))

    def select(self, runs: Sequence[Run]) -> pd.DataFrame:
        """The rows of every run that has recorded it along so many."""
        found: list[dict[str, Any]] = []
        for each in shown(apart(run for run in runs if self.probe in run.records)):
            table = each.run.records.get(self.probe)
            own = list(self.rows(each, table)) if table is not None and len(table.steps) else []
            found += own if len(own) >= self.least else []
        columns = [*FACTS, *(list(found[0])[len(FACTS) :] if found else (self.along, "value"))]
        return curves.by_depth(pd.DataFrame(found, columns=columns))

    def title(self, runs: Sequence[Run]) -> str:
        """Where it ends under the method with the most and the one with the least, at the deepest."""
        frame = self.select(runs)
        ends = _ends(frame)
        if len(ends) < 2:
            return f"{self.words[0]}, by {self.along}"
        most, least = (pick(ends, key=lambda label: ends[label]) for pick in (max, min))
        depth = frame["depth"].iloc[-1]
        told = [f"{short(ends[label])} under {label}" for label in (most, least)]
        return f"{self.words[0]} at {depth}: {told[0]}, {told[1]}"

    def alt(self, frame: pd.DataFrame) -> str:
        """What the picture shows, for those who do not see it."""
        if frame.empty:
            return f"No run has recorded {self.called}."
        return f"Line charts of {self.words[1]}, by {self.along}, a panel a depth."

    def draw(self, frame: pd.DataFrame) -> Figure:
        """A panel a depth."""
        values = frame["value"].to_numpy(dtype=float) if len(frame) else np.empty(0)
        finite = values[np.isfinite(values)]
        spread = len(finite) > 0 and finite.min() > 0 and finite.max() > LOG_FROM * finite.min()
        return curves.draw(
            frame,
            Curves(
                x=self.along,
                y="value",
                beside="start" if "start" in frame else "",
                x_label=self.x_label,
                y_label=self.words[0],
                none=f"No run has recorded {self.called}.",
                log_y=bool(spread),
                across="decades" if self.along == "step" else "linear",
                grouped=self.along == "site",
                ticks=_ticks if self.along == "site" else None,
                strokes=_streams if "stream" in frame and frame["stream"].any() else conditions,
            ),
        )


def _ticks(group: pd.DataFrame) -> list[int]:
    first = int(group["site"].min())
    return sorted({first, *(place for place in curves.layer_ticks(group, "site") if place > first)})


def _streams(frame: pd.DataFrame) -> Strokes:
    """A line style a stream; conditions have panels of their own."""
    found = [str(stream) for stream in frame["stream"].unique()]
    looks = {stream: {"linestyle": dashes} for stream, dashes in zip(found, cycle(CONDITION_DASHES), strict=False)}
    several = frame["condition"].nunique() > 1
    named = [stream for stream in found if stream]
    return Strokes(column="stream", looks=looks, named=named, panels=("panel", "condition") if several else ("panel",))


BESIDE = {
    "site": "At the last recorded step; dotted at step 0. The folded table names the sites.",
    "step": "The mean over its sites.",
}


def by_site(each: Shown, table: Table) -> Iterator[dict[str, Any]]:
    """A row a site of the stack that the output comes from, at the last step; a further stream as a line of its own."""
    stack = "decoder" if each.run.spec.model.decoder_layers else "encoder"
    main = [site for site in table.sites if "@" not in site]
    own = [site for site in main if site.partition(".")[0] == stack] or main
    step, last, start = int(table.steps[-1]), table.select(own)[-1].tolist(), table.select(own)[0].tolist()
    places: dict[str, int] = {}
    for site, value, before in zip(own, last, start, strict=True):
        place, _, stream = site.partition(":")
        places[stream] = places[stream] + 1 if stream in places else 0 if place.endswith(".0") else 1
        facts = each.facts()
        if stream:
            facts["run"] = f"{facts['run']}:{stream}"
        told = plain(f"{stream} stream") if stream else ""
        at = {"stream": told, "site": places[stream], "name": plain(site), "step": step}
        yield {**facts, **at, "value": value, "start": before}


def by_step(each: Shown, table: Table) -> Iterator[dict[str, Any]]:
    """A row a recorded step: mean, least and greatest over all sites."""
    values = table.select([site for site in table.sites if "@" not in site])
    for step, row in zip(table.steps.tolist(), values, strict=True):
        parts = {"value": float(row.mean()), "least": float(row.min()), "greatest": float(row.max())}
        yield {**each.facts(), "step": step, **parts}


def of_runs(runs: Sequence[Run]) -> list[Recorded]:
    """The pictures of every probe that these runs have recorded and that has none of its own."""
    names = dict.fromkeys(name for run in runs for name in run.records if name not in SHOWN_ELSEWHERE)
    known = list(WORDS)
    ordered = sorted(names, key=lambda name: known.index(name) if name in WORDS else len(known))
    says = {f"own-{own.label}": own.says for run in runs for own in run.spec.probes}
    return [
        Recorded(name, along, label, rows, 2, says.get(name, ""))
        for name in ordered
        for along, label, rows in (
            ("site", "site, from the input on", by_site),
            ("step", "step (updates done)", by_step),
        )
    ]


def _ends(frame: pd.DataFrame) -> dict[str, float]:
    """{label: its last value, median over seeds} at the deepest, first condition."""
    if frame.empty:
        return {}
    own = frame[(frame["depth"] == frame["depth"].iloc[-1]) & (frame["condition"] == frame["condition"].iloc[0])]
    return {
        str(label): centre([float(run["value"].iloc[-1]) for _, run in mine.groupby("run", sort=False)])
        for label, mine in own.groupby("label", sort=False)
    }
