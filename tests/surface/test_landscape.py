"""`stabkit landscape`: from runs to cached surfaces, tile by tile, and to a page."""

from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from stabkit.errors import CorpusError, UsageError
from stabkit.figures.catalogue import SURFACES
from stabkit.figures.surfaces import cuts
from stabkit.figures.surfaces import landscape as picture
from stabkit.report.cards import card
from stabkit.results import surface as specs
from stabkit.results.landscape import Landscape, Normalisation, kind_of
from stabkit.results.run import Run
from stabkit.results.surface import Surface, SurfaceSpec
from stabkit.running import plan, surfaces, work
from stabkit.running.surfaces import SurfaceRequest
from stabkit.spec import canonical
from stabkit.storage import weights
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.shelf import Shelf
from stabkit.storage.store import Store
from stabkit.storage.surfaces import SURFACE, Tiles
from stabkit.surface import directions, tiles
from stabkit.surface.evaluate import Evaluator
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.commands import stabkit, strict
from tests.conftest import files_of, some, tiny
from tests.report.pages import render

SPECS = [tiny(method, steps=4, snapshots=5, warmup=0) for method in ("post-ln", "deepnorm")]
TASK = Synthetic(vocab=200, max_tokens=128)
SMALL = SurfaceRequest(points=3, cut_points=5, direction_seeds=(0, 1))


def store(tmp_path: Path) -> tuple[Store, list[Run]]:
    made = Store(tmp_path)
    made.runs.mkdir(parents=True, exist_ok=True)
    for spec in SPECS:
        made.commit(spec, files_of(spec))
    return made, [made.load(spec.run_id) for spec in SPECS]


def context(out: Path) -> dict[str, object]:
    return {"out": str(out), "corpus": None, "device": "cpu", "together": 1}


def execute(jobs, tell):
    for job in jobs:
        yield job, work.do(job, tell)[1]


def drawn(tmp_path: Path, wanted: SurfaceRequest = SMALL) -> tuple[list[Run], list[Surface]]:
    home, runs = store(tmp_path)
    return runs, complete(tmp_path, surfaces.specs(runs, wanted))


def complete(out: Path, wanted: list[SurfaceSpec]) -> list[Surface]:
    """These surfaces, drawn here where they are not stored."""
    planned = surfaces.planned(wanted, out, context(out))
    return plan.complete(planned, execute, lambda event: None).results


def jobs(out: Path, wanted: list[SurfaceSpec]) -> list[work.Job]:
    """Those of the tiles that are missing."""
    return [job for _, job in surfaces.planned(wanted, out, context(out)).jobs]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Run], list[Surface]]:
    return drawn(tmp_path_factory.mktemp("shelf"))


@pytest.mark.slow
def test_three_rulers_are_four_planes_and_every_direction_seed_has_its_cuts(example) -> None:
    runs, surfaces = example
    kinds = [(len(s.spec.b) == 1, s.spec.path) for s in surfaces]
    assert (kinds.count((False, False)), kinds.count((True, False)), kinds.count((False, True))) == (4, 8, 2)
    seen = Landscape(runs, surfaces).placed()
    assert [(one.ruler.text, one.shown.label) for one in seen] == [
        (ruler, label)
        for ruler in (Normalisation().text, "Post-LN's directions for both", "DeepNorm's directions for both")
        for label in ("Post-LN", "DeepNorm")
    ]


@pytest.mark.slow
def test_a_surface_is_the_loss_on_the_probe_batch_at_its_points(example) -> None:
    runs, surfaces = example
    task = Synthetic(vocab=200, max_tokens=128)
    donor = {run.run_id: run for run in runs}
    for surface in surfaces:
        if surface.spec.path:
            continue
        run = donor[surface.spec.origin.run]
        model = train.build(run.spec, task, torch.device("cpu"))
        evaluator = Evaluator(model, lambda m: train.forward(m, task.probe(), run.spec.train.label_smoothing).loss)  # noqa: B023
        of = surface.spec.plane.of or surface.spec.origin
        theta = weights.at(run, 4, [tensor.name for tensor in evaluator.layout])
        plane = directions.random_plane(
            weights.at(donor[of.run], 4, [tensor.name for tensor in evaluator.layout]),
            evaluator.layout,
            surface.spec.plane.seed,
        )
        points = [(a, b) for b in surface.spec.b for a in surface.spec.a]
        np.testing.assert_array_equal(surface.loss.ravel(), evaluator.at(theta, plane, points))


