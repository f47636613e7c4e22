"""The loss around a user's own model, from the command line: numbers, a picture and the points themselves."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from stabkit import console
from stabkit.errors import UsageError
from stabkit.figures import style, svg
from stabkit.figures.comparison import geometric_mean, percent, short
from stabkit.folder import write_file
from stabkit.landscape import Wanted


def draw(factory: str, weights: str, wanted: Wanted, out: Path) -> None:
    """One surface and a cut a direction seed; OUT/reports/NAME.svg, .png and .npz. The model stays as it is."""
    from stabkit.factory import model_and_loss
    from stabkit.surface.anymodel import loss_surface

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
    figure = _picture(factory, surface)
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
    console.say(f"roughness of cuts {short(geometric_mean(rough))}{spread}, mean absolute second difference")
    negative = float(np.mean([cut.negative_curvature for cut in cuts]))
    console.say(f"negative curvature {percent(negative)}")
    console.say(f"surface: {folder / name}.svg, .png, .npz")


def _picture(name: str, surface: Any) -> Any:
    from matplotlib.figure import Figure

    from stabkit.figures import landscape

    with style.look(axes_grid=False):
        figure = Figure(figsize=(5.2, 4.0))
        axes = figure.add_axes((0.14, 0.13, 0.66, 0.75))
        image = landscape.drawn(axes, surface.a, surface.b, surface.loss, landscape.scale(surface.loss), name)
        axes.set_ylabel("b, along η")
        figure.colorbar(image, cax=figure.add_axes((0.83, 0.13, 0.03, 0.75)), label="loss")
        return figure
