"""Options → the request of a command that trains, every one checked before torch is imported.

`making` is told of what takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from stabkit import methods
from stabkit.errors import UsageError, nearest, require
from stabkit.methods.papers.deepnorm import TABLE_11
from stabkit.options import machine, model, own, ranges
from stabkit.options.commands import AblateOptions, Names, SweepOptions, Trains
from stabkit.running import grid
from stabkit.running.grid import Grid
from stabkit.running.request import Request, price
from stabkit.spec import Dtype, Kernels, RecipeName, RunSpec, TaskConfig

DOUBLINGS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Factors on α and β where none are given."""
LARGE_TEXT = 10_000_000
"""Bytes, compressed or not, from which on reading takes long enough to be told of."""
Making = Callable[[str], None]


def sweep(options: SweepOptions, making: Making) -> Request:
    """The request of a sweep; raises UsageError that names the option, TooManyRuns for a grid that looks like a typo
    unless `yes` is on."""
    return request(*parsed(options.models, options, making), many=options.yes)


def request(grids: Sequence[Grid], rest: Request, *, many: bool) -> Request:
    """The request with the runs of these grids; `many`: however many there are."""
    specs = grid.specs(grids, rest.texts, rest.place.workers, many=many)
    return replace(rest, specs=specs, budget=grid.budget(grids, rest.place.workers))


def parsed(models: Names, options: Trains, making: Making) -> tuple[tuple[Grid, ...], Request]:
    """The grids of these methods, one a width and size of batches, and their request without the runs."""
    depths = ranges.depths("--depths", options.depths, ranges.stacks("--arch", options.arch))
    recipe = ranges.choice("--recipe", options.recipe, get_args(RecipeName))
    widths = ranges.wholes("--hidden", options.hidden, 2, 8192)
    batches = ranges.wholes("--max-tokens", options.max_tokens, 16, 1_000_000)
    made = model.model(options, depths[0], widths)
    train = model.train(options, batches[0])
    vocab = ranges.whole("--vocab", options.vocab, 8, 200_000)
    warmups = ranges.wholes("--warmup", options.warmup, 0, 10_000_000)
    rates = ranges.reals("--lr", options.lr, 0.0, 1e6, above=True)
    seeds = ranges.wholes("--seeds", options.seeds, 0, 2**31 - 1)
    record_every = ranges.whole("--record-every", options.record_every, 1, 1_000_000)
    snapshots = ranges.whole("--snapshots", options.snapshots, 0, 1000)
    every = options.checkpoint_every
    checkpoint_every = None if every == "auto" else ranges.whole("--checkpoint-every", every, 0, 10_000_000)
    files = own.Files()
    chosen, notes = model.chosen(models, depths, made, recipe, train.optimizer, files)
    if not train.steps:
        warmups = (min(warmups),)  # no update has a rate
        notes = (*notes, "--steps 0 makes no update: it measures the untrained model and gives no verdict")
    probes = own.probes(ranges.names("--probes", options.probes or ()), files, depths[0])
    if recipe == "paper":
        model.own_recipe(options.named)
        warmups = warmups[:1]  # each method has its own
    dtype = ranges.choice("--dtype", options.dtype, get_args(Dtype))
    device_name = machine.device_name(options.device)
    kernels = ranges.choice("--kernels", options.kernels, get_args(Kernels))
    executor, place = machine.executor(options)
    out = machine.output(options.out)
    task, corpus = _task(options, vocab, making)
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
    shapes = [(hidden, model.ffn(options.ffn, hidden), size) for hidden in widths for size in batches]
    rest = Request(
        specs=(),
        budget=price((), 1),
        out=out,
        device=device,
        kernels=kernels,
        together=machine.together(options.together, device),
        corpus=corpus,
        checkpoint_every=checkpoint_every,
        executor=executor,
        place=replace(place, workers=machine.workers(place.workers, device)),
        texts=files.texts,
        files=files.read,
        notes=notes,
    )
    return tuple(_sized(whole, *shape) for shape in shapes), rest


def _task(options: Trains, vocab: int, making: Making) -> tuple[TaskConfig, dict[str, str] | None]:
    """The task, and where its text is; `making` is told where reading it takes long."""
    place = ranges.folder("--data", options.data)
    source, target = ranges.name("--source", options.source or ""), ranges.name("--target", options.target or "")
    if not place:
        if source or target:
            raise UsageError("--source and --target name the languages of --data; without --data the task is synthetic")
        return TaskConfig(vocab=vocab), None  # its digest follows from the size of the batches (_sized)
    if not source or not target:
        raise UsageError("--data needs --source and --target, the endings of its files: --source de --target en")
    require("sentencepiece", "--data", "papers")
    from stabkit.tasks import corpus

    files = corpus.find(Path(place), source, target)
    if sum(path.stat().st_size for path in (*files.train, *files.validation)) > LARGE_TEXT:
        making(f"reading the text in {corpus.shown(Path(place))}")
    for sides in (files.train, files.validation):
        corpus.read(sides)
    task = TaskConfig(name=f"{source}-{target}", vocab=vocab, source=source, target=target, digest=corpus.digest(files))
    return task, {"directory": str(Path(place).resolve())}


def ablate(options: AblateOptions, making: Making) -> Request:
    """The request of an ablation: a sweep of one method with α and β as two more axes."""
    choice, row = model.one(ranges.name("--model", options.model), own.Files())
    key, chosen = choice.key, choice.options
    if not methods.scales(row):
        raise UsageError(f"--model {key} has no α and β to scale; {', '.join(methods.scalable())} has")
    alpha, beta = (None if value == "" else value for value in (options.alpha_scale, options.beta_scale))
    alphas = ranges.scales("--alpha-scale", DOUBLINGS if alpha is None else alpha)
    betas = ranges.scales("--beta-scale", DOUBLINGS if beta is None else beta)
    drops = ranges.names("--drop", options.drop or ())
    for word in drops:
        if word in TABLE_11 and any(chosen.get(option) == value for option, value in TABLE_11[word].items()):
            raise UsageError(f"--drop {word}: --model {options.model} does not have it")
        if word not in TABLE_11 or any(option not in methods.options_of(row) for option in TABLE_11[word]):
            raise UsageError(f"--drop: {word!r} is not one of {', '.join(TABLE_11)}{nearest(word, TABLE_11)}")
    whole, rest = parsed(options.model, options, making)
    axes = single(whole, "an ablation")
    if options.grid:
        grids = [replace(axes, alpha_scales=alphas, beta_scales=betas)]
    else:
        grids = [replace(axes, alpha_scales=alphas)] if alpha is not None or beta is None else []
        grids += [replace(axes, beta_scales=betas)] if beta is not None or alpha is None else []
    if drops:
        warmups = (0,) if options.recipe == "paper" else (0, 150)  # a recipe has its own
        rows = tuple(replace(choice, options=each) for each in (chosen, *({**chosen, **TABLE_11[w]} for w in drops)))
        grids.append(replace(axes, methods=rows, warmups=warmups))
    return request(grids, rest, many=options.yes)


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
        raise UsageError(f"{what} takes one --hidden and one --max-tokens; run it once for each value")
    return grids[0]
