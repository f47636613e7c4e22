"""Specs and grids."""

import json
from dataclasses import replace

import pytest

from stabkit.running.grid import Grid
from stabkit.spec import (
    Chosen,
    ModelConfig,
    RunSpec,
    from_json,
    recorded_steps,
    snapshot_steps,
    validation_steps,
    within,
)
from tests.conftest import tiny


def test_a_spec_survives_json():
    spec = tiny("admin", options={"omega": "closed"})
    assert from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_the_run_id_does_not_depend_on_key_order_or_on_how_a_number_is_written():
    spec = tiny()
    shuffled = dict(reversed(spec.to_json().items()))
    shuffled["alpha_scale"] = 1
    assert from_json({**shuffled, "alpha_scale": 1.0}).run_id == spec.run_id


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"method": "admin"}, {"alpha_scale": 2.0}, {"record_every": 5}, {"dtype": "float64"}]
)
def test_whatever_changes_a_recorded_bit_changes_the_run_id(change):
    assert replace(tiny(), **change).run_id != tiny().run_id


DEFAULTS = {
    "options": {},
    "model": {"hidden": 64, "ffn": 128, "heads": 2, "base_init": "xavier_normal", "tied": True},
    "train": {
        **dict(steps=16, max_tokens=512, optimizer="adam", lr=5e-4, warmup=4000, hold=0, dropout=0.0, clip=0.0),
        **dict(label_smoothing=0.1, stop_when_decided=False, verdict_at=0),
        **dict(adam_beta1=0.9, adam_beta2=0.98, adam_eps=1e-8),
    },
    "task": {"name": "synthetic", "vocab": 2000, "source": "", "target": "", "digest": ""},
    "recipe": "shared",
    "alpha_scale": 1.0,
    "beta_scale": 1.0,
    "seed": 0,
    "record_every": 10,
    "snapshots": 0,
    "device": "cpu",
    "dtype": "float32",
}
"""A field may be added, with the default that older runs had without it; none of these may ever change."""


def test_a_default_once_published_never_changes():
    bare = RunSpec(method="deepnorm", model=ModelConfig(encoder_layers=6, decoder_layers=6))
    assert bare.stored() == {"method": "deepnorm", "model": {"encoder_layers": 6, "decoder_layers": 6}}
    assert within(DEFAULTS, bare.to_json())
    assert bare.run_id == "deepnorm-6L-6L-s0-c8cad9ea9e1b"


def test_only_what_is_away_from_its_default_is_stored_and_comes_back():
    spec = tiny("admin", options={"omega": "closed"}, lr=1e-3, alpha_scale=2.0)
    assert spec.stored()["train"] == {"steps": 3, "max_tokens": 128, "lr": 1e-3} and spec.stored()["alpha_scale"] == 2.0
    assert "warmup" not in json.dumps(spec.stored())
    assert from_json(json.loads(json.dumps(spec.stored()))) == spec
    assert replace(spec, alpha_scale=1).run_id == replace(spec, alpha_scale=1.0).run_id


@pytest.mark.parametrize("broken", [{}, {"seed": "x"}, {"extra": 1}, [], None, 3, {"train": None}])
def test_what_is_not_a_spec_is_refused(broken):
    value = {**tiny().to_json(), **broken} if isinstance(broken, dict) and broken else broken
    with pytest.raises(ValueError):
        from_json(value)


def test_a_grid_is_a_product_shallow_before_deep_and_counts_without_being_built():
    grid = Grid(
        base=tiny(),
        methods=(Chosen(key="post-ln"), Chosen(key="deepnorm")),
        depths=((2, 2), (6, 3)),
        seeds=(0, 1),
        warmups=(0, 4000),
    )
    specs = list(grid.specs())
    assert len(grid) == len(specs) == len({spec.run_id for spec in specs}) == 16
    assert [spec.depth for spec in specs[:8]] == ["2L-2L"] * 8
    assert [spec.method for spec in specs[:2]] == ["post-ln", "deepnorm"]


def test_every_step_to_100_is_recorded_then_every_tenth_and_the_last():
    steps = recorded_steps(tiny(steps=125))
    assert steps == [*range(101), 110, 120, 125]
    assert recorded_steps(tiny(steps=3)) == [0, 1, 2, 3]


def test_validation_is_read_where_the_last_quarter_begins():
    assert validation_steps(tiny(steps=16)) == [16]
    assert validation_steps(tiny(steps=90)) == [0, 25, 50, 68, 75, 90]


def test_snapshots_are_even_and_include_both_ends():
    assert snapshot_steps(tiny(steps=100, snapshots=5)) == [0, 25, 50, 75, 100]
    assert snapshot_steps(tiny()) == []


@pytest.mark.parametrize("name", ["encoder_layers", "hidden", "steps", "vocab"])
def test_a_spec_of_absurd_size_is_refused(name):
    value = tiny().to_json()
    part = next(part for part in ("model", "train", "task") if name in value[part])
    value[part][name] = 10**12
    with pytest.raises(ValueError, match=f"{name} is 1000000000000"):
        from_json(value)
