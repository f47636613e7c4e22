"""`--models ./my.py:function` and `--probes ./mine.py:Class` as a user types them."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stabkit.storage.store import Store
from tests.commands import TINY, stabkit, strict

pytestmark = pytest.mark.usefixtures("undrawn")
METHOD = '''
"""Peri-LN."""
from typing import Literal
from stabkit.methods.base import Method, Recipe


def peri_ln(embedding: Literal["yes", "no"] = "yes", alpha_scale: float = 1.0, beta_scale: float = 1.0) -> Method:
    return Method(
        key="my-peri",
        label="My Peri",
        source="Kim et al. 2025",
        norm_in=lambda site: "norm",
        norm_branch=lambda site: "norm",
        norm_out=lambda site: "",
        embedding=lambda stack: "norm" if embedding == "yes" else "",
        final=lambda stack: "norm",
        gain=lambda site, role: beta_scale,
    )


def twice():
    return Method(key="twice", label="My Peri", source="here")


def trained() -> Method:
    return Method(key="t", label="T", source="s", recipe=Recipe(source="here", lr=3e-4, warmup=0))
'''
PROBE = '''
import torch
from stabkit.probes.base import Probe
from stabkit.probes.tools.hooks import on_taps


class Largest(Probe):
    """The largest entry of every branch."""
    name = "largest"
    watches = "probe"

    def __init__(self, model, flat):
        self.sites = tuple(site.name for site in model.sites)
        self.model, self.found = model, {}

    def attached(self):
        return on_taps(self.model.numbered("branch"), self.watches, lambda i, x: self.found.update({i: x.abs().max()}))

    def read(self, seen):
        return torch.stack([self.found[i] for i in range(len(self.sites))]).double()


class NoSites(Probe):
    name, watches = "none", "probe"
    def read(self, seen): return torch.zeros(0)


class Shadow(Largest):
    name = "loss"


class Nameless(Largest):
    name = "Not a name"


class Wrong(Largest):
    name = "wrong"
    def read(self, seen): return torch.zeros(3)


class Meddles(Largest):
    name = "meddles"
    def read(self, seen):
        self.model.embedding.data.mul_(1.01)
        return super().read(seen)


class Fails(Largest):
    name = "fails"
    def read(self, seen): return 1 / 0


class Draws(Largest):
    name = "draws"
    def read(self, seen):
        torch.rand(1)
        return super().read(seen)
'''


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "my.py").write_text(METHOD, encoding="utf-8")
    (tmp_path / "mine.py").write_text(PROBE, encoding="utf-8")
    return tmp_path


def sweep(here: Path, *words: str) -> Any:
    return stabkit("sweep", *TINY, *words, "--out", here / "out", cwd=here)


@pytest.mark.slow
def test_a_method_of_ones_own_is_trained_beside_built_in_ones_and_again_trains_nothing(here: Path) -> None:
    done = sweep(here, "--models", "./my.py:peri_ln,deepnorm", "--json")
    assert done.returncode == 0, done.stderr
    runs = {run["model"]: run for run in strict(done.stdout)["runs"]}
    assert set(runs) == {"own-my-peri", "deepnorm"}
    assert runs["own-my-peri"]["run_id"].startswith("own-my-peri-2L-2L-s0-")
    assert "reused 2, new 0" in sweep(here, "--models", "./my.py:peri_ln,deepnorm").stderr
    run = Store(here / "out").load(runs["own-my-peri"]["run_id"])
    assert list(run.texts.values()) == [METHOD] and run.spec.own is not None and run.spec.own.file == "my.py"


@pytest.mark.slow
def test_the_bytes_of_the_file_are_in_the_id(here: Path) -> None:
    sweep(here, "--models", "./my.py:peri_ln", "--quiet")
    (here / "my.py").write_text(METHOD + "# one comment more\n", encoding="utf-8")
    done = sweep(here, "--models", "./my.py:peri_ln")
    assert "reused 0, new 1" in done.stderr and len(Store(here / "out").ids()) == 2
    page = stabkit("report", "--store", here / "out", "--out", here / "page.html", cwd=here)
    assert page.returncode == 0, page.stderr
    text = html.unescape((here / "page.html").read_text(encoding="utf-8"))
    assert text.count("A user’s file, my.py: peri_ln") == 2, "two versions are told apart"
    conditions = {run.spec.own.digest[:8] for run in map(Store(here / "out").load, Store(here / "out").ids())}
    assert all(f"my.py:peri_ln {digest}" in text for digest in conditions)


@pytest.mark.slow
def test_a_page_is_made_without_the_file_and_shows_it_without_running_it(here: Path) -> None:
    marked = METHOD.replace(
        '"""Peri-LN."""', f'"""Peri-LN."""\nfrom pathlib import Path\nPath({str(here / "ran")!r}).touch()'
    )
    (here / "my.py").write_text(marked, encoding="utf-8")
    sweep(here, "--models", "./my.py:peri_ln", "--quiet")
    (here / "my.py").unlink()
    (here / "ran").unlink()
    for words in (("report",), ("export", "--to", "csv")):
        done = stabkit(*words, "--store", here / "out", cwd=here)
        assert done.returncode == 0, done.stderr
    done = stabkit("runs", "ls", "--out", here / "out", cwd=here)
    assert "own-my-peri" in done.stdout and not (here / "ran").exists()
    (page,) = (here / "out" / "reports").glob("sweep*.html")
    assert "norm_branch=lambda site:" in html.unescape(page.read_text(encoding="utf-8"))


def test_options_of_a_function_are_given_as_a_built_in_methods_are(here: Path) -> None:
    done = sweep(here, "--models", "./my.py:peri_ln,./my.py:peri_ln:embedding=no", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    runs = [Store(here / "out").load(run_id) for run_id in Store(here / "out").ids()]
    assert sorted(run.spec.options.get("embedding", "") for run in runs) == ["", "no"]
    assert abs(runs[0].kept["parameters"] - runs[1].kept["parameters"]) == 2 * 2 * 16
    page = next((here / "out" / "reports").glob("*.html")).read_text(encoding="utf-8")
    assert "My Peri (embedding=no)" in page


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_probe_of_ones_own_is_recorded_drawn_and_exported(here: Path) -> None:
    done = sweep(here, "--models", "post-ln", "--probes", "./mine.py:Largest", "--json")
    (run_id,) = Store(here / "out").ids()
    run = Store(here / "out").load(run_id)
    table = run.records["own-largest"]
    assert run_id.startswith("post-ln-") and table.values.shape == (3, 10) and (table.values > 0).all()
    plain = sweep(here, "--models", "post-ln", "--quiet", "--json")
    assert plain.returncode == 0
    (other,) = {*Store(here / "out").ids()} - {run_id}
    for name, series in Store(here / "out").load(other).records.items():
        assert np.array_equal(series.values, run.records[name].values, equal_nan=True), name
    text = Path(strict(done.stdout)["report"]).read_text(encoding="utf-8")
    assert 'id="probe-own-largest-site"' in text or "probe-own-largest-site" in text
    assert "probe-own-largest-step" in text and "probe-stream-site" not in text, "their own, without --all-figures"
    rows = [row for row in stabkit("export", "--store", here / "out").stdout.splitlines() if ",own-largest," in row]
    assert len(rows) == 3 * 10


@pytest.mark.slow
def test_a_run_with_further_probes_is_shown_once_beside_the_same_without(here: Path) -> None:
    sweep(here, "--models", "post-ln", "--quiet")
    sweep(here, "--models", "post-ln", "--probes", "./mine.py:Largest", "--quiet")
    assert len(Store(here / "out").ids()) == 2
    stabkit("report", "--store", here / "out", "--out", here / "page.html")
    text = (here / "page.html").read_text(encoding="utf-8")
    assert "1 run" in text and "2 runs" not in text and "probe-own-largest-step" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NoSites", "is a probe without sites"),
        ("Shadow", "the name 'loss' is a built-in probe's"),
        ("Nameless", "its `name` must be lower-case letters"),
        ("Wrong", "read() must return a tensor of its 10 sites"),
        ("Meddles", "changes the training"),
        ("Draws", "changes the training"),
        ("Fails", "ZeroDivisionError"),
        ("Missing", "has no class of a Probe 'Missing'"),
        ("torch", "is not a subclass of stabkit.probes.base.Probe"),
    ],
)
def test_a_probe_that_breaks_the_contract_is_one_line_before_anything_is_trained(
    here: Path, name: str, said: str
) -> None:
    done = sweep(here, "--models", "post-ln", "--probes", f"./mine.py:{name}")
    assert done.returncode == 2 and said in done.stderr.replace("\n", " "), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not (here / "out" / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--models", "./my.py:peri_ln,./my.py:twice"), "two methods are both called My Peri"),
        (("--models", "./my.py:peri_ln:embedding=maybe"), "must be one of yes, no, not 'maybe'"),
        (("--models", "./my.py:peri_ln", "--recipe", "paper"), "has no recipe of its own here"),
        (("--models", "./none.py:peri_ln"), "No such file"),
        (("--probes", "mine.py"), "is not FILE.py:CLASS"),
    ],
)
def test_a_slip_is_one_line(here: Path, words: tuple[str, ...], said: str) -> None:
    done = sweep(here, *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_recipe_in_the_file_is_the_methods_own(here: Path) -> None:
    done = stabkit(
        "sweep", "--models", "./my.py:trained", "--recipe", "paper", "--depths", "2", "--dry-run", "--json", cwd=here
    )
    (run,) = strict(done.stdout)["runs"]
    assert run["spec"]["train"]["lr"] == 3e-4 and run["spec"]["train"]["warmup"] == 0


def test_a_file_that_changed_on_the_way_is_told_and_what_was_read_is_run(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stabkit.running import execute

    real = execute.run

    def meanwhile(*args: Any, **named: Any) -> Any:
        (here / "my.py").write_text("something else", encoding="utf-8")
        return real(*args, **named)

    monkeypatch.setattr(execute, "run", meanwhile)
    done = sweep(here, "--models", "./my.py:peri_ln")
    assert done.returncode == 0 and "my.py has changed since it was read" in done.stderr
    (run_id,) = Store(here / "out").ids()
    assert list(Store(here / "out").load(run_id).texts.values()) == [METHOD]


@pytest.mark.slow
def test_a_stored_text_that_was_tampered_with_is_a_corrupt_run(here: Path) -> None:
    sweep(here, "--models", "./my.py:peri_ln", "--quiet")
    (folder,) = (here / "out" / "runs").glob("own-*")
    held = json.loads((folder / "own.json").read_text(encoding="utf-8"))
    (folder / "own.json").write_text(json.dumps({key: text + "#" for key, text in held.items()}), encoding="utf-8")
    done = sweep(here, "--models", "./my.py:peri_ln")
    assert "corrupt run" in done.stderr and "new 1" in done.stderr


def test_an_ablation_scales_a_method_that_has_alpha_and_beta(here: Path) -> None:
    shutil.copy(here / "my.py", here / "other.py")
    words = ("ablate", "--model", "./other.py:peri_ln", "--beta-scale", "0.5,1", *TINY, "--out", here / "out")
    done = stabkit(*words, "--json", "--quiet", cwd=here)
    assert done.returncode == 0, done.stderr
    assert {run["beta_scale"] for run in strict(done.stdout)["runs"]} == {0.5, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_workers_receive_the_bytes(here: Path, executor: str, request: pytest.FixtureRequest) -> None:
    words = ["--models", "./my.py:peri_ln", "--probes", "./mine.py:Largest", "--executor", executor]
    if executor == "dask":
        from distributed import LocalCluster

        with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
            done = sweep(here, *words, "--scheduler", cluster.scheduler_address)
    else:
        done = sweep(here, *words, "--workers", "2")
    assert done.returncode == 0, done.stderr
    (run_id,) = Store(here / "out").ids()
    assert run_id.startswith("own-my-peri") and "own-largest" in Store(here / "out").load(run_id).records


def test_a_dry_run_counts_the_parameters_of_the_file_that_was_named(here: Path) -> None:
    done = stabkit("sweep", "--models", "./my.py:peri_ln,pre-ln", "--depths", "2", "--dry-run", cwd=here)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "│" in line]
    counted = {row.split("│")[0].strip(): int(row.split("│")[5].strip().replace(",", "")) for row in rows}
    assert counted["My Peri"] - counted["Pre-LN"] == (10 + 2) * 2 * 64  # a norm on each branch, one on each embedding
    listed = strict(
        stabkit("sweep", "--models", "./my.py:peri_ln", "--depths", "2", "--dry-run", "--json", cwd=here).stdout
    )
    assert listed["runs"][0]["parameters"] == counted["My Peri"]


def test_a_file_is_run_only_where_the_command_line_itself_names_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "my.py").write_text(METHOD + "\nraise SystemExit('it ran')\n", encoding="utf-8")
    (here / "grid.toml").write_text('models = "./my.py:peri_ln"\n', encoding="utf-8")
    done = sweep(here, "--config", "grid.toml")
    assert done.returncode == 2 and "only if the command line names it" in done.stderr
    monkeypatch.setenv("STABKIT_SWEEP_MODELS", "./my.py:peri_ln")
    done = sweep(here)
    assert done.returncode == 2 and "only if the command line names it" in done.stderr
    done = sweep(here, "--models", "./my.py:peri_ln")
    assert done.returncode == 2 and "my.py, line" in done.stderr and "SystemExit: it ran" in done.stderr


@pytest.mark.slow
def test_the_same_bytes_are_the_same_run_wherever_they_lie_and_another_function_of_them_is_another(here: Path) -> None:
    shutil.copy(here / "my.py", here / "other.py")
    sweep(here, "--models", "./my.py:peri_ln", "--quiet")
    assert "reused 1, new 0" in sweep(here, "--models", "./other.py:peri_ln").stderr
    sweep(here, "--models", "./my.py:twice", "--quiet")
    assert len(Store(here / "out").ids()) == 2
    stabkit("report", "--store", here / "out", "--out", here / "page.html")
    text = html.unescape((here / "page.html").read_text(encoding="utf-8"))
    assert "my.py:peri_ln " in text and "my.py:twice " in text, "two that are called alike are told apart"


@pytest.mark.slow
def test_every_further_probe_of_a_store_is_on_its_page(here: Path) -> None:
    sweep(here, "--models", "post-ln", "--probes", "./mine.py:Largest", "--quiet")
    (here / "second.py").write_text(PROBE.replace('name = "largest"', 'name = "greatest"'), encoding="utf-8")
    sweep(here, "--models", "post-ln", "--probes", "./second.py:Largest", "--quiet")
    stabkit("report", "--store", here / "out", "--out", here / "page.html")
    text = html.unescape((here / "page.html").read_text(encoding="utf-8"))
    assert "probe-own-largest-step" in text and "probe-own-greatest-step" in text and "1 run" in text
    assert "The largest entry of every branch" in text, "what a probe says of itself"


ENCODER = """

