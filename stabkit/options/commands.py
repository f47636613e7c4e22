"""The options of a command as one frozen value: the ONE place of an option, its name, type, default, choices and help.

A command is put together from groups, so that what two of them share stands once. The functions of `stabkit/api.py`
have their signatures from here; the command line its options, TOML keys, environment variables and `--print-config`
(`cli/command.py`). A value is Python's own or a text in the option's little language (`ranges.py`):
`depths=(6, (60, 12))` is `depths="6,60x12"`.

To add an option to `sweep`: a line in a group, a line where it is read (`grids.py`, `model.py`), a line in `spec.py` if
it changes a run. Imports neither typer nor torch, pandas or matplotlib. No `from __future__ import annotations`: the
annotations are read as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from os import PathLike
from typing import Annotated, Any, Literal

from stabkit import spec
from stabkit.errors import UsageError
from stabkit.options import ranges
from stabkit.options.option import HOME, LONG, ON, OUT, TRAIN, WHERE, Argument, Option
from stabkit.results import surface

Names = str | Sequence[str]
Wholes = str | int | Sequence[int]
Reals = str | float | Sequence[float]
Folder = str | PathLike[str] | None
COMPARED = ("post-ln", "post-ln-init", "admin", "deepnorm")
"""What is compared where nothing else is asked for."""
SEEDS = range(3)
DIRECTIONS = range(5)

Models = Annotated[
    Names,
    Option(
        "Names, or papers (the twelve), 2026, all; with options: admin:omega=closed; ./my.py:function is your own.",
        TRAIN,
        "METHODS",
        flags=("--model",),
        completion="methods",
    ),
]
Model = Annotated[str, Option("A method that has α and β.", TRAIN, "METHOD", flags=("--models",), completion="method")]
Drawn = Annotated[
    str, Option("The method whose loss is drawn.", TRAIN, "METHOD", flags=("--models",), completion="method")
]
Compared = Annotated[
    Names | None, Option("Built-in methods, as in sweep.", TRAIN, "METHODS", flags=("--model",), completion="methods")
]
Factory = Annotated[str | Callable[..., Any], Argument("package.module:function, called with a depth.", "FACTORY")]
Carried = Annotated[
    str | Callable[..., Any] | None,
    Argument("Your own model: package.module:function, called with a depth; or --models.", "FACTORY"),
]
Audited = Annotated[
    str, Argument("package.module:function that returns a model, (model, inputs) or (model, loss).", "MODULE:NAME")
]
Items = Annotated[list[str], Argument("ls, all, or items like fig9 table1 admin-table3.", "ITEMS", completion="items")]
Depths = Annotated[
    str | int | Sequence[int | tuple[int, int]],
    Option("Layers: 6,18 is 6L-6L and 18L-18L; 60x12 is 60L-12L.", TRAIN, "DEPTHS"),
]
OwnDepths = Annotated[
    str | int | Sequence[int] | None, Option("Depths, as 6,12,24,48; leave out if it takes none.", TRAIN, "DEPTHS")
]
OwnWidths = Annotated[
    Wholes | None, Option("Widths of a factory(depth, width), as 64,128,256; of methods: --hidden.", TRAIN, "WIDTHS")
]
OwnBlocks = Annotated[str | None, Option("Names of the model's blocks, if no sums are found: 'h.*'.", TRAIN, "PATTERN")]
Arch = Annotated[ranges.Arch, Option("encoder-decoder, encoder-only or decoder-only.", TRAIN)]
MaxTokens = Annotated[Wholes, Option("Tokens in a batch: sentences × the longer side. An axis.", ON, "TOKENS")]
Seeds = Annotated[Wholes, Option("Seeds: 0,1 or 0..4.", ON, "SEEDS")]
Steps = Annotated[int, Option("Updates of each run.", LONG, "UPDATES")]
OwnSteps = Annotated[int, Option("Updates that are recorded; the forecast needs 16.", LONG, "UPDATES")]
Warmup = Annotated[Wholes, Option("Then inverse-sqrt decay; 0: a constant rate. An axis.", LONG, "UPDATES")]
OwnWarmup = Annotated[int | None, Option("Updates of warm-up; default: the factory's scheduler.", LONG, "UPDATES")]
Rates = Annotated[Reals, Option("Peak learning rate. A list is an axis.", LONG, "RATES")]
OwnRates = Annotated[Reals | None, Option("Rates; default 1e-3, or the factory optimizer's.", LONG, "RATES")]
OwnTime = Annotated[float, Option("At most: for training on what 16 updates leave open.", LONG, "SECONDS")]
Quick = Annotated[bool, Option("Only 16 updates and a ramp: nothing is trained on.", LONG)]
Snapshots = Annotated[int, Option("Snapshots of the weights along the path; 0: the last only.", OUT, "N")]
Out = Annotated[Folder, Option("Folder for runs/, probes/ and reports/; default: this one.", OUT, "DIR", envvar=HOME)]
AllFigures = Annotated[bool, Option("Draw every figure, not only those that answer.", OUT)]
Workers = Annotated[int | Literal["auto"], Option("Processes; auto: one per core, one on a GPU.", WHERE, "N")]
Sharded = Annotated[
    str | None,
    Option("Start with this part of the runs, 2/4; slurm: a job array's.", WHERE, "I/N", envvar="STABKIT_SHARD"),
]
RunTimeout = Annotated[float, Option("Seconds after which a run counts as hung; 0: never.", WHERE, "SECONDS")]
Fresh = Annotated[bool, Option("Probe again, even if cached.", WHERE)]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a command was asked for, every option filled in. Raises UsageError for a flag that is no truth value."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = ranges.plain(getattr(self, one.name))
            if isinstance(one.default, bool) and not isinstance(value, bool):
                raise UsageError(f"{one.name} must be True or False, not {value!r}")
            object.__setattr__(self, one.name, value)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """{option: default}, in the order of the signature; without what has none."""
        return {one.name: one.default for one in fields(cls) if one.default is not MISSING}

    @property
    def named(self) -> dict[str, Any]:
        """{option: value} of those that are not at their defaults."""
        values = {name: (getattr(self, name), default) for name, default in self.defaults().items()}
        return {name: value for name, (value, default) in values.items() if ranges.text(value) != ranges.text(default)}


@dataclass(frozen=True, kw_only=True)
class _Shape(Options):
    """How deep, of which stacks, by whose settings."""

    depths: Depths = (6, 18, 50, 100)
    arch: Arch = "encoder-decoder"
    recipe: Annotated[spec.RecipeName, Option("shared, or paper: each method's own base, optimiser, rate.", TRAIN)] = (
        "shared"
    )


@dataclass(frozen=True, kw_only=True)
class ArchitectureOptions(Options):
    """What a model is made of beside its method."""

    hidden: Annotated[Wholes, Option("Width d. A list is an axis.", TRAIN, "WIDTHS")] = 64
    ffn: Annotated[str | int, Option("Inner width of the feed-forward; 2x is twice the width.", TRAIN, "WIDTHS")] = 128
    heads: Annotated[int, Option("Attention heads.", TRAIN, "N")] = 2
    base_init: Annotated[spec.BaseInit, Option("xavier_normal, fairseq_uniform or torch_uniform.", TRAIN)] = (
        "xavier_normal"
    )
    untied: Annotated[bool, Option("Give the softmax its own weight, not the embedding's.", TRAIN)] = False
    block: Annotated[spec.Block, Option("classic, or llama: RMSNorm, SwiGLU, rotary, no biases.", TRAIN)] = "classic"
    norm: Annotated[
        spec.Norm | None, Option("layer, rms, dyt or derf for every norm; default: the block's.", TRAIN)
    ] = None
    ffn_kind: Annotated[
        spec.FfnKind | None, Option("relu or swiglu (two thirds of --ffn); default: the block's.", TRAIN)
    ] = None
    positions: Annotated[spec.Positions | None, Option("sinusoidal or rotary; default: the block's.", TRAIN)] = None
    qk_norm: Annotated[bool, Option("Normalise each head's queries and keys.", TRAIN)] = False
    no_biases: Annotated[bool, Option("Linear maps without biases, as in llama.", TRAIN)] = False


@dataclass(frozen=True, kw_only=True)
class _Text(Options):
    """What is learnt."""

    data: Annotated[Folder, Option("Parallel text: train.de, train.en, valid.*; plain or .gz.", ON, "DIR")] = None
    source: Annotated[str | None, Option("Source language: the ending of its files.", ON, "LANG")] = None
    target: Annotated[str | None, Option("Target language: the ending of its files.", ON, "LANG")] = None
    vocab: Annotated[int, Option("Size of the joint vocabulary (subwords, for text).", ON, "N")] = 2000


@dataclass(frozen=True, kw_only=True)
class _Batches(Options):
    """How much of it at a time."""

    max_tokens: MaxTokens = 256


@dataclass(frozen=True, kw_only=True)
class _Schedule(Options):
    """How often, how long, at which rate."""

    seeds: Seeds = 0
    steps: Steps = 16
    warmup: Warmup = 0
    lr: Rates = 5e-4


@dataclass(frozen=True, kw_only=True)
class _Optimisation(Options):
    """What makes an update."""

    optimizer: Annotated[
        spec.Optimizer, Option("adam, adamw, muon, lion, sgd, radam; muon-original, radam-torch.", LONG, "WORD")
    ] = "adam"
    weight_decay: Annotated[float | None, Option("Decoupled; default 0.1 for adamw, muon, lion.", LONG, "X")] = None
    momentum: Annotated[float | None, Option("For sgd (default 0) and muon (0.95).", LONG, "X")] = None
    dropout: Annotated[float, Option("Dropout on embeddings and branches.", LONG, "X")] = 0.0
    clip: Annotated[float, Option("Clip the gradient's global norm; 0: no clipping.", LONG, "X")] = 0.0
    label_smoothing: Annotated[float, Option("Label smoothing.", LONG, "X")] = 0.1


@dataclass(frozen=True, kw_only=True)
class _Ends(Options):
    """When a run ends early."""

    stop_when_decided: Annotated[bool, Option("End a run that has diverged or stays stuck.", LONG)] = False
    verdict_at: Annotated[int, Option("End runs that are judged by this update; 0: never.", LONG, "UPDATES")] = 0


@dataclass(frozen=True, kw_only=True)
class _OwnProbes(Options):
    """What is measured beside."""

    probes: Annotated[Names | None, Option("Your own probes: ./mine.py:TokenSpread.", OUT, "FILE:NAME")] = None


@dataclass(frozen=True, kw_only=True)
class _Recorded(Options):
    """What is kept, and when."""

    record_every: Annotated[int, Option("Steps between records, after step 100.", OUT, "UPDATES")] = 10
    snapshots: Snapshots = 0


@dataclass(frozen=True, kw_only=True)
class _Page(Options):
    """What is drawn of them."""

    all_figures: AllFigures = False


@dataclass(frozen=True, kw_only=True)
class _Place(Options):
    """Where runs are trained and kept."""

    out: Out = None
    workers: Workers = "auto"
    device: Annotated[str, Option("auto, cpu, cuda, cuda:1 or mps.", WHERE)] = "auto"
    kernels: Annotated[spec.Kernels, Option("fused (C++, if built) or python: equal to rounding.", WHERE)] = "fused"
    together: Annotated[
        int | Literal["auto"], Option("Runs of one shape trained together; auto: 16 on a GPU.", WHERE, "N")
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class _Precision(Options):
    """In which numbers."""

    dtype: Annotated[spec.Dtype, Option("float32 or float64.", WHERE)] = "float32"


@dataclass(frozen=True, kw_only=True)
class _Executors(Options):
    """By whom."""

    executor: Annotated[Literal["processes", "dask", "inline"], Option("processes, dask or inline.", WHERE)] = (
        "processes"
    )
    scheduler: Annotated[str | None, Option("Of Dask: tcp://host:8786.", WHERE, "WHERE")] = None
    shard: Sharded = None


@dataclass(frozen=True, kw_only=True)
class _Checkpoints(Options):
    """What an interruption costs."""

    checkpoint_every: Annotated[
        int | Literal["auto"], Option("Time between checkpoints of a long run; auto: 30 s; 0: none.", WHERE, "UPDATES")
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class _Tries(Options):
    """What is given up, and what is tried again."""

    run_timeout: RunTimeout = 0.0
    retry_failed: Annotated[bool, Option("Retry runs that failed three times.", WHERE)] = False
    yes: Annotated[bool, Option("Run even a grid that seems too large for this machine.", WHERE)] = False


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(
    _Recorded,
    _OwnProbes,
    _Ends,
    _Optimisation,
    _Schedule,
    _Batches,
    _Text,
    ArchitectureOptions,
):
    """How the runs of a grid are trained, and what is measured of them."""


@dataclass(frozen=True, kw_only=True)
class RunningOptions(_Tries, _Checkpoints, _Executors, _Precision, _Place):
    """Where, and by whom."""


@dataclass(frozen=True, kw_only=True)
class _OfMethods(Options):
    """The methods of a sweep."""

    models: Models = field(default=COMPARED, kw_only=False)


@dataclass(frozen=True, kw_only=True)
class _OfOne(Options):
    """The method of an ablation."""

    model: Model = field(default="deepnorm", kw_only=False)


@dataclass(frozen=True, kw_only=True)
class _Scales(Options):
    """What is done to its constants."""

    alpha_scale: Annotated[
        Reals | None, Option("Factors on every α: 0.25..4 doubles, 0.25..4:9 in log, 0.5,1,1.5.", TRAIN, "FACTORS")
    ] = None
    beta_scale: Annotated[
        Reals | None, Option("Factors on every β, likewise. Without either: both, in turn.", TRAIN, "FACTORS")
    ] = None
    grid: Annotated[bool, Option("Combine every α with every β.", TRAIN)] = False
    drop: Annotated[
        Names | None,
        Option("Rows of DeepNet Table 11: deepnorm (α = 1), init (β = 1), or both; warm-ups 0, 150.", TRAIN),
    ] = None


@dataclass(frozen=True, kw_only=True)
class _OfAPair(Options):
    """Whose loss is drawn."""

    model: Drawn = field(default="deepnorm", kw_only=False)
    against: Annotated[str | None, Option("A method to compare with; '' for none.", TRAIN, "METHOD")] = "post-ln"


@dataclass(frozen=True, kw_only=True)
class _Surfaces(Options):
    """Which surfaces, and how fine."""

    at: Annotated[
        str | int, Option("Around the weights at init, at end, or after N updates (a snapshot).", OUT, "UPDATES")
    ] = "end"
    range: Annotated[float, Option("Reach of the axes, in lengths of the directions.", OUT, "X")] = 1.0
    points: Annotated[int, Option("Points along each axis of a surface; odd, with one in the middle.", OUT, "N")] = 25
    cut_points: Annotated[int, Option("Points of a one-dimensional cut; odd.", OUT, "N")] = 51
    direction_seeds: Annotated[
        Wholes, Option("Seeds of directions: the first for surfaces, all for cuts.", OUT, "SEEDS")
    ] = DIRECTIONS
    normalise: Annotated[surface.Normalise, Option("filter (Li et al.), layer, model or none.", OUT)] = "filter"
    one_dimensional: Annotated[bool, Option("Also move biases and norms.", OUT)] = False
    path: Annotated[surface.PathPlane, Option("Plane of the path: pca, hao (Hao et al. 2019) or none.", OUT)] = "pca"


@dataclass(frozen=True, kw_only=True)
class _Search(Options):
    """Over which sizes and rates the best one is searched."""

    factory: Carried = field(default=None, kw_only=False)
    models: Compared = None
    depths: Annotated[
        str | int | Sequence[int | tuple[int, int]],
        Option("Depths to compare, as 4,8,16,32; only one with --widths.", TRAIN, "DEPTHS"),
    ] = (6, 12, 24)
    widths: OwnWidths = None
    lr: Annotated[str, Option("The lowest and the highest rate to try.", LONG, "LOW..HIGH")] = "1e-4..1e-1"
    steps: Steps = 300
    seeds: Seeds = SEEDS
    predict: Annotated[Wholes | None, Option("Depths (widths) to predict the best rate for.", TRAIN, "SIZES")] = None
    highest: Annotated[bool, Option("Search only the highest stable rate, with every seed.", LONG)] = False
    budget: Annotated[str, Option("Time allowed: 30m, 2h; the same command continues.", LONG, "TIME")] = ""
    warmup: OwnWarmup = None
    arch: Arch = "encoder-decoder"


@dataclass(frozen=True, kw_only=True)
class _OfItems(Options):
    """Which items of the papers, and what replaces their settings."""

    items: Items
    depths: Annotated[str, Option("Replaces the items' depths, for a smaller version.", TRAIN, "DEPTHS")] = ""


@dataclass(frozen=True, kw_only=True)
class _Replaced(Options):
    """Likewise."""

    seeds: Annotated[str, Option("Replaces the items' seeds.", ON, "SEEDS")] = ""
    steps: Annotated[str, Option("Replaces the items' number of updates.", LONG, "UPDATES")] = ""
    budget: Annotated[str, Option("Total time allowed: 45m, 2h; the cheapest items first.", LONG, "TIME")] = ""


# Commands: the bases stand from the last group of a signature to the first.


@dataclass(frozen=True, kw_only=True)
class SweepOptions(RunningOptions, _Page, TrainingOptions, _Shape, _OfMethods):
    """`stabkit sweep`."""


@dataclass(frozen=True, kw_only=True)
class AblateOptions(RunningOptions, _Page, TrainingOptions, _Scales, _Shape, _OfOne):
    """`stabkit ablate`."""

    depths: Depths = 18
    max_tokens: MaxTokens = 512
    steps: Steps = 250
    lr: Rates = 2e-3


@dataclass(frozen=True, kw_only=True)
class LandscapeOptions(RunningOptions, _Page, _Surfaces, TrainingOptions, _Shape, _OfAPair):
    """`stabkit landscape`."""

    depths: Depths = 18
    max_tokens: MaxTokens = 512
    steps: Steps = 100
    snapshots: Snapshots = 16


@dataclass(frozen=True, kw_only=True)
class TransferOptions(
    _Tries, _Executors, _Precision, _Place, _OwnProbes, _Optimisation, _Batches, _Text, ArchitectureOptions, _Search
):
    """`stabkit transfer`."""


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(Options):
    """`stabkit probe`."""

    factory: Factory = field(kw_only=False)
    depths: OwnDepths = field(default=None, kw_only=False)
    widths: OwnWidths = None
    predict: Annotated[Wholes | None, Option("Widths to say what is expected of, as 1024.", TRAIN, "WIDTHS")] = None
    blocks: OwnBlocks = None
    seeds: Seeds = SEEDS
    steps: OwnSteps = 16
    lr: OwnRates = None
    warmup: OwnWarmup = None
    time: OwnTime = 120.0
    quick: Quick = False
    out: Out = None
    workers: Workers = "auto"
    shard: Sharded = None
    run_timeout: RunTimeout = 0.0
    fresh: Fresh = False


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Options):
    """`stabkit audit`."""

    factory: Audited = field(kw_only=False)
    method: Annotated[
        str | None, Option("The recipe, as admin:omega=closed; default: the one that fits best.", TRAIN, "METHOD")
    ] = None
    depths: Annotated[
        str | int | Sequence[tuple[int, int]] | None,
        Option("Layers it should have: 18x12, or 18 for 18x18; default: those found.", TRAIN, "DEPTHS"),
    ] = None
    arch: Annotated[
        ranges.Arch | None, Option("encoder-decoder, encoder-only or decoder-only; default: as found.", TRAIN)
    ] = None


@dataclass(frozen=True, kw_only=True)
class LogOptions(Options):
    """Read the log of any training and say: learning, slow, at the level of frequencies, diverged, spiked, restarted?

    CSV, JSONL, trainer_state.json, TensorBoard, W&B, MLflow or printed lines, found by content. `--stop` exits with 7.
    """

    files: Annotated[list[str], Argument("Logs, or folders that hold one.", "FILES")] = field(kw_only=False)
    classes: Annotated[int | None, Option("Size of the vocabulary, or number of classes: ln of it.", ON, "N")] = None
    level: Annotated[float | None, Option("Unigram entropy: what knowing frequencies alone costs.", ON, "LOSS")] = None
    tokens: Annotated[Folder, Option("Token ids that the level is counted from: .npy, .bin.", ON, "FILE")] = None
    against: Annotated[Folder, Option("The log of a training that went well.", ON, "FILE")] = None
    stop: Annotated[
        float | None, Option("Exit with 7 if it is dead; of good ones 0.02, 0.05, 0.1 or 0.2 too.", LONG, "SHARE")
    ] = None
    out: Out = None


@dataclass(frozen=True, kw_only=True)
class PaperOptions(_Tries, _Checkpoints, _Executors, _Place, _Replaced, _Text, _OfItems):
    """Rerun figures and tables of the papers: `paper ls` names them, `paper fig9` runs one, `paper all` every one.

    One page: the paper's picture in words, ours, what was scaled down, the claims with their verdicts.
    """


Trains = SweepOptions | AblateOptions | LandscapeOptions
"""What trains a grid of methods."""
OPTIONS: Mapping[str, type[Options]] = {
    "sweep": SweepOptions,
    "ablate": AblateOptions,
    "transfer": TransferOptions,
    "probe": ProbeOptions,
    "landscape": LandscapeOptions,
}
"""{command: its options}, of those that train."""
COMMANDS: Mapping[str, Mapping[str, Any]] = {command: options.defaults() for command, options in OPTIONS.items()}
"""{command: {option: default}} of them."""
