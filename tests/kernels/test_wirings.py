"""Sinkhorn's rounds and attention over depth in C++, against their torch code and against finite differences."""

import pytest
import torch

from stabkit.kernels import wirings
from stabkit.model.part import EPS
from stabkit.model.wirings import depth_attention, hyper


@pytest.mark.parametrize("count", [1, 5, 16, 33])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sinkhorn_is_the_torch_code_whatever_the_number_of_tokens(count, dtype, library):
    torch.manual_seed(count)
    logits = 3 * torch.randn(count, 4, 4, dtype=dtype)
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    gradient = torch.randn_like(logits)
    ours, expected = wirings.sinkhorn(mine, hyper.ROUNDS), hyper.sinkhorn(theirs)
    ours.backward(gradient)
    expected.backward(gradient)
    tolerance = 1e-12 if dtype == torch.float64 else 2e-6
    torch.testing.assert_close(ours, expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(mine.grad, theirs.grad, rtol=10 * tolerance, atol=tolerance)


def test_sinkhorns_gradient_is_that_of_finite_differences(library):
    logits = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: wirings.sinkhorn(x, 20), (logits,))


def test_of_large_logits_nothing_overflows(library):
    out = wirings.sinkhorn(100 * torch.eye(4)[None], 20)
    torch.testing.assert_close(out, torch.eye(4)[None])


def read_all(xs, queries, fused, within=()):
    """What every reader reads, x₀ and then an array each; those of `within` are added to the one before."""
    if fused:
        added, out = wirings.Added(EPS), []
        for i, (x, query) in enumerate(zip(xs, queries, strict=True)):
            (added.extend if i in within else added.append)(x)
            out.append(added.read(query))
        return out
    arrays, out = [], []
    for i, (x, query) in enumerate(zip(xs, queries, strict=True)):
        arrays = [*arrays[:-1], arrays[-1] + x] if i in within else [*arrays, x]
        out.append(depth_attention.attended(query, arrays))
    return out


@pytest.mark.parametrize("within", [(), (2, 4, 5)], ids=["each its own", "in runs"])
@pytest.mark.parametrize("width", [16, 21])
def test_attention_over_depth_is_the_torch_code(width, within, library):
    torch.manual_seed(0)
    xs = [torch.randn(5, 7, width, dtype=torch.float64) for _ in range(6)]
    queries = [torch.randn(width, dtype=torch.float64) for _ in range(6)]
    weights = [torch.randn(5, 7, width, dtype=torch.float64) for _ in range(6)]
    found = {}
    for fused in (True, False):
        leaves = [t.clone().requires_grad_() for t in (*xs, *queries)]
        out = read_all(leaves[:6], leaves[6:], fused, within)
        sum((w * y).sum() for w, y in zip(weights, out, strict=True)).backward()
        found[fused] = [*(y.detach() for y in out), *(leaf.grad for leaf in leaves)]
    for ours, expected in zip(found[True], found[False], strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-12)


def test_arrays_that_depend_on_what_was_read_before_have_their_whole_gradient(library):
    """As in a stack: what a sub-layer adds is made of what it read."""
    torch.manual_seed(0)
    start, weight = torch.randn(3, 2, 8, dtype=torch.float64), torch.randn(8, 8, dtype=torch.float64) / 3
    queries = [torch.randn(8, dtype=torch.float64) for _ in range(5)]
    found = {}
    for fused in (True, False):
        x, w = start.clone().requires_grad_(), weight.clone().requires_grad_()
        added, arrays, h = wirings.Added(EPS), [], x
        added.append(x)
        arrays.append(x)
        for query in queries:
            f = torch.tanh(h @ w)
            added.append(f)
            arrays.append(f)
            h = added.read(query) if fused else depth_attention.attended(query, arrays)
        h.square().sum().backward()
        found[fused] = [h.detach(), x.grad, w.grad]
    for ours, expected in zip(found[True], found[False], strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-12)


def test_what_a_backward_left_that_went_no_further_is_not_added_to_the_next(library):
    torch.manual_seed(0)
    x, query = torch.randn(2, 2, 8, requires_grad=True), torch.randn(8, requires_grad=True)
    added = wirings.Added(EPS)
    added.append(x)
    added.append(2 * x)
    out = added.read(query).sum()
    torch.autograd.grad(out, [query], retain_graph=True)
    (after,) = torch.autograd.grad(out, [x])
    theirs = depth_attention.attended(query, [x, 2 * x]).sum()
    torch.testing.assert_close(after, torch.autograd.grad(theirs, [x])[0])


def test_a_second_backward_begins_anew(library):
    torch.manual_seed(0)
    x, query = torch.randn(2, 2, 8, requires_grad=True), torch.randn(8)
    added = wirings.Added(EPS)
    added.append(x)
    added.append(2 * x)
    out = added.read(query).sum()
    (first,) = torch.autograd.grad(out, [x], retain_graph=True)
    (second,) = torch.autograd.grad(out, [x])
    torch.testing.assert_close(first, second)
