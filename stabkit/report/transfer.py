"""The page of `stabkit transfer`: the sentence, the picture, the table of best rates, how it was searched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stabkit.figures.depth.transfer import PICTURE
from stabkit.report.cards import card
from stabkit.report.frame import once, page, shell
from stabkit.results.intervals import Interval
from stabkit.results.transfer import Transfer, Verdict
from stabkit.results.valley import SWEPT, Valley
from stabkit.running.transfer import RatesSearched
from stabkit.storage.folder import reports
from stabkit.words import fitting, percent, plain, scientific, short

TITLE = "Does the learning rate carry over?"
HIGHEST = "Which learning rate is still stable?"


class ValleyRow(NamedTuple):
    """A case at a size."""

    key: str
    label: str
    size: int
    cells: tuple[str, ...]
    """The best rate, the loss there, the highest that trains; only the last where that alone was searched."""


class CaseRow(NamedTuple):
    """A case over its sizes."""

    key: str
    label: str
    drift: str
    lost: str
    share: str
    """Of what the largest gains over the smallest."""
    verdict: str


RATE = (
    "The rate is that of the optimiser's first group at the smallest size; a factory's other groups and sizes "
    "keep their ratio to it."
)
WHAT: Mapping[Verdict, str] = {
    "carries": "the best rate of {} carries",
    "drifts": "that of {} drifts",
    "cannot tell": "for {} these runs cannot tell",
}
IN_SHORT: Mapping[Verdict, str] = {
    "carries": "the best rate carries for {}",
    "drifts": "it drifts for {}",
    "cannot tell": "undecided for {}",
}
VALLEY_HEADS = ("best rate", "loss there", "highest stable rate")
SENSITIVITY = "LR sensitivity"
CASE_HEADS = ("drift", "nats lost by keeping it", "share of the gain", "verdict")


def write(searched: RatesSearched, out: Path, name: str, command: str) -> Path:
    """Write the page; returns where."""
    found = sum(len(valley.trials) for case in searched.found for valley in case.valleys)
    path = reports(out) / f"{name}.html"
    return once(out, path, [found, len(searched.failed)], lambda: render(searched, command))


@np.errstate(all="ignore")
def render(searched: RatesSearched, command: str) -> str:
    """The page as one HTML file."""
    plan = searched.plan
    title, rates_title = (HIGHEST, "Highest stable rates") if plan.highest else (TITLE, "Best rates")
    return page(
        "transfer.html.j2",
        shell(
            title,
            command,
            [in_short(searched), *(sentences(searched) or [answer(searched)])],
        ),
        valley_heads=valley_heads(searched),
        highest=plan.highest,
        rates_title=rates_title,
        valleys=valleys(searched),
        case_heads=CASE_HEADS,
        cases=cases(searched),
        predicted=predictions(searched),
        predict=plan.predict,
        card=card(PICTURE, PICTURE.select(searched.found), searched.found),
        steps=plan.steps,
        seeds=len(plan.seeds),
        low=scientific(plan.rungs[0]),
        high=scientific(plan.rungs[-1]),
        axis=plan.axis,
        rate=RATE,
        swept=SWEPT if _swept(searched) else 0,
        left=searched.left,
        notes=[plain(note) for note in searched.notes],
        runs=sum(len(valley.trials) for case in searched.found for valley in case.valleys),
        failed=[(plain(run), plain(reason)) for run, reason in searched.failed],
    )


def answer(searched: RatesSearched) -> str:
    """One sentence: of a case what it came to, of several who carries, who drifts and of whom it is open."""
    if searched.plan.highest:
        return highest_answer(searched)
    if len(searched.found) == 1:
        return f"{_sentence(searched.found[0], searched.left)}."
    by_verdict: dict[Verdict, list[str]] = {}
    for case in searched.found:
        by_verdict.setdefault(case.verdict, []).append(case.label)
    parts = [f"{WHAT[verdict].format(_named(by_verdict[verdict]))}" for verdict in WHAT if verdict in by_verdict]
    return f"{_where(searched.found[0]).capitalize()}, {'; '.join(parts)}."


def in_short(searched: RatesSearched) -> str:
    """The same as far as a headline holds it."""
    cases = searched.found
    if searched.plan.highest:
        last = [case.valleys[-1] for case in cases]
        rates = [valley.highest for valley in last if valley.highest]
        span = f"up to {scientific(min(rates))} to {scientific(max(rates))}" if rates else "at no rate tried"
        return fitting(highest_answer(searched), f"At {_unit(cases[0], last[0])} {len(cases)} methods train {span}.")
    where = _where(cases[0])
    if len(cases) == 1:
        what = {"carries": "carries", "drifts": "drifts", "cannot tell": "may carry or drift"}
        return fitting(answer(searched), f"{cases[0].label}'s best rate {what[cases[0].verdict]} {where}.")
    by = {verdict: [case.label for case in cases if case.verdict == verdict] for verdict in WHAT}
    whole = [IN_SHORT[verdict].format(_named(labels)) for verdict, labels in by.items() if labels]
    counted = [IN_SHORT[verdict].format(f"{len(labels)} of {len(cases)}") for verdict, labels in by.items() if labels]
    forms = (whole, [whole[0], *counted[1:]], counted)
    return fitting(*(f"{where.capitalize()} {'; '.join(some)}." for some in forms))


def highest_answer(searched: RatesSearched) -> str:
    """Of one case its highest stable rate at every size; of several at the largest, the highest first."""
    cases = searched.found
    if len(cases) == 1:
        parts = [f"{_up_to(valley)} at {_unit(cases[0], valley)}" for valley in cases[0].valleys]
        return f"{cases[0].label} trains {', '.join(parts)}."
    order = sorted(cases, key=lambda case: case.valleys[-1].highest or 0.0, reverse=True)
    parts = [f"{case.label} trains {_up_to(case.valleys[-1])}" for case in order]
    return f"At {_unit(cases[0], cases[0].valleys[-1])} {', '.join(parts)}."


def _up_to(valley: Valley) -> str:
    """`up to 6.3e-3`."""
    return f"up to {_highest(valley)}" if valley.highest else "at no rate tried"


def _unit(case: Transfer, valley: Valley) -> str:
    """`24 layers`."""
    return f"width {valley.size}" if case.axis == "width" else f"{valley.size} layer{'s' * (valley.size != 1)}"


def _named(labels: Sequence[str]) -> str:
    """`Pre-LN, DeepNorm and Keel`."""
    return " and ".join(filter(None, [", ".join(labels[:-1]), labels[-1]]))


def sentences(searched: RatesSearched) -> list[str]:
    """A sentence a case, of several."""
    several = len(searched.found) > 1 and not searched.plan.highest
    return [f"{_sentence(case, searched.left)}." for case in searched.found] if several else []


def _where(case: Transfer) -> str:
    """`from 6 to 48 layers`."""
    unit = "layers" if case.axis == "depth" else "wide"
    return f"from {case.valleys[0].size} to {case.valleys[-1].size} {unit}"


def _sentence(case: Transfer, left: int) -> str:
    first, last = case.valleys[0], case.valleys[-1]
    where = _where(case)
    if case.verdict == "carries":
        if case.regret is not None and not any((case.regret.value, case.regret.low, case.regret.high)):
            return f"{case.label}'s best rate carries {where}: {_rung(first)} is the best rate at {last.size} too"
        return (
            f"{case.label}'s best rate carries {where}: keeping {_rung(first)} loses {_interval(case.regret)} nats at "
            f"{last.size}, no more than noise ({short(case.threshold)})"
        )
    if case.verdict == "drifts":
        law = f", as {_letter(case)}^{_interval(case.drift)}" if case.drift else ""
        return (
            f"{case.label}'s best rate drifts {where}{law}: keeping {_rung(first)} "
            f"{_loses(case)} at {last.size}{_set(case)}"
        )
    return f"{case.label}: cannot tell whether the rate carries {where}: {why(case, left)}"


def why(case: Transfer, left: int) -> str:
    """Why there is no verdict."""
    first, last = case.valleys[0], case.valleys[-1]
    if lost := sorted(case.lost & {first.size, last.size}):
        return f"a run at {_listed(lost)} has no result"
    valleys = (first, last)
    if nowhere := [valley.size for valley in valleys if valley.trials and valley.highest is None]:
        return f"no rate tried trains at {_listed(nowhere)}"
    if open_ := [valley.size for valley in valleys if not valley.whole]:
        return f"the search at {_listed(open_)} is not finished" if left else f"nothing was tried at {_listed(open_)}"
    if apart := [valley.size for valley in valleys if not valley.found]:
        return f"at {_listed(apart)} some seed diverges at every rate that all seeds tried"
    if rims := [valley for valley in valleys if valley.rim]:
        ends = " and ".join(dict.fromkeys(f"the {valley.rim} rate" for valley in rims))
        return f"at {_listed([valley.size for valley in rims])} the lowest loss is at {ends} tried; widen --lr"
    if any(valley.alike for valley in valleys):
        return "all seeds have bit-identical losses: the factory seems to set its own seed"
    if len(first.seeds) < 2:
        return "one seed has no interval; give --seeds 0..2"
    if edges := [valley.size for valley in valleys if valley.edge]:
        return f"at {_listed(edges)} the lowest loss is next to a rate that diverges: there is no minimum to compare"
    if flat := [valley.size for valley in valleys if not valley.best]:
        kept = f"; keeping {_rung(first)} loses {_interval(case.regret)} nats at {last.size}" if case.regret else ""
        return f"at {_listed(flat)} the seeds differ too much, next to the rate's effect, to find the best{kept}"
    if case.regret is None:
        return f"{_rung(first)}, the best at {first.size}, diverges at {last.size} in some seeds"
    return (
        f"keeping {_rung(first)} loses {_interval(case.regret)} nats, which may be noise ({short(case.threshold)}) or "
        "more; more --seeds narrow it"
    )


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))


def _loses(case: Transfer) -> str:
    if case.regret is None or math.isinf(case.regret.value):
        return "does not train"
    share = f", {percent(case.regret.value / case.gain)} of the gain from depth" if case.gain > 0 else ""
    return f"loses {_interval(case.regret)} nats{share if case.axis == 'depth' else ''}"


def _set(case: Transfer) -> str:
    """`; set 1.3e-3 at 48`."""
    rates = [f"{scientific(rate.value)} at {size}" for size in case.predict if (rate := case.predicted(size))]
    return f"; by that law set {', '.join(rates)}" if rates else ""


def _rung(valley: Valley) -> str:
    return scientific(valley.rungs[valley.middle])


def _letter(case: Transfer) -> str:
    return "N" if case.axis == "depth" else "d"


def _interval(number: Interval | None) -> str:
    """`−0.52 (−0.60 to −0.44)`."""
    if number is None:
        return "–"
    if math.isinf(number.value):
        return "all"

    def write(value: float) -> str:
        return short(value).replace("-", "−")

    if math.isnan(number.low):
        return write(number.value)
    return f"{write(number.value)} ({write(number.low)} to {write(number.high)})"


def valley_heads(searched: RatesSearched) -> tuple[str, ...]:
    """Of `ValleyRow.cells`."""
    if searched.plan.highest:
        return VALLEY_HEADS[-1:]
    return (*VALLEY_HEADS, SENSITIVITY) if _swept(searched) else VALLEY_HEADS


def _swept(searched: RatesSearched) -> bool:
    """Whether some size has its sensitivity."""
    return any(valley.sensitivity is not None for case in searched.found for valley in case.valleys)


def valleys(searched: RatesSearched) -> list[ValleyRow]:
    """A case and size a row."""
    return [
        ValleyRow(
            case.method,
            case.label,
            valley.size,
            _cells(valley, searched),
        )
        for case in searched.found
        for valley in case.valleys
    ]


def _cells(valley: Valley, searched: RatesSearched) -> tuple[str, ...]:
    """What `valley_heads` names."""
    if searched.plan.highest:
        return (_highest(valley),)
    value = valley.sensitivity
    swept = ("–" if value is None else f"{short(value)} nats",) if _swept(searched) else ()
    return (_best(valley), _loss(valley), _highest(valley), *swept)


def _loss(valley: Valley) -> str:
    return short(valley.loss, 3) if valley.found else "–"


def _highest(valley: Valley) -> str:
    """`6.3e-3`, `1e-1 or more`, `none`."""
    if valley.highest is None:
        return "none"
    return f"{scientific(valley.highest)}{'' if valley.bounded else ' or more'}"


def cases(searched: RatesSearched) -> list[CaseRow]:
    """A case a row."""
    return [
        CaseRow(
            case.method,
            case.label,
            f"{_letter(case)}^{_interval(case.drift)}" if case.drift else "–",
            "does not train" if case.regret and math.isinf(case.regret.value) else _interval(case.regret),
            _share(case),
            case.verdict,
        )
        for case in searched.found
    ]


def _share(case: Transfer) -> str:
    """Of what the largest gains, where it gains more than noise and something is lost."""
    if not case.regret or not case.gain > case.threshold:
        return "–"
    return percent(max(0.0, case.regret.value) / case.gain)


def _best(valley: Valley) -> str:
    """`4.1e-3 (3.8e-3 to 4.4e-3)`."""
    if not valley.found:
        return "none trains" if valley.trials and valley.highest is None else "none"
    if valley.best is None:
        if valley.rim:
            return f"at the {valley.rim} rate tried"
        return f"{_rung(valley)}, where training ends" if valley.edge else "no minimum"
    return _rate(valley.best)


def predictions(searched: RatesSearched) -> list[tuple[str, list[str]]]:
    """(label, the best rate predicted at each size asked) a case."""
    found = []
    for case in searched.found:
        rates = [case.predicted(size) for size in case.predict]
        found.append((case.label, [_rate(rate) for rate in rates]))
    return found if searched.plan.predict else []


def _rate(rate: Interval | None) -> str:
    if rate is None:
        return "–"
    spread = f" ({scientific(rate.low)} to {scientific(rate.high)})" if math.isfinite(rate.low) else ""
    return f"{scientific(rate.value)}{spread}"
