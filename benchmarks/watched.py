"""A training that a watch warns of, and one that it does not: the GPT of docs/own_model.md, characters of Multi30k.

    python benchmarks/watched.py DATA OUT [UPDATES]
    stabkit report --store OUT

Six layers, AdamW at 1e-3 and at a hundred times that, 200 updates each; a line each says what was warned of, at which
update the loss was first twice its least, and whether the weights are those of the same training without a watch.
Under a minute on two cores.
"""

from __future__ import annotations

import gzip
import sys
import warnings
from pathlib import Path

import torch
from torch.nn import functional

import stabkit
from stabkit.own.watch.watch import Watch
from tests.own.page import gpt

LENGTH, SENTENCES = 64, 16
RATES = {"healthy": 1e-3, "rate-too-high": 0.1}


def characters(data: Path) -> torch.Tensor:
    """The English half as numbers below 100."""
    text = gzip.open(data / "train.en.gz", "rt", encoding="utf-8").read()[:400_000]
    known = {c: i % 100 for i, c in enumerate(sorted(set(text)))}
    return torch.tensor([known[c] for c in text])


def train(
    text: torch.Tensor, rate: float, updates: int, out: Path | None, name: str
) -> tuple[list[float], Watch | None, list[torch.Tensor]]:
    """(losses, the watch, the weights)."""
    torch.manual_seed(0)
    model = gpt(6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    watch = None if out is None else stabkit.watch(model, optimizer, out=out, name=name)
    chance = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(updates):
        starts = torch.randint(0, len(text) - LENGTH - 1, (SENTENCES,), generator=chance).tolist()
        batch = torch.stack([text[i : i + LENGTH + 1] for i in starts])
        loss = functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        if watch is not None:
            watch.loss(loss)
        optimizer.step()
        losses.append(float(loss.detach()))
    if watch is not None:
        watch.close()
    return losses, watch, [p.detach().clone() for p in model.parameters()]


def main(data: str, out: str, updates: str = "200") -> None:
    warnings.simplefilter("ignore")
    text = characters(Path(data))
    for name, rate in RATES.items():
        losses, watch, found = train(text, rate, int(updates), Path(out), name)
        _, _, alone = train(text, rate, int(updates), None, name)
        same = all(torch.equal(ours, theirs) for ours, theirs in zip(found, alone, strict=True))
        doubled = next((i for i, loss in enumerate(losses) if loss > 2 * min(losses[: i + 1])), None)
        assert watch is not None
        told = "; ".join(f"update {one.step}: {one.sentence}" for one in watch.warnings) or "no warning"
        print(f"{name}, rate {rate:g}: {told}. Loss doubled: {doubled}. Weights as without: {same}")


if __name__ == "__main__":
    main(*sys.argv[1:])
