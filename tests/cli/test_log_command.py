"""`stabkit log` from a shell, `stabkit.read_log` from Python, and a watch that stops."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from torch import nn

import stabkit as api
from stabkit.errors import UsageError
from stabkit.wording import log as words
from tests.commands import stabkit

V = 50_000


def _csv(path, losses, first=10):
    lines = [f"{first * (i + 1)},{loss}\n" for i, loss in enumerate(losses)]
    path.write_text("step,loss\n" + "".join(lines))
    return path


@pytest.fixture
def logs(tmp_path):
    """(one that learns, one that is dead)."""
    steps = np.arange(10, 1010, 10)
    good = 2 + (math.log(V) - 2) * np.exp(-steps / 300) + np.random.default_rng(0).normal(0, 0.02, len(steps))
    return _csv(tmp_path / "good.csv", good), _csv(tmp_path / "dead.csv", np.full(100, math.log(V)))


def test_each_log_is_told_in_a_sentence_with_its_number_and_a_page(tmp_path, logs) -> None:
    done = stabkit("log", *logs, "--classes", V, "--against", logs[0], "--out", tmp_path)
    text = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "good.csv: learning. The loss fell from 10.5 to 2.3" in text and "still falls" in text
    assert "dead.csv: at the level of frequencies. The loss is 10.8 by update 1,000" in text
    assert "A uniform guess between 50,000 classes costs 10.8" in text
    assert "no gradient norm: vanishing was not looked at" in text and "next: stabkit probe" in text
    (page,) = (tmp_path / "reports").glob("log-*.html")
    assert str(page) in "".join(done.stdout.split("\n")) and "Of 2 logs 1 learning" in page.read_text(encoding="utf-8")


def test_a_dead_one_ends_with_7_where_it_is_asked_to_and_else_with_0(tmp_path, logs) -> None:
    good, dead = logs
    out = ("--out", tmp_path, "--classes", V)
    assert stabkit("log", dead, *out).returncode == 0
    assert stabkit("log", good, "--stop", "0.05", *out).returncode == 0
    done = stabkit("log", good, dead, "--stop", "0.05", *out)
    assert done.returncode == 7 and "diverged, or left the band" in done.stderr
    body = json.loads(stabkit("log", good, dead, "--stop", "0.05", "--json", *out).stdout)
    assert [log["stop"]["step"] for log in body["logs"]] == [None, 100] and body["logs"][1]["level_of"] == "classes"
    late = _csv(tmp_path / "late.csv", [*np.linspace(3, 1, 800), *[math.nan] * 9])
    done = stabkit("log", late, "--stop", "0.05", "--out", tmp_path)
    assert done.returncode == 7 and "Stop it: it diverged, at 8" in done.stdout


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--stop", "0.15"), "one of 0.02, 0.05, 0.1, 0.2"),
        (("--against", ""), "--against has an empty value"),
        (("--classes", "1"), "--classes"),
        (("--level", "0"), "--level"),
        (("--level", "3", "--tokens", "x"), "both say the level"),
        (("--tokens", "nowhere"), "--tokens: nowhere"),
        (("--against", "nowhere"), "nowhere"),
    ],
)
def test_a_bad_option_is_refused_in_one_line(tmp_path, logs, more, why) -> None:
    done = stabkit("log", logs[0], *more, "--out", tmp_path)
    assert done.returncode == 2 and why in done.stderr and len(done.stderr.strip().splitlines()) <= 3


def test_logs_of_one_name_are_told_apart_and_the_same_one_is_read_once(tmp_path, logs) -> None:
    for run in "ab":
        (tmp_path / run).mkdir()
        _csv(tmp_path / run / "loss.csv", [3.0, 2.0])
    paths = [tmp_path / run / "loss.csv" for run in "ab"]
    assert [own.log.name for own in api.read_log(paths).logs] == [str(path) for path in paths]
    assert len(api.read_log([logs[0], logs[0]]).logs) == 1


@pytest.mark.parametrize("files", [[], [""], 5, None, "a\0b"])
def test_what_is_no_log_is_refused(files) -> None:
    with pytest.raises(UsageError):
        api.read_log(files)


@pytest.mark.parametrize("values", [[math.nan] * 30, [0.0] * 30, [1e308] * 30])
def test_a_log_without_a_number_has_a_page(tmp_path, values) -> None:
    result = api.read_log(_csv(tmp_path / "none.csv", values), out=tmp_path)
    assert result.page.is_file() and result.word in ("diverged", "slow")


def _means(path, many, end=600):
    """A healthy training's log of means over so many updates."""
    losses = 4 + (math.log(V) - 4) * np.exp(-np.arange(1, end + 1) / 200)
    return _csv(path, losses.reshape(-1, many).mean(axis=1), first=many)


