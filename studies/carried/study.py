"""The cases searched: at every depth up to the last, and, compared with what they predict, at the double."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from stabkit import api
from stabkit.cli.progress import Screen
from stabkit.options import transfer as options
from stabkit.results.transfer import Transfer
from stabkit.results.valley import Valley, rungs
from stabkit.running import transfer, trials
from stabkit.running.executors import several
from stabkit.running.plan import Map
from stabkit.running.transfer import Place, SearchPlan, Seconds, Train, Trained
from stabkit.storage.store import Store
from studies.carried import rows
from studies.carried.cases import CASES, CarriedCase
from studies.carried.rows import CarriedRow, Rows


def run(path: Path, text: dict[str, str], out: Path, limit: float | None) -> int:
    """Train what has no row, case by case, as long as `limit` seconds last; how many cases are not whole."""
    begin, store, left = time.monotonic(), Store(out), 0
    store.writable()
    for case in CASES:
        rest = None if limit is None else limit - (time.monotonic() - begin)
        if rest is not None and rest <= 0:
            left += 1
            continue
        with ExitStack() as held:
            plan, train, seconds = _made(case, text, store, held)
            kept = _kept(path, case, plan, train)
            key = next(iter(plan.cases))
            known = {
                Place(key, row.depth, plan.rungs.index(row.lr), row.seed): trial
                for row, trial in rows.read(path).items()
                if row.case == case.key
            }
            while True:
                searched = transfer.search(plan, kept, seconds, rest, known)
                more = [] if searched.left else further(case, plan, key, rows.read(path))
                if not more:
                    break
                known |= kept(more).trials
        left += bool(searched.left)
    return left


def _made(case: CarriedCase, text: dict[str, str], store: Store, held: ExitStack) -> tuple[SearchPlan, Train, Seconds]:
    screen = Screen(quiet=False, rounds=True)
    if "factory" in case.options:
        own = options.of_factory(api.filled("transfer", {**case.whole, "out": str(store.out)}))
        execute = held.enter_context(_workers(own))
        return own.plan, *trials.of_factory(own.request, execute, own.place.workers, screen.trying)
    asked = options.of_methods(api.filled("transfer", {**case.whole, **text, "out": str(store.out)}), screen.making)
    made = transfer.of_methods(asked.plan, asked.cells, asked.request, store, screen, retry_failed=False)
    return asked.plan, *made


def _workers(own: options.FactoryAsked) -> AbstractContextManager[Map]:
    return several("processes", own.place)


def _kept(path: Path, case: CarriedCase, plan: SearchPlan, train: Train) -> Train:
    """What has a row is taken from it; what is trained gets one."""

    def kept(places: Sequence[Place]) -> Trained:
        known = rows.read(path)
        key = {place: CarriedRow(case.key, place.size, plan.rungs[place.rung], place.seed) for place in places}
        missing = [place for place in places if key[place] not in known]
        done = train(missing) if missing else Trained({}, ())
        known |= {key[place]: trial for place, trial in done.trials.items()}
        if missing:
            rows.write(path, known)
        return Trained({place: known[key[place]] for place in places if key[place] in known}, done.failed)

    return kept


def further(case: CarriedCase, plan: SearchPlan, key: str, known: Rows) -> list[Place]:
    """What no search asks for: the shallowest's best rung at the deepest of the training set, and the predicted one at
    the depth that is held out; without those that have a row."""
    fit, held_out = transfers(case, known)
    wanted = [(case.depths[-1], fit.valleys[0].middle)] if fit.valleys[0].found else []
    if held_out.found and (rung := predicted(fit, held_out)) is not None:
        wanted.append((case.held_out, rung))
    places = [Place(key, depth, rung, seed) for depth, rung in wanted for seed in plan.seeds]
    return [
        place for place in places if CarriedRow(case.key, place.size, plan.rungs[place.rung], place.seed) not in known
    ]


def predicted(fit: Transfer, held_out: Valley) -> int | None:
    """The rung next to the rate that the law predicts; None where it predicts none, or one beyond the rungs."""
    rate = fit.predicted(held_out.size)
    if rate is None or not held_out.rungs[0] / 2 <= rate.value <= 2 * held_out.rungs[-1]:
        return None
    return min(range(len(held_out.rungs)), key=lambda i: abs(math.log(held_out.rungs[i] / rate.value)))


def transfers(case: CarriedCase, known: Rows) -> tuple[Transfer, Valley]:
    """(what the depths up to the last say, the valley of the one held out), by the rows."""
    low, high = options.span("--lr", case.whole["lr"])
    rates = rungs(low, high)
    place = {rate: rung for rung, rate in enumerate(rates)}
    valleys = [
        Valley(
            size=depth,
            rungs=rates,
            seeds=case.whole["seeds"],
            trials={
                (place[row.lr], row.seed): trial
                for row, trial in known.items()
                if (row.case, row.depth) == (case.key, depth)
            },
        )
        for depth in (*case.depths, case.held_out)
    ]
    fit = Transfer(
        key=case.key,
        label=case.key,
        method=case.key,
        axis="depth",
        valleys=tuple(valleys[:-1]),
        predict=(case.held_out,),
    )
    return fit, valleys[-1]
