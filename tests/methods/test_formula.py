"""The formula of every method, made from its slots."""

import pytest

from stabkit import methods
from stabkit.methods import formula
from stabkit.methods.base import Method, Scale
from stabkit.methods.blocks import BLOCKS
from stabkit.spec import ModelConfig

AFTER = "after each stack LN(x)"
FORMULAS = {
    "post-ln": "x ← LN(x + f(x))",
    "post-ln-init": "x ← LN(x + f(x))",
    "ds-init": "x ← LN(x + f(x))",
    "admin": "x ← LN(ω·x + f(x))",
    "rezero": "x ← x + γ·f(x)",
    "r-fixup": "self-attention and cross-attention: x ← x + γ·f(x + b); "
    "feed-forward: x ← x + γ·W₂·(φ(W₁·(x + b) + b) + b); "
    "after the encoder s·(x + b); after the decoder x + b; no biases",
    "t-fixup": "x ← x + f(x)",
    "pre-ln": f"x ← x + f(LN(x)); {AFTER}",
    "dlcl": f"x ← x + f(LN(x)); x_{{l+1}} = Σ_{{k≤l}} W_k·LN(y_k), y₀ bare, W trained, 1/(l+1) at first; {AFTER}",
    "normformer": "self-attention: x ← x + LN(W_O·γ_h·heads(LN(x))); feed-forward: x ← x + W₂·LN(φ(W₁·LN(x))); "
    f"cross-attention: x ← x + f(LN(x)); {AFTER}",
    "sub-ln": "self-attention: x ← x + W_O·LN(heads(LN(x))); feed-forward: x ← x + W₂·LN(φ(W₁·LN(x))); "
    f"cross-attention: x ← x + f(LN(x)); {AFTER}",
    "deepnorm": "x ← LN(ω·x + f(x))",
    "residual": "x ← LN(x + f(x)); s ← s + γ·f, s₀ = x₀; output x + LN(s)",
    "peri-ln": f"x ← x + LN(f(LN(x))); before each stack LN(x); {AFTER}",
    "sandwich-ln": f"x ← x + LN(f(LN(x))); {AFTER}",
    "reordered-norm": "self-attention and cross-attention: x ← x + LN(W_O·heads(x, RMSNorm_H(q), RMSNorm_H(k))); "
    f"feed-forward: x ← x + LN(f(x)); {AFTER}",
    "mix-ln": f"layers 1–4: x ← LN(x + f(x)); layers 5–18: x ← x + f(LN(x)); {AFTER}",
    "keel": "self-attention in layer 1: x ← x + f(LN(x)); feed-forward and cross-attention in layer 1: "
    "x ← LN(x + f(LN(x))); layers 2–18: x ← LN(ω·x + f(LN(x)))",
    "layernorm-scaling": f"x ← x + f(κ·LN(x)); {AFTER}",
    "dyt": "x ← x + f(DyT(x)); after each stack DyT(x)",
    "gpt2-init": f"x ← x + f(LN(x)); {AFTER}",
    "depth-mup": f"x ← x + γ·f(LN(x)); {AFTER}",
    "completep": f"x ← x + γ·f(LN(x)); {AFTER}",
    "derf": "x ← x + f(Derf(x)); after each stack Derf(x)",
    "gpas": f"x ← x + f(LN(x)); then x ← x − SiLU(α_l)·[x], [x] without gradient, α_l trained, 0 at first; {AFTER}",
    "gated-attention": "self-attention and cross-attention: x ← x + W_O·(σ(W_g·LN(x)) ⊙ heads(LN(x))); "
    f"feed-forward: x ← x + f(LN(x)); {AFTER}",
    "value-residual": f"x ← x + f(LN(x)); V_l ← (V_l + V₁)/2 in self-attention; {AFTER}",
    "nanochat": "x ← x + f(LN(x)); a layer reads λ_l·x + λ⁰_l·x₀, trained, from 1.15 to 1.05 and from 0.2 to 0.05 at "
    f"first; output x − b·x_{{N/2}}, b trained, 0.2 at first; before each stack LN(x); {AFTER}",
    "siamesenorm": "x ← LN(x), z = f(LN(x + LN(y))), x ← x + z/√(2l), y ← y + z, y₀ = x₀; output LN(x) + LN(y); "
    f"{AFTER}",
    "attention-residuals": "v_i = f(LN(h_i)), h_i = Σ_{k<i} a_k·v_k, v₀ = x₀, a = softmax_k(w_i·v_k/rms(v_k)), w_i "
    f"trained, 0 at first; output h; {AFTER}",
    "hyper-connections": "X ← R·X + q ⊗ f(LN(p·X)), X four streams, p, q, R = trained + s·tanh(LN(X)·W); output Σ X; "
    f"{AFTER}",
    "mhc": "X ← R·X + q ⊗ f(LN(p·X)), X four streams, p = σ, q = 2σ, R = Sinkhorn of α·W·X/rms(X) + b; R = ¼ at "
    f"first; output Σ X; {AFTER}",
}


