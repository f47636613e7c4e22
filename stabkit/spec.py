"""What to run: a RunSpec is everything that decides a recorded bit, and nothing else.

A spec is frozen and is JSON. `run_id` = a prefix that a person can read + 12 hex digits of sha256 over the canonical
JSON and ALGO_VERSION. Paths, worker counts and names of users never enter.

A field at its default is left out of what is stored and hashed, so that a field added later changes no run_id. A
default once published therefore never changes here (a test holds all of them): a command that wants another gives it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal

ALGO_VERSION = 5
"""Raised when training itself changes: θ of the same spec after the same updates. Old runs are then other runs. What is
measured along the way has versions of its own (`results/records.py`), and words are made on reading."""

BaseInit = Literal["xavier_normal", "fairseq_uniform", "torch_uniform"]
Optimizer = Literal["adam", "adamw", "muon", "muon-original", "lion", "sgd", "radam", "radam-torch"]
DECAY: Mapping[Optimizer, float] = {"adamw": 0.1, "muon": 0.1, "muon-original": 0.1, "lion": 0.1}
"""λ of the optimisers that decay, where nothing else is asked for; torch's own for Muon."""
MOMENTUM: Mapping[Optimizer, float] = {"sgd": 0.0, "muon": 0.95, "muon-original": 0.95}
"""μ of those that have one."""
RecipeName = Literal["shared", "paper"]
Norm = Literal["layer", "rms", "dyt", "derf"]
FfnKind = Literal["relu", "swiglu"]
Positions = Literal["sinusoidal", "rotary"]
Dtype = Literal["float32", "float64"]
Kernels = Literal["fused", "python"]
"""Which path sub-layers take on a CPU: no field of a spec, since both give the same to rounding."""
Block = Literal["classic", "llama"]
"""Of what sub-layers are made (`methods/blocks.py`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Sizes and base initialisation; 64-128-2 is the tiny Transformer of DeepNet Fig. 4."""

    encoder_layers: int
    decoder_layers: int
    hidden: int = 64
    ffn: int = 128
    heads: int = 2
    base_init: BaseInit = "xavier_normal"
    tied: bool = True
    """Whether the softmax's weight is the embedding, as the papers have it; if not, one of its own, drawn likewise."""
    norm: Norm = "layer"
    """The kind of every norm that a method does not name itself; this and what follows is the block's."""
    ffn_kind: FfnKind = "relu"
    """W₂·relu(W₁·u), or W₂·(SiLU(W_g·u) ⊙ W₁·u) of two thirds of `ffn`, so that both have as many weights."""
    positions: Positions = "sinusoidal"
    """Added to the embedding, or turned into the queries and keys of self-attention (Su et al. 2021)."""
    qk_norm: bool = False
    """Whether each head's queries and keys pass a norm before the scores."""
    biases: bool = True
    """Whether linear maps have biases, where the method has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """Optimisation; defaults are DeepNet's IWSLT setting at a size for two cores (P4, Appendix D.1)."""

    steps: int = 16
    max_tokens: int = 512
    optimizer: Optimizer = "adam"
    lr: float = 5e-4
    warmup: int = 4000
    hold: int = 0
    """Without warm-up: updates at the full rate before the inverse-sqrt decay begins; 0 is a constant rate."""
    dropout: float = 0.0
    clip: float = 0.0
    label_smoothing: float = 0.1
    stop_when_decided: bool = False
    """End at the first recorded step with a validation reading at which `outcome.decided` holds, short of `steps`."""
    verdict_at: int = 0
    """End after so many updates with the outcome that the run then has, unless it is `early`: then it goes on to
    `steps`. A run that has diverged ends at the first reading that shows it. 0: every run goes to `steps`."""
    adam_beta1: float = 0.9
    adam_beta2: float = 0.98
    adam_eps: float = 1e-8
    weight_decay: float = 0.0
    """λ, decoupled, of the linear maps inside sub-layers and of nothing else; of optimisers that decay."""
    momentum: float = 0.0
    """Of SGD and Muon."""

    @property
    def unusual(self) -> tuple[str, ...]:
        """Which of decay and momentum are not what its optimiser has where nothing else is asked for."""
        usual = {"weight_decay": DECAY.get(self.optimizer, 0.0), "momentum": MOMENTUM.get(self.optimizer, 0.0)}
        return tuple(name for name, value in usual.items() if getattr(self, name) != value)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskConfig:
    """Which batches: the synthetic language, or parallel text known by the digest of its files."""

    name: str = "synthetic"
    vocab: int = 2000
    source: str = ""
    target: str = ""
    digest: str = ""
    """sha256 of the corpus's text, or of the synthetic language's version and sizes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Own:
    """A method or a probe from a file of the user's own: what it is called there, sha256 of the file's bytes, and what
    pages say of it, who never run it."""

    file: str
    """Its last name, which is not in a run's id."""
    name: str
    digest: str
    label: str
    """What a method calls itself; what a probe's records are called after `own-`."""
    says: str = ""
    """A method's formula; the first line of a probe's docstring."""
    group: str = ""
    norm_after_sum: bool = False
    ends_in_norm: bool = False
    assumes: tuple[str, ...] = ()
    scaled: bool = False
    """Whether it has factors on rate or ε."""
    chained: bool = True
    """Whether its wiring is the chain."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """A method of a grid: its key, its options, and the file that it is from, if from one."""

    key: str
    options: Mapping[str, str] = field(default_factory=dict)
    own: Own | None = None


def depth_text(n: int, m: int) -> str:
    """`18L-18L`; of one stack alone `18L encoder` or `18L decoder`."""
    return f"{n}L-{m}L" if n and m else f"{n}L encoder" if n else f"{m}L decoder"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSpec:
    """One run of a grid."""

    method: str
    options: Mapping[str, str] = field(default_factory=dict)
    model: ModelConfig
    train: TrainConfig = TrainConfig()
    task: TaskConfig = TaskConfig()
    recipe: RecipeName = "shared"
    """Whether base initialisation, optimiser, rate and warm-up are everyone's or the method's own (`Method.recipe`)."""
    alpha_scale: float = 1.0
    beta_scale: float = 1.0
    seed: int = 0
    record_every: int = 10
    """Every step up to DENSE, then every `record_every`-th and the last."""
    snapshots: int = 0
    """How many sets of weights along the path are kept, step 0 and the end included; 0 keeps the end only."""
    device: str = "cpu"
    dtype: Dtype = "float32"
    own: Own | None = None
    """The file that the method is from, where it is not a built-in one."""
    probes: tuple[Own, ...] = ()
    """Further probes, from files likewise."""

    def to_json(self) -> dict[str, Any]:
        """The whole spec as plain JSON values, for documents and jobs."""
        held: dict[str, Any] = _whole(self)
        return held

    @property
    def expected_steps(self) -> int:
        """Updates after which a run that is judged in time ends: what is planned with."""
        return self.train.verdict_at or self.train.steps

    def stored(self) -> dict[str, Any]:
        """What spec.json holds and run_id hashes: without the fields at their defaults."""
        return sparse(self)

    @property
    def depth(self) -> str:
        """`18L-18L`, as the papers write it; of one stack alone `18L encoder` or `18L decoder`."""
        return depth_text(self.model.encoder_layers, self.model.decoder_layers)

    def _unnamed(self) -> dict[str, Any]:
        """Its files as their bytes alone: whatever is said of them, and wherever they lie, it is the same run."""
        if not self.files():
            return {}
        source, *_ = bare = [Own(file="", name=one.name, digest=one.digest, label="") for one in self.files()]
        return {"own": source, "probes": tuple(bare[1:])} if self.own else {"probes": tuple(bare)}

    def files(self) -> tuple[Own, ...]:
        """What of this run is from files of the user's own."""
        return (*((self.own,) if self.own else ()), *self.probes)

    @property
    def single_step(self) -> bool:
        """One update of SGD: a probe of the linear regime, not training."""
        return self.train.optimizer == "sgd" and self.train.steps == 1 and self.train.warmup == 0

    @property
    def run_id(self) -> str:
        """`deepnorm-18L-18L-s0-1a2b3c4d5e6f`. Every part is ours: a key from the table of methods, and numbers."""
        text = canonical({"algo_version": ALGO_VERSION, "spec": replace(self, **self._unnamed()).stored()})
        depth = f"{self.model.encoder_layers}L-{self.model.decoder_layers}L"
        return f"{self.method}-{depth}-s{self.seed}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


