"""What DeepNet says of the loss around the weights (Fig. 1) and around the path (Fig. 5), measured on surfaces of
`stabkit landscape`.

Fig. 1 is drawn along filter-normalised directions, each method's own: that is the papers' ruler, and it moves a method
with small weights less. Fig. 5 is drawn in the plane of the path, without normalisation. Each sentence is judged in its
own plane by its own ruler. The share of negative curvature judges, which no convex bowl scores; the roughness
Σ|Δ²L|/Σ|ΔL|, which has a floor, is told with it (`surface/roughness.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, median

from stabkit.claims.base import UNWARMED, Claim, Measurement, Spot, at_depth, at_least, at_most, points, share_claim
from stabkit.claims.evidence import JUDGED, known, measured
from stabkit.results.conditions import method_label
from stabkit.results.landscape import Landscape, PlacedSurface
from stabkit.results.readings import centre
from stabkit.results.run import Run
from stabkit.spec import depth_text
from stabkit.surface import roughness
from stabkit.words import percent, short

P, D = "post-ln", "deepnorm"
Find = Callable[[Landscape], Iterable[Measurement]]
Planes = dict[tuple[int, int], dict[str, dict[int, list[PlacedSurface]]]]
"""{depth: {method: {seed: surfaces}}}"""
DEPTHS = "stabkit landscape --depths 6,18,50 --path hao"


def _cuts(drawn: Landscape) -> Planes:
    """Along each method's own filter-normalised directions, around the weights at the end of training: Fig. 1's."""
    ends = {run.run_id: run.outcome.steps for run in drawn.runs}
    planes: Planes = {}
    for seen in drawn.placed("cut"):
        if seen.ruler.papers and ends.get(seen.surface.spec.origin.run) == seen.surface.spec.origin.step:
            _put(planes, seen)
    return planes


def _put(planes: Planes, seen: PlacedSurface) -> None:
    by = planes.setdefault(seen.shown.shape, {}).setdefault(seen.shown.variant, {})
    by.setdefault(seen.shown.run.spec.seed, []).append(seen)


def _share(surfaces: Sequence[PlacedSurface]) -> float:
    """Of negative curvature, the mean over directions: a difference of means is the mean of the pairs' differences."""
    return fmean(roughness.negative_curvature(one.surface.loss) for one in surfaces)


def _roughness_text(by: dict[int, list[PlacedSurface]]) -> str:
    """`16%, roughness 0.15`: medians over the seeds."""
    rough = centre(roughness.roughness(one.surface.loss) for each in by.values() for one in each)
    return f"{percent(median(map(_share, by.values())))}, roughness {short(rough)}"


def _runs(by: dict[int, list[PlacedSurface]]) -> list[Run]:
    return [one.shown.run for each in by.values() for one in each]


def smoother(drawn: Landscape) -> Iterator[Measurement]:
    """Post-LN's share of negative curvature less DeepNorm's, each by its own directions."""
    for shape, by in _cuts(drawn).items():
        if P in by and D in by:
            ours, theirs = by[P], by[D]
            by_seed = {seed: _share(ours[seed]) - _share(theirs[seed]) for seed in ours if seed in theirs}
            count = len(next(iter(ours.values())))
            name = f"{count} directions" if count > 1 else "one direction"
            beside = f"{_roughness_text(ours)} against {_roughness_text(theirs)}, {name}"
            yield measured(_runs(ours), known(by_seed), at_depth(*shape), beside=beside)


def over_depths(method: str, number_of: Callable[[list[float]], float]) -> Find:
    """How one method's share of negative curvature in the plane of the path goes with depth, two depths at least."""

    def find(drawn: Landscape) -> list[Measurement]:
        planes: Planes = {}
        for seen in drawn.placed("path"):
            _put(planes, seen)
        line = {shape: by[method] for shape, by in planes.items() if method in by}
        if len(line) < 2:
            return []
        shared = set.intersection(*(set(by) for by in line.values()))
        values = {seed: number_of([_share(by[seed]) for by in line.values()]) for seed in sorted(shared)}
        beside = "; ".join(f"{depth_text(*shape)} {_roughness_text(by)}" for shape, by in line.items())
        ends = [at_depth(*shape) for shape in [*line][:: len(line) - 1]]
        where = Spot("-to-".join(end.key for end in ends), " to ".join(end.text for end in ends))
        return [measured(_runs(next(iter(line.values()))), known(values), where, beside=beside)]

    return find


