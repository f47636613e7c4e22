"""What a user's experiment tracker is given: every number of a reading, and every warning as its own kind of alert.

    tracker          known by        numbers                    warning
    TensorBoard      add_scalar      add_scalar(name, x, step)  add_text
    Weights & Biases define_metric   log(…, commit=False)       alert
    MLflow           log_metrics     log_metrics(…, step)       set_tag
    Trackio          log             log(…, step)               alert

Weights & Biases has one step for the whole run, and drops what is logged at a lower one. So nothing here names a step
or ends one: numbers join the row that the user's own next `log` ends, and are drawn over `stabkit/update`. Of readings
between two of the user's rows the last is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stabkit.results.own.alarm import Alarm

UPDATE = "stabkit/update"
"""What Weights & Biases draws our numbers over."""
PLAIN = re.compile(r"[^\w\-. :/]")
"""What MLflow takes in no name."""
Scalars = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Tracker:
    """One kind of tracker."""

    name: str
    known_by: str
    """An attribute that those before it in TRACKERS lack."""
    numbers: Callable[[Any, Scalars, int], None]
    warning: Callable[[Any, Alarm], None]


def _tensorboard(writer: Any, scalars: Scalars, step: int) -> None:
    for name, value in scalars.items():
        writer.add_scalar(name, value, step)


def _wandb(writer: Any, scalars: Scalars, step: int) -> None:
    if step == 0:
        writer.define_metric(UPDATE, hidden=True)
        writer.define_metric("stabkit/*", step_metric=UPDATE)
    writer.log({**scalars, UPDATE: step}, commit=False)


def _mlflow(writer: Any, scalars: Scalars, step: int) -> None:
    writer.log_metrics({PLAIN.sub("_", name): value for name, value in scalars.items()}, step=step)


def _trackio(writer: Any, scalars: Scalars, step: int) -> None:
    writer.log(dict(scalars), step=step)


def _text(writer: Any, alarm: Alarm) -> None:
    if hasattr(writer, "add_text"):
        writer.add_text(f"stabkit/{alarm.link}", alarm.whole, alarm.step)


def _alert(writer: Any, alarm: Alarm) -> None:
    if hasattr(writer, "alert"):
        writer.alert(title=f"stabkit: {alarm.link}", text=alarm.whole)


def _tag(writer: Any, alarm: Alarm) -> None:
    if hasattr(writer, "set_tag"):
        writer.set_tag(f"stabkit.{alarm.link}", alarm.whole)


TRACKERS = (
    Tracker("TensorBoard", "add_scalar", _tensorboard, _text),
    Tracker("Weights & Biases", "define_metric", _wandb, _alert),
    Tracker("MLflow", "log_metrics", _mlflow, _tag),
    Tracker("Trackio", "log", _trackio, _alert),
)


def tracker(writer: Any) -> Tracker | None:
    """Its kind, by what it has; None for none."""
    return next((kind for kind in TRACKERS if hasattr(writer, kind.known_by)), None)


def send(writer: Any, probe: str, step: int, row: Mapping[str, float]) -> None:
    """The finite numbers of one reading; raises what the tracker raises."""
    kind = tracker(writer)
    scalars = {f"stabkit/{probe}/{site}": value for site, value in row.items() if math.isfinite(value)}
    if kind is not None and scalars:
        kind.numbers(writer, scalars, step)


def alert(writer: Any, alarm: Alarm) -> None:
    """One warning; raises what the tracker raises."""
    kind = tracker(writer)
    if kind is not None:
        kind.warning(writer, alarm)
