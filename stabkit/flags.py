"""Options (texts) → a Request, every one checked before torch is imported."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from stabkit import methods, ranges
from stabkit.errors import UsageError, nearest
from stabkit.executors import EXECUTORS, Place
from stabkit.landscape import PathPlane, Wanted
from stabkit.methods.deepnorm import TABLE_11
from stabkit.options import TRAINING
from stabkit.quality.plan import Wanted as Translations
from stabkit.quality.spec import MOST_BEAMS, Search
from stabkit.request import Request
from stabkit.spec import (
    BaseInit,
    Grid,
    ModelConfig,
    Optimizer,
    RecipeName,
    RunSpec,
    TaskConfig,
    TrainConfig,
    snapshot_steps,
)
from stabkit.surface.directions import NORMALISATIONS
from stabkit.surface.spec import Engine

DEVICES = ("auto", "cpu", "cuda", "mps")
SLOPE_RATES = {"float64": "1e-5", "float32": "1e-4,1e-5"}
"""η small enough to be linear and large enough to be seen: at 1e-6 in float32 rounding eats up to half of it."""


def sweep(options: Mapping[str, Any]) -> Request:
    """The request of a sweep; raises UsageError that names the option."""
    text = {name: value for name, value in options.items() if isinstance(value, str)}
    depths = ranges.depths("--depths", text["depths"], ranges.stacks("--arch", text["arch"]))
    recipe = _choice("--recipe", text["recipe"], get_args(RecipeName))
    widths = ranges.wholes("--hidden", text["hidden"], 2, 8192)
    batches = ranges.wholes("--max-tokens", text["max_tokens"], 16, 1_000_000)
    model = ModelConfig(
        encoder_layers=depths[0][0],
        decoder_layers=depths[0][1],
        hidden=widths[0],
        ffn=_ffn(text["ffn"], widths[0]),
        heads=ranges.whole("--heads", text["heads"], 1, 128),
        base_init=_choice("--base-init", text["base_init"], get_args(BaseInit)),
    )
    for hidden in widths:
        if hidden % model.heads or hidden % 2:
            raise UsageError(f"--hidden {hidden} must be even and divide by --heads {model.heads}")
    train = TrainConfig(
        steps=ranges.whole("--steps", text["steps"], 0, 10_000_000),
        optimizer=_choice("--optimizer", text["optimizer"], get_args(Optimizer)),
        max_tokens=batches[0],
        dropout=ranges.real("--dropout", text["dropout"], 0.0, 0.99),
        clip=ranges.real("--clip", text["clip"], 0.0, 1e9),
        label_smoothing=ranges.real("--label-smoothing", text["label_smoothing"], 0.0, 0.99),
        stop_when_decided=bool(options["stop_when_decided"]),
    )
    vocab = ranges.whole("--vocab", text["vocab"], 8, 200_000)
    warmups = ranges.wholes("--warmup", text["warmup"], 0, 10_000_000)
    rates = ranges.reals("--lr", text["lr"], 0.0, 1e6, above=True)
    seeds = ranges.wholes("--seeds", text["seeds"], 0, 2**31 - 1)
    record_every = ranges.whole("--record-every", text["record_every"], 1, 1_000_000)
    snapshots = ranges.whole("--snapshots", text["snapshots"], 0, 1000)
    chosen, notes = _methods(text["models"], depths)
    if recipe == "paper":
        _own(options.get("given", ()), text)
    device_text = _device(text["device"])
    workers_text = (
        text["workers"] if text["workers"] == "auto" else str(ranges.whole("--workers", text["workers"], 1, 1024))
    )
    out = output(text["out"])
    task, corpus = _task(text["data"], text["source"], text["target"], vocab)
    device = _resolved(device_text)
    kind = device.partition(":")[0]
    for name in ("beam", "length_penalty"):
        if not options["bleu"] and text[name] != TRAINING[name][1]:
            raise UsageError(
                f"--{name.replace('_', '-')} is for --bleu, which translates; got {text[name]!r} without it"
            )
    translations = _translations(text, model, task, corpus, kind) if options["bleu"] else None
    grid = Grid(
        base=RunSpec(
            method=chosen[0][0],
            model=model,
            train=train,
            task=task,
            recipe=recipe,
            dtype=_choice("--dtype", text["dtype"], ("float32", "float64")),
            record_every=record_every,
            snapshots=snapshots,
            device=kind,
        ),
        methods=chosen,
        depths=depths,
        seeds=seeds,
        warmups=warmups,
        lrs=rates,
    )
    every = (
        None
        if text["checkpoint_every"] == "auto"
        else ranges.whole("--checkpoint-every", text["checkpoint_every"], 0, 10_000_000)
    )
    executor = _choice("--executor", text["executor"], tuple(EXECUTORS))
    scheduler = _scheduler(executor, text["scheduler"])
    timeout = ranges.real("--run-timeout", text["run_timeout"], 0.0, 1e9) or None
    workers = (_cores() if device == "cpu" else 1) if workers_text == "auto" else int(workers_text)
    shapes = [(hidden, _ffn(text["ffn"], hidden), size) for hidden in widths for size in batches]
    return Request(
        grids=tuple(_sized(grid, *shape) for shape in shapes),
        translations=translations,
        out=out,
        device=device,
        corpus=corpus,
        checkpoint_every=every,
        executor=executor,
        place=Place(workers=workers, run_timeout=timeout, scheduler=scheduler),
        notes=notes,
    )


def slope(options: Mapping[str, Any]) -> Request:
    """The request of one SGD step a run: small enough to be linear, and in float32 at two rates that must agree."""
    text = {name: str(value) for name, value in options.items()}
    dtype = _choice("--dtype", text["dtype"], ("float32", "float64"))
    rate = text["rate"] or SLOPE_RATES[dtype]
    ranges.reals("--rate", rate, 0.0, 1e6, above=True)
    step = {"steps": "1", "warmup": "0", "optimizer": "sgd", "lr": rate}
    return sweep({**{name: default for name, (_, default) in TRAINING.items()}, **options, **step})


def ablate(options: Mapping[str, Any]) -> Request:
    """The request of an ablation: a sweep of one method with α and β as two more axes."""
    key, chosen = methods.parse(str(options["model"]))
    if key not in methods.scalable():
        raise UsageError(f"--model {key} has no α and β to scale; {', '.join(methods.scalable())} has")
    alphas = ranges.scales("--alpha-scale", str(options["alpha_scale"] or "0.25..4"))
    betas = ranges.scales("--beta-scale", str(options["beta_scale"] or "0.25..4"))
    asked = (bool(options["alpha_scale"]), bool(options["beta_scale"]))
    drops = [word.strip() for word in str(options["drop"]).split(",")] if options["drop"] else []
    if options["drop_warmup"] and not drops:
        raise UsageError("--drop-warmup is for the rows of --drop deepnorm,init")
    for word in drops:
        if word in TABLE_11 and any(chosen.get(option) == value for option, value in TABLE_11[word].items()):
            raise UsageError(f"--drop {word}: --model {options['model']} is without it already")
        if word not in TABLE_11 or any(option not in methods.options(key) for option in TABLE_11[word]):
            raise UsageError(f"--drop: {word!r} is not one of {', '.join(TABLE_11)}{nearest(word, TABLE_11)}")
    request = sweep({**options, "models": methods.parse_back(key, chosen)})
    grid = _single(request, "an ablation")
    if options["grid"]:
        grids = [replace(grid, alpha_scales=alphas, beta_scales=betas)]
    else:
        grids = [replace(grid, alpha_scales=alphas)] if asked[0] or asked == (False, False) else []
        grids += [replace(grid, beta_scales=betas)] if asked[1] or asked == (False, False) else []
    if drops:
        own = "0" if options["recipe"] == "paper" else "0,150"  # a recipe has its own
        warmups = ranges.wholes("--drop-warmup", str(options["drop_warmup"] or own), 0, 10_000_000)
        rows = ((key, chosen), *((key, {**chosen, **TABLE_11[word]}) for word in drops))
        grids.append(replace(grid, methods=rows, warmups=warmups))
    return replace(request, grids=tuple(grids))


def landscape(options: Mapping[str, Any]) -> Request:
    """The request of a landscape: the runs of two methods, and the surfaces around them."""
    text = {name: str(value) for name, value in options.items()}
    models = [text["model"], *([text["against"]] if text["against"] else [])]
    parsed = [methods.parse(model) for model in models]
    if len({methods.label(*one) for one in parsed}) < len(parsed):
        raise UsageError(f"--against {text['against']} is --model itself; name another method, or '' for none")
    request = sweep({**options, "models": ",".join(models)})
    grid = _single(request, "a landscape")
    if len(grid.warmups) > 1 or len(grid.lrs) > 1:
        raise UsageError("a landscape is of one --warmup and one --lr; run it once for each")
    wanted = surfaces(text, grid.base.train.steps, request.device.partition(":")[0])
    kept = sorted({*snapshot_steps(grid.base), grid.base.train.steps})
    if wanted.at not in ("end", *map(str, kept)) and not (wanted.at == "init" and 0 in kept):
        have = ", ".join(map(str, kept))
        raise UsageError(f"--at {wanted.at}: with --snapshots {text['snapshots']} the weights of steps {have} are kept")
    return replace(request, surfaces=wanted)


def depth(n: int, m: int) -> dict[str, str]:
    """--depths and --arch of a model of N encoder and M decoder layers."""
    if n and m:
        return {"depths": f"{n}x{m}", "arch": "encoder-decoder"}
    return {"depths": str(n or m), "arch": "encoder-only" if n else "decoder-only"}


def surfaces(text: Mapping[str, str], steps: int, device: str) -> Wanted:
    """Which surfaces; `steps`: the last that `--at` may name."""
    points = ranges.whole("--points", text["points"], 3, 1001)
    cut_points = ranges.whole("--cut-points", text["cut_points"], 3, 100_001)
    for option, count in (("--points", points), ("--cut-points", cut_points)):
        if count % 2 == 0:
            raise UsageError(f"{option} must be odd, so that one point is the middle; got {count}, use {count + 1}")
    at = text["at"]
    if at not in ("init", "end"):
        at = str(ranges.whole("--at", at, 0, steps))
    return Wanted(
        at=at,
        points=points,
        reach=ranges.real("--range", text["range"], 0.0, 1e6, above=True),
        cut_points=cut_points,
        direction_seeds=ranges.wholes("--direction-seeds", text["direction_seeds"], 0, 2**31 - 1),
        normalise=_choice("--normalise", text["normalise"], NORMALISATIONS),
        one_dimensional=text["one_dimensional"] == "True",
        path=_choice("--path", text["path"], get_args(PathPlane)),
        device=device,
        engine=_choice("--engine", text["engine"], get_args(Engine)),
    )


def _methods(
    text: str, depths: tuple[tuple[int, int], ...]
) -> tuple[tuple[tuple[str, Mapping[str, str]], ...], tuple[str, ...]]:
    """The methods named, and what `all` leaves out; a method named that its papers do not define here is refused."""
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    notes: list[str] = []
    for item in text.split(","):
        if not item.strip():
            raise UsageError(f"--models: {text!r} has an empty place; `stabkit methods` lists all")
        for key, options in [(key, {}) for key in methods.KEYS] if item.strip() == "all" else [methods.parse(item)]:
            method = methods.build(key, options)
            reasons = [reason for n, m in depths if (reason := method.undefined(n, m))]
            if reasons and item.strip() != "all":
                raise UsageError(f"--models: {method.label} is not defined here: {reasons[0]}")
            if reasons:
                notes.append(f"{method.label} is left out: {reasons[0]}")
            else:
                found[methods.label(key, options)] = key, options
    return tuple(found.values()), tuple(notes)


def _own(given: Collection[str], text: Mapping[str, str]) -> None:
    """Refuse a setting that each method's own recipe decides."""
    for name in ("base_init", "optimizer", "lr", "warmup", "drop_warmup"):
        if name in given:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"--recipe paper gives each method its own {option}; leave {option} {text.get(name, '')} out"
            )


