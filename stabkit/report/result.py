"""What a function of the Python API returns: a small value with its runs as a table, its verdict and its page. All in
one file, so that what they share is seen side by side.

Tables and pages are made when they are first asked for: a probe that nobody draws imports no matplotlib.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabkit.results.conditions import FACTS, Shown, shown
from stabkit.results.own.decided import decided
from stabkit.results.own.judged import Judged
from stabkit.results.own.widths import Widths
from stabkit.results.readings import lowest_ratio, reference_step, update_at
from stabkit.results.run import Run
from stabkit.running.execute import RequestResult
from stabkit.running.executors.base import Lost
from stabkit.running.plan import Done
from stabkit.running.probes import ProbeRequest, ProbeSpec
from stabkit.running.transfer import RatesSearched
from stabkit.spec import RunSpec
from stabkit.wording import chain

if TYPE_CHECKING:
    import pandas as pd

    from stabkit.own.audit import Audit
    from stabkit.report.summary import Summary
    from stabkit.results.own.cell import ModelCell


class Answered(ABC):
    """What every command returns: in a console it shows its answer, not all that it was computed from."""

    runs: Any
    """A table."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """In a sentence."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict}>"

    def _repr_html_(self) -> str:
        return _shown(self.verdict, self.runs)


@dataclass(frozen=True, kw_only=True, repr=False)
class SweepResult(Answered):
    """Of `sweep`, `ablate` and `landscape`: the runs, and what was measured of them."""

    name: str
    """Of the page: which command it is of."""
    call: str
    """The command as people type it."""
    out: Path
    specs: tuple[RunSpec, ...]
    """What was asked for."""
    trained: RequestResult
    all_figures: bool = True
    """Whether its page draws them."""

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a run, as of `load_runs`."""
        return run_table(self.trained.runs)

    @property
    def failed(self) -> list[tuple[RunSpec, str]]:
        """The runs without a result, and why."""
        return self.trained.failed

    @cached_property
    def summary(self) -> Summary:
        """What the runs say together: matrix, sentences, claims."""
        from stabkit.report.summary import summarise

        return summarise(self.trained.runs, self.failed, self.trained.surfaces)

    @property
    def verdict(self) -> str:
        """One sentence: which methods train where."""
        return self.summary.answer or self.summary.instead

    @cached_property
    def page(self) -> Path:
        """The HTML page, written when it is first asked for."""
        from stabkit.report.files import page_name
        from stabkit.report.frame import once
        from stabkit.report.html import render
        from stabkit.storage.folder import reports

        made = self.trained
        path = reports(self.out) / page_name(self.name, self.specs, made.surfaces)
        found = [len(made.runs), len(made.failed), len(made.surfaces), int(self.all_figures)]
        draw = partial(render, self.summary, command=self.call, all_figures=self.all_figures)
        return once(self.out, path, found, draw)

    def _repr_html_(self) -> str:
        """The verdict and the matrix; of single steps, which have none, the runs."""

        from stabkit.wording import legend

        matrix = self.summary.matrix
        rows = [
            [
                row.label,
                *([row.condition.text] if matrix.has_conditions else []),
                *(" ".join((legend.word_of(cell), legend.probability(cell))).strip() for cell in row.cells),
            ]
            for row in matrix.rows
        ]
        head = ["method", *(["condition"] if matrix.has_conditions else []), *matrix.depths]
        return _shown(self.verdict, _table(rows, head) if rows else self.runs)


@dataclass(frozen=True, kw_only=True, repr=False)
class TransferResult(Answered):
    """Of `transfer`: the valley of every size, and what they say together."""

    call: str
    out: Path
    name: str
    """Of the page."""
    searched: RatesSearched

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a run: case, depth or width, lr, seed, loss (NaN where it diverged), trains."""
        plan = self.searched.plan
        rows = [
            {"case": case.label, plan.axis: valley.size, **row}
            for case in self.searched.found
            for valley in case.valleys
            for row in valley.to_json(plan.axis)["tried"]
        ]
        return _table(rows, ["case", plan.axis, "lr", "seed", "loss", "trains"])

    @cached_property
    def best(self) -> pd.DataFrame:
        """A row a case and size: best (the rate), low, high, highest_stable, loss."""
        plan = self.searched.plan
        names = (plan.axis, "best", "low", "high", "highest_stable", "loss")
        rows = [
            {"case": case.label, **{name: body[name] for name in names}}
            for case in self.searched.found
            for body in (dict(valley.to_json(plan.axis)) for valley in case.valleys)
        ]
        return _table(rows, ["case", *names])

    @property
    def failed(self) -> Sequence[tuple[str, str]]:
        """The runs without a result, and why."""
        return self.searched.failed

    @property
    def verdict(self) -> str:
        """One sentence a case: whether the rate carries, or what to set."""
        from stabkit.report.transfer import answer

        return answer(self.searched)

    @cached_property
    def page(self) -> Path:
        """The HTML page, written when it is first asked for."""
        from stabkit.report import transfer  # pandas and matplotlib

        return transfer.write(self.searched, self.out, self.name, self.call)

    def _repr_html_(self) -> str:
        return _shown(self.verdict, self.best)


