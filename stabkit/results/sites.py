"""What runs record: a row a probe, with the sites that any reader may ask for. Without torch, so that both sides
of the store can hold it.

The file of a row's probe is `probes/<name>.py`; the class in it may record more sites than its row names (the
embedding, a second stream), never fewer. Sites are named `stack.layer.kind` (`decoder.3.cross`), layers `stack.layer`;
a quantity beside the main one is named after an @ (`decoder.3.cross@x`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from stabkit.methods.base import sites as sites_of
from stabkit.spec import ModelConfig


@dataclass(frozen=True, slots=True)
class SiteName:
    """A site's name, read: `decoder.3.cross@x`, `decoder.3:sum`; of one that is no place of a model all in `stack`."""

    stack: str
    """`decoder`."""
    layer: str
    """`decoder.3`; "" of what is no layer's."""
    kind: str
    """`cross`; "" of a whole layer."""
    stream: str
    """`sum`, of a further stream of states."""
    beside: str
    """`x`, of a quantity beside the main one."""

    @property
    def whole(self) -> bool:
        """Whether it is a whole layer's main quantity, in the first stream."""
        return bool(self.layer) and not (self.kind or self.stream or self.beside)

    @property
    def sublayer(self) -> bool:
        """Whether it is a sub-layer's main quantity."""
        return bool(self.kind) and not self.beside


@lru_cache(maxsize=65536)
def parse(name: str) -> SiteName:
    """The parts of a site's name."""
    main, _, beside = name.partition("@")
    place, _, stream = main.partition(":")
    stack, *within = place.split(".", 2)
    layer = f"{stack}.{within[0]}" if within else ""
    return SiteName(stack, layer, within[1] if len(within) > 1 else "", stream, beside)


def main_sites(sites: Iterable[str]) -> list[str]:
    """Those of the main quantity."""
    return [name for name in sites if not parse(name).beside]


def of_output(sites: Sequence[str]) -> list[str]:
    """Those of the stack that the output comes from: of the decoder, or all where there is none."""
    return [name for name in sites if parse(name).stack == "decoder"] or list(sites)


def whole_layers(sites: Iterable[str]) -> list[str]:
    """The whole layers of that stack, lowest first."""
    return of_output([name for name in sites if parse(name).whole])


@dataclass(frozen=True, slots=True)
class SiteNames:
    """The places of a model, in the order of its forward pass."""

    sublayers: tuple[str, ...]
    layers: tuple[str, ...]
    stacks: tuple[str, ...]


@lru_cache(maxsize=16)
def site_names(config: ModelConfig) -> SiteNames:
    """Of a model of this size."""
    sublayers = tuple(site.name for site in sites_of(config.encoder_layers, config.decoder_layers, config.hidden))
    layers = tuple(dict.fromkeys(parse(name).layer for name in sublayers))
    return SiteNames(sublayers, layers, tuple(dict.fromkeys(parse(name).stack for name in sublayers)))


@dataclass(frozen=True, slots=True)
class TableSites:
    """A table of a run's records."""

    name: str
    """Of its probe, and of the probe's file."""
    sites: Callable[[SiteNames], Iterable[str]]
    version: int = 1
    """Raised when the probe reads something else at the same θ than before; a run of another keeps its other tables.
    `loss` and `validation`, which every outcome is judged by, stay at 1: they change with ALGO_VERSION."""
    of_all: bool = True
    """Whether every run has it; else those whose method has what is measured (`Probe.applies`)."""


def _branch_ratio(at: SiteNames) -> list[str]:
    return [f"{name}{part}" for part in ("", "@branch", "@shortcut") for name in at.sublayers]


PROBES: tuple[TableSites, ...] = (
    TableSites("loss", lambda at: ("train", "probe", "train@nll")),
    TableSites("update", lambda at: ("state", "logits", "state@step")),
    TableSites("token_cosine", lambda at: ("state",)),
    TableSites("ln_input", lambda at: (*at.sublayers, *(f"{name}@omega" for name in at.sublayers))),
    TableSites("branch_ratio", _branch_ratio),
    TableSites("grad_norm", lambda at: (*at.layers, *at.sublayers)),
    TableSites("weight_grad", lambda at: at.sublayers),
    TableSites("parameter_update", lambda at: at.sublayers),
    TableSites("perturbation", lambda at: at.sublayers),
    TableSites("stream", lambda at: (*(f"{stack}.0" for stack in at.stacks), *at.layers)),
    TableSites("cosine", lambda at: at.layers),
    TableSites("attention_logit", lambda at: (name for name in at.sublayers if not name.endswith(".ffn"))),
    TableSites("mixing", lambda at: (*at.sublayers, *(f"{name}@backward" for name in at.sublayers)), of_all=False),
)
"""In the order of reading, which is that of the tables in records.npz."""
VALIDATION = TableSites("validation", lambda at: ("validation", "nll", "accuracy"))
"""The loop's own, read less often."""
BY_NAME: Mapping[str, TableSites] = {recording.name: recording for recording in (*PROBES, VALIDATION)}


def declared(name: str, config: ModelConfig) -> tuple[str, ...]:
    """The sites that a table of this name has in a run of such a model; none of one that no row names."""
    return tuple(BY_NAME[name].sites(site_names(config))) if name in BY_NAME else ()


def version_of(name: str) -> int:
    """Today's version of what a table holds; 1 of one that no row names."""
    return BY_NAME[name].version if name in BY_NAME else 1
