"""Very Deep Transformers Table 3: every sign is the paired bootstrap's, and every sign is a text."""

from __future__ import annotations

import pytest

from stabkit.figures.quality import significance
from stabkit.quality import bleu
from stabkit.storage.store import Run
from tests.figures.fake_runs import ended, known, spec, translated


def system(method: str, depth: int, right: float, decoder: int | None = None, **changes: object) -> Run:
    return translated(ended(spec(method, depth, decoder, **{"steps": 250, **changes})), right)


def test_every_ordered_pair_is_compared_as_two_systems_alone_would_be() -> None:
    runs = [system("admin", 6, 0.6), system("admin", 18, 0.62), system("deepnorm", 18, 0.9)]
    frame = significance.select(runs)
    assert tuple(frame.columns) == significance.COLUMNS and len(frame) == 6
    by = {(made.spec.method, made.spec.depth): made.translations[0] for made in runs}
    for _, row in frame.iterrows():
        method = {"ADMIN": "admin", "DeepNorm": "deepnorm"}[row["against"]]
        ours, theirs = by[row["method"], row["depth"]], by[method, row["against_depth"]]
        pair = bleu.compare(bleu.counted(ours), bleu.counted(theirs))
        assert row[["difference", "low", "high", "p", "sign"]].tolist() == [
            *(pair.difference, pair.low, pair.high, pair.p, pair.sign)
        ]
        assert row["bleu"] == ours.score.bleu and row["signature"] == ours.score.signature
    signs = {(r["depth"], r["method"], r["against_depth"], r["against"]): r["sign"] for _, r in frame.iterrows()}
    assert (
        signs["18L-18L", "deepnorm", "6L-6L", "ADMIN"] == "+" and signs["6L-6L", "admin", "18L-18L", "DeepNorm"] == "-"
    )
    assert set(frame["search"]) == {"beam 4, length penalty 1"} and set(frame["systems"]) == {3}


def test_a_system_against_its_own_twin_is_level() -> None:
    one, other = system("admin", 6, 0.6), ended(spec("deepnorm", 6, steps=250))
    other.__dict__["translations"] = one.translations
    frame = significance.select([one, other])
    assert frame["sign"].tolist() == ["=", "="] and frame["difference"].tolist() == [0.0, 0.0]


def test_of_several_seeds_the_lowest_stands_and_conditions_stand_apart() -> None:
    runs = [system("admin", 6, 0.6, seed=s, warmup=w) for s in (3, 1) for w in (0, 400)]
    frame = significance.select(runs)
    assert set(frame["seed"]) == {1} and set(frame["condition"]) == {"no warm-up", "warm-up 400"}
    assert "the lowest" in " ".join(note.text for note in significance.PICTURE.read)


def test_nothing_is_compared_that_was_not_translated_alike() -> None:
    one = system("admin", 6, 0.6)
    untranslated = ended(spec("admin", 18, steps=250))
    elsewhere = translated(ended(spec("admin", 18, steps=250)), 0.6, sentences="others")
    greedy = translated(ended(spec("admin", 18, steps=250)), 0.6, beam=1)
    for runs in ([], [one], [one, untranslated], [one, elsewhere], [one, greedy]):
        frame = significance.select(runs)
        assert frame.empty and tuple(frame.columns) == significance.COLUMNS
        assert significance.title(runs) == "Which system translates better than which"
    both = translated(translated(ended(spec("admin", 18, steps=250)), 0.6, beam=1), 0.6)
    assert len(significance.select([one, both])) == 2, "the search that most have"


def test_of_more_systems_than_fit_the_best_stand_and_it_is_said() -> None:
    runs = [system("admin", n, 0.3 + 0.03 * n) for n in range(1, 17)]
    frame = significance.select(runs)
    kept = frame.drop_duplicates("run")
    assert len(kept) == significance.MOST and set(kept["systems"]) == {16}
    scores = sorted((made.translations[0].score.bleu for made in runs), reverse=True)
    assert kept["bleu"].min() == scores[significance.MOST - 1]
    assert significance.title(runs).endswith("(the best 14 of 16)")
    drawn = significance.PICTURE.drawn(frame)
    assert any("the 14 highest of 16 systems" in text.get_text() for text in drawn.texts)


def test_the_title_says_how_many_the_best_is_above() -> None:
    runs = [system("admin", 6, 0.5), system("admin", 18, 0.7), system("deepnorm", 18, 0.95)]
    score = runs[2].translations[0].score.bleu
    assert significance.title(runs) == (
        f"Of all DeepNorm 18L-18L has the highest BLEU, {score:.1f}: significantly above 2 of 2 others"
    )
    assert significance.title(runs[1:]).endswith("significantly above the other")
    nothing = [system("admin", n, 0.0) for n in (6, 18)]
    assert significance.title(nothing).startswith("No system translates: the highest BLEU is 0")


def test_every_sign_of_the_picture_is_a_text_on_its_own_fill() -> None:
    runs = [system("admin", 6, 0.5), system("admin", 18, 0.51), system("deepnorm", 18, 0.95)]
    known(runs[0], word="stuck")
    frame = significance.select(runs)
    (axes,) = significance.PICTURE.drawn(frame).axes
    texts = [text.get_text() for text in axes.texts]
    signs = [sign.replace("-", "−") for sign in frame["sign"]]
    assert [text for text in texts if text in ("+", "−", "=")] == signs and len(axes.patches) == 6
    assert {"a", "b", "c", "BLEU", "ADMIN 6L-6L (stuck)", "DeepNorm 18L-18L"} <= set(texts)
    fills = {sign: patch.get_facecolor() for sign, patch in zip(signs, axes.patches, strict=True)}
    assert len(set(fills.values())) == len(set(signs))
    told = significance.PICTURE.described(frame)
    assert "DeepNorm 18L-18L" in told and "above 2" in told


@pytest.mark.parametrize("name", ["dark", "light"])
def test_black_is_readable_on_every_fill_whatever_the_page(name: str) -> None:
    for fill in significance.FILLS.values():
        r, g, b = (int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert (luminance + 0.05) / 0.05 >= 7, "contrast of text, WCAG AAA"
