"""The Python API: the commands as functions, and the ONE place of an option: its name, type, default, choices and help.

The command line derives its options, its TOML keys, its environment variables and `--print-config` from these
signatures (`cli/command.py`), and calls these functions. A value is Python's own or a text in the option's little
language (`options/ranges.py`): `depths=(6, (60, 12))` is `depths="6,60x12"`.

To add an option to `sweep`: a line in its signature, a line where it is used (`options/`), a line in `spec.py` if it
changes a run. All signatures stand in one file so that what two commands share is seen side by side. Importing it
imports neither typer nor torch, pandas or matplotlib. No `from __future__ import annotations`: the command line reads
the annotations as they are.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast, overload

from stabkit import spec
from stabkit.errors import StoreError, UsageError, warn
from stabkit.options import ranges
from stabkit.options.option import HOME, LONG, ON, OUT, TRAIN, WHERE, Argument, Option
from stabkit.options.values import Options
from stabkit.results import surface
from stabkit.spec import BaseInit, Block, Kernels, RecipeName

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from stabkit.own.watch.watch import Watch
    from stabkit.report.result import (
        AuditResult,
        CallListener,
        CoordinatesResult,
        ModelSurface,
        ProbeResult,
        SweepResult,
        TransferResult,
    )
    from stabkit.results.run import Run
    from stabkit.running.request import Request

Names = str | Sequence[str]
Wholes = str | int | Sequence[int]
Reals = str | float | Sequence[float]
Folder = str | PathLike[str] | None

# What to train
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
Against = Annotated[str | None, Option("A method to compare with; '' for none.", TRAIN, "METHOD")]
Factory = Annotated[
    str | None,
    Option("Your own model instead: package.module:function, returning (model, loss).", TRAIN, "MODULE:NAME"),
]
Weights = Annotated[Folder, Option("Weights of --factory's model, a .safetensors file.", TRAIN, "FILE")]
Depths = Annotated[
    str | int | Sequence[int | tuple[int, int]],
    Option("Layers: 6,18 is 6L-6L and 18L-18L; 60x12 is 60L-12L.", TRAIN, "DEPTHS"),
]
OwnDepths = Annotated[
    str | int | Sequence[int] | None, Option("Depths, as 6,12,24,48; leave out if it takes none.", TRAIN, "DEPTHS")
]
Carried = Annotated[
    str | int | Sequence[int | tuple[int, int]],
    Option("Depths to compare, as 4,8,16,32; only one with --widths.", TRAIN, "DEPTHS"),
]
OwnWidths = Annotated[
    Wholes | None, Option("Widths of a factory(depth, width), as 64,128,256; of methods: --hidden.", TRAIN, "WIDTHS")
]
Compared = Annotated[
    Names | None, Option("Built-in methods, as in sweep.", TRAIN, "METHODS", flags=("--model",), completion="methods")
]
Predict = Annotated[Wholes | None, Option("Depths (widths) to predict the best rate for.", TRAIN, "SIZES")]
Arch = Annotated[ranges.Arch, Option("encoder-decoder, encoder-only or decoder-only.", TRAIN)]
Recipe = Annotated[RecipeName, Option("shared, or paper: each method's own base, optimiser, rate.", TRAIN)]
Factors = Annotated[
    Reals | None, Option("Factors on every α: 0.25..4 doubles, 0.25..4:9 in log, 0.5,1,1.5.", TRAIN, "FACTORS")
]
BetaFactors = Annotated[
    Reals | None, Option("Factors on every β, likewise. Without either: both, in turn.", TRAIN, "FACTORS")
]
WholeGrid = Annotated[bool, Option("Combine every α with every β.", TRAIN)]
Drop = Annotated[Names | None, Option("Rows of DeepNet Table 11: deepnorm (α = 1), init (β = 1), or both.", TRAIN)]
DropWarmup = Annotated[
    Wholes | None, Option("Warm-ups for --drop's rows and the full method; default 0,150.", TRAIN, "UPDATES")
]
Widths = Annotated[Wholes, Option("Width d. A list is an axis.", TRAIN, "WIDTHS")]
Ffn = Annotated[str | int, Option("Inner width of the feed-forward; 2x is twice the width.", TRAIN, "WIDTHS")]
Heads = Annotated[int, Option("Attention heads.", TRAIN, "N")]
Base = Annotated[BaseInit, Option("xavier_normal, fairseq_uniform or torch_uniform.", TRAIN)]
Untied = Annotated[bool, Option("Give the softmax its own weight, not the embedding's.", TRAIN)]
BlockName = Annotated[Block, Option("classic, or llama: RMSNorm, SwiGLU, rotary, no biases.", TRAIN)]
NormKind = Annotated[spec.Norm | None, Option("layer, rms, dyt or derf for every norm; default: the block's.", TRAIN)]
FfnKind = Annotated[spec.FfnKind | None, Option("relu or swiglu (two thirds of --ffn); default: the block's.", TRAIN)]
Positions = Annotated[spec.Positions | None, Option("sinusoidal or rotary; default: the block's.", TRAIN)]
QkNorm = Annotated[bool, Option("Normalise each head's queries and keys.", TRAIN)]
NoBiases = Annotated[bool, Option("Linear maps without biases, as in llama.", TRAIN)]
Blocks = Annotated[str | None, Option("Names of the model's blocks, if no sums are found: 'h.*'.", TRAIN, "PATTERN")]

# On what
Data = Annotated[Folder, Option("Parallel text: train.de, train.en, valid.*; plain or .gz.", ON, "DIR")]
Source = Annotated[str | None, Option("Source language: the ending of its files.", ON, "LANG")]
Target = Annotated[str | None, Option("Target language: the ending of its files.", ON, "LANG")]
Vocab = Annotated[int, Option("Size of the joint vocabulary (subwords, for text).", ON, "N")]
MaxTokens = Annotated[Wholes, Option("Tokens in a batch: sentences × the longer side. An axis.", ON, "TOKENS")]
Seeds = Annotated[Wholes, Option("Seeds: 0,1 or 0..4.", ON, "SEEDS")]

# How it is trained, and how long
Steps = Annotated[int, Option("Updates of each run.", LONG, "UPDATES")]
OwnSteps = Annotated[int, Option("Updates at each depth and seed; 150 and more show an outcome.", LONG, "UPDATES")]
Warmup = Annotated[Wholes, Option("Then inverse-sqrt decay; 0: a constant rate. An axis.", LONG, "UPDATES")]
Rates = Annotated[Reals, Option("Peak learning rate. A list is an axis.", LONG, "RATES")]
RateSpan = Annotated[str, Option("The lowest and the highest rate to try.", LONG, "LOW..HIGH")]
Highest = Annotated[bool, Option("Search only the highest stable rate, with every seed.", LONG)]
TimeBudget = Annotated[str, Option("Time allowed: 30m, 2h; the same command continues.", LONG, "TIME")]
OwnRates = Annotated[Reals | None, Option("Rates; default 1e-3, or the factory optimizer's.", LONG, "RATES")]
OwnWarmup = Annotated[int | None, Option("Updates of warm-up; default: the factory's scheduler.", LONG, "UPDATES")]
NoCures = Annotated[bool, Option("Do not try changes that may fix a model.", LONG)]
CureTime = Annotated[float, Option("Seconds for these changes; 0: as long as the probe took.", LONG, "SECONDS")]
Optimizer = Annotated[
    spec.Optimizer, Option("adam, adamw, muon, lion, sgd, radam; muon-original, radam-torch.", LONG, "WORD")
]
WeightDecay = Annotated[float | None, Option("Decoupled; default 0.1 for adamw, muon, lion.", LONG, "X")]
Momentum = Annotated[float | None, Option("For sgd (default 0) and muon (0.95).", LONG, "X")]
Dropout = Annotated[float, Option("Dropout on embeddings and branches.", LONG, "X")]
Clip = Annotated[float, Option("Clip the gradient's global norm; 0: no clipping.", LONG, "X")]
Smoothing = Annotated[float, Option("Label smoothing.", LONG, "X")]
StopWhenDecided = Annotated[bool, Option("End a run that has diverged or stays stuck.", LONG)]
VerdictAt = Annotated[int, Option("End runs that are judged by this update; 0: never.", LONG, "UPDATES")]

# What is measured, and what comes out
Bleu = Annotated[bool, Option("Translate the test set with every trained model: sacreBLEU.", OUT)]
Beam = Annotated[int, Option("Beams of --bleu's search; 1 is greedy.", OUT, "N")]
LengthPenalty = Annotated[float, Option("--bleu ranks by log p / length^this.", OUT, "X")]
Probes = Annotated[Names | None, Option("Your own probes: ./mine.py:TokenSpread.", OUT, "FILE:NAME")]
RecordEvery = Annotated[int, Option("Steps between records, after step 100.", OUT, "UPDATES")]
Snapshots = Annotated[int, Option("Snapshots of the weights along the path; 0: the last only.", OUT, "N")]
At = Annotated[
    str | int,
    Option("Around the weights at init, at end, or after N updates (a snapshot).", OUT, "UPDATES"),
]
Range = Annotated[float, Option("Reach of the axes, in lengths of the directions.", OUT, "X")]
Points = Annotated[int, Option("Points along each axis of a surface; odd, with one in the middle.", OUT, "N")]
CutPoints = Annotated[int, Option("Points of a one-dimensional cut; odd.", OUT, "N")]
DirectionSeeds = Annotated[Wholes, Option("Seeds of directions: the first for surfaces, all for cuts.", OUT, "SEEDS")]
Normalise = Annotated[surface.Normalise, Option("filter (Li et al.), layer, model or none.", OUT)]
OneDimensional = Annotated[bool, Option("Also move biases and norms.", OUT)]
PathPlane = Annotated[surface.PathPlane, Option("Plane of the path: pca, hao (Hao et al. 2019) or none.", OUT)]
Engine = Annotated[surface.Engine, Option("Code that computes surfaces: stabkit or loss-landscapes.", OUT)]
Out = Annotated[Folder, Option("Folder for runs/, probes/ and reports/; default: this one.", OUT, "DIR", envvar=HOME)]

# Where it runs
Workers = Annotated[int | Literal["auto"], Option("Processes; auto: one per core, one on a GPU.", WHERE, "N")]
Device = Annotated[str, Option("auto, cpu, cuda, cuda:1 or mps.", WHERE)]
Together = Annotated[
    int | Literal["auto"],
    Option("Runs of one shape trained together; auto: 16 on a GPU.", WHERE, "N"),
]
KernelPath = Annotated[Kernels, Option("fused (C++, if built) or python: equal to rounding.", WHERE)]
Dtype = Annotated[spec.Dtype, Option("float32 or float64.", WHERE)]
Executor = Annotated[
    Literal["processes", "dask", "slurm", "inline"],
    Option("processes, dask, slurm or inline.", WHERE),
]
Scheduler = Annotated[
    str | None,
    Option("tcp://host:8786 of Dask; of Slurm partition=long,time=60,mem=4.", WHERE, "WHERE"),
]
Sharded = Annotated[
    str | None,
    Option(
        "Start with this part of the runs, 2/4; slurm: a job array's.",
        WHERE,
        "I/N",
        envvar="STABKIT_SHARD",
    ),
]
CheckpointEvery = Annotated[
    int | Literal["auto"],
    Option("Time between checkpoints of a long run; auto: 30 s; 0: none.", WHERE, "UPDATES"),
]
RunTimeout = Annotated[float, Option("Seconds after which a run counts as hung; 0: never.", WHERE, "SECONDS")]
RetryFailed = Annotated[bool, Option("Retry runs that failed three times.", WHERE)]
Yes = Annotated[bool, Option("Run even a grid that seems too large for this machine.", WHERE)]
Fresh = Annotated[bool, Option("Probe again, even if cached.", WHERE)]

PAPERS = ("post-ln", "post-ln-init", "admin", "deepnorm")
"""What is compared where nothing else is asked for."""
SEEDS = range(3)
DIRECTIONS = range(5)


def sweep(
    models: Models = PAPERS,
    *,
    depths: Depths = (6, 18, 50, 100),
    arch: Arch = "encoder-decoder",
    recipe: Recipe = "shared",
    hidden: Widths = 64,
    ffn: Ffn = 128,
    heads: Heads = 2,
    base_init: Base = "xavier_normal",
    untied: Untied = False,
    block: BlockName = "classic",
    norm: NormKind = None,
    ffn_kind: FfnKind = None,
    positions: Positions = None,
    qk_norm: QkNorm = False,
    no_biases: NoBiases = False,
    data: Data = None,
    source: Source = None,
    target: Target = None,
    vocab: Vocab = 2000,
    max_tokens: MaxTokens = 256,
    seeds: Seeds = 0,
    steps: Steps = 16,
    warmup: Warmup = (4000, 0),
    lr: Rates = 5e-4,
    optimizer: Optimizer = "adam",
    weight_decay: WeightDecay = None,
    momentum: Momentum = None,
    dropout: Dropout = 0.0,
    clip: Clip = 0.0,
    label_smoothing: Smoothing = 0.1,
    stop_when_decided: StopWhenDecided = False,
    verdict_at: VerdictAt = 0,
    bleu: Bleu = False,
    beam: Beam = 4,
    length_penalty: LengthPenalty = 1.0,
    probes: Probes = None,
    record_every: RecordEvery = 10,
    snapshots: Snapshots = 0,
    out: Out = None,
    workers: Workers = "auto",
    device: Device = "auto",
    kernels: KernelPath = "fused",
    together: Together = "auto",
    dtype: Dtype = "float32",
    executor: Executor = "processes",
    scheduler: Scheduler = None,
    shard: Sharded = None,
    checkpoint_every: CheckpointEvery = "auto",
    run_timeout: RunTimeout = 0.0,
    retry_failed: RetryFailed = False,
    yes: Yes = False,
    listener: "CallListener | None" = None,
) -> "SweepResult":
    """Train every method at every depth and say which stay stable: a verdict table and an HTML report.

    The same command again trains nothing; a wider grid trains only what is missing.

    Raises UsageError for a value that is none. Commands that share a store train each run once. Warns of what is left
    out, and of runs without a result after three attempts (the others are stored). The defaults of the warm-up
    are the papers' early updates, and the stress test that a forecast reads.

    >>> import stabkit
    >>> swept = stabkit.sweep("deepnorm", depths=2, steps=2, hidden=16, ffn=32, vocab=200, out=out)
    >>> swept.runs[["label", "depth", "outcome"]].drop_duplicates().to_dict("records")
    [{'label': 'DeepNorm', 'depth': '2L-2L', 'outcome': 'early'}]
    """
    return _train("sweep", locals())


def ablate(
    model: Model = "deepnorm",
    *,
    depths: Depths = 18,
    arch: Arch = "encoder-decoder",
    recipe: Recipe = "shared",
    alpha_scale: Factors = None,
    beta_scale: BetaFactors = None,
    grid: WholeGrid = False,
    drop: Drop = None,
    drop_warmup: DropWarmup = None,
    hidden: Widths = 64,
    ffn: Ffn = 128,
    heads: Heads = 2,
    base_init: Base = "xavier_normal",
    untied: Untied = False,
    block: BlockName = "classic",
    norm: NormKind = None,
    ffn_kind: FfnKind = None,
    positions: Positions = None,
    qk_norm: QkNorm = False,
    no_biases: NoBiases = False,
    data: Data = None,
    source: Source = None,
    target: Target = None,
    vocab: Vocab = 2000,
    max_tokens: MaxTokens = 512,
    seeds: Seeds = 0,
    steps: Steps = 250,
    warmup: Warmup = 0,
    lr: Rates = 2e-3,
    optimizer: Optimizer = "adam",
    weight_decay: WeightDecay = None,
    momentum: Momentum = None,
    dropout: Dropout = 0.0,
    clip: Clip = 0.0,
    label_smoothing: Smoothing = 0.1,
    stop_when_decided: StopWhenDecided = False,
    verdict_at: VerdictAt = 0,
    bleu: Bleu = False,
    beam: Beam = 4,
    length_penalty: LengthPenalty = 1.0,
    probes: Probes = None,
    record_every: RecordEvery = 10,
    snapshots: Snapshots = 0,
    out: Out = None,
    workers: Workers = "auto",
    device: Device = "auto",
    kernels: KernelPath = "fused",
    together: Together = "auto",
    dtype: Dtype = "float32",
    executor: Executor = "processes",
    scheduler: Scheduler = None,
    shard: Sharded = None,
    checkpoint_every: CheckpointEvery = "auto",
    run_timeout: RunTimeout = 0.0,
    retry_failed: RetryFailed = False,
    yes: Yes = False,
    listener: "CallListener | None" = None,
) -> "SweepResult":
    """Scale α and β (DeepNet Fig. 9): what breaks when the shortcut or the initialisation is off?

    Without --alpha-scale and --beta-scale each is scaled by 0.25, 0.5, 1, 2 and 4 in turn: nine runs.

    Raises and warns as `sweep`.
    """
    return _train("ablate", locals())


def transfer(
    factory: Annotated[
        str | Callable[..., Any] | None,
        Argument("Your own model: package.module:function, called with a depth; or --models.", "FACTORY"),
    ] = None,
    *,
    models: Compared = None,
    depths: Carried = (6, 12, 24),
    widths: OwnWidths = None,
    lr: RateSpan = "1e-4..1e-1",
    steps: Steps = 300,
    seeds: Seeds = SEEDS,
    predict: Predict = None,
    highest: Highest = False,
    budget: TimeBudget = "",
    warmup: OwnWarmup = None,
    arch: Arch = "encoder-decoder",
    hidden: Widths = 64,
    ffn: Ffn = 128,
    heads: Heads = 2,
    base_init: Base = "xavier_normal",
    untied: Untied = False,
    block: BlockName = "classic",
    norm: NormKind = None,
    ffn_kind: FfnKind = None,
    positions: Positions = None,
    qk_norm: QkNorm = False,
    no_biases: NoBiases = False,
    data: Data = None,
    source: Source = None,
    target: Target = None,
    vocab: Vocab = 2000,
    max_tokens: MaxTokens = 256,
    optimizer: Optimizer = "adam",
    weight_decay: WeightDecay = None,
    momentum: Momentum = None,
    dropout: Dropout = 0.0,
    clip: Clip = 0.0,
    label_smoothing: Smoothing = 0.1,
    probes: Probes = None,
    out: Out = None,
    workers: Workers = "auto",
    device: Device = "auto",
    kernels: KernelPath = "fused",
    together: Together = "auto",
    dtype: Dtype = "float32",
    executor: Executor = "processes",
    scheduler: Scheduler = None,
    shard: Sharded = None,
    run_timeout: RunTimeout = 0.0,
    retry_failed: RetryFailed = False,
    yes: Yes = False,
    listener: "CallListener | None" = None,
) -> "TransferResult":
    """Find the best learning rate at every depth, or width, and say whether the smallest's carries to the largest.

    Of your own model (FACTORY) or of built-in methods (--models): carries, drifts by which law, or cannot be told.

    Beside the best rate stands the highest stable one: the highest that trains. `highest` searches that alone.

    Every run makes equal updates; what its loss is read on it was not trained on. Raises and warns as `sweep`, and as
    `probe` of a factory.
    """
    values = locals()
    del values["listener"]
    from stabkit.options import probe as own_options
    from stabkit.options import transfer as options
    from stabkit.options.lines import line
    from stabkit.report.result import Silent, TransferResult
    from stabkit.running import transfer as searching
    from stabkit.running import trials
    from stabkit.running.executors import several
    from stabkit.running.request import check
    from stabkit.storage.store import Store

    every = filled("transfer", values)
    limit = ranges.duration("--budget", budget)
    shown = f"transfer {own_options.name(factory)}" if factory else "transfer"
    following = listener or Silent(f"stabkit {line(shown, {**values, 'factory': None}, COMMANDS)}")
    if factory:
        own = options.of_factory(every)
        store = Store(own.request.out)
        store.writable()
        with several("processes", own.place) as execute:
            train, seconds = trials.of_factory(own.request, execute, own.place.workers, following.trying)
            searched = searching.search(own.plan, train, seconds, limit)
        if searched.failed and not any(valley.trials for case in searched.found for valley in case.valleys):
            raise UsageError(f"no size has a result: {searched.failed[0][1]}")
        name = options.page_name(own)
    else:
        asked = options.of_methods(every, following.making)
        for note in asked.request.notes:
            following.noted(note)
        if not yes:
            check(asked.request)
        store = Store(asked.request.out)
        store.writable()
        train, seconds = searching.of_methods(
            asked.plan, asked.cells, asked.request, store, following, retry_failed=retry_failed
        )
        searched = searching.search(asked.plan, train, seconds, limit)
        name = options.page_name(asked)
    if listener is None:
        for run, reason in searched.failed:
            warn(f"{run} has no result: {reason}")
    return TransferResult(call=following.command, out=store.out, name=name, searched=searched)


def landscape(
    model: Drawn = "deepnorm",
    *,
    against: Against = "post-ln",
    factory: Factory = None,
    weights: Weights = None,
    depths: Depths = 18,
    arch: Arch = "encoder-decoder",
    recipe: Recipe = "shared",
    hidden: Widths = 64,
    ffn: Ffn = 128,
    heads: Heads = 2,
    base_init: Base = "xavier_normal",
    untied: Untied = False,
    block: BlockName = "classic",
    norm: NormKind = None,
    ffn_kind: FfnKind = None,
    positions: Positions = None,
    qk_norm: QkNorm = False,
    no_biases: NoBiases = False,
    data: Data = None,
    source: Source = None,
    target: Target = None,
    vocab: Vocab = 2000,
    max_tokens: MaxTokens = 512,
    seeds: Seeds = 0,
    steps: Steps = 100,
    warmup: Warmup = 0,
    lr: Rates = 5e-4,
    optimizer: Optimizer = "adam",
    weight_decay: WeightDecay = None,
    momentum: Momentum = None,
    dropout: Dropout = 0.0,
    clip: Clip = 0.0,
    label_smoothing: Smoothing = 0.1,
    stop_when_decided: StopWhenDecided = False,
    verdict_at: VerdictAt = 0,
    bleu: Bleu = False,
    beam: Beam = 4,
    length_penalty: LengthPenalty = 1.0,
    probes: Probes = None,
    record_every: RecordEvery = 10,
    snapshots: Snapshots = 16,
    at: At = "end",
    range: Range = 1.0,
    points: Points = 25,
    cut_points: CutPoints = 51,
    direction_seeds: DirectionSeeds = DIRECTIONS,
    normalise: Normalise = "filter",
    one_dimensional: OneDimensional = False,
    path: PathPlane = "pca",
    engine: Engine = "stabkit",
    out: Out = None,
    workers: Workers = "auto",
    device: Device = "auto",
    kernels: KernelPath = "fused",
    together: Together = "auto",
    dtype: Dtype = "float32",
    executor: Executor = "processes",
    scheduler: Scheduler = None,
    shard: Sharded = None,
    checkpoint_every: CheckpointEvery = "auto",
    run_timeout: RunTimeout = 0.0,
    retry_failed: RetryFailed = False,
    yes: Yes = False,
    listener: "CallListener | None" = None,
) -> "SweepResult | ModelSurface":
    """Draw the loss around a trained model, beside another's: how smooth is it, and under which normalisation?

    Surfaces and cuts along random directions in three normalisations, and the path of training in its own plane.

    Nothing is trained for a model of one's own (`factory`). Raises and warns as `sweep`.
    """
    values = locals()
    if weights and not factory:
        raise UsageError("--weights is for the model of --factory")
    if factory:
        return _around(factory, values)
    return _train("landscape", values)


@overload
def probe(
    factory: Annotated[str | Callable[..., Any], Argument("package.module:function, called with a depth.", "FACTORY")],
    depths: OwnDepths = ...,
    *,
    widths: None = ...,
    blocks: Blocks = ...,
    seeds: Seeds = ...,
    steps: OwnSteps = ...,
    lr: OwnRates = ...,
    warmup: OwnWarmup = ...,
    no_cures: NoCures = ...,
    cure_time: CureTime = ...,
    out: Out = ...,
    workers: Workers = ...,
    shard: Sharded = ...,
    run_timeout: RunTimeout = ...,
    fresh: Fresh = ...,
    listener: "CallListener | None" = ...,
) -> "ProbeResult": ...


@overload
def probe(
    factory: Annotated[str | Callable[..., Any], Argument("package.module:function, called with a depth.", "FACTORY")],
    depths: OwnDepths = ...,
    *,
    widths: Wholes,
    blocks: Blocks = ...,
    seeds: Seeds = ...,
    steps: OwnSteps = ...,
    lr: OwnRates = ...,
    warmup: OwnWarmup = ...,
    no_cures: NoCures = ...,
    cure_time: CureTime = ...,
    out: Out = ...,
    workers: Workers = ...,
    shard: Sharded = ...,
    run_timeout: RunTimeout = ...,
    fresh: Fresh = ...,
    listener: "CallListener | None" = ...,
) -> "CoordinatesResult": ...


def probe(
    factory: Annotated[str | Callable[..., Any], Argument("package.module:function, called with a depth.", "FACTORY")],
    depths: OwnDepths = None,
    *,
    widths: OwnWidths = None,
    blocks: Blocks = None,
    seeds: Seeds = SEEDS,
    steps: OwnSteps = 16,
    lr: OwnRates = None,
    warmup: OwnWarmup = None,
    no_cures: NoCures = False,
    cure_time: CureTime = 0.0,
    out: Out = None,
    workers: Workers = "auto",
    shard: Sharded = None,
    run_timeout: RunTimeout = 0.0,
    fresh: Fresh = False,
    listener: "CallListener | None" = None,
) -> "ProbeResult | CoordinatesResult":
    """Probe your own model over depths before you train it: will it train, which link breaks, and what mends it?

    factory(depth) returns a model, (model, loss), (model, loss, optimizer) or (model, loss, optimizer, scheduler), with
    loss(model, step) on the batch of that step. Exits with 7 where it is likely stuck.

    With `widths` a factory(depth, width) is probed at one depth: do its coordinates keep their size over width, which
    is what lets a rate carry over?

    From Python `factory` may be the function itself, if a fresh process can import it (not one of `__main__`), and
    nothing exits: `.verdict` says it. Raises UsageError where the factory cannot be called or gives no result at any
    depth; warns of each depth that has none.

    >>> import stabkit
    >>> probed = stabkit.probe("tests.own.probe_models:pre_ln", depths=(2, 4, 8), seeds=0, steps=2, out=out)
    >>> sorted(probed.links["link"])
    ['finite', 'gradient', 'loss', 'scores', 'stream', 'tokens', 'update']
    """
    values = locals()
    del values["listener"]
    from stabkit.options import probe as options
    from stabkit.options.lines import line
    from stabkit.report.result import CoordinatesResult, ProbeResult, Silent
    from stabkit.results.own.coordinates import coordinates
    from stabkit.results.own.judged import judged, least_likely, refuse
    from stabkit.running import probes
    from stabkit.running.executors import several
    from stabkit.storage.store import Store

    asked, place = options.probe(filled("probe", values))
    begin = time.monotonic()
    following = listener or Silent(f"stabkit {line(f'probe {asked.factory}', values, COMMANDS)}")
    store = Store(asked.out)
    store.writable()
    with several("processes", place) as execute:
        with following.probing(len(asked.specs())) as (tell, ended):
            done = probes.run(asked, execute, tell, ended)
        if done.results:
            refuse(done.results)
        found = judged(done.results) if done.results and asked.widths == (None,) else None
        if found is not None and not no_cures and found.mendable:
            limit = asked.cure_time or time.monotonic() - begin
            seed = least_likely(found)
            cures, untried = probes.cures(asked, found.worst.lr, seed, execute, limit, following.probing)
            on = seed if len(asked.seeds) > 1 else None
            wanted = probes.time_for_all(limit, len(cures), untried)
            found = replace(found, cures=tuple(cures), tried_on=on, untried=untried, wanted=wanted)
    if not done.results:
        _, lost = done.lost[0]
        log = f"; full traceback: {lost.log}" if lost.log else ""
        raise UsageError(f"{asked.factory} gave no result at any depth: {lost.reason}{log}")
    if listener is None:
        for cell, lost in done.lost:
            warn(f"depth {cell.depth}, seed {cell.seed} has no result: {lost.reason}")
    if found is None:
        return CoordinatesResult(
            call=following.command, request=asked, done=done, found=coordinates(done.results, len(asked.widths))
        )
    return ProbeResult(call=following.command, request=asked, done=done, judged=found)


def audit(
    factory: Annotated[
        str,
        Argument("package.module:function that returns a model, (model, inputs) or (model, loss).", "MODULE:NAME"),
    ],
    *,
    method: Annotated[
        str | None,
        Option("The recipe, as admin:omega=closed; default: the one that fits best.", TRAIN, "METHOD"),
    ] = None,
    depths: Annotated[
        str | int | Sequence[tuple[int, int]] | None,
        Option("Layers it should have: 18x12, or 18 for 18x18; default: those found.", TRAIN, "DEPTHS"),
    ] = None,
    arch: Annotated[
        ranges.Arch | None,
        Option("encoder-decoder, encoder-only or decoder-only; default: as found.", TRAIN),
    ] = None,
) -> "AuditResult":
    """Compare your own model with a method's recipe: run it once, measure it, say what is violated.

    Finds sub-layers, norms, scales and matrices in the forward pass, by no name. Exits with 6 on a violation.

    From Python nothing exits: `.verdict` says it, `.findings` has each violation. Raises UsageError where nothing can
    be recognised.
    """
    from stabkit.options import audit  # torch
    from stabkit.report.result import AuditResult

    return AuditResult(factory=factory, audit=audit.audit(factory, method, ranges.plain(depths), arch))


class WatchOptions(TypedDict, total=False):
    """The options of `watch`, for the callbacks of trainers (`stabkit.hf`, `stabkit.lightning`)."""

    probe: Any
    every: str | int
    out: str | Path
    name: str
    blocks: str
    warn: bool
    start: bool | None
    writer: Any
    page: bool


def watch(
    model: "torch.nn.Module",
    optimizer: "torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None" = None,
    *,
    probe: Any = None,
    every: str | int = "log",
    out: str | Path = "out",
    name: str = "",
    blocks: str = "",
    warn: bool = True,
    start: bool | None = None,
    writer: Any = None,
    page: bool = False,
) -> "Watch":
    """Record the chain of a model in training and warn, once a link, through `warnings`: `own.watch.watch.Watch`.

    `watch = stabkit.watch(model, optimizer)` before the loop, where step 0 is the model as it is; `watch.loss(loss)` in
    it, if the loss is to be on the page; `watch.close()` after it, or use it in a `with`. Of several optimisers
    (`[muon, adamw]`) an update is over when each has stepped.

    - probe: what the model is read on: arguments as tuple or dict, or one tensor; without it the model's first call's
    - every: `log`, after updates 0 to 16 and the powers of √2; or a number of updates
    - out: the store: records lie in <out>/own/<id>/, what is flushed is kept whatever happens
    - name, blocks: what begins the id; names of blocks, `h.*`, where no sums x + f(x) are found
    - warn: False: record alone; page: True: `close()` makes the page, as `stabkit report` does
    - start: keep a copy of θ_0 for ‖θ_t − θ_0‖, of itself up to 1 GB
    - writer: a SummaryWriter of TensorBoard, a run of Weights & Biases or Trackio, or the module mlflow

    Of several processes rank 0 writes and warns; all of them make the watch and close it.

    Raises UsageError for what cannot be watched: no module, no optimiser of its parameters, all of them frozen, LBFGS,
    a batch on another device or that the model cannot be read on.

    >>> import stabkit
    >>> model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    >>> optimizer = torch.optim.AdamW(model.parameters())
    >>> with stabkit.watch(model, optimizer, out=out) as watch:
    ...     _ = model(torch.ones(1, 3, 8)).mean().backward(), optimizer.step()
    >>> watch.steps, watch.ended
    (1, 'closed')
    """
    from stabkit.own.watch.watch import Watch

    def written(store: Path, watch_id: str, command: str) -> Path:
        from stabkit.report.own import watch  # pandas and matplotlib
        from stabkit.storage.watched import WatchShelf

        return watch.write(WatchShelf(store).load(watch_id), store, command)

    return Watch(
        model,
        optimizer,
        probe=probe,
        every=every,
        out=out,
        name=name,
        blocks=blocks,
        warn=warn,
        start=start,
        writer=writer,
        page=written if page else None,
    )


def load_runs(out: Folder = None) -> "pd.DataFrame":
    """Every finished run of the store at `out` (else STABKIT_HOME, else here), a row each, in the order of all tables.

    Columns: what it is (run, method, label, condition, depth, encoder_layers, decoder_layers, seed, lr, warmup, steps),
    its outcome, validation_loss and unigram_loss in nats a token, update (‖ΔF‖ at the table's reference step, output
    units), gradient_ratio (lowest layer's over top layer's, the least of the run), forecast (a word or "") and
    p_trains (NaN where there is none). A damaged run is left out with a warning. Raises StoreError where there is no
    store.

    >>> import stabkit
    >>> stabkit.load_runs(out)["method"].unique().tolist()
    ['deepnorm']
    """
    from stabkit.report.run_table import table

    return table(_stored(out))


def load_records(out: Folder = None) -> "pd.DataFrame":
    """Everything recorded in the store at `out` as one long table: run, step, probe, site, value. The rows of
    `stabkit export`; units are each probe's own.

    >>> import stabkit
    >>> records = stabkit.load_records(out)
    >>> list(records.columns)
    ['run', 'step', 'probe', 'site', 'value']
    >>> int(records.query("probe == 'update'")["step"].max())
    2
    """
    import pandas as pd

    from stabkit.storage import export

    return pd.DataFrame(list(export.rows(_stored(out))), columns=list(export.COLUMNS))


COMMANDS: Mapping[str, Mapping[str, Any]] = {
    function.__name__: {
        name: parameter.default
        for name, parameter in signature(function).parameters.items()
        if name != "listener" and parameter.default is not parameter.empty
    }
    for function in (sweep, ablate, transfer, probe, landscape)
}
"""{command: {option: default}}, of those that train."""


def request(command: str, options: Mapping[str, Any], making: Callable[[str], None] = lambda what: None) -> "Request":
    """What a command that trains is asked for with these options, the others at their defaults; nothing is trained.
    `making` is told of what takes seconds. Raises UsageError, TooManyRuns."""
    from stabkit.options import grids, landscape
    from stabkit.options import transfer as carried

    read = {
        "sweep": grids.sweep,
        "ablate": grids.ablate,
        "landscape": landscape.landscape,
        "transfer": carried.request,
    }
    return read[command](filled(command, options), making)


def filled(command: str, options: Mapping[str, Any]) -> Options:
    """Every option's value: what is not given at its default, what this command does not take as `sweep` has it."""
    defaults = {**COMMANDS["sweep"], **COMMANDS[command]}
    values = {name: ranges.plain(value) for name, value in options.items()}
    for name, value in values.items():
        if isinstance(defaults.get(name), bool) and not isinstance(value, bool):
            raise UsageError(f"{name} must be True or False, not {value!r}")
    given = {name for name, value in values.items() if ranges.text(value) != ranges.text(defaults.get(name))}
    every = {name: default for known in COMMANDS.values() for name, default in known.items()}
    return cast(Options, {**every, **defaults, **values, "given": frozenset(given)})


