"""`stabkit.loss_surface` on models of all kinds: right, and nothing of the user's is moved. The seven regressions."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import stabkit
from stabkit.errors import UsageError
from stabkit.surface.evaluate import Evaluator
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import tiny
from tests.surface import library

X = torch.randn(32, 5, generator=torch.Generator().manual_seed(0))
Y = torch.randn(32, 3, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    """Everything that trips libraries: a fresh norm with zero biases, dropout, a scalar, tied weights, a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(5, 8), nn.LayerNorm(8), nn.Linear(8, 3)
        self.again = self.down
        self.scale = nn.Parameter(torch.tensor(0.0))
        self.up.weight.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = functional.dropout(torch.relu(self.norm(self.up(x))), 0.5, self.training)
        return self.down(h) + self.scale * self.again(h)


def loss(model: nn.Module) -> torch.Tensor:
    return functional.mse_loss(model(X), Y)


class Bowl(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2)))
        self.start = self.w.detach().clone()


def fingerprint(model: nn.Module) -> tuple[Any, ...]:
    state = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    grads = tuple(p.requires_grad for p in model.parameters())
    return state, grads, model.training, torch.get_rng_state().numpy().tobytes()


def test_a_quadratic_bowl_is_one_and_symmetric() -> None:
    bowl = Bowl()
    found = stabkit.loss_surface(bowl, lambda m: ((m.w - m.start) ** 2).sum(), points=11, orthogonalise=True)
    one, two = (float(direction @ direction) for direction in found.directions)
    expected = found.a[None, :] ** 2 * one + found.b[:, None] ** 2 * two
    np.testing.assert_allclose(found.loss, expected, atol=1e-6)
    np.testing.assert_allclose(found.loss, found.loss[::-1, ::-1], atol=1e-9)
    assert found.negative_curvature == 0.0


@pytest.mark.parametrize("mode", [True, False])
def test_nothing_of_the_users_model_changes(mode: bool) -> None:
    model = Net().train(mode)
    before = fingerprint(model)
    stabkit.loss_surface(model, lambda m: loss(m) + torch.rand(()), points=3)
    assert fingerprint(model) == before


def test_a_loss_that_raises_passes_through_and_leaves_the_model_as_it_was() -> None:
    model = Net()
    before = fingerprint(model)

    def broken(moved: nn.Module) -> torch.Tensor:
        torch.rand(3)
        raise KeyError("label")

    with pytest.raises(KeyError, match="label"):
        stabkit.loss_surface(model, broken, points=3)
    assert fingerprint(model) == before


def test_the_middle_is_the_loss_of_the_model_itself_and_a_fresh_norm_does_not_crash() -> None:
    model = Net().eval()
    found = stabkit.loss_surface(model, loss, points=5)
    assert found.loss[2, 2] == float(loss(model).detach()) and found.a[2] == found.b[2] == 0.0
    assert np.isfinite(found.loss).all() and found.loss.shape == (5, 5)


def test_a_projection_returns_the_coordinates() -> None:
    model = Net()
    found = stabkit.loss_surface(model, loss, points=3, orthogonalise=False)
    moved = Net()
    moved.load_state_dict(model.state_dict())
    theta = torch.from_numpy(found.origin + 0.3 * found.directions[0] - 0.2 * found.directions[1])
    torch.nn.utils.vector_to_parameters(theta.float(), moved.parameters())
    a, b, outside = found.project(moved)
    assert (a, b) == (pytest.approx(0.3, abs=1e-6), pytest.approx(-0.2, abs=1e-6)) and outside < 1e-5


def test_the_library_agrees_where_it_is_right() -> None:
    spec = tiny("post-ln")
    task = Synthetic(vocab=200, max_tokens=128)
    model, batch = train.build(spec, task, torch.device("cpu")).double(), task.probe()

    def transformer(moved: nn.Module) -> torch.Tensor:
        return train.forward(moved, batch, 0.1).loss  # type: ignore[arg-type]

    ours = stabkit.loss_surface(model, transformer, points=5)
    moved = Evaluator(model, transformer, 1)
    theirs = library.walk(moved, transformer, ours.origin, *ours.directions, ours.a, ours.b)
    np.testing.assert_allclose(ours.loss, theirs, rtol=1e-9)


def test_a_metric_of_the_library_runs_unchanged() -> None:
    from loss_landscapes.metrics import Loss

    model = Net()
    found = stabkit.loss_surface(model, Loss(functional.mse_loss, X, Y), points=3)
    np.testing.assert_array_equal(found.loss, stabkit.loss_surface(model, loss, points=3).loss)


def test_many_points_at_once_are_the_same_points() -> None:
    spec, task = tiny("deepnorm"), Synthetic(vocab=200, max_tokens=128)
    model, batch = train.build(spec, task, torch.device("cpu")).double(), task.probe()

    def transformer(moved: nn.Module) -> torch.Tensor:
        return train.forward(moved, batch, 0.1).loss  # type: ignore[arg-type]

    one, many = (stabkit.loss_surface(model, transformer, points=5, together=k).loss for k in (1, 4))
    np.testing.assert_allclose(one, many, rtol=1e-12)
    single, several = (stabkit.loss_surface(Net(), loss, points=3, together=k) for k in (1, 9))
    assert single.loss.shape == several.loss.shape


def test_a_surface_that_is_not_finite_stays_so() -> None:
    found = stabkit.loss_surface(Bowl(), lambda m: torch.log((m.w - m.start).sum()), points=5)
    assert np.isneginf(found.loss[2, 2]) and np.isnan(found.loss).any()


def test_a_cut_and_a_plane_of_ones_own() -> None:
    model = Net()
    cut = stabkit.loss_surface(model, loss, points=7, cut=True)
    assert cut.loss.shape == (1, 7) and cut.b.tolist() == [0.0]
    own = stabkit.loss_surface(model, loss, points=3, plane=cut.directions)
    np.testing.assert_array_equal(own.loss[1], cut.loss[0][[0, 3, 6]])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"points": 4}, "odd number"),
        ({"reach": float("nan")}, "positive number"),
        ({"normalise": "fitler"}, "must be one of"),
        ({"plane": ([1.0], [2.0])}, "numbers for this model"),
    ],
)
def test_bad_input_is_one_clear_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        stabkit.loss_surface(Net(), loss, **{"points": 3, **options})


def test_models_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(UsageError, match="one number"):
        stabkit.loss_surface(Net(), lambda m: m(X), points=3)
    mixed = Net()
    mixed.down.double()
    with pytest.raises(UsageError, match=r"float32 on cpu.*float64|float64.*float32"):
        Evaluator(mixed, loss)
    with pytest.raises(UsageError, match="none"):
        Evaluator(nn.ReLU(), loss)
