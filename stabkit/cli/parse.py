"""Options (texts) → a Request, every one checked before torch is imported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from stabkit import methods
from stabkit.cli import console, parse_machine, ranges
from stabkit.cli.options import TRAINING
from stabkit.errors import UsageError, nearest
from stabkit.methods.deepnorm import TABLE_11
from stabkit.results.translation import MOST_BEAMS, Search
from stabkit.running import plan_translations
from stabkit.running.request import Request
from stabkit.spec import (
    SHORTEST_JUDGED,
    BaseInit,
    Grid,
    ModelConfig,
    Optimizer,
    RecipeName,
    RunSpec,
    TaskConfig,
    TrainConfig,
)

LARGE_TEXT = 10_000_000
"""Bytes, compressed or not, from which on reading takes long enough to be told of."""
DTYPES = ("float32", "float64")
SLOPE_RATES = {"float64": "1e-5", "float32": "1e-4,1e-5"}
"""η small enough to be linear and large enough to be seen: at 1e-6 in float32 rounding eats up to half of it."""


def sweep(options: Mapping[str, Any]) -> Request:
    """The request of a sweep; raises UsageError that names the option."""
    text = {name: value for name, value in options.items() if isinstance(value, str)}
    depths = ranges.depths("--depths", text["depths"], ranges.stacks("--arch", text["arch"]))
    recipe = ranges.choice("--recipe", text["recipe"], get_args(RecipeName))
    widths = ranges.wholes("--hidden", text["hidden"], 2, 8192)
    batches = ranges.wholes("--max-tokens", text["max_tokens"], 16, 1_000_000)
    model = _model(text, depths[0], widths, tied=not options["untied"])
    train = _train(text, batches[0], stop_when_decided=bool(options["stop_when_decided"]))
    vocab = ranges.whole("--vocab", text["vocab"], 8, 200_000)
    warmups = ranges.wholes("--warmup", text["warmup"], 0, 10_000_000)
    rates = ranges.reals("--lr", text["lr"], 0.0, 1e6, above=True)
    seeds = ranges.wholes("--seeds", text["seeds"], 0, 2**31 - 1)
    record_every = ranges.whole("--record-every", text["record_every"], 1, 1_000_000)
    snapshots = ranges.whole("--snapshots", text["snapshots"], 0, 1000)
    every = text["checkpoint_every"]
    checkpoint_every = None if every == "auto" else ranges.whole("--checkpoint-every", every, 0, 10_000_000)
    chosen, notes = _methods(text["models"], depths)
    if recipe == "paper":
        _own(options.get("given", ()), text)
        warmups = warmups[:1]  # each method has its own
    dtype = ranges.choice("--dtype", text["dtype"], DTYPES)
    device_name = parse_machine.device_name(text["device"])
    executor, place = parse_machine.executor(text)
    search = _search(text, depths, asked=bool(options["bleu"]))
    out = parse_machine.output(text["out"])
    task, corpus = _task(text["data"], text["source"], text["target"], vocab, quiet=bool(options.get("quiet")))
    device = parse_machine.device(device_name)
    kind = device.partition(":")[0]
    grid = Grid(
        base=RunSpec(
            method=chosen[0][0],
            model=model,
            train=train,
            task=task,
            recipe=recipe,
            dtype=dtype,
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
    shapes = [(hidden, _ffn(text["ffn"], hidden), size) for hidden in widths for size in batches]
    return Request(
        grids=tuple(_sized(grid, *shape) for shape in shapes),
        translations=_translations(search, task, corpus, kind) if search else None,
        out=out,
        device=device,
        corpus=corpus,
        checkpoint_every=checkpoint_every,
        executor=executor,
        place=replace(place, workers=parse_machine.workers(place.workers, device)),
        notes=notes,
    )


def _model(text: Mapping[str, str], depth: tuple[int, int], widths: Sequence[int], *, tied: bool) -> ModelConfig:
    """The model of the first depth and width; every width must suit its heads."""
    model = ModelConfig(
        encoder_layers=depth[0],
        decoder_layers=depth[1],
        hidden=widths[0],
        ffn=_ffn(text["ffn"], widths[0]),
        heads=ranges.whole("--heads", text["heads"], 1, 128),
        base_init=ranges.choice("--base-init", text["base_init"], get_args(BaseInit)),
        tied=tied,
    )
    for hidden in widths:
        if hidden % model.heads or hidden % 2:
            raise UsageError(f"--hidden {hidden} must be even and divide by --heads {model.heads}")
    return model


def _train(text: Mapping[str, str], max_tokens: int, *, stop_when_decided: bool) -> TrainConfig:
    steps = ranges.whole("--steps", text["steps"], 0, 10_000_000)
    verdict_at = ranges.whole("--verdict-at", text["verdict_at"], 0, 10_000_000)
    if verdict_at and not SHORTEST_JUDGED <= verdict_at < steps:
        raise UsageError(
            f"--verdict-at {verdict_at} must lie between {SHORTEST_JUDGED}, the fewest updates that a verdict takes, "
            f"and --steps {steps}, to which a run that is early then goes on"
        )
    return TrainConfig(
        steps=steps,
        optimizer=ranges.choice("--optimizer", text["optimizer"], get_args(Optimizer)),
        max_tokens=max_tokens,
        dropout=ranges.real("--dropout", text["dropout"], 0.0, 0.99),
        clip=ranges.real("--clip", text["clip"], 0.0, 1e9),
        label_smoothing=ranges.real("--label-smoothing", text["label_smoothing"], 0.0, 0.99),
        stop_when_decided=stop_when_decided,
        verdict_at=verdict_at,
    )


def slope(options: Mapping[str, Any]) -> Request:
    """The request of one SGD step a run: small enough to be linear, and in float32 at two rates that must agree."""
    text = {name: str(value) for name, value in options.items()}
    dtype = ranges.choice("--dtype", text["dtype"], DTYPES)
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
    grid = single(request, "an ablation")
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


def single(request: Request, what: str) -> Grid:
    """The request's one grid; raises UsageError where widths or batches make several."""
    if len(request.grids) > 1:
        raise UsageError(f"{what} is of one --hidden and one --max-tokens; run it once for each")
    return request.grids[0]


