"""Theorem 3 and Theorem 2 from records, against the sums written out."""

from __future__ import annotations

import math

import pytest

from stabkit.figures import share, theorem
from stabkit.methods.base import sites
from tests.figures.fake_runs import run, spec, table

D = 64


def moved(method: str, n: int, m: int, delta: float, omega: float) -> object:
    names = [site.name for site in sites(n, m, D)]
    raw = {name: [3.0 * omega * math.sqrt(D)] for name in names} | {f"{name}@omega": [3.0] for name in names}
    return run(
        spec(method, n, m),
        {
            "parameter_update": table([16], {"embedding": [1e9]} | {name: [delta] for name in names}),
            "ln_input": table([0], raw),
        },
    )


def test_post_ln_sums_every_cross_attention_times_every_encoder_sub_layer() -> None:
    """All of α, v, w equal 1: M·Σ_encoder √2·‖Δθ‖ + Σ_decoder √2·‖Δθ‖ (DeepNet §3.2, after Theorem 3)."""
    n, m, delta = 4, 3, 0.01
    expected = math.sqrt(2) * delta * (m * 2 * n + 3 * m)
    assert theorem.predicted(moved("post-ln", n, m, delta, 1.0), 16) == pytest.approx(expected)  # type: ignore[arg-type]


def test_deepnorm_divides_by_alpha_and_multiplies_by_beta() -> None:
    n, m, delta = 6, 6, 0.01
    alpha_d, beta_d = (3 * m) ** 0.25, (12 * m) ** -0.25
    alpha_e, beta_e = 0.81 * (n**4 * m) ** (1 / 16), 0.87 * (n**4 * m) ** (-1 / 16)
    names = [site.name for site in sites(n, m, D)]
    of = {name: alpha_e if name.startswith("encoder") else alpha_d for name in names}
    made = run(
        spec("deepnorm", n, m),
        {
            "parameter_update": table([16], {name: [delta] for name in names}),
            "ln_input": table(
                [0], {k: [2 * of[k] * math.sqrt(D)] for k in names} | {f"{k}@omega": [2.0] for k in names}
            ),
        },
    )
    encoder = 2 * n * math.sqrt(2) * beta_e / alpha_e * delta
    expected = m * beta_d**2 / alpha_d * encoder + 3 * m * math.sqrt(2) * beta_d / alpha_d * delta
    assert theorem.predicted(made, 16) == pytest.approx(expected)


def test_one_stack_follows_theorem_2() -> None:
    made = moved("post-ln", 0, 5, 0.1, 1.0)
    assert theorem.predicted(made, 16) == pytest.approx(10 * math.sqrt(2) * 0.1)  # type: ignore[arg-type]
    assert theorem.number_of(spec("post-ln", 0, 5)) == 2 and theorem.number_of(spec("post-ln", 5, 5)) == 3


def test_what_the_records_lack_has_no_prediction() -> None:
    assert math.isnan(theorem.predicted(run(spec("post-ln", 2), {}), 16))
    assert math.isnan(theorem.predicted(moved("post-ln", 2, 2, 0.1, 1.0), 15))  # type: ignore[arg-type]


def test_equal_shares_count_every_sub_layer_and_one_that_outweighs_all_counts_as_one() -> None:
    """After j equal shares the next branch must have 1/(j + 1) of the sum: r_j² = 1/j with the input's share equal."""
    balanced = run(
        spec("admin", 0, 4),
        {"branch_ratio": table([0], {f"decoder.{i + 1}.self": [(i + 1) ** -0.5] for i in range(8)})},
    )
    assert share.effective(balanced) == pytest.approx(8.0)
    top = run(spec("post-ln", 0, 2), {"branch_ratio": table([0], {f"decoder.{i}.self": [1e6] for i in (1, 2)})})
    assert share.effective(top) == pytest.approx(1.0)
    assert math.isnan(share.effective(run(spec("post-ln", 2), {})))


def test_shares_and_what_is_left_of_the_input_are_the_whole() -> None:
    import numpy as np

    ratios = np.array([0.3, 1.0, 2.0, 0.01])
    left = np.prod(1 / (1 + ratios**2))
    assert share.shares(ratios).sum() + left == pytest.approx(1.0)
