"""`stabkit.watch`: training is what it is without, gradients are the optimiser's, what breaks is said, never raised."""

from __future__ import annotations

import itertools
import logging
import math
import os
import re
import signal
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import stabkit
from stabkit.errors import UsageError
from stabkit.own.chain import gradients
from stabkit.own.watch import journal
from stabkit.own.watch.journal import StabilityWarning
from stabkit.own.watch.recording import reads, stride
from stabkit.results.own.alarm import Alarms
from stabkit.storage import folder
from stabkit.storage.watched import WatchShelf
from tests.own import probe_models as models

STEPS = 5


def tokens(seed):
    return torch.randint(0, models.WORDS, models.SHAPE, generator=torch.Generator().manual_seed(seed))


def loss_of(model, batch):
    out = model(batch)
    logits = out["logits"] if isinstance(out, dict) else out
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch[:, 1:].flatten())


class Dict(nn.Module):
    """Returns a dict, as models of libraries do; its head is its embedding."""

    def __init__(self):
        super().__init__()
        self.model = models.Stack(2)
        nn.init.normal_(self.model.embed.weight, std=0.1)  # of torch's own 1, its scores would cost 40 nats
        self.model.head.weight = self.model.embed.weight

    def forward(self, batch):
        return {"loss": None, "logits": self.model(batch)}


class Loop:
    """A training loop with one oddity; the norms of its gradients as its optimiser sees them."""

    def __init__(self, oddity):
        torch.manual_seed(0)
        self.oddity = oddity
        self.model = {
            "noise": lambda: models.noisy(2)[0],
            "checkpointing": lambda: models.Checkpointed(2),
            "dict": Dict,
            "frozen": lambda: models.half_frozen(2)[0],
        }.get(oddity, lambda: models.Stack(2))()
        self.run = torch.compile(self.model, backend="eager") if oddity == "compile" else self.model
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-3, fused="fused" in oddity)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=64.0, enabled="scaler" in oddity)
        self.norms = []

    def train(self, steps=STEPS, seen=lambda loss: None):
        scaled = self.scaler.is_enabled()
        for step in range(steps):
            self.optimizer.zero_grad()
            parts = 4 if self.oddity == "accumulation" else 1
            for part in range(parts):
                with torch.autocast("cpu", torch.bfloat16, enabled=self.oddity == "amp"):
                    loss = loss_of(self.run, tokens(step * parts + part)) / parts
                self.scaler.scale(loss).backward()
            if self.oddity == "clipping":
                nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
            factor = self.scaler.get_scale() if scaled else 1.0
            grads = [p.grad for p in self.model.parameters() if p.grad is not None]
            self.norms.append(float(torch.stack([g.double().norm() / factor for g in grads]).norm()))
            seen(loss)
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return [p.detach().clone() for p in (*self.model.parameters(), *self.model.buffers())]


ODDITIES = (
    "",
    "noise",
    "compile",
    "checkpointing",
    "accumulation",
    "scaler",
    "fused scaler",
    "dict",
    "frozen",
    "clipping",
    "amp",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("oddity", ODDITIES)
@pytest.mark.parametrize("given", [False, True])
def test_training_is_bit_for_bit_what_it_is_without_and_gradients_are_the_optimisers(oddity, given, tmp_path):
    alone = Loop(oddity).train()
    loop = Loop(oddity)
    batch = {"probe": tokens(0)} if given else {}
    with stabkit.watch(loop.run, loop.optimizer, out=tmp_path, **batch) as watch:
        found = loop.train(seen=watch.loss)
    assert watch.ended == "closed" and watch.steps == STEPS
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, alone, strict=True))
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    gradient = held.cell.records["gradient"]
    total = (gradient.values**2).sum(axis=1) ** 0.5 if oddity != "frozen" else None
    if total is not None:
        assert total.tolist() == pytest.approx(loop.norms, rel=1e-6)
    assert held.cell.records["stream"].steps.tolist() == list(range(STEPS + 1))
    assert held.cell.records["update"].at("state")[0] == 0.0 < held.cell.records["update"].at("state")[-1]
    assert held.cell.records["loss"].steps.tolist() == list(range(STEPS)) and held.ended == "closed"


