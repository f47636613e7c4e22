"""What "Very Deep Transformers for Neural Machine Translation" (Liu, Duh, Liu, Gao 2020) says of ADMIN, measured here.

Its models are 512 wide and trained for days; its sentences about wiring and initialisation can be tested on small ones.
Its deepest encoder has 60 layers, its deepest decoder 60, and RAdam is its optimiser: what is deeper is beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from stabkit.claims.base import MOST, Claim, Measured, at_least, at_most, times
from stabkit.claims.deepnet.chain import GONE, one
from stabkit.claims.evidence import Cell, cells, fails, fates, over, trains
from stabkit.claims.quality_evidence import LONG, SHORT, compared, loss, too_short
from stabkit.figures.quick.points import LOWEST
from stabkit.figures.shared import share
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.words import short
from stabkit.results.outcome import VANISHED
from stabkit.storage.store import Run

P, ADMIN, PRE = "Post-LN", "ADMIN", "Pre-LN"
DEEP, DEEPEST = 18, 60
NO_WARMUP = "stabkit sweep --depths 18 --steps 250 --warmup 0 --seeds 0..4"
BEYOND = f"deeper than the paper's {DEEPEST} layers"


def shares(runs: Sequence[Run]) -> list[Measured]:
    """The effective number of sub-layers in the output at step 0 as a part of all; not where Post-LN's own is half."""
    found = []
    for cell in cells(runs):
        values = {}
        for seed in cell.seeds(P, ADMIN):
            ours, theirs = (cell.runs[label][seed] for label in (ADMIN, P))
            count = _sublayers(ours)
            if share.effective(theirs) < count / 2:
                values[seed] = share.effective(ours) / count
        told = [short(centre(cell.values(label, share.effective).values())) for label in (ADMIN, P)]
        found.append(cell.measured(values, ADMIN, P, beside=f"{told[0]} sub-layers against {told[1]}"))
    return found


def _sublayers(run: Run) -> int:
    table = run.records.get("branch_ratio")
    return len(share.output_sites(table.sites)) if table is not None else 0


def _ends(so: Callable[..., bool], *labels: str) -> Callable[[Sequence[Run]], list[Measured]]:
    """Share of the seeds in which models of 18 layers or more end so."""

    def find(runs: Sequence[Run]) -> list[Measured]:
        return [
            cell.measured(cell.share(so, *labels), *labels, beside=fates(cell, *labels), beyond=_beyond(cell))
            for cell in cells(runs)
            if cell.layers >= DEEP and cell.seeds(*labels)
        ]

    return find


def _beyond(cell: Cell) -> str:
    return BEYOND if cell.layers > DEEPEST else ""


def footnote(runs: Sequence[Run]) -> list[Measured]:
    return [
        cell.measured(cell.share(trains, PRE), PRE, beside=fates(cell, PRE))
        for cell in cells(runs)
        if (cell.encoder_layers, cell.decoder_layers) == (60, 12) and PRE in cell.runs
    ]


def lower_encoder(runs: Sequence[Run]) -> list[Measured]:
    def lowest(run: Run) -> float:
        table, n = run.records.get("grad_norm"), run.spec.model.encoder_layers
        if table is None or not {"encoder.1", f"encoder.{n}"} <= set(table.sites):
            return math.nan
        ratios = table.at("encoder.1") / table.at(f"encoder.{n}")
        return max(float(np.nanmin(ratios)), LOWEST) if np.isfinite(ratios).any() else math.nan

    return [
        cell.measured(cell.values(P, lowest), P)
        for cell in cells(runs)
        if cell.encoder_layers >= DEEP and cell.decoder_layers and P in cell.runs
    ]