RUN_ID = re.compile(r"[a-z0-9-]{1,60}-[0-9]{1,6}L-[0-9]{1,6}L-s[0-9]{1,20}-[0-9a-f]{12}")
"""What a run_id looks like."""

DENSE = 100
"""Up to this step every step is recorded: the chain of DeepNet §2 happens there."""


def recorded_steps(spec: RunSpec) -> list[int]:
    """The steps at which probes are read: 0 to DENSE, then every `record_every`-th, and always the last, and the one at
    which the run is to be judged."""
    last = spec.train.steps
    always = (last, spec.train.verdict_at)
    return [t for t in range(last + 1) if t <= DENSE or t % spec.record_every == 0 or t in always]


def validation_steps(spec: RunSpec) -> list[int]:
    """The steps at which validation is read: 0, every 25th, where the last quarter begins, where the run is to be
    judged, and the last.

    Of a run too short to be judged the last alone: a reading costs as much as a step does.
    """
    last = spec.train.steps
    read = {0, last, *range(0, last, 25), round(0.75 * last), spec.expected_steps}
    return sorted(read) if last >= SHORTEST_JUDGED else [last]


def snapshot_steps(spec: RunSpec) -> list[int]:
    """The steps whose weights are kept beside the last: `snapshots` of them, evenly from 0 to the end."""
    n, last = spec.snapshots, spec.train.steps
    return sorted({round(i * last / (n - 1)) for i in range(n)}) if n > 1 else []