def _choice(option: str, text: str, valid: tuple[Any, ...]) -> Any:
    if text not in valid:
        raise UsageError(f"{option}: {text!r} is not one of {', '.join(valid)}{nearest(text, valid)}")
    return text


def _ffn(text: str, hidden: int) -> int:
    """--ffn: a number, or `2x` for twice the width."""
    if "," in text:
        raise UsageError(f"--ffn takes one number, or one factor of the width like 2x; got {text!r}")
    if text.endswith("x"):
        return hidden * ranges.whole("--ffn", text.removesuffix("x"), 1, 32)
    return ranges.whole("--ffn", text, 1, 32768)


def _sized(grid: Grid, hidden: int, ffn: int, max_tokens: int) -> Grid:
    """The grid at one width and one size of batches."""
    base, task = grid.base, grid.base.task
    if not task.source:
        from stabkit.tasks.synthetic import Synthetic

        task = replace(task, digest=Synthetic(vocab=task.vocab, max_tokens=max_tokens).digest)
    return replace(
        grid,
        base=replace(
            base,
            model=replace(base.model, hidden=hidden, ffn=ffn),
            train=replace(base.train, max_tokens=max_tokens),
            task=task,
        ),
    )


def _single(request: Request, what: str) -> Grid:
    """The request's one grid; raises UsageError where widths or batches make several."""
    if len(request.grids) > 1:
        raise UsageError(f"{what} is of one --hidden and one --max-tokens; run it once for each")
    return request.grids[0]


