"""A watch's numbers and warnings, read back from each tracker by the tracker's own package, without a network."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager

import pytest
import torch
from torch import nn

import stabkit
from stabkit.own.watch.journal import StabilityWarning

pytestmark = [pytest.mark.libraries, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
STEPS = 4


def train(writer, out, after=lambda step: None):
    """Four updates at a rate that breaks the model at once; returns the watch."""
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True) for _ in range(4)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e3)
    with warnings.catch_warnings(), stabkit.watch(model, optimizer, writer=writer, out=out) as watch:
        warnings.simplefilter("ignore", StabilityWarning)
        for step in range(STEPS):
            loss = model(torch.randn(2, 8, 16)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after(step)
    assert [(one.link, one.step) for one in watch.warnings][:2] == [("rate", 0), ("step", 1)]
    return watch


@contextmanager
def tensorboard(folder, monkeypatch):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def read():
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder))
        events.Reload()
        text = events.Tensors("stabkit/step/text_summary")[0].tensor_proto.string_val[0].decode()
        return {event.step: event.value for event in events.Scalars("stabkit/update/state")}, text

    yield writer, lambda step: None, read
    writer.close()


@contextmanager
def wandb(folder, monkeypatch):
    import wandb

    run = wandb.init(project="test", mode="offline", dir=str(folder), settings=wandb.Settings(silent=True))

    def read():
        run.log({"end": 1}, step=1000)  # it ends the rows before it
        last = dict(run.summary)
        run.finish()
        wandb.teardown()  # its own process has written by then
        (log,) = folder.glob("wandb/offline-run-*/*.wandb")
        return last, log.read_bytes().decode("latin1")

    yield run, lambda step: run.log({"mine": step}, step=10 * step), read


@contextmanager
def mlflow(folder, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    mlflow.set_tracking_uri(folder.as_uri())
    run = mlflow.start_run()

    def read():
        mlflow.end_run()
        client = mlflow.MlflowClient()
        history = client.get_metric_history(run.info.run_id, "stabkit/update/state")
        return {one.step: one.value for one in history}, client.get_run(run.info.run_id).data.tags["stabkit.step"]

    yield mlflow, lambda step: None, read


@contextmanager
def trackio(folder, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(folder))
    import trackio

    monkeypatch.setattr("trackio.utils.TRACKIO_DIR", folder)
    run = trackio.init(project="test", embed=False, auto_log_cpu=False, auto_log_gpu=False)

    def read():
        trackio.finish()
        rows = trackio.SQLiteStorage.get_logs("test", run.name)
        found = {row["step"]: row["stabkit/update/state"] for row in rows if "stabkit/update/state" in row}
        return found, " ".join(alert["text"] for alert in trackio.Api().alerts("test"))

    yield run, lambda step: None, read


@pytest.mark.parametrize("kind", [tensorboard, mlflow, trackio])
def test_a_tracker_holds_every_reading_at_its_update_and_the_warning(kind, tmp_path, monkeypatch):
    with kind(tmp_path / "tracker", monkeypatch) as (writer, after, read):
        watch = train(writer, tmp_path / "out", after)
        numbers, text = read()
    assert numbers[0] == 0.0 and numbers[1] > 0 and math.isfinite(numbers[1])
    assert watch.warnings[1].sentence in text and "a tenth of the rate" in text


def test_weights_and_biases_steps_stay_the_users_own(tmp_path, monkeypatch):
    """Its run has one step: a number of ours that named or ended one would have the user's own rows dropped."""
    with wandb(tmp_path, monkeypatch) as (run, after, read):
        watch = train(run, tmp_path / "out", after)
        assert run.step == 10 * (STEPS - 1)
        last, text = read()
    assert last["mine"] == STEPS - 1 and last["stabkit/update"] == STEPS
    assert watch.warnings[1].sentence in text
