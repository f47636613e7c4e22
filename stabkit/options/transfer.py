"""Options of `transfer` → what is searched, and how its runs are made: built-in methods, or a factory of the user's."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.options import grids, machine, ranges
from stabkit.options.commands import SweepOptions, TransferOptions
from stabkit.options.grids import Making
from stabkit.options.probe import folder_of, name
from stabkit.results.valley import Axis, rungs
from stabkit.running.executors import ExecutorOptions
from stabkit.running.request import Request
from stabkit.running.transfer import CaseName, SearchPlan
from stabkit.running.trials import TrialRequest
from stabkit.spec import SHORTEST_JUDGED, RunSpec

LEAST = 4.0
"""The highest rate over the lowest, at least: a minimum has a rung on either side."""


@dataclass(frozen=True, kw_only=True)
class MethodsAsked:
    """Built-in methods over depth or width."""

    plan: SearchPlan
    cells: Mapping[tuple[str, int, int], RunSpec]
    """{(method with its options, size, seed): its run at any rate}."""
    request: Request
    """With these runs at the lowest rate."""


def span(option: str, given: object) -> tuple[float, float]:
    """The two ends of a span of rates, `1e-4..1e-1`; raises UsageError for anything else."""
    text = ranges.text(given)
    low, dots, high = text.partition("..")
    if not dots:
        raise UsageError(f"{option}: {text!r} must be a span from the lowest to the highest rate: 1e-4..1e-1")
    ends = tuple(ranges.real(option, end, 0.0, 1e6, above=True) for end in (low, high))
    if ends[1] < ends[0]:
        raise UsageError(f"{option}: {text!r} goes down; give the lowest first: {high}..{low}")
    if ends[1] < LEAST * ends[0]:
        raise UsageError(f"{option}: {text!r} spans less than a factor {LEAST:g}, too little to show a minimum")
    return ends[0], ends[1]


def of_methods(options: TransferOptions, making: Making) -> MethodsAsked:
    """What is asked of built-in methods: depths, or one depth and several widths. Raises UsageError."""
    if not options.models:
        raise UsageError("name what to try: your own FACTORY, package.module:function, or built-in --models")
    if options.widths not in (None, ""):
        raise UsageError("--widths is for a factory(depth, width); the width of built-in methods is --hidden 64,128")
    low, high = span("--lr", options.lr)
    warmup = 0 if options.warmup is None else options.warmup
    shared = {name: getattr(options, name) for name in SweepOptions.defaults() if name in TransferOptions.defaults()}
    whole = grids.sweep(SweepOptions(**{**shared, "warmup": warmup, "lr": low, "yes": True}), making)
    axis, sizes = _sizes(whole.specs, alone=bool(options.highest))
    cells = {(methods.variant(spec), _size(spec, axis), spec.seed): spec for spec in whole.specs}
    labels = {methods.variant(spec): CaseName(methods.label_of(spec), spec.method) for spec in whole.specs}
    if whole.specs[0].train.steps < SHORTEST_JUDGED:
        raise UsageError(f"--steps: a run of fewer than {SHORTEST_JUDGED} updates is not judged")
    if len(cells) < len(whole.specs):
        raise UsageError("transfer varies only the rate, the seed, and the depth or the width")
    plan = SearchPlan(
        axis=axis,
        cases=labels,
        sizes=sizes,
        rungs=rungs(low, high),
        seeds=tuple(sorted({spec.seed for spec in whole.specs})),
        steps=whole.specs[0].train.steps,
        predict=_predict(options, sizes),
        highest=bool(options.highest),
    )
    return MethodsAsked(plan=plan, cells=cells, request=whole)


def _predict(options: TransferOptions, sizes: tuple[int, ...]) -> tuple[int, ...]:
    given = options.predict
    asked = () if given in (None, "") else tuple(sorted(ranges.wholes("--predict", given, 1, 1_000_000)))
    if asked and options.highest:
        raise UsageError("--predict is a law of best rates; --highest searches only the highest stable rate")
    if tried := sorted(set(asked) & set(sizes)):
        raise UsageError(f"--predict {tried[0]}: this size is tried already")
    return asked


def _sizes(specs: tuple[RunSpec, ...], *, alone: bool) -> tuple[Axis, tuple[int, ...]]:
    depths, widths = {_size(spec, "depth") for spec in specs}, {_size(spec, "width") for spec in specs}
    if len(depths) > 1 and len(widths) > 1:
        raise UsageError("transfer compares several depths or several widths, not both")
    if len(depths) == len(widths) == 1 and not alone:
        raise UsageError(f"one depth shows no drift; give several: --depths {min(depths)},{2 * min(depths)}")
    return ("width", tuple(sorted(widths))) if len(widths) > 1 else ("depth", tuple(sorted(depths)))


def _size(spec: RunSpec, axis: Axis) -> int:
    model = spec.model
    return model.hidden if axis == "width" else max(model.encoder_layers, model.decoder_layers)


@dataclass(frozen=True, kw_only=True)
class FactoryAsked:
    """A user's factory over depth or width."""

    plan: SearchPlan
    request: TrialRequest
    place: ExecutorOptions


