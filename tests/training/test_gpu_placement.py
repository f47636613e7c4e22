"""The way to a GPU, as far as it goes without one: every tensor lies where the others do, and the host seldom waits.

Runs go through `training/train.run` itself on a device that is not there (`fake_gpu.py`): build, calibration, forward,
backward, every probe, validation, clipping, update, snapshots, checkpoint and resumption, for every method. Two devices
in one operation raise. What this cannot reach, and only a GPU could show:

- numbers: what CUDA's kernels compute, whether runs on a GPU are equal to the bit, where results overflow;
- speed and memory, and whether a copy really keeps the host waiting or finds the device idle;
- CUDA's random state, which a checkpoint holds there (the CPU's is no fake tensor either and is replaced here);
- which operations `torch.use_deterministic_algorithms` refuses on CUDA;
- shapes that numbers decide: a mask counts as true everywhere, and ‖·‖ out of range is found once in `Flat.norms`;
- the branches `device.type == "cuda"`, several devices, the Dask resource, surfaces, own models;
- autocast, TF32 and half precision, which stabkit does not use.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from stabkit import methods
from stabkit.spec import Optimizer
from tests.conftest import some
from tests.methods import kinds

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def gpu() -> Iterator[Ask]:
    """`gpu(name, arguments…)`: what `fake_gpu.ASKED[name]` found there; fails with its error."""
    command = [sys.executable, "-m", "tests.training.fake_gpu"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asking, answering = process.stdin, process.stdout
        assert asking is not None and answering is not None

        def ask(*what: object) -> Any:
            print(json.dumps(what), file=asking, flush=True)
            answer = json.loads(answering.readline() or '{"error": "the process ended"}')
            assert not answer["error"], answer["error"]
            return answer["found"]

        yield ask
        asking.close()


def layouts(key: str) -> list[tuple[int, int]]:
    """The stacks that a method is defined for, besides the encoder with a decoder."""
    made = methods.DEFAULTS[methods.KEYS.index(key)]
    return [(n, m) for n, m in ((1, 0), (0, 1)) if not made.undefined(n, m)]


SINGLE = [(key, n, m) for i, key in enumerate(kinds.KEYS) for n, m in layouts(key)[i % 2 :][:1]]
"""Methods that fill every slot in every way, in one of the two layouts in turn."""
CHOSEN = [f"{key}:{option}={values[-1]}" for key in methods.KEYS for option, values in methods.options(key).items()]


@pytest.mark.slow
@pytest.mark.parametrize("method", some(kinds.KEYS))
def test_every_kind_of_method_begins_its_run_on_one_device(method: str, gpu: Ask) -> None:
    gpu("placed", method, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [*SINGLE, *((text, 1, 1) for text in CHOSEN), ("admin", 1, 1, "float64")],
    ids=str,
)
def test_so_it_does_in_each_layout_with_each_option_and_in_double_precision(what: tuple[object, ...], gpu: Ask) -> None:
    gpu("placed", *what)


@pytest.mark.slow
@pytest.mark.parametrize("name", get_args(Optimizer))
def test_every_optimiser_updates_where_the_weights_are(name: str, gpu: Ask) -> None:
    gpu("optimised", name)


@pytest.mark.slow
def test_a_run_ends_and_goes_on_from_its_checkpoint_on_one_device(gpu: Ask) -> None:
    gpu("resumed")


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "a batch",
        "a buffer",
        "a module",
        "a probe's tensor",
        "a probe's number",
        "the optimiser's moments",
        "the optimiser's count",
    ],
)
def test_the_check_finds_what_lies_on_the_cpu(where: str, gpu: Ask) -> None:
    with pytest.raises(AssertionError, match="TwoDevices|FakeTensorDeviceMismatchError"):
        gpu("mistaken", where)


STEP = {"model/transformer.<genexpr> up": 3, "training/train.<listcomp> number": 1}
"""A step that is not recorded: its batch goes up, its loss comes down, to be seen to be finite."""

RECORDED = {
    "model/flat.norms down": 2,  # norms that may have left float32's range: of gradients, of ‖Δθ‖
    "model/flat.norms mask": 2,
    "model/transformer.<genexpr> up": 6,  # the training batch and the probe batch
    "probes/base.nll mask": 1,
    "probes/attention_logit.read mask": 3,  # one for each kind of attention
    "probes/branch_ratio.<listcomp> mask": 6,  # two stacks: three parts of each
    "probes/cosine.read mask": 2,
    "probes/grad_norm.read down": 2,
    "probes/ln_input.read up": 1,
    "probes/tools/hooks.of_stacks mask": 2,  # of the residual stream
    "probes/tools/hooks.token_means mask": 2,  # of ‖LN input‖
    "probes/tools/quantities.mean mask": 2,
    "probes/tools/quantities.token_cosine mask": 1,
    "probes/update.read mask": 2,
    "training/train.read down": 9,  # each probe's reading but the one that is on the CPU already
    "training/train.<listcomp> number": 1,
    "training/train.trained number": 1,
}


@pytest.mark.slow
def test_the_host_waits_four_times_in_a_step_and_45_times_in_one_that_is_recorded(gpu: Ask) -> None:
    """A ceiling: where a wait goes away, these numbers follow."""
    recorded, plain = gpu("waits", 1)
    assert plain == STEP and sum(plain.values()) == 4
    assert recorded == RECORDED and sum(recorded.values()) == 45


@pytest.mark.slow
def test_the_host_waits_no_oftener_in_a_deeper_model(gpu: Ask) -> None:
    """Of DeepNorm; a trained vector ω is read one by one (`ln_input`)."""
    assert gpu("waits", 3) == gpu("waits", 1)