SHORTEST_JUDGED = 40
"""A run with fewer updates has no last quarter worth the name: it is `early` unless it trains or diverges."""


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def _whole(value: Any) -> Any:
    """A frozen dataclass as plain values, those inside it likewise: what `dataclasses.asdict` gives, which copies every
    number, and takes four times as long."""
    if is_dataclass(value):
        return {entry.name: _whole(getattr(value, entry.name)) for entry in fields(value)}
    return tuple(map(_whole, value)) if isinstance(value, tuple) else value


def sparse(value: Any) -> dict[str, Any]:
    """A frozen dataclass as plain JSON values without the fields that are at their defaults; dataclasses inside it
    likewise. A field that has no default always stands."""
    held = {}
    for entry in fields(value):
        inner = getattr(value, entry.name)
        default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
        if default is MISSING or inner != default:
            held[entry.name] = _plain(inner)
    return held


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return sparse(value)
    return [_plain(inner) for inner in value] if isinstance(value, (tuple, list)) else value


def within(given: Any, whole: Any) -> bool:
    """Whether everything that a JSON value gives stands in the whole, equal: nothing unknown, nothing of another
    type."""
    if isinstance(given, Mapping) and isinstance(whole, Mapping):
        return all(key in whole and within(inner, whole[key]) for key, inner in given.items())
    if isinstance(given, (tuple, list)) and isinstance(whole, (tuple, list)) and len(given) == len(whole):
        return all(map(within, given, whole))
    return type(given) is type(whole) and bool(given == whole)


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter  # 70 ms, needed only where JSON comes in

    return TypeAdapter(RunSpec)


LIMITS = ((0, 20_000), (0, 20_000), (1, 1_000_000), (1, 4_000_000), (1, 10_000), (0, 10**9), (1, 10**8), (1, 10**8))
"""Of `_sizes`: beyond anything that was ever trained, so that a spec from a stranger cannot ask for all memory."""


def _sizes(spec: RunSpec) -> list[tuple[str, int]]:
    model, train = spec.model, spec.train
    return [
        ("encoder_layers", model.encoder_layers),
        ("decoder_layers", model.decoder_layers),
        ("hidden", model.hidden),
        ("ffn", model.ffn),
        ("heads", model.heads),
        ("steps", train.steps),
        ("max_tokens", train.max_tokens),
        ("vocab", spec.task.vocab),
    ]


def from_json(value: Any) -> RunSpec:
    """A spec from JSON values, types checked; raises ValueError on anything that is not exactly a spec. Fields at their
    defaults may be left out."""
    spec: RunSpec = _adapter().validate_python(value)
    for (name, number), (least, most) in zip(_sizes(spec), LIMITS, strict=True):
        if not least <= number <= most:
            raise ValueError(f"{name} is {number}, outside {least} to {most}")
    if not within(value, spec.to_json()):
        raise ValueError("it holds keys or values that a run specification does not have")
    return spec
