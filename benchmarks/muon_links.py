"""What the links of a probe say of what trains, under AdamW and under Muon beside AdamW.

    python benchmarks/muon_links.py OUT.csv

Decoder-only stacks of width 64 (`tests/own/probe_models.py`): four schemes, 6, 12 and 24 layers, three rates each. The
probe's eight updates on one fixed batch, then 300 updates of a fresh copy on a made-up language; a run trains where its
last 20 losses are 0.3 nats below that of who knows frequencies alone. Printed: for each optimiser how well each number
tells failures from what trains (area under the curve; 0.5 is chance). Rows that are in OUT.csv are not made again.
About 25 minutes on one core.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from sklearn.metrics import roc_auc_score

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from stabkit.own.probe.built_model import make  # noqa: E402
from stabkit.own.probe.loop import record  # noqa: E402
from stabkit.results.own.cell import Facts, ModelCell  # noqa: E402
from tests.own import probe_models, tasks  # noqa: E402

SCHEMES, DEPTHS, UPDATES = ("pre_ln", "post_ln", "deepnorm", "flat"), (6, 12, 24), 300
RATES = {"AdamW": (3e-4, 1e-3, 3e-3), "Muon": (0.005, 0.02, 0.08)}
COLUMNS = ("scheme", "depth", "optimizer", "rate", "gradient", "update", "loss", "ends")


def factory(scheme: str, optimizer: str, rate: float):
    """`factory(depth)` with this optimiser: Muon on matrices of the blocks, AdamW at a twentieth on the rest."""

    def made(depth):
        model, loss = getattr(probe_models, scheme)(depth)
        if optimizer == "AdamW":
            return model, loss, torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
        matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
        rest = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
        muon = torch.optim.Muon(matrices, lr=rate, weight_decay=0.0)
        return model, loss, [muon, torch.optim.AdamW(rest, lr=rate / 20, weight_decay=0.0)]

    return made


def measured(scheme: str, depth: int, optimizer: str, rate: float) -> tuple[float, float, float, str]:
    """(the gradient ratio farthest from 1, ‖ΔF‖/‖F‖ after four updates, the last losses, what became of it)."""
    build = factory(scheme, optimizer, rate)
    recorded = record(make(build, scheme, depth, 0, 0.0), 8)
    facts = Facts(
        factory=scheme, depth=depth, lr=rate, seed=0, steps=8, sublayers=recorded.sublayers, how="", notes=(), model="",
        parameters=0, width=64, tokens=0, batch="", start=0.0, broke=None, optimizer=optimizer, rate=rate,
    )  # fmt: skip
    cell = ModelCell(facts, recorded.records)
    ratios = [float(r) for r in cell.gradient_ratio("stack") if r > 0]
    ratio = max(ratios, key=lambda r: abs(math.log(r)), default=math.nan)
    moved = float(cell.update()[min(4, len(cell.update()) - 1)])
    return ratio, moved, *tasks.trained(scheme, make(build, scheme, depth, 0, 0.0), UPDATES)


def cases() -> Iterator[tuple[str, int, str, float]]:
    for scheme in SCHEMES:
        for depth in DEPTHS:
            for optimizer, rates in RATES.items():
                for rate in rates:
                    yield scheme, depth, optimizer, rate


def main(out: str) -> None:
    torch.set_num_threads(1)
    path = Path(out)
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    known = {(row["scheme"], int(row["depth"]), row["optimizer"], float(row["rate"])) for row in rows}
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not rows:
            writer.writeheader()
        for case in cases():
            if case not in known:
                values = (*case, *measured(*case))
                row = {name: f"{v:.4g}" if isinstance(v, float) else v for name, v in zip(COLUMNS, values, strict=True)}
                writer.writerow(row)
                file.flush()
                rows.append({name: str(value) for name, value in row.items()})
    for optimizer in RATES:
        mine = [row for row in rows if row["optimizer"] == optimizer]
        fails = [row["ends"] != "trains" for row in mine]
        numbers = {
            "|log gradient ratio|": [abs(math.log(float(row["gradient"]))) for row in mine],
            "‖ΔF‖/‖F‖ after 4": [float(row["update"]) if row["update"] != "nan" else 1e9 for row in mine],
            "rate": [float(row["rate"]) for row in mine],
        }
        told = ", ".join(f"{name} {roc_auc_score(fails, values):.2f}" for name, values in numbers.items())
        beyond = [not 0.01 <= float(row["gradient"]) <= 100 for row in mine]
        wrong = sum(far and not fail for far, fail in zip(beyond, fails, strict=True))
        print(f"{optimizer}: {sum(fails)} of {len(mine)} fail; area under the curve: {told}; "
              f"beyond 10⁻² or 10²: {sum(beyond)}, of which {wrong} train")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