def test_the_middle_is_the_runs_own_loss_and_the_path_ends_there(example) -> None:
    runs, surfaces = example
    last = {run.run_id: run.records["loss"].at("probe")[-1] for run in runs}
    for surface in surfaces:
        if surface.spec.path:
            path = surface.path
            assert path["step"].tolist() == [0, 1, 2, 3, 4]
            assert path["loss"][-1] == pytest.approx(last[surface.spec.origin.run], rel=1e-6)
            assert (path["a"][-1], path["b"][-1], path["outside"][-1]) == (0.0, 0.0, 0.0)
            assert path["loss"] == pytest.approx(
                next(r for r in runs if r.run_id == surface.spec.origin.run).records["loss"].at("probe"), rel=1e-6
            )
            assert 0 < surface.facts["explained_1"] + surface.facts["explained_2"] <= 1
        else:
            middle = surface.loss[len(surface.spec.b) // 2, len(surface.spec.a) // 2]
            assert middle == pytest.approx(last[surface.spec.origin.run], rel=1e-6)


@pytest.mark.slow
def test_a_finished_tile_is_not_computed_again_and_a_damaged_one_is(tmp_path: Path) -> None:
    home, runs = store(tmp_path)
    shelf = Shelf(SURFACE, tmp_path)
    wanted = [
        spec
        for spec in surfaces.specs(runs, SurfaceRequest(points=7, direction_seeds=(0,), path="none"))
        if len(spec.b) > 1
    ]
    first = jobs(tmp_path, wanted[:1])
    assert [job["name"] for job in first] == [f"rows-{i}-{i + 1}" for i in range(7)]
    work.do(first[0], lambda event: None)
    assert [job["name"] for job in jobs(tmp_path, wanted[:1])] == [job["name"] for job in first[1:]]
    (surface,) = complete(tmp_path, wanted[:1])
    whole = surface.loss.copy()
    tile = tmp_path / "surfaces" / ".partial"
    assert not tile.exists() or not any(tile.iterdir())
    path = tmp_path / "surfaces" / surface.surface_id / "surface.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CorruptFolder):
        shelf.load(surface.surface_id)
    tile = tmp_path / "tile"
    shutil.copytree(tmp_path / "surfaces" / surface.surface_id, tile)
    work.do(first[0], lambda event: None)  # puts the corrupt one aside, as the plan does
    assert surface.surface_id not in shelf
    shutil.copytree(tile, tmp_path / "surfaces" / surface.surface_id)
    half = tmp_path / "surfaces" / ".partial" / surface.surface_id / "rows-0-1.npz"
    half.write_bytes(half.read_bytes()[:50])
    other = Tiles(shelf, surface.spec).folder() / "rows-1-2.npz"
    np.savez(other, first=np.array(1.0), loss=np.zeros((1, 3)))
    planned = surfaces.planned(wanted[:1], tmp_path, context(tmp_path))
    assert "corrupt surface" in planned.corrupt[0] and len(planned.jobs) == 7
    (redrawn,) = plan.complete(planned, execute, lambda event: None).results
    np.testing.assert_array_equal(redrawn.loss, whole)
    assert redrawn.digest == surface.digest


def test_what_a_crash_left_half_assembled_is_swept_and_tiles_stay(tmp_path: Path) -> None:
    origin = specs.At(run=SPECS[0].run_id, step=0)
    shelf, spec = Shelf(SURFACE, tmp_path), SurfaceSpec(origin=origin, plane=specs.Plane(kind="random"), a=(0.0, 1.0))
    Tiles(shelf, spec).save("rows-0-1", {"first": np.array(0.0), "loss": np.zeros((1, 2))})
    partial = tmp_path / "surfaces" / ".partial"
    (partial / f"{spec.surface_id}.x1y2").mkdir()
    (tmp_path / "surfaces" / "loop").symlink_to("loop")
    with shelf.hold(spec.surface_id):
        pass
    assert [entry.name for entry in partial.iterdir()] == [spec.surface_id] and shelf.ids() == []
    assert Tiles(shelf, spec).read("rows-0-1", 0, 1) is not None


def test_what_the_run_did_not_keep_is_named(tmp_path: Path) -> None:
    _, runs = store(tmp_path)
    with pytest.raises(UsageError, match="kept the weights of steps 0, 1, 2, 3, 4"):
        surfaces.specs(runs, SurfaceRequest(at="17"))
    starts = surfaces.specs(runs, SurfaceRequest(at="init", points=3, cut_points=3, direction_seeds=(0,)))
    assert {spec.origin.step for spec in starts if not spec.path} == {0}


def test_weights_of_another_shape_name_the_first_that_differs(tmp_path: Path) -> None:
    home, runs = store(tmp_path)
    other = tiny("deepnorm", layers=1, steps=4, snapshots=5, warmup=0)
    home.commit(other, files_of(other))
    wrong = surfaces.specs([runs[0]], SMALL)[0].to_json()
    wrong["plane"]["of"] = {"run": other.run_id, "step": 4}
    job = {"kind": "tile", "id": "x/rows-0-3", "name": "rows-0-3", "first": 0, "last": 3, **context(tmp_path)}
    with pytest.raises(UsageError, match="has other matrices: layers.encoder_2_self"):
        work.do({**job, "spec": wrong}, lambda event: None)


@pytest.mark.parametrize(
    "change",
    [
        {"a": [float("inf")]},
        {"a": []},
        {"extra": 1},
        {"origin": {"run": "../../etc", "step": 0}},
        {"origin": {"run": SPECS[0].run_id, "step": -1}},
        {"b": [0.0] * 2_000_000},
    ],
)
def test_a_surface_spec_from_a_stranger_is_exactly_one_or_refused(change: dict[str, object]) -> None:
    spec = SurfaceSpec(origin=specs.At(run=SPECS[0].run_id, step=0), plane=specs.Plane(kind="random"), a=(0.0, 1.0))
    value = json.loads(json.dumps(spec.to_json()))
    assert specs.from_json(value) == spec
    with pytest.raises(ValueError):
        specs.from_json({**value, **change})


@pytest.mark.parametrize("figure", SURFACES, ids=lambda figure: figure.name)
@pytest.mark.parametrize("case", some(["not finite", "none", "one run", "two"], 2))
def test_the_pictures_survive(figure, case: str, example) -> None:
    runs, surfaces = example
    if case == "none":
        surfaces = []
    if case == "one run":
        runs = runs[:1]
    if case == "not finite":
        surfaces = [Surface(s.spec, s.loss * np.nan, s.path, s.facts, s.digest) for s in surfaces]
    source = Landscape(runs, surfaces)
    frame = figure.select(source)
    assert tuple(frame.columns) == figure.columns
    ET.fromstring(card(figure, frame, source).svg)
    for text in (figure.title(source), figure.described(frame), figure.see, figure.caption, figure.short):
        assert text and "nan" not in text


def test_the_frames_hold_every_point_and_the_title_tells_each_share(example) -> None:
    runs, surfaces = example
    frame = picture.select(Landscape(runs, surfaces))
    assert len(frame) == 6 * 9
    assert set(frame["ruler"]) == {seen.ruler for seen in Landscape(runs, surfaces).placed()}
    shares = []
    for run in runs:
        own = [
            s for s in surfaces if len(s.spec.b) == 1 and s.spec.plane.of is None and s.spec.origin.run == run.run_id
        ]
        assert {s.spec.plane.seed for s in own} == {0, 1}
        shares.append(np.mean([(np.diff(s.loss[0], 2) < 0).mean() for s in own]))
    told = f"{shares[0]:.0%} against {shares[1]:.0%} along each method's own directions"
    assert told in cuts.shares(cuts.select(Landscape(runs, surfaces)))


ROUGH, EITHER = "Post-LN's loss ", "is rougher than DeepNorm's along either's directions"
ALONG = "{0}'s loss is rougher than {1}'s, but not along {1}'s directions"
OWN_ONLY = "is rougher than DeepNorm's each along its own directions, not along one's"


@pytest.mark.parametrize(
    ("own", "first", "second", "said"),
    [
        ((0.27, 0.0), (0.27, 0.13), (0.0, 0.0), ALONG.format("Post-LN", "DeepNorm")),
        ((0.10, 0.0), (0.10, 0.15), (0.0, 0.0), ROUGH + OWN_ONLY),
        ((0.27, 0.0), (0.27, 0.13), (0.2, 0.0), ROUGH + EITHER),
        ((0.02, 0.0), (0.02, 0.01), (0.0, 0.0), ROUGH + EITHER.replace("is", "is not clearly", 1)),
        ((0.27, 0.0), (0.1, 0.1), (0.2, 0.0), f"Whether {ROUGH}is rougher than DeepNorm's depends on the directions"),
        ((0.0, 0.27), (0.0, 0.0), (0.1, 0.27), ALONG.format("DeepNorm", "Post-LN")),
    ],
)  # fmt: skip
def test_whose_surface_is_rougher_is_said_with_the_scale_that_shows_it(own, first, second, said) -> None:
    def table(seeds: int = 1) -> pd.DataFrame:
        rulers = {
            Normalisation(): own,
            Normalisation("post-ln", "Post-LN"): first,
            Normalisation("deepnorm", "DeepNorm"): second,
        }
        return pd.DataFrame(
            [
                {"ruler": ruler, "seed": seed, "label": label, "negative": share}
                for ruler, both in rulers.items()
                for seed in range(seeds)
                for label, share in zip(("Post-LN", "DeepNorm"), both, strict=True)
            ]
        )

    assert picture.rougher(table(), "Post-LN", "DeepNorm") == said
    three = table(3)
    assert picture.rougher(three, "Post-LN", "DeepNorm") == said
    if own == (0.27, 0.0):  # one seed that has it the other way is enough
        three.loc[(three["seed"] == 2) & (three["label"] == "Post-LN"), "negative"] = -0.1
        assert picture.rougher(three, "Post-LN", "DeepNorm").startswith("Post-LN's loss is not clearly")


@pytest.mark.slow
def test_the_page_opens_with_the_surfaces(example) -> None:
    runs, surfaces = example
    page = render(runs, command="stabkit landscape", surfaces=surfaces)
    places = [page.index(f"figure-{name}") for name in ("surface3d", "landscape", "cuts", "update_depth")]
    assert places == sorted(places)


COMMAND = ["--depths", "1", "--steps", "4", "--vocab", "200", "--hidden", "16", "--ffn", "24", "--max-tokens", "128"]
COMMAND += ["--snapshots", "4", "--points", "3", "--cut-points", "5", "--direction-seeds", "0"]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_command_draws_once_and_says_how_rough(tmp_path: Path) -> None:
    first = stabkit("landscape", *COMMAND, "--out", tmp_path)
    assert first.returncode == 0, first.stderr
    assert "surfaces: 0 cached, 10 to draw" in first.stderr
    assert "hare of negative curvature" in first.stdout and "landscape-" in first.stdout
    verified = stabkit("runs", "verify", "--out", tmp_path)
    assert verified.returncode == 0 and verified.stdout.count("sound") == 12
    surface = next((tmp_path / "surfaces").glob("deepnorm-*"))
    whole = (surface / "surface.npz").read_bytes()
    (surface / "surface.npz").write_bytes(whole[:-9])
    damaged = stabkit("runs", "verify", "--out", tmp_path)
    assert damaged.returncode == 5 and "corrupt: 0 of 2 runs, 1 of 10 surfaces; the next" in damaged.stderr
    (surface / "surface.npz").write_bytes(whole)
    again = stabkit("landscape", *COMMAND, "--out", tmp_path)
    assert "10 cached, 0 to draw" in again.stderr and "nothing to train" in again.stderr
    assert strict(stabkit("landscape", *COMMAND, "--out", tmp_path, "--json", "--quiet").stdout)["runs"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--points", "24"], "--points must be odd, with one point in the middle; got 24, use 25"),
        (["--cut-points", "50"], "--cut-points must be odd"),
        (["--range", "inf"], "--range"),
        (["--range", "0"], "--range"),
        (["--model", "deepnrom"], "deepnorm"),
        (["--against", "deepnorm"], "is --model itself"),
        (["--against", "gated-attention"], "do not train the same matrices"),
        (["--at", "soon"], "--at"),
        (["--at", "500"], "--at"),
        (["--at", "3"], "--at 3: with --snapshots 16, weights are kept at steps 0, 7,"),
        (["--normalise", "fitler"], "did you mean 'filter'"),
        (["--warmup", "0,400"], "one --warmup"),
        (["--path", "tsne"], "--path"),
    ],
)
def test_bad_input_is_one_line_and_trains_nothing(options: list[str], said: str, tmp_path: Path) -> None:
    done = stabkit("landscape", *options, "--out", tmp_path / "none")
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not os.path.exists(tmp_path / "none")


