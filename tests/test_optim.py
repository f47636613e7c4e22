"""Learning rates."""

import pytest
import torch

from stabkit.optim import Adam
from stabkit.schedule import rate


def test_adam_equals_torchs_own_to_the_bit():
    torch.manual_seed(0)
    ours, theirs = torch.randn(1000), torch.nn.Parameter(torch.empty(1000))
    theirs.data.copy_(ours)
    grad = torch.zeros(1000)
    theirs.grad = torch.zeros(1000)
    mine, reference = Adam(ours, grad, 0.9, 0.98, 1e-8), torch.optim.Adam([theirs], betas=(0.9, 0.98), fused=True)
    for update in range(1, 6):
        grad.copy_(torch.randn(1000))
        theirs.grad.copy_(grad)
        reference.param_groups[0]["lr"] = update * 1e-3
        reference.step()
        mine.step(update * 1e-3)
    assert torch.equal(ours, theirs.data)


def test_warm_up_is_linear_then_inverse_square_root():
    assert [rate(t, 5e-4, 4000) for t in (1, 2000, 4000, 16000)] == pytest.approx([1.25e-7, 2.5e-4, 5e-4, 2.5e-4])


def test_no_warm_up_is_a_constant_rate():
    assert {rate(t, 5e-4, 0) for t in (1, 100, 10_000)} == {5e-4}
