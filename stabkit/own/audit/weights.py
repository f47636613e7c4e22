"""What matrices, biases and norms start at, against the recipe: standard deviations, clones, defaults left in place."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import torch

from stabkit.methods.base import Kind, Role, Stack
from stabkit.own.audit import causes
from stabkit.own.audit.case import BASES, CONSTANT, USUAL, Case, Reading, Violation, deviation
from stabkit.own.audit.words import by_stack, grouped, listed, matrices, names, span, where
from stabkit.own.sublayers.anatomy import Anatomy

ALIKE = 0.999
"""Correlation from which two matrices count as one drawn once."""
NOTHING = 1e-3
"""Of torch's default draw of a bias: less is no violation (N(0, 10⁻¹²) as in vision Transformers)."""
SEVERAL = 1.3
"""Times the least that the greatest of several matrices is where no one factor is told of them."""
SAMPLE = 4096
"""Entries of a matrix that are compared with another layer's."""

Unit = tuple[Stack, Kind, Role]


def _units(readings: Sequence[Reading]) -> dict[Unit, list[Reading]]:
    return grouped(((r.site.stack, r.site.kind, r.role), r) for r in readings)


def judge(case: Case, anatomy: Anatomy) -> Iterator[Violation]:
    """Violations in what was drawn."""
    yield from _clones(case)
    folded = {site for site, own in case.pairs if case.folds(site, own)}
    judged = [r for r in case.readings if math.isfinite(r.std) and not (r.role == "query" and r.site in folded)]
    off = [r for r in judged if not case.fits(r)]
    default = [r for r in off if r.default]
    if case.base == "linear":
        default = []
    elif default and case.base != "torch_uniform":  # those whose default happens to be the recipe's number, too
        default = [r for r in case.readings if r.default]
    if case.base == "constant" and case.method.key not in CONSTANT:
        yield _constant(case)
    yield from _default(case, default)
    yield from _deviations(case, [r for r in off if not r.default])
    yield from _biases(case, seen={id(r) for r in default})
    yield from _embedding(case, anatomy)
    yield from _norm_weights(anatomy)


# — one draw for several layers —


def _clones(case: Case) -> Iterator[Violation]:
    groups: dict[bool, list[list[Reading]]] = {False: [], True: []}
    for readings in _units([r for r in case.readings if math.isfinite(r.std) and r.std > 0]).values():
        for group in _alike(readings):
            if len({r.site.layer for r in group}) > 1:
                groups[len(names(group)) == 1].append(group)
    for tied, alike in groups.items():
        if alike:
            held = [r for group in alike for r in group]
            most = max(Counter((r.site.stack, r.site.kind, r.role) for group in alike for r in group[:1]).values())
            sets = "one set" if most == 1 else f"{most} sets"
            said = f"share {sets} of weights" if tied else "start identical: copies of one draw"
            yield Violation(
                topic="shared layers" if tied else "cloned layers",
                what=f"{_whole(case, held)}: layers {said}",
                recipe="every layer has its own weights, drawn independently",
                measured="the same parameters" if tied else f"correlation between layers above {ALIKE}",
                remedy="build a separate layer for each position" if tied else "build and draw each layer separately: "
                "nn.TransformerEncoder and copy.deepcopy copy weights too",
            )  # fmt: skip


def _whole(case: Case, held: Sequence[Reading]) -> str:
    """Sub-layers by name where all of their matrices are among these; else the matrices."""
    roles = {id(r.part) for r in held}
    sites = {r.site for r in held}
    every = [r for r in case.readings if r.site in sites]
    if all(id(r.part) in roles for r in every):
        return where(case, sorted(sites, key=lambda site: (site.stack != "encoder", site.index)))
    return matrices(case, held)


def has_its_gains(case: Case) -> bool:
    """Whether all that the recipe scales has the recipe's own gain, in two roles at least."""
    scaled = [r for r in case.readings if case.expected(r) not in (0.0, 1.0)]
    return len({r.role for r in scaled}) > 1 and all(case.fits(r) for r in scaled)


def _alike(readings: Sequence[Reading]) -> Iterator[list[Reading]]:
    """Groups of two or more whose entries are the same up to a factor."""
    for group in grouped((reading.shape, reading) for reading in readings).values():
        rows = torch.stack([_sampled(reading.part.weight) for reading in group])
        rows = rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-300)
        alike = (rows @ rows.T).abs() > ALIKE
        left = set(range(len(group)))
        while left:
            first = min(left)
            same = [i for i in sorted(left) if i == first or bool(alike[first, i])]
            left -= set(same)
            if len(same) > 1:
                yield [group[i] for i in same]


