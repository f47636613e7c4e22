"""A GPU that is not there: tensors without numbers that know where they lie, and what makes the host wait for them.

`torch._subclasses.fake_tensor.FakeTensorMode` runs every operation on shapes, types and devices alone, and raises where
two devices meet. `Watch` stands above it: it is stricter about numbers () on the CPU, which a GPU takes in pointwise
operations only, answers where the host asks for a number that is not there, and counts each time it has to wait.

The device is called `gpu`, not `cuda`: a torch built without CUDA runs the forward pass of fake CUDA tensors, but its
autograd asks for CUDA's device guard and ends the process. A backend of one's own (PrivateUse1) may bring that guard
along in Python, and is to FakeTensorMode the same accelerator. To register one cannot be taken back, so that this runs
as a process of its own, `python -m tests.training.fake_gpu`, which `test_gpu_placement.py` asks line by line.
"""

from __future__ import annotations

import itertools
import json
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from stabkit import methods, spec
from stabkit.probes.loss import Loss
from stabkit.spec import ModelConfig, RunSpec, TaskConfig, TrainConfig
from stabkit.tasks import objective
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from stabkit.training.optimizers import OPTIMIZERS
from stabkit.training.optimizers.adam import Adam
from stabkit.training.optimizers.base import WHOLE

DEVICE = "gpu:0"
ATEN = torch.ops.aten
STABKIT = str(Path(train.__file__).parents[1])


class Guard(torch._C._acc.DeviceGuard):
    """What autograd asks a device for."""

    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


class Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, index: int) -> bool:
        return True


class TwoDevices(RuntimeError):
    """Tensors of two devices in one operation."""


class Watch(TorchDispatchMode):
    """Counts by place what makes the host wait: `number` (float, bool, int of a tensor), `down` and `up` (a copy from
    the device and to it: pageable memory, as numpy's is, is copied while the host waits), `mask` (how many are true
    decides a shape)."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        self.integers: Iterator[int] = itertools.cycle((9, 1))  # RAdam counts on the CPU: both of its updates

    def wait(self, kind: str) -> None:
        self.waits[f"{_place()} {kind}"] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        given = [*args, *kwargs.values()]
        lists = [one for value in given if isinstance(value, (list, tuple)) for one in value]
        found = [value for value in (*given, *lists) if isinstance(value, torch.Tensor)]
        there = [tensor for tensor in found if tensor.device.type == "gpu"]
        if packet is ATEN._local_scalar_dense:
            if there:
                self.wait("number")
            (value,) = found
            return True if value.dtype == torch.bool else 1.0 if value.is_floating_point() else next(self.integers)
        if packet is ATEN._to_copy or packet is ATEN.copy_:
            to = torch.device(kwargs.get("device") or args[0].device).type
            source = args[1 if packet is ATEN.copy_ else 0]
            if (source.device.type, to) in WAYS:
                self.wait(WAYS[source.device.type, to])
            return func(*args, **kwargs)
        if packet in (ATEN.index, ATEN.index_put, ATEN.index_put_):
            args = (args[0], [one for index in args[1] for one in self.whole(index, bool(there))], *args[2:])
        elif packet is ATEN.nonzero:
            if there:
                self.wait("mask")
            return found[0].new_empty((1, found[0].dim()), dtype=torch.int64)
        elif 0 < len(there) < len(found) and torch.Tag.pointwise not in func.tags:
            raise TwoDevices(f"{func}: {[(str(tensor.device), tuple(tensor.shape)) for tensor in found]}")
        return func(*args, **kwargs)

    def whole(self, index: torch.Tensor | None, there: bool) -> list[torch.Tensor | None]:
        """A mask as the indices that it stands for, as if all of it were true."""
        if index is None or index.dtype != torch.bool:
            return [index]
        if there:
            self.wait("mask" if index.device.type == "gpu" else "up")
        return [index.new_empty(index.numel(), dtype=torch.int64) for _ in index.shape]


WAYS = {("gpu", "cpu"): "down", ("cpu", "gpu"): "up"}


def _place() -> str:
    """The innermost function of stabkit that is at work: `model/flat.norms`."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(STABKIT):
            return f"{Path(file).relative_to(STABKIT).with_suffix('')}.{frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "elsewhere"


@contextmanager
def faked() -> Iterator[Watch]:
    """Every tensor inside is a fake one. Single-threaded backward: torch keeps a thread only for devices it can see."""
    with FakeTensorMode(), torch.autograd.set_multithreading_enabled(False), Watch() as watch:
        yield watch


def register() -> None:
    """Make `gpu` a device, and let fake tensors be read as numpy arrays and lists where real ones could be."""
    kept.extend((Guard(), Hooks()))
    torch._C._acc.register_python_privateuseone_device_guard(kept[0])
    torch._C._acc.register_python_privateuseone_hook(kept[1])
    torch.utils.rename_privateuse1_backend("gpu")

    def numpy(tensor: FakeTensor) -> Any:
        if tensor.device.type != "cpu":
            raise TypeError(f"numpy of a tensor on {tensor.device}")
        return np.ones(tensor.shape, str(tensor.dtype).removeprefix("torch."))

    torch.get_rng_state = lambda: torch.zeros(16, dtype=torch.uint8)  # a generator's state is no fake tensor
    torch.set_rng_state = lambda state: None
    FakeTensor.numpy = numpy
    FakeTensor.tolist = lambda tensor: numpy(tensor.cpu()).tolist()  # one copy; FakeTensor's own asks for each entry


