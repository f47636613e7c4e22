"""The `--json` document of methods: formulas, constants, sources, claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from stabkit import methods as table
from stabkit.claims import EVERY
from stabkit.claims.base import Weight
from stabkit.methods import constants, formula, support
from stabkit.methods.base import Assumed, Method, Recipe, defined, sites
from stabkit.methods.constants import ConstantsJson
from stabkit.methods.groups import group_of
from stabkit.methods.recent import OUT
from stabkit.methods.wirings import named
from stabkit.report.json_document import SCHEMA, Document
from stabkit.spec import depth_text

PROFILED = (
    "a sweep's first model: base initialisation xavier_normal, 64-128-2, no dropout; synthetic task, 512 tokens a "
    "batch, seed 0 (fairseq_uniform, dropout and wider layers give other ω)"
)
"""What profiles are read from."""
Profiles = Mapping[tuple[int, int], Mapping[str, float]]
"""{(N, M): {site name: ω}}, of a method that profiles, where it alone is asked for."""


class CarriedClaimJson(TypedDict):
    """A claim that a method's runs test."""

    id: str
    sentence: str
    source: str
    weight: Weight


class UndefinedDepthJson(TypedDict):
    """A depth for which the method has no constants."""

    depth: str
    undefined: str


class DepthJson(TypedDict):
    """A method's constants at one depth."""

    depth: str
    parameters_added: int
    """Compared with Post-LN (64-128-2)."""
    embedding: float
    """What the embedding is multiplied by."""
    constants: list[ConstantsJson]
    profiled: NotRequired[str]
    """What ω was read from, of a method that profiles."""


class MethodJson(TypedDict):
    """A method."""

    key: str
    label: str
    group: str
    formula: str
    scales: str
    derived_for: tuple[Assumed, ...]
    source: str
    options: dict[str, tuple[str, ...]]
    recipe: Recipe | None
    factors: dict[str, str]
    """{depth: what rate and ε are multiplied by}."""
    claims: list[CarriedClaimJson]
    able: dict[str, str]
    """{command: what it can do for this method}."""
    wiring: str
    depths: list[DepthJson | UndefinedDepthJson]


class OutJson(TypedDict):
    """A scheme that is not here."""

    key: str
    label: str
    formula: str
    needs: str
    source: str


class MethodsDocument(Document):
    """`stabkit methods`."""

    methods: list[MethodJson]
    out: list[OutJson]


def methods(chosen: Sequence[Method], depths: Sequence[tuple[int, int]], profiles: Profiles) -> MethodsDocument:
    """All of them at each of these depths; of several also what is not here."""
    out: list[OutJson] = [
        {"key": key, "label": one.label, "formula": one.formula, "needs": one.needs, "source": one.source}
        for key, one in (OUT.items() if len(chosen) > 1 else ())
    ]
    return {"schema": SCHEMA, "methods": [_method(method, depths, profiles) for method in chosen], "out": out}


def _method(method: Method, depths: Sequence[tuple[int, int]], profiles: Profiles) -> MethodJson:
    return {
        "key": method.key,
        "label": method.label,
        "group": group_of(method),
        "formula": formula.text(method),
        "scales": method.constants,
        "derived_for": method.assumes,
        "source": method.source,
        "options": options(method),
        "recipe": method.recipe,
        "factors": {depth_text(n, m): formula.factors(method, n, m) for n, m in depths if not method.undefined(n, m)},
        "claims": claims(method),
        "able": {"audit": audited(method)},
        "wiring": named(method.wiring),
        "depths": [_at_depth(method, n, m, profiles) for n, m in depths],
    }


def _at_depth(method: Method, n: int, m: int, profiles: Profiles) -> DepthJson | UndefinedDepthJson:
    if reason := method.undefined(n, m):
        return {"depth": depth_text(n, m), "undefined": reason}
    body: DepthJson = {
        "depth": depth_text(n, m),
        "parameters_added": constants.added(method, n, m),
        "embedding": method.gain(sites(n, m, constants.WIDTH)[0], "embedding"),
        "constants": constants.of_depth(method, n, m, profiles.get((n, m))),
    }
    if profiles:
        body["profiled"] = PROFILED
    return body


def audited(method: Method) -> str:
    """What `audit` can do for this method."""
    return support.audit_words(method, sites(*defined(method, 6), constants.WIDTH))


def options(method: Method) -> dict[str, tuple[str, ...]]:
    """The options of a built-in method."""
    return table.options(method.key) if method.key in table.KEYS else {}


def claims(method: Method) -> list[CarriedClaimJson]:
    """Those that its runs test."""
    carried = [claim for claim in EVERY if method.key in claim.methods]
    return [
        {"id": claim.key, "sentence": claim.sentence, "source": claim.source, "weight": claim.weight}
        for claim in carried
    ]
