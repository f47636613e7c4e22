"""Training loops as people write them, and odder ones: each is run with a watch and without one (`test_loops.py`)."""

from __future__ import annotations

import copy
import inspect
import io
import os
import pickle
import random
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from stabkit.own.watch.journal import StabilityWarning
from tests.hostile import training
from tests.hostile.training import CHANCE, UPDATES, WIDTH, WORDS, Block, Counter, Nobody, Tiny, Training, tokens


def appended(t: Training) -> None:
    block = Block()
    t.model.blocks.append(block)
    t.optimizer.add_param_group({"params": list(block.parameters()), "lr": 1e-4})


def replaced(t: Training, inform: bool) -> None:
    t.optimizer = torch.optim.SGD(t.model.parameters(), lr=1e-2)
    if inform:
        t.watch.optimizer(t.optimizer)


def reloaded(t: Training) -> None:
    t.model.load_state_dict(copy.deepcopy(t.model.state_dict()))
    t.optimizer.load_state_dict(copy.deepcopy(t.optimizer.state_dict()))


def away(t: Training, removed: bool, relative: bool = False) -> None:
    """Goes to a folder of its own for the training; to one that is no more, if `removed`."""
    folder = t.out.parent / f"{t.out.name}-away"
    folder.mkdir()
    os.chdir(folder)
    t.run(then={5: lambda: shutil.rmtree(folder)} if removed else None, **({"out": "here"} if relative else {}))


def gone_before(t: Training) -> None:
    folder = t.out.parent / f"{t.out.name}-gone"
    folder.mkdir()
    os.chdir(folder), folder.rmdir()
    t.run(out="here")


def broken(t: Training, file: bool) -> None:
    if t.watched:
        shutil.rmtree(t.out)
        t.out.write_text("mine") if file else None


def unclosed(t: Training) -> None:
    for seed in range(8):
        Training.__init__(t, t.out, t.watched)
        t.run(updates=2, close=False, name=f"watch-{seed}")


def forked(t: Training) -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            t.update(50), t.update(51), t.watch.close()
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise ChildProcessError("the training of the child failed")


def within(t: Training, act: Callable[[], object]) -> None:
    with t.open():
        for at in range(UPDATES):
            act() if at == 5 else None
            t.update(at)


def copies(t: Training) -> None:
    clone = pickle.loads(pickle.dumps(copy.deepcopy(t.model)))
    torch.save(t.model, io.BytesIO())
    clone(tokens(3))


def deleted(t: Training) -> None:
    t.run(close=False)
    t.state, watch = t.digest(), t.watch
    del t.model, t.optimizer
    watch.close()


def as_errors(t: Training, rate: float) -> None:
    t.optimizer.param_groups[0]["lr"] = rate
    warnings.simplefilter("error")
    t.run()


def fails(error: BaseException) -> None:
    raise error


def bad_call(t: Training) -> None:
    with suppress(IndexError):
        t.model(tokens(0) + WORDS)


def evaluation(t: Training) -> None:
    with torch.inference_mode():
        t.model.eval(), t.model(tokens(70)), t.model.train()


def interrupted(t: Training) -> None:
    with suppress(KeyboardInterrupt):
        within(t, lambda: signal.raise_signal(signal.SIGINT))
    t.update(99)


def deep(act: Callable[[], object], spare: int) -> None:
    """Calls it where so many further calls are possible."""

    def down(left: int) -> None:
        down(left - 1) if left else act()

    down(sys.getrecursionlimit() - len(inspect.stack(0)) - spare)


def under(t: Training, switch: Callable[[Any], object], on: Any, off: Any) -> None:
    """With one of torch's switches on in every update from the fifth on."""
    t.run(update=lambda at: (switch(on if at >= 5 else off), t.update(at), switch(off)))