def _search(text: Mapping[str, str], depths: Sequence[tuple[int, int]], *, asked: bool) -> Search | None:
    """How --bleu looks for words; None where it was not asked for."""
    if not asked:
        for name in ("beam", "length_penalty"):
            if text[name] != TRAINING[name][1]:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} is for --bleu, which translates; got {text[name]!r} without it")
        return None
    if not all(depths[0]):
        raise UsageError("--bleu needs an encoder and a decoder: a language model translates nothing; leave it out")
    return Search(
        beam=ranges.whole("--beam", text["beam"], 1, MOST_BEAMS),
        length_penalty=ranges.real("--length-penalty", text["length_penalty"], 0.0, 10.0),
    )


def _translations(
    search: Search, task: TaskConfig, corpus: dict[str, str] | None, device: str
) -> plan_translations.Wanted:
    """What --bleu translates; raises before anything is trained."""
    if corpus is None:
        from stabkit.tasks.synthetic import test_digest

        return plan_translations.Wanted(search=search, sentences=test_digest(task.vocab), device=device)
    from stabkit.tasks import corpus as door

    files = door.find(Path(corpus["directory"]), task.source, task.target)
    return plan_translations.Wanted(search=search, sentences=door.test_digest(files), device=device)


def _task(data: str, source: str, target: str, vocab: int, *, quiet: bool) -> tuple[TaskConfig, dict[str, str] | None]:
    if not data:
        if source or target:
            raise UsageError("--source and --target name the languages of --data; without it the task is synthetic")
        return TaskConfig(vocab=vocab), None  # its digest follows from the size of the batches (_sized)
    if not source or not target:
        raise UsageError("--data needs --source and --target, the endings of its files: --source de --target en")
    from stabkit.tasks import corpus

    files = corpus.find(Path(data), source, target)
    if not quiet and sum(path.stat().st_size for path in (*files.train, *files.validation)) > LARGE_TEXT:
        console.note(f"reading the text in {corpus.shown(Path(data))}")
    for sides in (files.train, files.validation):
        corpus.read(sides)
    task = TaskConfig(name=f"{source}-{target}", vocab=vocab, source=source, target=target, digest=corpus.digest(files))
    return task, {"directory": str(Path(data).resolve())}