def _translations(
    text: Mapping[str, str], model: ModelConfig, task: TaskConfig, corpus: dict[str, str] | None, device: str
) -> Translations:
    """What --bleu translates; raises before anything is trained."""
    from stabkit.quality import plan

    plan.check(model.encoder_layers, model.decoder_layers)
    search = Search(
        beam=ranges.whole("--beam", text["beam"], 1, MOST_BEAMS),
        length_penalty=ranges.real("--length-penalty", text["length_penalty"], 0.0, 10.0),
    )
    if corpus is None:
        from stabkit.tasks.synthetic import test_digest

        return Translations(search=search, sentences=test_digest(task.vocab), device=device)
    from stabkit.tasks import corpus as door

    files = door.find(Path(corpus["directory"]), task.source, task.target)
    return Translations(search=search, sentences=door.test_digest(files), device=device)


def _scheduler(executor: str, text: str) -> str:
    """The address of a Dask scheduler where one is needed."""
    if executor != "dask":
        if text:
            raise UsageError("--scheduler is for --executor dask")
        return ""
    if not re.fullmatch(r"(tcp|tls|ws|wss)://[A-Za-z0-9.:_\[\]-]+:[0-9]{1,5}", text):
        raise UsageError(
            f"--executor dask needs --scheduler tcp://host:8786, the address of a Dask scheduler; got {text!r}"
        )
    if importlib.util.find_spec("distributed") is None:
        raise UsageError("--executor dask needs Dask: pip install 'stabkit[dask]'")
    return text


