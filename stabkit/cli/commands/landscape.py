"""`stabkit landscape` where nothing is trained: the loss around a user's own model, and between stored runs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.cli import console
from stabkit.cli.commands import names
from stabkit.cli.commands.train import again
from stabkit.cli.parsing import landscape as landscape_options
from stabkit.cli.progress import Screen
from stabkit.cli.signals import Signals
from stabkit.errors import UsageError
from stabkit.figures.drawing import svg
from stabkit.figures.shared.numbers import centre
from stabkit.figures.shared.words import percent, short
from stabkit.figures.surfaces import landscape
from stabkit.own.factory import model_and_loss
from stabkit.report import files
from stabkit.report.summary import summarise
from stabkit.running import execute
from stabkit.running import surfaces as engine
from stabkit.running.surfaces import SurfaceRequest
from stabkit.storage.folder import write_file
from stabkit.surface.anymodel import loss_surface


def own(factory: str, weights: str, wanted: SurfaceRequest, out: Path) -> None:
    """One surface and a cut a direction seed; OUT/reports/NAME.svg, .png and .npz. The model stays as it is."""
    model, loss = model_and_loss("--factory", factory, weights)
    plane: dict[str, Any] = {
        "reach": wanted.reach,
        "normalise": wanted.normalise,
        "one_dimensional": wanted.one_dimensional,
    }
    try:
        surface = loss_surface(
            model, loss, points=wanted.points, seed=wanted.direction_seeds[0], engine=wanted.engine, **plane
        )
        cuts = [
            loss_surface(model, loss, points=wanted.cut_points, seed=seed, cut=True, **plane)
            for seed in wanted.direction_seeds
        ]
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"--factory: its loss raised {type(error).__name__}: {' '.join(str(error).split())}"
        ) from error
    rough = [cut.roughness for cut in cuts]
    name = factory.replace(".", "-").replace(":", "-")
    folder = out / "reports"
    figure = landscape.alone(factory, surface.a, surface.b, surface.loss)
    for kind in ("svg", "png"):
        svg.save(figure, folder / f"{name}.{kind}")
    data = io.BytesIO()
    np.savez_compressed(
        data, a=surface.a, b=surface.b, loss=surface.loss, cut_a=cuts[0].a, cuts=np.concatenate([c.loss for c in cuts])
    )
    write_file(folder / f"{name}.npz", data.getvalue())
    middle = float(surface.loss[len(surface.b) // 2, len(surface.a) // 2])
    console.say(f"{factory}: loss {short(middle, 4)} at the weights")
    spread = f" ({short(min(rough))} to {short(max(rough))} over {len(rough)} directions)" if len(rough) > 1 else ""
    console.say(f"roughness of cuts {short(centre(rough))}{spread}, Σ|Δ²L|/Σ|ΔL|")
    negative = float(np.mean([cut.negative_curvature for cut in cuts]))
    console.say(f"negative curvature {percent(negative)}")
    console.say(f"surface: {folder / name}.svg, .png, .npz")


def between(params: dict[str, Any]) -> None:
    """The line or triangle between stored runs: nothing is trained."""
    store = names.home(str(params["out"]))
    runs = [names.wanted(store, name.strip()) for name in str(params["between"]).split(",")]
    model = runs[0].spec.model
    request: Any = landscape_options.landscape(
        {**params, **landscape_options.depth(model.encoder_layers, model.decoder_layers)}
    )
    with store.writing(), Signals(again()):
        surfaces = execute.draw(request, engine.between(runs, request.surfaces), Screen(quiet=params["quiet"]))
    path = store.out / "reports" / files.page_name("landscape-between", [run.spec for run in runs], surfaces)
    console.say(f"report: {files.write_page(summarise(runs, (), surfaces), path, again())}")
