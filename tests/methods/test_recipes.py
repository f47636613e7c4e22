"""`--recipe paper`: every method as its own authors trained it, and how pages keep that apart from a shared recipe."""

import json

import pytest
from typer.testing import CliRunner

from stabkit import methods
from stabkit.claims import findings
from stabkit.cli.app import app
from stabkit.errors import UsageError
from stabkit.methods import with_recipe
from stabkit.report import provenance
from stabkit.results.conditions import condition_order, conditions, shown
from stabkit.spec import from_json
from tests.figures.fake_runs import plausible, run, spec
from tests.report.pages import render

pytestmark = pytest.mark.usefixtures("undrawn")

OWN = {
    "post-ln": ("fairseq_uniform", "adam", 1.5e-3, 4000, 0),
    "post-ln-init": ("xavier_normal", "adam", 1.5e-3, 4000, 0),
    "ds-init": ("fairseq_uniform", "adam", 1.5e-3, 4000, 0),
    "admin": ("fairseq_uniform", "radam", 1e-3, 4000, 0),
    "rezero": ("torch_uniform", "adam", 5e-4, 0, 0),
    "r-fixup": ("fairseq_uniform", "adam", 5e-4, 4000, 0),
    "t-fixup": ("fairseq_uniform", "adam", 5e-4, 0, 4000),
    "pre-ln": ("fairseq_uniform", "adam", 1.5e-3, 4000, 0),
    "dlcl": ("fairseq_uniform", "adam", 2e-3, 16_000, 0),
    "normformer": ("fairseq_uniform", "adam", 1.5e-3, 4000, 0),
    "sub-ln": ("xavier_normal", "adam", 1e-3, 4000, 0),
    "deepnorm": ("xavier_normal", "adam", 1.5e-3, 4000, 0),
    "residual": ("fairseq_uniform", "adam", 5e-4, 4000, 0),
}
"""(base, optimiser, peak rate, warm-up, updates at the full rate): DeepNet (first version), Tables 4 and 5; Wang et al.
2020 §4; Huang et al. 2020 §5; Wang et al. 2019 §4; ReZero's released code (`reference/methods.md`)."""


def invoked(*args):
    done = CliRunner().invoke(app, ["sweep", "--dry-run", *args])
    if done.exception:
        raise done.exception
    return done


def planned(*args):
    return [from_json(one["spec"]) for one in json.loads(invoked("--json", "--depths", "2", *args).stdout)["runs"]]


def recipe_of(made):
    return made.model.base_init, made.train.optimizer, made.train.lr, made.train.warmup, made.train.hold


def test_every_method_gets_its_own_base_optimiser_rate_and_warm_up():
    found = {made.method: made for made in planned("--models", "all", "--recipe", "paper")}
    assert {key: recipe_of(made) for key, made in found.items()} == OWN
    assert set(OWN) == {method.key for method in methods.DEFAULTS if method.recipe}
    assert all(made.recipe == "paper" for made in found.values())
    assert all(method.recipe.source for method in methods.DEFAULTS if method.recipe)


def test_one_recipe_for_all_is_the_default_and_changes_nothing():
    made = planned("--models", "all")
    assert {recipe_of(one) for one in made} == {("xavier_normal", "adam", 5e-4, 0, 0)}
    assert all(one.recipe == "shared" and with_recipe(one) == one for one in made)
    other = planned("--models", "deepnorm", "--lr", "1e-3", "--warmup", "7", "--optimizer", "sgd")
    assert recipe_of(other[0]) == ("xavier_normal", "sgd", 1e-3, 7, 0)


def test_a_recipe_leaves_the_rest_of_the_run_alone():
    options = ("--models", "admin:omega=closed,deepnorm", "--seeds", "3", "--steps", "9", "--dropout", "0.1")
    for shared, own in zip(planned(*options, "--warmup", "4000"), planned(*options, "--recipe", "paper"), strict=True):
        assert (own.seed, own.train.steps, own.train.dropout, own.options) == (3, 9, 0.1, shared.options)
        assert own.model.hidden == shared.model.hidden and own.run_id != shared.run_id


def test_the_same_run_is_trained_once_however_often_it_is_asked_for():
    assert len(planned("--models", "deepnorm,DeepNorm,deepnorm:alpha=paper", "--recipe", "paper")) == 1
    assert len({made.run_id for made in planned("--models", "all", "--recipe", "paper")}) == len(OWN)


BESIDE = [("--lr", "1e-3"), ("--warmup", "0"), ("--base-init", "fairseq_uniform"), ("--optimizer", "radam")]


@pytest.mark.parametrize(("option", "value"), BESIDE)
def test_what_the_recipe_decides_cannot_be_asked_for_beside_it(option, value):
    with pytest.raises(UsageError) as caught:
        invoked("--recipe", "paper", option, value)
    said = str(caught.value)
    assert said == f"--recipe paper gives each method its own {option}; leave out {option} {value}"