kept: list[object] = []  # torch holds no reference


class Enough(Exception):
    """The run has shown what it was made for."""


def tiny(text: str = "deepnorm", n: int = 1, m: int = 1, dtype: str = "float32", **changes: Any) -> RunSpec:
    key, options = methods.parse(text)
    model = ModelConfig(encoder_layers=n, decoder_layers=m, hidden=16, ffn=24, heads=2)
    config = TrainConfig(steps=4, max_tokens=128, dropout=0.1, clip=1.0, warmup=0, **changes)
    return RunSpec(
        method=key, options=options, model=model, train=config, task=TaskConfig(vocab=200), dtype=dtype, snapshots=2
    )


def task_of(run_spec: RunSpec) -> Any:
    plain = Synthetic(vocab=run_spec.task.vocab, max_tokens=run_spec.train.max_tokens)
    return objective.of(plain, run_spec.model.encoder_layers, run_spec.model.decoder_layers)


class Short:
    """The task's first batch, and one validation batch."""

    def __init__(self, run_spec: RunSpec) -> None:
        self.task = task_of(run_spec)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def train(self, seed: int, step: int) -> Any:
        if step:
            raise Enough
        return self.task.train(seed, step)

    def validation(self) -> Any:
        return self.task.validation()[:1]


def placed(*what: Any) -> None:
    """A run up to its second batch: built, calibrated, forward and backward with every probe, validated, one update."""
    run_spec = tiny(*what)
    with suppress(Enough), faked():
        train.run(run_spec, Short(run_spec), DEVICE)


def waits(layers: int) -> list[dict[str, int]]:
    """What the host waited for, {place and kind: times}, in step 1, which is recorded, and in step 2, which is not;
    the update before a step is a part of it."""
    found: list[dict[str, int]] = []
    run_spec = tiny("deepnorm", layers, layers)
    with faked() as watch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(spec, "DENSE", 1)

        def tell(step: int, loss: float) -> None:
            found.append(dict(sorted(watch.waits.items())))
            watch.waits.clear()
            if step == 2:
                raise Enough

        with suppress(Enough):
            train.run(run_spec, task_of(run_spec), DEVICE, tell)
    return found[1:]


def resumed() -> None:
    """A run to its end with snapshots and a checkpoint, and another that goes on from there."""
    saved: list[train.State] = []
    run_spec = tiny()
    with faked():
        train.run(run_spec, task_of(run_spec), DEVICE, save=saved.append, every=2)
        train.run(run_spec, task_of(run_spec), DEVICE, start=saved[0])


def optimised(name: str) -> None:
    """Four updates: both kinds of RAdam's, which counts on the CPU."""
    config = tiny(optimizer=name).train
    with faked():
        theta, grad = torch.empty(5, device=DEVICE), torch.empty(5, device=DEVICE)
        optimizer = OPTIMIZERS[config.optimizer].make(config, theta, grad, WHOLE)
        for _ in range(4):
            optimizer.step(0.1)


def mistaken(where: str) -> None:
    """A run with one thing on the wrong device."""
    target, name, wrong = MISTAKES[where]
    with pytest.MonkeyPatch.context() as patch:
        right = getattr(target, name)
        patch.setattr(target, name, lambda *args: wrong(right, *args))
        placed("deepnorm", 0, 1)


def _buffer(build: Any, *args: Any) -> Any:
    model = build(*args)
    model.positions.table = model.positions.table.cpu()
    return model


def _module(build: Any, *args: Any) -> Any:
    model = build(*args)
    next(iter(model.residuals.values())).norm_out = torch.nn.LayerNorm(16)
    return model


def _moments(init: Any, adam: Adam, *args: Any) -> None:
    init(adam, *args)
    adam.groups[0][1][2][0] = adam.mean.cpu()


def _count(init: Any, adam: Adam, *args: Any) -> None:
    init(adam, *args)
    adam.updates = adam.updates.cpu()


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a batch": (train, "tensors", lambda tensors, batch, device: tensors(batch)),
    "a buffer": (train, "build", _buffer),
    "a module": (train, "build", _module),
    "a probe's tensor": (Loss, "read", lambda read, *args: torch.cat([read(*args), torch.ones(1)])),
    "a probe's number": (Loss, "read", lambda read, *args: torch.stack([*read(*args), torch.ones(())])),
    "the optimiser's moments": (Adam, "__init__", _moments),
    "the optimiser's count": (Adam, "__init__", _count),
}
"""What lies on the CPU: (where it is made, its name, what to do there in its stead)."""

ASKED = {asked.__name__: asked for asked in (placed, waits, resumed, optimised, mistaken)}


def main() -> None:
    """Answers a line [name, arguments…] with {"found", "error"}, both JSON."""
    warnings.simplefilter("error")
    register()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        found, error = None, ""
        try:
            found = ASKED[name](*arguments)
        except Exception:
            error = traceback.format_exc()
        print(json.dumps({"found": found, "error": error}), flush=True)


if __name__ == "__main__":
    main()