def compounds(runs: Sequence[Run]) -> list[Measured]:
    """The input of the last norm of the output's stack over that of its first, squared, at step 0."""

    def growth(run: Run) -> float:
        table = run.records.get("ln_input")
        names = share.output_sites(table.sites) if table is not None else []
        if table is None or len(names) < 2:
            return math.nan
        first = table.select(names)[0]
        return over(float(first[-1]), float(first[0])) ** 2

    return [cell.measured(cell.values(P, growth), P) for cell in cells(runs) if cell.layers >= DEEP and P in cell.runs]


def nan_gradients(runs: Sequence[Run]) -> list[Measured]:
    def lost(run: Run) -> bool:
        table = run.records.get("grad_norm")
        return table is not None and not np.isfinite(table.select([s for s in table.sites if "@" not in s])).all()

    return [
        cell.measured(cell.share(lost, P), P, beside=fates(cell, P), beyond=_beyond(cell) or briefly(cell))
        for cell in cells(runs)
        if cell.layers >= DEEP and P in cell.runs
    ]


def briefly(cell: Cell) -> str:
    """Why no NaN in these runs says nothing of the paper's; nothing of runs as long."""
    if not too_short([run.spec for run in cell.of(P)]):
        return ""
    return "in single precision, and too short: the paper's gradients hit NaN after days of training"


def alike_when_shallow(runs: Sequence[Run]) -> list[Measured]:
    found = []
    for cell in cells(runs):
        if cell.where == "6L-6L" and (values := cell.share(lambda *each: True, P, ADMIN)):
            apart = {
                seed: abs(loss(cell.runs[ADMIN][seed]) - loss(cell.runs[P][seed]))
                if trains(cell.runs[ADMIN][seed]) and trains(cell.runs[P][seed])
                else math.inf
                for seed in values
            }
            told = [short(centre(cell.values(label, loss).values()), 3) for label in (ADMIN, P)]
            warm = "" if cell.warmup else "without warm-up; the paper warms up for 4,000 updates and more"
            warm = warm or too_short([run.spec for run in (*cell.of(P), *cell.of(ADMIN))])
            beside = f"{told[0]} against {told[1]} nats"
            found.append(cell.measured(apart, P, ADMIN, beside=beside, beyond=warm))
    return found