@dataclass(frozen=True, kw_only=True, repr=False)
class ProbeResult(Answered):
    """Of `probe`: the cells of a user's own model, and the verdicts on its links."""

    call: str
    request: ProbeRequest
    done: Done[ProbeSpec, ModelCell]
    judged: Judged
    seconds: float

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a cell: depth, lr, seed, word, probability (NaN where there is none), basis (`forecast`, `seen`), the
        updates that it rests on, steps of the probe, model, parameters, broke (where it was not finite, or "")."""
        names = ("seed", "steps", "model", "parameters")
        return _table(
            [
                {
                    "depth": cell.facts.depth,
                    "lr": self._rate(cell.facts.lr),
                    "word": (said := decided(cell)).word,
                    "probability": float("nan") if said.probability is None else said.probability,
                    "basis": said.basis,
                    "updates": said.updates,
                    **{name: getattr(cell.facts, name) for name in names},
                    "broke": str(cell.facts.broke or ""),
                }
                for cell in self.judged.cells
            ]
        )

    def _rate(self, lr: float) -> float:
        """The rate that was used where `lr` was asked for (0: the factory's own, or the default); NaN of several."""
        rate = next(cell.facts.rate for cell in self.judged.cells if cell.facts.lr == lr)
        return rate if rate > 0 else float("nan")

    @cached_property
    def links(self) -> pd.DataFrame:
        """A row a rate and link: lr, link (gradient, logits, update, …), word (usual, better, unusual or
        broken; – where no model was held beside it), level (its number at the deepest), usual_low and usual_high (nine
        in ten models that train lie between; NaN: unknown), exponent (of its law in depth; NaN: none), why."""
        from stabkit.wording import links

        return _table(
            [
                {
                    "lr": self._rate(verdict.lr),
                    "link": shown["name"].lower(),
                    "word": shown["word"],
                    "level": link.level,
                    "usual_low": link.healthy.low if link.healthy else float("nan"),
                    "usual_high": link.healthy.high if link.healthy else float("nan"),
                    "exponent": link.fit.exponent if link.fit else float("nan"),
                    "why": chain.why(link),
                }
                for verdict, rate in zip(self.judged.verdicts, links.rates(self.judged), strict=True)
                for link, shown in zip(verdict.links.values(), rate["links"], strict=True)
            ]
        )

    @cached_property
    def cures(self) -> pd.DataFrame:
        """A row a change that was tried on a copy, in the order of the trials: change, word and basis (`seen`,
        `forecast`) of the changed model, probability (that it trains; NaN where there is none), loss and without (with
        it and as the model is, after `updates`; NaN where it was not trained), code (the line that makes it)."""
        names = ["change", "word", "basis", "probability", "loss", "without", "updates", "code"]
        fields = ["label", *names[1:]]
        rows = [tuple(getattr(own, name) for name in fields) for own in self.judged.cures]
        return _table(rows, names).astype(dict.fromkeys(("probability", "loss", "without"), float))

    @property
    def failed(self) -> Sequence[tuple[ProbeSpec, Lost]]:
        """The cells without a result, and why."""
        return self.done.lost

    @property
    def verdict(self) -> str:
        """One sentence: whether the chain holds, or which link breaks."""
        from stabkit.wording import links

        return links.answer(self.judged)

    @cached_property
    def page(self) -> Path:
        """The HTML page, written when it is first asked for."""
        from stabkit.report.own import probe  # pandas and matplotlib

        return probe.write(self.judged, self.done, self.request, self.call)

    def _repr_html_(self) -> str:
        """The verdict, the change that fixes it, and every link at every depth."""
        from stabkit.report.frame import ASSETS, template
        from stabkit.wording import links
        from stabkit.wording.anatomy import UNSEEN, WHY

        judged, worst = self.judged, self.judged.worst
        tried, best = links.cures(judged), judged.cure
        return template(ASSETS / "probe_notebook.html.j2").render(
            answer=self.verdict,
            word=worst.word,
            tint=worst.word.replace(" ", "-"),
            basis=links.rests_on(worst.decision),
            change=tried[judged.cures.index(best)] if best else None,
            rates=links.rates(judged),
            cures=tried,
            deepest=worst.forecast.depth,
            unseen=UNSEEN,
            unseen_why=WHY,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class WidthsResult(Answered):
    """Of `probe(widths=…)`: a user's own model over its width."""

    call: str
    request: ProbeRequest
    done: Done[ProbeSpec, ModelCell]
    words: Widths

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a width: width, word, rate, the highest multiple of it that trains, the lowest that fails."""
        rows = [(row.width, row.decision.word, row.rate, row.trains, row.fails) for row in self.words.rows]
        return _table(rows, ["width", "word", "rate", "trains", "fails"])

    @property
    def failed(self) -> Sequence[tuple[ProbeSpec, Lost]]:
        """The cells without a result, and why."""
        return self.done.lost

    @property
    def verdict(self) -> str:
        """Whether it trains at each width, and by which law the highest rate that trains falls."""
        from stabkit.report.own.widths import whole

        return whole(self.words, self.request)

    @cached_property
    def page(self) -> Path:
        """The HTML page, written when it is first asked for."""
        from stabkit.report.own import widths  # pandas and matplotlib

        lost = [f"{spec.name}: {lost.text}" for spec, lost in self.done.lost]
        return widths.write(self.words, self.request, lost, self.call)


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(Answered):
    """Of `audit`: what was found in a user's model, and what of the recipe it violates."""

    factory: str
    audit: Audit

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row a kind of sub-layer that was found: stack, kind, layers, sum, norm. Nothing was trained."""
        names = ("stack", "kind", "layers", "sum", "norm")
        return _table([{name: getattr(row, name) for name in names} for row in self.audit.rows])

    @cached_property
    def findings(self) -> pd.DataFrame:
        """A row a violation: what, recipe, measured, remedy, parameters."""
        names = ("what", "recipe", "measured", "remedy", "parameters")
        rows = [{name: getattr(finding, name) for name in names} for finding in self.audit.findings]
        return _table(rows, names)

    @property
    def verdict(self) -> str:
        """One sentence: whether the recipe is kept, or in how many points it is violated."""
        count, label = len(self.audit.findings), self.audit.method.label
        if self.audit.undecided:
            return f"undecided: what was read of the model follows {label}'s recipe; {self.audit.unjudged}"
        if not count:
            return f"the model follows {label}'s recipe"
        return f"{label}'s recipe is violated in {count} point{'s' * (count > 1)}"

    def _repr_html_(self) -> str:
        return _shown(self.verdict, self.findings if len(self.findings) else self.runs)


RUN_COLUMNS = (
    *FACTS,
    *("lr", "warmup", "steps", "validation_loss", "unigram_loss", "update", "gradient_ratio", "forecast", "p_trains"),
)
"""Of `load_runs`, and of what a sweep returns."""


def run_table(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run: RUN_COLUMNS."""
    step = reference_step(list(runs))
    return _table([_row(each, step) for each in shown(list(runs))], RUN_COLUMNS)


def _row(each: Shown, step: int) -> dict[str, Any]:
    run, forecast = each.run, each.run.forecast
    return {
        **each.facts("steps", "validation_loss", "unigram_loss"),
        "lr": run.spec.train.lr,
        "warmup": run.spec.train.warmup,
        "update": update_at(run, step),
        "gradient_ratio": lowest_ratio(run),
        "forecast": forecast.word if forecast else "",
        "p_trains": float("nan") if forecast is None or forecast.p_trains is None else forecast.p_trains,
    }


def _table(rows: Sequence[Any], columns: Any = None) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def _shown(verdict: str, frame: pd.DataFrame) -> str:
    """A sentence and a table, as a notebook shows them."""
    table: Any = frame.to_html(index=False)
    return f"<p>{escape(verdict)}</p>{table}"