@pytest.mark.filterwarnings("ignore:.*The bound says nothing")
@pytest.mark.parametrize("many", [1, 10, 50, 100])
def test_the_bound_says_nothing_of_means_over_many_updates(tmp_path, many) -> None:
    (stop,) = api.read_log(_means(tmp_path / "a.csv", many), classes=V, stop=0.05).stops
    assert stop is not None and stop.step is None and bool(stop.why) is (many > 10)


def test_the_bound_says_nothing_of_epochs_warm_ups_trained_weights_or_a_wild_start(tmp_path) -> None:
    flat = "".join(f"{i},{10.8},{i * 1e-6}\n" for i in range(1, 400))
    for name, text, why in (
        ("epochs", "epoch,loss\n" + "".join(f"{i},10.8\n" for i in range(1, 40)), "no updates"),
        ("warm", "step,loss,lr\n" + flat, "rate rises"),
        ("trained", "step,loss\n" + flat.replace("10.8", "2.4"), "trained weights"),
        ("wild", "step,loss\n" + flat.replace("10.8", "130"), "far above"),
    ):
        (tmp_path / name).write_text(text.replace(",loss\n", ",loss,x\n") if name in ("trained", "wild") else text)
        with pytest.warns(UserWarning, match=f"{name}: The bound says nothing"):
            result = api.read_log(tmp_path / name, classes=V, stop=0.05)
        (stop,) = result.stops
        assert stop is not None and stop.step is None and why in words.stop(stop) and why in result.verdict, name


def test_the_bound_reads_what_went_on_after_a_restart(tmp_path) -> None:
    lines = [f"step {i} loss nan\n" for i in range(1, 300)]
    lines += [f"step {i} loss {4 + (math.log(V) - 4) * math.exp(-i / 200)}\n" for i in range(1, 600)]
    (tmp_path / "two.log").write_text("".join(lines))
    (stop,) = api.read_log(tmp_path / "two.log", classes=V, stop=0.05).stops
    assert stop is not None and stop.step is None and stop.looks == 6


@pytest.mark.parametrize("form", ["npy", "bin", "json", "text"])
def test_the_level_is_counted_from_tokens(tmp_path, logs, form) -> None:
    ids = np.repeat(np.arange(4), (8, 4, 2, 2)).astype(np.uint16)
    path = tmp_path / form
    match form:
        case "npy":
            np.save(path.with_suffix(".npy"), ids.reshape(4, 4))
            path = path.with_suffix(".npy")
        case "bin":
            ids.tofile(path)
        case "json":
            path.write_text(json.dumps({"a": 8, "b": 4, "c": 2, "d": 2}))
        case "text":
            path.write_text(" ".join(map(str, ids)))
    (own,) = api.read_log(logs[1], tokens=path).logs
    assert own.level == pytest.approx(1.75 * math.log(2)) and own.level_of == "counted"


def test_from_python_a_table_a_sentence_and_the_word(logs) -> None:
    result = api.read_log(logs, classes=V)
    assert result.word == "learning" and result.verdict == "Of 2 logs 1 learning, 1 at the level of frequencies."
    assert result.runs["word"].tolist() == ["learning", "at the level of frequencies"]
    assert result.runs["last_loss"].dtype == float and not result.runs["stop"].any()
    dead = api.read_log(logs, classes=V, stop=0.05)
    assert dead.stop and dead.verdict.endswith(f"frequencies. Stop {dead.runs['log'][dead.runs['stop']].item()}.")


def test_a_log_that_grows_is_read_again_until_it_is_dead(tmp_path, logs) -> None:
    path = _csv(tmp_path / "grows.csv", [math.log(V)] * 3)
    command = "import sys; from stabkit.cli import entry; sys.argv[0] = 'stabkit'; entry.main()"
    words = ["log", path, "--follow", "--stop", "0.05", "--classes", V, "--out", tmp_path]
    with subprocess.Popen([sys.executable, "-c", command, *map(str, words)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        first = run.stdout.readline()
        time.sleep(0.2)
        _csv(path, [math.log(V)] * 100)
        rest = run.stdout.read()
    assert "not enough" in first and "at the level of frequencies" in " ".join(rest.split()) and run.returncode == 7


def test_a_watch_that_may_stop_raises_where_the_training_is_dead_and_only_there(tmp_path) -> None:
    for rate, stuck in ((0.0, True), (1e-2, False)):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        model = nn.Sequential(nn.Embedding(30, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 30))
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        tokens = torch.randint(0, 30, (4, 8))
        watch = api.watch(model, optimizer, out=tmp_path / str(rate), stop=0.05, warn=False)
        raised = False
        for _ in range(110):
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            try:
                watch.loss(loss)
            except api.Stuck as error:
                raised = True
                assert "out of the band" in str(error) and watch.ended == "stopped: stop=0.05"
                break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        watch.close()
        assert raised is stuck
    with pytest.raises(UsageError, match="one of 0.02"):
        api.watch(model, optimizer, stop=2.0)
