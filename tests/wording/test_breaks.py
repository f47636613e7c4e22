"""Which link went first, as a sentence."""

from __future__ import annotations

import pytest

from stabkit.results.breaks import NEVER
from stabkit.wording import breaks
from tests.figures.fake_runs import run, spec

HELD: dict[str, int] = {"gradient": NEVER, "ln_input": NEVER, "update": NEVER}


def test_the_link_that_goes_first_is_told_of_what_fails_with_its_depths(monkeypatch: pytest.MonkeyPatch) -> None:
    went = {
        ("post-ln", 6): HELD,
        ("post-ln", 18): {**HELD, "gradient": 0, "update": 1},
        ("post-ln", 50): {**HELD, "gradient": 0, "ln_input": 0},
        ("admin", 6): {**HELD, "update": 3, "gradient": 7},
        ("admin", 18): {**HELD, "gradient": 2},
        ("deepnorm", 6): HELD,
    }
    fails = {("post-ln", 18): "stuck", ("post-ln", 50): "diverged", ("admin", 6): "stuck"}
    made = [run(spec(method, depth), {}, fails.get((method, depth), "trains")) for method, depth in went]
    monkeypatch.setattr(breaks, "first", lambda of, link: went[of.spec.method, of.spec.model.encoder_layers][link])
    assert breaks.goes_first(made) == (
        "Post-LN's gradient had vanished before the first update from 18L-18L on; "
        "ADMIN's output has moved as far as it can first, by update 3 at 6L-6L (one seed)."
    )
    assert breaks.goes_first([one for one in made if one.outcome.word == "trains"]) == ""