def test_a_rate_a_hundred_times_too_high_is_warned_of_before_the_loss_doubles(tmp_path):
    torch.manual_seed(0)
    model = models.Stack(4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    with pytest.warns(StabilityWarning) as seen:
        watch = stabkit.watch(model, optimizer, out=tmp_path)
        for step in range(12):
            loss = loss_of(model, tokens(step))
            watch.loss(loss)
            optimizer.zero_grad(), loss.backward(), optimizer.step()
            losses.append(float(loss.detach()))
        watch.close()
    doubled = next((i for i, loss in enumerate(losses) if loss > 2 * min(losses[: i + 1])), len(losses))
    assert "update 0: the rate is 1e-1, 100 times the usual 1e-3" in str(seen[0].message)
    assert "update 1: one update moved" in str(seen[1].message) and "the likely cause" in str(seen[1].message)
    assert watch.warnings[0].step < doubled
    assert len({alarm.link for alarm in watch.warnings}) == len(watch.warnings), "each link once"


def risen(loop, out):
    with stabkit.watch(loop.model, loop.optimizer, out=out, probe=tokens(0)) as watch:
        for loss in (1.0, 9.0):
            watch.loss(loss)
            loop.optimizer.step()


def test_a_warning_stands_where_the_users_own_line_is(tmp_path):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        risen(Loop(""), tmp_path)
    (one,) = [w for w in seen if "the loss is 9" in str(w.message)]
    assert one.filename == __file__


def test_a_warning_is_on_the_disk_before_it_is_said(tmp_path, monkeypatch):
    kept = []

    def said(sentence):
        shelf = WatchShelf(tmp_path)
        kept.append((sentence, [alarm.whole for name in shelf.ids() for alarm in shelf.load(name).alarms]))

    monkeypatch.setattr(journal, "say", said)
    risen(Loop(""), tmp_path)
    assert kept and all(sentence in there for sentence, there in kept)


def test_what_is_no_loss_or_one_of_the_past_is_left_out_and_the_watch_goes_on(tmp_path):
    loop = Loop("")
    with pytest.warns(StabilityWarning, match="the loss of update 0 came after that of update 1"):
        watch = stabkit.watch(loop.model, loop.optimizer, out=tmp_path, probe=tokens(0))
        watch.loss(1.0, 1)
        loop.optimizer.step()
        watch.loss(1.0, 0)
        watch.loss("none")
        loop.optimizer.step()
    assert not watch.ended and watch.steps == 2
    watch.close()
    assert WatchShelf(tmp_path).load(watch.id).records["loss"].steps.tolist() == [1]


def test_a_healthy_training_draws_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", StabilityWarning)
        loop = Loop("")
        with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
            loop.train(40)
    assert watch.warnings == []


def test_what_is_not_finite_is_named(tmp_path):
    loop = Loop("")
    with (
        pytest.warns(StabilityWarning),
        stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch,
    ):
        loop.train(2)
        with torch.no_grad():
            loop.model.blocks[0][0].f.out.weight.fill_(float("nan"))
        loop.train(2)
    (alarm,) = [alarm for alarm in watch.warnings if alarm.link == "finite"]
    assert alarm.step == 2 and alarm.sentence.startswith("the gradient of")


class Waits(TorchDispatchMode):
    """Counts what would wait for a device: numbers taken from tensors, tensors fetched."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        fetched = func is torch.ops.aten._to_copy.default and "device" in (kwargs or {})
        self.count += func is torch.ops.aten._local_scalar_dense.default or fetched
        return func(*args, **kwargs or {})


def test_nothing_waits_for_the_device_in_updates_that_are_not_read(tmp_path, monkeypatch):
    loop = Loop("")
    loop.model.double()  # of float32 on a CPU sizes are looked at, where there is nothing to wait for
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.01)
    watch = stabkit.watch(loop.model, optimizer, probe=tokens(0), every=4, out=tmp_path)
    watch._recording.chain.device = torch.device("cuda")  # what asks for it does as if the model were there
    monkeypatch.setattr(journal, "PAUSE", math.inf)
    monkeypatch.setattr(torch.Tensor, "tolist", lambda own: pytest.fail("fetched") if waits.on else tolist(own))
    counted = {}
    for step in range(1, 9):
        loss_of(loop.model, tokens(step)).backward()
        watch.loss(torch.tensor(1.0))
        waits.on = step % 4 != 0
        with Waits() as mode:
            optimizer.step()
        counted[step] = mode.count
    waits.on = False
    watch.close()
    assert [counted[step] for step in (1, 2, 3, 5, 6, 7)] == [0] * 6 and counted[4] > 0 < counted[8]
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.cell.records["gradient"].steps.tolist() == list(range(8))


waits, tolist = types.SimpleNamespace(on=False), torch.Tensor.tolist


def test_a_copy_of_large_weights_is_kept_only_if_asked_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr("stabkit.own.watch.watch.LARGEST_COPY", 1000)
    for start, kept in ((None, False), (True, True)):
        out = tmp_path / str(start)
        loop = Loop("")
        with stabkit.watch(loop.model, loop.optimizer, out=out, start=start) as watch:
            loop.train(2)
        (held,) = (WatchShelf(out).load(own) for own in WatchShelf(out).ids())
        assert any(site.endswith("@start") for site in held.cell.records["delta"].sites) is kept
        assert any("it needs a copy of the weights" in note for note in watch.notes) is not kept


# — it never breaks a training —


class Fickle(models.Stack):
    """Another graph from some call on."""

    def __init__(self):
        super().__init__(2)
        self.odd = False

    def forward(self, batch):
        return super().forward(batch) + (self.embed(batch).sum() if self.odd else 0.0)


def test_a_forward_that_is_written_otherwise_is_found_again(tmp_path):
    model = Fickle()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = stabkit.watch(model, optimizer, out=tmp_path)
    for step in range(4):
        model.odd = step >= 2
        optimizer.zero_grad(), loss_of(model, tokens(step)).backward(), optimizer.step()
    watch.close()
    assert watch.ended == "closed"
    assert WatchShelf(tmp_path).load(watch.id).cell.records["stream"].steps.tolist() == [0, 1, 2, 3, 4]


def test_a_watch_that_fails_says_so_once_and_training_goes_on(tmp_path):
    model, turns = Fickle(), itertools.cycle([False, True])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with pytest.warns(StabilityWarning) as seen:
        watch = stabkit.watch(model, optimizer, out=tmp_path)
        for step in range(4):
            if step == 2:  # in no reading as in the one before
                model.register_forward_pre_hook(lambda own, batch: setattr(own, "odd", next(turns)))
            optimizer.zero_grad(), loss_of(model, tokens(step)).backward(), optimizer.step()
        watch.close()
    (one,) = seen
    assert "the watch ends at update 3, training goes on: the model's operations differ" in str(one.message)
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.ended.startswith("stopped: ") and held.cell.records["stream"].steps.tolist() == [0, 1, 2]


def test_a_store_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "own").write_text("a file where the watches would stand")
    loop = Loop("")
    alone = Loop("").train()
    with pytest.warns(StabilityWarning, match="training goes on"):
        watch = stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
        found = loop.train()
        watch.close()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, alone, strict=True))


def test_a_full_disk_is_said_and_the_rows_wait_for_the_next_try(tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    loop = Loop("")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(2)
        monkeypatch.setattr(journal, "PAUSE", -1)
        with monkeypatch.context() as patch, pytest.warns(StabilityWarning, match="No space left.*training goes on"):
            patch.setattr(folder, "_write", full)
            loop.train(2)
        (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
        assert held.cell.facts.steps == 1 and not watch.ended
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.cell.records["stream"].steps.tolist() == [0, 1, 2, 3, 4] and held.ended == "closed"


def test_an_optimiser_that_takes_anothers_place_is_said_and_taken_on_request(tmp_path):
    loop = Loop("")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(3)
        loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=1e-3)
        with pytest.warns(StabilityWarning, match=r"SGD steps parameters .* watch.optimizer\(it\)") as said:
            loop.train(2)
        assert len(said) == 1 and watch.steps == 3
        watch.optimizer(loop.optimizer)
        loop.train(2)
        assert watch.steps == 5
        with pytest.raises(UsageError, match="watch.optimizer"):
            watch.optimizer([])
        for group in loop.optimizer.param_groups:
            group["lr"] = 1e30
        with pytest.warns(StabilityWarning) as said:
            loop.train(3)
        assert any(re.search("finite|no number|moved", str(one.message)) for one in said)
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.cell.facts.steps == 8 and "from update 3 on SGD replaces AdamW" in held.cell.facts.notes
    assert held.alarms


def test_what_steps_inside_an_optimiser_or_around_it_is_no_stranger(tmp_path, recwarn):
    class Around(torch.optim.Optimizer):
        def __init__(self, inner):
            super().__init__(inner.param_groups[0]["params"], {})
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    for outer_is_given in (True, False):
        loop = Loop("")
        inner, loop.optimizer = loop.optimizer, Around(loop.optimizer)
        with stabkit.watch(loop.model, loop.optimizer if outer_is_given else inner, out=tmp_path) as watch:
            other = nn.Linear(2, 2)
            torch.optim.SGD(other.parameters(), lr=0.1).step()  # of another model
            loop.train(2)
        assert watch.steps == 2
    assert not [own for own in recwarn if "was not given" in str(own.message)]


def test_a_wrapper_that_steps_every_other_time_is_no_stranger_and_many_are_told_of_once(tmp_path, recwarn):
    class EveryOther(torch.optim.Optimizer):
        def __init__(self, inner):
            super().__init__(inner.param_groups[0]["params"], {})
            self.inner, self.calls = inner, 0

        def step(self, closure=None):
            self.calls += 1
            return self.inner.step(closure) if self.calls % 2 == 0 else None

    loop = Loop("")
    inner, loop.optimizer = loop.optimizer, EveryOther(loop.optimizer)
    with stabkit.watch(loop.model, inner, out=tmp_path) as watch:
        loop.train(4)
        assert watch.steps == 2 and not [own for own in recwarn if "was not given" in str(own.message)]
        for parameter in loop.model.parameters():  # an optimiser each, as of those that step in the backward pass
            torch.optim.SGD([parameter], lr=0.0).step()
    assert len([own for own in recwarn if "was not given" in str(own.message)]) == 1


def test_a_second_watch_on_a_model_is_said_and_records_nothing(tmp_path):
    loop = Loop("")
    first = stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
    with pytest.warns(StabilityWarning, match="another watch is on this model, so this one records nothing"):
        second = stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
    loop.train(2)
    first.close(), second.close()
    assert len(WatchShelf(tmp_path).ids()) == 1 and (first.steps, second.steps) == (2, 0)


def test_a_watch_that_begins_late_says_where_it_begins(tmp_path):
    loop = Loop("")
    loop.train(2)
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(2)
    assert any("had already taken steps" in note for note in watch.notes)


def test_a_loss_after_the_end_is_said_once(tmp_path):
    loop = Loop("")
    watch = stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
    watch.close()
    with pytest.warns(StabilityWarning, match="this watch is closed") as seen:
        watch.loss(1.0), watch.loss(1.0)
    assert len(seen) == 1


def test_close_says_the_command_and_makes_the_page_where_it_is_asked_to(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    loop = Loop("")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path, name="mine", page=True) as watch:
        loop.train(2)
    said = caplog.text
    assert f"no warning; stabkit report {watch.id} --store {tmp_path} writes the page" in said
    assert (tmp_path / "reports" / f"own-{watch.id}.html").is_file()


def test_an_optimiser_inside_another_is_the_one_that_is_hooked(tmp_path):
    class Wrapper:
        def __init__(self, optimizer):
            self.optimizer = optimizer

    loop = Loop("")
    with stabkit.watch(loop.model, Wrapper(loop.optimizer), out=tmp_path) as watch:
        loop.train(2)
    assert watch.steps == 2


def test_a_killed_training_keeps_what_was_flushed(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "PAUSE", 0.0)
    if not (child := os.fork()):
        loop = Loop("")
        stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
        loop.train(7)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.ended == "" and held.cell.facts.steps == 7
    assert held.cell.records["stream"].steps.tolist() == list(range(8))


def test_a_fork_after_the_watch_began_is_left_alone(tmp_path):
    loop = Loop("")
    watch = stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
    loop.train(1)
    if not (child := os.fork()):
        try:
            with pytest.warns(StabilityWarning, match="is a fork of the watched one"):
                loop.train(1)
            os._exit(0 if "fork" in watch.ended and watch.steps == 1 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    watch.close()
    assert watch.ended == "closed"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m, o, out: stabkit.watch("m", o, out=out), "model must be a torch.nn.Module, not str"),
        (lambda m, o, out: stabkit.watch(m, "adam", out=out), "optimizer must be a torch.optim.Optimizer, not str"),
        (lambda m, o, out: stabkit.watch(m, torch.optim.LBFGS(m.parameters()), out=out), "LBFGS steps by a closure"),
        (lambda m, o, out: stabkit.watch(m, o, every=0, out=out), "every must be 'log' or a number of updates"),
        (
            lambda m, o, out: stabkit.watch(m, o, writer=3, out=out),
            "a writer must have one of add_scalar (TensorBoard)",
        ),
        (lambda m, o, out: stabkit.watch(models.Stack(1), o, out=out), "holds none of the model's parameters"),
        (lambda m, o, out: stabkit.watch(m.requires_grad_(False), o, out=out), "every parameter is frozen"),
        (lambda m, o, out: stabkit.watch(m, o, probe=(), out=out), "arguments contain no tensor"),
        (
            lambda m, o, out: stabkit.watch(m, o, probe=tokens(0).to("meta"), out=out),
            "the batch is on meta, the model on cpu",
        ),
        (
            lambda m, o, out: stabkit.watch(m, o, probe=torch.zeros(2, 8), out=out),
            "the model cannot be read on this batch (RuntimeError",
        ),
        (
            lambda m, o, out: stabkit.watch(type("FullyShardedDataParallel", (nn.Sequential,), {})(m), o, out=out),
            "(FSDP1) keeps its weights in flat vectors; watch the model under DDP or FSDP2",
        ),
    ],
)
def test_what_cannot_be_watched_is_refused_in_one_line(make, said, tmp_path):
    model = models.Stack(2)
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(UsageError, match="watch|probe") as error:
        make(model, optimizer, tmp_path)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_closed_watch_says_nothing_and_lets_another_begin(tmp_path):
    loop = Loop("")
    first = stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
    first.close(), first.close()
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as second:
        loop.train(2)
    assert (first.steps, second.steps) == (0, 2)


def test_a_model_that_was_never_called_is_said(tmp_path):
    loop = Loop("")
    with pytest.warns(StabilityWarning, match="never called before its first update"):
        watch = stabkit.watch(loop.model, loop.optimizer, out=tmp_path)
        loop.optimizer.step()
    assert watch.ended.startswith("stopped")


def test_a_writer_gets_every_scalar(tmp_path):
    class Writer:
        def __init__(self):
            self.tags = {}

        def add_scalar(self, tag, value, step):
            self.tags.setdefault(tag, []).append(step)

    loop, writer = Loop(""), Writer()
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path, writer=writer):
        loop.train(3)
    assert writer.tags["stabkit/update/state"] == [0, 1, 2, 3]
    assert writer.tags["stabkit/gradient/stack.1.self"] == [0, 1, 2]


@given(st.integers(17, 10**7))
def test_past_sixteen_readings_are_a_root_of_two_apart(step):
    upto = [t for t in range(max(17, step // 3), step) if reads("log", t)] if step < 10**4 else []
    for one, other in zip(upto, upto[1:], strict=False):
        assert 1.2 < other / one < 1.6
    assert stride(step) <= max(1, step // 1000)


# — what was found by others: each changed a training, or told of something else —


class Merging(nn.Linear):
    """As loralib's layers: merged in eval mode, and without a gradient of its own then."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.a, self.merged = nn.Parameter(torch.randn(*sizes) * 0.1), False

    def train(self, mode=True):
        self.merged = not mode
        return super().train(mode)

    def forward(self, x):
        return super().forward(x) if self.merged else super().forward(x) + x @ self.a


class Counting(nn.Module):
    """Puts a new tensor in the place of its buffer, and registers one in its forward."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        self.register_buffer(f"seen{int(self.count)}", x.detach()[:0])
        return x


def merged():
    model = models.Stack(2)
    model.blocks[0][1].f[0], model.embed = Merging(64, 256), nn.Sequential(model.embed, Counting())
    return model


def counted(model):
    return float(model.embed[1].count), [name for name, _ in model.named_buffers()]


def test_a_graph_that_holds_a_buffer_may_go_backward_after_the_step(tmp_path):
    loop = Loop("")
    loop.model.register_buffer("scale", torch.ones(()))
    weight = nn.Parameter(torch.ones(()))
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path, probe=tokens(0)):
        waiting = weight * loop.model.scale
        loop.train(2)
        waiting.backward()
    assert float(weight.grad) == 1.0


def test_a_closures_gradients_are_those_of_its_own_update(tmp_path):
    kept = {}
    for way in ("closure", "plain"):
        loop = Loop("")
        with stabkit.watch(loop.model, loop.optimizer, out=tmp_path / way) as watch:
            for step in range(3):

                def closure(step=step, loop=loop):
                    loop.optimizer.zero_grad()
                    loss = loss_of(loop.model, tokens(step))
                    loss.backward()
                    return loss

                if way == "plain":
                    closure()
                loop.optimizer.step(*([closure] if way == "closure" else []))
        assert watch.ended == "closed"
        (held,) = (WatchShelf(tmp_path / way).load(own) for own in WatchShelf(tmp_path / way).ids())
        kept[way] = held.cell.records["gradient"].values
    assert np.array_equal(kept["closure"], kept["plain"])


def test_a_watch_without_an_optimiser_is_told_of_each_update_and_has_its_steps(tmp_path):
    loop = Loop("")
    with pytest.raises(UsageError, match="without an optimizer, give a probe batch"):
        stabkit.watch(loop.model, out=tmp_path)
    with stabkit.watch(loop.model, out=tmp_path, probe=tokens(0)) as watch:
        for step in range(3):
            loop.optimizer.zero_grad(), loss_of(loop.model, tokens(step)).backward(), loop.optimizer.step()
            watch.step()
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    delta = held.cell.records["delta"]
    assert delta.steps.tolist() == [1, 2, 3] and (delta.at("stack.1.self") > 0).all()


def test_a_step_that_a_fused_optimiser_skips_is_no_loss_of_numbers(tmp_path):
    loop = Loop("fused scaler")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(1)
        loss_of(loop.model, tokens(1)).backward()
        next(loop.model.parameters()).grad.fill_(float("inf"))
        loop.scaler.scale(torch.ones(()))
        loop.scaler.step(loop.optimizer), loop.scaler.update()
        loop.train(1)
    assert watch.warnings == [] and watch.ended == "closed"
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.cell.records["gradient"].steps.tolist() == [0, 2]


def test_a_loss_that_is_written_over_is_kept_as_it_was(tmp_path):
    loop, running = Loop(""), torch.zeros(())
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path, every=100, probe=tokens(0), warn=False) as watch:
        watch._recording.chain.device = torch.device("cuda")  # nothing is fetched before the end
        for step in range(4):
            running += 1
            watch.loss(running)
            loss_of(loop.model, tokens(step)).backward(), loop.optimizer.step()
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.cell.records["loss"].at("train").tolist() == [1, 2, 3, 4]


def test_what_waits_on_a_device_is_fetched_when_a_part_is_due(tmp_path, monkeypatch):
    loop = Loop("")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path, every=100, probe=tokens(0)) as watch:
        watch._recording.chain.device = torch.device("cuda")
        loop.train(2)
        watch.loss(float("nan"))
        monkeypatch.setattr(journal, "PAUSE", -1)
        with pytest.warns(StabilityWarning, match="the loss is not finite"):
            loop.train(1)
        assert len(WatchShelf(tmp_path).ids()) == 1


def test_a_model_within_autocast_is_read_within_it(tmp_path):
    loop = Loop("")
    half = loop.model.embed(tokens(0)).detach().bfloat16()
    loop.model.embed = nn.Identity()
    optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.01)
    with stabkit.watch(loop.model, optimizer, out=tmp_path) as watch:
        for _ in range(3):
            with torch.autocast("cpu", torch.bfloat16):
                loss = loop.model(half).float().square().mean()
            optimizer.zero_grad(), loss.backward(), optimizer.step()
    assert watch.ended == "closed"


def test_sparse_gradients_are_measured(tmp_path):
    torch.manual_seed(0)
    model = models.Stack(2)
    model.embed = nn.Embedding(100, 64, sparse=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with stabkit.watch(model, optimizer, out=tmp_path) as watch:
        loss_of(model, tokens(0)).backward()
        size = float(model.embed.weight.grad.to_dense().double().norm())
        optimizer.step()
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert watch.ended == "closed" and held.cell.records["gradient"].at("outside")[0] >= size > 0


class Remembering(models.Stack):
    """State of its own in attributes: a tensor of the call before, a list, a generator, a counter."""

    def __init__(self):
        super().__init__(2)
        self.before, self.seen, self.calls, self.chance = None, [], 0, torch.Generator().manual_seed(0)

    def forward(self, batch):
        x = super().forward(batch)
        self.calls += 1
        self.seen.append(float(x.detach().mean()))
        y = x + 0.1 * torch.rand((), generator=self.chance) + sum(self.seen) / len(self.seen)
        y = y if self.before is None else y * (1 + 0.01 * self.before.sigmoid())
        self.before = x.detach().mean()
        return y * (1 + 0.001 * self.calls)


@pytest.mark.parametrize(
    "make, kept",
    [(merged, counted), (Remembering, lambda model: (model.calls, len(model.seen)))],
    ids=["layers that answer eval, buffers that are replaced", "attributes"],
)
def test_what_a_model_keeps_is_as_without(tmp_path, make, kept):
    found = []
    for out in (None, tmp_path):
        torch.manual_seed(0)
        model = make()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        watch = stabkit.watch(model, optimizer, out=out) if out else None
        for step in range(5):
            optimizer.zero_grad(), loss_of(model, tokens(step)).backward(), optimizer.step()
        if watch:
            watch.close()
            assert watch.ended == "closed"
        found.append((kept(model), [p.detach().clone() for p in model.parameters()]))
    (alone, without), (watched, parameters) = found
    assert alone == watched and alone[0] == 5
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(parameters, without, strict=True))


def test_layers_that_are_let_go_of_later_are_read_from_there(tmp_path):
    loop = Loop("")
    loop.model.blocks[0].requires_grad_(False)
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(2)
        loop.model.blocks[0].requires_grad_(True)
        loop.train(2)
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    first = held.cell.records["gradient"].at("stack.1.self")
    assert np.isnan(first[:2]).all() and (first[2:] > 0).all() and watch.ended == "closed"
    assert np.isfinite(held.cell.gradient_ratio("stack")[2:]).all(), "the page draws them"
    assert any("from update 2 on, the model has other parameters" in note for note in held.cell.facts.notes)


def test_layers_that_are_let_go_of_and_receive_nothing_are_warned_of(tmp_path):
    loop = Loop("")
    loop.model.blocks[0].requires_grad_(False)
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(2)
        for p in loop.model.blocks[0].parameters():
            p.requires_grad_(True).register_hook(lambda g: g * 1e-4)
        with pytest.warns(StabilityWarning, match=r"stack.1 \(blocks.0\) receives"):
            loop.train(4)
    assert [alarm.link for alarm in watch.warnings] == ["gradient"]


def test_weights_that_are_replaced_are_read_from_there(tmp_path):
    loop = Loop("")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(2)
        loop.model.load_state_dict({k: v.clone() for k, v in loop.model.state_dict().items()}, assign=True)
        loop.optimizer.add_param_group({"params": list(loop.model.parameters())})
        loop.train(2)
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert (held.cell.records["gradient"].at("stack.1.self") > 0).all() and watch.ended == "closed"


@pytest.mark.parametrize("name", ["exp/1", "../../away", "/abs", "x" * 300, "<script>", "-dash", "a\nb", "…"])
def test_a_name_is_a_folders(name, tmp_path):
    loop = Loop("")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path / "out", name=name):
        loop.train(1)
    (own,) = WatchShelf(tmp_path / "out").ids()
    assert (
        [path.name for path in tmp_path.iterdir()] == ["out"] and re.fullmatch(r"[\w.-]{1,120}", own) and own[0] != "-"
    )


def test_a_training_that_raises_is_not_one_that_was_closed(tmp_path):
    loop = Loop("")
    with pytest.raises(KeyError), stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(2)
        raise KeyError("theirs")
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert watch.ended == held.ended == "stopped: the training raised KeyError" and held.cell.facts.steps == 2


@pytest.mark.slow
def test_a_script_that_ends_without_a_word_leaves_what_was_seen(tmp_path):
    code = """
import sys, stabkit
from tests.own.test_watch import Loop
loop = Loop("")
watch = stabkit.watch(loop.model, loop.optimizer, out=sys.argv[1])
loop.train(5)
raise SystemExit(1)
"""
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, env=env, check=False)
    (held,) = (WatchShelf(tmp_path).load(own) for own in WatchShelf(tmp_path).ids())
    assert held.ended == "" and held.cell.facts.steps == 5
    assert held.cell.records["gradient"].steps.tolist() == list(range(5))


def test_losses_without_updates_are_asked_about(tmp_path):
    loop = Loop("")
    with stabkit.watch(loop.model, loop.optimizer, out=tmp_path) as watch:
        loop.train(1)
        with pytest.warns(StabilityWarning, match="was the watched optimizer replaced"):
            for _ in range(300):
                watch.loss(1.0)


class Macaron(nn.Module):
    """Two feed-forwards a layer, around attention."""

    def __init__(self, depth):
        super().__init__()
        self.embed, self.head = nn.Embedding(100, 64), nn.Linear(64, 100)
        self.layers = nn.ModuleList(
            nn.ModuleList([models.FeedForward(), models.Attention(), models.FeedForward()]) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.ModuleList(nn.LayerNorm(64) for _ in range(3)) for _ in range(depth))

    def forward(self, batch):
        x = self.embed(batch)
        for layer, norms in zip(self.layers, self.norms, strict=True):
            for part, norm in zip(layer, norms, strict=True):
                x = x + part(norm(x))
        return self.head(x)


def test_two_feed_forwards_of_a_layer_have_two_names_and_no_parameter_is_lost(tmp_path):
    torch.manual_seed(0)
    model = Macaron(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with stabkit.watch(model, optimizer, out=tmp_path, probe=tokens(0)) as watch:
        names = [own.name for own in watch._recording.chain.sublayers]
        counted = sum(len(own) for own in watch._recording.chain.groups.values())
    assert len(set(names)) == len(names) == 6 and counted == len(list(model.parameters()))


@given(st.integers(-160, 150), st.sampled_from([torch.float32, torch.bfloat16, torch.float64]), st.integers(1, 300))
def test_norms_are_float64s_at_any_size_and_layout(tenfold, dtype, width):
    x = (torch.randn(7, width, dtype=torch.float64) * 10.0 ** (tenfold / 4)).to(dtype)
    for each in (x, x.T, x[:, ::2], x[:0], x.unsqueeze(1)):
        (square,) = gradients._squares([each], None, each.device)
        assert float(square.sqrt()) == pytest.approx(float(each.double().norm()), rel=1e-6, abs=0.0)


@pytest.mark.parametrize(("last", "said"), [(0.4, "note"), (5.5, "warning"), (3.2, "")])
def test_the_outlook_of_a_training_is_said_once_where_it_is_firm(last, said):
    looking = Alarms((), guess=None)
    for step in range(250):
        looking.see("loss", step, {"train": 4.6 + (last - 4.6) * min(step / 60, 1.0)})
    assert bool(looking.promise) is (said == "note") and ("outlook" in looking.raised) is (said == "warning")
    assert "0.9" in looking.promise if said == "note" else not looking.promise