def _asked(command: str, values: Mapping[str, Any], listener: "CallListener | None") -> "tuple[Request, CallListener]":
    """The request of a call, and who follows it; its notes are given to them."""
    from stabkit.options.lines import line
    from stabkit.report.result import Silent

    following = listener or Silent(f"stabkit {line(command, values, COMMANDS)}")
    asked = request(command, values, following.making)
    for note in asked.notes:
        following.noted(note)
    return asked, following


def _train(command: str, values: dict[str, Any]) -> "SweepResult":
    """Train what is missing, measure what is asked for."""
    from stabkit.options import own
    from stabkit.report.result import SweepResult
    from stabkit.running import execute
    from stabkit.running.request import check
    from stabkit.storage.store import Store

    listener = values.pop("listener")
    asked, following = _asked(command, values, listener)
    if not values["yes"]:
        check(asked)
    store = Store(asked.out)
    store.writable()
    trained = execute.run(asked, store, following, retry_failed=values["retry_failed"])
    for note in own.changed(asked.files):
        following.noted(note)
    if listener is None:
        _lost(len(trained.failed), len(asked.specs))
        _lost(len(trained.untranslated), len(trained.runs), "were not translated")
    return SweepResult(name=command, call=following.command, out=asked.out, specs=asked.specs, trained=trained)


