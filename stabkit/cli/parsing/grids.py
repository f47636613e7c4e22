"""Options (texts) → a Request, every one checked before torch is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from stabkit import methods
from stabkit.cli import ranges
from stabkit.cli.options import TRAINING
from stabkit.cli.parsing import machine, model, own
from stabkit.cli.parsing import text as texts
from stabkit.errors import UsageError, nearest
from stabkit.methods.papers.deepnorm import TABLE_11
from stabkit.running import grid
from stabkit.running.grid import Grid
from stabkit.running.request import Request, price
from stabkit.spec import RecipeName, RunSpec

DTYPES = ("float32", "float64")
SLOPE_RATES = {"float64": "1e-5", "float32": "1e-4,1e-5"}
"""η small enough to be linear and large enough to be seen: at 1e-6 in float32 rounding eats up to half of it."""


def sweep(options: Mapping[str, Any]) -> Request:
    """The request of a sweep; raises UsageError that names the option, TooManyRuns for a grid that looks like a typo
    unless `yes` is on (and always for a dry run, which then shows its cost alone)."""
    return request(*parsed(options), options)


def request(grids: Sequence[Grid], rest: Request, options: Mapping[str, Any]) -> Request:
    """The request with the runs of these grids."""
    many = bool(options.get("yes")) and not options.get("dry_run")
    specs = grid.specs(grids, rest.texts, rest.place.workers, many=many)
    return replace(rest, specs=specs, budget=grid.budget(grids, rest.place.workers))


def parsed(options: Mapping[str, Any]) -> tuple[tuple[Grid, ...], Request]:
    """The grids of a sweep, one a width and size of batches, and its request without their runs."""
    text = {name: value for name, value in options.items() if isinstance(value, str)}
    depths = ranges.depths("--depths", text["depths"], ranges.stacks("--arch", text["arch"]))
    recipe = ranges.choice("--recipe", text["recipe"], get_args(RecipeName))
    widths = ranges.wholes("--hidden", text["hidden"], 2, 8192)
    batches = ranges.wholes("--max-tokens", text["max_tokens"], 16, 1_000_000)
    made = model.model(
        text, depths[0], widths, {name: bool(options[name]) for name in ("untied", "qk_norm", "no_biases")}
    )
    train = model.train(text, batches[0], stop_when_decided=bool(options["stop_when_decided"]))
    vocab = ranges.whole("--vocab", text["vocab"], 8, 200_000)
    warmups = ranges.wholes("--warmup", text["warmup"], 0, 10_000_000)
    rates = ranges.reals("--lr", text["lr"], 0.0, 1e6, above=True)
    seeds = ranges.wholes("--seeds", text["seeds"], 0, 2**31 - 1)
    record_every = ranges.whole("--record-every", text["record_every"], 1, 1_000_000)
    snapshots = ranges.whole("--snapshots", text["snapshots"], 0, 1000)
    every = text["checkpoint_every"]
    checkpoint_every = None if every == "auto" else ranges.whole("--checkpoint-every", every, 0, 10_000_000)
    files = own.Files(typed=options.get("typed"))
    chosen, notes = model.chosen(text["models"], depths, made, recipe, train.optimizer, files)
    probes = own.probes(text.get("probes", ""), files, depths[0])
    if recipe == "paper":
        model.own_recipe(options.get("given", ()), text)
        warmups = warmups[:1]  # each method has its own
    dtype = ranges.choice("--dtype", text["dtype"], DTYPES)
    device_name = machine.device_name(text["device"])
    executor, place = machine.executor(text)
    search = texts.search(text, depths, asked=bool(options["bleu"]))
    out = machine.output(text["out"])
    task, corpus = texts.task(text["data"], text["source"], text["target"], vocab, quiet=bool(options.get("quiet")))
    device = machine.device(device_name)
    kind = device.partition(":")[0]
    whole = Grid(
        base=RunSpec(
            method=chosen[0].key,
            model=made,
            train=train,
            task=task,
            recipe=recipe,
            dtype=dtype,
            record_every=record_every,
            probes=probes,
            snapshots=snapshots,
            device=kind,
        ),
        methods=chosen,
        depths=depths,
        seeds=seeds,
        warmups=warmups,
        lrs=rates,
    )
    shapes = [(hidden, model.ffn(text["ffn"], hidden), size) for hidden in widths for size in batches]
    rest = Request(
        specs=(),
        budget=price((), 1),
        translations=texts.translations(search, task, corpus, kind) if search else None,
        out=out,
        device=device,
        corpus=corpus,
        checkpoint_every=checkpoint_every,
        executor=executor,
        place=replace(place, workers=machine.workers(place.workers, device)),
        texts=files.texts,
        files=files.read,
        notes=notes,
    )
    return tuple(_sized(whole, *shape) for shape in shapes), rest


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
    found, row = model.one(str(options["model"]), own.Files(typed=options.get("typed")))
    key, chosen = found.key, found.options
    if not methods.scales(row):
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
        if word not in TABLE_11 or any(option not in methods.options_of(row) for option in TABLE_11[word]):
            raise UsageError(f"--drop: {word!r} is not one of {', '.join(TABLE_11)}{nearest(word, TABLE_11)}")
    whole, rest = parsed({**options, "models": str(options["model"])})
    axes = single(whole, "an ablation")
    if options["grid"]:
        grids = [replace(axes, alpha_scales=alphas, beta_scales=betas)]
    else:
        grids = [replace(axes, alpha_scales=alphas)] if asked[0] or asked == (False, False) else []
        grids += [replace(axes, beta_scales=betas)] if asked[1] or asked == (False, False) else []
    if drops:
        usual = "0" if options["recipe"] == "paper" else "0,150"  # a recipe has its own
        warmups = ranges.wholes("--drop-warmup", str(options["drop_warmup"] or usual), 0, 10_000_000)
        rows = tuple(replace(found, options=each) for each in (chosen, *({**chosen, **TABLE_11[w]} for w in drops)))
        grids.append(replace(axes, methods=rows, warmups=warmups))
    return request(grids, rest, options)


def _sized(whole: Grid, hidden: int, ffn: int, max_tokens: int) -> Grid:
    """The grid at one width and one size of batches."""
    base, task = whole.base, whole.base.task
    if not task.source:
        from stabkit.tasks.synthetic import Synthetic

        task = replace(task, digest=Synthetic(vocab=task.vocab, max_tokens=max_tokens).digest)
    return replace(
        whole,
        base=replace(
            base,
            model=replace(base.model, hidden=hidden, ffn=ffn),
            train=replace(base.train, max_tokens=max_tokens),
            task=task,
        ),
    )


def single(grids: Sequence[Grid], what: str) -> Grid:
    """The one grid; raises UsageError where widths or batches make several."""
    if len(grids) > 1:
        raise UsageError(f"{what} is of one --hidden and one --max-tokens; run it once for each")
    return grids[0]
