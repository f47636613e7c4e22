"""Learning rates."""

import pytest

from stabkit.optim import rate


def test_warm_up_is_linear_then_inverse_square_root():
    assert [rate(t, 5e-4, 4000) for t in (1, 2000, 4000, 16000)] == pytest.approx([1.25e-7, 2.5e-4, 5e-4, 2.5e-4])


def test_no_warm_up_is_a_constant_rate():
    assert {rate(t, 5e-4, 0) for t in (1, 100, 10_000)} == {5e-4}