def resident() -> float:
    """Megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def long(t: Training) -> None:
    start = [0.0]
    t.use(Tiny(blocks=1)).run(updates=2000, every=1, then={500: lambda: start.append(resident())})
    if (grown := resident() - start[-1]) > 48:
        raise MemoryError(f"1,500 updates took {grown:.0f} MB")


def bent(t: Training, bend: Callable[..., Any]) -> None:
    t.model.bend = bend
    t.run()


@dataclass(frozen=True, slots=True)
class Row:
    """A loop, and what is expected of a watch in it."""

    name: str
    does: str
    loop: Callable[[Training], object]
    bits: bool = True
    """Whether weights, losses and random state end as without a watch."""
    ended: str = "closed"
    """Pattern of how the watches that are read back ended."""
    watches: int | None = 1
    """So many are read back; None: any number."""
    updates: int | None = UPDATES
    """Of those."""
    warns: str = ""
    """Pattern in one of the warnings."""
    repeatable: bool | None = True
    """Whether the forward gives the same twice; None: that may be warned of or not."""
    opens: Literal["yes", "no", "either"] = "yes"
    """`no`: UsageError before the training."""
    raises: str = ""
    """The class of what ends a watched training alone: warnings that the user has made errors of."""


# fmt: off
NAMES: Mapping[str, str] = {
    "of 240 characters": "x" * 240, "of 80 letters of four bytes": "\U0001d518" * 80, "with slashes": "/etc/../a/b//c",
    "of two dots": "..", "with an escape": "a\x1b[2Jb", "of two lines": "a\nb\0c", "of half a pair": "a\udcffb",
    "with markup": "<script>alert(1)</script>[bold]", "in other letters": "мо́дель-模型-\u202eno", "that is empty": "",
    "that is an option": "--out",
}
ODD_LOSSES: Mapping[str, Any] = {
    "a word": "x", "nothing": None, "a vector": torch.ones(3), "a complex number": 1j, "a list": [1.0],
    "a complex tensor": torch.tensor(1j), "a whole number of 400 digits": 10**400,
}


CHANGE = 5
"""Updates after which most of what changes does."""
ANY = "closed|stopped: .+"
"""Of a model that becomes another: what was recorded until then is there in any case."""
ROWS: tuple[Row, ...] = (
    Row("plain", "Twelve updates by AdamW.", lambda t: t.run()),
    Row("accumulation", "Two passes an update.", lambda t: t.run(update=lambda at: training.accumulated(t, at))),
    Row("clipping", "Gradients are clipped before each step.", lambda t: t.run(update=lambda at: t.update(
        at, between=lambda: nn.utils.clip_grad_norm_(t.model.parameters(), 0.1)))),
    Row("autocast", "Each forward is in bfloat16.", lambda t: t.run(update=lambda at: training.half(t, at))),
    Row("bfloat16", "The weights are in bfloat16.", lambda t: t.use(Tiny().bfloat16(), torch.optim.SGD).run()),
    Row("scaler", "Losses are scaled.", training.scaled),
    Row("skipped step", "One scaled loss is infinite, its step skipped.", lambda t: training.scaled(t, 4), updates=11),
    Row("wrapper", "The model watched stands in a module that is called.", lambda t: (
        t.run(first=lambda: setattr(t, "model", training.Wrapper(t.model))))),
    Row("data parallel", "The model stands in DataParallel.", lambda t: t.use(nn.DataParallel(Tiny())).run()),
    Row("freezing multi-head attention", "After update 9 a block with nn.MultiheadAttention is frozen.", lambda t: (
        t.use(Tiny(multihead=True)).run(then={9: lambda: t.model.blocks[0].requires_grad_(False)}))),
    Row("freezing linear", "After update 9 a block of linear layers is frozen.", lambda t: t.run(
        then={9: lambda: t.model.blocks[0].requires_grad_(False)})),
    Row("freezing all", "After update 9 nothing is trained but the head.", lambda t: t.use(Tiny(multihead=True)).run(
        then={9: lambda: [p.requires_grad_(False) for p in [*t.model.parameters()][:-2]]})),
    Row("unfreezing", "A frozen block is trained from update 5 on.", lambda t: (
        t.model.blocks[1].requires_grad_(False), t.run(then={5: lambda: t.model.requires_grad_(True)}))),
    Row("unfreezing multi-head attention", "A frozen block with nn.MultiheadAttention is trained later.", lambda t: (
        t.use(Tiny(multihead=True)).model.blocks[1].requires_grad_(False),
        t.run(then={5: lambda: t.model.requires_grad_(True)}))),
    Row("appended block", "A block is added to the list and to the optimizer.", lambda t: t.run(
        then={5: lambda: appended(t)}), ended=ANY, updates=None, watches=2),
    Row("replaced block", "A block of another kind takes a block's place.", lambda t: t.run(
        then={5: lambda: t.model.blocks.__setitem__(1, Block(True))}), ended=ANY, updates=None),
    Row("removed block", "The last block is deleted.", lambda t: t.run(
        then={5: lambda: t.model.blocks.__delitem__(2)}), ended=ANY, updates=None, watches=2),
    Row("replaced head", "The head is drawn anew, with more words.", lambda t: t.run(
        then={5: lambda: setattr(t.model, "head", nn.Linear(WIDTH, WORDS + 6))}), ended=ANY, updates=None),
    Row("other attention", "From update 5 on attention is written out.", lambda t: t.run(
        then={5: lambda: [setattr(b, "fused", False) for b in t.model.blocks]})),
    Row("other dropout", "The rate of dropout changes twice.", lambda t: t.run(then={
        at: lambda p=p: [setattr(b.dropout, "p", p) for b in t.model.blocks] for at, p in ((3, 0.5), (7, 0.0))})),
    Row("train and eval", "The model is in eval mode between updates, and stays there.", lambda t: t.run(
        then={3: lambda: t.model.eval(), 6: lambda: t.model.train(), 9: lambda: t.model.eval()})),
    Row("own generator", "The forward draws from a generator of the module's file.", lambda t: bent(
        t, lambda x: x + 0.1 * torch.randn(x.shape, generator=CHANCE)), bits=False, repeatable=False),
    Row("counter object", "The forward counts in an object that the model holds.", lambda t: bent(t, Counter()),
        bits=False, repeatable=False),
    Row("counting hook", "A hook of the user's counts and scales.", lambda t: (
        t.model.register_forward_hook(Counter()), t.run()), bits=False, repeatable=False),
    Row("global counter", "The forward depends on a global counter.", lambda t: bent(t, training.counted),
        bits=False, repeatable=False),
    Row("quiet hook", "A hook appends to a list elsewhere and changes nothing.", lambda t: (
        t.model.register_forward_hook(lambda *seen, log=[]: log.append(seen[-1].detach())), t.run())),
    Row("python's chance", "The forward draws from Python's own generator.", lambda t: bent(
        t, lambda x: x + 0.1 * random.random()), repeatable=None),
    Row("torch's chance", "The forward draws from torch's generator, in eval mode too.", lambda t: bent(
        t, lambda x: x + 0.1 * torch.rand(())), repeatable=None),
    Row("growing cache", "The forward appends to a list of the module.", lambda t: bent(
        t, lambda x: (t.model.cache.append(x.detach()), x)[1])),
    Row("tied later", "The head becomes the embedding.", lambda t: t.run(
        then={5: lambda: setattr(t.model.head, "weight", t.model.embed.weight)}), ended=ANY, updates=None),
    Row("optimizer replaced", "Another optimizer steps, and the watch has it.", lambda t: t.run(
        then={5: lambda: replaced(t, True)})),
    Row("optimizer replaced silently", "Another optimizer steps, and nobody says so.", lambda t: t.run(
        then={5: lambda: replaced(t, False)}), updates=5, warns="was not given"),
    Row("states loaded", "Model and optimizer load what they are.", lambda t: t.run(then={5: lambda: reloaded(t)})),
    Row("a further group", "The optimizer is given a scale that the model had all along.", lambda t: (
        setattr(t, "optimizer", torch.optim.AdamW(t.model.blocks.parameters(), lr=1e-3)), t.run(then={
            5: lambda: t.optimizer.add_param_group({"params": [*t.model.head.parameters()]})}))),
    Row("average", "Evaluated at averaged weights, swapped in and out.", lambda t: t.run(
        update=lambda at: training.averaged(t, at))),
    Row("sharpness", "Two passes: the second at weights nearby.", lambda t: t.run(
        update=lambda at: training.perturbed(t, at))),
    Row("two steps", "The optimizer steps twice a loop.", lambda t: t.run(
        update=lambda at: t.update(at, between=lambda: t.optimizer.step())), updates=24),
    Row("LBFGS", "Steps by a line search.", lambda t: t.use(Tiny(), torch.optim.LBFGS, max_iter=2).run(
        update=lambda at: training.by_closure(t, at)), opens="no", watches=0),
    Row("closure", "SGD with a closure.", lambda t: t.use(Tiny(), torch.optim.SGD).run(
        update=lambda at: training.by_closure(t, at))),
    Row("no optimizer", "Descent by hand; step() after each update.", lambda t: t.run(
        update=lambda at: training.by_hand(t, at), optimizer=None, probe=tokens(0))),
    Row("two optimizers", "One for the blocks, one for the rest.", lambda t: (
        t.more.append(torch.optim.SGD(t.model.head.parameters(), lr=1e-2)), t.run())),
    Row("zeros", "Gradients are set to 0, not to None.", lambda t: t.run(update=lambda at: (
        t.optimizer.zero_grad(set_to_none=False), t.update(at)))),
    Row("gradients by hand", "Gradients are drawn.", lambda t: t.run(update=lambda at: t.update(
        at, between=lambda: [p.grad.normal_(generator=CHANCE) for p in t.model.parameters()]))),
    Row("weights by hand", "Weights are scaled between updates.", lambda t: t.run(update=lambda at: (
        t.update(at), [p.data.mul_(0.9) for p in t.model.parameters()]))),
    Row("sparse gradients", "The embedding's gradients are sparse.", lambda t: t.use(
        Tiny(sparse=True), torch.optim.SGD).run()),
    Row("other precision", "The model becomes float64 in mid-training.", lambda t: t.use(Tiny(), torch.optim.SGD).run(
        then={5: lambda: t.model.double()}), ended=ANY, updates=None),
    Row("loss that is no number", "From update 5 on the loss is NaN.", lambda t: t.run(update=lambda at: t.update(
        at, t.loss(at) * (float("nan") if at >= 5 else 1))), warns="not finite|no number"),
    *(Row(f"loss: {name}", "Once another value is given as loss.", lambda t, odd=odd: t.run(update=lambda at: t.update(
        at, given=odd if at == 5 else "its own")), warns="loss") for name, odd in ODD_LOSSES.items()),
    Row("loss: a fraction", "Losses are Python numbers.", lambda t: t.run(update=lambda at: t.update(at, given=2.5))),
    Row("closed twice", "close() twice.", lambda t: (t.run(), t.watch.close())),
    Row("closed early", "close() in mid-training.", lambda t: t.run(then={5: lambda: t.watch.close()}),
        updates=5, warns="closed"),
    Row("opened twice", "A second watch on the model, while one is open.", lambda t: (t.open(), t.run()), ended="",
        watches=None, updates=None, warns="another watch"),
    Row("never closed", "Nobody calls close(), and the watch goes out of use.", lambda t: (
        t.run(close=False), setattr(t, "watch", Nobody())), ended="|closed", updates=None),
    Row("eight never closed", "Eight trainings one after another, no close().", unclosed, ended="", watches=8,
        updates=None),
    Row("folder removed", "The current folder is gone at close().", lambda t: away(t, True)),
    Row("relative store", "out is relative.", lambda t: away(t, False, True), watches=0),
    Row("relative store removed", "out is relative, its folder gone.", lambda t: away(t, True, True), watches=0),
    Row("folder gone before", "The current folder is gone before the watch is made.", gone_before, opens="either",
        watches=0),
    Row("store removed", "out is deleted in mid-training.", lambda t: t.run(then={5: lambda: broken(t, False)}),
        watches=None, updates=None),
    Row("store a file", "A file takes the store's place.", lambda t: t.run(then={5: lambda: broken(t, True)}),
        watches=0, warns="cannot write"),
    Row("store read-only", "out is below a folder of the system's, where nobody writes.", lambda t: t.run(
        out="/proc/self/nothing"), watches=0, warns="cannot write"),
    *(Row(f"name {what}", "The watch has an odd name.", lambda t, name=name: t.run(2, name=name), updates=2)
      for what, name in NAMES.items()),
    Row("thread", "All of it in a thread.", lambda t: ThreadPoolExecutor(1).submit(t.run).result()),
    Row("fork", "The process forks, and the child goes on training.", lambda t: t.run(then={5: lambda: forked(t)})),
    Row("exception", "The training raises within `with`.", lambda t: within(t, lambda: fails(ValueError("mine"))),
        ended="stopped: .*ValueError", updates=5),
    Row("exit", "sys.exit() within `with`.", lambda t: within(t, lambda: fails(SystemExit(3))),
        ended="stopped: .*SystemExit", updates=5),
    Row("interrupt", "SIGINT within `with`, and the training goes on.", interrupted,
        ended="stopped: .*KeyboardInterrupt", updates=5),
    Row("copies", "The model is copied and pickled, before its first call too.", lambda t: t.run(
        then={0: lambda: copies(t), 6: lambda: copies(t)})),
    Row("deleted", "Model and optimizer are deleted before close().", deleted),
    Row("bad first batch", "The model fails on the first batch that it is called with.", lambda t: t.run(
        first=lambda: bad_call(t)), ended=ANY, watches=None, updates=None),
    Row("evaluated first", "The first call is an evaluation in inference mode.", lambda t: t.run(
        first=lambda: evaluation(t))),
    Row("other probe", "The probe batch has another shape.", lambda t: t.run(probe=tokens(5, 3)[:2])),
    Row("bad probe", "The model fails on the probe batch.", lambda t: t.run(probe=tokens(5) + WORDS), opens="no",
        watches=0),
    Row("raising writer", "The tracker raises.", lambda t: t.run(writer=training.Raising()), warns="writer failed"),
    Row("sound, warnings as errors", "Warnings are errors, and there are none.", lambda t: as_errors(t, 1e-3)),
    Row("fails, warnings as errors", "Warnings are errors, and the rate is far too high.", lambda t: as_errors(t, 3.0),
        bits=False, ended="stopped: .+", updates=None, raises=StabilityWarning.__name__),
    Row("deep", "Little is left of the stack of calls.", lambda t: t.run(
        update=lambda at: deep(lambda: t.update(at), 34)), ended=ANY, watches=None, updates=None),
    Row("deep later", "Little is left of the stack of calls from update 5 on.", lambda t: t.run(
        update=lambda at: deep(lambda: t.update(at), 30 if at >= 5 else 200)), ended=ANY, updates=None),
    Row("changing length", "Each batch has another length.", lambda t: t.run(update=lambda at: (
        t.model(tokens(at, 3 + at)), t.update(at)))),
    Row("called twice", "Two calls of the model an update.", lambda t: t.run(update=lambda at: t.update(
        at, t.loss(at) + t.loss(at + 50)))),
    Row("never called", "Weights decay, the model is never called.", lambda t: t.run(update=lambda at: t.update(
        at, sum(p.square().sum() for p in t.model.parameters()))), watches=0, warns="never called"),
    Row("no update", "Closed before an update.", lambda t: t.run(updates=0), watches=None, updates=0),
    Row("no update, a probe", "A probe batch and no update.", lambda t: t.run(updates=0, probe=tokens(0)), updates=0),
    Row("gradients off", "Steps are made where gradients are off and detect_anomaly is on.", lambda t: under(
        t, torch.autograd.set_detect_anomaly, True, False)),
    Row("other default", "torch's default type is float64 for some updates.", lambda t: under(
        t, torch.set_default_dtype, torch.float64, torch.float32)),
    Row("deterministic", "torch is asked for deterministic algorithms.", lambda t: under(
        t, torch.use_deterministic_algorithms, True, False)),
    Row("long", "Two thousand updates, each of them read.", long, updates=2000),
)
# fmt: on
