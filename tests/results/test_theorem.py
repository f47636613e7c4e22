"""Theorems 2, 3 and 4 against the sums written out, and how well a sum explains what was measured."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from stabkit import methods
from stabkit.methods.base import Method, sites
from stabkit.methods.blocks import BLOCKS
from stabkit.methods.groups import group_of
from stabkit.results import theorem
from stabkit.results.run import Run
from tests.figures.fake_runs import run, spec, table

D = 64


def moved(method: str, n: int, m: int, delta: float, omega: float) -> Run:
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
    assert theorem.predicted(moved("post-ln", n, m, delta, 1.0), 16) == pytest.approx(expected)


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
    assert theorem.predicted(made, 16) == pytest.approx(10 * math.sqrt(2) * 0.1)
    assert theorem.number_of(spec("post-ln", 0, 5)) == 2 and theorem.number_of(spec("post-ln", 5, 5)) == 3


def test_what_the_records_lack_has_no_prediction() -> None:
    assert math.isnan(theorem.predicted(run(spec("post-ln", 2), {}), 16))
    assert math.isnan(theorem.predicted(moved("post-ln", 2, 2, 0.1, 1.0), 15))


def sgd(method: str, n: int, m: int = 0, steps: int = 1, **changes: object) -> Run:
    rate = {"optimizer": "sgd", "warmup": 0, "lr": 1e-3, **changes}
    return run(spec(method, n, m, steps=steps, **rate), {})


def equation_10(v: list[float], w: list[float], eta: float) -> float:
    """DeepNet (10): η·(Σ_l (1 + v_l²/w_l²)/S_L + Σ_l Σ_{k=2}^L (1 + v_l²/w_l²)/(S_L·S_{k−1})), S_k = Σ_{n≤k} v_n²."""
    last = len(v)
    whole = sum(v[n - 1] ** 2 for n in range(1, last + 1))
    first = sum(1 + v[i - 1] ** 2 / w[i - 1] ** 2 for i in range(1, last + 1)) / whole
    second = 0.0
    for i in range(1, last + 1):
        for k in range(2, last + 1):
            below = sum(v[n - 1] ** 2 for n in range(1, k))
            second += (1 + v[i - 1] ** 2 / w[i - 1] ** 2) / (whole * below)
    return eta * (first + second)


@pytest.mark.parametrize("layers", [1, 2, 6, 18])
def test_sub_ln_at_xavier_grows_as_twice_one_plus_a_harmonic_number(layers: int) -> None:
    sublayers = 2 * layers
    harmonic = sum(1 / k for k in range(1, sublayers))
    found = theorem.predicted(sgd("sub-ln", layers, options={"gain": "one"}), 1)
    assert found == pytest.approx(1e-3 * 2 * (1 + harmonic))
    assert found == pytest.approx(equation_10([1.0] * sublayers, [1.0] * sublayers, 1e-3))


@pytest.mark.parametrize("layers", [2, 6, 18])
def test_theorem_4_has_sub_lns_own_gains(layers: int) -> None:
    gamma = math.sqrt(math.log(2 * layers))
    gains = [gamma] * 2 * layers
    assert theorem.predicted(sgd("sub-ln", 0, layers), 1) == pytest.approx(equation_10(gains, gains, 1e-3))
    at_one = theorem.predicted(sgd("sub-ln", layers, options={"gain": "one"}), 1)
    assert theorem.predicted(sgd("sub-ln", layers), 1) < at_one


def test_theorem_4_speaks_neither_of_two_stacks_nor_of_pre_ln() -> None:
    assert theorem.number_of(spec("sub-ln", 5, 3)) == theorem.number_of(spec("pre-ln", 0, 3)) == 0
    assert math.isnan(theorem.predicted(sgd("sub-ln", 5, 3), 1)) and math.isnan(theorem.predicted(sgd("pre-ln", 5), 1))


def test_v_is_the_last_map_of_a_branch_and_w_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up method of gains 2 (W_V), 3 (W_O), 5 (W₁) and 7 (W₂)."""
    gains = {"value": 2.0, "out": 3.0, "up": 5.0, "down": 7.0}
    made = replace(methods.build("sub-ln", {}), gain=lambda site, role: gains.get(role, 1.0))
    monkeypatch.setattr(theorem.methods, "build", lambda *args: made)
    assert theorem.predicted(sgd("sub-ln", 2), 1) == pytest.approx(equation_10([3.0, 7.0] * 2, [2.0, 5.0] * 2, 1e-3))


def test_after_several_updates_eta_is_the_sum_of_the_rates() -> None:
    one = theorem.predicted(sgd("sub-ln", 6), 1)
    assert theorem.predicted(sgd("sub-ln", 6, steps=9), 9) == pytest.approx(9 * one)
    assert theorem.predicted(sgd("sub-ln", 6, steps=9, warmup=4), 3) == pytest.approx((1 + 2 + 3) / 4 * one)


@pytest.mark.parametrize("optimizer", ["adam", "radam", "radam-torch"])
def test_theorem_4_speaks_of_sgd_alone(optimizer: str) -> None:
    assert math.isnan(theorem.predicted(sgd("sub-ln", 6, optimizer=optimizer), 1))


@pytest.mark.parametrize("method", ["rezero", "r-fixup", "t-fixup"])
def test_methods_without_norms_have_no_prediction(method: str) -> None:
    made = moved(method, 2, 2, 0.1, 1.0)
    sgd_ = run(spec(method, 2, optimizer="sgd", warmup=0, steps=16), made.records)
    assert theorem.number_of(spec(method, 2)) == 0
    assert math.isnan(theorem.predicted(sgd_, 16)) and math.isnan(theorem.predicted(made, 16))


NUMBERS = {
    "Post-LN": (3, 2),
    "DeepNorm": (3, 2),
    "Pre-LN": (0, 0),
    "No-LN": (0, 0),
    "Dual": (0, 0),
}
"""{group of DeepNet Table 1: (the theorem of an encoder-decoder, of one stack)}."""
APART = {"sub-ln": (0, 4), "keel": (0, 0)}
"""Sub-LN has a theorem of its own; Keel norms before the branch too."""


@pytest.mark.parametrize("method", methods.DEFAULTS, ids=methods.KEYS)
def test_the_theorem_that_speaks_of_a_method_is_its_groups(method: Method) -> None:
    both, one = APART.get(method.key) or NUMBERS[group_of(method)]
    assert theorem.number_of(spec(method.key, 3, 3)) == both
    if not method.undefined(3, 0):
        assert theorem.number_of(spec(method.key, 3, 0)) == theorem.number_of(spec(method.key, 0, 3)) == one


def test_a_history_has_no_theorem_nor_has_an_unknown_method() -> None:
    assert theorem.number_of(spec("dlcl", 3, options={"norm": "post"})) == 0  # each layer reads all before it
    assert theorem.number_of(spec("admin", 3, options={"omega": "closed"})) == 3
    assert theorem.number_of(spec("a-method-of-tomorrow", 3)) == 0
    assert math.isnan(theorem.predicted(moved("a-method-of-tomorrow", 2, 2, 0.1, 1.0), 16))


@pytest.mark.parametrize("first", ["classic", "llama"])
def test_no_theorem_speaks_of_another_block_whichever_is_asked_first(first: str) -> None:
    found = {}
    for block in sorted(("classic", "llama"), key=lambda name: name != first):
        made = spec("deepnorm", 7 if first == "classic" else 9)
        found[block] = theorem.number_of(replace(made, model=replace(made.model, **BLOCKS[block])))  # type: ignore[index]
    assert found == {"classic": 3, "llama": 0}
