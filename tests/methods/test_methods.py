"""The methods against numbers derived independently (`reference/methods.md`), and the contract of their table."""

import math
from pathlib import Path

import pytest

import stabkit.methods as package
from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods import formula, validate
from stabkit.methods.base import sites
from stabkit.methods.papers.admin import closed
from stabkit.methods.papers.deepnorm import alpha_beta
from stabkit.methods.papers.deepnorm import method as deepnorm


@pytest.mark.parametrize(
    ("n", "m", "numbers"),
    [
        (6, 6, (1.4179, 0.4970, 2.0598, 0.3433)),
        (18, 18, (1.9987, 0.3526, 2.7108, 0.2608)),
        (50, 50, (2.7505, 0.2562, 3.4996, 0.2021)),
        (60, 12, (2.6331, 0.2676, 2.4495, 0.2887)),
        (100, 100, (3.4157, 0.2063, 4.1618, 0.1699)),
    ],
)
def test_deepnorm_has_the_published_constants_for_an_encoder_and_a_decoder(n, m, numbers):
    all_sites = sites(n, m, 64)
    assert [*alpha_beta(all_sites[0]), *alpha_beta(all_sites[-1])] == pytest.approx(numbers, abs=5e-5)


@pytest.mark.parametrize(("layers", "numbers"), [(18, (2.4495, 0.2887)), (100, (3.7606, 0.1880))])
def test_deepnorm_has_the_published_constants_for_one_stack_either_way(layers, numbers):
    assert alpha_beta(sites(layers, 0, 64)[0]) == pytest.approx(numbers, abs=5e-5)
    assert alpha_beta(sites(0, layers, 64)[0]) == pytest.approx(numbers, abs=5e-5)


def test_deepnorm_scales_values_outputs_and_feed_forward_and_leaves_queries_and_keys():
    method, site = deepnorm(), sites(18, 18, 64)[-1]
    beta = (12 * 18) ** -0.25
    assert [method.gain(site, role) for role in ("query", "key")] == [1.0, 1.0]
    assert [method.gain(site, role) for role in ("value", "out", "up", "down")] == pytest.approx([beta] * 4)


def test_alpha_and_beta_scales_multiply_encoder_and_decoder_alike():
    scaled, plain = deepnorm(alpha_scale=0.25, beta_scale=4.0), deepnorm()
    for site in sites(6, 6, 64):
        assert scaled.omega(site).init == 0.25 * plain.omega(site).init
        assert scaled.gain(site, "up") == 4.0 * plain.gain(site, "up")
        assert scaled.gain(site, "query") == 1.0


def test_post_ln_init_divides_the_lowest_layer_by_n_and_the_top_layer_by_1():
    method = methods.build("post-ln-init", {})
    for stack, depth in (("encoder", 18), ("decoder", 6)):
        own = [s for s in sites(18, 6, 64) if s.stack == stack]
        assert method.gain(own[0], "down") == 1 / depth and method.gain(own[-1], "down") == 1.0
        assert method.gain(own[0], "query") == 1 / depth
    assert methods.build("post-ln-init", {"which": "v_o_ffn"}).gain(sites(18, 6, 64)[0], "query") == 1.0


def test_the_closed_form_of_admin_has_the_published_values_and_counts_sub_layers():
    assert [closed(2 * 18), closed(3 * 18), closed(2 * 100), closed(3 * 100)] == pytest.approx(
        [3.041, 3.567, 6.075, 7.193], abs=5e-4
    )
    first, last = sites(18, 18, 64)[0], sites(18, 18, 64)[-1]
    method = methods.build("admin", {"omega": "closed"})
    assert [method.omega(first).init, method.omega(last).init] == [closed(36), closed(54)]
    assert methods.build("admin", {"omega": "constant"}).omega(first).init == pytest.approx(6.0)
    assert method.calibrate is None


def test_sites_count_as_the_papers_do():
    assert len(sites(500, 500, 64)) == 2500
    assert [s.sublayers for s in (sites(18, 18, 64)[0], sites(18, 18, 64)[-1], sites(0, 18, 64)[0])] == [36, 54, 36]
    assert [s.index for s in sites(1, 2, 64)] == [1, 2, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("make", methods.METHODS, ids=methods.KEYS)
@pytest.mark.parametrize("depth", [(6, 6), (100, 100), (60, 12)])
def test_every_method_is_finite_everywhere_and_says_where_it_comes_from(make, depth):
    method = make()
    assert method.source and formula.text(method) and method.label and not list(validate.faults(method, *depth))
    for site in sites(*depth, 64):
        values = [
            method.omega(site).init,
            method.gamma(site).init,
            *(method.gain(site, r) for r in ("query", "key", "value", "out", "up", "down")),
        ]
        assert all(math.isfinite(v) and v >= 0 for v in values)
        assert method.omega(site).init > 0


def test_every_file_of_the_folder_has_its_row():
    folder = Path(package.__file__).parent
    files = {p.stem for room in ("papers", "recent") for p in (folder / room).glob("*.py")} - {"__init__"}
    assert files == {make.__module__.rpartition(".")[2] for make in methods.METHODS}


@pytest.mark.parametrize("text", ["deepnorm", "DeepNorm", "deep-norm", "DEEPNORM", " deepnorm "])
def test_keys_are_read_in_any_case_with_or_without_hyphens(text):
    assert methods.parse(text) == ("deepnorm", {})


def test_every_key_is_read_back():
    for key in methods.KEYS:
        assert methods.parse(key.replace("-", "").upper())[0] == key


def test_options_are_checked_and_a_default_is_the_same_run():
    assert methods.parse("admin:omega=closed") == ("admin", {"omega": "closed"})
    assert methods.parse("admin:omega=profile") == ("admin", {})
    assert methods.label("admin", {"omega": "closed"}) == "ADMIN (omega=closed)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deepnrom", "did you mean 'deepnorm'"),
        ("postln-init2", "did you mean 'post-ln-init'"),
        ("admin:omga=closed", "did you mean 'omega'"),
        ("admin:omega=close", "profile, closed, constant"),
        ("pre-ln:x=1", "it has none"),
        ("mix-ln:share=0.5:share=0.25", "twice: 0.5 and 0.25"),
        ("zzz", "stabkit methods"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest_right_one(text, said):
    with pytest.raises(UsageError, match=said):
        methods.parse(text)
