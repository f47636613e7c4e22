"""What shortcut and branch are multiplied by, against ω and γ.

Where a norm follows the sum, LN(ω·x + γ·f) is LN(x·ω/γ + f): the ratio alone is judged. Scales are written down, not
drawn: they are judged within 1 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from stabkit.methods import formula
from stabkit.methods.base import Kind, Method, Site, Stack
from stabkit.own.audit import causes
from stabkit.own.audit.case import Case, Violation
from stabkit.own.audit.words import by_stack, grouped, span, where
from stabkit.own.sublayers.sublayer import TracedSublayer

CLOSE = 0.01
EXACT = 1e-3
DIGITS = 5

Pairs = list[tuple[Site, TracedSublayer]]


def judge(case: Case) -> Iterator[Violation]:
    """Violations in scales."""
    if case.method.calibrate is None:
        yield from _fixed(case)
    else:
        yield from _profiled(case)
    yield from _kappas(case)
    for stack, found in case.stacks.items():
        if found.final_norms and not _near(found.final_gain, 1.0):
            yield Violation(
                topic="scale",
                what=f"{stack}: the final norm's output is multiplied by {found.final_gain:.4g}, not 1",
                recipe=f"1: {formula.text(case.method)} ({case.method.source})",
                measured=f"× {found.final_gain:.4g}",
                remedy="let its gain start at 1: where a norm multiplies by 1 + weight, that weight at 0",
            )
    yield from _logits(case)
    scaled = [(site, own) for site, own in case.pairs if not _near(own.stream, 1.0)]
    if scaled:
        factor = span(own.stream for _, own in scaled)
        yield Violation(
            topic="stream",
            what=f"{where(case, [site for site, _ in scaled])}: the norm's output is multiplied by {factor} before "
            "shortcut and branch read it",
            recipe=f"the branch reads the norm's output itself: {formula.text(case.method)} ({case.method.source})",
            measured=f"× {factor}",
            remedy="multiply only the shortcut",
        )


def has_its_constants(case: Case) -> bool:
    """Whether every sum has the recipe's own ω and γ to three digits, and they are not all 1."""
    method = case.method
    if method.calibrate is not None or not case.pairs:
        return False
    wanted = [(method.omega(site).init, method.gamma(site).init) for site, _ in case.pairs]
    if all(pair == (1.0, 1.0) or 0.0 in pair for pair in wanted):
        return False
    ratios = [
        (omega / gamma, own.omega / own.gamma if own.gamma else 0.0)
        for (omega, gamma), (_, own) in zip(wanted, case.pairs, strict=True)
        if gamma
    ]
    return all(abs(has - asked) <= EXACT * asked for asked, has in ratios)


def sums(scales: Iterable[tuple[float, float]]) -> str:
    """`2.711·x + f(x)`."""
    omegas, gammas = zip(*scales, strict=True)
    terms = ((span(omegas, DIGITS), "x"), (span(gammas, DIGITS), "f(x)"))
    return " + ".join(name if factor == "1" else f"{factor}·{name}" for factor, name in terms)


def _fixed(case: Case) -> Iterator[Violation]:
    method = case.method
    units: dict[tuple[Stack, Kind], Pairs] = defaultdict(list)
    streamed = {site.stack for site, sublayer in case.pairs if not _near(sublayer.stream, 1.0)}
    for site, sublayer in case.pairs:
        if site.stack in streamed and (
            site.index == 1 or _near(sublayer.omega * sublayer.stream, method.omega(site).init)
        ):
            continue  # that is said there
        if not sublayer.conditional and not _fits(method, site, sublayer):
            units[site.stack, site.kind].append((site, sublayer))
    groups: dict[str, Pairs] = defaultdict(list)
    for pairs in units.values():
        groups[_cause(method, pairs) or f"{_asked(method, pairs)} {_has(pairs)}"] += pairs
    for pairs in groups.values():
        cause = _cause(method, pairs)
        sites = [site for site, _ in pairs]
        asked, has = by_stack(sites, pairs, lambda own: _asked(method, own)), by_stack(sites, pairs, _has)
        yield Violation(
            topic="scale",
            what=f"{where(case, sites)}: {cause or f'{has}, not {asked}'}",
            recipe=f"{asked} ({method.source})",
            measured=has,
            remedy=f"let the sum be {asked}",
        )


