"""The claims about loss surfaces, on surfaces made to bear them out and to contradict them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from stabkit.claims import OF_SURFACES
from stabkit.claims.base import judge
from stabkit.figures.shared.surfaces import Landscape
from stabkit.results.surface import At, Plane, SurfaceSpec
from stabkit.storage.store import Run
from stabkit.storage.surfaces import Surface
from stabkit.surface import directions
from tests.figures.fake_runs import run, spec

CLAIM = {claim.key: claim for claim in OF_SURFACES}
ALONG = directions.axis(21, 1.0)


def bumpy(size: float, middle: float = 5.0, cut: bool = True, seed: int = 0) -> np.ndarray:
    """A bowl with waves of this size on it."""
    x = np.array(ALONG)
    wave = size * np.cos(np.pi * np.arange(21)) * (1 + 0.1 * seed)
    line = middle + x**2 + wave - wave[10]
    return line[None, :] if cut else line[None, :] + x[:, None] ** 2


def drawn(rough: dict[tuple[str, int], dict[str, float]], middle: dict[str, float] | None = None) -> Landscape:
    """{(method, depth): {whose directions: waves}} → cuts of two direction seeds, and a surface under one's own."""
    runs: dict[tuple[str, int], Run] = {key: run(spec(key[0], key[1], warmup=0, steps=100), {}) for key in rough}
    for made in runs.values():
        made.outcome.update({"unigram_loss": 6.0, "steps": 100})  # type: ignore[attr-defined]
    surfaces = []
    for (method, depth), by in rough.items():
        origin = At(run=runs[method, depth].run_id, step=100)
        for whose, size in by.items():
            of = None if whose == method else At(run=runs[whose, depth].run_id, step=100)
            for seed in (0, 1):
                cut = SurfaceSpec(origin=origin, plane=Plane(kind="random", seed=seed, of=of), a=ALONG)
                surfaces.append(Surface(cut, bumpy(size, seed=seed), {}, {}, ""))
            if of is None:
                whole = SurfaceSpec(origin=origin, plane=Plane(kind="random"), a=ALONG, b=ALONG)
                height = (middle or {}).get(method, 5.0)
                surfaces.append(Surface(whole, bumpy(0.0, height, cut=False), {}, {}, ""))
    return Landscape(list(runs.values()), surfaces)


def pair(own: float, post: float, deep: float, depth: int = 18, **middle: float) -> Landscape:
    """Post-LN's waves under its own directions and DeepNorm's; DeepNorm's under its own and Post-LN's."""
    heights = {name.replace("_", "-"): value for name, value in middle.items()}
    return drawn(
        {
            ("post-ln", depth): {"post-ln": own, "deepnorm": deep},
            ("deepnorm", depth): {"deepnorm": 0.1, "post-ln": post},
        },
        heights,
    )


def ended(post: str, deep: str) -> Landscape:
    found = pair(0.1, 0.1, 0.1)
    for made, word in zip(found.runs, (post, deep), strict=True):
        made.outcome["outcome"] = word  # type: ignore[index]
    return found


def depths(method: str, *sizes: float) -> Landscape:
    return drawn({(method, n): {method: size} for n, size in zip((6, 18, 50), sizes, strict=False)})


CASES: dict[str, tuple[Callable[[], Landscape], Callable[[], Landscape]]] = {
    "surface-smoother": (lambda: pair(0.6, 0.2, 0.3), lambda: pair(0.6, 0.3, 0.1)),
    "surface-depth": (lambda: depths("post-ln", 0.1, 0.2, 0.4), lambda: depths("post-ln", 0.2, 0.2, 0.2)),
    "surface-consistent": (lambda: depths("deepnorm", 0.1, 0.12), lambda: depths("deepnorm", 0.1, 0.3)),
    "spurious-optimum": (
        lambda: ended("stuck", "trains"),
        lambda: ended("trains", "trains"),
    ),
}


@pytest.mark.parametrize("key", CLAIM)
def test_a_claim_holds_where_it_should_fails_where_it_should_and_is_untested_without_its_surfaces(key: str) -> None:
    bears_out, contradicts = CASES[key]
    assert judge(CLAIM[key], bears_out()).verdict == "holds"
    assert judge(CLAIM[key], contradicts()).verdict == "fails"
    assert judge(CLAIM[key], Landscape([], [])).verdict == "untested"


def test_a_sentence_that_holds_by_one_ruler_alone_fails_and_says_by_which_it_holds() -> None:
    found = judge(CLAIM["surface-smoother"], pair(0.6, 0.3, 0.1))
    assert "fails at 2 of 3 places" in found.measured and "the papers' ruler" in found.measured


def test_a_flat_loss_has_no_roughness_that_another_could_be_a_multiple_of() -> None:
    found = depths("post-ln", 0.1, 0.2)
    flat = [
        replace(one, loss=np.full_like(one.loss, 5.0)) if "-6L-" in one.surface_id else one for one in found.surfaces
    ]
    assert judge(CLAIM["surface-depth"], Landscape(found.runs, flat)).verdict == "untested"
    (evidence,) = judge(CLAIM["surface-depth"], depths("post-ln", 0.1, 0.2)).evidence
    assert evidence.value == pytest.approx(2.0, rel=0.1)


def test_seeds_of_directions_are_paired() -> None:
    (own, *_) = judge(CLAIM["surface-smoother"], pair(0.6, 0.2, 0.3)).evidence
    assert own.text.startswith("6.0 times (6.0 to 6.0 over 2 directions)")


def test_a_run_too_short_to_judge_is_not_called_stuck() -> None:
    assert judge(CLAIM["spurious-optimum"], ended("early", "trains")).verdict == "untested"


def test_only_filter_normalised_surfaces_at_the_end_of_training_bear_on_the_papers() -> None:
    found = pair(0.6, 0.2, 0.3)
    for made in found.runs:
        made.outcome["steps"] = 250  # type: ignore[index]  # drawn at step 100 of 250
    assert judge(CLAIM["surface-smoother"], found).verdict == "untested"