class Encoder(Largest):
    name = "encoder"
    def read(self, seen):
        return seen.keep["encoder"].double().mean().expand(len(self.sites))


class Running(Largest):
    name = "running"
    most = 0.0
    def read(self, seen):
        self.most = max(self.most, float(super().read(seen).max() + seen.loss))
        return torch.full((len(self.sites),), self.most).double()
"""


@pytest.mark.slow
def test_a_probe_is_tried_on_the_stacks_that_it_is_for(here: Path) -> None:
    (here / "mine.py").write_text(PROBE + ENCODER, encoding="utf-8")
    alone = ("--arch", "decoder-only", "--models", "post-ln")
    assert sweep(here, *alone, "--probes", "./mine.py:Largest").returncode == 0
    assert sweep(here, "--models", "post-ln", "--probes", "./mine.py:Encoder", "--dry-run").returncode == 0
    source_too = sweep(here, "--arch", "encoder-only", "--models", "post-ln", "--probes", "./mine.py:Encoder")
    assert source_too.returncode == 0, source_too.stderr


def test_a_probe_that_remembers_what_a_checkpoint_loses_is_refused(here: Path) -> None:
    (here / "mine.py").write_text(PROBE + ENCODER, encoding="utf-8")
    done = sweep(here, "--models", "post-ln", "--probes", "./mine.py:Running")
    assert done.returncode == 2 and "remembers something that a checkpoint loses" in done.stderr, done.stderr


def test_a_page_knows_of_a_file_what_its_slots_said(here: Path) -> None:
    sweep(here, "--models", "./my.py:peri_ln", "--quiet")
    (run_id,) = Store(here / "out").ids()
    own = Store(here / "out").load(run_id).spec.own
    assert (own.group, own.norm_after_sum, own.ends_in_norm) == ("Pre-LN", False, True)
    assert own.says == "x ← x + LN(f(LN(x))); before each stack LN(x); after each stack LN(x)"