def test_a_line_between_runs_as_1_1_0_stored_it_is_read_and_keeps_its_id() -> None:
    ends = [specs.At(run=spec.run_id, step=4) for spec in SPECS[:2]]
    line = SurfaceSpec(origin=ends[0], plane=specs.Plane(kind="between", to=(ends[1],)), a=(0.0, 1.0))
    read = specs.from_json(json.loads(json.dumps(line.to_json())))
    assert read == line and read.surface_id == line.surface_id and kind_of(read) == "between"


def test_a_surface_around_a_run_of_text_asks_for_the_text(tmp_path: Path) -> None:
    home, runs = store(tmp_path)
    text = tiny(steps=4, snapshots=5, warmup=0)
    text = replace(text, task=replace(text.task, name="de-en", source="de", target="en", digest="0" * 64))
    home.commit(text, {**files_of(runs[1].spec), "spec.json": json.dumps(text.to_json()).encode()})
    job = jobs(tmp_path, surfaces.specs([home.load(text.run_id)], SMALL))[0]
    with pytest.raises(CorpusError, match="--data DIR --source de --target en"):
        work.do(job, lambda event: None)


def test_tiles_cover_every_row_once() -> None:
    for rows in (1, 4, 5, 6, 25):
        spec = SurfaceSpec(
            origin=specs.At(run=SPECS[0].run_id, step=0), plane=specs.Plane(kind="random"), a=(0.0,), b=(0.0,) * rows
        )
        covered = [i for _, first, last in tiles.names(spec) for i in range(first, last)]
        assert covered == list(range(rows))