def _profiled(case: Case) -> Iterator[Violation]:
    """A method whose ω come from data: they are not known here, but not one number throughout, nor on the branch."""
    idle = []
    for stack in case.stacks:
        pairs = [(site, own) for site, own in case.pairs if site.stack == stack]
        if len(pairs) > 1 and all(_near(own.omega, pairs[0][1].omega) for _, own in pairs):
            idle += pairs
    if idle:
        branch = any(not _near(own.gamma, 1.0) for _, own in idle)
        one = f"every ω is {idle[0][1].omega:.4g}: nothing was profiled"
        yield Violation(
            topic="scale",
            what=f"{where(case, [site for site, _ in idle])}: {'the factors are on the branch' if branch else one}",
            recipe=f"{formula.text(case.method)} ({case.method.source})",
            measured=_has(idle),
            remedy="run the profiling pass over one large batch and put each ω on its shortcut",
        )


def _kappas(case: Case) -> Iterator[Violation]:
    """κ, the factor on what the branch reads, where a norm stands before it."""
    method = case.method
    off = [
        (site, own)
        for site, own in case.pairs
        if own.norm_in and own.kappa and not own.conditional and not _near(own.kappa, method.kappa(site))
    ]
    off += [(site, own) for site, own in case.pairs if own.norm_in and not own.kappa and method.kappa(site)]
    if not off:
        return
    has, asked = span((own.kappa for _, own in off), DIGITS), span((method.kappa(site) for site, _ in off), DIGITS)
    cause = ": every branch reads 0" if all(own.kappa == 0 for _, own in off) else ""
    yield Violation(
        topic="scale",
        what=f"{where(case, [site for site, _ in off])}: the branch's input is multiplied by {has}, not {asked}{cause}",
        recipe=f"κ = {asked}: {formula.text(method)} ({method.source})",
        measured=f"× {has}",
        remedy=f"multiply the norm's output by {asked}",
    )


def _logits(case: Case) -> Iterator[Violation]:
    """c in softmax(c·Q·Kᵀ), which is 1/√d_head unless a norm stands on queries and keys."""
    off = (
        ((round(own.logit, DIGITS), own.head, case.folds(site, own)), (site, own))
        for site, own in case.pairs
        if own.logit is not None
        and own.head
        and not (case.method.inner(site, "query") or case.method.inner(site, "key"))
        and not _near(own.logit, own.head**-0.5)
    )
    for (factor, head, folded), pairs in grouped(off).items():
        places = where(case, [site for site, _ in pairs])
        yield Violation(
            topic="scale",
            what=f"{places}: logits are multiplied by {factor:.4g}, not 1/√{head} = {head**-0.5:.4g}"
            + "; the query is drawn smaller or larger by as much (T5)" * folded,
            recipe=f"softmax(q·k/√d_head) ({case.method.source})",
            measured=f"× {factor:.4g}",
            remedy=f"multiply q·k by 1/√{head}"
            + " and draw the query with its gain, or keep both as they are" * folded,
        )


def _fits(method: Method, site: Site, sublayer: TracedSublayer) -> bool:
    omega, gamma = method.omega(site).init, method.gamma(site).init
    if sublayer.norm_out and sublayer.gamma and gamma:
        return _near(sublayer.omega / sublayer.gamma, omega / gamma)
    return _near(sublayer.omega, omega) and _near(sublayer.gamma, gamma)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(abs(b), 1e-4)


def _cause(method: Method, pairs: Pairs) -> str:
    wanted = [(method.omega(site).init, method.gamma(site).init) for site, _ in pairs]
    if all(pair == (1.0, 1.0) for pair in wanted):
        return "scaled; the recipe is not"
    if any(own.gamma == 0 for _, own in pairs) or any(gamma == 0 for _, gamma in wanted):
        return ""
    ratios = [own.omega / own.gamma for _, own in pairs]
    slips = causes.of_scale(method, [site for site, _ in pairs])
    return "; or ".join(causes.best(slips, ratios, [CLOSE] * len(pairs), CLOSE))


def _asked(method: Method, pairs: Sequence[tuple[Site, TracedSublayer]]) -> str:
    return sums((method.omega(site).init, method.gamma(site).init) for site, _ in pairs)


def _has(pairs: Sequence[tuple[Site, TracedSublayer]]) -> str:
    return sums((own.omega, own.gamma) for _, own in pairs)