def _lost(count: int, of: int, what: str = "have no result") -> None:
    """Warn where the call stands."""
    if count:
        warn(f"{count} of {of} runs {what}; `.failed` and the page say why")


def _around(factory: str, values: Mapping[str, Any]) -> "ModelSurface":
    """The loss around a user's own model, which stays as it is: one surface, and a cut a direction seed."""
    from stabkit.options import landscape, machine
    from stabkit.own.factory import model_and_loss
    from stabkit.report.result import ModelSurface
    from stabkit.surface.anymodel import loss_surface

    options = filled("landscape", values)
    wanted, out = landscape.surfaces(options, 0, "cpu"), machine.output(options["out"])
    model, loss = model_and_loss("--factory", factory, str(options["weights"] or ""))
    plane: dict[str, Any] = {
        "reach": wanted.reach,
        "normalise": wanted.normalise,
        "one_dimensional": wanted.one_dimensional,
    }
    seeds, engine = wanted.direction_seeds, wanted.engine
    try:
        around = loss_surface(model, loss, points=wanted.points, seed=seeds[0], engine=engine, **plane)
        cuts = [loss_surface(model, loss, points=wanted.cut_points, seed=seed, cut=True, **plane) for seed in seeds]
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UsageError(f"--factory: its loss raised {why}") from error
    return ModelSurface(factory=factory, out=out, surface=around, cuts=cuts)


def _stored(out: Folder) -> "list[Run]":
    from stabkit.options import machine
    from stabkit.storage.folder import CorruptFolder
    from stabkit.storage.store import Store

    home = machine.output(out)
    if not (home / "runs").is_dir():
        raise StoreError(f"no store at {home}: it has no folder runs/; give the --out of a sweep")
    store, runs = Store(home), []
    for run_id in store.ids():
        try:
            runs.append(store.load(run_id))
        except CorruptFolder as error:
            warn(f"left out a corrupt run: {error}")
    return runs