ALIKE = (
    *("lr", "steps", "seeds", "predict", "highest", "budget", "warmup", "out", "workers", "run_timeout", "shard"),
    *("depths", "widths"),
)
"""Options that a factory and built-in methods both have; `widths` a factory alone."""


def of_factory(options: TransferOptions) -> FactoryAsked:
    """What is asked of its factory: depths, or one depth and several widths. Raises UsageError."""
    given = options.factory or ""
    if options.models:
        raise UsageError("give either a FACTORY or --models, not both")
    if beside := sorted(set(options.named) - {*ALIKE, "factory"}):
        raise UsageError(f"{ranges.flag(beside[0])} is for built-in methods (--models); a factory builds its own model")
    low, high = span("--lr", options.lr)
    depths = ranges.wholes("--depths", options.depths, 1, 10_000)
    widths = () if options.widths in (None, "") else ranges.wholes("--widths", options.widths, 1, 1_000_000)
    axis, sizes = _several(depths, widths, alone=bool(options.highest))
    factory, tried = name(given), rungs(low, high)
    plan = SearchPlan(
        axis=axis,
        cases={factory: CaseName(factory.rpartition(":")[2], factory)},
        sizes=sizes,
        rungs=tried,
        seeds=tuple(sorted(ranges.wholes("--seeds", options.seeds, 0, 2**31))),
        steps=ranges.whole("--steps", options.steps, 2, 1_000_000),
        predict=_predict(options, sizes),
        highest=bool(options.highest),
    )
    request = TrialRequest(
        factory=factory,
        here=folder_of(given) or os.getcwd(),
        axis=axis,
        depth=depths[0] if axis == "width" else None,
        smallest=sizes[0],
        warmup=None if options.warmup is None else ranges.whole("--warmup", options.warmup, 0, 1_000_000),
        steps=plan.steps,
        rungs=tried,
        out=machine.output(options.out),
    )
    place = machine.place(options)
    workers = min(machine.workers(place.workers, "cpu"), len(sizes) * len(plan.seeds))
    return FactoryAsked(plan=plan, request=request, place=replace(place, workers=workers))


def _several(depths: tuple[int, ...], widths: tuple[int, ...], *, alone: bool) -> tuple[Axis, tuple[int, ...]]:
    """What is searched over; raises UsageError where it is neither, or both."""
    if len(widths) > 1 and len(depths) > 1:
        raise UsageError(
            "transfer compares several depths or several widths, not both: give one --depths with --widths"
        )
    if len(widths) > 1:
        return "width", tuple(sorted(widths))
    if len(widths) == 1 and alone:
        return "width", widths
    if len(widths) == 1:
        raise UsageError(f"one width shows no drift; give several at one depth: --widths {widths[0]},{2 * widths[0]}")
    if len(depths) < 2 and not alone:
        raise UsageError(f"one depth shows no drift; give several: --depths {depths[0]},{2 * depths[0]}")
    return "depth", tuple(sorted(depths))


def page_name(asked: MethodsAsked | FactoryAsked) -> str:
    """`transfer-depth-4-to-32-gpt-1f3a`: the digits tell apart what else differs."""
    plan = asked.plan
    own: list[object]
    if isinstance(asked, FactoryAsked):
        own = [asked.request.factory, asked.request.depth, asked.request.warmup]
    else:
        own = [*sorted(spec.run_id for spec in asked.cells.values())]
    digits = hashlib.sha256(repr((plan, own)).encode()).hexdigest()[:4]
    cases = [re.sub(r"[^A-Za-z0-9]+", "-", name.label) for name in plan.cases.values()]
    named = "-".join(cases) if len(cases) <= 4 else f"{len(cases)}-methods"
    return (
        f"{'highest' if plan.highest else 'transfer'}-{plan.axis}-{plan.sizes[0]}-to-{plan.sizes[-1]}-{named}-{digits}"
    )
