"""The options of the commands that train, as a table: what each is called, says and defaults to.

Texts stay texts here; `parsing/` reads them. A command takes TRAINING and its own with `@taking(…)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import typer

from stabkit.cli import flags

TRAINING: dict[str, tuple[Any, Any]] = {
    "depths": (flags.Depths, "6,18,50,100"),
    "arch": (flags.Arch, "encoder-decoder"),
    "probes": (flags.Probes, ""),
    "recipe": (flags.RecipeOption, "shared"),
    "seeds": (flags.Seeds, "0"),
    "steps": (flags.Steps, "16"),
    "optimizer": (flags.OptimizerOption, "adam"),
    "warmup": (flags.Warmup, "4000"),
    "lr": (flags.Rate, "5e-4"),
    "max_tokens": (flags.MaxTokens, "512"),
    "dropout": (flags.Dropout, "0"),
    "clip": (flags.Clip, "0"),
    "label_smoothing": (flags.Smoothing, "0.1"),
    "vocab": (flags.Vocab, "2000"),
    "hidden": (flags.Hidden, "64"),
    "ffn": (flags.Ffn, "128"),
    "heads": (flags.Heads, "2"),
    "base_init": (flags.BaseInitOption, "xavier_normal"),
    "untied": (flags.Untied, False),
    "block": (flags.BlockOption, "classic"),
    "norm": (flags.NormOption, ""),
    "ffn_kind": (flags.FfnKindOption, ""),
    "positions": (flags.PositionsOption, ""),
    "qk_norm": (flags.QkNorm, False),
    "no_biases": (flags.NoBiases, False),
    "stop_when_decided": (flags.StopWhenDecided, False),
    "verdict_at": (flags.VerdictAt, "0"),
    "bleu": (flags.Bleu, False),
    "beam": (flags.Beam, "4"),
    "length_penalty": (flags.LengthPenalty, "1"),
    "record_every": (flags.RecordEvery, "10"),
    "snapshots": (flags.Snapshots, "0"),
    "data": (flags.Data, ""),
    "source": (flags.Source, ""),
    "target": (flags.Target, ""),
    "workers": (flags.Workers, "auto"),
    "device": (flags.Device, "auto"),
    "dtype": (flags.Dtype, "float32"),
    "checkpoint_every": (flags.CheckpointEvery, "auto"),
    "run_timeout": (flags.RunTimeout, "0"),
    "retry_failed": (flags.RetryFailed, False),
    "executor": (flags.Executor, "processes"),
    "scheduler": (flags.Scheduler, ""),
    "out": (flags.Out, ""),
    "json": (flags.Json, False),
    "quiet": (flags.Quiet, False),
    "dry_run": (flags.DryRun, False),
    "yes": (flags.Yes, False),
    "config": (flags.ConfigFile, None),
    "print_config": (flags.PrintConfig, False),
}
"""The options of every command that trains, and their defaults."""


NOT_OF_A_STEP = (
    *("recipe", "optimizer", "steps", "warmup", "lr", "dropout", "clip", "record_every", "snapshots"),
    *("checkpoint_every", "dtype", "seeds", "stop_when_decided", "verdict_at", "bleu", "beam", "length_penalty"),
)
"""What a single step of SGD has no use for, or another default."""


MACHINE = (
    *("data", "source", "target", "vocab", "workers", "device", "checkpoint_every", "run_timeout", "retry_failed"),
    *("yes", "executor", "scheduler", "out", "json", "quiet", "dry_run", "config", "print_config"),
)
PAPER: dict[str, tuple[Any, Any]] = {
    "budget": (flags.BudgetOption, ""),
    "depths": (flags.ItemDepths, ""),
    "steps": (flags.ItemSteps, ""),
    "seeds": (flags.ItemSeeds, ""),
    "whole": (flags.Whole, False),
    **{name: TRAINING[name] for name in MACHINE},
}
"""The options of `stabkit paper`; what its items share besides is their own."""

SEARCHED = (
    *("recipe", "steps", "warmup", "lr", "record_every", "snapshots", "stop_when_decided", "verdict_at", "bleu"),
    *("beam", "length_penalty", "checkpoint_every"),
)
"""What the search for a rate decides itself, or has no use for."""

PROBE: dict[str, tuple[Any, Any]] = {
    "depths": (flags.ProbeDepths, ""),
    "seeds": (flags.Seeds, "0..2"),
    "steps": (flags.ProbeSteps, "8"),
    "lr": (flags.ProbeRate, ""),
    "blocks": (flags.BlocksOption, ""),
    "strict": (flags.Strict, False),
    "no_fail": (flags.NoFail, False),
    "fresh": (flags.Fresh, False),
    **{name: TRAINING[name] for name in ("workers", "run_timeout", "out", "json", "quiet")},
}
"""The options of `stabkit probe`."""

COMMANDS: dict[str, dict[str, tuple[Any, Any]]] = {
    "sweep": {
        "models": (flags.Models, "post-ln,post-ln-init,admin,deepnorm"),
        **TRAINING,
        "warmup": (flags.Warmup, "4000,0"),  # the papers' early updates, and the stress test that a forecast reads
        "max_tokens": (flags.MaxTokens, "256"),
    },
    "ablate": {
        "model": (flags.Model, "deepnorm"),
        "alpha_scale": (flags.AlphaScale, ""),
        "beta_scale": (flags.BetaScale, ""),
        "grid": (flags.WholeGrid, False),
        "drop": (flags.Drop, ""),
        "drop_warmup": (flags.DropWarmup, ""),
        **TRAINING,
        "depths": (flags.Depths, "18"),
        "lr": (flags.Rate, "2e-3"),
        "warmup": (flags.Warmup, "0"),
        "steps": (flags.Steps, "250"),
    },
    "slope": {
        "models": (flags.Models, "all"),
        "rate": (flags.SlopeRate, ""),
        **{name: option for name, option in TRAINING.items() if name not in NOT_OF_A_STEP},
        "dtype": (flags.Dtype, "float64"),
        "seeds": (flags.Seeds, "0..2"),
    },
    "tolerance": {
        "models": (flags.Models, "post-ln,post-ln-init,admin,deepnorm"),
        **{name: option for name, option in TRAINING.items() if name not in SEARCHED},
        "max_tokens": (flags.MaxTokens, "256"),
        "seeds": (flags.Seeds, "0..2"),
    },
    "probe": PROBE,
    "landscape": {
        "model": (flags.Method, "deepnorm"),
        "against": (flags.Against, "post-ln"),
        "at": (flags.At, "end"),
        "range": (flags.Range, "1"),
        "points": (flags.Points, "25"),
        "cut_points": (flags.CutPoints, "51"),
        "direction_seeds": (flags.DirectionSeeds, "0..4"),
        "normalise": (flags.NormaliseOption, "filter"),
        "one_dimensional": (flags.OneDimensional, False),
        "path": (flags.PathOption, "pca"),
        "engine": (flags.EngineOption, "stabkit"),
        "between": (flags.Between, ""),
        "factory": (flags.Factory, ""),
        "weights": (flags.Weights, ""),
        **TRAINING,
        "depths": (flags.Depths, "18"),
        "warmup": (flags.Warmup, "0"),
        "steps": (flags.Steps, "100"),
        "snapshots": (flags.Snapshots, "16"),
    },
}
"""What each command that trains takes, and its defaults."""


ARGUMENTS = {"items": flags.Items, "factory": flags.FactoryName}
"""What stands without an option's name."""


def taking(options: Mapping[str, tuple[Any, Any]], names: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Give a command these options, and the arguments `names`; it finds them in `ctx.params`."""

    def decorate(function: Any) -> Any:
        kind = inspect.Parameter.KEYWORD_ONLY
        function.__signature__ = inspect.Signature(
            [inspect.Parameter("ctx", kind, annotation=typer.Context)]
            + [inspect.Parameter(name, kind, annotation=ARGUMENTS[name]) for name in names]
            + [inspect.Parameter(name, kind, annotation=a, default=d) for name, (a, d) in options.items()]
        )
        given = {name: ARGUMENTS[name] for name in names}
        function.__annotations__ = {"ctx": typer.Context, **given, **{name: a for name, (a, _) in options.items()}}
        return function

    return decorate
