"""Linear maps and attention against the plain formulas, and their gradients against finite differences."""

import math

import pytest
import torch
from torch.nn import functional

from stabkit.kernels import products, reference

HEADS, E = 2, 3


def inputs(own, t=4, s=5, b=2, dtype=torch.float64):
    torch.manual_seed(0)
    d = HEADS * E
    if own:
        return torch.randn(t, b, 3 * d, dtype=dtype, requires_grad=True), None, t
    return (
        torch.randn(t, b, d, dtype=dtype, requires_grad=True),
        torch.randn(s, b, 2 * d, dtype=dtype, requires_grad=True),
        s,
    )


def masks(own, s, t, b, dtype):
    mask = torch.zeros(b * HEADS, s, t, dtype=dtype)
    mask[0, -1] = -math.inf  # the last key of the first problem is padding
    if own:
        mask += torch.full((s, t), -math.inf, dtype=dtype).tril(-1)
    return None, mask


def plain(queries, memory, mask):
    """Attention head by head, as the papers write it."""
    t, b, _ = queries.shape
    packed = queries.view(t, b, HEADS, -1, E)
    q = packed[..., 0, :]
    k, v = (
        (packed[..., 1, :], packed[..., 2, :]) if memory is None else memory.view(len(memory), b, HEADS, 2, E).unbind(3)
    )
    out = torch.empty(t, b, HEADS, E, dtype=queries.dtype)
    for i in range(b):
        for h in range(HEADS):
            scores = q[:, i, h] @ k[:, i, h].t() / math.sqrt(E)
            if mask is not None:
                scores = scores + mask[i * HEADS + h].t()
            out[:, i, h] = torch.softmax(scores, -1) @ v[:, i, h]
    return out.reshape(t, b, -1)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("masked", [0, 1])
def test_attention_is_the_plain_formula_with_and_without_a_gradient(own, masked):
    queries, memory, s = inputs(own)
    mask = masks(own, s, 4, 2, torch.float64)[masked]
    scale = 1 / math.sqrt(E)
    expected = plain(queries, memory, mask)
    torch.testing.assert_close(reference.attend(queries, memory, mask, HEADS, scale), expected)
    with torch.no_grad():
        torch.testing.assert_close(reference.attend(queries, memory, mask, HEADS, scale), expected)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("masked", [0, 1])
def test_the_gradient_of_attention_is_right(own, masked):
    queries, memory, s = inputs(own)
    mask = masks(own, s, 4, 2, torch.float64)[masked]
    assert torch.autograd.gradcheck(lambda q, m: reference.attend(q, m, mask, HEADS, 0.7), (queries, memory))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_gradient_of_a_linear_map_is_right(relu, bias):
    torch.manual_seed(0)
    x, w = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 2, 5), (4, 5)))
    b = torch.randn(4, dtype=torch.float64, requires_grad=True) if bias else None
    assert torch.autograd.gradcheck(lambda *a: reference.linear(*a, relu=relu), (x, w, b))


@pytest.mark.parametrize("relu", [False, True])
def test_in_float32_a_linear_map_and_its_gradient_equal_torchs_to_rounding(relu):
    torch.manual_seed(0)
    results = []
    for call in (
        reference.linear,
        lambda x, w, b, relu: functional.linear(x, w, b).relu() if relu else functional.linear(x, w, b),
    ):
        torch.manual_seed(1)
        x, w, b = (torch.randn(*shape, requires_grad=True) for shape in ((17, 30, 64), (128, 64), (128,)))
        y = call(x, w, b, relu=relu)
        results.append((y.detach(), *torch.autograd.grad(y, (x, w, b), torch.randn_like(y))))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_product_and_its_gradient_are_those_of_float64():
    torch.manual_seed(0)
    x, w, b = (torch.randn(*shape, requires_grad=True) for shape in ((17, 30, 64), (128, 64), (128,)))
    dy = torch.randn(17, 30, 128)
    ours = torch.autograd.grad(reference.linear(x, w, b, relu=True), (x, w, b), dy)
    x64, w64, b64 = (t.detach().double().requires_grad_() for t in (x, w, b))
    theirs = torch.autograd.grad(functional.linear(x64, w64, b64).relu(), (x64, w64, b64), dy.double())
    for a, c in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, c.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("mkl", "wanted"), [(True, "MKL"), (False, "torch")])
def test_the_library_that_a_run_records_is_torchs_own(monkeypatch, mkl, wanted):
    monkeypatch.setattr(torch._C, "has_mkl", mkl)
    assert products.library.__wrapped__() == wanted