def test_an_unknown_recipe_optimiser_or_architecture_is_named():
    for option, value in (("--recipe", "papers"), ("--optimizer", "adem"), ("--arch", "encoder")):
        with pytest.raises(UsageError, match=f"{option}.*{value}.*did you mean"):
            invoked(option, value)


@pytest.mark.parametrize("arch", ["encoder-only", "decoder-only"])
def test_all_leaves_out_what_is_not_defined_for_one_stack_and_says_so(arch):
    done = invoked("--models", "all", "--arch", arch, "--depths", "2", "--warmup", "0", "--json")
    made = [from_json(one["spec"]) for one in json.loads(done.stdout)["runs"]]
    assert [one.method for one in made] == [key for key in methods.KEYS if key != "t-fixup"]
    stacks = {"encoder-only": (2, 0), "decoder-only": (0, 2)}[arch]
    assert {(one.model.encoder_layers, one.model.decoder_layers) for one in made} == {stacks}
    assert done.stderr.count("\n") == 1 and "T-Fixup is left out: its constants" in done.stderr
    assert invoked("--models", "all", "--depths", "2", "--json").stderr == ""


def test_a_method_named_that_is_not_defined_is_refused():
    with pytest.raises(UsageError, match=r"--models: T-Fixup is not defined here: .*one stack.*Huang"):
        invoked("--models", "deepnorm,t-fixup", "--arch", "decoder-only")
    with pytest.raises(UsageError, match="T-Fixup is not defined here"):
        invoked("--models", "all,t-fixup", "--arch", "encoder-only")


def own(*keys, **changes):
    return [with_recipe(spec(key, 6, recipe="paper", **changes)) for key in keys]


def texts(specs):
    return [str(condition) for condition in conditions(specs)]


def test_runs_by_their_own_recipes_share_one_condition():
    specs = own(*OWN)
    told = "each method's own recipe"  # said even where there is no other: rates differ between the methods
    assert texts(specs) == [told] * 13 and [str(found) for found in condition_order(specs)] == [told]
    assert [str(each.condition) for each in shown([plausible(made) for made in specs])] == [told] * 13


def test_other_settings_still_set_them_apart():
    specs = [*own("rezero", "dlcl", dropout=0.1), *own("rezero", "dlcl")]
    own_recipe = "each method's own recipe"
    assert texts(specs) == [f"dropout 0.1, {own_recipe}"] * 2 + [f"dropout 0, {own_recipe}"] * 2


def test_beside_a_shared_recipe_an_own_one_says_that_it_is_one_and_no_rate_that_is_not():
    specs = [*own("rezero", "dlcl"), spec("rezero", 6), spec("dlcl", 6)]
    mine, _, theirs, _ = texts(specs)
    assert texts(specs) == [mine, mine, theirs, theirs] and mine == "each method's own recipe"
    assert theirs == "xavier_normal, adam, lr 0.0005, warm-up 4000, one recipe for all"
    two = [*own("dlcl", dropout=0.1), *own("dlcl"), spec("dlcl", 6)]
    assert texts(two)[:2] == ["dropout 0.1, each method's own recipe", "dropout 0, each method's own recipe"]


def test_the_page_names_each_recipe_with_its_source_and_warns_beside_them():
    runs = [plausible(made) for made in own("rezero", "t-fixup", "admin")]
    page = render(runs, command="stabkit sweep --recipe paper")
    assert "Each method by its own recipe." in page and 'id="recipes"' in page
    for text in (
        "torch_uniform, adam, lr 0.0005, no warm-up",
        "fairseq_uniform, adam, lr 0.0005, no warm-up, decay after 4000 updates",
        "fairseq_uniform, radam, lr 0.001, warm-up 4000",
        "Huang et al. 2020 §5: no warm-up, decay after 4000",
    ):
        assert f">{text}<" in page
    plain = render([plausible(spec("rezero", 6))], command="stabkit sweep")
    assert "own recipe" not in plain and 'id="recipes"' not in plain


def test_recipes_are_listed_once_a_method_and_only_where_they_are_the_papers():
    specs = [*own("deepnorm", "admin"), *own("deepnorm", seed=1)]
    specs += [spec("post-ln", 6), spec("tomorrow", 6, recipe="paper")]
    assert [label for label, _, _ in provenance.recipes(specs)] == ["DeepNorm", "ADMIN"]
    assert provenance.recipes(specs)[0] == (
        "DeepNorm",
        "xavier_normal, adam, lr 0.0015, warm-up 4000",
        "DeepNet (first version), Appendix D.2",
    )
    assert provenance.recipes([spec("post-ln", 6)]) == []


def test_claims_are_not_judged_on_runs_whose_recipes_differ_with_the_method():
    def ended(made):
        return run(made, {}, "trains" if made.method == "deepnorm" else "stuck")

    mixed = [ended(made) for made in own("post-ln", "deepnorm", steps=250)]
    assert all(found.verdict == "untested" for found in findings(mixed))
    alike = [ended(spec(key, 6, steps=250)) for key in ("post-ln", "deepnorm")]
    assert any(found.verdict != "untested" for found in findings(alike))
