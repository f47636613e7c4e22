"""The page of a watch, from trainings that were really watched: healthy, failing, killed, of two stacks."""

from __future__ import annotations

import json
import shutil
import warnings

import pytest
import torch

import stabkit
from stabkit.figures.model_curves import MOST_POINTS, WATCHED, thinned
from stabkit.own.watch import journal
from stabkit.report.own import watch as page
from stabkit.storage.watched import WatchShelf
from tests.commands import stabkit as command
from tests.own import probe_models as models
from tests.own.test_watch import loss_of, tokens


def watched(out, lr=1e-3, steps=20, loss=True, close=True):
    torch.manual_seed(0)
    model = models.Stack(3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = stabkit.watch(model, optimizer, out=out, name="mine")
        for step in range(steps):
            value = loss_of(model, tokens(step))
            if loss:
                watch.loss(value)
            optimizer.zero_grad(), value.backward(), optimizer.step()
        if close:
            watch.close()
    (own,) = WatchShelf(out).ids()
    return WatchShelf(out).load(own)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return watched(tmp_path_factory.mktemp("healthy"))


@pytest.mark.parametrize("figure", WATCHED)
def test_every_picture_is_drawn_and_told(figure, healthy):
    frame = figure.select(healthy)
    assert tuple(frame.columns) == figure.columns and figure.title(healthy) and "to" in figure.described(frame)
    figure.drawn(frame)
    figure.drawn(frame.iloc[:0])


def test_the_frames_hold_what_was_recorded(healthy):
    gradient, stream, update, loss = (figure.select(healthy) for figure in WATCHED)
    norms = healthy.cell.gradients("stack")
    as_written = [float(f"{ratio:.4g}") for ratio in norms[:, 0] / norms[:, -1]]
    assert gradient[gradient["run"] == "stack.1"]["value"].tolist() == as_written
    assert len(set(stream["run"])) == 6 and {"stack, input", "stack.3.ffn"} <= set(stream["run"])
    assert update["x"].max() == 20 and loss[loss["run"] == "loss"]["value"].tolist() == [
        float(f"{value:.4g}") for value in healthy.cell.records["loss"].at("train")
    ]


def test_a_page_of_a_healthy_training_says_that_nothing_was_beyond_its_limit(healthy):
    text = page.render(healthy, "stabkit report")
    assert (
        "mine was watched for 20 updates: no link of the chain exceeded its limit. Of 118 trainings that failed, 106"
        in text
    )
    assert (
        "None: no link exceeded its limit." in text
        and text.count('id="figure-watched_') == 4
        and "built-in" not in text
    )


def test_a_page_of_a_failing_one_leads_with_the_first_warning(tmp_path):
    found = watched(tmp_path, lr=0.1, loss=False)
    text = page.render(found, "stabkit report")
    assert page.answer(found).startswith("mine, update 0 of 20: the rate is 1e-1, 100 times the usual 1e-3")
    assert text.count('id="figure-watched_') == 3, "no loss was given"


def test_a_watch_that_nobody_closed_says_where_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "PAUSE", -1)
    text = page.render(watched(tmp_path, close=False), "stabkit report")
    assert "This watch was not closed: its records end after update 20." in text


def test_report_makes_a_page_for_each_watch_of_a_store(tmp_path):
    found = watched(tmp_path)
    done = command("report", "--store", str(tmp_path))
    assert done.returncode == 0 and f"own-{found.watch_id}.html" in done.stdout
    assert (tmp_path / "reports" / f"own-{found.watch_id}.html").is_file()


@pytest.mark.slow
def test_a_damaged_watch_is_named_and_the_others_have_their_pages(tmp_path):
    found, other = watched(tmp_path), watched(tmp_path / "other")
    shutil.move(tmp_path / "other" / "own" / other.watch_id, tmp_path / "own" / "damaged")
    (tmp_path / "own" / "damaged" / "000000" / "facts.json").write_text("{}")
    done = command("report", "--store", str(tmp_path))
    assert done.returncode == 0 and "damaged" in done.stderr and f"own-{found.watch_id}.html" in done.stdout
    (tmp_path / "own" / found.watch_id).rename(tmp_path / "away")
    done = command("report", "--store", str(tmp_path))
    assert done.returncode != 0 and "Traceback" not in done.stderr