def _device(text: str) -> str:
    kind, colon, number = text.partition(":")
    if kind not in DEVICES or (colon and (kind != "cuda" or not (number.isascii() and number.isdigit()))):
        raise UsageError(f"--device: {text!r} is not one of auto, cpu, cuda, cuda:1, mps{nearest(text, DEVICES)}")
    return text


def _resolved(text: str) -> str:
    """`auto` as a device; torch is imported only where its build has anything but a CPU."""
    if text == "cpu" or (text == "auto" and _cpu_only()):
        return "cpu"
    import torch

    if text == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    kind, _, number = text.partition(":")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise UsageError(f"--device {text}: torch sees {torch.cuda.device_count()} CUDA devices; use --device cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UsageError("--device mps: torch sees no Metal device; use --device cpu")
    return f"cuda:{number or 0}" if kind == "cuda" else kind


def _cpu_only() -> bool:
    from importlib.metadata import version

    return version("torch").endswith("+cpu")


def output(text: str) -> Path:
    """The output directory, there or to be made; raises UsageError."""
    if any(ord(c) < 32 for c in text):
        raise UsageError(f"--out: {text!r} holds control characters")
    out = Path(text or ".").absolute()
    try:
        return _usable(out)
    except OSError as error:
        raise UsageError(f"--out: {text[:80]!r}: {error.strerror or error}") from error


def _usable(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is a file; it takes a directory")
    if (out / "runs").exists() and not (out / "runs").is_dir():
        raise UsageError(f"--out: {out / 'runs'} is a file; stabkit keeps its runs there")
    if (out / "reports").exists() and not (out / "reports").is_dir():
        raise UsageError(f"--out: {out / 'reports'} is a file; stabkit keeps its reports there")
    nearest_parent = next(p for p in (out, *out.parents) if p.exists())
    if not os.access(nearest_parent, os.W_OK | os.X_OK):
        raise UsageError(f"--out: no permission to write to {nearest_parent}")
    return out


def _task(data: str, source: str, target: str, vocab: int) -> tuple[TaskConfig, dict[str, str] | None]:
    if not data:
        if source or target:
            raise UsageError("--source and --target name the languages of --data; without it the task is synthetic")
        return TaskConfig(vocab=vocab), None  # its digest follows from the size of the batches (_sized)
    if not source or not target:
        raise UsageError("--data needs --source and --target, the endings of its files: --source de --target en")
    from stabkit.tasks import corpus

    files = corpus.find(Path(data), source, target)
    for sides in (files.train, files.validation):
        corpus.read(sides)
    task = TaskConfig(name=f"{source}-{target}", vocab=vocab, source=source, target=target, digest=corpus.digest(files))
    return task, {"directory": str(Path(data).resolve())}


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