def _sampled(weight: torch.Tensor) -> torch.Tensor:
    flat = weight.detach().t().reshape(-1)  # rows of the parameter: no copy
    return flat[:: max(1, len(flat) // SAMPLE)][:SAMPLE].double().cpu()


# — standard deviations —


def _default(case: Case, readings: Sequence[Reading]) -> Iterator[Violation]:
    """torch's draw left in place; where all stands on it one slip, and not one a role: the gains put on that draw."""
    scaled = case.base == "linear"
    if scaled:
        readings = [r for r in case.readings if r.default or case.fits(r)]
    elif not readings:
        return
    having = [r for r in readings if r.part.bias is not None]
    biases = [r for r in having if _bias_draw(case, r) == "default"]
    which = (
        "biases" if len(biases) == len(having) else f"biases of {listed(list(dict.fromkeys(r.role for r in biases)))}"
    )
    more = f", {which} too" if biases else ""
    if scaled:
        more = f", then multiplied by the gain: {span((1 / case.over(r) for r in readings), 3)} × too small"
    yield Violation(
        topic="default initialisation",
        what=f"{matrices(case, readings)} drawn as torch's nn.Linear does by default{more}",
        recipe=f"{case.words(case.recipe_base)}, times gain {span(case.expected(r) for r in readings)} "
        f"({case.method.source}); biases 0",
        measured=f"U(±1/√fan_in){' times' if scaled else ':'} gain {span(case.gain(r) for r in readings)}",
        remedy="draw every matrix with nn.init.xavier_normal_(weight, gain=…), zero every bias",
        parameters=names(readings),
    )


def _constant(case: Case) -> Violation:
    """A base of its own, whatever the gains on it are."""
    readings = [r for r in case.readings if case.fits(r)]
    usual = BASES[case.method.recipe.base_init if case.method.recipe else "xavier_normal"]
    return Violation(
        topic="base initialisation",
        what=f"{matrices(case, readings)} drawn from {case.words('constant')}"
        + ", as in BERT and GPT-2" * (case.sigma == USUAL),
        recipe=f"a standard deviation that depends on the shape: {usual} ({case.method.source})",
        measured=case.words("constant"),
        remedy="draw every matrix with nn.init.xavier_normal_(weight, gain=…); at this width the two differ by "
        f"{span(deviation('xavier_normal', r.role, r.shape, 0) / case.sigma for r in readings)}",
        parameters=names(readings),
    )


def _deviations(case: Case, readings: Sequence[Reading]) -> Iterator[Violation]:
    units = grouped(((r.site.stack, r.site.kind, r.role, case.gain(r) > 0), r) for r in readings)
    groups: dict[tuple[str, str], list[Reading]] = defaultdict(list)
    slips = {key: _causes(case, key[2], unit) for key, unit in units.items()}
    usual = [key for key, own in slips.items() if causes.USUAL in own]
    if len({r.shape for key in usual for r in units[key]}) < 2 and len(usual) < len(
        units
    ):  # one shape happens to be so
        slips = {key: tuple(cause for cause in own if cause != causes.USUAL) for key, own in slips.items()}
    counts = Counter(cause for own in slips.values() for cause in own)
    factors = [_factor(case, unit) for unit in units.values()]
    if len(units) > 1 and max(counts.values(), default=0) < len(units) and 0 < max(factors) < 1.03 * min(factors):
        slips = {key: () for key in units}  # one factor on all of them, whatever a few would fit besides
    for key, unit in units.items():
        own = slips[key]  # of those that fit alike the one that explains most
        most = max((counts[cause] for cause in own), default=0)
        cause = "; or ".join(cause for cause in own if counts[cause] == most)
        groups[cause, "" if cause else f"{key[0]} {_factor(case, unit):.1f}"] += unit
    for (cause, _), group in groups.items():
        sites = [r.site for r in group]
        asked = by_stack(sites, group, lambda own: span(case.expected(r) for r in own))
        has = by_stack(sites, group, lambda own: span(case.gain(r) for r in own))
        yield Violation(
            topic="standard deviation",
            what=matrices(case, group, lambda own: f", {_size(case, own)}") + (f": {cause}" if cause else ""),
            recipe=f"gain {asked} ({case.method.source})",
            measured=f"gain {has}, on {case.words(case.base)}",
            remedy=f"draw with gain {asked}" + "; none where branches are meant to start at 0" * _closed(case, group),
            parameters=names(group),
        )


def _causes(case: Case, role: Role, unit: Sequence[Reading]) -> tuple[str, ...]:
    pooled = max(0.03, 6 / math.sqrt(2 * sum(r.shape[0] * r.shape[1] for r in unit)))
    base = [deviation(case.base, role, r.shape, case.sigma) for r in unit]
    slips = causes.of_gain(case.method, role, [r.site for r in unit], base, [r.shape for r in unit])
    return causes.best(slips, [case.gain(r) for r in unit], [r.slack for r in unit], pooled)


def _closed(case: Case, unit: Sequence[Reading]) -> bool:
    """Whether these close their branches at the start, which ReZero and others mean."""
    return all(r.role in ("out", "down") and case.gain(r) == 0 for r in unit)


def _factor(case: Case, unit: Sequence[Reading]) -> float:
    """Geometric mean of measured over expected; 0 where either is."""
    pairs = [(case.gain(r), case.expected(r)) for r in unit]
    if any(gain <= 0 or expected <= 0 for gain, expected in pairs):
        return 0.0
    return math.exp(sum(math.log(gain / expected) for gain, expected in pairs) / len(pairs))


def _size(case: Case, unit: Sequence[Reading]) -> str:
    factor = _factor(case, unit)
    if not factor:
        return "not 0" if all(case.expected(r) == 0 for r in unit) else "all zero"
    each = sorted(case.gain(r) / case.expected(r) for r in unit)
    if each[-1] > SEVERAL * each[0]:
        return f"{each[0]:.2f} to {each[-1]:.2f} × the recipe's"
    return f"{max(factor, 1 / factor):.2f} × too {'large' if factor > 1 else 'small'}"


# — biases, embeddings, norms —


def _biases(case: Case, seen: set[int]) -> Iterator[Violation]:
    groups: dict[str, list[Reading]] = defaultdict(list)
    for r in case.readings:
        if r.part.bias is not None and float(_bias(r).abs().max()) > NOTHING / math.sqrt(r.shape[0]):
            draw = _bias_draw(case, r)
            if draw == "default" and case.base == "torch_uniform":
                continue
            if draw != "default" or id(r) not in seen:
                groups[draw].append(r)
    if groups["scaled"]:  # beside scaled ones, those of query and key show the same cause
        groups["scaled"] += groups.pop("default", [])
    words = {
        "default": " (torch's default draw)",
        "scaled": " (torch's default draw, times the gain: a rule by names takes biases too)",
        "": "",
    }
    for draw, readings in groups.items():
        if readings:
            yield Violation(
                topic="bias",
                what=f"{matrices(case, readings)} with biases that are not 0{words[draw]}",
                recipe=f"biases start at 0 ({case.method.source})",
                measured=f"greatest {span(float(_bias(r).abs().max()) for r in readings)}",
                remedy="nn.init.zeros_(bias)",
                parameters=tuple(dict.fromkeys(r.part.bias_name for r in readings if r.part.bias_name)),
            )


def _bias_draw(case: Case, r: Reading) -> str:
    """Whether a bias is torch's default draw, U(±1/√fan_in), or that times what its matrix was multiplied by."""
    bound, peak = 1 / math.sqrt(r.shape[0]), float(_bias(r).abs().max())
    if 0.85 * bound < peak <= 1.0001 * bound:
        return "default"
    scales = (case.gain(r), r.std * math.sqrt(3) / bound)  # on Xavier, or on the default
    return "scaled" if any(0.85 < peak / (scale * bound) <= 1.05 for scale in scales if scale) else ""


def _bias(r: Reading) -> torch.Tensor:
    assert r.part.bias is not None
    return r.part.bias.detach().float()


def _embedding(case: Case, anatomy: Anatomy) -> Iterator[Violation]:
    """Where the recipe scales the embedding: N(0, 1/d), or N(0, 1) where nothing multiplies by √d, times its gain."""
    gain = case.method.gain(case.sites[0], "embedding")
    tables = [p for p in anatomy.outside if p.role == "embedding" and p.weight.shape[-1] == case.width]
    if gain == 1.0 or not tables:
        return
    stds = [float(w[(w != 0).any(-1)].double().std(correction=0)) for w in (p.weight.detach() for p in tables)]
    units = (1.0, 1 / math.sqrt(case.width))
    if not any(abs(std / (gain * unit) - 1) < 0.05 for std in stds for unit in units):
        yield Violation(
            topic="embedding",
            what=f"the embedding's standard deviation is {span(stds)}",
            recipe=f"{gain:.4g}/√d = {gain * units[1]:.4g} ({case.method.source})",
            measured=span(stds),
            remedy=f"draw it from N(0, 1/d) times {gain:.4g}",
            parameters=tuple(p.name for p in tables),
        )


def _norm_weights(anatomy: Anatomy) -> Iterator[Violation]:
    odd = [n for n, w, b in anatomy.norms if bool((w != 1).any()) or (b is not None and bool((b != 0).any()))]
    if odd:
        yield Violation(
            topic="norm weights",
            what=f"{len(odd)} of {len(anatomy.norms)} norms do not start at weight 1 and bias 0",
            recipe="norms start at weight 1 and bias 0",
            measured="other values",
            remedy="do not draw or scale norms",
            parameters=tuple(odd),
        )
