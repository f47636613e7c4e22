"""A watch of two gloo processes: DDP, and FSDP2's sharded weights."""

from __future__ import annotations

import datetime
import os
import socket
import warnings

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

import stabkit
from stabkit.storage.watched import WatchShelf
from tests.own import probe_models as models
from tests.own.test_watch import loss_of, tokens

STEPS, RANKS = 3, 2
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not dist.is_available(), reason="torch without torch.distributed"),
]


def net(kind):
    torch.manual_seed(0)
    model = models.Stack(2)
    if kind == "fsdp":
        from torch.distributed.fsdp import fully_shard

        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    return DistributedDataParallel(model) if kind == "ddp" else model


class Broken:
    """A writer that breaks."""

    def log(self, scalars, step):
        raise RuntimeError("no route to host")


def whole(parameters):
    return [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach().clone() for p in parameters]


def train(kind, rank, out, ending=""):
    """(weights; the watch) of a training in this process on its half of each batch."""
    model = net(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watch = None
    if out:
        options = {"writer": Broken()} if ending == "writer" else {}
        watch = stabkit.watch(model, optimizer, out=out, name=kind, **options)
    for step in range(STEPS):
        half = tokens(step).chunk(RANKS)[rank]
        optimizer.zero_grad()
        loss = loss_of(model, half)
        loss.backward()
        if watch is not None:
            if ending == "one" and rank == 1 and step == 1:
                watch._recording.journal.add = None  # whatever breaks in one process alone
            watch.loss(loss)
        optimizer.step()
    if watch is not None:
        watch.close()
    return whole(model.parameters()), watch


SCENES = [("ddp", ""), ("fsdp", ""), ("ddp", "writer"), ("fsdp", "writer"), ("fsdp", "one")]
"""(kind, how its watch ends): all of them one after the other in two processes, whose start is what takes long."""


def process(rank, port, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, timeout=datetime.timedelta(seconds=60))
    for kind, ending in SCENES:
        place = f"{out}/{kind}-{ending}"
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            alone, _ = train(kind, rank, "")
            watched, watch = train(kind, rank, place, ending)
        same = all(torch.equal(ours, theirs) for ours, theirs in zip(watched, alone, strict=True))
        said = [str(w.message) for w in seen if "stabkit: " in str(w.message)]
        torch.save((same, watch.ended, watch.steps, said), f"{place}-{rank}.pt")
    dist.destroy_process_group()


def _together(out):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.start_processes(process, (port, str(out)), RANKS, start_method="forkserver")


@pytest.fixture(scope="session")
def together(once):
    """`together(kind, ending)`: the store of a scene, and what each process says at its end."""
    out = once("together", _together)

    def scene(kind, ending=""):
        place = out / f"{kind}-{ending}"
        return WatchShelf(place), *(torch.load(f"{place}-{rank}.pt") for rank in range(RANKS))

    return scene


def norms():
    """(steps × parameters) of a plain loop over whole batches, in float64."""
    model = net("")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    found = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, tokens(step)).backward()
        found.append({name: float(p.grad.double().norm()) for name, p in model.named_parameters()})
        optimizer.step()
    return found


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes_train_as_without_and_the_first_records_what_one_would_see(kind, together):
    shelf, (same, ended, steps, said), (other_same, other_ended, *_) = together(kind)
    assert same and other_same and ended == "closed" and steps == STEPS and said == []
    assert other_ended == {"ddp": "the first process records", "fsdp": "closed"}[kind]
    (held,) = map(shelf.load, shelf.ids())
    gradient = held.cell.records["gradient"]
    expected = norms()
    for name in ("stack.1.self", "stack.2.ffn"):
        prefix = {"stack.1.self": "blocks.0.0.", "stack.2.ffn": "blocks.1.1."}[name]
        whole_batch = [sum(v**2 for n, v in row.items() if n.startswith(prefix)) ** 0.5 for row in expected]
        assert gradient.at(name).tolist() == pytest.approx(whole_batch, rel=1e-4), (
            "averages of two halves, Adam's steps"
        )
        assert gradient.at(name)[0] == pytest.approx(whole_batch[0], rel=1e-6)
    assert held.cell.records["stream"].steps.tolist() == list(range(STEPS + 1))
    assert np.isfinite(held.cell.records["delta"].values).all() and held.cell.records["delta"].values[0].max() > 0


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_a_writer_that_fails_in_one_process_is_let_go_of_and_no_process_waits(kind, together):
    _, (same, ended, _, said), other = together(kind, "writer")
    assert same and other[0] and ended == "closed"
    assert sum("the writer failed (RuntimeError: no route to host)" in one for one in said) == 1


def test_a_watch_that_fails_in_one_process_ends_in_all_together(together):
    shelf, (same, ended, _, said), (other_same, other_ended, _, other_said) = together("fsdp", "one")
    assert same and other_same
    assert ended == "stopped: the watch of another process failed" and "TypeError" in other_ended
    assert len(said) == len(other_said) == 1 and "training goes on" in said[0]
    (held,) = map(shelf.load, shelf.ids())
    assert held.ended == ended and held.cell.facts.steps == 3
