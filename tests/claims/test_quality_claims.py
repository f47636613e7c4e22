"""The claims about quality: stores that bear them out, that contradict them, and that cannot test them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from stabkit.claims import quality
from stabkit.claims.base import Finding, judge
from stabkit.storage.store import Run
from tests.figures.fake_runs import ended, plausible, run, spec, translated, wide

CLAIM = {claim.key: claim for claim in quality.CLAIMS}


def found(key: str, runs: list[Run]) -> Finding:
    return judge(CLAIM[key], runs)


def one(
    method: str, encoder: int, loss: float, word: str = "trains", decoder: int | None = None, **more: object
) -> Run:
    return ended(spec(method, encoder, decoder, **{"warmup": 0, "steps": 250, **more}), word, loss)


def line(*losses: float, word: str = "trains", **more: object) -> list[Run]:
    return [one("deepnorm", n, loss, word, **more) for n, loss in zip((6, 18, 50), losses, strict=False)]


def at(word: str, loss: float, **more: object) -> list[Run]:
    """DeepNorm at one setting beside itself at the usual ones, 5 nats."""
    return [one("deepnorm", 18, 5.0), one("deepnorm", 18, loss, word, **more)]


def costing(
    method: str, encoder: int, decoder: int, loss: float, hidden: int = 64, word: str = "trains", **more: object
) -> Run:
    """A model of a million parameters beside its embeddings."""
    shape = wide(spec(method, encoder, decoder, **{"warmup": 0, "steps": 250, **more}), hidden)
    return ended(shape, word, loss, parameters=1_000_000 + 2000 * hidden)


def fallen(method: str, share: float, perplexity: float, word: str = "trains", **more: object) -> Run:
    """A run that ends at this share of the unigram loss."""
    made = one(method, 18, 6.0 * share, word, **more)
    made.outcome.update(unigram_loss=6.0, perplexity=perplexity)
    return made


CASES: dict[str, tuple[Callable[[], list[Run]], Callable[[], list[Run]]]] = {
    "deeper-deepnorm": (lambda: line(5.0, 4.9, 4.9), lambda: line(5.0, 5.1)),
    "largest-settings": (lambda: at("trains", 6.0, lr=1e-2), lambda: at("diverged", math.nan, lr=1e-2)),
    "larger-settings": (lambda: at("trains", 4.9, max_tokens=2048), lambda: at("trains", 5.1, max_tokens=2048)),
    "depth-law": (lambda: line(5.0, 4.8, 4.6), lambda: line(4.6, 4.8, 5.0)),
    "deep-narrow": (
        lambda: [costing("deepnorm", 48, 48, 4.9), costing("post-ln", 12, 12, 5.0, 128)],
        lambda: [costing("deepnorm", 48, 48, 5.1), costing("post-ln", 12, 12, 5.0, 128)],
    ),
    "symmetric": (
        lambda: [costing("deepnorm", 48, 48, 4.9), costing("deepnorm", 90, 6, 5.0)],
        lambda: [costing("deepnorm", 48, 48, 5.1), costing("deepnorm", 90, 6, 5.0)],
    ),
    "random-model": (
        lambda: [fallen("post-ln", 1.0, 300, "stuck"), fallen("admin", 0.8, 60)],
        lambda: [fallen("post-ln", 0.9, 200), fallen("admin", 0.8, 60)],
    ),
    "deeper-encoder": (
        lambda: [one("admin", 60, 4.9, decoder=12), one("admin", 12, 5.0, decoder=60)],
        lambda: [one("admin", 60, 5.1, decoder=12), one("admin", 12, 5.0, decoder=60)],
    ),
}


def test_every_claim_has_both_stores() -> None:
    assert set(CASES) == set(CLAIM)


@pytest.mark.parametrize("key", CASES)
def test_a_claim_holds_where_it_should_fails_where_it_should_and_is_untested_without_its_runs(key: str) -> None:
    bears_out, contradicts = CASES[key]
    assert found(key, bears_out()).verdict == "holds"
    assert found(key, contradicts()).verdict == "fails"
    assert found(key, []).verdict == found(key, [plausible(spec("deepnorm", 2))]).verdict == "untested"


@pytest.mark.parametrize("key", CASES)
def test_runs_too_short_to_judge_scaled_ones_and_own_recipes_have_no_say(key: str) -> None:
    for runs in (side() for side in CASES[key]):
        early = [remade(made, "early") for made in runs]
        scaled = [again(made, alpha_scale=2.0) for made in runs]
        own = [again(made, recipe="paper") for made in runs]
        for changed in (early, scaled, own):
            assert found(key, changed).verdict == "untested", changed[0].spec


def remade(made: Run, word: str) -> Run:
    return replace_outcome(again(made), outcome=word)


def again(made: Run, **changes: object) -> Run:
    other = run(replace(made.spec, **changes), made.records, str(made.outcome["outcome"]))
    return replace_outcome(other, **{k: v for k, v in made.outcome.items() if k != "outcome"})


def replace_outcome(made: Run, **known: object) -> Run:
    made.outcome.update(known)
    return made


def test_the_places_and_numbers_are_told() -> None:
    assert found("deeper-deepnorm", line(5.0, 4.9)).measured == "4.90 nats after 5.00 nats at 6L-6L (18L-18L)"
    told = found("deeper-deepnorm", line(5.0, 5.1, 4.9))
    assert told.verdict == "fails" and "fails at 1 of 2 places, holds at 50L-50L" in told.measured
    assert found("largest-settings", at("stuck", 6.0, lr=1e-2)).measured == (
        "0 of 1 runs train (learning rate 0.01, 18L-18L)"
    )
    assert found("larger-settings", at("trains", 4.9, max_tokens=2048)).measured == (
        "-1.10 nats at 2048 against -1.00 nats at 512 (tokens a batch, 18L-18L)"
    )
    assert found("depth-law", line(5.0, 4.8, 4.6)).measured.endswith("(12 to 100 layers)")
    assert found("deep-narrow", CASES["deep-narrow"][0]()).measured == (
        "4.90 nats against 5.00 nats (48L-48L d=64 against Post-LN 12L-12L d=128)"
    )
    assert found("random-model", CASES["random-model"][1]()).measured == (
        "Post-LN ends at 0.900 of the unigram loss, perplexity 200; "
        "ADMIN ends at 0.800 of the unigram loss, perplexity 60.0 (18L-18L, one seed)"
    )
    assert found("deeper-encoder", CASES["deeper-encoder"][0]()).measured == (
        "4.90 nats against 5.00 nats (60L-12L against 12L-60L)"
    )


def test_quality_is_bleu_where_all_of_a_comparison_were_translated_alike() -> None:
    worse = [translated(one("deepnorm", n, loss), right) for n, loss, right in ((6, 5.0, 0.9), (18, 4.0, 0.5))]
    told = found("deeper-deepnorm", worse)
    assert told.verdict == "fails" and told.measured.startswith("BLEU ")
    half = [worse[0], one("deepnorm", 18, 4.0)]
    assert found("deeper-deepnorm", half).measured == "4.00 nats after 5.00 nats at 6L-6L (18L-18L)"
    greedy = [worse[0], translated(one("deepnorm", 18, 4.0), 0.5, beam=1)]
    assert "nats" in found("deeper-deepnorm", greedy).measured
    rising = [translated(made, q) for made, q in zip(line(5.0, 5.0, 5.0), (0.5, 0.6, 0.7), strict=True)]
    told = found("depth-law", rising)
    assert told.verdict == "holds" and told.measured.startswith("BLEU = ")
    sides = [translated(costing("deepnorm", 48, 48, 5.1), 0.9), translated(costing("deepnorm", 90, 6, 5.0), 0.4)]
    assert found("symmetric", sides).verdict == "holds"


def test_a_deeper_encoder_must_be_significantly_better_where_translated() -> None:
    def shapes(deep: float, mirrored: float, **more: object) -> list[Run]:
        return [
            translated(one("admin", 60, 5.0, decoder=12, **more), deep),
            translated(one("admin", 12, 4.0, decoder=60, **more), mirrored),
        ]

    assert found("deeper-encoder", shapes(0.9, 0.5)).verdict == "holds"
    assert found("deeper-encoder", shapes(0.7, 0.7)).verdict == "untested", "a difference by chance is no evidence"
    assert found("deeper-encoder", shapes(0.5, 0.9)).verdict == "fails"
    seeds = [*shapes(0.9, 0.5), *shapes(0.9, 0.5, seed=1)]
    assert len(found("deeper-encoder", seeds).evidence) == 1, "one place, all seeds resampled together"


def test_a_shape_without_its_mirror_says_nothing_and_warns_of_nothing() -> None:
    assert found("deeper-encoder", [one("admin", 60, 4.9, decoder=12)]).verdict == "untested"


def test_bleu_near_nothing_on_one_side_leaves_the_loss_to_tell() -> None:
    """A BLEU below 1 is length and chance: where one of the two has it, they do not compare by BLEU."""
    worse = [translated(one("deepnorm", n, loss), right) for n, loss, right in ((6, 5.0, 0.9), (18, 4.0, 0.0))]
    assert found("deeper-deepnorm", worse).measured == "4.00 nats after 5.00 nats at 6L-6L (18L-18L)"


def test_a_loss_within_the_margin_is_no_evidence() -> None:
    assert found("deeper-deepnorm", line(5.0, 4.97)).verdict == "untested"
    assert found("larger-settings", at("trains", 4.97, max_tokens=2048)).verdict == "untested"
    level = [costing("deepnorm", 48, 48, 4.98), costing("post-ln", 12, 12, 5.0, 128)]
    assert found("deep-narrow", level).verdict == "untested"


def test_a_side_that_does_not_train_is_no_baseline() -> None:
    stuck = [costing("deepnorm", 48, 48, 4.9), costing("post-ln", 12, 12, 6.0, 128, word="stuck")]
    assert found("deep-narrow", stuck).verdict == "untested"


def test_seeds_are_paired_and_a_mean() -> None:
    runs = [*line(5.0, 4.9), one("deepnorm", 6, 5.0, seed=1), one("deepnorm", 18, 5.3, seed=1)]
    told = found("deeper-deepnorm", runs)
    assert told.verdict == "fails" and told.measured == "5.10 nats after 5.00 nats at 6L-6L (18L-18L)"
    apart = [one("deepnorm", 6, 5.0), one("deepnorm", 18, 4.0, seed=1)]
    assert found("deeper-deepnorm", apart).verdict == "untested"


def test_a_diverged_side_loses_and_two_of_them_say_nothing() -> None:
    lost = [one("deepnorm", 6, 5.0), one("deepnorm", 18, math.nan, "diverged")]
    told = found("deeper-deepnorm", lost)
    assert (told.verdict, told.measured) == ("fails", "diverged after 5.00 nats at 6L-6L (18L-18L)")
    assert found("deeper-deepnorm", lost[::-1]).verdict == "fails", "the order of the runs says nothing"
    both = [one("deepnorm", n, math.nan, "diverged") for n in (6, 18)]
    assert found("deeper-deepnorm", both).verdict == "untested"
    for key in CASES:
        every = [replace_outcome(remade(made, "diverged"), validation_loss=math.nan) for made in CASES[key][0]()]
        assert all(math.isfinite(piece.value) for piece in found(key, every).evidence), key


def test_a_perplexity_that_is_no_number_is_no_better_than_a_random_models() -> None:
    runs = [fallen("post-ln", math.nan, math.nan, "diverged"), fallen("admin", 0.8, 60)]
    told = found("random-model", runs)
    assert told.verdict == "holds" and "Post-LN ends at no number of the unigram loss" in told.measured
    both = [fallen("post-ln", 1.0, 300, "stuck"), fallen("admin", 0.99, 290, "stuck")]
    assert found("random-model", both).verdict == "fails", "ADMIN's must fall"
    shallow = [again(made, model=replace(made.spec.model, encoder_layers=6, decoder_layers=6)) for made in runs]
    assert found("random-model", shallow).verdict == "untested"


def test_equal_stacks_narrower_and_deeper_is_what_is_compared() -> None:
    deep = costing("deepnorm", 48, 48, 4.9)
    others = [
        costing("post-ln", 48, 48, 5.0),  # one shape
        costing("deepnorm", 90, 6, 5.0),  # as wide
        costing("post-ln", 60, 60, 5.0, 128),  # wide, but deeper
        costing("admin", 12, 12, 5.0, 128),  # not the paper's baseline
        costing("post-ln", 20, 4, 5.0, 128),  # lopsided
    ]
    for other in others:
        assert found("deep-narrow", [deep, other]).verdict == "untested", other.spec
    assert found("deep-narrow", [deep, costing("deepnorm", 12, 12, 5.0, 128)]).verdict == "holds"
    assert found("symmetric", [deep, costing("deepnorm", 60, 40, 5.0)]).verdict == "untested", "not twice as deep"
    assert found("symmetric", [deep, costing("deepnorm", 6, 90, 5.0)]).verdict == "untested"
    assert found("symmetric", [deep, costing("post-ln", 90, 6, 5.0)]).verdict == "untested"


def test_a_law_must_explain_four_fifths() -> None:
    assert found("depth-law", line(5.0, 4.5, 4.9)).verdict == "fails"
    assert found("depth-law", line(5.0, 5.0, 5.0)).verdict == "fails", "no growth"
    assert found("depth-law", line(5.0, 4.9)).verdict == "untested"
    stuck = [*line(5.0, 4.8), one("deepnorm", 50, 6.0, "stuck")]
    assert found("depth-law", stuck).verdict == "untested", "two depths that train"


def test_each_axis_is_a_place_of_its_own() -> None:
    runs = [*at("trains", 4.9, lr=1e-2), one("deepnorm", 18, 5.2, max_tokens=2048)]
    runs += [ended(wide(runs[0].spec, 128), "diverged", math.nan), one("admin", 18, 6.0, "stuck", lr=1e-2)]
    largest, larger = found("largest-settings", runs), found("larger-settings", runs)
    assert [piece.holds for piece in largest.evidence] == [True, True, False]
    assert [piece.holds for piece in larger.evidence] == [True, False, False]
    assert larger.evidence[2].text == "diverged at 128 against -1.00 nats at 64"
    seeds = [*runs[:2], one("deepnorm", 18, 6.0, "stuck", lr=1e-2, seed=1)]
    assert found("largest-settings", seeds).measured == "1 of 2 runs train (learning rate 0.01, 18L-18L)"


def test_a_bleu_near_nothing_is_no_quality() -> None:
    runs = [translated(made, 0.0) for made in line(5.0, 4.8, 4.6)]
    assert "nats" in found("deeper-deepnorm", runs).measured
    assert found("depth-law", runs).measured.startswith("loss = ")
    shapes = [one("admin", 60, 4.9, decoder=12), one("admin", 12, 5.0, decoder=60)]
    told = found("deeper-encoder", [translated(made, 0.0) for made in shapes])
    assert (told.verdict, told.measured) == ("holds", "4.90 nats against 5.00 nats (60L-12L against 12L-60L)")


def test_a_mirrored_or_a_shallower_model_that_is_stuck_is_no_baseline_either() -> None:
    mirrored = [one("admin", 60, 4.9, decoder=12), one("admin", 12, 6.0, "stuck", decoder=60)]
    assert found("deeper-encoder", mirrored).verdict == "untested"
    assert found("deeper-deepnorm", [one("deepnorm", 6, 6.0, "stuck"), one("deepnorm", 18, 5.0)]).verdict == "untested"
    assert found("deeper-deepnorm", [one("deepnorm", 6, 5.0), one("deepnorm", 18, 6.0, "stuck")]).verdict == "fails"