def test_methods_of_other_norms_and_numbers_share_their_matrices_directions(tmp_path):
    pair = [tiny(method, steps=4, snapshots=5, warmup=0) for method in ("rezero", "pre-ln")]
    made = Store(tmp_path)
    made.runs.mkdir(parents=True, exist_ok=True)
    for spec in pair:
        made.commit(spec, files_of(spec))
    runs = [made.load(spec.run_id) for spec in pair]
    evaluators = [Evaluator(train.build(run.spec, TASK, torch.device("cpu")), lambda model: 0.0) for run in runs]
    wanted = surfaces.specs(runs, replace(SMALL, path="none"))
    mixed = next(s for s in wanted if s.origin.run == runs[0].run_id and s.plane.of is not None)
    _, (delta, _) = tiles.plane(tmp_path, canonical(mixed.to_json() | {"a": [], "b": []}), evaluators[0].layout)
    alone = next(s for s in wanted if s.origin.run == runs[1].run_id and s.plane.of is None)
    _, (theirs, _) = tiles.plane(tmp_path, canonical(alone.to_json() | {"a": [], "b": []}), evaluators[1].layout)
    other = {t.name: theirs[t.part] for t in evaluators[1].layout}
    for tensor in evaluators[0].layout:
        expected = other[tensor.name] if len(tensor.shape) > 1 else np.zeros(tensor.size)
        np.testing.assert_array_equal(delta[tensor.part], expected)


def test_a_parameter_that_is_one_number_is_stored_as_one(tmp_path):
    spec = tiny("rezero", steps=1)
    made = Store(tmp_path)
    made.commit(spec, files_of(spec))
    held = dict(weights.shapes(made.load(spec.run_id)))
    assert held["layers.decoder_1_self.gamma"] == ()
    shared = [name for name in held if name.endswith(".gamma")]
    assert len(shared) == 4, "one a layer"
