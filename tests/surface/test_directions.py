"""Planes in weight space against their definitions, written out again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.surface import directions, roughness
from stabkit.surface.directions import layout

TENSORS = layout([("embedding", (7, 4)), ("norm", (4,)), ("weight", (3, 4)), ("conv", (2, 3, 2)), ("scale", ())])
SIZE = sum(tensor.size for tensor in TENSORS)


def weights(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(SIZE)


def test_filter_normalisation_gives_every_row_the_length_of_its_weights_and_leaves_vectors_at_rest() -> None:
    theta = weights()
    theta[TENSORS[0].part].reshape(7, 4)[0] = 0  # a padding row
    first, _ = directions.random_plane(theta, TENSORS, 3)
    for tensor in TENSORS:
        d, w = first[tensor.part].reshape(tensor.shape), theta[tensor.part].reshape(tensor.shape)
        if len(tensor.shape) < 2:
            assert not d.any()
        else:
            for row_d, row_w in zip(d, w, strict=True):
                assert np.linalg.norm(row_d) == pytest.approx(np.linalg.norm(row_w), rel=1e-12)


def test_the_other_rulers() -> None:
    theta, drawn = weights(), directions.gaussian(TENSORS, 0, 0)
    layer = directions.normalised(drawn, theta, TENSORS, "layer", one_dimensional=True)
    for tensor in TENSORS:
        assert np.linalg.norm(layer[tensor.part]) == pytest.approx(np.linalg.norm(theta[tensor.part]))
    model = directions.normalised(drawn, theta, TENSORS, "model", one_dimensional=True)
    assert np.linalg.norm(model) == pytest.approx(np.linalg.norm(theta))
    raw = directions.normalised(drawn, theta, TENSORS, "none", one_dimensional=True)
    np.testing.assert_array_equal(raw, drawn)


def test_the_same_seed_gives_the_same_plane_and_others_are_nearly_orthogonal() -> None:
    tensors = layout([("w", (400, 64))])
    theta = np.random.default_rng(0).standard_normal(400 * 64)
    one, two = (directions.random_plane(theta, tensors, 0) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other, _ = directions.random_plane(theta, tensors, 1)
    for a, b in ((one[0], other), (one[0], one[1])):
        assert abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b)) < 0.05
    turned = directions.random_plane(theta, tensors, 0, orthogonalise=True)
    assert abs(turned[0] @ turned[1]) < 1e-9 * (turned[0] @ turned[0])


def test_a_tensor_more_changes_no_other_draw() -> None:
    more = layout([*((t.name, t.shape) for t in TENSORS), ("omega", (9,))])
    np.testing.assert_array_equal(directions.gaussian(more, 5, 1)[:SIZE], directions.gaussian(TENSORS, 5, 1))


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0, 1))
def test_projection_finds_the_coordinates_whatever_lies_outside(a: float, b: float, outside: float) -> None:
    theta = weights()
    first, second = directions.random_plane(theta, TENSORS, 0, orthogonalise=False)
    third = directions.orthogonal(directions.orthogonal(weights(9), first), second)
    third = directions.orthogonal(third, first - (first @ second) / (second @ second) * second)
    found = directions.project(theta + a * first + b * second + outside * third, theta, first, second)
    assert found[:2] == (pytest.approx(a, abs=1e-9), pytest.approx(b, abs=1e-9))
    length = np.linalg.norm(a * first + b * second + outside * third)
    if length > 1e-6:  # a point at the origin has no direction
        assert found[2] == pytest.approx(outside * np.linalg.norm(third) / length, abs=1e-6)


def test_the_path_plane_is_that_of_the_singular_vectors() -> None:
    random = np.random.default_rng(0)
    path = list(np.cumsum(random.standard_normal((9, SIZE)), axis=0))
    axes = directions.pca(path)
    moves = np.stack([point - path[-1] for point in path[:-1]])
    _, values, vectors = np.linalg.svd(moves, full_matrices=False)
    assert abs(axes.first @ vectors[0]) == pytest.approx(1) and abs(axes.second @ vectors[1]) == pytest.approx(1)
    assert axes.explained == pytest.approx(tuple((values[:2] ** 2 / (values**2).sum()).tolist()))
    assert np.linalg.norm(axes.first) == pytest.approx(1) and abs(axes.first @ axes.second) < 1e-9


def test_haos_first_axis_joins_the_ends() -> None:
    path = list(np.cumsum(np.random.default_rng(1).standard_normal((6, SIZE)), axis=0))
    axes = directions.hao(path)
    line = path[-1] - path[0]
    assert axes.first @ line == pytest.approx(np.linalg.norm(line)) and abs(axes.first @ axes.second) < 1e-9


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ([np.zeros(3), np.ones(3)], "three sets"),
        ([np.zeros(3), np.ones(3), 2 * np.ones(3)], "on a line"),
        ([np.zeros(3), np.full(3, np.nan), np.ones(3)], "not finite"),
    ],
)
def test_a_path_without_a_plane_is_refused(path: list[np.ndarray], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        directions.pca(path)


@pytest.mark.parametrize("points", [3, 25, 51, 101])
def test_an_axis_has_an_exact_zero_in_its_middle_and_is_symmetric(points: int) -> None:
    values = directions.axis(points, 0.7)
    assert values[points // 2] == 0.0 and values == tuple(-value for value in reversed(values)) and values[-1] == 0.7
    for bad in (points - 1, 1, 0):
        with pytest.raises(ValueError, match="odd"):
            directions.axis(bad, 1.0)


def test_layouts_that_differ_name_the_first_tensor() -> None:
    other = layout([("embedding", (7, 4)), ("norm", (5,))])
    assert directions.difference(TENSORS, other) == "norm [4] against norm [5]"
    assert directions.difference(TENSORS, TENSORS[:2]) == "weight [3, 4] against nothing"
    assert directions.difference(TENSORS, TENSORS) == ""


def test_roughness_of_a_parabola_of_a_wave_and_of_a_hole() -> None:
    x = np.linspace(-1, 1, 21)
    assert roughness.curvature(x**2) == pytest.approx(2 * 0.1**2)
    assert roughness.roughness(x**2) == pytest.approx(0.19) == roughness.roughness(99 * x**2)
    assert roughness.negative_curvature(x**2) == 0.0 and roughness.negative_curvature(-(x**2)) == 1.0
    wave = np.cos(np.pi * np.arange(21))
    assert roughness.curvature(wave) == pytest.approx(4.0)
    assert roughness.negative_curvature(wave) == pytest.approx(9 / 19)
    assert roughness.roughness(wave) == pytest.approx(2 * 19 / 20) and roughness.roughness(np.full(9, 5.0)) == 0.0
    for many in (15, 51):  # the floor falls with the points; the share of negative curvature has none
        bowl = np.linspace(-1, 1, many) ** 2
        assert roughness.roughness(bowl) == pytest.approx({15: 0.265, 51: 0.078}[many], abs=1e-3)
        assert roughness.negative_curvature(bowl) == roughness.negative_curvature(bowl**2) == 0.0
    ripples = 0.1 * x**2 + 0.01 * wave
    assert roughness.roughness(ripples) > 5 * roughness.roughness(4 * x**2) > roughness.curvature(ripples)
    surface = x[:, None] ** 2 + 3 * x[None, :] ** 2
    assert roughness.curvature(surface) == pytest.approx((2 + 6) / 2 * 0.1**2)
    surface[3, 4] = np.nan
    assert np.isnan(roughness.curvature(surface)) and np.isnan(roughness.negative_curvature(surface))
    assert np.isnan(roughness.curvature(np.array([1.0, 2.0])))