@pytest.mark.parametrize("key", methods.KEYS)
def test_the_formula_is_what_the_paper_prints(key):
    assert formula.text(methods.build(key, {})) == FORMULAS[key]


def test_options_change_it_where_they_change_slots():
    assert formula.text(methods.build("dlcl", {"norm": "post"})).startswith("x ← LN(x + f(x)); x_{l+1} = LN(Σ")
    assert formula.text(methods.build("deepnorm", {"alpha": "one"})) == "x ← LN(x + f(x))"
    assert "LN(heads" in formula.text(methods.build("sub-ln", {}))
    assert "x + LN(γ_h·f(LN(x)))" in formula.text(methods.build("normformer", {"heads": "fairseq"}))


def test_layers_that_differ_have_each_their_line():
    mixed = Method(
        key="mix-ln",
        label="Mix-LN",
        source="here",
        norm_in=lambda site: "norm" if 4 * site.layer > site.depth else "",
        norm_out=lambda site: "" if 4 * site.layer > site.depth else "norm",
    )
    told = formula.lines(mixed, 8, 8)
    assert told == ["layers 1–2: x ← LN(x + f(x))", "layers 3–8: x ← x + f(LN(x))"]


def test_a_stack_of_its_own_has_its_own_line():
    one = Method(key="one", label="One", source="here", norm_branch=lambda s: "norm" if s.stack == "encoder" else "")
    assert formula.lines(one, 4, 4) == ["encoder: x ← LN(x + LN(f(x)))", "decoder: x ← LN(x + f(x))"]


def test_the_block_is_in_the_formula():
    llama = ModelConfig(encoder_layers=0, decoder_layers=6, **{**BLOCKS["llama"], "qk_norm": True})
    assert formula.text(methods.build("pre-ln", {}), llama) == (
        "self-attention and cross-attention: x ← x + W_O·heads(RMSNorm(x), RMSNorm(q), RMSNorm(k)); "
        "feed-forward: x ← x + f(RMSNorm(x)); after each stack RMSNorm(x)"
    )


def test_the_authors_constants_have_their_values_beside_them():
    assert formula.values(methods.build("deepnorm", {}), 6, 6) == (
        "ω 1.418 | 2.06; W_V, W_O, W₁, W₂ 0.497 | 0.3433"  # 0.81·(6⁵)^(1/16), 18^(1/4); 0.87·(6⁵)^(−1/16), 72^(−1/4)
    )
    assert formula.values(methods.build("post-ln", {}), 18, 18) == ""
    assert formula.values(methods.build("t-fixup", {}), 18, 18).endswith("embedding 0.2803")


def test_factors_on_rate_and_epsilon_are_told_by_role_and_depth():
    own = Method(
        key="own",
        label="Own",
        source="here",
        rate=lambda s, role: 0.5 if role == "value" else 1.0,
        epsilon=lambda s, r: 4 / s.depth,
    )
    assert formula.factors(own, 8, 8).split(", ε")[0] == (
        "rate × 1 (query, key, out, up, gate, down, vector, outer, embedding, head); 0.5 (value)"
    )
    assert "ε × 0.5 (" in formula.factors(own, 8, 8)
    assert formula.factors(methods.build("pre-ln", {}), 8, 8) == ""


def test_a_trained_scale_stands_in_the_formula_even_at_one():
    one = Method(key="one", label="One", source="here", gamma=lambda s: Scale(vector=True, trainable=True))
    assert formula.text(one) == "x ← LN(x + γ·f(x))"


def told(**slots):
    return formula.lines(Method(key="own", label="Own", source="here", **slots), 18, 18)


def test_layers_are_named_for_each_kind_and_stack_that_has_them():
    lower = told(norm_out=lambda s: "norm" if s.stack == "encoder" or s.layer <= 4 else "")
    assert lower == ["encoder; decoder in layers 1–4: x ← LN(x + f(x))", "decoder in layers 5–18: x ← x + f(x)"]
    post, pre = told(norm_out=lambda s: "norm" if (s.layer + (s.kind == "ffn")) % 2 else "")
    attention, forward = "self-attention and cross-attention in layers", "feed-forward in layers"
    assert f"{attention} 1, 3, 5" in post and f"{forward} 2, 4, 6" in post and post.endswith(": x ← LN(x + f(x))")
    assert f"{attention} 2, 4, 6" in pre and f"{forward} 1, 3, 5" in pre and pre.endswith(": x ← x + f(x)")


def test_values_of_cross_attention_and_of_layers_between_are_not_hidden():
    cross = Method(key="own", label="Own", source="here", gain=lambda s, r: 0.5 if s.kind == "cross" else 1.0)
    assert formula.values(cross, 6, 6) == "W_Q, W_K, W_V, W_O 1 | 1 (0.5 in cross-attention)"
    hill = Method(key="own", label="Own", source="here", gamma=lambda s: Scale(init=2.0 if s.layer == 3 else 1.0))
    assert formula.values(hill, 6, 6) == "γ 1 to 2"