def test_long_lines_are_thinned_evenly_in_the_logarithm():
    steps = torch.arange(100_000).numpy()
    kept = thinned(steps)
    assert len(kept) <= MOST_POINTS and kept[0] == 0 and kept[-1] == 99_999 and kept[:5] == [0, 1, 2, 3, 4]


def test_runs_and_export_know_watches(tmp_path):
    found = watched(tmp_path, lr=0.1)
    store = ("--out", str(tmp_path))
    listed = command("runs", "ls", *store)
    assert listed.returncode == 0 and "1 watch" in listed.stdout and "step" in listed.stdout
    document = json.loads(command("runs", "ls", "--json", *store).stdout)
    (own,) = document["watches"]
    assert own["watch_id"] == found.watch_id and own["warnings"][1]["link"] == "step" and document["runs"] == []
    shown = json.loads(command("runs", "show", "mine", "--json", *store).stdout)
    assert shown["records"]["loss"]["steps"] == list(range(20))
    assert "update 1: one update moved" in command("runs", "show", "mine", *store).stdout
    assert f"sound    {found.watch_id}" in command("runs", "verify", *store).stdout
    table = command("export", "--store", str(tmp_path), "--to", "csv").stdout.splitlines()
    assert table[0] == "run,step,probe,site,value" and any(f"{found.watch_id},19,loss,train," in row for row in table)
    (tmp_path / "own" / found.watch_id / "000000" / "records.npz").write_bytes(b"")
    broken = command("runs", "verify", *store)
    assert broken.returncode == 5 and "corrupt: 1 of 1 watches" in broken.stderr
    assert command("runs", "rm", "mine", *store).returncode == 0 and WatchShelf(tmp_path).ids() == []


def test_a_watch_that_ended_at_once_has_a_page(tmp_path):
    torch.manual_seed(0)
    model = models.Stack(2)
    optimizer = torch.optim.AdamW(model.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch = stabkit.watch(model, optimizer, out=tmp_path, probe=tokens(0))
        watch._stop("its disk is full")
        watch.close()
    done = command("report", "--store", str(tmp_path))
    assert done.returncode == 0 and watch.ended == "stopped: its disk is full"
    (own,) = (tmp_path / "reports").iterdir()
    assert "The watch ended before the training, after update 0" in own.read_text()


@pytest.mark.slow
def test_a_name_that_begins_several_is_refused(tmp_path):
    watched(tmp_path)
    again = watched(tmp_path / "more")
    shutil.move(tmp_path / "more" / "own" / again.watch_id, tmp_path / "own" / again.watch_id)
    done = command("runs", "rm", "mine", "--out", str(tmp_path))
    assert done.returncode == 2 and "matches 2 runs and watches" in done.stderr and len(WatchShelf(tmp_path).ids()) == 2
    assert command("runs", "rm", again.watch_id, "--out", str(tmp_path)).returncode == 0


def test_of_one_reading_no_line_is_drawn_and_nothing_is_said_of_where_it_ends(tmp_path):
    """A forward that is not repeatable is read once."""
    torch.manual_seed(0)
    model, own = models.Stack(2), torch.Generator().manual_seed(0)
    model.register_forward_hook(lambda module, args, out: out + torch.rand(out.shape, generator=own))
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.warns(UserWarning, match="your forward draws from"):
        watch = stabkit.watch(model, optimizer, out=tmp_path, probe=tokens(0))
        for step in range(4):
            optimizer.zero_grad(), loss_of(model, tokens(step)).backward(), optimizer.step()
        watch.close()
    text = page.render(WatchShelf(tmp_path).load(watch.id), "stabkit report")
    assert "figure-watched_gradient" in text and "figure-watched_stream" not in text
    assert "the output was read once" in text and "the output has moved" not in text
