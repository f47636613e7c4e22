"""What the page says of the runs that are joined: how the fit without them forecast them, for what none is given."""

from __future__ import annotations

from typing import Any

from stabkit import methods
from stabkit.words import percent, several, short
from studies.forecast.joined import Joined
from studies.forecast.unseen import FAILED, TRUSTED, HeldOutRuns
from studies.numbers import with_sign
from studies.rows import OPTIMIZERS as NAMES

HEADS = ("runs", "that train", "AUC", "Brier skill (95 %)", "likely, either way", "of these right")


def scores(joined: Joined) -> list[tuple[str, HeldOutRuns]]:
    """(whose, runs), at rates of the corpus; then at all."""
    near, known = joined.runs.within, joined.known.within
    theirs = {row.method for row in joined.corpus}
    by = known.of("method")
    return [
        ("all, at rates of the corpus", near),
        *((f"under {NAMES.get(name, name)}", runs) for name, runs in sorted(near.of("optimizer").items())),
        *((f"in the {block} block", runs) for block, runs in sorted(known.of("block").items())),
        ("of methods that the corpus has", known.part(lambda row: row.method in theirs)),
        ("of methods that the corpus lacks", known.part(lambda row: row.method not in theirs)),
        *((methods.label(key, {}), by[key]) for key in methods.KEYS if key in by),
        ("all, at all rates", joined.runs),
    ]


def paragraphs(joined: Joined) -> list[str]:
    """How well it holds, for what none is given, of whom it has seen no failure; nothing where nothing is joined."""
    if not joined.rows:
        return []
    near, groups = joined.runs.within, joined.known.within.of("method")
    by = near.of("optimizer")
    scored_ = "; ".join(f"{NAMES.get(name, name)} {_reported(runs)}" for name, runs in sorted(by.items()))
    sentences = [f"The forecast as it stood, on {near.whole.n} runs at rates of its corpus, by optimiser: {scored_}."]
    for name in sorted(set(by) - joined.optimizers):
        failed = by[name].whole.n - by[name].whole.trained
        why = f"only {failed} runs fail" if failed < FAILED else f"its Brier skill is below {TRUSTED:g}"
        sentences.append(f"None is given under {NAMES.get(name, name)}, where {why}.")
    if doubted := _labels(joined.abstains):
        names = several(doubted, len(methods.KEYS))
        sentences.append(f"None is given for {names}, whose Brier skill is below {TRUSTED:g}.")
    if alike := _labels({key for key, runs in groups.items() if runs.whole.trained == runs.whole.n}):
        sentences.append(
            f"Every run of {several(alike, len(groups))} at these rates trains: whether a failure of theirs would be "
            "forecast, they cannot show."
        )
    return sentences


def to_json(joined: Joined) -> dict[str, Any]:
    """{whose: its numbers}."""
    names = ("n", "trained", "auc", "brier", "skill", "decided", "right")
    return {
        whose: {**{name: getattr(runs.whole, name) for name in names}, "skill_interval": runs.skill_interval}
        for whose, runs in (scores(joined) if joined.rows else ())
    }


def scored(runs: HeldOutRuns, joined: Joined) -> tuple[str, ...]:
    """A row of the table, by HEADS."""
    whole, (low, high) = runs.whole, runs.skill_interval
    few = min(whole.trained, whole.n - whole.trained) < FAILED
    own = f"{with_sign(whole.skill)} ({with_sign(low)} to {with_sign(high)})"
    return (
        str(whole.n),
        percent(whole.base_rate),
        "–" if whole.trained in (0, whole.n) else short(whole.auc),
        f"{with_sign(joined.known.within.skill(whole))} of all" if few else own,
        percent(whole.coverage),
        percent(whole.accuracy),
    )


def _labels(keys: set[str]) -> list[str]:
    return [methods.label(key, {}) for key in methods.KEYS if key in keys]


def _reported(runs: HeldOutRuns) -> str:
    whole, (low, high) = runs.whole, runs.skill_interval
    failed = f"{whole.n - whole.trained} of {whole.n} fail"
    if whole.trained in (0, whole.n):
        return failed
    return (
        f"{failed}, AUC {short(whole.auc)}, Brier skill {short(whole.skill)} (95 % {with_sign(low)} to "
        f"{with_sign(high)}), {percent(whole.accuracy)} of its firm forecasts right"
    )
