"""What Theorems 2, 3 and 4 of DeepNet make of a run: the size of ‖ΔF‖ up to a constant.

From the measured ‖Δθ‖, for norms after the sum:

    one stack (Thm 2)          Σ_i √(v_i² + w_i²)/α_i · ‖Δθ_i‖
    encoder-decoder (Thm 3)    Σ_cross v·w/α · Σ_encoder √(v² + w²)/α · ‖Δθ‖  +  Σ_decoder √(v² + w²)/α · ‖Δθ‖

For Sub-LN's two norms a branch, in one stack under SGD at a small rate η alone:

    one stack (Thm 4)          η·Σ_l (1 + v_l²/w_l²)/S_L · ( 1 + Σ_{k=2}^L 1/S_{k−1} ),  S_k = Σ_{n≤k} v_n²

which is η·2·(1 + Σ_{k<L} 1/k), so log L, at Xavier. There is no such theorem of two stacks, nor of Pre-LN, whose branch
has no inner norm.

v and w are the scales of the last and of the first map of a branch (W₂ and W₁, W_O and W_V): β, the method's initial
gain at that site, 1 at Xavier initialisation. α is the weight of the shortcut, read from the records (‖LN input‖ over
its own value in units of ω√d gives ω). Methods without norms have no prediction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from stabkit import methods
from stabkit.methods import blocks
from stabkit.methods.base import PLACES, Method, Role, Site, sites
from stabkit.methods.parts import Part, normalises
from stabkit.results.run import Run
from stabkit.results.schedule import total
from stabkit.spec import RunSpec


@dataclass(frozen=True, slots=True)
class _Shape:
    """All of a spec that the theorems ask for but the rate; equal where seeds, steps and data alone differ."""

    spec: RunSpec = field(compare=False)
    values: tuple[object, ...]


def _shape(spec: RunSpec) -> _Shape:
    model, options = spec.model, tuple(sorted(spec.options.items()))
    size = (model.encoder_layers, model.decoder_layers, model.hidden, model.base_init, blocks.name_of(model))
    return _Shape(spec, (spec.method, options, spec.alpha_scale, spec.beta_scale, *size))


@dataclass(frozen=True, slots=True)
class _Term:
    """A sub-layer: its names in the records, √d, and what v and w make of it."""

    name: str
    omega: str
    root: float
    both: float
    product: float
    """√(v² + w²), and v·w."""
    below: bool
    """In the encoder of an encoder-decoder."""
    cross: bool


def number_of(spec: RunSpec) -> int:
    """Norms after the sum: 3 for an encoder-decoder, 2 for one stack. One stack of Sub-LN's wiring: 4. Else 0.

    The theorems' sub-layers have nothing else on the branch, but for Sub-LN's inner norm in Theorem 4, and each reads
    the one before it: they do not speak of NormFormer or DLCL.
    """
    return _number(_shape(spec))


@lru_cache(maxsize=512)  # of every run, at several steps, for several figures; a page shows far fewer shapes
def _number(shape: _Shape) -> int:
    spec = shape.spec
    method, method_sites = methods.of(spec), _sites(spec)
    if method is None or blocks.name_of(spec.model) != "classic":
        return 0
    inner = {(place, method.inner(site, place)) for site in method_sites for place in PLACES}
    inner -= {(place, "") for place in PLACES}
    if method.wiring != "chain" or any(method.norm_branch(site) for site in method_sites) or inner - {("last", "norm")}:
        return 0
    before, after = (all(_normed(norm(site)) for site in method_sites) for norm in (method.norm_in, method.norm_out))
    two = spec.model.encoder_layers > 0 < spec.model.decoder_layers
    if before and inner and not two and not any(method.norm_out(site) for site in method_sites):
        return 4
    if not after or inner or any(method.norm_in(site) for site in method_sites):
        return 0
    return 3 if two else 2


@lru_cache(maxsize=512)
def _terms(shape: _Shape) -> tuple[_Term, ...]:
    """Every sub-layer of a model that Theorem 2 or 3 speaks of, in the order of the forward pass."""
    spec, terms = shape.spec, []
    method = methods.of(spec)
    for site in _sites(spec) if method else ():
        v, w = _vw(method, site)  # type: ignore[arg-type]  # there are no sites without a method
        below, cross = site.stack == "encoder" and spec.model.decoder_layers > 0, site.kind == "cross"
        name, root = site.name, math.sqrt(site.width)
        terms.append(_Term(name, f"{name}@omega", root, math.hypot(v, w), v * w, below, cross))
    return tuple(terms)


def _normed(part: Part) -> bool:
    return normalises(part, "layer")


def _sites(spec: RunSpec) -> tuple[Site, ...]:
    return sites(spec.model.encoder_layers, spec.model.decoder_layers, spec.model.hidden, spec.model.base_init)


def _vw(method: Method, site: Site) -> tuple[float, float]:
    """(v, w): the gains of the last map and of the one before it, W₂ and W₁, W_O and W_V."""
    roles: tuple[Role, Role] = ("down", "up") if site.kind == "ffn" else ("out", "value")
    last, first = roles
    return method.gain(site, last), method.gain(site, first)


def predicted(run: Run, step: int) -> float:
    """What the theorem that speaks of a run's method makes of a recorded step; NaN where none does, or the records lack
    what it needs. Of one stack the sum over its sub-layers stands under `decoder`."""
    spec, records = run.spec, run.records
    if number_of(spec) == 4:
        return _theorem_4(spec, step)
    moved, ln_input = records.get("parameter_update"), records.get("ln_input")
    if number_of(spec) not in (2, 3) or moved is None or ln_input is None:
        return math.nan
    delta, first = moved.row(step), dict(zip(ln_input.sites, ln_input.values[0].tolist(), strict=True))
    if delta is None:
        return math.nan
    encoder = decoder = crossing = 0.0
    for term in _terms(_shape(spec)):
        if term.name not in delta or term.name not in first:
            return math.nan
        over = first[term.omega] * term.root
        alpha = first[term.name] / over if over > 0 else 0.0
        if not 0 < alpha < math.inf:  # nothing enters this norm, or nothing finite
            return math.nan
        share = term.both / alpha * delta[term.name]
        if term.below:
            encoder += share
        else:
            decoder += share
            crossing += term.product / alpha if term.cross else 0.0
    return crossing * encoder + decoder


def _theorem_4(spec: RunSpec, step: int) -> float:
    """Over all sub-layers of the one stack; NaN but for SGD."""
    method, method_sites = methods.of(spec), _sites(spec)
    if method is None or spec.train.optimizer != "sgd":
        return math.nan
    v, w = (np.array(each) for each in zip(*(_vw(method, site) for site in method_sites), strict=True))
    sums, ratio = np.cumsum(v**2), (1 + v**2 / w**2).sum()
    return float(total(spec.train, step) * ratio / sums[-1] * (1 + (1 / sums[:-1]).sum()))