def local_optimum(drawn: Landscape) -> Iterator[Measurement]:
    """Is Post-LN stuck by the rule of all pages where DeepNorm trains, at the runs whose surfaces are drawn?"""
    held: dict[tuple[int, int], dict[int, dict[str, Run]]] = {}
    for seen in drawn.placed("surface"):
        by_seed = held.setdefault(seen.shown.shape, {}).setdefault(seen.shown.run.spec.seed, {})
        by_seed[seen.shown.variant] = seen.shown.run
    for shape, by in held.items():
        values, parts, runs = {}, [], []
        for seed, pair in sorted(by.items()):
            words = {method: pair[method].outcome.word for method in (P, D) if method in pair}
            if len(words) == 2 and set(words.values()) <= set(JUDGED):
                values[seed] = float(words == {P: "stuck", D: "trains"})
                parts.append(
                    ", ".join(
                        f"{method_label(pair[method].spec)} {word} at {short(pair[method].outcome.validation_loss, 3)}"
                        for method, word in words.items()
                    )
                )
                runs.append(pair[P])
        if runs:
            yield measured(runs, values, at_depth(*shape), beside="; ".join(parts))


MUCH = at_least(
    0.10,
    "stabkit's choice: one point in ten; a bowl has none. Σ|Δ²L|/Σ|ΔL| is reported too but cannot judge, as it has a "
    "floor: 0.08 for a parabola of 51 points",
)
DIRECTION = "stabkit's choice: one point in twenty, about the effect of another direction"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="surface-smoother",
        sentence="The loss surface of DeepNet is much smoother than Post-LN's.",
        source="DeepNet §1, Fig. 1",
        weight="central",
        test="share of negative curvature of cuts along each method's own filter-normalised directions, the papers' "
        "normalisation: Post-LN's minus DeepNorm's",
        threshold=MUCH,
        tell=points,
        find=smoother,
        spread={UNWARMED: {"18x18": 0.04082}},
        needs="surfaces of Post-LN and DeepNorm at one depth and seed",
        command="stabkit landscape --model deepnorm",
        methods=("post-ln", "deepnorm"),
    ),
    Claim(
        key="surface-depth",
        sentence="Post-LN's loss landscape is less smooth with increasing depth.",
        source="DeepNet §3.3, Fig. 5",
        weight="side",
        test="share of negative curvature in the plane of the path: Post-LN's at the deepest model minus that at the "
        "shallowest",
        threshold=at_least(0.05, DIRECTION),
        tell=points,
        find=over_depths(P, lambda values: values[-1] - values[0]),
        needs="surfaces of Post-LN along its path at two depths",
        command=DEPTHS,
        methods=("post-ln",),
    ),
    Claim(
        key="surface-consistent",
        sentence="DeepNet's loss landscape tends to be equally smooth across depths.",
        source="DeepNet §3.3, Fig. 5",
        weight="side",
        test="share of negative curvature in the plane of the path: DeepNorm's highest minus its lowest, over the "
        "depths",
        threshold=at_most(0.05, DIRECTION),
        tell=points,
        find=over_depths(D, lambda values: max(values) - min(values)),
        needs="surfaces of DeepNorm along its path at two depths",
        command=DEPTHS,
        methods=("deepnorm",),
    ),
    share_claim(
        key="spurious-optimum",
        sentence="Post-LN is easier to be stuck in a spurious local optimum.",
        source="DeepNet §3.3, Fig. 5",
        weight="central",
        test="outcomes of the runs shown: share of the seeds in which Post-LN is stuck (at the unigram loss, and flat) "
        "and DeepNorm trains",
        find=local_optimum,
        needs="surfaces of Post-LN and DeepNorm at one depth and seed, after runs long enough to judge",
        command="stabkit landscape --model deepnorm --steps 250",
        methods=("post-ln", "deepnorm"),
    ),
)
