"""What a slot may say: each slip is one line that names the slot and the site."""

import pytest

from stabkit import methods
from stabkit.methods import validate
from stabkit.methods.base import Method, Scale
from stabkit.methods.groups import group_of


def faults(**slots):
    return list(validate.faults(Method(key="own", label="Own", source="here", **slots), 2, 2))


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        ({"gamma": 0.1}, "its gamma is 0.1, not a function of a site"),
        ({"gamma": lambda s: 0.1}, "gamma of encoder.1.self is 0.1, not a Scale of a finite number"),
        ({"gamma": lambda s: Scale(init="0.1")}, "not a Scale of a finite number"),
        ({"omega": lambda s: Scale(shared="stack")}, "shared is 'site' or 'layer'"),
        ({"omega": lambda s: Scale(vector="yes")}, "vector and trainable True or False"),
        (
            {"norm_in": lambda s: "layernorm"},
            "norm_in of encoder.1.self is 'layernorm', not one of '', 'norm', 'layer'",
        ),
        ({"inner": lambda s, p: "heads" if p == "query" else ""}, "of attention, at first, last or end"),
        (
            {"inner": lambda s, p: "heads" if s.kind == "ffn" and p == "mid" else ""},
            "of attention, at first, last or end",
        ),
        ({"gain": lambda s, r: None}, "gain of encoder.1.self for 'query' is None"),
        ({"gain": lambda s, r: True}, "is True, not a finite number"),
        ({"final": lambda stack: None}, "final('encoder') is None"),
        ({"wiring": "three streams"}, "its wiring is 'three streams'"),
        ({"bias": lambda s: 1}, "bias of encoder.1.self is 1, not True or False"),
        ({"assumes": ("GELU",)}, "what it assumes is 'GELU'"),
        ({"rate": lambda s, r: None}, "rate for 'query' of encoder.1.self is None"),
        ({"epsilon": lambda s, r: -1.0}, "epsilon for 'query' of encoder.1.self is -1.0, not a finite number of 0 or"),
        ({"kappa": lambda s: "1"}, "kappa of encoder.1.self is '1', not a finite number"),
        ({"inner": lambda s, p: "rms across heads" if p == "mid" else ""}, "at query, key or value"),
        ({"recipe": {"lr": 1}}, "not a Recipe"),
    ],
)
def test_each_slip_is_told_with_slot_and_site(slots, said):
    found = faults(**slots)
    assert found and said in found[0] and "\n" not in found[0]


def test_every_built_in_method_says_what_it_may():
    for method in methods.DEFAULTS:
        for n, m in ((6, 6), (6, 0), (0, 6), (100, 100)):
            assert list(validate.faults(method, n, m)) == []


@pytest.mark.parametrize(
    ("slots", "group"),
    [
        ({}, "Post-LN"),
        ({"norm_in": lambda s: "norm", "norm_out": lambda s: ""}, "Pre-LN"),
        ({"norm_branch": lambda s: "norm", "norm_out": lambda s: ""}, "Pre-LN"),
        ({"norm_out": lambda s: ""}, "No-LN"),
        ({"wiring": "two streams"}, "Dual"),
        ({"norm_in": lambda s: "norm", "norm_out": lambda s: "", "group": "DeepNorm"}, "DeepNorm"),
    ],
)
def test_the_group_is_where_the_norms_stand_unless_it_is_named(slots, group):
    assert group_of(Method(key="own", label="Own", source="here", **slots)) == group


def test_a_gate_keeps_its_draw_where_constants_are_of_w1_and_w2():
    from stabkit.methods.base import sites

    site = sites(6, 6, 64)[1]
    assert [methods.build(key, {}).gain(site, "gate") for key in ("deepnorm", "sub-ln", "t-fixup", "r-fixup")] == [
        1.0
    ] * 4
    assert methods.build("post-ln-init", {}).gain(site, "gate") == 1 / 6  # every matrix of the layer