def deeper_is_better(runs: Sequence[Run]) -> list[Measured]:
    """ADMIN's validation loss at 6L-6L less that of each deeper model of the same setting."""
    by: dict[str, dict[str, Cell]] = {}
    for cell in cells(runs):
        if cell.share(trains, ADMIN):
            by.setdefault(cell.condition, {})[cell.where] = cell
    found = []
    for line in by.values():
        base = line.pop("6L-6L", None)
        found += [compared(cell, base, ADMIN) for cell in line.values() if base and cell.layers > 6]
    return found


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="admin-trains",
        sentence="ADMIN's initialisation keeps training from diverging, even in deep networks.",
        source="Very Deep Transformers §3 and §4",
        weight="central",
        test="outcomes of ADMIN at 18 to 60 layers: share of the seeds that train",
        threshold=MOST,
        scale="share",
        find=_ends(trains, ADMIN),
        needs="ADMIN at 18 to 60 layers, long enough to judge",
        command=NO_WARMUP,
        methods=("admin",),
    ),
    Claim(
        key="default-fails",
        sentence="The same deep model diverges with default initialisation and trains with ADMIN.",
        source="Very Deep Transformers §4, Table 1",
        weight="central",
        test="outcomes at 18 to 60 layers: share of the seeds in which Post-LN is stuck or diverges and ADMIN trains",
        threshold=MOST,
        scale="share",
        find=_ends(lambda ours, theirs: fails(ours) and trains(theirs), P, ADMIN),
        needs="Post-LN and ADMIN at 18 to 60 layers, long enough to judge",
        command=NO_WARMUP,
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="nan-gradients",
        sentence="The gradients of default initialisation hit NaN.",
        source="Very Deep Transformers §4",
        weight="side",
        test="Post-LN at 18 to 60 layers, judged: share of the seeds in which a recorded gradient is not finite (here "
        "in single precision)",
        threshold=MOST,
        scale="share",
        find=nan_gradients,
        needs="Post-LN at 18 to 60 layers, long enough to judge",
        command=NO_WARMUP,
        methods=("post-ln",),
    ),
    Claim(
        key="pre-ln-60x12",
        sentence="Pre-LN too trains at 60L-12L.",
        source="Very Deep Transformers §4, footnote 10",
        weight="side",
        test="outcomes of Pre-LN at 60L-12L: share of the seeds that train",
        threshold=MOST,
        scale="share",
        find=footnote,
        needs="Pre-LN at 60L-12L, long enough to judge",
        command="stabkit sweep --models pre-ln --depths 60x12 --steps 250 --warmup 0",
        methods=("pre-ln",),
    ),
    Claim(
        key="compounds",
        sentence="The variance of the output at each layer compounds with depth.",
        source="Very Deep Transformers §1",
        weight="background",
        test="Post-LN, step 0, 18 layers or more: variance of what enters the last norm over that at the first",
        threshold=at_least(1.5, "ours: half as large again"),
        scale="ratio",
        tell=times,
        find=compounds,
        needs="Post-LN at 18 layers or more",
        command="stabkit sweep --models post-ln --depths 18,50",
        methods=("post-ln",),
    ),
    Claim(
        key="lower-encoder",
        sentence="Little gradient reaches the lower layers of the encoder.",
        source="Very Deep Transformers §2",
        weight="background",
        test="Post-LN, encoder of 18 layers or more: first layer's gradient over its last one's, lowest in training",
        threshold=at_most(VANISHED, GONE),
        scale="ratio",
        tell=one,
        find=lower_encoder,
        needs="Post-LN encoder-decoders of 18 layers or more",
        command="stabkit sweep --models post-ln --depths 18,50",
        methods=("post-ln",),
    ),
    Claim(
        key="shallow",
        sentence="At 6L-6L default initialisation and ADMIN do equally well.",
        source="Very Deep Transformers §4, Table 1",
        weight="side",
        test="validation loss at 6L-6L under warm-up: how far apart, infinitely where one fails (the paper's RAdam is "
        "`--optimizer radam`)",
        threshold=at_most(0.1, "the paper's 0.1 and 0.2 BLEU; ours: a tenth of a nat"),
        scale="difference",
        tell=lambda value: f"{short(value)} nats",
        find=alike_when_shallow,
        needs="Post-LN and ADMIN at 6L-6L under warm-up, long enough to judge",
        command="stabkit sweep --models post-ln,admin --depths 6 --steps 1000 --warmup 400 --optimizer radam",
        methods=("post-ln", "admin"),
    ),
    Claim(
        key="deeper-better",
        sentence="Deeper ADMIN models reach a lower perplexity than 6L-6L.",
        source="Very Deep Transformers §4, Fig. 2(b)",
        weight="central",
        test=f"ADMIN's validation loss at 6L-6L less that of each deeper model; {LONG}",
        threshold=at_least(0.0, "the paper says lower"),
        scale="difference",
        tell=lambda value: f"{value:+.2f} nats".replace("-", "−"),
        find=deeper_is_better,
        needs="ADMIN at 6L-6L and deeper, long enough to judge",
        command=f"stabkit sweep --models admin --depths 6,18 {SHORT}",
        methods=("admin",),
    ),
    Claim(
        key="shares",
        sentence="Balance read as shares (our reading, not the paper's words): under ADMIN every sub-layer has a say.",
        source="Very Deep Transformers §3",
        weight="ours",
        test="effective number of sub-layers in the branches' part of the output over all, step 0, where Post-LN's is "
        "below half",
        threshold=at_least(0.5, "ours: half of all"),
        scale="difference",
        tell=lambda value: f"{value:.0%}",
        find=shares,
        needs="ADMIN and Post-LN at one depth and seed, Post-LN's effective number below half of all",
        command="stabkit sweep --models post-ln,admin",
        methods=("post-ln", "admin"),
    ),
)
