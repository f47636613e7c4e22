"""`stabkit methods`: the list, one method's constants, JSON, and what is answered to a wrong name."""

import json
import math

import pytest
import torch
from typer.testing import CliRunner

from stabkit import methods
from stabkit.claims import EVERY
from stabkit.cli.app import app
from stabkit.errors import UsageError
from stabkit.methods import formula
from stabkit.methods.groups import group_of
from stabkit.model.transformer import Transformer
from stabkit.spec import ModelConfig, RunSpec
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.commands import stabkit

WIDE = {"COLUMNS": "400"}
DEPTHS = ((3, 2), (3, 0), (0, 3))


def listed(*args):
    done = CliRunner(env=WIDE).invoke(app, ["methods", *args])
    if done.exception:
        raise done.exception
    return done.stdout


def document(*args):
    found = json.loads(listed(*args, "--json"))
    assert found["schema"] == "stabkit/2"
    return found["methods"]


def real(key, n, m):
    """How many numbers a model of width 64, 128, 2 heads really holds, embedding included."""
    config = ModelConfig(encoder_layers=n, decoder_layers=m)
    return sum(p.numel() for p in Transformer(config, methods.build(key, {}), 20, seed=0).parameters())


@pytest.mark.slow
def test_every_method_stands_under_its_group_with_formula_source_options_and_claims():
    lines = listed().splitlines()
    groups = [line for line in lines if line in ("Post-LN", "No-LN", "Pre-LN", "DeepNorm", "Dual")]
    assert groups == ["Post-LN", "No-LN", "Pre-LN", "DeepNorm", "Dual"]
    for method in methods.DEFAULTS:
        head = lines.index(f"  {method.key}  ({method.label})")
        assert (
            lines[head + 1] == f"    {formula.text(method)}"
            and f"    source: {method.source}" in lines[head : head + 9]
        )
        assert lines.index(group_of(method)) < head
        for name, values in methods.options(method.key).items():
            assert f"    option {name}: {', '.join(values)} (default {values[0]})" in lines[head:]


@pytest.mark.slow
@pytest.mark.parametrize("args", [[], ["deepnorm"]])
def test_deepnorm_at_100_layers_has_the_papers_constants(args):
    (found,) = [method for method in document(*args, "--depths", "100x100") if method["key"] == "deepnorm"]
    (at,) = found["depths"]
    assert at["depth"] == "100L-100L" and at["parameters_added"] == 0 and at["embedding"] == 1.0
    places = [(row["stack"], row["kind"]) for row in at["constants"]]
    assert places == [(s, k) for s, kinds in KINDS.items() for k in kinds]
    for row in at["constants"]:
        omega, beta = {"encoder": (3.4157, 0.2063), "decoder": (4.1618, 0.1699)}[row["stack"]]
        assert row["omega"]["init"] == pytest.approx([omega] * 100, abs=5e-5) and row["gamma"]["init"] == [1.0] * 100
        scaled = ("up", "down") if row["kind"] == "ffn" else ("value", "out")
        for role, span in row["gains"].items():
            assert span == pytest.approx([beta if role in scaled else 1.0] * 100, abs=5e-5)
        assert row["norms"] == "norm after the sum"


KINDS = {"encoder": ("self", "ffn"), "decoder": ("self", "cross", "ffn")}


def test_one_method_says_everything_at_every_depth_asked_for():
    text = listed("DeepNorm", "--depths", "100x100,60x12")
    assert text.startswith("deepnorm  (DeepNorm)\n  x ← LN(ω·x + f(x))\n  constants: ω = α = 0.81 (N⁴M)^(1/16)")
    assert "100L-100L, first … last layer; +0 parameters" in text and "60L-12L, first" in text
    for number in ("3.4157", "0.2063", "4.1618", "0.1699", "2.6331", "0.2676", "2.4495", "0.2887"):
        assert number in text
    assert "its own recipe: xavier_normal, adam, lr 0.0015, warm-up 4000 (DeepNet" in text
    assert "claim table1-deepnorm: DeepNorm trains at 6L, 18L, 50L and 100L. (DeepNet §5, Table 1)" in text
    assert "no warm-up, decay after 4000 updates (Huang" in listed("t-fixup")


def test_layers_that_differ_are_shown_from_the_first_to_the_last():
    text = listed("post-ln-init", "--depths", "4")
    assert "W₁ 0.2500 … 1.0000" in text
    (found,) = document("post-ln-init", "--depths", "4")
    assert found["depths"][0]["constants"][0]["gains"]["query"] == pytest.approx([1 / 4, 1 / 3, 1 / 2, 1])


def test_what_stands_where_is_told_of_norms_shifts_heads_wiring_and_ends():
    dlcl, r_fixup = listed("dlcl", "--depths", "2"), listed("r-fixup", "--depths", "2")
    assert "wiring: history, normed" in dlcl and "after the encoder: norm, after the decoder: norm" in dlcl
    assert "no biases" in r_fixup and "shift before φ" in r_fixup
    assert "after the encoder: scale shift, after the decoder: shift" in r_fixup
    assert "one factor per head before the last map" in listed("normformer", "--depths", "2")
    assert "trained one per layer" in listed("rezero") and "after the encoder: nothing" in listed("post-ln")


