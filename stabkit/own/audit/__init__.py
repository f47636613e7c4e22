"""A user's own model against a method's recipe: `audit(model, method, n, m)` runs it once and says what is violated.

    case.py     the sub-layers found (`own/sublayers`) beside the method's sites, every matrix measured
    structure.py · scales.py · weights.py   what of them violates the recipe
    mask.py     whether a token sees those after it
    causes.py   the slips that give a wrong number
    words.py    many places as one phrase

Nothing looks at the names or classes of the user's modules. Followed are sums x + f(x) one after another with softmax
attention and feed-forwards of two matrices or more, LayerNorm and RMSNorm (also written by hand). Not followed, and
said: attention without a softmax, recurrences, convolutions over several positions. How much of the layers' matrices
was read is counted (`sublayers/anatomy.py`): below ENOUGH neither depth nor sub-layers are judged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from stabkit import methods
from stabkit.errors import UsageError
from stabkit.methods import support
from stabkit.methods.base import Method, Site, Stack, defined, sites
from stabkit.own.audit import scales, structure, weights
from stabkit.own.audit.case import KINDS, Case, Violation
from stabkit.own.audit.mask import sees_ahead
from stabkit.own.chain.reader import guessed
from stabkit.own.factory import one_line
from stabkit.own.first_look import Remark, Sight, first_look, sight
from stabkit.own.sublayers import run
from stabkit.own.sublayers.anatomy import Anatomy, Coverage, and_more, dissect
from stabkit.own.sublayers.anatomy import Stack as Found
from stabkit.own.sublayers.reading import logits
from stabkit.own.sublayers.sublayer import Beside
from stabkit.own.sublayers.watch import DispatchTrace
from stabkit.results.own.guess import WIDE


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditRow:
    """What was found of one kind of sub-layer in one stack: scales layer by layer, norms, deviations by role."""

    stack: str
    kind: str
    layers: int
    sum: str
    omega: tuple[float, ...]
    gamma: tuple[float, ...]
    norm: str
    deviations: dict[str, tuple[float, float]]
    """{role: least and greatest standard deviation over the recipe's}; over the base's where the recipe says 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What was found in a model, and what of the recipe it violates."""

    method: Method
    depth: str
    ran: str
    """The inputs that it was run with."""
    base: str
    """The base initialisation recognised."""
    rows: tuple[AuditRow, ...]
    outside: tuple[tuple[str, tuple[int, ...], float], ...]
    """(parameter, shape, standard deviation) of matrices outside of all sub-layers."""
    findings: tuple[Violation, ...]
    notes: tuple[str, ...]
    """What was not recognised, or not judged."""
    coverage: Coverage
    """How much of the model was read."""
    unjudged: str
    """Why the model as a whole is not judged; "" where it is."""

    @property
    def undecided(self) -> bool:
        """Whether nothing is violated by what was judged, and that is too little."""
        return not self.findings and bool(self.unjudged)


def audit(
    model: nn.Module,
    method: Method | None = None,
    n: int | None = None,
    m: int | None = None,
    inputs: Any = None,
    arch: Sequence[Stack] = (),
) -> Audit:
    """What `model`, said to be N encoder and M decoder layers of `method`, violates of its recipe.

    Without N and M the depth is what is found, without a method the recipe that fits best. `inputs` is a tuple for
    `model(*inputs)` or a dict for `model(**inputs)`; without it plain ones are tried. N or M is 0 for one stack.
    `arch`: the stacks that it is said to have, a decoder being causal. The model is left as it was. Raises UsageError
    where nothing can be recognised.
    """
    if (n is None) != (m is None):
        raise UsageError("audit: give both N and M (0 for a missing stack), or neither")
    said = None if n is None or m is None else (n, m)
    if method is not None and said is not None and (why := method.undefined(*said)):
        raise UsageError(f"{method.key}: {why}")
    if method is not None and (why := support.audits(method, _sites(method, said))):
        raise UsageError(f"{method.key}: {why}")
    run.refuse(model)
    found = recognised(model, said, inputs, arch[0] if len(arch) == 1 else None)
    anatomy, stacks = found.anatomy, found.stacks
    counts = tuple(stacks[stack].layers if stack in stacks else 0 for stack in ("encoder", "decoder"))
    n, m = said or counts
    notes = list(anatomy.notes)
    if not anatomy.coverage.whole:
        notes.append(f"{anatomy.coverage.sentence}: neither depth nor sub-layers are judged")
    elif anatomy.unknown:
        names = and_more(anatomy.unknown)
        notes.append(f"{names}: in a branch, but recognised neither as attention nor as feed-forward; not judged")
    notes += _beside(anatomy)
    depends = found.depends
    if depends is not None and depends.rows:
        notes.append("a row's output depends on other rows of the batch")
    if depends is not None and not depends.order:
        notes.append("a token's output does not depend on the order of those before it: no positions reach attention")
    ahead = found.ahead
    if (found.called is None and not arch and len(stacks) == 1) or (ahead is None and "decoder" in arch):
        so = "its mask is not judged" if arch else "it is called an encoder"
        notes.append(f"whether a token's output depends on the tokens after it was not seen: {so}")
    if method is None:
        method = _closest(anatomy, stacks, n, m)
        notes.insert(0, f"no --method was given: {method.label}'s recipe fits best")
    elif why := method.undefined(n, m):
        raise UsageError(f"{method.key}: {why}")
    whole = anatomy.coverage.whole
    case = Case(method, stacks, whole=whole)
    if high := _scores(model, found.watch, anatomy):
        notes.append(high)
    others = [stack for stack in anatomy.stacks if stack not in stacks.values()]
    left = sum(len(stack.sublayers) for stack in others)
    most = left <= sum(len(stack.sublayers) for stack in stacks.values())
    if left:
        named = [part.name for stack in others for own in stack.sublayers for part in own.parts if part.name]
        which = f" ({and_more(list(dict.fromkeys(named)))})" if named else ""
        notes.append(
            f"{left} sub-layers of other stacks{which} were not judged" + "; nor the structure of these" * (not most)
        )
    apart = ", ".join(f"{KINDS[kind]} ({count} sub-layer{'s' * (count > 1)})" for kind, count in case.apart.items())
    if apart:
        notes.append(f"{apart}, which {method.label}'s recipe for one stack lacks: not judged")
    if beside := support.unjudged(method, case.sites):
        notes.append(f"not compared with {method.label}'s recipe: {', '.join(beside)}")
    return Audit(
        method=method,
        depth=case.depth,
        ran=found.ran,
        base=case.drawn,
        rows=tuple(_rows(case)),
        outside=tuple(_outside(anatomy, dict(model.named_parameters(remove_duplicate=False)))),
        findings=(
            *(_violation(remark) for remark in first_look(model)),
            *([AHEAD] if ahead and "decoder" in arch else []),
            *(structure.judge(case, n, m, whole=whole) if most else ()),
            *(scales.judge(case) if most else ()),
            *weights.judge(case, anatomy),
        ),
        notes=tuple(notes),
        coverage=anatomy.coverage,
        unjudged=anatomy.coverage.sentence
        if not whole
        else f"{left} sub-layers are of other stacks"
        if left
        else f"{apart} was not judged" * bool(apart),
    )


def stacks_of(model: nn.Module, inputs: Any = None) -> tuple[Stack, ...]:
    """`encoder`, `decoder`, or both where the one reads the other; found by running the model."""
    run.refuse(model)
    return tuple(recognised(model, None, inputs).stacks)


AHEAD = Violation(
    topic="mask",
    what="decoder: a token's output depends on the tokens after it",
    recipe="a decoder's token sees none after it",
    measured="another last token changes the first one's output",
    remedy="mask them: with scaled_dot_product_attention True is what may be seen, elsewhere it may be what may not",
)


def _violation(remark: Remark) -> Violation:
    """What is wrong with any model, as a violation of every recipe."""
    return Violation(
        topic=remark.topic,
        what=remark.sentence,
        recipe="every parameter is drawn, and finite",
        measured=f"{len(remark.names)} of the model's tensors",
        remedy=remark.remedy,
        parameters=remark.names,
    )


def _beside(anatomy: Anatomy) -> Iterator[str]:
    """What stands in the layers beside attention and feed-forward, and is compared with nothing."""
    every = [own for stack in anatomy.stacks for own in stack.sublayers]
    for word, label in BESIDE.items():
        if names := [part.name for own in every for kind, part in own.aside if kind == word]:
            yield f"{label} ({and_more(names)}): not judged"
    if conditional := sum(own.conditional for own in every):
        yield f"scales of {conditional} sub-layers depend on a condition (adaLN): not judged"


BESIDE: dict[Beside, str] = {
    "adapter": "low-rank adapters",
    "router": "gates that weigh experts or heads",
    "latent": "matrices before a query, key or value",
    "condition": "matrices that make scales of a condition",
}


def _closest(anatomy: Anatomy, stacks: dict[Stack, Found], n: int, m: int) -> Method:
    """The recipe of which least is violated: one whose constants stand in the sums to three digits, or whose gains are
    on the matrices, before any whose scales are free or 1; then by where most norms stand; then in structure and
    scales, then in what was drawn; of two alike the one of which everything is compared."""
    ranked: list[tuple[bool, bool, int, int, bool, int, Method]] = []
    for key in methods.KEYS:
        method = methods.build(key, {})
        if not method.undefined(n, m) and not support.audits(method, sites(n, m, WIDTH)):
            whole = anatomy.coverage.whole
            case = Case(method, stacks, whole=whole)
            built = sum(1 for _ in (*structure.judge(case, n, m, whole=whole), *scales.judge(case)))
            drawn = sum(1 for _ in weights.judge(case, anatomy))
            known = scales.has_its_constants(case) or weights.has_its_gains(case)
            partly = bool(support.unjudged(method, case.sites))
            ranked.append((not known, structure.stands_elsewhere(case), built, drawn, partly, len(ranked), method))
    return min(ranked)[-1]


WIDTH = 64
"""Of sites that are asked for no size."""


def _sites(method: Method, said: tuple[int, int] | None) -> tuple[Site, ...]:
    return sites(*(said or defined(method, 2)), WIDTH)


def _scores(model: nn.Module, watch: DispatchTrace, anatomy: Anatomy) -> str:
    """What is to be said of the scores that a model of tokens begins with; "" for any other."""
    scores = logits(watch.returned)
    if scores is None or not any(node.op == "embedding" for node in watch.nodes):
        return ""
    known = dict(model.named_parameters(remove_duplicate=False))
    worth = guessed(scores, None, (anatomy.head, known.get(anatomy.head)))
    return worth.high() if worth is not None and worth.scale > WIDE else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recognised:
    """A model, run once."""

    ran: str
    """The inputs, in words."""
    watch: DispatchTrace
    anatomy: Anatomy
    stacks: dict[Stack, Found]
    depends: Sight | None
    ahead: bool | None
    """Whether a token of the decoder, or of the one stack, sees those after it; None where nothing tells."""
    called: bool | None
    """The same, by what a row gives where no place does: enough for a stack's name, and for no violation."""


def recognised(model: nn.Module, said: tuple[int, int] | None, inputs: Any, alone: Stack | None = None) -> Recognised:
    """By the first way of running the model that shows its stacks."""
    tried: Sequence[tuple[str, Any]] = (
        list(run.candidates(model, bool(said and all(said)))) if inputs is None else [("its own inputs", inputs)]
    )
    failed: list[tuple[str, str]] = []
    unclear: UsageError | None = None
    for ran, values in tried:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                watch = run.watched(model, values)
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            failed.append((ran, one_line(error)))
            continue
        anatomy = dissect(watch)
        depends, ahead = sight(model, values), sees_ahead(model, values, anatomy)
        if ahead is None and depends is not None and not anatomy.encoder_of:  # states of other axes
            ahead = depends.ahead
        try:
            called = ahead if ahead is not None else run.looks_ahead(model, values)
            stacks = _stacks(anatomy, said, alone, called)
        except UsageError as error:
            unclear = unclear or error
            continue
        return Recognised(
            ran=ran, watch=watch, anatomy=anatomy, stacks=stacks, depends=depends, ahead=ahead, called=called
        )
    if unclear is not None:
        raise unclear
    ran, raised = failed[0]
    if inputs is not None:
        raise UsageError(f"the model raised {raised} on its inputs")
    raise UsageError(f"found no inputs that the model accepts (with {ran}: {raised}); {run.RETURN_INPUTS}")


def _stacks(
    anatomy: Anatomy,
    said: tuple[int, int] | None,
    alone: Stack | None,
    ahead: bool | None,
) -> dict[Stack, Found]:
    """The stacks by name; a single one that nobody named is a decoder where its tokens do not see those `ahead`."""
    stacks = anatomy.stacks
    if not stacks:
        raise UsageError(
            "no residual sub-layer x + f(x) was recognised in the model's forward pass; the audit follows sums, "
            "scales, norms and matrix products" + (f" ({anatomy.notes[0]})" if anatomy.notes else "")
        )
    if said is None:
        causal = alone == "decoder" or (alone is None and ahead is False)
        said = (1, 1) if anatomy.encoder_of else (0, 1) if causal else (1, 0)
    if all(said):
        if not anatomy.encoder_of:
            raise UsageError(
                f"found no cross-attention between stacks, but {len(stacks)} "
                f"stack{'s' * (len(stacks) > 1)}; for one stack use --arch encoder-only or decoder-only"
            )
        decoder = max(anatomy.encoder_of, key=lambda i: len(stacks[i].sublayers))
        return {"encoder": stacks[anatomy.encoder_of[decoder]], "decoder": stacks[decoder]}
    if anatomy.encoder_of:
        raise UsageError("the model has an encoder and a decoder with cross-attention; use --arch encoder-decoder")
    return {"encoder" if said[0] else "decoder": max(stacks, key=lambda stack: len(stack.sublayers))}


def _rows(case: Case) -> list[AuditRow]:
    rows = []
    for stack, model_stack in case.stacks.items():
        for kind in KINDS:
            sublayers = [s for s in model_stack.sublayers if s.kind == kind]
            if sublayers:
                deviations: dict[str, list[float]] = {}
                for r in case.readings:
                    if (r.site.stack, r.site.kind) == (stack, kind):
                        deviations.setdefault(r.role, []).append(case.over(r))
                norms = dict.fromkeys(structure.stands(structure.measured(s)) for s in sublayers)
                rows.append(
                    AuditRow(
                        stack=stack,
                        kind=kind,
                        layers=len(sublayers),
                        sum=scales.sums((s.omega, s.gamma) for s in sublayers),
                        omega=tuple(s.omega for s in sublayers),
                        gamma=tuple(s.gamma for s in sublayers),
                        norm=" / ".join(norms),
                        deviations={role: (min(values), max(values)) for role, values in deviations.items()},
                    )
                )
    return rows


def _outside(anatomy: Anatomy, known: Mapping[str, nn.Parameter]) -> list[tuple[str, tuple[int, ...], float]]:
    """Shapes are those that the module gives its parameters. What stands inside and was not read is not outside."""
    return [
        (
            part.name,
            tuple((known[part.name] if part.name in known else part.weight).shape),
            float(part.weight.detach().double().std(correction=0)),
        )
        for part in anatomy.outside
        if part.weight.is_floating_point() and part.name not in anatomy.coverage.left
    ]
