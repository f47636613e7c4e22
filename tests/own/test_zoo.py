"""Forty healthy models and more, of libraries and by hand: each builds and runs. `pytest -m 'libraries and slow'`."""

from __future__ import annotations

import warnings

import pytest
import torch

from benchmarks import zoo
from stabkit.options import audit
from stabkit.own.probe import built_model
from studies.markdown import csv_rows
from tests.conftest import need
from tests.own import zoo_models
from tests.own.zoo_facts import FACTS, count
from tests.own.zoo_reading import DEPTH, answers, right

pytestmark = [pytest.mark.libraries, pytest.mark.slow]


def run(built):
    """What a factory's result gives: with its loss, with its inputs, or on words or pictures."""
    if not isinstance(built, tuple):
        pictures = getattr(built, "main_input_name", "") == "pixel_values" or "timm" in type(built).__module__
        return built(zoo_models.noise(4, 3, 32, 32) if pictures else zoo_models.ids(4, 16))
    model, inputs = built[:2]
    if callable(inputs):
        return inputs(model)
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def test_the_table_has_forty_models_and_four_hundred_facts():
    assert [row["model"] for row in csv_rows(zoo.ROWS)] == list(FACTS) and len(FACTS) >= 40 and count(FACTS) >= 400


@pytest.mark.parametrize("name", FACTS)
def test_each_runs(name):
    lacking = zoo_models.missing(name)
    need("libraries", not lacking, f"{lacking} (python3 dev.py libraries)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        out = run(zoo_models.factory(name)(4))
    first = out if torch.is_tensor(out) else out[0]
    assert torch.isfinite(first).all()


@pytest.mark.parametrize("name", FACTS)
def test_nothing_is_read_wrongly(name):
    need("libraries", not (lacking := zoo_models.missing(name)), f"{lacking} (python3 dev.py libraries)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        built_model.seeded(0)
        found = answers(FACTS[name], *audit.of(zoo_models.factory(name)(DEPTH), name))
        assert [one for one in found if one[2] is not None and not right(*one[1:])] == []