def test_options_of_a_method_change_its_constants():
    text = listed("admin:omega=closed", "--depths", "18")
    encoder, decoder = (math.sqrt((n + 1) / math.log(n + 1) - 1) for n in (36, 54))
    assert f"{encoder:.4f}" in text and f"{decoder:.4f}" in text and "profiled" not in text
    (plain,), (closed,) = document("admin", "--depths", "18"), document("admin:omega=closed", "--depths", "18")
    assert plain["depths"][0]["constants"][0]["omega"]["init"][0] == 1.0
    assert closed["depths"][0]["constants"][0]["omega"]["init"] == pytest.approx([3.041] * 18, abs=5e-4)


def test_the_omega_that_admin_profiles_is_that_of_the_first_model_of_a_sweep():
    (found,) = document("admin", "--depths", "3x2")
    (at,) = found["depths"]
    spec = RunSpec(method="admin", model=ModelConfig(encoder_layers=3, decoder_layers=2))
    model = train.build(spec, Synthetic(vocab=2000, max_tokens=512), torch.device("cpu"))
    shown = {(row["stack"], row["kind"]): row["omega"]["init"] for row in at["constants"]}
    for site, residual in model.residuals.items():
        assert shown[site.stack, site.kind][site.layer - 1] == residual.mean_omega()
    assert shown["encoder", "self"][0] == 1.0 and shown["decoder", "ffn"][1] > 1.5
    assert "synthetic task" in at["profiled"]
    text = listed("admin", "--depths", "3x2")
    assert "ω profiled on" in text and f"1.0000 … {shown['encoder', 'self'][2]:.4f}" in text
    (of_all,) = [one for one in document("--depths", "2") if one["key"] == "admin"]
    assert of_all["depths"][0]["constants"][0]["omega"] == "profiled"


def test_json_holds_every_method_with_all_that_its_slots_say():
    found = document("--depths", "2,3")
    assert [method["key"] for method in found] == list(methods.KEYS)
    for method, own in zip(found, methods.DEFAULTS, strict=True):
        assert (method["label"], method["group"], method["source"]) == (own.label, group_of(own), own.source)
        assert (method["recipe"] or {}).get("lr") == (own.recipe.lr if own.recipe else None) and method[
            "wiring"
        ] == own.wiring
        assert method["options"] == {name: list(values) for name, values in methods.options(own.key).items()}
        assert [at["depth"] for at in method["depths"]] == ["2L-2L", "3L-3L"]


def test_every_claim_is_carried_by_the_methods_that_it_names():
    carried = {method["key"]: {claim["id"] for claim in method["claims"]} for method in document("--depths", "2")}
    for claim in EVERY:
        assert {key for key, keys in carried.items() if claim.key in keys} == set(claim.methods)


PLACES = [(one.key, *depth) for one in methods.DEFAULTS for depth in DEPTHS if not one.undefined(*depth)]


@pytest.mark.parametrize(("key", "n", "m"), PLACES)
def test_the_parameters_added_are_the_difference_of_real_models(key, n, m):
    arch = "encoder-decoder" if n and m else "encoder-only" if n else "decoder-only"
    (found,) = document(key, "--depths", f"{n}x{m}" if n and m else str(n or m), "--arch", arch)
    assert found["depths"][0]["parameters_added"] == real(key, n, m) - real("post-ln", n, m)


def test_one_stack_has_constants_of_its_own():
    for arch, stack in (("encoder-only", "encoder"), ("decoder-only", "decoder")):
        (found,) = document("deepnorm", "--depths", "18", "--arch", arch)
        constants = found["depths"][0]["constants"]
        assert [(row["stack"], row["kind"]) for row in constants] == [(stack, "self"), (stack, "ffn")]
        assert constants[0]["omega"]["init"] == pytest.approx([2.4495] * 18, abs=5e-5)
        assert constants[1]["gains"]["up"] == pytest.approx([0.2887] * 18, abs=5e-5)


@pytest.mark.slow
def test_what_is_not_defined_for_one_stack_is_said_in_json_and_refused_by_name():
    (entry,) = [one for one in document("--arch", "decoder-only") if one["key"] == "t-fixup"]
    assert "Huang et al. 2020" in entry["depths"][0]["undefined"] and "constants" not in entry["depths"][0]
    with pytest.raises(UsageError, match=r"T-Fixup is not defined for these --depths: .*one stack.*Huang"):
        listed("t-fixup", "--arch", "encoder-only")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["deepnrom"], "did you mean 'deepnorm'"),
        (["deepnorm:alpha=two"], "paper, one"),
        (["deepnorm", "--depths", "0"], "--depths"),
        (["deepnorm", "--depths", "60x12", "--arch", "encoder-only"], "--depths"),
        (["--arch", "encoder"], "did you mean 'encoder-only'"),
    ],
)
def test_a_wrong_name_depth_or_architecture_is_refused(args, said):
    with pytest.raises(UsageError, match=said):
        listed(*args)


def test_from_outside_a_refusal_is_one_line_and_code_2_and_the_list_goes_to_standard_output():
    refused = stabkit("methods", "t-fixup", "--arch", "encoder-only")
    shown = stabkit("methods", "deepnorm", "--depths", "100x100")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "not defined" in refused.stderr and "Traceback" not in refused.stderr
    assert shown.returncode == 0 and shown.stderr == "" and "4.1618" in shown.stdout
    assert max(map(len, shown.stdout.partition("\n\n")[2].splitlines())) <= 80
