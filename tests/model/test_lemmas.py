"""What arithmetic decides of the papers' lemmas, and is therefore no claim of a page."""

import math

import pytest
import torch


@pytest.mark.parametrize("size", [0.5, 1.0, 20.0])
def test_the_derivative_of_a_layer_norm_has_the_norm_of_root_d_over_its_input(size):
    """DeepNet §2: ‖∂LN(x)/∂x‖₂ = O(√d/‖x‖₂), an equality for a centred input: the inverse of its deviation."""
    d = 64
    x = torch.randn(d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = size * (x - x.mean())
    jacobian = torch.autograd.functional.jacobian(lambda v: torch.nn.functional.layer_norm(v, (d,), eps=0.0), x)
    assert float(torch.linalg.matrix_norm(jacobian, 2)) == pytest.approx(math.sqrt(d) / float(x.norm()), rel=1e-9)


@pytest.mark.parametrize("sharp", [0.0, 1.0, 30.0])
def test_a_softmax_of_values_is_never_larger_than_the_largest_of_them(sharp):
    """DeepNet §3.1, Lemma 1: an upper bound that no query or key can break; how near: claim `attention-size`."""
    draw = torch.Generator().manual_seed(1)
    values = torch.randn(32, 16, dtype=torch.float64, generator=draw)
    mixed = torch.softmax(sharp * torch.randn(32, dtype=torch.float64, generator=draw), 0) @ values
    assert float(mixed.norm()) <= float(values.norm(dim=1).max()) * (1 + 1e-12)
